//! Archives and folders as texts that can be compared.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// All files of a folder by their paths, as texts: archives entry by entry, times masked.
///
/// # Panics
/// When a file cannot be read.
pub fn folder(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    walk(root, root, &mut all);
    all
}

fn walk(root: &Path, folder: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.strip_prefix(root).expect("below").to_string_lossy().into_owned();
        if path.is_dir() {
            walk(root, &path, all);
        } else {
            let bytes = fs::read(&path).expect("a file");
            all.insert(name.clone(), describe(&name, &bytes));
        }
    }
}

fn describe(name: &str, bytes: &[u8]) -> String {
    if name.ends_with(".tgz") && bytes.starts_with(&[0x1f, 0x8b]) {
        return archive(bytes);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => masked(name, text),
        Err(_) => format!("{} bytes", bytes.len()),
    }
}

/// An archive's gzip header and the headers and contents of its entries, without times.
///
/// # Panics
/// When it is none.
pub fn archive(bytes: &[u8]) -> String {
    let mut gzip = flate2::read::GzDecoder::new(bytes);
    let mut text = String::new();
    if let Some(header) = gzip.header() {
        let part =
            |part: Option<&[u8]>| String::from_utf8_lossy(part.unwrap_or_default()).into_owned();
        let _ = writeln!(
            text,
            "gzip extra={} comment={} name={:?} os={} time={}",
            part(header.extra()),
            part(header.comment()),
            header.filename(),
            header.operating_system(),
            header.mtime()
        );
    }
    let mut tar = Vec::new();
    if let Err(error) = gzip.read_to_end(&mut tar) {
        return format!("{text}broken: {error}\n");
    }
    let mut archive = tar::Archive::new(tar.as_slice());
    for entry in archive.entries().expect("entries").raw(true) {
        let Ok(mut entry) = entry else {
            text.push_str("broken entry\n");
            break;
        };
        let mut header = *entry.header().as_bytes();
        // The time, and the checksum over it.
        header[136..148].fill(b'0');
        header[148..156].fill(b'0');
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("content");
        let content = String::from_utf8_lossy(&content);
        let masked: String = content.split_inclusive('\n').map(mask_line).collect();
        if masked != content {
            // Go writes a time without the zeros at its end: its length is as random as it is.
            header[124..136].fill(b'0');
        }
        let shown = String::from_utf8_lossy(&header).replace('\0', "·");
        let _ = writeln!(text, "{}", shown.trim_end_matches('·'));
        text.push_str(&masked);
        text.push('\n');
    }
    let _ = writeln!(text, "{} bytes of tar", tar.len());
    text
}

/// A text with the times and digests masked that no two runs have in common.
fn masked(name: &str, text: &str) -> String {
    if name.ends_with(".prov") {
        // The digest is over an archive with a time in it, and so is the signature.
        let before = text.split("-----BEGIN PGP SIGNATURE-----").next().unwrap_or_default();
        return before.lines().map(|line| format!("{}\n", mask_line(line))).collect();
    }
    // Charts by name, in Helm's random order.
    if name.ends_with("-charts.txt") {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        return lines.join("\n");
    }
    text.split_inclusive('\n').map(mask_line).collect()
}

/// A line whose value is a time or the digest of an archive, without it.
pub fn mask_line(line: &str) -> String {
    for key in ["generated: ", "created: ", "\"generated\": ", "\"created\": "] {
        if let Some((before, value)) = line.split_once(key)
            && value.starts_with('"')
            && !value.starts_with("\"0001")
        {
            let comma = if value.trim_end().ends_with(',') { "," } else { "" };
            let end = if line.ends_with('\n') { "\n" } else { "" };
            return format!("{before}{key}TIME{comma}{end}");
        }
    }
    let mut out = String::new();
    let mut rest = line;
    while let Some((at, mark)) = first_mark(rest) {
        let end = at + mark.len();
        out.push_str(&rest[..end]);
        rest = &rest[end..];
        let is_digest =
            rest.len() >= 64 && rest.bytes().take(64).all(|byte| byte.is_ascii_hexdigit());
        if is_digest {
            out.push_str("DIGEST");
            rest = &rest[64..];
        }
    }
    out + rest
}

/// The first place in a text that a digest may follow.
fn first_mark(text: &str) -> Option<(usize, &'static str)> {
    let marks = ["sha256:", "digest: ", "\"digest\": \""];
    marks.into_iter().filter_map(|mark| Some((text.find(mark)?, mark))).min()
}
