//! The part of a value that differs.
//!
//! A leaf may be a whole document (JSON in a ConfigMap), a script or a list of arguments. What a
//! reader needs is the inner leaf, the line or the item that changes, with a little around it,
//! not the first eighty characters of both sides.

use helm_rs::release::redact::names_credential;
use serde::Serialize;
use serde_json::Value;
use similar::{Algorithm, DiffTag, capture_diff_slices, group_diff_ops};

use super::visible;
use crate::plan::HIDDEN;

/// How much of a difference is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Characters of one line.
    pub(crate) width: usize,
    /// Lines of one difference.
    pub(crate) lines: usize,
}

/// Which side a line is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Side {
    /// What is live.
    Old,
    /// What will be there.
    New,
    /// What both have, or a remark.
    Both,
}

/// A line of a difference. Its text is safe to look at, and one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    /// Whose.
    pub(crate) side: Side,
    /// The text.
    pub(crate) text: String,
}

/// What stands for no value.
const NOTHING: &str = "(nothing)";
/// Lines that both sides have and that are shown around a difference.
const CONTEXT: usize = 1;
/// Characters that both sides have and that are shown around a difference.
const AROUND: usize = 24;
/// Lines or items of one side that are compared one by one; more than that only as two blocks.
/// (The comparison takes time in proportion to the product.)
const MOST: usize = 4000;
/// Bytes of a text that is looked at as a JSON document.
const LARGEST_DOCUMENT: usize = 4 << 20;
/// Documents in one another that are looked into.
const DOCUMENTS: u8 = 2;

/// The lines that show a difference.
pub(crate) fn lines(live: Option<&Value>, new: Option<&Value>, room: Room) -> Vec<Line> {
    let mut found = Found { lines: Vec::new(), room, documents: DOCUMENTS };
    match (live, new) {
        // Both are hidden: the plan says that they differ, and not in what.
        (Some(live), Some(new)) if live == new => {
            let text = format!("{} (differs)", brief(live, room.width));
            found.push(Side::Both, text);
        }
        (Some(live), Some(new)) => found.values("", live, new),
        (live, new) => {
            found.whole(Side::Old, "", live);
            found.whole(Side::New, "", new);
        }
    }
    let mut lines = found.lines;
    if lines.len() > room.lines {
        let more = lines.len() - room.lines;
        lines.truncate(room.lines);
        lines.push(Line { side: Side::Both, text: format!("… and {more} more lines") });
    }
    lines
}

/// A value on one line; a long one is cut in its middle.
pub(crate) fn brief(value: &Value, width: usize) -> String {
    let text = match value {
        Value::String(text) if text == HIDDEN => HIDDEN.to_owned(),
        value => masked(value, DOCUMENTS).to_string(),
    };
    cut(&visible::line(&text), width)
}

/// A value with what its inner keys call a credential hidden. The plan looks at a leaf's own
/// name, which tells nothing of what lies in a list or a document. `documents` in one another are
/// looked into.
fn masked(value: &Value, documents: u8) -> Value {
    let inner = |value: &Value| masked(value, documents);
    match value {
        Value::Array(items) => items.iter().map(inner).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let hide = names_credential(key.as_bytes()) && !value.is_boolean();
                (key.clone(), if hide { Value::from(HIDDEN) } else { inner(value) })
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::String(text) if documents > 0 => match document(text) {
            Some(document) => {
                let masked = masked(&document, documents - 1);
                if masked == document { value.clone() } else { masked.to_string().into() }
            }
            None => value.clone(),
        },
        value => value.clone(),
    }
}

/// A text in at most `width` characters: start, end and how long it is.
fn cut(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let head = width.saturating_sub(width / 4).max(1);
    let tail = width / 4;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end} ({count} characters)")
}

struct Found {
    lines: Vec<Line>,
    room: Room,
    /// Documents in one another that may still be looked into.
    documents: u8,
}

impl Found {
    fn push(&mut self, side: Side, text: impl AsRef<str>) {
        let text = visible::line(text.as_ref()).into_owned();
        self.lines.push(Line { side, text });
    }

    /// A whole value of one side.
    fn whole(&mut self, side: Side, place: &str, value: Option<&Value>) {
        let prefix = prefix(place);
        match value {
            None => self.push(side, format!("{prefix}{NOTHING}")),
            Some(value @ Value::String(text))
                if text.trim_end_matches('\n').contains('\n')
                    && masked(value, DOCUMENTS) == *value =>
            {
                for line in text.trim_end_matches('\n').split('\n') {
                    let line = cut(line, self.room.width);
                    self.push(side, format!("{prefix}{line}"));
                }
            }
            Some(value) => {
                let text = brief(value, self.room.width);
                self.push(side, format!("{prefix}{text}"));
            }
        }
    }

    fn values(&mut self, place: &str, live: &Value, new: &Value) {
        match (live, new) {
            (Value::String(live), Value::String(new)) => self.texts(place, live, new),
            (Value::Array(live), Value::Array(new)) => self.items(place, live, new),
            (Value::Object(live), Value::Object(new)) => {
                let mut keys: Vec<&String> = live.keys().chain(new.keys()).collect();
                keys.sort_unstable();
                keys.dedup();
                for key in keys {
                    let (old, wanted) = (live.get(key), new.get(key));
                    if old == wanted {
                        continue;
                    }
                    let place = inside(place, key);
                    // The outer leaf's name told nothing of what lies in the document.
                    if names_credential(key.as_bytes()) {
                        self.push(Side::Both, format!("{place}: {HIDDEN}"));
                    } else if let (Some(old), Some(wanted)) = (old, wanted) {
                        self.values(&place, old, wanted);
                    } else {
                        self.whole(Side::Old, &place, old);
                        self.whole(Side::New, &place, wanted);
                    }
                }
            }
            (live, new) => {
                self.whole(Side::Old, place, Some(live));
                self.whole(Side::New, place, Some(new));
            }
        }
    }

    fn items(&mut self, place: &str, live: &[Value], new: &[Value]) {
        let texts = |items: &[Value]| items.iter().map(Value::to_string).collect::<Vec<_>>();
        let (old, wanted) = (texts(live), texts(new));
        for (tag, old, wanted) in changes(&old, &wanted) {
            let (live, new) = (
                live.get(old.clone()).unwrap_or_default(),
                new.get(wanted.clone()).unwrap_or_default(),
            );
            let nested = |items: &[Value]| items.iter().all(|i| i.is_object() || i.is_array());
            let pairs = live.len() == new.len() && nested(live) && nested(new);
            match tag {
                DiffTag::Equal => {
                    for item in live {
                        self.whole(Side::Both, place, Some(item));
                    }
                }
                DiffTag::Replace if pairs => {
                    for (index, (live, new)) in old.zip(live.iter().zip(new)) {
                        self.values(&format!("{place}[{index}]"), live, new);
                    }
                }
                _ => {
                    for (side, items) in [(Side::Old, live), (Side::New, new)] {
                        for item in items {
                            self.whole(side, place, Some(item));
                        }
                    }
                }
            }
        }
    }

    fn texts(&mut self, place: &str, live: &str, new: &str) {
        if self.documents > 0
            && let (Some(old), Some(wanted)) = (document(live), document(new))
        {
            if old == wanted {
                let text = format!("{}(the same document, written otherwise)", prefix(place));
                self.push(Side::Both, text);
            } else {
                self.documents -= 1;
                self.values(place, &old, &wanted);
                self.documents += 1;
                return;
            }
        }
        let ends = |text: &str| text.len() - text.trim_end_matches('\n').len();
        if live.trim_end_matches('\n') == new.trim_end_matches('\n') {
            let (old, wanted) = (ends(live), ends(new));
            let prefix = prefix(place);
            self.push(Side::Old, format!("{prefix}(line breaks at the end: {old})"));
            self.push(Side::New, format!("{prefix}(line breaks at the end: {wanted})"));
            return;
        }
        if !live.contains('\n') && !new.contains('\n') {
            return self.pair(place, live, new, true);
        }
        let split = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
        let (old, wanted) = (split(live), split(new));
        let prefix = prefix(place);
        for (tag, from, to) in changes(&old, &wanted) {
            let (old, wanted) =
                (old.get(from).unwrap_or_default(), wanted.get(to).unwrap_or_default());
            match tag {
                DiffTag::Equal => {
                    for line in old {
                        let line = cut(line, self.room.width);
                        self.push(Side::Both, format!("{prefix}{line}"));
                    }
                }
                DiffTag::Replace if old.len() == wanted.len() => {
                    for (old, wanted) in old.iter().zip(wanted) {
                        self.pair(place, old, wanted, false);
                    }
                }
                _ => {
                    for (side, lines) in [(Side::Old, old), (Side::New, wanted)] {
                        for line in lines {
                            let line = cut(line, self.room.width);
                            self.push(side, format!("{prefix}{line}"));
                        }
                    }
                }
            }
        }
    }

    /// Two lines, cut to where they differ when they are long.
    fn pair(&mut self, place: &str, live: &str, new: &str, quoted: bool) {
        let prefix = prefix(place);
        let quote = |text: &str| {
            if quoted && text != HIDDEN { Value::from(text).to_string() } else { text.to_owned() }
        };
        let (live, new) = around(&quote(live), &quote(new), self.room.width);
        self.push(Side::Old, format!("{prefix}{live}"));
        self.push(Side::New, format!("{prefix}{new}"));
    }
}

fn prefix(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!("{place}: ") }
}

fn inside(place: &str, key: &str) -> String {
    let plain =
        !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    match (place.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{place}.{key}"),
        (_, false) => format!("{place}[{}]", Value::from(key)),
    }
}

/// A text as the JSON object or list that it holds.
fn document(text: &str) -> Option<Value> {
    let first = text.trim_start().as_bytes().first()?;
    if !matches!(first, b'{' | b'[') || text.len() > LARGEST_DOCUMENT {
        return None;
    }
    serde_json::from_str(text).ok()
}

type Range = std::ops::Range<usize>;

/// What differs between two lists, each with [`CONTEXT`] equal items around it.
fn changes(old: &[String], new: &[String]) -> Vec<(DiffTag, Range, Range)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    if old.len() - head - tail > MOST || new.len() - head - tail > MOST {
        return vec![(DiffTag::Replace, head..old.len() - tail, head..new.len() - tail)];
    }
    let ops = capture_diff_slices(Algorithm::Myers, old, new);
    let groups = group_diff_ops(ops, CONTEXT);
    groups.iter().flatten().map(similar::DiffOp::as_tag_tuple).collect()
}

/// Two texts, each cut to the part that differs, with [`AROUND`] characters before and after.
fn around(old: &str, new: &str, width: usize) -> (String, String) {
    let (a, b): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    if a.len() <= width && b.len() <= width {
        return (old.to_owned(), new.to_owned());
    }
    let head = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let rest = a.len().min(b.len()) - head;
    let tail = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let part = |chars: &[char]| {
        let (from, to) =
            (head.saturating_sub(AROUND), (chars.len() - tail + AROUND).min(chars.len()));
        let middle: String = chars.get(from..to).unwrap_or_default().iter().collect();
        let (before, after) =
            (if from > 0 { "…" } else { "" }, if to < chars.len() { "…" } else { "" });
        format!("{before}{}{after}", cut(&middle, width))
    };
    (part(&a), part(&b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals are passed")]
    fn shown(live: Option<Value>, new: Option<Value>) -> Vec<String> {
        lines(live.as_ref(), new.as_ref(), Room { width: 60, lines: 20 })
            .into_iter()
            .map(|line| {
                let sign = match line.side {
                    Side::Old => '-',
                    Side::New => '+',
                    Side::Both => ' ',
                };
                format!("{sign} {}", line.text)
            })
            .collect()
    }

    #[test]
    fn a_document_is_shown_by_its_inner_leaf() {
        let live = json!({"admin": {"mode": 432, "pad": "x".repeat(500)}, "list": [1, 2, 3]});
        let mut new = live.clone();
        new["admin"]["mode"] = json!(420);
        new["list"] = json!([1, 3]);
        let lines = shown(Some(live.to_string().into()), Some(new.to_string().into()));
        assert_eq!(
            lines,
            ["- admin.mode: 432", "+ admin.mode: 420", "  list: 1", "- list: 2", "  list: 3"]
        );
    }

    #[test]
    fn a_document_written_otherwise_says_so() {
        let live = r#"{"a": 1}"#.to_owned() + "\n\n";
        let lines = shown(Some(live.into()), Some("{\"a\": 1}".into()));
        assert_eq!(
            lines,
            [
                "  (the same document, written otherwise)",
                "- (line breaks at the end: 2)",
                "+ (line breaks at the end: 0)"
            ]
        );
    }

    #[test]
    fn a_credential_in_a_document_is_hidden() {
        let lines = shown(
            Some(r#"{"db": {"password": "marker-old", "host": "a"}}"#.into()),
            Some(r#"{"db": {"password": "marker-new", "host": "b"}}"#.into()),
        );
        assert!(!lines.concat().contains("marker"), "{lines:?}");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn lines_of_a_script_have_context() {
        let lines = shown(Some("a\nb\nc\nd\ne\n".into()), Some("a\nb\nX\nd\ne\n".into()));
        assert_eq!(lines, ["  b", "- c", "+ X", "  d"]);
    }

    #[test]
    fn a_long_text_is_cut_to_where_it_differs() {
        let (left, right) = ("l".repeat(500), "r".repeat(500));
        let lines = shown(
            Some(format!("{left}OLD{right}").into()),
            Some(format!("{left}NEW{right}").into()),
        );
        let (l, r) = ("l".repeat(AROUND), "r".repeat(AROUND));
        assert_eq!(lines, [format!("- …{l}OLD{r}…"), format!("+ …{l}NEW{r}…")]);
    }

    #[test]
    fn items_have_their_order() {
        let lines = shown(Some(json!(["--a", "--b", "--c"])), Some(json!(["--b", "--a", "--c"])));
        assert!(!lines.is_empty());
        let lines = shown(Some(json!([{"a": 1, "b": 2}])), Some(json!([{"a": 1, "b": 3}])));
        assert_eq!(lines, ["- [0].b: 2", "+ [0].b: 3"]);
        let lines = shown(None, Some(json!("x")));
        assert_eq!(lines, ["- (nothing)", "+ \"x\""]);
    }

    #[test]
    fn huge_values_are_quick_and_short() {
        let lines = |c: char, count: usize| {
            (0..count).fold(String::new(), |mut text, n| {
                text.push_str(&format!("{c}{n}\n"));
                text
            })
        };
        let (a, b) = (lines('a', 100_000), lines('b', 100_000));
        assert_eq!(shown(Some(a.into()), Some(b.into())).len(), 21);
        let (a, b) = ("\u{202e}".repeat(1 << 20), "</script>".repeat(100_000));
        for line in shown(Some(a.into()), Some(b.into())) {
            assert!(line.chars().count() < 600, "{}", line.len());
        }
    }
}
