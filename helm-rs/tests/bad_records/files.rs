//! Files that are not plain text, and archives that are not whole.

use std::fs;

use helm_rs::error_chain;
use helm_rs::release::input::{Input, InputLimits, Scan, StoredRecord, scan};

use super::{good, read};

/// A tar archive of these records, in the format of today or of old.
fn archive(names: &[&str], is_old: bool) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for name in names {
        let text = good(name);
        let mut header = if is_old { tar::Header::new_old() } else { tar::Header::new_ustar() };
        header.set_path(format!("{name}.json")).unwrap();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        header.set_cksum();
        archive.append(&header, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap()
}

fn found(scan: &Scan<StoredRecord>) -> (Vec<String>, Vec<String>) {
    let names = scan.items.iter().map(|record| record.release_name().unwrap().to_owned());
    (names.collect(), scan.faults.iter().map(|fault| error_chain(fault)).collect())
}

#[test]
fn archives() {
    let whole = archive(&["a", "b"], false);
    let none: Vec<String> = Vec::new();
    let both = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(found(&read(whole.clone())), (both.clone(), none.clone()));
    assert_eq!(found(&read(archive(&["a", "b"], true))), (both.clone(), none.clone()));
    let pair = [archive(&["a"], false), archive(&["b"], false)].concat();
    assert_eq!(found(&read(pair)), (both, none));
    // Cut at every block: at least one of the two is missing, and it is told.
    let end = whole.len() - 2 * 512;
    for end in (512..end).step_by(512) {
        let (names, faults) = found(&read(&whole[..end]));
        assert!(names.len() < 2 && !faults.is_empty(), "{end}: {names:?} {faults:?}");
    }
}

#[test]
fn texts_that_are_none() {
    let text = good("a");
    let utf16 = |mark: bool, big: bool| {
        let mark = if mark { "\u{feff}" } else { "" };
        let units = format!("{mark}{text}").encode_utf16().collect::<Vec<u16>>();
        let bytes = units
            .into_iter()
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() });
        bytes.collect::<Vec<u8>>()
    };
    for (bytes, problem) in [
        (utf16(true, false), "is UTF-16"),
        (utf16(true, true), "is UTF-16"),
        (utf16(false, false), "is UTF-16"),
        (utf16(false, true), "is UTF-16"),
        (b"\xfd7zXZ\0\0\x04".to_vec(), "compressed with xz"),
        (b"\x28\xb5\x2f\xfd\x04".to_vec(), "compressed with zstd"),
        (vec![0; 600], "unexpected byte 0x00"),
    ] {
        let (names, faults) = found(&read(bytes));
        assert!(names.is_empty() && faults.len() == 1 && faults[0].contains(problem), "{faults:?}");
    }
    let marked = format!("\u{feff}{text}");
    assert_eq!(found(&read(marked)).0, ["a"]);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.json"), good("a")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("b.json")).unwrap();
    let inputs = vec![Input::Path(folder.path().to_owned())];
    let (names, faults) = found(&scan(inputs, &InputLimits::default(), None, Some));
    assert!(names == ["a"] && faults.len() == 1 && faults[0].contains("b.json"), "{faults:?}");
}
