//! Text in Go syntax, as `strconv.Quote` writes it.

use std::fmt::Write as _;

/// `strconv.Quote`
pub(crate) fn quote(text: &[u8]) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_escaped(&mut quoted, c, '"');
        }
        for byte in chunk.invalid() {
            write!(quoted, "\\x{byte:02x}").unwrap_or_default();
        }
    }
    quoted.push('"');
    quoted
}

/// How `encoding/json` shows a byte that it did not expect (`quoteChar`): as the character with
/// that number.
pub(crate) fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        _ => {
            let mut quoted = String::from("'");
            push_escaped(&mut quoted, char::from(byte), '"');
            quoted.push('\'');
            quoted
        }
    }
}

fn push_escaped(text: &mut String, c: char, quote: char) {
    match c {
        '\\' => text.push_str("\\\\"),
        '\x07' => text.push_str("\\a"),
        '\x08' => text.push_str("\\b"),
        '\x0c' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\x0b' => text.push_str("\\v"),
        _ if c == quote => {
            text.push('\\');
            text.push(c);
        }
        _ if is_printable(c) => text.push(c),
        '\0'..=' ' | '\x7f' => write!(text, "\\x{:02x}", u32::from(c)).unwrap_or_default(),
        '\0'..='\u{ffff}' => write!(text, "\\u{:04x}", u32::from(c)).unwrap_or_default(),
        _ => write!(text, "\\U{:08x}", u32::from(c)).unwrap_or_default(),
    }
}

/// `unicode.IsPrint`, by the standard library's table for `Debug`, which follows the same rule:
/// behind another character, so that combining marks count as printable.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\x7f' => false,
        _ => {
            let mut pair = String::from("a");
            pair.push(c);
            pair.escape_debug().nth(1) == Some(c)
        }
    }
}
