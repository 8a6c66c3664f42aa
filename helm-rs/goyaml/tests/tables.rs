//! Tables of inputs with what Go 1.26.8 and the packages of Helm 3.21.4 make of them.
//!
//! Columns are separated by tabs; a result is `=` and a text or `!` and an error. Bytes outside of
//! a few printable characters are escaped.
//!
//! - `decode.tsv`: input, what `sigs.k8s.io/yaml` reads with numbers kept; then, where they differ
//!   from it, `floats` (plain `Unmarshal`), `strict`, `map`, `seq`
//! - `encode.tsv`: a value (`json:`, `bytes:`, `float:`), `toYaml`, `toYamlPretty`, JSON, JSON
//!   without HTML escapes
//! - `json.tsv`: input, what `json.Unmarshal` reads; then, where they differ, `prefix` (a stream
//!   decoder, with the bytes it took), `map` and what it left (`partial`), `seq`
//!
//! Inputs for which Go's answer changes from run to run are left out.

#![expect(clippy::expect_used, reason = "helpers of tests may panic as tests do")]

use std::fmt::Write as _;
use std::path::Path;

use goyaml::{Error, Limits, Value, json};

/// The rows of a table.
fn rows(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tables").join(name);
    let text = std::fs::read_to_string(&path).expect("table");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// A result as the tables write it.
fn written<E: std::fmt::Display>(result: Result<String, E>) -> String {
    match result {
        Ok(text) => format!("={}", escape(text.as_bytes())),
        Err(error) => format!("!{}", escape(error.to_string().as_bytes())),
    }
}

fn as_json<E>(result: Result<Value, E>) -> Result<String, E> {
    result.map(|value| json::to_json(&value).expect("JSON of what was read"))
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '\t' => text.push_str("\\t"),
                '\r' => text.push_str("\\r"),
                '\\' => text.push_str("\\\\"),
                ' '..='~' | 'é' | '日' | '本' | '語' | '😀' => text.push(c),
                _ => c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| escape_byte(&mut text, b)),
            }
        }
        chunk.invalid().iter().for_each(|&b| escape_byte(&mut text, b));
    }
    text
}

fn escape_byte(text: &mut String, byte: u8) {
    write!(text, "\\x{byte:02x}").expect("write");
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        let mut length = 1;
        match escaped.as_bytes().first() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'x') => {
                length = 3;
                let digits = escaped.get(1..3).expect("two digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal digits"));
            }
            _ => bytes.push(b'\\'),
        }
        rest = &escaped[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Collects differences, so that one run shows all of them.
#[derive(Default)]
struct Differences {
    compared: usize,
    text: String,
}

impl Differences {
    fn check(&mut self, input: &str, what: &str, ours: &str, go: &str) {
        self.compared += 1;
        if ours != go {
            writeln!(self.text, "{what} of {input}\n  Go   {go}\n  ours {ours}").expect("write");
        }
    }

    fn finish(self, at_least: usize) {
        assert!(self.text.is_empty(), "{}", self.text);
        assert!(self.compared >= at_least, "only {} compared", self.compared);
    }
}

/// The columns behind the first result, each a name and a result.
fn named<'r>(row: &'r [String], name: &str) -> Option<&'r str> {
    row.iter().skip(2).find_map(|column| {
        column.strip_prefix(name).filter(|result| result.starts_with(['=', '!']))
    })
}

#[test]
fn decoding() {
    const MAP: &str = "map[string]interface {}";
    let mut differences = Differences::default();
    let limits = &Limits::go();
    for row in rows("decode.tsv") {
        let [input, exact, ..] = row.as_slice() else { panic!("short row: {row:?}") };
        let text = unescape(input);
        let ours = written(as_json(goyaml::from_yaml_exact(&text, limits)));
        differences.check(input, "from_yaml_exact", &ours, exact);

        let floats = named(&row, "floats").unwrap_or(exact);
        let value = goyaml::from_yaml(&text, limits);
        differences.check(input, "from_yaml", &written(as_json(value.clone())), floats);

        let strict = named(&row, "strict").unwrap_or(floats);
        let ours = written(as_json(goyaml::from_yaml_strict(&text, limits)));
        differences.check(input, "from_yaml_strict", &ours, strict);

        let of_kind = |column: &str, result: Result<Value, Error>, is_kind: bool| {
            let go = named(&row, column).unwrap_or(floats).to_owned();
            // Null leaves Go's empty map or slice as it is.
            let expected = if floats == "=null" && !is_kind { None } else { Some(go) };
            (written(as_json(result)), expected)
        };
        let is_map = value.as_ref().is_ok_and(|value| value.as_map().is_some());
        let map = goyaml::from_yaml_map(&text, MAP, limits).map(Value::Map);
        let (ours, go) = of_kind("map", map, is_map);
        differences.check(input, "from_yaml_map", &ours, go.as_deref().unwrap_or("={}"));
        let is_seq = value.as_ref().is_ok_and(|value| value.as_seq().is_some());
        let seq = goyaml::from_yaml_seq(&text, limits).map(Value::Seq);
        let (ours, go) = of_kind("seq", seq, is_seq);
        differences.check(input, "from_yaml_seq", &ours, go.as_deref().unwrap_or("=[]"));
    }
    differences.finish(12_000);
}

#[test]
fn encoding() {
    let mut differences = Differences::default();
    for row in rows("encode.tsv") {
        let [input, yaml, pretty, json, raw] = row.as_slice() else { panic!("row: {row:?}") };
        let (kind, text) = input.split_once(':').expect("kind of input");
        let value = match kind {
            "json" => json::from_json_exact(text.as_bytes(), &Limits::go()).expect("JSON"),
            "bytes" => Value::String(unescape(text).into()),
            _ => Value::Float(text.parse().expect("float")),
        };
        differences.check(input, "to_yaml", &written(goyaml::to_yaml(&value)), yaml);
        differences.check(
            input,
            "to_yaml_pretty",
            &written(goyaml::to_yaml_pretty(&value)),
            pretty,
        );
        differences.check(input, "to_json", &written(json::to_json(&value)), json);
        differences.check(input, "to_json_raw", &written(json::to_json_raw(&value)), raw);
    }
    differences.finish(4_500);
}

#[test]
fn json_decoding() {
    const MAP: &str = "map[string]interface {}";
    let mut differences = Differences::default();
    let limits = &Limits::go();
    for row in rows("json.tsv") {
        let [input, go, ..] = row.as_slice() else { panic!("short row: {row:?}") };
        let text = unescape(input);
        let value = json::from_json(&text, limits);
        differences.check(input, "from_json", &written(as_json(value)), go);

        if let Some(go) = named(&row, "prefix") {
            let ours = json::from_json_prefix(&text, limits).map(|(value, length)| {
                format!("{length} {}", json::to_json(&value).expect("JSON"))
            });
            differences.check(input, "from_json_prefix", &written(ours), go);
        }
        if let Some(go) = named(&row, "map").filter(|go| *go != "=null") {
            let (map, error) = json::from_json_map(&text, MAP, limits);
            if let Some(partial) = named(&row, "partial") {
                let ours = written(as_json(Ok::<_, Error>(Value::Map(map.clone()))));
                differences.check(input, "map left by from_json_map", &ours, partial);
            }
            let result = error.map_or(Ok(Value::Map(map)), Err);
            differences.check(input, "from_json_map", &written(as_json(result)), go);
        }
        if let Some(go) = named(&row, "seq").filter(|go| *go != "=null") {
            let ours = written(as_json(json::from_json_seq(&text, limits).map(Value::Seq)));
            differences.check(input, "from_json_seq", &ours, go);
        }
    }
    differences.finish(200);
}
