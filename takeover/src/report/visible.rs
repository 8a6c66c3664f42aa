//! Text of strangers made safe to look at.
//!
//! Values come from whoever may write to the cluster. What moves a terminal's cursor, hides, or
//! turns the reading direction would let a value forge the lines around it, so that such
//! characters are written as what they are.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character changes how others look instead of having a look of its own.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// One line: line breaks, too, are written out.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, false)
}

/// Several lines: line breaks stay, everything else that has no look of its own is written out.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, true)
}

fn escaped(text: &str, breaks: bool) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !(breaks && c == '\n');
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' if !breaks => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if hidden(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::{line, lines};

    #[test]
    fn what_has_no_look_is_written_out() {
        assert_eq!(line("plain ü 漢 👩"), "plain ü 漢 👩");
        assert_eq!(line("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(line("\u{1b}[2J\u{7f}\u{9b}"), "\\u{1b}[2J\\u{7f}\\u{9b}");
        assert_eq!(line("x\u{202e}cod.exe\u{2066}"), "x\\u{202e}cod.exe\\u{2066}");
        assert_eq!(lines("a\nb\u{200b}"), "a\nb\\u{200b}");
    }
}
