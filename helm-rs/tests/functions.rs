//! The functions that Helm gives to templates, against outputs of real Helm.
//!
//! The files in `functions/` are [`common`] case files; the templates ran with the values of
//! [`context`].
//!
//! With `ICHOR_FUNCTION_CASES` naming a file, its cases are run instead, and every difference
//! is printed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

mod common;

use gotemplate::value::{LIST_ANY, LIST_INT, LIST_STRING, MAP_ANY, MAP_STRING, MapType};
use gotemplate::{
    ErrorKind, FunctionMap, IntKind, List, Map, MissingKey, Options, Set, Type, Value,
};
use helm_rs::render::functions::{builtin_functions, builtin_names};

static VALUES: MapType = MapType { name: "chartutil.Values", element: Type::Any, methods: &[] };

fn values<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Map(Map::new(&VALUES, entries.map(|(key, value)| (key.into(), value)).into()))
}

/// Some of everything that a template can meet.
fn context() -> Value {
    let nested = || {
        Value::map([
            ("a", 1.0.into()),
            (
                "b",
                Value::map([
                    ("c", "x".into()),
                    ("d", Value::list([1.0.into(), "two".into(), Value::Nil])),
                ]),
            ),
            ("e", "".into()),
            ("n", Value::Nil),
            ("t", true.into()),
            ("z", 0.0.into()),
        ])
    };
    let mixed = Value::list([
        "b".into(),
        Value::Nil,
        3.0.into(),
        "a".into(),
        Value::list(["x".into()]),
        Value::map([("k", "v".into())]),
        true.into(),
        "".into(),
    ]);
    let texts = Map::new(&MAP_STRING, [("k".into(), "v".into()), ("e".into(), "".into())].into());
    let deep = Value::map([("a", Value::map([("b", Value::map([("c", 1.5.into())]))]))]);
    let release = Value::map([
        ("bytes", Value::Bytes((&b"hi\xff"[..]).into())),
        ("nobytes", Value::Bytes("".into())),
        ("u8", Value::sized(IntKind::Uint8, 200)),
        ("u64", Value::sized(IntKind::Uint64, -1)),
        ("i8", Value::sized(IntKind::Int8, -5)),
        ("i32", Value::sized(IntKind::Int32, 70_000)),
        ("u", Value::sized(IntKind::Uint, 7)),
        ("i64", Value::int64(-9)),
        ("up", Value::sized(IntKind::Uintptr, 5)),
        ("nan", f64::NAN.into()),
        ("inf", f64::INFINITY.into()),
        ("ninf", f64::NEG_INFINITY.into()),
        ("mz", (-0.0).into()),
        ("nil", Value::Nil),
        ("m", nested()),
        ("m2", nested()),
        ("vals", values([("a", 1.0.into()), ("sub", values([("x", "y".into())]))])),
        ("strs", List::strings(["b", "a", "", "c"]).into()),
        ("ints", List::new(&LIST_INT, [3, 1, 2].map(Value::int)).into()),
        ("floats", 1_234_567.0.into()),
        ("ss", texts.into()),
        ("l", mixed),
        ("nils", List::nil(&LIST_ANY).into()),
        ("nilm", Map::nil(&MAP_ANY).into()),
        ("nilss", List::nil(&LIST_STRING).into()),
        ("yl", Value::list([1.0.into(), 2.0.into(), 3.0.into()])),
        ("deep", deep),
    ]);
    let values = values([("a", 1.0.into()), ("sub", Value::map([("x", "y".into())]))]);
    // The dot of a template that Helm runs itself is of the named type.
    self::values([("Release", release), ("Values", values)])
}

/// What Helm would print for the template, in the form of the case files.
fn render(functions: &FunctionMap, template: &[u8]) -> String {
    let mut set = Set::new("gotpl", functions.clone())
        .with_options(Options { missing_key: MissingKey::Zero, ..Options::default() });
    let mut out = Vec::new();
    let result =
        set.parse("c/t", template).and_then(|()| set.execute("c/t", &context(), &mut (), &mut out));
    match result {
        Ok(()) => {
            let text = bstr::ByteSlice::replace(out.as_slice(), "<no value>", "");
            common::outcome(Ok(&text))
        }
        Err(error) if error.kind() == ErrorKind::Parse => {
            // Helm's `cleanupParseError`.
            let text = error.to_string();
            let parts: Vec<_> = text.split(": ").collect();
            let (place, problem) = (parts[1], parts[parts.len() - 1]);
            common::outcome(Err(format!("parse error at ({place}): {problem}").as_bytes()))
        }
        Err(error) => common::outcome(Err(error.text().as_bytes())),
    }
}

#[test]
fn functions_give_what_helm_gives() {
    let functions = builtin_functions();
    let files = match std::env::var_os("ICHOR_FUNCTION_CASES") {
        Some(file) => vec![file.into()],
        None => common::files("functions"),
    };
    let count = common::check(&files, |template| render(&functions, template));
    println!("{count} cases");
}

#[test]
fn names_are_sorted_and_have_cases() {
    let names = builtin_names();
    assert!(names.is_sorted());
    let mut headings = 0;
    for file in common::files("functions") {
        let text = std::fs::read_to_string(file).unwrap();
        // A comment of one word names the function that the cases below it call.
        for name in text.lines().filter_map(|line| line.strip_prefix("# ")) {
            if !name.contains(' ') {
                assert!(names.binary_search(&name).is_ok(), "{name}");
                headings += 1;
            }
        }
    }
    assert!(headings > 150, "{headings}");
}
