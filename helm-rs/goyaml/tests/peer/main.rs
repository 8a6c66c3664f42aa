//! Random texts and trees against the packages of real Helm.
//!
//! `ICHOR_CASES` is the number of cases of each kind (1,000), `ICHOR_SEED` the seed (1). Go sorts
//! some keys by chance and reports one of several errors by chance; a case counts as different
//! only if Go gives the same answer each time it is asked.

#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    reason = "helpers of tests may panic as tests do"
)]

mod documents;
mod random;
mod trees;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Limits, Value, json};
use serde_json::{Value as Json, json};
use test_support::driver::{Answer, Driver, encode};
use test_support::skip;

use documents::Writer;
use random::Random;

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn cases() -> usize {
    number("ICHOR_CASES", 1_000)
}

fn random(stream: u64) -> Random {
    Random::new(u64::try_from(number("ICHOR_SEED", 1)).unwrap_or(1) << 8 | stream)
}

/// A value as the driver describes it.
fn described(value: &Value) -> Json {
    let text = |text: &[u8]| match std::str::from_utf8(text) {
        Ok(text) => json!({"t": "string", "v": text}),
        Err(_) => json!({"t": "bytes", "v": STANDARD.encode(text)}),
    };
    match value {
        Value::Null => json!({"t": "nil"}),
        Value::Bool(value) => json!({"t": "bool", "v": value}),
        Value::Int(value) => json!({"t": "int64", "v": value.to_string()}),
        Value::Uint(value) => json!({"t": "uint64", "v": value.to_string()}),
        Value::Float(value) => json!({"t": "float64", "v": goyaml::number::format_g64(*value)}),
        Value::String(value) => text(value),
        Value::Seq(items) => {
            json!({"t": "list", "v": items.iter().map(described).collect::<Vec<_>>()})
        }
        Value::Map(map) => {
            let entries = map.iter().map(|(key, value)| json!([text(key), described(value)]));
            json!({"t": "map", "v": entries.collect::<Vec<_>>()})
        }
    }
}

/// Asks the driver until it has said the same thing a few times or something equal to ours.
fn compare(
    driver: &Driver,
    operation: &str,
    request: &Json,
    ours: &(Json, Option<String>),
    read: impl Fn(&Answer) -> Json,
) -> Option<String> {
    let ask = || {
        let answer = driver.call(operation, request.clone()).expect("driver");
        let error = answer.error();
        // What Go leaves in its target beside an error is not compared here.
        let value = if error.is_some() { Json::Null } else { read(&answer) };
        (value, error)
    };
    let first = ask();
    if first == *ours {
        return None;
    }
    for _ in 0..15 {
        let again = ask();
        if again == *ours || again != first {
            return None;
        }
    }
    Some(format!("{operation} {request}\n  Go   {first:?}\n  ours {ours:?}"))
}

fn outcome<E: std::fmt::Display>(result: Result<Json, E>) -> (Json, Option<String>) {
    match result {
        Ok(value) => (value, None),
        Err(error) => (Json::Null, Some(error.to_string())),
    }
}

fn decoding(stream: u64, mut text: impl FnMut(&mut Random) -> Vec<u8>) {
    let driver = match Driver::shared() {
        Ok(driver) => driver,
        Err(missing) => skip!(missing),
    };
    let limits = &Limits::go();
    let mut random = random(stream);
    let mut differences = Vec::new();
    for _ in 0..cases() {
        let text = text(&mut random);
        let (target, ours) = match random.below(4) {
            0 => ("strict", goyaml::from_yaml_strict(&text, limits)),
            1 => {
                let go_type = "map[string]interface {}";
                ("map", goyaml::from_yaml_map(&text, go_type, limits).map(Value::Map))
            }
            2 => ("array", goyaml::from_yaml_seq(&text, limits).map(Value::Seq)),
            _ => ("any", goyaml::from_yaml(&text, limits)),
        };
        let request = json!({"text": encode(&text), "target": target});
        let ours = outcome(ours.map(|value| described(&value)));
        let read = |answer: &Answer| answer.0.get("value").cloned().unwrap_or_default();
        if let Some(found) = compare(driver, "yaml_decode", &request, &ours, read) {
            differences.push(format!("{:?}: {found}", bstr::BStr::new(&text)));
        }
    }
    report(&differences);
}

fn report(differences: &[String]) {
    for difference in differences.iter().take(10) {
        eprintln!("{difference}");
    }
    assert!(differences.is_empty(), "{} of {} cases differ", differences.len(), cases());
}

#[test]
fn documents() {
    decoding(1, Writer::document);
}

#[test]
fn mutated_documents() {
    decoding(2, |random| {
        let text = Writer::document(random);
        documents::mutated(random, &text)
    });
}

#[test]
fn pieces() {
    decoding(3, documents::soup);
}

#[test]
fn long_texts() {
    decoding(4, documents::chunks);
}

#[test]
fn utf16() {
    decoding(5, |random| {
        let text =
            if random.once_in(2) { documents::chunks(random) } else { documents::soup(random) };
        documents::utf16(random, &text)
    });
}

#[test]
fn written_trees() {
    decoding(6, |random| {
        let tree = trees::tree(random, 4);
        goyaml::to_yaml(&tree).unwrap_or_default().into_bytes()
    });
}

#[test]
fn encoding() {
    let driver = match Driver::shared() {
        Ok(driver) => driver,
        Err(missing) => skip!(missing),
    };
    let mut random = random(7);
    let mut differences = Vec::new();
    for _ in 0..cases() {
        let tree = trees::tree(&mut random, 4);
        let request = json!({"typed": described(&tree)});
        let (operation, ours) = match random.below(3) {
            0 => ("yaml_pretty", goyaml::to_yaml_pretty(&tree).map_err(|error| error.to_string())),
            1 => ("json_encode", json::to_json(&tree).map_err(|error| error.to_string())),
            _ => ("yaml_encode", goyaml::to_yaml(&tree).map_err(|error| error.to_string())),
        };
        // Templates do not see the last line break.
        let ours = ours.map(|text| {
            let stripped = if operation == "json_encode" { None } else { text.strip_suffix('\n') };
            Json::from(stripped.unwrap_or(&text))
        });
        let read = |answer: &Answer| Json::from(String::from_utf8_lossy(&answer.output()));
        differences.extend(compare(driver, operation, &request, &outcome(ours), read));
    }
    report(&differences);
}
