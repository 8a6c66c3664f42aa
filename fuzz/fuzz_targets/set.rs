//! The grammar of `--set` and its kin.
#![no_main]

use goyaml::Map;
use helm_rs::values;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut map = Map::default();
    let _ = values::parse_set(data, &mut map);
    let _ = values::parse_set_string(data, &mut map);
    let _ = values::parse_json(data, &mut map);
    let _ = values::parse_literal(data, &mut map);
});
