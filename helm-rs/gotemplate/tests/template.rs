//! Parsing and running against expectations that Go's `text/template` wrote.
//!
//! Each line of a case file is `MISSINGKEY<tab>TEXTS<tab>DATA<tab>OUTPUT<tab>KIND<tab>ERROR`:
//! texts are a list of names and texts, parsed in order, and the first name is run. Output
//! and error are quoted as Go literals. A line `data<tab>NAME<tab>VALUE` names data that
//! cases refer to as `$NAME`. `GOTEMPLATE_CASES` names another file to check.

#![allow(clippy::panic, clippy::expect_used, reason = "a broken case file stops the test")]

mod support;

use gotemplate::{ErrorKind, MissingKey, Set, Value, strconv};
use support::functions::functions;
use support::{parse_value, unquote};

fn run(mode: &str, texts: &Value, data: &Value) -> (Vec<u8>, &'static str, Vec<u8>) {
    let mut set = Set::new("root", functions());
    set.options_mut().missing_key = match mode {
        "default" => MissingKey::Invalid,
        "zero" => MissingKey::Zero,
        "error" => MissingKey::Error,
        _ => panic!("mode {mode}"),
    };
    let Value::List(texts) = texts else { panic!("texts") };
    let mut first = None;
    for pair in texts.items().chunks(2) {
        let [Value::String(name), Value::String(text)] = pair else { panic!("texts") };
        first.get_or_insert_with(|| name.to_text().into_owned());
        if let Err(error) = set.parse(name.clone(), text.as_bytes()) {
            return (Vec::new(), "parse", error.text().as_bytes().to_vec());
        }
    }
    let mut out = Vec::new();
    let result = set.execute(&first.unwrap_or_default(), data, &mut (), &mut out);
    match result {
        Ok(()) => (out, "", Vec::new()),
        Err(error) => {
            let kind = match error.kind() {
                ErrorKind::Parse => "parse",
                ErrorKind::Exec => "exec",
                ErrorKind::NoTemplate | ErrorKind::Limit => "other",
            };
            assert!(error.excerpt().is_some() || error.line().is_none());
            (out, kind, error.text().as_bytes().to_vec())
        }
    }
}

#[test]
fn runs_as_go_does() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let path = std::env::var("GOTEMPLATE_CASES").unwrap_or_else(|_| default.to_owned());
    let files: Vec<_> = if std::path::Path::new(&path).is_dir() {
        let entries = std::fs::read_dir(&path).expect("case folder");
        entries
            .map(|entry| entry.expect("entry").path())
            .filter(|path| path.file_name().is_some_and(|name| name != "fmt.txt"))
            .collect()
    } else {
        vec![path.into()]
    };
    let (mut differences, mut count) = (0, 0);
    for file in files {
        let cases = std::fs::read_to_string(&file).expect("case file");
        let mut named = std::collections::BTreeMap::new();
        for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["data", name, value] = fields[..] {
                named.insert(name, value);
                continue;
            }
            let [mode, texts, data, output, kind, error] = fields[..] else {
                panic!("case {line:?}")
            };
            // Values are parsed anew for each case, since templates may change them.
            let data = data.strip_prefix('$').map_or(data, |name| named[name]);
            let (texts, data) = (parse_value(texts), parse_value(data));
            let actual = run(mode, &texts, &data);
            count += 1;
            if actual != (unquote(output), kind, unquote(error)) {
                differences += 1;
                if differences <= 12 {
                    let show =
                        |text| String::from_utf8_lossy(&strconv::quote_to_ascii(text)).into_owned();
                    println!("CASE {line}");
                    println!("  want {output}\n   got {}", show(&actual.0));
                    println!("  want {kind} {error}\n   got {} {}", actual.1, show(&actual.2));
                }
            }
        }
    }
    println!("{count} cases");
    assert_eq!(differences, 0, "{differences} of {count} cases differ");
}
