//! A template with every function of Helm is parsed and run; a second line of input is values.
#![no_main]

use bstr::ByteSlice;
use gotemplate::value::Entries;
use gotemplate::{Limits, Map, MissingKey, Options, Set, Str, Value};
use helm_rs::render::functions::builtin_functions;
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::{Host, time::Zone};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let (template, values) = data.split_once_str("\u{1e}").unwrap_or((data, b"a: {b: [1, x, null]}"));
    let limits = Limits { output_bytes: 1 << 20, steps: 20_000, nesting: 200 };
    let options = Options { missing_key: MissingKey::Zero, limits };
    let mut set = Set::new("gotpl", builtin_functions()).with_options(options);
    let helper = br#"{{define "h"}}{{.}}{{end}}"#;
    if set.parse("helper", helper).is_err() || set.parse("t", template).is_err() {
        return;
    }
    let values = goyaml::from_yaml(values, &goyaml::Limits::default()).unwrap_or(goyaml::Value::Null);
    let dot = Map::any(Entries::new());
    dot.set(Str::from("Values"), Value::Nil);
    let clock = Clock::Fixed(Reading::at(1_700_000_000, 0));
    let mut host = Host::new(Randomness::Seed(1), clock, Zone::utc());
    let mut out = Vec::new();
    let _ = set.execute("t", &Value::Map(dot), &mut host, &mut out);
});
