//! Keys as text: bare where possible, else quoted.

/// A string's content with everything escaped that TOML wants escaped.
pub(super) fn escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out
}

/// Whether a character may stand in a bare key.
pub(super) const fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// One part of a key.
pub(super) fn part(text: &[u8]) -> Vec<u8> {
    if !text.is_empty() && text.iter().all(|&b| is_bare(b.into())) {
        return text.to_vec();
    }
    let mut out = vec![b'"'];
    out.extend_from_slice(&escape(text));
    out.push(b'"');
    out
}

/// A whole key, dotted.
pub(super) fn whole(key: &[Vec<u8>]) -> Vec<u8> {
    key.iter().map(|text| part(text)).collect::<Vec<_>>().join(&b'.')
}
