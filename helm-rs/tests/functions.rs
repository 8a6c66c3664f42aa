//! The functions that Helm gives to templates, against outputs of real Helm.
//!
//! The files in `functions/` hold templates, each followed by a line `= output` or
//! `! error`, as Helm 3.21.4 printed it for the values of [`context`]. Bytes beyond printable
//! ASCII, and `~` itself, are written `~xx`. Lines that begin with `#` are comments.
//!
//! With `ICHOR_FUNCTION_CASES` naming a file, its cases are run instead, and every difference
//! is printed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

use std::fmt::Write as _;
use std::path::Path;

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

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(escaped) if byte == b'~' => {
                out.push(escaped);
                rest = &tail[2..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &byte in bytes {
        if (b' '..0x7f).contains(&byte) && byte != b'~' {
            out.push(char::from(byte));
        } else {
            write!(out, "~{byte:02x}").unwrap();
        }
    }
    out
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
            format!("= {}", escape(&text))
        }
        Err(error) if error.kind() == ErrorKind::Parse => {
            // Helm's `cleanupParseError`.
            let text = error.to_string();
            let parts: Vec<_> = text.split(": ").collect();
            format!(
                "! parse error at ({}): {}",
                parts[1],
                escape(parts[parts.len() - 1].as_bytes())
            )
        }
        Err(error) => format!("! {}", escape(error.text().as_bytes())),
    }
}

/// Template, expectation and line of each case of a file.
fn cases(path: &Path) -> Vec<(String, String, usize)> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    let mut cases = Vec::new();
    while let Some((number, template)) = lines.next() {
        if template.is_empty() {
            continue;
        }
        let (_, expected) = lines.next().unwrap_or_else(|| panic!("{number}: no expectation"));
        cases.push((template.to_owned(), expected.to_owned(), number + 1));
    }
    cases
}

#[test]
fn functions_give_what_helm_gives() {
    let functions = builtin_functions();
    let mut paths: Vec<_> = match std::env::var_os("ICHOR_FUNCTION_CASES") {
        Some(path) => vec![path.into()],
        None => std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/functions"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect(),
    };
    paths.sort();
    let (mut same, mut different) = (0, 0);
    for path in paths {
        for (template, expected, line) in cases(&path) {
            let found = render(&functions, &unescape(&template));
            if found == expected {
                same += 1;
                continue;
            }
            different += 1;
            println!("{}:{line}: {template}\n  helm {expected}\n  ours {found}", path.display());
        }
    }
    println!("{same} the same, {different} different");
    assert_eq!(different, 0);
}

#[test]
fn names_are_sorted_and_have_cases() {
    let names = builtin_names();
    assert!(names.is_sorted());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/functions");
    let mut headings = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
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
