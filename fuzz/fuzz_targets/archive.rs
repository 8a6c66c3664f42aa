//! Chart archives; what loads is also looked through. Input that is not compressed is a tar
//! file and gets compressed first: the fuzzer cannot write checksums.
#![no_main]

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use helm_rs::chart::{Limits, load_archive};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(data).expect("memory can be written");
    let packed = packed.finish().expect("memory can be written");
    let archive = if data.starts_with(&[0x1f, 0x8b]) { data } else { packed.as_slice() };
    let limits = Limits { chart_size: 1 << 20, total_size: 4 << 20, ..Limits::default() };
    let mut warnings = Vec::new();
    if let Ok(chart) = load_archive(archive, &limits, &mut warnings) {
        let _ = (chart.full_path().len(), chart.crds().len());
    }
});
