//! The head of a document in plain block style, without building the document.
//!
//! Helm decodes every rendered document in full to sort it. Nearly all of them are block maps and
//! sequences of simple scalars, which a look at each line can follow. Whatever goes beyond that
//! (flow collections, anchors, tags, folded plain text, anything but ASCII, a type that Helm would
//! refuse) makes [`head`] answer "not sure", and the full reader decides and words the error.
//!
//! Why it stands beside the full reader: for the 258 KB that Cilium 1.20.0 renders with
//! `03-geneve-hubble.yaml` it takes 7.9 million instructions and answers for 43 of 45 documents.
//! Reading them in full takes 20.8 million, and a pass over events only, without nodes and
//! values, could not take less than the 14.7 million of the scanner alone: 7 % more for the whole
//! command, which takes 93 million.

use super::sort::Head;

/// Longer documents, longer keys (YAML has a bound there) and deeper nesting are left to the full
/// reader.
const MAX_DOCUMENT: usize = 512 * 1024;
const MAX_KEY: usize = 1000;
const MAX_DEPTH: usize = 40;

/// Plain words that are not text (YAML 1.1), in lower case.
const WORDS: [&[u8]; 10] =
    [b"y", b"yes", b"n", b"no", b"on", b"off", b"true", b"false", b"null", b"nan"];

/// Which map a collection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Top,
    Metadata,
    Annotations,
    Other,
}

/// An open block collection.
#[derive(Debug, Clone, Copy)]
struct Open {
    column: usize,
    is_map: bool,
    section: Section,
}

/// A value that stands on its key's line.
enum Inline<'a> {
    /// Nothing: null, or a collection that follows.
    Nothing,
    /// Text, certainly.
    Text(&'a [u8]),
    /// A scalar or an empty collection.
    Other,
    /// A literal or folded text that follows.
    Block,
}

/// The head of a document, if it is certain.
pub(super) fn head(document: &[u8]) -> Option<Head> {
    let is_plain = |&byte: &u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
    if document.len() > MAX_DOCUMENT || !document.iter().all(is_plain) {
        return None;
    }
    let mut reader = Reader::default();
    let mut lines = document.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if let Some(parent) = reader.line(line)? {
            // The first line that is not blank sets the indentation of a block scalar.
            let mut indent = None;
            while let Some(line) = lines.peek() {
                let column = indentation(line);
                if column == line.len() {
                    // Leading blank lines must not be longer than the indentation.
                    if indent.is_none() && column > 0 {
                        return None;
                    }
                } else if column < *indent.get_or_insert(column) || column <= parent {
                    break;
                }
                lines.next();
            }
        }
    }
    (!reader.open.is_empty()).then_some(reader.head)
}

#[derive(Default)]
struct Reader {
    open: Vec<Open>,
    /// The last key had no value on its line: what a map there would be.
    pending: Option<Section>,
    head: Head,
    seen: Seen,
}

/// Fields of the head that were met: a second one is left to the full reader.
#[derive(Default)]
struct Seen {
    api_version: bool,
    kind: bool,
    metadata: bool,
    name: bool,
    annotations: bool,
}

impl Reader {
    /// Reads a line. `Some(Some(column))` if the text of a block scalar follows, which belongs to
    /// the collection at `column`.
    #[expect(clippy::option_option, reason = "outside: certain or not; inside: a text follows")]
    fn line(&mut self, line: &[u8]) -> Option<Option<usize>> {
        let mut column = indentation(line);
        let mut rest = line.get(column..)?;
        if rest.is_empty() || rest.starts_with(b"#") {
            return Some(None);
        }
        if column == 0 && (rest.starts_with(b"---") || rest == b"...") {
            return None;
        }
        let mut is_first = true;
        while let Some(item) = rest.strip_prefix(b"- ") {
            self.enter(column, false, is_first)?;
            let spaces = indentation(item);
            rest = item.get(spaces..)?;
            column += 2 + spaces;
            is_first = false;
        }
        let (key, after) = match split_key(rest)? {
            Some(found) => found,
            None if is_first => return None,
            None => {
                return match inline(rest)? {
                    Inline::Nothing => None,
                    Inline::Block => Some(Some(self.open.last()?.column)),
                    Inline::Text(_) | Inline::Other => Some(None),
                };
            }
        };
        if line.len() - after.len() > MAX_KEY {
            return None;
        }
        self.enter(column, true, is_first)?;
        let section = self.open.last()?.section;
        let value = inline(after)?;
        let below = self.field(section, key, &value)?;
        match value {
            Inline::Nothing => self.pending = Some(below),
            Inline::Block => return Some(Some(column)),
            Inline::Text(_) | Inline::Other => {}
        }
        Some(None)
    }

    /// Goes to the collection that an entry at `column` belongs to: an open one, or a new one
    /// where a value is due. `is_first`: the entry begins its line.
    fn enter(&mut self, column: usize, is_map: bool, is_first: bool) -> Option<()> {
        let pending = self.pending.take();
        let section = if !is_first {
            // Behind a dash on the same line: always new.
            Some(Section::Other)
        } else if let Some(top) = self.open.last() {
            // A sequence may stand at the column of its key.
            let deeper = column > top.column || column == top.column && !is_map;
            if deeper { pending } else { None }
        } else {
            (column == 0 && is_map).then_some(Section::Top)
        };
        if let Some(section) = section {
            // The head's fields are maps.
            if !is_map && section != Section::Other || self.open.len() >= MAX_DEPTH {
                return None;
            }
            self.open.push(Open { column, is_map, section });
            return Some(());
        }
        while let Some(top) = self.open.last() {
            if top.column == column && top.is_map == is_map {
                return Some(());
            }
            let ends = top.column > column || top.column == column && !top.is_map;
            if !ends {
                return None;
            }
            self.open.pop();
        }
        None
    }

    /// Notes an entry of a map; what its value is, should it be a map.
    fn field(&mut self, section: Section, key: &[u8], value: &Inline<'_>) -> Option<Section> {
        let text = || match value {
            Inline::Text(text) => std::str::from_utf8(text).ok().map(str::to_owned),
            _ => None,
        };
        let once = |seen: &mut bool| (!std::mem::replace(seen, true)).then_some(());
        match section {
            Section::Other => {}
            Section::Annotations => {
                let key = std::str::from_utf8(key).ok()?.to_owned();
                self.head.annotations.insert(key, text()?);
            }
            Section::Top => match key {
                b"apiVersion" => {
                    once(&mut self.seen.api_version)?;
                    self.head.api_version = text()?;
                }
                b"kind" => {
                    once(&mut self.seen.kind)?;
                    self.head.kind = text()?;
                }
                b"metadata" => {
                    once(&mut self.seen.metadata)?;
                    return matches!(value, Inline::Nothing).then_some(Section::Metadata);
                }
                // `encoding/json` takes fields in any case.
                _ if is_any(key, &[b"apiversion", b"kind", b"metadata"]) => return None,
                _ => {}
            },
            Section::Metadata => match key {
                b"name" => {
                    once(&mut self.seen.name)?;
                    self.head.name = text()?;
                }
                b"annotations" => {
                    once(&mut self.seen.annotations)?;
                    return matches!(value, Inline::Nothing).then_some(Section::Annotations);
                }
                _ if is_any(key, &[b"name", b"annotations"]) => return None,
                _ => {}
            },
        }
        Some(Section::Other)
    }
}

fn is_any(key: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|word| key.eq_ignore_ascii_case(word))
}

fn indentation(line: &[u8]) -> usize {
    line.iter().take_while(|&&byte| byte == b' ').count()
}

/// Cuts `key:` off a line; none if the line is a scalar, `None` outside if that is not certain.
#[expect(clippy::option_option, reason = "outside: certain or not; inside: a key or not")]
fn split_key(rest: &[u8]) -> Option<Option<(&[u8], &[u8])>> {
    let (key, after) = match rest.first()? {
        b'"' | b'\'' => {
            let (text, after) = quoted(rest)?;
            match after.strip_prefix(b":") {
                Some(after) => (text?, after),
                None => return Some(None),
            }
        }
        first => {
            let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./-".contains(byte);
            let length = rest.iter().take_while(|byte| is_name(byte)).count();
            let (key, after) = rest.split_at_checked(length)?;
            let Some(after) = after.strip_prefix(b":") else { return Some(None) };
            if !(after.is_empty() || after.starts_with(b" ")) {
                return Some(None);
            }
            if !first.is_ascii_alphabetic() || is_any(key, &WORDS) {
                return None;
            }
            (key, after)
        }
    };
    (after.is_empty() || after.starts_with(b" ")).then_some(Some((key, after)))
}

/// A quoted text at the start, which must end on the line, and what follows it. The text is none
/// if it has escapes.
fn quoted(rest: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (quote, inside) = rest.split_first()?;
    let mut at = 0;
    let mut is_exact = true;
    loop {
        match (inside.get(at)?, inside.get(at + 1)) {
            (b'\\', next) if *quote == b'"' => {
                let is_simple = match next? {
                    b'u' => {
                        let digits = inside.get(at + 2..at + 6)?;
                        // Those from D800 on are halves of pairs.
                        digits.iter().all(u8::is_ascii_hexdigit)
                            && digits.first().is_some_and(|first| !b"dD".contains(first))
                    }
                    next => b"\"\\/nrt".contains(next),
                };
                if !is_simple {
                    return None;
                }
                is_exact = false;
                at += 2;
            }
            (b'\'', Some(b'\'')) if *quote == b'\'' => {
                is_exact = false;
                at += 2;
            }
            (byte, _) if byte == quote => break,
            _ => at += 1,
        }
    }
    Some((inside.get(..at).filter(|_| is_exact), inside.get(at + 1..)?))
}

/// Reads what follows a key or a dash to the end of the line.
fn inline(after: &[u8]) -> Option<Inline<'_>> {
    let value = after.trim_ascii();
    let Some(first) = value.first() else { return Some(Inline::Nothing) };
    match first {
        b'#' => Some(Inline::Nothing),
        b'"' | b'\'' => {
            let (text, rest) = quoted(value)?;
            let is_end = rest.trim_ascii_start().is_empty()
                || rest.starts_with(b" ") && rest.trim_ascii_start().starts_with(b"#");
            is_end.then_some(text.map_or(Inline::Other, Inline::Text))
        }
        b'|' | b'>' => matches!(value.get(1..)?, b"" | b"-" | b"+").then_some(Inline::Block),
        b'{' | b'[' => matches!(value, b"{}" | b"[]").then_some(Inline::Other),
        _ => plain(value),
    }
}

/// A plain scalar on one line.
fn plain(value: &[u8]) -> Option<Inline<'_>> {
    let comment = value.windows(2).position(|pair| pair == b" #").unwrap_or(value.len());
    let value = value.get(..comment)?.trim_ascii_end();
    let [first, rest @ ..] = value else { return None };
    let may_start = first.is_ascii_alphanumeric()
        || b"/_$(~".contains(first)
        || *first == b'-' && rest.first().is_some_and(|next| !b" .".contains(next));
    if !may_start || value.ends_with(b":") {
        return None;
    }
    if value.windows(2).any(|pair| pair == b": ") {
        return None;
    }
    let is_text = first.is_ascii_alphabetic() && !is_any(value, &WORDS);
    Some(if is_text { Inline::Text(value) } else { Inline::Other })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# a comment\napiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: \"agent\"\n  \
annotations:\n    helm.sh/hook: 'pre-install'\n    \"a b\": text # why\n  labels:\n    n1: y\nspec:\n  \
args:\n  - --flag=x\n  - key: 1\n    other: -2\n  - - nested\n    - more\n  script: |\n    #!/bin/sh\n\n    \
if: [ a\n  empty: {}\n  none:\n  last: \"a\\\"b\\u003c\"\ndata: >-\n  folded\n   text\nend: true\n";

    #[test]
    fn reads_a_plain_document() -> Result<(), crate::chart::DecodeError> {
        let found = head(SAMPLE.as_bytes());
        assert_eq!(found, Some(Head::parse_full(SAMPLE.as_bytes())?));
        Ok(())
    }

    /// Whatever one or two edits make of the sample: an answer is the full reader's answer.
    #[test]
    fn is_sure_only_when_right() {
        let pieces = [
            "",
            " ",
            "\n",
            ":",
            ": ",
            "- ",
            "#",
            " #",
            "\"",
            "'",
            "|",
            "{",
            "}",
            "-",
            "\n  ",
            "&a ",
            "*a",
            "!!x ",
            "---\n",
            "<<",
            "~",
            "null",
            "kind: a\n",
            "\n- ",
            "? ",
            "\\",
            "%",
            ",",
            "\t",
            "é",
            ".inf",
            "Name: x",
            "1",
            "true",
        ];
        let mut answers = 0;
        for at in 0..SAMPLE.len() {
            for cut in [0, 1, 2, 5] {
                for (index, piece) in pieces.iter().enumerate() {
                    let Some(start) = SAMPLE.get(..at) else { continue };
                    let Some(end) = SAMPLE.get(at + cut..) else { continue };
                    let mut text = format!("{start}{piece}{end}");
                    if index % 3 == 1 {
                        // A second edit, elsewhere.
                        let other = (at * 7 + index * 13) % text.len();
                        if text.is_char_boundary(other) {
                            text.insert_str(other, pieces.get((at + cut) % 34).unwrap_or(&""));
                        }
                    }
                    if let Some(found) = head(text.as_bytes()) {
                        answers += 1;
                        assert_eq!(Some(found), Head::parse_full(text.as_bytes()).ok(), "{text}");
                    }
                }
            }
        }
        assert!(answers > 10_000, "{answers}");
    }
}
