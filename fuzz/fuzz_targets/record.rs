//! Stored release records: inputs of every form, every layer, and what reads the records: the
//! typed views, the audit, the diff, writing chart and record back.
#![no_main]

use std::io::Cursor;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use helm_rs::capabilities::KubeVersion;
use helm_rs::release::compare::{Side, compare};
use helm_rs::release::input::{Input, InputLimits, StoredRecord, scan};
use helm_rs::release::verify::{Interrupt, Question, Rerender, audit, expected, verify};
use helm_rs::release::{
    CodecLimits, ExportTarget, Record, Status, Summary, decode, export, redact,
};
use libfuzzer_sys::fuzz_target;

const LIMITS: CodecLimits = CodecLimits { decompressed: 4 << 20, values: 100_000 };

fn read<T: Send>(
    text: Vec<u8>,
    work: impl Fn(StoredRecord) -> Option<T> + Sync,
) -> (Vec<T>, usize) {
    let limits = InputLimits { object: 1 << 20, stream: 8 << 20, files: 1000, values: 100_000 };
    let input = Input::Stream("fuzz".to_owned(), Box::new(Cursor::new(text)));
    let found = scan(vec![input], &limits, NonZero::new(1), work);
    (found.items, found.faults.len())
}

/// A question that renders too, but not for long.
fn question() -> Question {
    let left = Arc::new(AtomicUsize::new(20));
    let interrupt = Interrupt(Arc::new(move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }));
    Question {
        now: 1_700_000_000,
        kube_version: KubeVersion::parse("1.30").ok(),
        rerender: Some(Rerender { attempts: 3, interrupt: Some(interrupt), ..Rerender::default() }),
        ..Question::default()
    }
}

/// An exported record is read back as it was.
fn exported_reads_back(stored: &StoredRecord, json: &str) {
    let Ok(exported) = export(stored, json, &ExportTarget::default()) else { return };
    // YAML has no control characters, which labels of a broken object may have.
    let text = goyaml::to_yaml(&exported.object)
        .or_else(|_| goyaml::json::to_json(&exported.object))
        .expect("an exported object is YAML or JSON");
    let (again, faults) = read(text.into_bytes(), Some);
    assert_eq!(faults, 0, "an exported object reads");
    let again = again.first().expect("an exported object is a record");
    // A release string may hold bytes that no text does; what it decodes to counts.
    assert_eq!(again.decode(&LIMITS).expect("an exported record decodes"), json);
}

fuzz_target!(|data: &[u8]| {
    let question = question();
    let (records, _) = read(data.to_vec(), |stored| {
        let json = stored.decode(&LIMITS).ok()?;
        exported_reads_back(&stored, &json);
        audit(&stored, &json, &question).ok()
    });
    let _ = expected(&records);
    let _ = verify(records);

    let json = match decode(data, LIMITS) {
        Ok(json) => json,
        Err(_) => String::from_utf8_lossy(data).into_owned(),
    };
    let _ = Summary::from_json(&json);
    if let Ok(mut record) = Record::from_json(&json) {
        let text = record.to_json();
        assert_eq!(Record::from_json(&text).expect("our own output reads").to_json(), text);
        let _ = (record.info(), record.hooks());
        if let Ok(manifest) = record.manifest() {
            let _ = redact::manifest(&manifest);
        }
        if let Ok(chart) = record.unpack_chart() {
            for file in &chart.files {
                assert!(!file.name.starts_with('/') && !file.name.split('/').any(|part| part == ".."));
            }
        }
        if let Ok(side) = Side::of_record(&record) {
            assert!(compare(&side, &side, false).is_empty(), "a record equals itself");
        }
        let _ = record.set_status(&Status::Failed, "x");
    }
});
