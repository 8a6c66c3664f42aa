//! Dates and durations (`sprig/date.go`).

mod objects;

use gotemplate::{CallError, Function, FunctionMap, IntKind, Runtime, Str, Value};

pub(crate) use objects::TimeObject;

use crate::render::host::Host;
use crate::render::time::{Duration, Time, Zone};

const DAY: &str = "2006-01-02";

/// Go's `time.Now`.
fn current(host: &mut Host) -> Time {
    let reading = host.now();
    Time::now(reading, host.local().clone())
}

fn now(runtime: &mut dyn Runtime) -> Result<TimeObject, CallError> {
    let host = Host::of(runtime)?;
    Ok(TimeObject::new(current(host), host.local().clone()))
}

/// The moment that a value means: a time, or seconds since 1970 as one of the given kinds
/// of integer; anything else is now.
fn moment(host: &mut Host, value: &Value, kinds: &[IntKind]) -> Time {
    if let Some(object) = TimeObject::of(value) {
        return object.time.clone();
    }
    match value {
        Value::Int(int) if kinds.contains(&int.kind) => {
            Time::unix(int.bits, 0, host.local().clone())
        }
        _ => current(host),
    }
}

fn in_zone(host: &mut Host, layout: &[u8], value: &Value, zone: &[u8]) -> Vec<u8> {
    let time = moment(host, value, &[IntKind::Int64, IntKind::Int, IntKind::Int32]);
    let zone = if zone == b"Local" {
        host.local().clone()
    } else {
        // What Go cannot load, sprig takes for UTC.
        let named = std::str::from_utf8(zone).ok().and_then(|name| Zone::named(name).ok());
        named.unwrap_or_else(Zone::utc)
    };
    time.in_zone(zone).format(layout)
}

type Text = Result<Vec<u8>, CallError>;

fn date(runtime: &mut dyn Runtime, layout: Str, value: Value) -> Text {
    Ok(in_zone(Host::of(runtime)?, layout.as_bytes(), &value, b"Local"))
}

fn date_in_zone(runtime: &mut dyn Runtime, layout: Str, value: Value, zone: Str) -> Text {
    Ok(in_zone(Host::of(runtime)?, layout.as_bytes(), &value, zone.as_bytes()))
}

fn html_date(runtime: &mut dyn Runtime, value: Value) -> Text {
    Ok(in_zone(Host::of(runtime)?, DAY.as_bytes(), &value, b"Local"))
}

fn html_date_in_zone(runtime: &mut dyn Runtime, value: Value, zone: Str) -> Text {
    Ok(in_zone(Host::of(runtime)?, DAY.as_bytes(), &value, zone.as_bytes()))
}

/// A text that is no duration leaves the time alone.
fn date_modify(change: Str, time: TimeObject) -> TimeObject {
    match Duration::parse(change.as_bytes()) {
        Ok(duration) => time.with(time.time.add(duration)),
        Err(_) => time,
    }
}

fn must_date_modify(change: Str, time: TimeObject) -> Result<TimeObject, CallError> {
    let duration = Duration::parse(change.as_bytes()).map_err(|e| CallError::new(e.to_string()))?;
    Ok(time.with(time.time.add(duration)))
}

/// How long ago a moment was, in whole seconds.
fn ago(runtime: &mut dyn Runtime, value: Value) -> Result<String, CallError> {
    let host = Host::of(runtime)?;
    let time = moment(host, &value, &[IntKind::Int64, IntKind::Int]);
    let elapsed = current(host).since(&time);
    Ok(elapsed.round(Duration::seconds(1)).to_string())
}

/// Seconds, as a string or an `int64`, as a duration. Anything else is none, an `int`
/// included.
fn duration(value: Value) -> String {
    let seconds = match &value {
        Value::String(text) => parse_int(text.as_bytes()),
        Value::Int(int) if int.kind == IntKind::Int64 => int.bits,
        _ => 0,
    };
    Duration::seconds(seconds).to_string()
}

/// Go's `strconv.ParseInt` with its error dropped: 0 for what is no number, the nearest
/// one for what is out of range.
fn parse_int(text: &[u8]) -> i64 {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let magnitude = digits.iter().fold(0_i128, |value, digit| {
        (value * 10 + i128::from(digit - b'0')).min(i128::from(u64::MAX))
    });
    let value = if negative { -magnitude } else { magnitude };
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A duration in its largest unit, rounded down: `2h`, `3mo`.
fn duration_round(runtime: &mut dyn Runtime, value: Value) -> Result<String, CallError> {
    let nanoseconds = match &value {
        Value::String(text) => Duration::parse(text.as_bytes()).map_or(0, |duration| duration.0),
        Value::Int(int) if int.kind == IntKind::Int64 => int.bits,
        _ => match TimeObject::of(&value) {
            Some(object) => current(Host::of(runtime)?).since(&object.time).0,
            None => 0,
        },
    };
    let value = nanoseconds.unsigned_abs();
    let second = 1_000_000_000;
    let units = [
        (365 * 24 * 3600 * second, "y"),
        (30 * 24 * 3600 * second, "mo"),
        (24 * 3600 * second, "d"),
        (3600 * second, "h"),
        (60 * second, "m"),
        (second, "s"),
    ];
    let unit = units.iter().find(|(unit, _)| value > *unit);
    Ok(unit.map_or_else(|| "0s".to_owned(), |(unit, sign)| format!("{}{sign}", value / unit)))
}

/// The zero time for what does not fit the layout.
fn to_date(runtime: &mut dyn Runtime, layout: Str, text: Str) -> Result<TimeObject, CallError> {
    let local = Host::of(runtime)?.local().clone();
    let time = Time::parse(layout.as_bytes(), text.as_bytes(), &local);
    Ok(TimeObject::new(time.unwrap_or_else(|_| Time::zero()), local))
}

fn must_to_date(
    runtime: &mut dyn Runtime,
    layout: Str,
    text: Str,
) -> Result<TimeObject, CallError> {
    let local = Host::of(runtime)?.local().clone();
    match Time::parse(layout.as_bytes(), text.as_bytes(), &local) {
        Ok(time) => Ok(TimeObject::new(time, local)),
        Err(error) => Err(CallError::new(error.to_string())),
    }
}

fn unix_epoch(time: TimeObject) -> String {
    time.time.unix_seconds().to_string()
}

pub(super) fn register(functions: &mut FunctionMap) {
    functions.extend([
        ("ago", Function::new(ago)),
        ("date", Function::new(date)),
        ("dateInZone", Function::new(date_in_zone)),
        ("dateModify", Function::new(date_modify)),
        ("date_in_zone", Function::new(date_in_zone)),
        ("date_modify", Function::new(date_modify)),
        ("duration", Function::new(duration)),
        ("durationRound", Function::new(duration_round)),
        ("htmlDate", Function::new(html_date)),
        ("htmlDateInZone", Function::new(html_date_in_zone)),
        ("mustDateModify", Function::new(must_date_modify)),
        ("mustToDate", Function::new(must_to_date)),
        ("must_date_modify", Function::new(must_date_modify)),
        ("now", Function::new(now)),
        ("toDate", Function::new(to_date)),
        ("unixEpoch", Function::new(unix_epoch)),
    ]);
}
