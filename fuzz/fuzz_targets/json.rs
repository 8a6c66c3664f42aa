//! Whatever is read as JSON is written, and reads as the same again.
#![no_main]

use goyaml::{Limits, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    if let Ok(value) = json::from_json(data, &limits) {
        let text = json::to_json(&value).expect("what was read can be written");
        let again = json::from_json(text.as_bytes(), &limits).expect("our own output reads");
        assert_eq!(json::to_json(&again).expect("it wrote before"), text);
        let _ = json::to_json_indent(&value, ">", "  ");
    }
    let _ = json::from_json_exact(data, &limits);
});
