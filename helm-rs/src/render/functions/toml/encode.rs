//! Writing (`encode.go`).

use gotemplate::strconv::{FloatFormat, format_float};
use gotemplate::{CallError, Kind, List, Object, Value};

use super::keys::{escape, part, whole};
use crate::render::functions::dates::TimeObject;
use crate::render::functions::limits::check_depth;
use crate::render::time::Zone;

/// Why a value cannot be written.
pub(super) enum Failure {
    /// What the package returns as an error.
    Error(Vec<u8>),
    /// What it panics with, or a limit.
    Panic(CallError),
}

type Done = Result<(), Failure>;

fn fail(message: &str) -> Failure {
    Failure::Error(message.as_bytes().to_vec())
}

const NIL_ELEMENT: &str = "toml: cannot encode array with nil element";
const NO_KEY: &str = "toml: top-level values must be Go maps or structs";

/// What a value is for TOML, as far as the layout depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Nil,
    Plain,
    Table,
    Tables,
}

impl Shape {
    fn is_table(self) -> bool {
        matches!(self, Self::Table | Self::Tables)
    }
}

/// Whether a Go type writes itself as text.
fn is_marshaler(object: &dyn Object) -> bool {
    object.methods().iter().any(|method| method.name == "MarshalText")
}

fn shape(value: &Value, depth: usize) -> Result<Shape, Failure> {
    check_depth(depth).map_err(Failure::Panic)?;
    Ok(match value {
        Value::Nil => Shape::Nil,
        Value::Map(map) if map.is_nil() => Shape::Nil,
        Value::List(list) if list.is_nil() => Shape::Nil,
        Value::Map(_) => Shape::Table,
        Value::List(list) => {
            let mut tables = !list.items().is_empty();
            for item in list.items() {
                match shape(item, depth + 1)? {
                    Shape::Nil => return Err(fail(NIL_ELEMENT)),
                    Shape::Table => {}
                    _ => tables = false,
                }
            }
            if tables { Shape::Tables } else { Shape::Plain }
        }
        Value::Object(object) => match object.kind() {
            Kind::Struct | Kind::Ptr if !is_marshaler(object.as_ref()) => Shape::Table,
            _ => Shape::Plain,
        },
        _ => Shape::Plain,
    })
}

struct Encoder {
    out: Vec<u8>,
}

/// The document for a value.
pub(super) fn encode(value: &Value) -> Result<Vec<u8>, Failure> {
    if matches!(value, Value::Nil) {
        return Err(Failure::Panic(CallError::from(
            "reflect: call of reflect.Value.Type on zero Value",
        )));
    }
    let mut encoder = Encoder { out: Vec::new() };
    encoder.encode(&mut Vec::new(), value, 0)?;
    Ok(encoder.out)
}

/// The entries of a table in order: keys of a map sorted, fields of a struct as declared.
fn entries(value: &Value) -> Vec<(Vec<u8>, Value)> {
    match value {
        Value::Map(map) => {
            map.entries().iter().map(|(key, value)| (key.to_vec(), value.clone())).collect()
        }
        Value::Object(object) => object
            .fields()
            .into_iter()
            .map(|(name, value)| (name.as_bytes().to_vec(), value))
            .collect(),
        _ => Vec::new(),
    }
}

impl Encoder {
    fn write(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b'\n');
        }
    }

    fn indent(&mut self, key: &[Vec<u8>]) {
        for _ in 1..key.len() {
            self.write("  ");
        }
    }

    fn encode(&mut self, key: &mut Vec<Vec<u8>>, value: &Value, depth: usize) -> Done {
        match value {
            Value::Map(_) => match shape(value, depth)? {
                Shape::Nil => Ok(()),
                _ => self.table(key, value, depth),
            },
            Value::List(list) => match shape(value, depth)? {
                Shape::Tables => self.tables(key, list, depth),
                _ => self.key_value(key, value, false, depth),
            },
            Value::Object(object)
                if matches!(object.kind(), Kind::Struct | Kind::Ptr)
                    && !is_marshaler(object.as_ref()) =>
            {
                self.table(key, value, depth)
            }
            Value::Nil => Ok(()),
            _ => self.key_value(key, value, false, depth),
        }
    }

    fn tables(&mut self, key: &mut Vec<Vec<u8>>, list: &List, depth: usize) -> Done {
        if key.is_empty() {
            return Err(fail(NO_KEY));
        }
        for item in list.items() {
            self.newline();
            self.indent(key);
            self.write("[[");
            self.write(whole(key));
            self.write("]]");
            self.newline();
            self.contents(key, item, false, depth + 1)?;
        }
        Ok(())
    }

    fn table(&mut self, key: &mut Vec<Vec<u8>>, value: &Value, depth: usize) -> Done {
        if key.len() == 1 {
            self.newline();
        }
        if !key.is_empty() {
            self.indent(key);
            self.write("[");
            self.write(whole(key));
            self.write("]");
            self.newline();
        }
        self.contents(key, value, false, depth)
    }

    /// A table's entries: first those that are no tables themselves.
    fn contents(
        &mut self,
        key: &mut Vec<Vec<u8>>,
        table: &Value,
        inline: bool,
        depth: usize,
    ) -> Done {
        check_depth(depth).map_err(Failure::Panic)?;
        let is_struct = matches!(table, Value::Object(_));
        let (mut direct, mut nested) = (Vec::new(), Vec::new());
        for (name, value) in entries(table) {
            let shape = shape(&value, depth)?;
            let group = if shape.is_table() { &mut nested } else { &mut direct };
            group.push((name, value, shape));
        }
        let total = direct.len() + nested.len();
        if inline {
            self.write("{");
        }
        let more = !nested.is_empty();
        let mut written = 0;
        for (group, more) in [(direct, more), (nested, false)] {
            let last = group.len();
            for (i, (name, value, shape)) in group.into_iter().enumerate() {
                written += 1;
                if shape == Shape::Nil {
                    continue;
                }
                if !inline {
                    key.push(name);
                    let done = self.encode(key, &value, depth + 1);
                    key.pop();
                    done?;
                    continue;
                }
                self.key_value(&[name], &value, true, depth + 1)?;
                // A nil entry that follows leaves the comma behind, as in Go.
                let comma = if is_struct { written < total } else { more || i + 1 < last };
                if comma {
                    self.write(", ");
                }
            }
        }
        if inline {
            self.write("}");
        }
        Ok(())
    }

    fn key_value(&mut self, key: &[Vec<u8>], value: &Value, inline: bool, depth: usize) -> Done {
        let Some(last) = key.last() else { return self.element(value, depth) };
        self.indent(key);
        self.write(part(last));
        self.write(" = ");
        self.element(value, depth)?;
        if !inline {
            self.newline();
        }
        Ok(())
    }

    fn quoted(&mut self, text: &[u8]) {
        self.write("\"");
        self.write(escape(text));
        self.write("\"");
    }

    fn element(&mut self, value: &Value, depth: usize) -> Done {
        check_depth(depth).map_err(Failure::Panic)?;
        match value {
            Value::Nil => return Err(fail(NIL_ELEMENT)),
            Value::Bool(value) => self.write(value.to_string()),
            Value::Int(int) => self.write(int.to_i128().to_string()),
            Value::Float(value) => self.write(float(*value)),
            Value::String(text) => self.quoted(text.as_bytes()),
            Value::Bytes(bytes) => {
                let numbers: Vec<String> =
                    bytes.as_bytes().iter().map(ToString::to_string).collect();
                self.write(format!("[{}]", numbers.join(", ")));
            }
            Value::List(list) => {
                self.write("[");
                for (i, item) in list.items().iter().enumerate() {
                    if i > 0 {
                        self.write(", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.write("]");
            }
            Value::Map(_) => self.contents(&mut Vec::new(), value, true, depth)?,
            Value::Object(object) => {
                if let Some(time) = TimeObject::of(value) {
                    self.time(time);
                } else if is_marshaler(object.as_ref()) || object.type_name() == "time.Duration" {
                    let text = object.string().unwrap_or_default();
                    self.quoted(text.as_bytes());
                } else if let Some(plain) = object.underlying() {
                    self.element(&plain, depth + 1)?;
                } else {
                    self.contents(&mut Vec::new(), value, true, depth)?;
                }
            }
        }
        Ok(())
    }

    fn time(&mut self, object: &TimeObject) {
        let time = &object.time;
        let (layout, zone) = match time.zone().name() {
            super::DATE_TIME => ("2006-01-02T15:04:05.999999999", Some(Zone::utc())),
            super::DATE => ("2006-01-02", Some(Zone::utc())),
            super::TIME => ("15:04:05.999999999", Some(Zone::utc())),
            _ => ("2006-01-02T15:04:05.999999999Z07:00", None),
        };
        let text = match zone {
            Some(zone) => time.in_zone(zone).format(layout),
            None => time.format(layout),
        };
        self.write(text);
    }
}

/// A float always has a point or an exponent.
fn float(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() {
        return format!("{sign}nan");
    }
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let text = format_float(value, FloatFormat::General { upper: false }, None);
    if text.contains(['e', '.']) { text } else { text + ".0" }
}
