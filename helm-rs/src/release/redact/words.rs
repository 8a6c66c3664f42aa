//! What a release hides in one place, hidden wherever else it stands as a word of its own: in the
//! notes, and in the texts of its objects.

use std::fmt;

use base64::Engine as _;
use bstr::ByteSlice;
use goyaml::{Limits, Map, Value};

use super::{Around, HIDDEN, manifest, names_credential, parts};
use crate::manifest::split_manifests;
use crate::release::codec::GO;
use crate::release::record::Record;

/// Shorter words are not looked for: they stand in texts for other reasons.
const SHORTEST: usize = 4;
/// Shorter numbers are not looked for: they are ports and counts.
const SHORTEST_NUMBER: usize = 6;
/// Shorter lines of a text are not looked for.
const SHORTEST_LINE: usize = 8;
/// Words that credentials' keys often hold, and that are none.
const COMMON: [&[u8]; 7] = [b"auto", b"false", b"helm", b"none", b"null", b"true", b"default"];
/// What an object says with these is its address or its type, not a credential.
const ADDRESS: [&[u8]; 6] =
    [b"# Source:", b"apiVersion:", b"kind:", b"name:", b"namespace:", b"- name:"];

/// The credentials of a release, as words.
#[derive(Clone, Default)]
pub struct Words {
    /// What stands under a credential's key, in values and in Secrets. The longest first.
    named: Vec<Vec<u8>>,
    /// All that Secrets hold besides.
    held: Vec<Vec<u8>>,
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({}, {})", self.named.len(), self.held.len())
    }
}

impl Words {
    /// Those of a record: of its values, the user's and the chart's, and of the Secrets in its
    /// manifest and hooks, as far as these read.
    pub fn of_record(record: &Record) -> Self {
        let mut words = Self::default();
        let user = record.user_values().ok().flatten();
        let chart = record.chart().ok().and_then(|chart| chart.values);
        user.iter().chain(&chart).for_each(|map| words.add_values(map));
        let hooks = record.hooks().unwrap_or_default();
        let manifests = record.manifest().into_iter();
        for text in manifests.chain(hooks.into_iter().map(|hook| hook.manifest)) {
            for document in split_manifests(text.as_bytes()) {
                if document.contains_str("ecret")
                    && let Ok(value) = goyaml::from_yaml_exact(&document, &Limits::default())
                {
                    words.add_object(&value);
                }
            }
        }
        let own = [record.name(), record.namespace()];
        let own: Vec<Vec<u8>> = own.into_iter().flatten().map(String::into_bytes).collect();
        words.sorted(&own)
    }

    /// Those of values and of objects.
    pub fn of<'a>(
        values: impl IntoIterator<Item = &'a Map>,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Self {
        let mut words = Self::default();
        values.into_iter().for_each(|map| words.add_values(map));
        objects.into_iter().for_each(|object| words.add_object(object));
        words.sorted(&[])
    }

    /// A manifest as [`super::manifest`] shows it, and without the words that stand under a
    /// credential's key elsewhere. Addresses and types of objects stay.
    pub fn manifest(&self, text: &str) -> String {
        self.lines(super::manifest(text))
    }

    /// As [`Self::manifest`], for the text of one object.
    pub fn document(&self, text: &str) -> String {
        self.lines(super::document(text))
    }

    /// Notes without what the release hides elsewhere, and without what is a credential in any
    /// text.
    pub fn notes(&self, notes: &str) -> String {
        let mut text = notes.as_bytes().to_vec();
        for word in self.named.iter().chain(&self.held) {
            text = without(text, word);
        }
        super::text(&text.to_str_lossy())
    }

    fn lines(&self, text: String) -> String {
        if !self.named.iter().any(|word| text.as_bytes().contains_str(word)) {
            return text;
        }
        let mut out = Vec::with_capacity(text.len());
        for line in text.as_bytes().lines_with_terminator() {
            let begin = line.trim_start();
            if ADDRESS.iter().any(|address| begin.starts_with(address)) {
                out.extend_from_slice(line);
                continue;
            }
            let words = self.named.iter();
            out.extend(words.fold(line.to_vec(), |line, word| without(line, word)));
        }
        out.to_str_lossy().into_owned()
    }

    fn sorted(mut self, own: &[Vec<u8>]) -> Self {
        for words in [&mut self.named, &mut self.held] {
            words.retain(|word| is_told(word) && !own.contains(word));
            words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            words.dedup();
        }
        self
    }

    fn add_values(&mut self, map: &Map) {
        self.map(map, false);
    }

    fn map(&mut self, map: &Map, named: bool) {
        if manifest::is_secret(map) {
            return self.secret(map);
        }
        let around = Around::of(map, named);
        for (key, value) in map {
            self.value(value, around.names(key, value));
        }
    }

    fn value(&mut self, value: &Value, named: bool) {
        match value {
            Value::Int(_) | Value::Uint(_) | Value::Float(_) if named => {
                self.named.extend(goyaml::json::to_json(value).ok().map(Into::into));
            }
            Value::String(text) => {
                for part in parts(text) {
                    let part = text.get(part).unwrap_or_default();
                    push(part, &mut self.named);
                    if let Some((_, password)) = part.split_once_str(":") {
                        push(password, &mut self.named);
                    }
                }
                if named {
                    push(text, &mut self.named);
                }
            }
            Value::Seq(items) => items.iter().for_each(|item| self.value(item, named)),
            Value::Map(map) => self.map(map, named),
            _ => {}
        }
    }

    fn add_object(&mut self, object: &Value) {
        match object {
            Value::Map(map) if manifest::is_secret(map) || map.contains_key("stringData") => {
                self.secret(map);
            }
            Value::Map(map) => map.values().for_each(|value| self.add_object(value)),
            Value::Seq(items) => items.iter().for_each(|item| self.add_object(item)),
            _ => {}
        }
    }

    fn secret(&mut self, object: &Map) {
        for field in ["data", "stringData"] {
            let Some(data) = object.get(field).and_then(Value::as_map) else { continue };
            for (key, value) in data {
                let Some(text) = value.as_str() else { continue };
                let list = if names_credential(key) { &mut self.named } else { &mut self.held };
                push(text, list);
                if field == "data"
                    && let Ok(text) = GO.decode(text)
                {
                    push(&text, list);
                }
            }
        }
    }
}

/// Adds a text, and its lines.
fn push(text: &[u8], words: &mut Vec<Vec<u8>>) {
    let text = text.trim();
    words.push(text.to_vec());
    if text.contains(&b'\n') {
        let lines = text.lines().map(ByteSlice::trim).filter(|line| line.len() >= SHORTEST_LINE);
        words.extend(lines.map(<[u8]>::to_vec));
    }
}

fn is_told(word: &[u8]) -> bool {
    let is_number = word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    word.len() >= if is_number { SHORTEST_NUMBER } else { SHORTEST }
        && !COMMON.contains(&word)
        && word != HIDDEN.as_bytes()
}

/// A text without a word, where it is no part of a longer one.
fn without(text: Vec<u8>, word: &[u8]) -> Vec<u8> {
    if !text.contains_str(word) {
        return text;
    }
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || byte >= 0x80;
    let letter_at = |at: usize| text.get(at).is_some_and(|byte| is_letter(*byte));
    // A dot joins two letters only.
    let goes_on = |at: usize| {
        letter_at(at) || (text.get(at) == Some(&b'.') && letter_at(at + 1) && !text.is_empty())
    };
    let comes_before = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| Some((before, *text.get(before)?)));
        before.is_some_and(|(before, byte)| {
            is_letter(byte) || (byte == b'.' && before > 0 && letter_at(before - 1))
        })
    };
    let begins = word.first().is_some_and(|byte| is_letter(*byte));
    let ends = word.last().is_some_and(|byte| is_letter(*byte));
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in text.find_iter(word) {
        let end = at + word.len();
        if at < from || (begins && comes_before(at)) || (ends && goes_on(end)) {
            continue;
        }
        out.extend_from_slice(text.get(from..at).unwrap_or_default());
        out.extend_from_slice(HIDDEN.as_bytes());
        from = end;
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::Words;
    use crate::release::Record;

    #[test]
    fn what_is_hidden_in_one_place_is_hidden_in_all() {
        let record = serde_json::json!({
            "name": "web", "namespace": "shop", "version": 1,
            "config": {"db": {"password": "LEAK-one"}, "token": 8080, "auth": {"user": "web"}},
            "info": {"notes": "log in with LEAK-one, LEAK.two.\nuser shopper at web\n"},
            "manifest": "---\n# Source: a\nkind: Secret\napiVersion: v1\nstringData:\n  pw: LEAK.two\n  user: shopper\n---\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  a: x LEAK-one y\n  b: LEAK-one-more LEAK.two.x shopper 8080\n",
        });
        let record = Record::from_json(&record.to_string()).unwrap();
        let words = Words::of_record(&record);
        let notes = words.notes(&record.info().unwrap().notes);
        assert_eq!(notes, "log in with REDACTED, REDACTED.\nuser REDACTED at web\n");
        let shown = words.manifest(&record.manifest().unwrap());
        assert!(shown.contains("  a: x REDACTED y\n"), "{shown}");
        // A part of a longer word is not it, and a user's name is no credential.
        assert!(shown.contains("  b: LEAK-one-more LEAK.two.x shopper 8080\n"), "{shown}");
        assert_eq!(format!("{words:?}").find("LEAK"), None);
    }
}
