//! Tables as `github.com/gosuri/uitable` prints them (`table.go`, `util/strutil/strutil.go`).

use unicode_width::UnicodeWidthChar;

/// Rows of cells in columns of equal width, separated by tabs; the last column is padded too.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    table_within(rows, usize::MAX)
}

/// [`table`] with columns of no more than this width (`MaxColWidth`); what is longer is cut.
pub(crate) fn table_within(rows: &[Vec<String>], widest: usize) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = cell.split('\n').map(width).max().unwrap_or_default().min(widest);
            match widths.get_mut(column) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut out = String::new();
    for row in rows {
        // A cell is cut to its column's width before it is split into lines, as there.
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| resize(cell, width)).collect();
        let lines = cells.iter().map(|cell| cell.split('\n').count()).max().unwrap_or_default();
        for line in 0..lines {
            let parts: Vec<String> = cells
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| match cell.split('\n').nth(line) {
                    Some(part) => resize(part, width),
                    None => " ".repeat(width.max(1)),
                })
                .collect();
            out.push_str(&parts.join("\t"));
            out.push('\n');
        }
    }
    if rows.is_empty() {
        out.push('\n');
    }
    out
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// `Resize`: pads on the right, or cuts and adds three dots.
fn resize(text: &str, wanted: usize) -> String {
    let own = width(text);
    if wanted == 0 || own == wanted {
        return text.to_owned();
    }
    if own < wanted {
        return format!("{text}{}", " ".repeat(wanted - own));
    }
    let mut cut = String::new();
    let mut so_far = 0;
    for c in text.chars() {
        cut.push(c);
        if so_far + char_width(c) + 3 >= wanted {
            break;
        }
        so_far += char_width(c);
    }
    cut.push_str("...");
    cut
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_and_lines() {
        let rows = [vec!["A".to_owned(), "BCD".to_owned()], vec!["xyz".to_owned(), String::new()]];
        assert_eq!(super::table(&rows), "A  \tBCD\nxyz\t   \n");
    }
}
