//! PEM blocks as Go's `encoding/pem` writes and finds them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::render::functions::base::base64_decode;

/// One block.
pub(super) struct Block {
    /// What stands after `BEGIN`.
    pub(super) kind: Vec<u8>,
    /// The content.
    pub(super) bytes: Vec<u8>,
}

/// A block in lines of 64 characters.
pub(super) fn encode(kind: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let mut out = format!("-----BEGIN {kind}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(64).unwrap_or((rest, ""));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out.push_str("-----END ");
    out.push_str(kind);
    out.push_str("-----\n");
    out
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}

/// The first line without the blanks at its end, and what follows (`getLine`).
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&b| b == b'\n');
    let (line, rest) = match end {
        Some(end) => (text.get(..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default()),
        None => (text, &[][..]),
    };
    let line = line.strip_suffix(b"\r").filter(|_| end.is_some()).unwrap_or(line);
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let length = line.iter().rposition(|b| !blank(b)).map_or(0, |last| last + 1);
    (line.get(..length).unwrap_or_default(), rest)
}

/// The first well-formed block (`Decode`).
pub(super) fn decode(text: &[u8]) -> Option<Block> {
    let mut rest = text;
    loop {
        let end = find(rest, END)?;
        let after_end = rest.get(end + END.len()..)?;
        if let Some(block) = block(rest, end, after_end) {
            return Some(block);
        }
        rest = after_end;
    }
}

/// The block that the `END` line at `end` closes.
fn block(text: &[u8], end: usize, after_end: &[u8]) -> Option<Block> {
    let before = text.get(..end)?;
    let begin = before.windows(BEGIN.len()).rposition(|window| window == BEGIN)?;
    if begin > 0 && before.get(begin - 1) != Some(&b'\n') {
        return None;
    }
    // The newline before END belongs to the body, so that an empty one has none left.
    let (title, mut body) = line(text.get(begin + BEGIN.len()..)?);
    let kind = title.strip_suffix(DASHES)?;
    let mut headers = false;
    loop {
        if body.is_empty() {
            return None;
        }
        let (first, next) = line(body);
        if !first.contains(&b':') {
            break;
        }
        headers = true;
        body = next;
    }
    let tail = END.len() + after_end.len();
    if headers && body.len() < tail {
        return None;
    }
    let trailer = after_end.strip_prefix(kind)?.strip_prefix(DASHES)?;
    if !line(trailer).0.is_empty() {
        return None;
    }
    let content = body.get(..body.len().saturating_sub(tail)).unwrap_or_default();
    let content: Vec<u8> = content.iter().copied().filter(|b| !matches!(b, b' ' | b'\t')).collect();
    let bytes = base64_decode(&content).ok()?;
    Some(Block { kind: kind.to_vec(), bytes })
}
