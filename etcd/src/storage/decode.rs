//! A built-in kind's message as the object that JSON shows: `encoding/json` of the Go type that
//! `generated.pb.go` would have filled.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Limits, Map, Value};

use super::kinds::{Empty, Field, Type, table};
use crate::wire::{Message, Value as Wire, WireError};

/// Messages within messages. Only JSON schemas of CRDs nest, and these are not protobuf.
const MAX_DEPTH: usize = 64;
/// Values of raw JSON within a message.
const VALUES: usize = 1_000_000;

/// A message that does not read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// It is no protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A field has another form than its type.
    #[error("field {name} has another type")]
    Type {
        /// The field's name in JSON.
        name: &'static str,
    },
    /// A time that no calendar has.
    #[error("field {name} is no time")]
    Time {
        /// The field's name in JSON.
        name: &'static str,
    },
    /// JSON within the message does not read.
    #[error("field {name} is no JSON")]
    Json {
        /// The field's name in JSON.
        name: &'static str,
        /// What is wrong.
        source: goyaml::json::Error,
    },
    /// Messages within messages.
    #[error("is deeper than {limit} messages")]
    Depth {
        /// Messages allowed.
        limit: usize,
    },
}

/// Reads a message of the table.
pub(super) fn message(bytes: &[u8], number: usize) -> Result<Map, DecodeError> {
    read(bytes, number, 0)
}

/// Reads the first field of any kind's message, which is its metadata.
pub(super) fn head(bytes: &[u8]) -> Result<Map, DecodeError> {
    let mut object = Map::new();
    for field in Message::new(bytes) {
        if let (1, Wire::Bytes(metadata)) = field?
            && let Some(number) = table().metadata()
        {
            object.insert("metadata", Value::Map(read(metadata, number, 1)?));
            break;
        }
    }
    Ok(object)
}

fn read(bytes: &[u8], number: usize, depth: usize) -> Result<Map, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::Depth { limit: MAX_DEPTH });
    }
    let fields = table().fields(number);
    let mut found: Vec<Vec<Wire<'_>>> = vec![Vec::new(); fields.len()];
    for field in Message::new(bytes) {
        let (number, value) = field?;
        let place = fields.binary_search_by_key(&number, |field| field.number);
        if let Some(found) = place.ok().and_then(|place| found.get_mut(place)) {
            found.push(value);
        }
    }
    let mut object = Map::new();
    for (field, found) in fields.iter().zip(&found) {
        if field.name.is_empty() {
            object.extend(inline(field, found, depth)?);
        } else if let Some(value) = value_of(field, found, depth)? {
            object.insert(field.name, value);
        }
    }
    Ok(object)
}

/// The fields of a message that stand in its parent's JSON.
fn inline(field: &Field, found: &[Wire<'_>], depth: usize) -> Result<Map, DecodeError> {
    let (holds, is_pointer) = match &field.holds {
        Type::Pointer(below) => (&**below, true),
        holds => (holds, false),
    };
    match (holds, found.last()) {
        (Type::Message(number), Some(Wire::Bytes(bytes))) => read(bytes, *number, depth + 1),
        (Type::Message(number), None) if !is_pointer => read(&[], *number, depth + 1),
        _ => Ok(Map::new()),
    }
}

/// A field's value; `None` when JSON leaves the field out.
fn value_of(field: &Field, found: &[Wire<'_>], depth: usize) -> Result<Option<Value>, DecodeError> {
    let omits = field.empty != Empty::Kept;
    let value = match &field.holds {
        Type::Pointer(holds) => match found.last() {
            Some(wire) => one(field, holds, *wire, depth)?,
            None if omits => return Ok(None),
            None => Value::Null,
        },
        Type::List(_) | Type::Map(_) if found.is_empty() => {
            return Ok((!omits).then_some(Value::Null));
        }
        Type::List(holds) => Value::Seq(
            found.iter().map(|it| one(field, holds, *it, depth)).collect::<Result<_, _>>()?,
        ),
        Type::Map(holds) => {
            let mut map = Map::new();
            for entry in found {
                let (key, value) = entry_of(field, holds, *entry, depth)?;
                map.insert(key, value);
            }
            Value::Map(map)
        }
        holds => {
            let value = match found.last() {
                Some(wire) => one(field, holds, *wire, depth)?,
                None => zero(field, holds, depth)?,
            };
            if omits && is_empty(&value, holds, field.empty) {
                return Ok(None);
            }
            value
        }
    };
    Ok(Some(value))
}

/// Go's zero value, in JSON.
fn zero(field: &Field, holds: &Type, depth: usize) -> Result<Value, DecodeError> {
    Ok(match holds {
        Type::Text => Value::from(""),
        Type::Signed | Type::Unsigned => Value::from(0_i64),
        Type::Bool => Value::from(false),
        Type::Double | Type::Float => Value::from(0.0),
        Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::Raw
        | Type::Texts
        | Type::Pointer(_)
        | Type::List(_)
        | Type::Map(_) => Value::Null,
        Type::Duration | Type::Quantity | Type::IntOrString => {
            one(field, holds, Wire::Bytes(&[]), depth)?
        }
        Type::Message(number) => Value::Map(read(&[], *number, depth + 1)?),
    })
}

/// Whether Go leaves a value out that is no pointer, list or map. Structs are never empty to
/// `omitempty`, whatever they hold.
fn is_empty(value: &Value, holds: &Type, empty: Empty) -> bool {
    match holds {
        Type::Text | Type::Bytes => value.as_str().is_none_or(|text| text.is_empty()),
        Type::Signed | Type::Unsigned | Type::Double | Type::Float => value.as_f64() == Some(0.0),
        Type::Bool => value.as_bool() == Some(false),
        Type::Texts => value.as_seq().is_none_or(<[Value]>::is_empty),
        Type::Time | Type::MicroTime => empty == Empty::OmittedZero && value.is_null(),
        _ => false,
    }
}

/// A value of a type that is no pointer, list or map.
fn one(field: &Field, holds: &Type, wire: Wire<'_>, depth: usize) -> Result<Value, DecodeError> {
    let wrong = || DecodeError::Type { name: field.name };
    Ok(match (holds, wire) {
        (Type::Text, Wire::Bytes(bytes)) => {
            Value::from(String::from_utf8_lossy(bytes).into_owned())
        }
        (Type::Bytes, Wire::Bytes(bytes)) => Value::from(STANDARD.encode(bytes)),
        (Type::Signed, Wire::Varint(number)) => Value::from(number as i64),
        (Type::Unsigned, Wire::Varint(number)) => Value::from(number),
        (Type::Bool, Wire::Varint(number)) => Value::from(number != 0),
        (Type::Double, Wire::Fixed64(bits)) => Value::from(f64::from_bits(bits)),
        (Type::Float, Wire::Fixed32(bits)) => Value::from(f64::from(f32::from_bits(bits))),
        (Type::Time | Type::MicroTime, Wire::Bytes([])) => Value::Null,
        (Type::Time, Wire::Bytes(bytes)) => time(field, bytes, false)?,
        (Type::MicroTime, Wire::Bytes(bytes)) => time(field, bytes, true)?,
        (Type::Duration, Wire::Bytes(bytes)) => {
            Value::from(duration(number(bytes, 1)?.unwrap_or_default() as i64))
        }
        (Type::Quantity, Wire::Bytes(bytes)) => {
            let text = field_bytes(bytes, 1)?.unwrap_or(b"0");
            Value::from(String::from_utf8_lossy(text).into_owned())
        }
        // `IntOrString.MarshalJSON`: the kind of value is field 1, the number 2, the text 3.
        (Type::IntOrString, Wire::Bytes(bytes)) => {
            if number(bytes, 1)?.unwrap_or_default() == 0 {
                Value::from(i64::from(number(bytes, 2)?.unwrap_or_default() as i32))
            } else {
                let text = field_bytes(bytes, 3)?.unwrap_or_default();
                Value::from(String::from_utf8_lossy(text).into_owned())
            }
        }
        (Type::Raw, Wire::Bytes(bytes)) => match field_bytes(bytes, 1)? {
            Some(text) => {
                let limits = Limits { max_nodes: VALUES, ..Limits::default() };
                let name = field.name;
                goyaml::json::from_json_exact(text, &limits)
                    .map_err(|source| DecodeError::Json { name, source })?
            }
            None => Value::Null,
        },
        (Type::Texts, Wire::Bytes(bytes)) => {
            let mut texts = Vec::new();
            for item in Message::new(bytes) {
                if let (1, Wire::Bytes(text)) = item? {
                    texts.push(Value::from(String::from_utf8_lossy(text).into_owned()));
                }
            }
            Value::Seq(texts)
        }
        (Type::Message(number), Wire::Bytes(bytes)) => Value::Map(read(bytes, *number, depth + 1)?),
        // A list of lists, or a map of lists, is nothing that protobuf has.
        _ => return Err(wrong()),
    })
}

/// An entry of a map: key and value are fields 1 and 2.
fn entry_of(
    field: &Field,
    holds: &Type,
    entry: Wire<'_>,
    depth: usize,
) -> Result<(String, Value), DecodeError> {
    let bytes = entry.bytes().ok_or(DecodeError::Type { name: field.name })?;
    let (mut key, mut value) = (String::new(), None);
    for part in Message::new(bytes) {
        match part? {
            (1, Wire::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
            (2, wire) => value = Some(one(field, holds, wire, depth)?),
            _ => {}
        }
    }
    let value = match (value, holds) {
        (Some(value), _) => value,
        // The entry's value is made, not left nil, whatever the message says.
        (None, Type::Bytes) => Value::from(""),
        (None, _) => zero(field, holds, depth)?,
    };
    Ok((key, value))
}

fn number(bytes: &[u8], wanted: u64) -> Result<Option<u64>, DecodeError> {
    let mut found = None;
    for field in Message::new(bytes) {
        if let (number, Wire::Varint(value)) = field?
            && number == wanted
        {
            found = Some(value);
        }
    }
    Ok(found)
}

fn field_bytes(bytes: &[u8], wanted: u64) -> Result<Option<&[u8]>, DecodeError> {
    let mut found = None;
    for field in Message::new(bytes) {
        if let (number, Wire::Bytes(value)) = field?
            && number == wanted
        {
            found = Some(value);
        }
    }
    Ok(found)
}

/// `metav1.Time` and `MicroTime`: seconds in field 1, and nanoseconds in field 2, which the first
/// one leaves out.
fn time(field: &Field, bytes: &[u8], micro: bool) -> Result<Value, DecodeError> {
    let wrong = || DecodeError::Time { name: field.name };
    let seconds = number(bytes, 1)?.unwrap_or_default() as i64;
    let nanos = number(bytes, 2)?.unwrap_or_default() as i32;
    let time = jiff::Timestamp::new(seconds, 0).map_err(|_| wrong())?;
    let text = time.strftime("%Y-%m-%dT%H:%M:%S");
    if !micro {
        return Ok(Value::from(format!("{text}Z")));
    }
    let micros = u32::try_from(nanos).map_err(|_| wrong())? / 1000;
    Ok(Value::from(format!("{text}.{micros:06}Z")))
}

/// `time.Duration.String`.
fn duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let all = nanos.unsigned_abs();
    let fraction = |number: u64, unit: u64| {
        let (whole, rest) = (number / unit, number % unit);
        let digits = unit.ilog10() as usize;
        let text = format!("{whole}.{rest:0digits$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match all {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{all}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(all, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(all, 1_000_000)),
        _ => {
            let minutes = all / 60_000_000_000;
            let seconds = fraction(all % 60_000_000_000, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_as_go_prints_them() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (-1_100, "-1.1µs"),
            (2_200_000, "2.2ms"),
            (300_000_000, "300ms"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (5_025_500_000_000, "1h23m45.5s"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }
}
