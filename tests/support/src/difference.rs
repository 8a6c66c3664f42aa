//! Two texts compared by line, and the first differences shown compactly.

use std::fmt::Write as _;

use similar::TextDiff;

/// How much of a difference is shown.
const SHOWN_HUNKS: usize = 4;
const SHOWN_LINES: usize = 60;
/// A line longer than this is cut around the first byte that differs.
const SHOWN_WIDTH: usize = 220;

/// A unified difference of the first hunks, `-` for Helm's side and `+` for ours; `None` when the
/// texts are equal. Lines show escapes for control characters and trailing blanks.
pub fn first(theirs: &[u8], ours: &[u8]) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let left = String::from_utf8_lossy(theirs);
    let right = String::from_utf8_lossy(ours);
    let diff = TextDiff::from_lines(left.as_ref(), right.as_ref());
    let mut out = format!("- Helm ({} bytes), + ours ({} bytes)\n", theirs.len(), ours.len());
    let groups = diff.grouped_ops(2);
    let mut shown = 0;
    for (index, group) in groups.iter().enumerate() {
        if index == SHOWN_HUNKS || shown >= SHOWN_LINES {
            let _ = writeln!(out, "… {} more places", groups.len() - index);
            break;
        }
        if let Some(op) = group.first() {
            let _ = writeln!(out, "@@ line {}", op.old_range().start + 1);
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if shown == SHOWN_LINES {
                break;
            }
            shown += 1;
            let _ = writeln!(out, "{}{}", change.tag(), visible(change.value()));
        }
    }
    if left == right {
        out.push_str("the texts differ only in bytes that are not UTF-8\n");
    }
    Some(out)
}

/// A line with what cannot be seen made visible, and cut when long.
fn visible(line: &str) -> String {
    let (body, ended) = match line.strip_suffix('\n') {
        Some(body) => (body, true),
        None => (line, false),
    };
    let mut out = String::new();
    for character in body.chars().take(SHOWN_WIDTH) {
        if character.is_control() && character != '\t' {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    if body.chars().nth(SHOWN_WIDTH).is_some() {
        out.push('…');
    } else if body.ends_with([' ', '\t']) {
        out.push('⏎');
    }
    if !ended {
        out.push_str("⊘ (no newline)");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(first(b"a\n", b"a\n"), None);
    }

    #[test]
    fn a_missing_newline_is_seen() {
        let shown = first(b"a\n", b"a").unwrap();
        assert!(shown.contains("no newline"), "{shown}");
    }

    #[test]
    fn many_differences_are_counted_not_shown() {
        let left = "line\n\n\n\n\n\n\n".repeat(200);
        let right = left.replace("line", "Line");
        let shown = first(left.as_bytes(), right.as_bytes()).unwrap();
        assert!(shown.contains("more places") && shown.lines().count() < 80, "{shown}");
    }
}
