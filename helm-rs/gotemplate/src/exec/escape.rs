//! Escaping for other languages (Go `text/template/funcs.go`).

use crate::strconv::{RUNE_ERROR, decode_rune, is_print};

/// `HTMLEscapeString`.
pub(super) fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            _ => out.push(byte),
        }
    }
    out
}

/// `JSEscapeString`.
pub(super) fn js(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        let (c, size) = decode_rune(rest);
        let (char_bytes, tail) = rest.split_at(size.min(rest.len()));
        rest = tail;
        match byte {
            b'\\' => out.extend_from_slice(br"\\"),
            b'\'' => out.extend_from_slice(br"\'"),
            b'"' => out.extend_from_slice(br#"\""#),
            b'<' => out.extend_from_slice(br"\u003C"),
            b'>' => out.extend_from_slice(br"\u003E"),
            b'&' => out.extend_from_slice(br"\u0026"),
            b'=' => out.extend_from_slice(br"\u003D"),
            0x20..0x80 => out.push(byte),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            // An invalid byte counts as the replacement character and is kept as it is.
            _ if is_print(c) || c == RUNE_ERROR => out.extend_from_slice(char_bytes),
            _ => out.extend_from_slice(format!("\\u{c:04X}").as_bytes()),
        }
    }
    out
}

/// `url.QueryEscape`.
pub(super) fn url_query(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(byte);
            }
            b' ' => out.push(b'+'),
            _ => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    out
}
