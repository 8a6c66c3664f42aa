//! Files that are no snapshots, cut ones, and ones in which something was changed: an error or what
//! is left, never a panic, never a value that is not in the file.
//!
//! `small.db` has pages of 1 KiB and something of everything; `etcd-peer small` makes it.

#![expect(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    reason = "test code: a panic is how a test says what is wrong"
)]

use std::collections::BTreeMap;

use etcd_snapshot::{Fault, OpenError, Snapshot, storage};

const SMALL: &[u8] = include_bytes!("small.db");

/// Keys with their values.
type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// What reads, and what does not.
fn read(bytes: &[u8]) -> Result<(Content, Vec<Fault>), OpenError> {
    read_all(bytes).map(|(content, faults, _)| (content, faults))
}

/// The same, and the number of objects that their keys do not name.
fn read_all(bytes: &[u8]) -> Result<(Content, Vec<Fault>, usize), OpenError> {
    let mut snapshot = Snapshot::open(Box::new(bytes.to_vec()))?;
    let mut faults = Vec::new();
    snapshot.check(&mut |fault| faults.push(fault));
    let mut content = Content::new();
    let mut others = Vec::new();
    let index = snapshot.index(None, &mut |fault| faults.push(fault)).unwrap();
    for (key, entry) in index.iter() {
        match snapshot.value(entry) {
            Ok(value) => {
                let object = storage::object(&value.value, entry.revision.main);
                others.extend(object.ok().filter(|object| {
                    let at = storage::Layout::default();
                    // Of resources that are not known, whoever looks for records sees the kind.
                    let known = ["configmaps", "namespaces", "secrets"];
                    at.read(key)
                        .is_none_or(|at| !at.is_of(&object.object) || !known.contains(&at.resource))
                }));
                content.insert(key.to_vec(), value.value);
            }
            Err(fault) => faults.push(fault),
        }
    }
    Ok((content, faults, others.len()))
}

/// As `etcdctl` leaves it: the used pages, then their SHA-256.
fn with_digest() -> Vec<u8> {
    use sha2::Digest as _;
    // A database has room at its end; the meta pages say how many pages are in use.
    let pages = |meta: usize| u64::from_le_bytes(SMALL[meta + 56..meta + 64].try_into().unwrap());
    let used = &SMALL[..pages(0).max(pages(1024)) as usize * 1024];
    let mut bytes = used.to_vec();
    bytes.extend_from_slice(&sha2::Sha256::digest(used));
    bytes
}

#[test]
fn the_whole_file() {
    let (content, faults) = read(SMALL).unwrap();
    assert!(faults.is_empty(), "{faults:?}");
    // 50 keys of which some were deleted last, and four others.
    assert_eq!(content.len(), 47);
    let large = &content[b"/registry/configmaps/default/large".as_slice()];
    assert_eq!(large.len(), 5021);
    let snapshot = Snapshot::open(Box::new(SMALL.to_vec())).unwrap();
    assert_eq!((snapshot.compacted(), snapshot.page_size()), (1, 1024));
    assert_eq!(snapshot.cluster_version().as_deref(), Some("3.6.0"));
    let key = b"/registry/configmaps/default/c05";
    let changes: Vec<bool> =
        snapshot.history(key, &mut |_| {}).iter().map(|change| change.is_deleted).collect();
    assert_eq!(changes, [false, true, false]);
    let early = snapshot.index(Some(5), &mut |_| {}).unwrap();
    assert_eq!(early.iter().count(), 4);
    let future = snapshot.index(Some(1000), &mut |_| {}).unwrap_err();
    assert_eq!(future.to_string(), "revision 1000 is not there yet: the newest in the file is 118");
    let compacted = snapshot.index(Some(0), &mut |_| {}).unwrap_err();
    assert_eq!(compacted.to_string(), "revision 0 was compacted: the oldest that can be read is 1");
}

#[test]
fn no_snapshot() {
    for bytes in [&b""[..], b"{}", &[0; 16_000], &SMALL[..70]] {
        assert!(matches!(read(bytes), Err(OpenError::NotDatabase)));
    }
    let mut both = SMALL.to_vec();
    both[64] ^= 1;
    both[1024 + 64] ^= 1;
    assert!(matches!(read(&both), Err(OpenError::NoMeta)));
    let mut version = SMALL.to_vec();
    version[20] = 3;
    version[1024 + 20] = 3;
    assert!(matches!(read(&version), Err(OpenError::Version { version: 3 })));
}

/// The buckets of both states with another letter in the names of those that `changes`.
fn with_other_names(changes: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let long = |at: usize| u64::from_le_bytes(SMALL[at..at + 8].try_into().unwrap()) as usize;
    let short = |at: usize| u32::from_le_bytes(SMALL[at..at + 4].try_into().unwrap()) as usize;
    let mut bytes = SMALL.to_vec();
    for page in [0, 1024].map(|meta| long(meta + 32) * 1024) {
        for element in 0..usize::from(SMALL[page + 10]) {
            let at = page + 16 + element * 16;
            let name = at + short(at + 4)..at + short(at + 4) + short(at + 8);
            if changes(&SMALL[name.clone()]) {
                // In all of them the order stays.
                bytes[name.start] += 1;
            }
        }
    }
    bytes
}

#[test]
fn another_bbolt() {
    let error = read(&with_other_names(|_| true)).map(drop).unwrap_err().to_string();
    assert!(
        error.starts_with("is a database of bbolt, and not etcd's: its buckets are"),
        "{error}"
    );
    // One name that is damaged makes it no other program's.
    let error = read(&with_other_names(|name| name == b"key")).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::NoKeys(_)), "{error}");
}

/// Elements that a page no longer says it has are missed.
#[test]
fn pages_that_say_too_little() {
    let (all, _) = read(SMALL).unwrap();
    let mut lost = 0;
    for page in 2..SMALL.len() / 1024 {
        let mut bytes = SMALL.to_vec();
        // Others are parts of a long value.
        if bytes[page * 1024..page * 1024 + 8] != (page as u64).to_le_bytes() {
            continue;
        }
        let count = &mut bytes[page * 1024 + 10];
        *count = count.saturating_sub(1);
        let Ok((content, faults)) = read(&bytes) else { continue };
        if content != all {
            lost += 1;
            assert!(!faults.is_empty(), "page {page}");
        }
    }
    assert!(lost > 3, "{lost}");
}

/// A digest finds every change.
#[test]
fn a_snapshot_that_was_changed_is_found_out() {
    let whole = with_digest();
    assert!(read(&whole).unwrap().1.is_empty());
    for at in (0..whole.len()).step_by(97) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        if let Ok((_, faults)) = read(&bytes) {
            assert!(!faults.is_empty(), "byte {at}");
        }
    }
}

/// Each cut is told, and what is read is what was there.
#[test]
fn a_file_that_was_cut() {
    let whole = with_digest();
    let (all, _) = read(&whole).unwrap();
    let mut most = 0;
    for size in (0..whole.len()).step_by(61).chain(whole.len() - 40..whole.len()) {
        match read(&whole[..size]) {
            Ok((content, faults)) => {
                // Without all of its digest it is a whole database.
                assert!(!faults.is_empty() || size == whole.len() - 32, "{size} bytes");
                most = most.max(content.len());
                // Newer changes may be lost, and an older value be the last that is left.
                for key in content.keys() {
                    assert!(all.contains_key(key) || key.starts_with(b"/registry/configmaps"));
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert_eq!(most, all.len(), "without its digest the file is whole");
}

/// Each bit of the first pages and bits all over: no panic, no hang, and never more than the file
/// holds.
#[test]
fn bits_that_were_flipped() {
    let (all, _) = read(SMALL).unwrap();
    let everywhere = (0..SMALL.len()).step_by(37).map(|at| (at, 1 << (at % 8)));
    let heads = (0..SMALL.len() / 1024).flat_map(|page| {
        (0..48).flat_map(move |at| [0, 5].map(|bit| (page * 1024 + at, 1u8 << bit)))
    });
    let (mut told, mut opened) = (0, 0);
    for (at, bit) in everywhere.chain(heads) {
        let mut bytes = SMALL.to_vec();
        bytes[at] ^= bit;
        if let Ok((content, faults)) = read(&bytes) {
            opened += 1;
            told += usize::from(!faults.is_empty());
            assert!(content.len() <= all.len() + 10, "byte {at}");
        }
    }
    assert!(opened > 1000 && told > 500, "{opened} opened, {told} with faults");
}

/// A key that was damaged in a database without a digest: its history, or another key's, does not
/// fit any more.
#[test]
fn bits_of_keys_that_were_flipped() {
    let (all, _) = read(SMALL).unwrap();
    // Two values are no objects, so that nothing in them says what their key should be.
    let keys = all.keys().filter(|key| !key.ends_with(b"/closed") && !key.ends_with(b"/large"));
    let mut flips = 0;
    let mut silent = Vec::new();
    for key in keys.collect::<std::collections::BTreeSet<_>>() {
        let places = SMALL.windows(key.len()).enumerate().filter(|(_, text)| text == key);
        for (start, _) in places {
            for (at, bit) in (start..start + key.len()).flat_map(|at| (0..8).map(move |b| (at, b)))
            {
                let mut bytes = SMALL.to_vec();
                bytes[at] ^= 1 << bit;
                flips += 1;
                // Where there is no change before, the object says what its key should be.
                if let Ok((content, faults, 0)) = read_all(&bytes)
                    && faults.is_empty()
                    && content != all
                {
                    silent.push((String::from_utf8_lossy(key).into_owned(), at, bit));
                }
            }
        }
    }
    println!("{flips} flips, {} silent", silent.len());
    assert!(flips > 10_000, "{flips}");
    assert!(silent.is_empty(), "{} of {flips}: {:?}", silent.len(), &silent[..silent.len().min(5)]);
}

/// Changes that are missing: etcd counts without gaps.
#[test]
fn a_revision_that_is_missing() {
    let told = |bytes: &[u8]| read(bytes).map_or(0, |(_, faults)| faults.len());
    assert_eq!(told(SMALL), 0);
    let snapshot = Snapshot::open(Box::new(SMALL.to_vec())).unwrap();
    let index = snapshot.index(None, &mut |fault| panic!("{fault}")).unwrap();
    let newest = index.revision();
    // The newest of all may be missing, and nothing tells it.
    for main in 3..newest {
        let mut bytes = SMALL.to_vec();
        let key = [&main.to_be_bytes()[..], b"_"].concat();
        let places: Vec<usize> = SMALL
            .windows(9)
            .enumerate()
            .filter_map(|(at, text)| (text == key).then_some(at))
            .collect();
        for at in places {
            bytes[at + 7] ^= 0x80;
        }
        assert!(told(&bytes) > 0, "revision {main}");
    }
}

/// A page that is its own child, and one that hangs twice.
#[test]
fn cycles() {
    // Branches are the pages with flag 1; each of their elements has a page number at its end.
    let mut found = 0;
    for page in 2..SMALL.len() / 1024 {
        let start = page * 1024;
        if SMALL[start + 8] != 1 {
            continue;
        }
        for target in [page as u8, 2, 3, 255] {
            let mut bytes = SMALL.to_vec();
            bytes[start + 16 + 8] = target;
            if let Ok((_, faults)) = read(&bytes) {
                found += usize::from(!faults.is_empty());
            }
        }
    }
    assert!(found > 0);
}
