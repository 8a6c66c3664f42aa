//! Whatever is read as YAML is written, and reads as the same again.
#![no_main]

use goyaml::Limits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    if let Ok(value) = goyaml::from_yaml(data, &limits) {
        if let Ok(text) = goyaml::to_yaml(&value) {
            let again = goyaml::from_yaml(text.as_bytes(), &limits).expect("our own output reads");
            assert_eq!(goyaml::to_yaml(&again).expect("it wrote before"), text);
        }
        let _ = goyaml::to_yaml_pretty(&value);
        let _ = goyaml::json::to_json(&value);
    }
    let _ = goyaml::from_yaml_exact(data, &limits);
    let _ = goyaml::from_yaml_strict(data, &limits);
});
