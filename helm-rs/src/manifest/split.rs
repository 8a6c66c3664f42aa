//! Cutting a stream of YAML documents, as Helm's `pkg/releaseutil/manifest.go`.

use bstr::{BStr, BString, ByteSlice};

use crate::bytes;

/// Cuts a text where three hyphens start a line, as `SplitManifests`: at
/// `(?:^|\s*\n)---\s*`, where `^` is the start of the text. Empty documents are left out, white
/// space around the others is trimmed.
///
/// This is text work, not YAML: hyphens inside a block scalar cut too, and the second of two
/// separators without a document between them stays in the text.
///
/// ```
/// let documents = helm_rs::manifest::split_manifests(b"---\na: 1\n--- # x\nb: 2\n");
/// assert_eq!(documents, ["a: 1", "# x\nb: 2"]);
/// ```
pub fn split_manifests(text: &[u8]) -> Vec<BString> {
    let text = text.trim();
    let mut documents = Vec::new();
    let mut push = |document: &[u8]| {
        if !document.is_empty() {
            documents.push(BString::from(document.trim()));
        }
    };
    let mut start = if text.starts_with(b"---") { skip_space(text, 3) } else { 0 };
    while let Some(rest) = text.get(start..) {
        let Some(offset) = rest.find("\n---") else {
            push(rest);
            break;
        };
        let line_end = start + offset;
        let document = rest.get(..offset).unwrap_or_default();
        push(document.trim_end_with(is_space));
        start = skip_space(text, line_end + "\n---".len());
    }
    documents
}

/// Whether YAML may have more values than `limit`: each begins a line, or stands behind a comma, a
/// bracket or a dash. A document counts as eight, since it is kept on its own. This is told by the
/// text, before anything is built from it; what texts and comments hold is counted too.
pub(crate) fn has_more_values(text: &[u8], limit: usize) -> bool {
    let is_start = |byte| matches!(byte, b',' | b'{' | b'[' | b'\n' | b'\r');
    let starts = bytes::count(text, is_start) + text.find_iter("- ").count();
    // Each document has a line of its own: few lines, few documents.
    let documents = if starts > limit / 8 { text.find_iter("\n---").count() } else { 0 };
    starts + 8 * documents > limit
}

/// The first position at or behind `from` that holds no white space.
fn skip_space(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    from + rest.chars().take_while(|&c| is_space(c)).count()
}

/// `\s` of Go's regular expressions: ASCII only, without the vertical tab.
const fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0C' | '\r' | ' ')
}

/// The first of possibly several names that a `# Source:` comment gives, without the chart's own
/// name: what `# Source: [^/]+/(.+)` finds.
pub(super) fn source_of(manifest: &BStr) -> Option<&BStr> {
    const MARK: &str = "# Source: ";
    let mut rest: &[u8] = manifest;
    while let Some(at) = rest.find(MARK) {
        rest = rest.get(at + MARK.len()..)?;
        let Some(slash) = rest.find_byte(b'/') else { continue };
        let name = rest.get(slash + 1..)?;
        let name = name.get(..name.find_byte(b'\n').unwrap_or(name.len()))?;
        if slash > 0 && !name.is_empty() {
            return Some(name.as_bstr());
        }
    }
    None
}
