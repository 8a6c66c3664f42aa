//! Damaged files, as the program reports them: what can be read is printed, what cannot is told, and
//! the exit status is 1.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test says what is wrong")]

use std::fs;
use std::path::Path;

use etcd_tests::{folder, ichor};

const PAGE: usize = 1024;

/// A database with pages of 1 KiB; `etcd-peer small` makes it.
fn small() -> Vec<u8> {
    fs::read(folder().join("../../etcd/tests/small.db")).unwrap()
}

/// The last branch above the leaves of the tree of keys, in the newest state.
fn branch(bytes: &[u8]) -> usize {
    let number = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let transaction = |meta: usize| number(meta + 64);
    let meta = if transaction(PAGE) > transaction(0) { PAGE } else { 0 };
    let buckets = number(meta + 32) * PAGE;
    // Flags, place, size of the key; the bucket's root stands behind the key.
    let elements = (0..number(buckets + 10)).map(|index| buckets + 16 + index * 16);
    let mut values = elements.filter_map(|element| {
        let key = element + number(element + 4);
        (&bytes[key..key + number(element + 8)] == b"key").then_some(key + 3)
    });
    let is_branch = |page: usize| number(page * PAGE + 8) == 1;
    let mut page = number(values.next_back().unwrap());
    assert!(is_branch(page));
    loop {
        let last = child(bytes, page, number(page * PAGE + 10) - 1);
        if !is_branch(last) {
            return page;
        }
        page = last;
    }
}

/// The page below a branch's element.
fn child(bytes: &[u8], branch: usize, index: usize) -> usize {
    usize::from(bytes[branch * PAGE + 16 + index * 16 + 8])
}

/// Writes a number into both meta pages, and makes their checksums right.
fn with_meta(bytes: &mut [u8], at: usize, number: u64) {
    for meta in [0, PAGE] {
        bytes[meta + at..meta + at + 8].copy_from_slice(&number.to_le_bytes());
        let sum = bytes[meta + 16..meta + 72].iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3_u64)
        });
        bytes[meta + 72..meta + 80].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Rows that `ls` prints, its exit status and what it says.
fn ls(path: &Path) -> (usize, Option<i32>, String) {
    let outcome = ichor(&["etcd", "ls", &path.to_string_lossy()]);
    let rows = outcome.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    (rows.saturating_sub(1), outcome.code, said)
}

/// What is done, how many of the 47 objects are left at least, and what is said.
type Case = (&'static str, Box<dyn Fn(&mut Vec<u8>)>, usize, &'static str);

#[test]
fn what_is_left_is_printed() {
    let root = branch(&small());
    // One of the last: of older changes nothing is missed.
    let last = usize::from(small()[root * PAGE + 10]) - 2;
    let leaf = child(&small(), root, last);
    let child_at = root * PAGE + 16 + last * 16 + 8;
    let cases: Vec<Case> = vec![
        ("whole", Box::new(|_| {}), 47, ""),
        ("cut", Box::new(|bytes| bytes.truncate(40 * PAGE)), 0, "the file is cut: its state has"),
        (
            "a leaf that says it is another page",
            Box::new(move |bytes| bytes[leaf * PAGE] ^= 1),
            35,
            "says that it is page",
        ),
        (
            "a leaf with 65535 elements",
            Box::new(move |bytes| bytes[leaf * PAGE + 10..leaf * PAGE + 12].fill(0xff)),
            35,
            "says that it has 65535 elements",
        ),
        (
            "a leaf that goes on for four thousand million pages",
            Box::new(move |bytes| bytes[leaf * PAGE + 12..leaf * PAGE + 16].fill(0xff)),
            35,
            "goes on for 4294967295 more pages",
        ),
        (
            "a value of four thousand million bytes",
            Box::new(move |bytes| bytes[leaf * PAGE + 16 + 12..leaf * PAGE + 32].fill(0xff)),
            45,
            "its value of 4294967295 bytes",
        ),
        (
            "a branch below itself",
            Box::new(move |bytes| bytes[child_at] = root.try_into().unwrap()),
            35,
            "is used twice",
        ),
        (
            "a page that hangs twice",
            Box::new(move |bytes| {
                bytes[child_at] = child(bytes, root, last - 1).try_into().unwrap();
            }),
            35,
            "is used twice",
        ),
        (
            "a page behind the end",
            Box::new(move |bytes| bytes[child_at + 3] = 7),
            35,
            "is not one of the file's",
        ),
        (
            "more pages than any file",
            Box::new(|bytes| with_meta(bytes, 56, 1 << 50)),
            47,
            "the file is cut: its state has 1152921504606846976 bytes",
        ),
        ("both meta pages", Box::new(|bytes| with_meta(bytes, 32, u64::MAX)), 0, "meta pages"),
        ("one meta page", Box::new(|bytes| bytes[PAGE + 64] ^= 1), 40, "meta page 1 is damaged"),
        ("a text", Box::new(|bytes| *bytes = b"kind: List\n".to_vec()), 0, "is neither a snapshot"),
        ("nothing", Box::new(Vec::clear), 0, "is neither a snapshot"),
        (
            "a digest of something else",
            Box::new(|bytes| bytes.extend([7; 32])),
            47,
            "the SHA-256 at the end of the snapshot is not that of its content",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.db");
    let mut faults = Vec::new();
    for (what, damage, least, expected) in cases {
        let mut bytes = small();
        damage(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let (rows, code, said) = ls(&path);
        println!("{what}: {rows} of 47 objects; {}", said.lines().next().unwrap_or("nothing said"));
        let wanted = i32::from(!expected.is_empty());
        if code != Some(wanted) || rows < least || !said.contains(expected) {
            faults.push(format!("{what}: {rows} objects, exit status {code:?}\n{said}"));
        }
        // As an input of records the same: never a panic, and told.
        let from = path.to_string_lossy();
        let outcome = ichor(&["release", "list", "-A", "--from", &from]);
        if outcome.code.is_none_or(|code| code > 1) {
            faults.push(format!("{what}: release list ends with {:?}", outcome.code));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// A database in which no bucket is left, as a copy that was made too early: no answer, and not
/// "no records".
#[test]
fn nothing_is_in_it() {
    let mut bytes = small();
    for meta in [0, PAGE] {
        let buckets = usize::from(bytes[meta + 32]) * PAGE;
        // No elements, and nothing where they were.
        bytes[buckets + 10..buckets + PAGE].fill(0);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty.db");
    fs::write(&path, bytes).unwrap();
    let from = path.to_string_lossy();
    for arguments in [&["etcd", "ls", &from][..], &["release", "list", "-A", "--from", &from]] {
        let outcome = ichor(arguments);
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert_eq!(outcome.code, Some(1), "{arguments:?}: {said}");
        assert!(said.contains("bucket") || said.contains("elements"), "{arguments:?}: {said}");
    }
}
