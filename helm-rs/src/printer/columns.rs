//! Columns as `kubectl` lays them out: Go's `text/tabwriter` with blanks, as
//! `k8s.io/cli-runtime/pkg/printers/tabwriter.go` sets it up.

/// A column is at least this wide, its padding included.
const MIN_WIDTH: usize = 6;
/// Blanks between the longest text of a column and the next column.
const PADDING: usize = 3;

/// Lines whose cells end with tabs, in columns. The last cell of a line belongs to no column, and a
/// column ends at a line that has no cell in it; none of a later one is narrower than an earlier one
/// was in its place.
pub(super) fn align(text: &str) -> String {
    // A vertical tab ends a cell too.
    let lines: Vec<Vec<&str>> =
        text.split_terminator('\n').map(|line| line.split(['\t', '\x0b']).collect()).collect();
    let mut widths: Vec<Vec<usize>> = vec![Vec::new(); lines.len()];
    let mut left: Vec<usize> = (0..lines.len()).collect();
    for column in 0.. {
        left.retain(|line| lines.get(*line).is_some_and(|cells| cells.len() > column + 1));
        if left.is_empty() {
            break;
        }
        let mut widest = 0;
        for block in left.chunk_by(|line, next| line + 1 == *next) {
            let cells = block.iter().filter_map(|line| lines.get(*line)?.get(column));
            let width = cells.map(|cell| cell.chars().count() + PADDING).max().unwrap_or(0);
            widest = width.max(MIN_WIDTH).max(widest);
            for line in block {
                if let Some(widths) = widths.get_mut(*line) {
                    widths.push(widest);
                }
            }
        }
    }
    let mut out = String::with_capacity(text.len() * 2);
    for (cells, widths) in lines.iter().zip(&widths) {
        for (index, cell) in cells.iter().enumerate() {
            out.push_str(cell);
            if let Some(width) = widths.get(index) {
                let blanks = width.saturating_sub(cell.chars().count());
                out.extend(std::iter::repeat_n(' ', blanks));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::align;

    // Each is what Go's tabwriter gave with the same settings.
    #[test]
    fn columns_are_those_of_go() {
        assert_eq!(align(""), "");
        assert_eq!(align("a\n"), "a\n");
        assert_eq!(align("a\tb\nlonger\tc\n"), "a        b\nlonger   c\n");
        assert_eq!(align("NAME\tAGE\nx\t\n"), "NAME   AGE\nx      \n");
        assert_eq!(align("äöü\tb\nab\tc\n"), "äöü   b\nab    c\n");
        // A line of one cell ends the columns; the next are as wide at least.
        assert_eq!(align("longest\tb\nx\na\tb\n"), "longest   b\nx\na         b\n");
        assert_eq!(align("a\t\tb\n"), "a           b\n");
        assert_eq!(align("a\x0bb\n"), "a     b\n");
    }
}
