//! Host types with fields and methods, as the oracle has them.

use std::any::Any;
use std::rc::Rc;

use gotemplate::value::{IntKind, MapType};
use gotemplate::{CallError, Kind, Method, Object, Str, Type, Value};

type Maker = fn() -> Value;

/// The words for objects in the notation.
pub(crate) const NAMES: [(&str, Maker); 3] =
    [("obj()", obj), ("nilobj()", nil_obj), ("named()", named)];

fn obj() -> Value {
    Value::Object(Rc::new(Obj { nil: false }))
}

fn nil_obj() -> Value {
    Value::Object(Rc::new(Obj { nil: true }))
}

fn named() -> Value {
    Value::Object(Rc::new(Named))
}

/// A pointer to a struct, or a nil one.
struct Obj {
    nil: bool,
}

type Outcome = Result<Value, CallError>;

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.to_text().into_owned(),
        _ => String::new(),
    }
}

fn not_nil(receiver: &Value) -> Result<(), CallError> {
    match receiver {
        Value::Object(object) if object.is_nil() => {
            Err("runtime error: invalid memory address or nil pointer dereference".into())
        }
        _ => Ok(()),
    }
}

static OBJ_METHODS: [Method; 6] = [
    Method { name: "Fail", params: &[], variadic: false, call: |_, _| Err("obj failed".into()) },
    Method {
        name: "Greet",
        params: &[Type::String, Type::Int(IntKind::Int)],
        variadic: false,
        call: |receiver, args| -> Outcome {
            not_nil(receiver)?;
            let Some(Value::Int(times)) = args.get(1) else { return Err("times".into()) };
            let Ok(times) = usize::try_from(times.bits) else {
                return Err("strings: negative Repeat count".into());
            };
            Ok(format!("{} o;", text(args.first())).repeat(times).into())
        },
    },
    Method {
        name: "Hello",
        params: &[],
        variadic: false,
        call: |receiver, _| not_nil(receiver).map(|()| "hello o".into()),
    },
    Method {
        name: "Join",
        params: &[Type::String, Type::String],
        variadic: true,
        call: |_, args| {
            let separator = text(args.first());
            let parts: Vec<String> = args.iter().skip(1).map(|arg| text(Some(arg))).collect();
            Ok(parts.join(&separator).into())
        },
    },
    Method { name: "Panics", params: &[], variadic: false, call: |_, _| Err("obj panics".into()) },
    Method { name: "Self", params: &[], variadic: false, call: |receiver, _| Ok(receiver.clone()) },
];

impl Object for Obj {
    fn type_name(&self) -> &'static str {
        "*main.Obj"
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        if self.nil {
            return None;
        }
        self.fields().into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Name", "o".into()),
            ("Num", Value::int(3)),
            ("List", Value::list(vec![Value::int(1), "x".into()])),
            ("Map", Value::map([("k", Value::from("v"))])),
            ("hid", Value::int(0)),
        ]
    }

    fn methods(&self) -> &'static [Method] {
        &OBJ_METHODS
    }

    fn is_nil(&self) -> bool {
        self.nil
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A pointer to a struct with a text of its own.
struct Named;

impl Object for Named {
    fn type_name(&self) -> &'static str {
        "*main.Named"
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        (name == "Text").then(|| "t".into())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Text", "t".into())]
    }

    fn methods(&self) -> &'static [Method] {
        static METHODS: [Method; 1] = [Method {
            name: "String",
            params: &[],
            variadic: false,
            call: |_, _| Ok("named:t".into()),
        }];
        &METHODS
    }

    fn string(&self) -> Option<Str> {
        Some("named:t".into())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A named map type with methods.
pub(crate) static VALUES: MapType =
    MapType { name: "main.Values", element: Type::Any, methods: &VALUES_METHODS };

static VALUES_METHODS: [Method; 3] = [
    Method {
        name: "Both",
        params: &[Type::String, Type::String],
        variadic: false,
        call: |_, args| {
            let parts = args.iter().map(|arg| text(Some(arg)));
            Ok(Value::List(gotemplate::List::strings(parts)))
        },
    },
    Method {
        name: "Fetch",
        params: &[Type::String],
        variadic: false,
        call: |receiver, args| -> Outcome {
            let (Value::Map(map), Some(Value::String(key))) = (receiver, args.first()) else {
                return Err("receiver".into());
            };
            map.get(key.as_bytes()).ok_or_else(|| {
                let args = [Value::String(key.clone())];
                CallError::new(gotemplate::fmt::sprintf(b"no %q", &args))
            })
        },
    },
    Method {
        name: "Size",
        params: &[],
        variadic: false,
        call: |receiver, _| match receiver {
            Value::Map(map) => Ok(Value::int(map.len() as i64)),
            _ => Err("receiver".into()),
        },
    },
];
