//! Clear-signed texts, as `github.com/ProtonMail/go-crypto/openpgp/clearsign` frames them: the text
//! in plain sight, its signature below.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &[u8] = b"-----BEGIN PGP SIGNED MESSAGE-----";
const SIGNATURE: &[u8] = b"-----BEGIN PGP SIGNATURE-----";
const END: &[u8] = b"-----END PGP SIGNATURE-----";

/// Hashes that a text may say it was signed with.
const HASHES: [&str; 9] =
    ["MD5", "SHA1", "RIPEMD160", "SHA224", "SHA256", "SHA384", "SHA512", "SHA3-256", "SHA3-512"];

/// Characters of a line of the signature.
const LINE: usize = 64;

/// A clear-signed text in its parts.
pub(super) struct Signed {
    /// What the signature is over: lines end in CR LF.
    pub(super) hashed: Vec<u8>,
    /// The same with plain line ends.
    pub(super) text: Vec<u8>,
    /// The signature's packets.
    pub(super) signature: Vec<u8>,
}

/// A line without its end, and what follows it.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let at = text.iter().position(|&b| b == b'\n').unwrap_or(text.len());
    let (line, rest) = text.split_at_checked(at).unwrap_or((text, &[]));
    (line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..).unwrap_or_default())
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    bstr::ByteSlice::find(text, what)
}

/// Finds the first clear-signed text (`Decode`); `None` when there is none, or a wrong one.
pub(super) fn decode(data: &[u8]) -> Option<Signed> {
    let begin = [b"\n", BEGIN].concat();
    let rest = data.strip_prefix(BEGIN).or_else(|| {
        let at = find(data, &begin)?;
        data.get(at + begin.len()..)
    })?;
    let (suffix, mut rest) = line(rest);
    if !suffix.is_empty() {
        return None;
    }
    loop {
        if rest.is_empty() {
            return None;
        }
        let (header, after) = line(rest);
        rest = after;
        let header = std::str::from_utf8(header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        let (key, values) = header.split_once(':')?;
        let is_known = |value: &str| HASHES.contains(&value.trim().to_uppercase().as_str());
        if key.trim() != "Hash" || !values.split(',').all(is_known) {
            return None;
        }
    }
    let mut lines: Vec<&[u8]> = Vec::new();
    loop {
        let (text, after) = line(rest);
        if text.is_empty() && after.is_empty() {
            return None;
        }
        if text == SIGNATURE {
            break;
        }
        rest = after;
        let text = text.strip_prefix(b"- ").unwrap_or(text);
        lines.push(bstr::ByteSlice::trim_end_with(text, |c| c == ' ' || c == '\t'));
    }
    Some(Signed {
        hashed: lines.join(&b"\r\n"[..]),
        text: lines.join(&b'\n'),
        signature: armored(rest)?,
    })
}

/// The bytes in an armored block that begins here: headers up to an empty line, base64, perhaps a
/// checksum.
fn armored(block: &[u8]) -> Option<Vec<u8>> {
    let end = find(block, END)?;
    let (_, mut rest) = line(block.get(..end)?);
    loop {
        let (header, after) = line(rest);
        if header.is_empty() {
            rest = after;
            break;
        }
        if !header.contains(&b':') {
            break;
        }
        rest = after;
    }
    let mut text = String::new();
    while !rest.is_empty() {
        let (part, after) = line(rest);
        rest = after;
        if !part.starts_with(b"=") {
            text.push_str(std::str::from_utf8(part).ok()?.trim());
        }
    }
    STANDARD.decode(text).ok()
}

/// A text as it is signed.
pub(super) fn hashed(text: &str) -> String {
    let lines: Vec<&str> =
        text.split('\n').map(|line| line.trim_end_matches([' ', '\t'])).collect();
    lines.join("\r\n")
}

/// A text and its signature as a clear-signed text (`Encode`).
pub(super) fn encode(text: &str, signature: &[u8]) -> String {
    let mut out = format!("{}\nHash: SHA512\n\n", String::from_utf8_lossy(BEGIN));
    for line in text.split('\n') {
        if line.starts_with('-') {
            out.push_str("- ");
        }
        out.push_str(line.trim_end_matches([' ', '\t']));
        out.push('\n');
    }
    out.push_str(&String::from_utf8_lossy(SIGNATURE));
    out.push_str("\n\n");
    let encoded = STANDARD.encode(signature);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
        rest = after;
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&String::from_utf8_lossy(END));
    out
}
