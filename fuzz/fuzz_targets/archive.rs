//! Chart archives; what loads is also looked through.
#![no_main]

use helm_rs::chart::{Limits, load_archive};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let limits = Limits { chart_size: 1 << 20, total_size: 4 << 20, ..Limits::default() };
    let mut warnings = Vec::new();
    if let Ok(chart) = load_archive(data, &limits, &mut warnings) {
        let _ = (chart.full_path().len(), chart.crds().len());
    }
});
