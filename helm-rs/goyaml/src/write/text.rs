//! Characters of a text that is written, after go-yaml's `yamlprivateh.go`.

/// The position behind the character at `at`.
#[inline]
pub(super) fn next(text: &[u8], at: usize) -> usize {
    let width = match text.get(at) {
        None | Some(0x00..=0xbf) => 1,
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..) => 4,
    };
    (at + width).min(text.len()).max(at + 1)
}

#[inline]
fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// Whether the character at `at` may stand in the output as it is. Characters beyond the basic
/// plane may not.
#[inline]
pub(super) fn is_printable(text: &[u8], at: usize) -> bool {
    match byte(text, at) {
        b'\n' | b' '..=b'~' | 0xc3..=0xec | 0xee => true,
        0xc2 => byte(text, at + 1) >= 0xa0,
        0xed => byte(text, at + 1) < 0xa0,
        0xef => {
            !matches!((byte(text, at + 1), byte(text, at + 2)), (0xbb, 0xbf) | (0xbf, 0xbe | 0xbf))
        }
        _ => false,
    }
}

/// Whether a line break of YAML 1.1 begins at `at`.
#[inline]
pub(super) fn is_break(text: &[u8], at: usize) -> bool {
    match byte(text, at) {
        b'\r' | b'\n' => true,
        0xc2 => byte(text, at + 1) == 0x85,
        0xe2 => byte(text, at + 1) == 0x80 && matches!(byte(text, at + 2), 0xa8 | 0xa9),
        _ => false,
    }
}
