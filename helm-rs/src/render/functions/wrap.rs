//! Wrapping and abbreviating: github.com/Masterminds/goutils v1.1.1 (`wordutils.go`,
//! `stringutils.go`). Widths are bytes.

use bstr::ByteSlice;
use gotemplate::{CallError, Str};

use super::limits;

/// Sprig's `abbrev`.
pub(super) fn abbrev(width: i64, text: Str) -> Str {
    match usize::try_from(width) {
        Ok(width @ 4..) => abbreviate(text, 0, width),
        _ => text,
    }
}

/// Sprig's `abbrevboth`.
pub(super) fn abbrev_both(left: i64, right: i64, text: Str) -> Str {
    match usize::try_from(right) {
        Ok(width @ 4..) if left <= 0 || width >= 7 => abbreviate(text, left, width),
        _ => text,
    }
}

/// `AbbreviateFull`: at most `width` bytes with an ellipsis for what was cut off on the
/// right, and on the left when `offset` is beyond the fourth byte.
fn abbreviate(text: Str, offset: i64, width: usize) -> Str {
    const MARK: &[u8] = b"...";
    let length = text.len();
    if length <= width {
        return text;
    }
    let keep = width.saturating_sub(MARK.len());
    // Go's arithmetic wraps, so the smallest offset counts as a large one.
    let after = (length as i64).wrapping_sub(offset.min(length as i64));
    let offset = if after < keep as i64 {
        length - keep
    } else {
        usize::try_from(offset).unwrap_or(0).min(length)
    };
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    if offset <= 4 {
        return [part(0, keep), MARK].concat().into();
    }
    if width < 7 {
        return Str::default();
    }
    if offset + keep < length {
        let rest = abbreviate(part(offset, length).into(), 0, keep);
        return [MARK, rest.as_bytes()].concat().into();
    }
    [MARK, part(length - keep, length)].concat().into()
}

/// `WrapCustom`: breaks at spaces so that lines keep to `width` bytes; words that are longer
/// are cut when `cut_words` says so. An empty `separator` is a line feed.
pub(super) fn wrap(
    text: &[u8],
    width: i64,
    separator: &[u8],
    cut_words: bool,
) -> Result<Vec<u8>, CallError> {
    let separator = if separator.is_empty() { b"\n" } else { separator };
    let width = usize::try_from(width).unwrap_or(1).max(1);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let mut out = Vec::with_capacity(text.len());
    let mut offset = 0;
    while text.len() - offset > width {
        if text.get(offset) == Some(&b' ') {
            offset += 1;
            continue;
        }
        let end = offset + width;
        let (cut, next) = if let Some(space) = part(offset, end + 1).rfind_byte(b' ') {
            (offset + space, offset + space + 1)
        } else if cut_words {
            (end, end)
        } else if let Some(space) = part(end, text.len()).find_byte(b' ') {
            (end + space, end + space + 1)
        } else {
            out.extend_from_slice(part(offset, text.len()));
            offset = text.len();
            break;
        };
        out.extend_from_slice(part(offset, cut));
        out.extend_from_slice(separator);
        limits::check_bytes(Some(out.len()))?;
        offset = next;
    }
    out.extend_from_slice(part(offset, text.len()));
    Ok(out)
}
