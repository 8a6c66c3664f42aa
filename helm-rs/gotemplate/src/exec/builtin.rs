//! The functions that every template has (Go `text/template/funcs.go`).

use std::any::Any;

use super::compare;
use super::escape;
use crate::fmt;
use crate::function::{CallError, Function};
use crate::value::{Int, IntKind, Kind, List, Object, Str, Type, Value};

/// A builtin function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Html,
    Index,
    Slice,
    Js,
    Len,
    Not,
    Or,
    Print,
    Printf,
    Println,
    Urlquery,
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    Ne,
}

type Outcome = Result<Value, CallError>;

impl Builtin {
    /// The builtin of that name.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"and" => Self::And,
            b"call" => Self::Call,
            b"html" => Self::Html,
            b"index" => Self::Index,
            b"slice" => Self::Slice,
            b"js" => Self::Js,
            b"len" => Self::Len,
            b"not" => Self::Not,
            b"or" => Self::Or,
            b"print" => Self::Print,
            b"printf" => Self::Printf,
            b"println" => Self::Println,
            b"urlquery" => Self::Urlquery,
            b"eq" => Self::Eq,
            b"ge" => Self::Ge,
            b"gt" => Self::Gt,
            b"le" => Self::Le,
            b"lt" => Self::Lt,
            b"ne" => Self::Ne,
            _ => return None,
        })
    }

    /// Parameter types, and whether the last is variadic.
    pub(super) const fn signature(self) -> (&'static [Type], bool) {
        match self {
            Self::And | Self::Call | Self::Index | Self::Slice | Self::Or | Self::Eq => {
                (&[Type::Reflect, Type::Reflect], true)
            }
            Self::Html | Self::Js | Self::Print | Self::Println | Self::Urlquery => {
                (&[Type::Any], true)
            }
            Self::Printf => (&[Type::String, Type::Any], true),
            Self::Len | Self::Not => (&[Type::Reflect], false),
            Self::Ge | Self::Gt | Self::Le | Self::Lt | Self::Ne => {
                (&[Type::Reflect, Type::Reflect], false)
            }
        }
    }

    /// Calls it with checked arguments. Bit N of `wrapped` says that argument N is still
    /// inside an interface.
    pub(super) fn call(self, args: &[Value], wrapped: u64) -> Outcome {
        let (first, rest) = match args.split_first() {
            Some((first, rest)) => (first, rest),
            None => (&Value::Nil, args),
        };
        let second = rest.first().unwrap_or(&Value::Nil);
        Ok(match self {
            Self::Html => Value::string(escape::html(&printed(args))),
            Self::Js => Value::string(escape::js(&printed(args))),
            Self::Urlquery => Value::string(escape::url_query(&printed(args))),
            Self::Index => return index(first, rest),
            Self::Slice => return slice(first, rest, wrapped >> 1),
            Self::Len => return length(first, wrapped & 1 == 1),
            Self::Not => Value::Bool(!first.is_true()),
            Self::Print => Value::string(fmt::sprint(args)),
            Self::Println => Value::string(fmt::sprintln(args)),
            Self::Printf => match first {
                Value::String(format) => Value::string(fmt::sprintf(format.as_bytes(), rest)),
                _ => Value::string(""),
            },
            Self::Eq => Value::Bool(compare::equal_any(first, rest)?),
            Self::Ne => Value::Bool(!compare::equal(first, second)?),
            Self::Lt => Value::Bool(compare::less(first, second)?),
            Self::Le => Value::Bool(compare::less_or_equal(first, second)?),
            Self::Gt => Value::Bool(!compare::less_or_equal(first, second)?),
            Self::Ge => Value::Bool(!compare::less(first, second)?),
            // The machine handles these itself.
            Self::And | Self::Or | Self::Call => Value::Nil,
        })
    }
}

/// `evalArgs`: the arguments as one text.
fn printed(args: &[Value]) -> Vec<u8> {
    if let [Value::String(text)] = args {
        return text.as_bytes().to_vec();
    }
    let texts: Vec<Value> = args.iter().map(printable).collect();
    fmt::sprint(&texts)
}

/// `printableValue`: nil prints as no value, and pointers as what they point to.
fn printable(value: &Value) -> Value {
    match value {
        Value::Nil => "<no value>".into(),
        Value::Object(object) if object.kind() == Kind::Ptr => {
            let mut out = Vec::new();
            fmt::append_printable(&mut out, value);
            Value::Object(std::rc::Rc::new(Printed(out.into())))
        }
        _ => value.clone(),
    }
}

/// A text that does not count as a string when spaces are put between arguments.
struct Printed(Str);

impl Object for Printed {
    fn type_name(&self) -> &'static str {
        "struct {}"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn string(&self) -> Option<Str> {
        Some(self.0.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// `length`; `wrapped`: a nil is one inside an interface.
fn length(item: &Value, wrapped: bool) -> Outcome {
    let length = match item {
        Value::Nil if wrapped => return Err("len of nil pointer".into()),
        // What Go's reflection panics with.
        Value::Nil => {
            return Err("reflect: call of reflect.Value.Type on zero Value".into());
        }
        Value::String(text) | Value::Bytes(text) => text.len(),
        Value::List(list) => list.items().len(),
        Value::Map(map) => map.len(),
        Value::Object(object) if object.is_nil() => return Err("len of nil pointer".into()),
        _ => return Err(format!("len of type {}", pointed_type(item)).into()),
    };
    Ok(Value::int(length as i64))
}

/// The type of what the value points to.
fn pointed_type(value: &Value) -> &str {
    let name = value.type_name();
    match value {
        Value::Object(object) if object.kind() == Kind::Ptr => {
            name.strip_prefix('*').unwrap_or(name)
        }
        _ => name,
    }
}

/// `indexArg`: an index into something of this length, which itself is let through.
fn index_arg(index: &Value, length: usize) -> Result<usize, CallError> {
    match compare::plain(index).as_ref() {
        Value::Int(int) => {
            // Go converts unsigned values to int64.
            usize::try_from(int.bits)
                .ok()
                .filter(|&at| at <= length)
                .ok_or_else(|| format!("index out of range: {}", int.bits).into())
        }
        Value::Nil => Err("cannot index slice/array with nil".into()),
        _ => Err(format!("cannot index slice/array with type {}", index.type_name()).into()),
    }
}

/// `index`.
fn index(item: &Value, indexes: &[Value]) -> Outcome {
    if matches!(item, Value::Nil) {
        return Err("index of untyped nil".into());
    }
    let mut item = item.clone();
    for index in indexes {
        item = match &item {
            Value::Nil => return Err("index of nil pointer".into()),
            Value::Object(object) if object.is_nil() => {
                return Err("index of nil pointer".into());
            }
            Value::List(list) => {
                let at = index_arg(index, list.items().len())?;
                let item = list.items().get(at);
                item.ok_or("reflect: slice index out of range")?.clone()
            }
            Value::Bytes(bytes) => byte_at(bytes, index, "reflect: slice index out of range")?,
            Value::String(text) => byte_at(text, index, "reflect: string index out of range")?,
            Value::Map(map) => match index {
                Value::String(key) => {
                    map.get(key.as_bytes()).unwrap_or_else(|| Value::zero(map.ty().element))
                }
                Value::Nil => return Err("value is nil; should be of type string".into()),
                _ => {
                    let name = index.type_name();
                    return Err(format!("value has type {name}; should be string").into());
                }
            },
            _ => return Err(format!("can't index item of type {}", pointed_type(&item)).into()),
        };
    }
    Ok(item)
}

fn byte_at(bytes: &Str, index: &Value, past_end: &str) -> Outcome {
    let at = index_arg(index, bytes.len())?;
    let byte = bytes.as_bytes().get(at).ok_or(past_end)?;
    Ok(Value::sized(IntKind::Uint8, i64::from(*byte)))
}

/// `slice`. A slice has no room behind its items here, while Go's may have some.
/// Indexes inside an interface are refused, as Go forgets to look into those.
fn slice(item: &Value, indexes: &[Value], wrapped: u64) -> Outcome {
    let length = match item {
        Value::Nil => return Err("slice of untyped nil".into()),
        Value::Object(object) if object.is_nil() => return Err("slice of nil pointer".into()),
        _ if indexes.len() > 3 => {
            return Err(format!("too many slice indexes: {}", indexes.len()).into());
        }
        Value::String(_) if indexes.len() == 3 => {
            return Err("cannot 3-index slice a string".into());
        }
        Value::String(text) | Value::Bytes(text) => text.len(),
        Value::List(list) => list.items().len(),
        _ => return Err(format!("can't slice item of type {}", pointed_type(item)).into()),
    };
    let mut bounds = [0, length, length];
    for (at, (bound, index)) in bounds.iter_mut().zip(indexes).enumerate() {
        if wrapped >> at & 1 == 1 {
            return Err("cannot index slice/array with type interface {}".into());
        }
        *bound = index_arg(index, length)?;
    }
    let [start, end, limit] = bounds;
    if start > end {
        return Err(format!("invalid slice index: {start} > {end}").into());
    }
    if indexes.len() == 3 && end > limit {
        return Err(format!("invalid slice index: {end} > {limit}").into());
    }
    Ok(match item {
        Value::String(text) => {
            Value::String(Str::from(text.as_bytes().get(start..end).unwrap_or_default()))
        }
        Value::Bytes(bytes) => {
            Value::Bytes(Str::from(bytes.as_bytes().get(start..end).unwrap_or_default()))
        }
        Value::List(list) => {
            let items = list.items().get(start..end).unwrap_or_default();
            Value::List(List::new(list.ty(), items.to_vec()))
        }
        _ => Value::Nil,
    })
}

/// The function that `call` is given, and its arguments checked (`call`).
pub(super) fn callable(name: &[u8], values: &mut [Value]) -> Result<Function, CallError> {
    let Some((function, args)) = values.split_first_mut() else {
        return Err("call of nil".into());
    };
    let callee = match function {
        Value::Nil => return Err("call of nil".into()),
        Value::Object(object) => object.function(),
        _ => None,
    };
    let Some(callee) = callee else {
        let args = [Value::string(name), function.type_name().into()];
        return Err(CallError::new(fmt::sprintf(b"non-function %s of type %s", &args)));
    };
    let signature = callee.signature();
    let (wanted, count) = (signature.params.len(), args.len());
    let number = |value: usize| Value::int(value as i64);
    if signature.variadic && count + 1 < wanted {
        let args = [Value::string(name), number(count), number(wanted - 1)];
        let format = b"wrong number of args for %s: got %d want at least %d";
        return Err(CallError::new(fmt::sprintf(format, &args)));
    }
    if !signature.variadic && count != wanted {
        let args = [Value::string(name), number(count), number(wanted)];
        let format = b"wrong number of args for %s: got %d want %d";
        return Err(CallError::new(fmt::sprintf(format, &args)));
    }
    for (index, arg) in args.iter_mut().enumerate() {
        let last = wanted.saturating_sub(1);
        let ty = signature.params.get(index.min(last)).copied().unwrap_or(Type::Any);
        *arg = prepare_arg(arg, ty)
            .map_err(|error| CallError::new(format!("arg {index}: {}", error.message)))?;
    }
    Ok(callee)
}

/// `prepareArg`.
fn prepare_arg(value: &Value, ty: Type) -> Outcome {
    if matches!(value, Value::Nil) {
        if super::call::can_be_nil(ty) {
            return Ok(Value::zero(ty));
        }
        return Err(format!("value is nil; should be of type {}", ty.name()).into());
    }
    if let Some(value) = super::call::assign(value, ty) {
        return Ok(value);
    }
    if let (Value::Int(int), Type::Int(kind)) = (value, ty) {
        return Ok(Value::Int(Int { kind, bits: kind.wrap(int.bits) }));
    }
    Err(format!("value has type {}; should be {}", value.type_name(), ty.name()).into())
}

/// `reflect.Value.String`: the text of a string, else the type.
pub(super) fn reflect_string(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.as_bytes().to_vec(),
        Value::Nil => b"<invalid Value>".to_vec(),
        _ => format!("<{} Value>", value.type_name()).into_bytes(),
    }
}
