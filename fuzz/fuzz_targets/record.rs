//! Stored release records: every layer, and the typed views of what decodes.
#![no_main]

use helm_rs::release::{CodecLimits, Record, Status, Summary, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = CodecLimits { decompressed: 4 << 20 };
    let json = match decode(data, limits) {
        Ok(json) => json,
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    };
    let _ = Summary::from_json(&json);
    if let Ok(mut record) = Record::from_json(&json) {
        let text = record.to_json();
        assert_eq!(Record::from_json(&text).expect("our own output reads").to_json(), text);
        let _ = (record.info(), record.hooks(), record.manifest());
        let _ = record.set_status(&Status::Failed, "x");
    }
});
