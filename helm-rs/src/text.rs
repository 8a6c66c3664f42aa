//! Go's text helpers that several modules need.

/// A string in Go's quotes, as `%q` and `strconv.Quote` print it.
pub(crate) fn quote(text: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\x07' => out.push_str("\\a"),
                '\x08' => out.push_str("\\b"),
                '\x0c' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\x0b' => out.push_str("\\v"),
                ' '..='~' => out.push(c),
                '\0'..='\x7f' => {
                    let _ = write!(out, "\\x{:02x}", u32::from(c));
                }
                _ if is_print(c) => out.push(c),
                '\u{80}'..='\u{ffff}' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                _ => {
                    let _ = write!(out, "\\U{:08x}", u32::from(c));
                }
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// Go's `strconv.IsPrint` beyond ASCII, as Rust's own debug output sees it.
fn is_print(c: char) -> bool {
    // Combining marks are printable for Go; Rust escapes them only on their own.
    let mut text = ['a', c].iter().collect::<String>();
    text.push('b');
    text.escape_debug().eq(text.chars())
}

/// Go's `strconv.CanBackquote`.
pub(crate) fn can_backquote(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| {
        text.chars().all(|c| match c {
            '\t' => true,
            '`' | '\x7f' | '\u{feff}' | '\u{fffd}' => false,
            _ => c >= ' ',
        })
    })
}
