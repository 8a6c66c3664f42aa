//! What styles a scalar allows, after go-yaml's `yaml_emitter_analyze_scalar`.

use super::Dialect;
use super::text::{is_break, is_printable, next};

/// What the emitter needs to know about a scalar's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Analysis {
    pub(super) multiline: bool,
    pub(super) plain_allowed: bool,
    pub(super) single_quoted_allowed: bool,
    pub(super) block_allowed: bool,
}

/// Whether the text is a word that every style allows, by far the most common case.
fn is_simple(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphanumeric)
        && text.iter().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'=')
        })
}

pub(super) fn analyze(text: &[u8], dialect: Dialect) -> Analysis {
    if is_simple(text) {
        return Analysis {
            multiline: false,
            plain_allowed: true,
            single_quoted_allowed: true,
            block_allowed: true,
        };
    }
    if text.is_empty() {
        return Analysis {
            multiline: false,
            plain_allowed: true,
            single_quoted_allowed: true,
            block_allowed: false,
        };
    }
    let mut indicators = text.starts_with(b"---") || text.starts_with(b"...");
    let (mut line_breaks, mut special, mut tabs) = (false, false, false);
    let (mut edge_space_or_break, mut trailing_space) = (false, false);
    let (mut break_space, mut space_break) = (false, false);
    let (mut previous_space, mut previous_break) = (false, false);
    let mut behind_white_space = true;

    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let end = next(text, at);
        let (first, last) = (at == 0, end >= text.len());
        let before_blank = matches!(text.get(end), None | Some(b' ' | b'\t'));
        indicators |= match byte {
            b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => first,
            b'#' => behind_white_space,
            b'?' | b'-' => first && before_blank,
            b':' => before_blank,
            _ => false,
        };
        if byte == b'\t' && dialect == Dialect::V3 {
            tabs = true;
        } else if !is_printable(text, at) {
            special = true;
        }
        let breaks = is_break(text, at);
        if byte == b' ' {
            edge_space_or_break |= first || last;
            trailing_space |= last;
            break_space |= previous_break;
        } else if breaks {
            line_breaks = true;
            edge_space_or_break |= first || last;
            space_break |= previous_space;
        }
        previous_space = byte == b' ';
        previous_break = breaks;
        behind_white_space = breaks || matches!(byte, b' ' | b'\t' | 0);
        at = end;
    }

    let quotes_needed = break_space || space_break || tabs || special;
    Analysis {
        multiline: line_breaks,
        plain_allowed: !(edge_space_or_break || quotes_needed || line_breaks || indicators),
        single_quoted_allowed: !quotes_needed,
        block_allowed: !(trailing_space || space_break || special),
    }
}
