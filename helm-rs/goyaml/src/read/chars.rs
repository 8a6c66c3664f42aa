//! Classes of bytes and characters, after go-yaml's `yamlprivateh.go`.

/// Whether YAML allows the character in a stream.
pub(super) const fn is_allowed(c: char) -> bool {
    matches!(
        c,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}'
            | '\u{10000}'..='\u{10ffff}'
    )
}

/// Whether the byte is an ASCII character that YAML allows.
#[inline]
pub(super) const fn is_allowed_ascii(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~')
}

/// Whether the byte continues a UTF-8 character.
#[inline]
pub(crate) const fn is_trailing(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The length of the UTF-8 character that begins with the byte, 0 if none does.
#[inline]
pub(crate) const fn width(lead: u8) -> usize {
    match lead {
        0x00..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 0,
    }
}

/// The characters of tag handles, directive names and anchors.
#[inline]
pub(super) const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The characters of tag URIs, `%` included.
#[inline]
pub(super) const fn is_uri(byte: u8) -> bool {
    is_word(byte)
        || matches!(
            byte,
            b';' | b'/'
                | b'?'
                | b':'
                | b'@'
                | b'&'
                | b'='
                | b'+'
                | b'$'
                | b','
                | b'.'
                | b'!'
                | b'~'
                | b'*'
                | b'\''
                | b'('
                | b')'
                | b'['
                | b']'
                | b'%'
        )
}

/// A table with the bytes of `stops` set.
const fn table(stops: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut index = 0;
    while index < stops.len() {
        table[stops[index] as usize] = true;
        index += 1;
    }
    table
}

/// What may end a line: breaks, the end, and lead bytes of the breaks beyond ASCII.
pub(super) static LINE_END: [bool; 256] = table(b"\0\r\n\xc2\xe2");

/// What may end a word of a plain scalar outside flow collections.
pub(super) static PLAIN_BLOCK: [bool; 256] = table(b"\0\t \r\n:\xc2\xe2");

/// What may end a word of a plain scalar inside flow collections.
pub(super) static PLAIN_FLOW: [bool; 256] = table(b"\0\t \r\n:\xc2\xe2,?[]{}");

/// What may end a run of a single-quoted scalar.
pub(super) static SINGLE_QUOTED: [bool; 256] = table(b"\0\t \r\n'\xc2\xe2");

/// What may end a run of a double-quoted scalar.
pub(super) static DOUBLE_QUOTED: [bool; 256] = table(b"\0\t \r\n\"\\\xc2\xe2");
