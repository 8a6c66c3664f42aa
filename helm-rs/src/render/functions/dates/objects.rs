//! `time.Time` and its relatives as template values, with the methods that templates may
//! call on them.

use std::any::Any;
use std::rc::Rc;

use gotemplate::function::{IntoResult, Param};
use gotemplate::{CallError, Int, IntKind, Kind, Method, Object, Str, Type, Value};

use crate::render::time::{Duration, Time, Zone, month_name, weekday_name};

/// A `time.Time`.
#[derive(Clone, Debug)]
pub(crate) struct TimeObject {
    /// The time.
    pub(crate) time: Time,
    /// The process's zone, for the method `Local`.
    local: Zone,
}

impl TimeObject {
    pub(in crate::render) const fn new(time: Time, local: Zone) -> Self {
        Self { time, local }
    }

    /// The time inside a value.
    pub(crate) fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Another time in the same process.
    pub(super) fn with(&self, time: Time) -> Self {
        Self { time, local: self.local.clone() }
    }
}

const TIME: Type = Type::Named("time.Time", Kind::Struct);
const DURATION: Type = Type::Named("time.Duration", Kind::Int(IntKind::Int64));
const LOCATION: Type = Type::Named("*time.Location", Kind::Ptr);
const INT: Type = Type::Int(IntKind::Int);

impl Param for TimeObject {
    const TYPE: Type = TIME;

    fn take(args: &mut std::slice::Iter<'_, Value>) -> Option<Self> {
        args.next().and_then(Self::of).cloned()
    }
}

impl IntoResult for TimeObject {
    fn into_result(self) -> Result<Value, CallError> {
        Ok(Value::Object(Rc::new(self)))
    }
}

impl Object for TimeObject {
    fn type_name(&self) -> &'static str {
        "time.Time"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn methods(&self) -> &'static [Method] {
        TIME_METHODS
    }

    /// Go's three private fields, of a time without a monotonic reading; a location is a
    /// pointer, of which only UTC's nil is known.
    fn all_fields(&self) -> Vec<(&'static str, Value)> {
        /// From the year 1 to 1970, in seconds.
        const TO_UNIX: i64 = 62_135_596_800;
        let wall = i64::from(self.time.nanosecond());
        let seconds = self.time.unix_seconds().wrapping_add(TO_UNIX);
        vec![
            ("wall", Value::sized(IntKind::Uint64, wall)),
            ("ext", Value::int64(seconds)),
            ("loc", Value::sized(IntKind::Uintptr, 0)),
        ]
    }

    fn string(&self) -> Option<Str> {
        Some(self.time.to_text().into())
    }

    fn to_json(&self) -> Option<Value> {
        self.time.to_rfc3339().ok().map(Value::from)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn bad_receiver() -> CallError {
    CallError::from("the method's receiver or argument is of another type")
}

fn time(value: &Value) -> Result<&TimeObject, CallError> {
    TimeObject::of(value).ok_or_else(bad_receiver)
}

fn argument(arguments: &[Value], index: usize) -> Result<&Value, CallError> {
    arguments.get(index).ok_or_else(bad_receiver)
}

fn integer(value: &Value) -> Result<i64, CallError> {
    match value {
        Value::Int(Int { bits, .. }) => Ok(*bits),
        // A named integer: a duration, a month.
        Value::Object(object) => match object.underlying() {
            Some(Value::Int(Int { bits, .. })) => Ok(bits),
            _ => Err(bad_receiver()),
        },
        _ => Err(bad_receiver()),
    }
}

fn text(value: &Value) -> Result<&[u8], CallError> {
    match value {
        Value::String(text) => Ok(text.as_bytes()),
        _ => Err(bad_receiver()),
    }
}

macro_rules! methods {
    ($($name:literal ($($param:expr),*) => $body:expr,)+) => {
        &[$(Method { name: $name, params: &[$($param),*], variadic: false, call: $body }),+]
    };
}

fn json(value: &Value) -> Result<String, CallError> {
    let text = time(value)?.time.to_rfc3339();
    text.map_err(|problem| CallError::from(format!("Time.MarshalJSON: {problem}")))
}

static TIME_METHODS: &[Method] = methods! {
    "Add" (DURATION) => |this, args| {
        let this = time(this)?;
        this.with(this.time.add(Duration(integer(argument(args, 0)?)?))).into_result()
    },
    "AddDate" (INT, INT, INT) => |this, args| {
        let this = time(this)?;
        let [years, months, days] =
            [integer(argument(args, 0)?)?, integer(argument(args, 1)?)?, integer(argument(args, 2)?)?];
        this.with(this.time.add_date(years, months, days)).into_result()
    },
    "After" (TIME) => |this, args| {
        Ok(Value::Bool(time(this)?.time.compare(&time(argument(args, 0)?)?.time).is_gt()))
    },
    "Before" (TIME) => |this, args| {
        Ok(Value::Bool(time(this)?.time.compare(&time(argument(args, 0)?)?.time).is_lt()))
    },
    "Compare" (TIME) => |this, args| {
        Ok(Value::int(time(this)?.time.compare(&time(argument(args, 0)?)?.time) as i64))
    },
    "Day" () => |this, _| Ok(Value::int(time(this)?.time.date().day)),
    "Equal" (TIME) => |this, args| {
        Ok(Value::Bool(time(this)?.time.compare(&time(argument(args, 0)?)?.time).is_eq()))
    },
    "Format" (Type::String) => |this, args| {
        Ok(Value::string(time(this)?.time.format(text(argument(args, 0)?)?)))
    },
    "GoString" () => |this, _| Ok(Value::string(time(this)?.time.to_go())),
    "Hour" () => |this, _| Ok(Value::int(time(this)?.time.clock().hour)),
    "In" (LOCATION) => |this, args| {
        let this = time(this)?;
        let Value::Object(object) = argument(args, 0)? else {
            return Err(CallError::from("time: missing Location in call to Time.In"));
        };
        let zone: &Location = object.as_any().downcast_ref().ok_or_else(bad_receiver)?;
        this.with(this.time.in_zone(zone.0.clone())).into_result()
    },
    "IsDST" () => |this, _| {
        let time = &time(this)?.time;
        Ok(Value::Bool(time.zone().lookup(time.unix_seconds()).daylight))
    },
    "IsZero" () => |this, _| Ok(Value::Bool(time(this)?.time.is_zero())),
    "Local" () => |this, _| {
        let this = time(this)?;
        this.with(this.time.in_zone(this.local.clone())).into_result()
    },
    "Location" () => |this, _| {
        Ok(Value::Object(Rc::new(Location(time(this)?.time.zone().clone()))))
    },
    "MarshalJSON" () => |this, _| Ok(Value::Bytes(format!("\"{}\"", json(this)?).into())),
    "MarshalText" () => |this, _| {
        let text = time(this)?.time.to_rfc3339();
        let text = text.map_err(|e| CallError::from(format!("Time.MarshalText: {e}")))?;
        Ok(Value::Bytes(text.into()))
    },
    "Minute" () => |this, _| Ok(Value::int(time(this)?.time.clock().minute)),
    "Month" () => |this, _| {
        Ok(Value::Object(Rc::new(Named::Month(time(this)?.time.date().month))))
    },
    "Nanosecond" () => |this, _| Ok(Value::int(time(this)?.time.nanosecond().into())),
    "Round" (DURATION) => |this, args| {
        let this = time(this)?;
        this.with(this.time.round(Duration(integer(argument(args, 0)?)?))).into_result()
    },
    "Second" () => |this, _| Ok(Value::int(time(this)?.time.clock().second)),
    "String" () => |this, _| Ok(Value::string(time(this)?.time.to_text())),
    "Sub" (TIME) => |this, args| {
        Ok(duration(time(this)?.time.since(&time(argument(args, 0)?)?.time)))
    },
    "Truncate" (DURATION) => |this, args| {
        let this = time(this)?;
        this.with(this.time.truncate(Duration(integer(argument(args, 0)?)?))).into_result()
    },
    "UTC" () => |this, _| {
        let this = time(this)?;
        this.with(this.time.in_zone(Zone::utc())).into_result()
    },
    "Unix" () => |this, _| Ok(Value::int64(time(this)?.time.unix_seconds())),
    "UnixMicro" () => |this, _| {
        let time = &time(this)?.time;
        let micros = i64::from(time.nanosecond()) / 1_000;
        Ok(Value::int64(time.unix_seconds().wrapping_mul(1_000_000).wrapping_add(micros)))
    },
    "UnixMilli" () => |this, _| {
        let time = &time(this)?.time;
        let millis = i64::from(time.nanosecond()) / 1_000_000;
        Ok(Value::int64(time.unix_seconds().wrapping_mul(1_000).wrapping_add(millis)))
    },
    "UnixNano" () => |this, _| Ok(Value::int64(time(this)?.time.unix_nanoseconds())),
    "Weekday" () => |this, _| {
        Ok(Value::Object(Rc::new(Named::Weekday(time(this)?.time.weekday()))))
    },
    "Year" () => |this, _| Ok(Value::int(time(this)?.time.date().year)),
    "YearDay" () => |this, _| Ok(Value::int(time(this)?.time.year_day())),
};

/// A `*time.Location`.
#[derive(Debug)]
struct Location(Zone);

impl Object for Location {
    fn type_name(&self) -> &'static str {
        "*time.Location"
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn methods(&self) -> &'static [Method] {
        methods! { "String" () => |this, _| string_method(this), }
    }

    fn string(&self) -> Option<Str> {
        Some(self.0.name().into())
    }

    fn to_json(&self) -> Option<Value> {
        Some(Value::map::<Str>([]))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A value of one of the package's named integer types.
#[derive(Clone, Copy, Debug)]
enum Named {
    Month(i64),
    Weekday(i64),
    Duration(Duration),
}

/// A `time.Duration` as a template value.
fn duration(duration: Duration) -> Value {
    Value::Object(Rc::new(Named::Duration(duration)))
}

impl Named {
    const fn value(self) -> Int {
        match self {
            Self::Month(value) | Self::Weekday(value) => Int { kind: IntKind::Int, bits: value },
            Self::Duration(value) => Int { kind: IntKind::Int64, bits: value.0 },
        }
    }
}

impl Object for Named {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Month(_) => "time.Month",
            Self::Weekday(_) => "time.Weekday",
            Self::Duration(_) => "time.Duration",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Int(self.value().kind)
    }

    fn methods(&self) -> &'static [Method] {
        match self {
            Self::Duration(_) => DURATION_METHODS,
            _ => methods! { "String" () => |this, _| string_method(this), },
        }
    }

    fn string(&self) -> Option<Str> {
        Some(match self {
            Self::Month(month) => month_name(*month).into(),
            Self::Weekday(day) => weekday_name(*day).into(),
            Self::Duration(duration) => duration.to_string().into(),
        })
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::Int(self.value()))
    }

    fn to_json(&self) -> Option<Value> {
        self.underlying()
    }

    fn is_true(&self) -> bool {
        self.value().bits != 0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn string_method(this: &Value) -> Result<Value, CallError> {
    match this {
        Value::Object(object) => object.string().map(Value::String).ok_or_else(bad_receiver),
        _ => Err(bad_receiver()),
    }
}

static DURATION_METHODS: &[Method] = methods! {
    "Abs" () => |this, _| {
        // The most negative duration has no opposite and becomes the largest one.
        Ok(duration(Duration(integer(this)?.checked_abs().unwrap_or(i64::MAX))))
    },
    "Hours" () => |this, _| Ok(Value::Float(Duration(integer(this)?).in_units(3_600_000_000_000))),
    "Microseconds" () => |this, _| Ok(Value::int64(integer(this)? / 1_000)),
    "Milliseconds" () => |this, _| Ok(Value::int64(integer(this)? / 1_000_000)),
    "Minutes" () => |this, _| Ok(Value::Float(Duration(integer(this)?).in_units(60_000_000_000))),
    "Nanoseconds" () => |this, _| Ok(Value::int64(integer(this)?)),
    "Round" (DURATION) => |this, args| {
        Ok(duration(Duration(integer(this)?).round(Duration(integer(argument(args, 0)?)?))))
    },
    "Seconds" () => |this, _| Ok(Value::Float(Duration(integer(this)?).in_units(1_000_000_000))),
    "String" () => |this, _| string_method(this),
    "Truncate" (DURATION) => |this, args| {
        Ok(duration(Duration(integer(this)?).truncate(Duration(integer(argument(args, 0)?)?))))
    },
};
