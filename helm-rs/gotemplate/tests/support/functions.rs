//! The functions that the oracle gives its templates.

use std::any::Any;
use std::rc::Rc;

use gotemplate::function::{Int64, Rest, Strings};
use gotemplate::value::{Entries, IntKind, MAP_ANY, MAP_STRING};
use gotemplate::{
    CallError, Function, FunctionMap, Kind, List, Map, Object, Runtime, Signature, Str, TextError,
    Type, Value, fmt,
};

/// All of them.
pub(crate) fn functions() -> FunctionMap {
    FunctionMap::from([
        ("add", Function::new(|a: i64, b: i64| a.wrapping_add(b))),
        ("up", Function::new(|text: Str| upper(&text))),
        ("echo", Function::new(|value: Value| value)),
        ("strs", Function::new(|parts: Rest<Str>| join(b"+", &parts.0))),
        ("join2", Function::new(|by: Str, parts: Rest<Str>| join(by.as_bytes(), &parts.0))),
        ("list", Function::new(|items: Rest<Value>| List::any(items.0))),
        ("strlist", Function::new(|items: Rest<Str>| Strings(List::strings(items.0)))),
        ("dict", Function::new(dict)),
        ("msize", Function::new(|map: Map| map.len() as i64)),
        ("lsize", Function::new(|list: List| list.items().len() as i64)),
        ("ssize", Function::new(|list: Strings| list.0.items().len() as i64)),
        ("half", Function::new(|value: f64| value / 2.0)),
        ("neg", Function::new(|value: Int64| Int64(value.0.wrapping_neg()))),
        ("byte", same(IntKind::Uint8)),
        ("i8", same(IntKind::Int8)),
        ("yes", Function::new(|flag: bool| if flag { "yes" } else { "no" })),
        ("fail", Function::new(|text: Str| Err::<Str, _>(CallError::new(text)))),
        ("boom", Function::new(|| Err::<Str, CallError>("boom!".into()))),
        ("nilfn", Function::new(|| Value::Nil)),
        ("three", Function::new(|| 3i64)),
        ("mss", Function::new(map_of_strings)),
        ("set", set()),
        ("typeOf", Function::new(|value: Value| value.type_name().to_owned())),
        ("getfn", Function::new(|| callable(false))),
        ("getvfn", Function::new(|| callable(true))),
        ("include", Function::new(include)),
        ("tpl", Function::new(tpl)),
    ])
}

fn upper(text: &Str) -> Str {
    // As `strings.ToUpper`: invalid bytes become the replacement character unless the text
    // is ASCII or needs no change at all.
    use bstr::ByteSlice as _;
    if text.as_bytes().is_ascii() {
        return Str::from(text.as_bytes().to_ascii_uppercase());
    }
    let mut out = Vec::new();
    for chunk in text.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut upper = c.to_uppercase();
            // Go maps one character to one.
            let c = if upper.len() == 1 { upper.next().unwrap_or(c) } else { c };
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        for _ in chunk.invalid() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    let _ = out.as_bstr();
    Str::from(out)
}

fn join(separator: &[u8], parts: &[Str]) -> Str {
    let parts: Vec<&[u8]> = parts.iter().map(Str::as_bytes).collect();
    Str::from(parts.join(separator))
}

fn dict(items: Rest<Value>) -> Map {
    let mut entries = Entries::new();
    for pair in items.0.chunks_exact(2) {
        entries.insert(fmt::to_string(&pair[0]), pair[1].clone());
    }
    Map::any(entries)
}

fn map_of_strings() -> Map {
    let entries = [("a", "b"), ("c", "d")].map(|(k, v)| (Str::from(k), Value::from(v)));
    Map::new(&MAP_STRING, entries.into_iter().collect())
}

/// A nil map is nil among the arguments, and writing to it fails as in Go.
fn set() -> Function {
    let params = vec![Type::Map(&MAP_ANY), Type::String, Type::Any];
    Function::with_signature(Signature { params, variadic: false }, |_, args| match args {
        [Value::Map(map), Value::String(key), value] if !map.is_nil() => {
            map.set(key.clone(), value.clone());
            Ok(args[0].clone())
        }
        _ => Err("assignment to entry in nil map".into()),
    })
}

fn same(kind: IntKind) -> Function {
    let signature = Signature { params: vec![Type::Int(kind)], variadic: false };
    Function::with_signature(signature, |_, args| Ok(args[0].clone()))
}

fn include(runtime: &mut dyn Runtime, name: Str, data: Value) -> Result<Str, CallError> {
    runtime.execute(&name, data)
}

fn tpl(runtime: &mut dyn Runtime, text: Str, data: Value) -> Result<Str, CallError> {
    let name = runtime.root_name();
    runtime.execute_text(&name, &text, data).map_err(|error| {
        let (format, message): (&[u8], _) = match error {
            TextError::Parse(message) => (b"cannot parse template %q: %s", message),
            TextError::Execute(message) => {
                (b"error during tpl function execution for %q: %s", message)
            }
        };
        CallError::new(fmt::sprintf(format, &[text.into(), message.into()]))
    })
}

/// A value that `call` can call: `func(int, string) string`.
struct Callable {
    variadic: bool,
}

fn callable(variadic: bool) -> Value {
    Value::Object(Rc::new(Callable { variadic }))
}

impl Object for Callable {
    fn type_name(&self) -> &str {
        if self.variadic { "func(int, ...string) string" } else { "func(int, string) string" }
    }

    fn kind(&self) -> Kind {
        Kind::Func
    }

    fn function(&self) -> Option<Function> {
        Some(if self.variadic {
            Function::new(|number: i64, texts: Rest<Str>| {
                let texts = Value::List(List::strings(texts.0));
                fmt::sprint(&[Value::int(number), texts])
            })
        } else {
            Function::new(|number: i64, text: Str| {
                fmt::sprint(&[Value::int(number), Value::String(text)])
            })
        })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
