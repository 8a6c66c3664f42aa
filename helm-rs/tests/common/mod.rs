//! Reads and runs the case files of the functions.
//!
//! A case is a template on one line, followed by a line `= output` or `! error` of Helm 3.21.4.
//! Bytes beyond printable ASCII, and `~` itself, are written `~xx`. Lines that begin with `#` and
//! empty ones between cases are left out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The files of a folder beside the tests, sorted.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Runs every case of the files and fails with all that differ. Returns how many there are.
///
/// `render` takes a template and gives the line that should follow it ([`outcome`]).
pub(crate) fn check(files: &[PathBuf], mut render: impl FnMut(&[u8]) -> String) -> usize {
    let (mut count, mut differing) = (0, 0);
    let mut differences = String::new();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.starts_with('#'));
        while let Some((template, number)) = lines.next() {
            if template.is_empty() {
                continue;
            }
            let file = file.display();
            let Some((expected, _)) = lines.next() else {
                panic!("{file}:{number}: no expectation");
            };
            count += 1;
            let found = render(&unescape(template));
            if found != expected {
                differing += 1;
                let _ = writeln!(
                    differences,
                    "{file}:{number}: {template}\n  helm {expected}\n  ours {found}"
                );
            }
        }
    }
    assert!(differing == 0, "{differing} of {count} differ\n{differences}");
    count
}

/// The line for what a template printed, or for the text of its error.
pub(crate) fn outcome(result: Result<&[u8], &[u8]>) -> String {
    let (mark, bytes) = match result {
        Ok(output) => ('=', output),
        Err(error) => ('!', error),
    };
    let mut line = format!("{mark} ");
    for &byte in bytes {
        if (b' '..0x7f).contains(&byte) && byte != b'~' {
            line.push(char::from(byte));
        } else {
            let _ = write!(line, "~{byte:02x}");
        }
    }
    line
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(escaped) if byte == b'~' => {
                out.push(escaped);
                rest = &tail[2..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}
