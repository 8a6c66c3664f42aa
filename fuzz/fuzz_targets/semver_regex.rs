//! Versions, constraints and regular expressions out of templates.
#![no_main]

use bstr::ByteSlice;
use gotemplate::value::Entries;
use gotemplate::{Limits, Map, Options, Set, Str, Value};
use helm_rs::render::functions::builtin_functions;
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::{Host, time::Zone};
use libfuzzer_sys::fuzz_target;

const TEMPLATE: &[u8] = br#"{{regexFindAll .a .b -1}}{{regexReplaceAll .a .b .b}}{{regexSplit .a .b 3}}
{{semverCompare .a .b}}{{semver .a}}{{urlParse .a}}{{duration .a}}{{dateInZone .a now .b}}{{toDate .a .b}}
{{fromToml .a}}{{fromYaml .a | toToml}}"#;

fuzz_target!(|data: &[u8]| {
    let (a, b) = data.split_once_str("\u{1e}").unwrap_or((data, b"1.2.3"));
    let options = Options {
        limits: Limits { output_bytes: 1 << 20, steps: 20_000, nesting: 50, made_bytes: 1 << 28 },
        ..Options::default()
    };
    let dot = Map::any(Entries::new());
    dot.set(Str::from("a"), Value::string(a));
    dot.set(Str::from("b"), Value::string(b));
    // One call a template: an error in one must not hide the next.
    for call in TEMPLATE.split_str("}}").filter(|call| call.contains_str("{{")) {
        let mut set = Set::new("gotpl", builtin_functions()).with_options(options.clone());
        let text = [call, b"}}"].concat();
        if set.parse("t", &text).is_err() {
            continue;
        }
        let clock = Clock::Fixed(Reading::at(1_700_000_000, 0));
        let mut host = Host::new(Randomness::Seed(1), clock, Zone::utc());
        let _ = set.execute("t", &Value::Map(dot.clone()), &mut host, &mut Vec::new());
    }
});
