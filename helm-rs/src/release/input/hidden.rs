//! Whose records a part of the input may have held that does not read.

use bstr::ByteSlice;

use super::parts::{NAME_PREFIX, mentions_record, payloads};

/// The releases that something unreadable may have been a record of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// Any release's: it does not say.
    Any,
    /// These releases' only, each with its revision, and none when it is no record at all.
    Releases(Vec<(String, Option<i64>)>),
}

/// The key of a record's data, as YAML and JSON write it.
const KEYS: [&str; 2] = ["release:", "release\""];

impl Hidden {
    /// Told by the names of objects that stand in a text. `is_whole` is whether the text was not
    /// cut off: what does not even have the key `release`, or says anything else that records say
    /// of themselves, is then no record.
    pub(super) fn of_text(text: &[u8], is_whole: bool) -> Self {
        let mut found = Vec::new();
        for at in text.find_iter(NAME_PREFIX) {
            let name = text.get(at + NAME_PREFIX.len()..).unwrap_or_default();
            // A name that is cut off or damaged may have been any.
            let Some(named) = release_of(name) else { return Self::Any };
            if !found.contains(&named) {
                found.push(named);
            }
        }
        let names = found.len();
        // Names may be what is damaged: labels say the same once more.
        if text.contains_str("owner") {
            let versions = values(text, "version");
            let revisions = || versions.iter().filter_map(|version| version.parse().ok());
            for name in values(text, "name") {
                for revision in revisions() {
                    let of_labels = (name.clone(), Some(revision));
                    if !found.contains(&of_labels) {
                        found.push(of_labels);
                    }
                }
            }
        }
        let is_free =
            || is_whole && !mentions_record(text) && !KEYS.iter().any(|key| text.contains_str(key));
        if (names == 0 && !is_free()) || payloads(text) > names {
            return Self::Any;
        }
        Self::Releases(found)
    }

    /// Told by an object's head: its name and its labels. Where they contradict each other it may
    /// be what either says.
    pub(super) fn of_object(name: &str, labels: &[(String, String)]) -> Self {
        let label = |key: &str| labels.iter().find(|(of, _)| of == key).map(|(_, value)| value);
        let by_name = name.strip_prefix(NAME_PREFIX).and_then(|name| name.rsplit_once(".v"));
        let names = [label("name").map(String::as_str), by_name.map(|(name, _)| name)];
        let revisions = [
            label("version").and_then(|version| version.parse().ok()),
            by_name.and_then(|(_, revision)| revision.parse().ok()),
        ];
        let mut found = Vec::new();
        for name in names.into_iter().flatten() {
            for revision in revisions.into_iter().flatten() {
                found.push((name.to_owned(), Some(revision)));
            }
            if revisions == [None, None] {
                found.push((name.to_owned(), None));
            }
        }
        found.sort();
        found.dedup();
        if found.is_empty() { Self::Any } else { Self::Releases(found) }
    }

    /// What either may have been.
    pub(super) fn add(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Releases(found), Self::Releases(more)) => found.extend(more),
            (_, Self::Any) => *self = Self::Any,
            (Self::Any, _) => {}
        }
    }

    /// Whether it may have been a record at all.
    pub fn is_any_record(&self) -> bool {
        !matches!(self, Self::Releases(found) if found.is_empty())
    }

    /// Whether a record of a release may be missing whose revision fits; where it is not known it
    /// may fit.
    pub fn may_be(&self, release: &str, fits: impl Fn(i64) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::Releases(found) => {
                found.iter().any(|(name, revision)| name == release && revision.is_none_or(&fits))
            }
        }
    }
}

/// At most so many values of a key are looked at.
const MAX_VALUES: usize = 16;

/// The values of a key in a text that need not parse, where they can be a name or a number.
fn values(text: &[u8], key: &str) -> Vec<String> {
    let value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| text.get(before));
        if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'/') {
            return None;
        }
        let rest = text.get(at + key.len()..)?.trim_start_with(|c| matches!(c, '"' | '\'' | ' '));
        let rest = rest.strip_prefix(b":")?;
        let rest = rest.trim_start_with(|c| matches!(c, '"' | '\'' | ' '));
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let end = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let value = rest.get(..end)?.to_str().ok()?;
        (!value.is_empty() && !value.starts_with(NAME_PREFIX)).then(|| value.to_owned())
    };
    let mut found: Vec<String> = text.find_iter(key).filter_map(value).take(MAX_VALUES).collect();
    found.sort();
    found.dedup();
    found
}

/// Release and revision out of `NAME.vREVISION` and something that cannot be part of it.
fn release_of(text: &[u8]) -> Option<(String, Option<i64>)> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let end = text.iter().position(|byte| !is_part(byte))?;
    let ends = text.get(end)?;
    if !(ends.is_ascii_whitespace() || b"\"',}]\\".contains(ends)) {
        return None;
    }
    let name = text.get(..end)?.to_str().ok()?;
    let (name, revision) = name.rsplit_once(".v")?;
    Some((name.to_owned(), Some(revision.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::Hidden;

    #[test]
    fn names_in_texts() {
        for (text, is_whole, web, other) in [
            ("kind Secret\nname: sh.helm.release.v1.web.v3\n", true, true, false),
            ("{\"name\":\"sh.helm.release.v1.other.v3\",}", true, false, true),
            ("a: sh.helm.release.v1.other.v1\nb: sh.helm.release.v1.web.v3\n", true, true, true),
            ("a: sh.helm.release.v1.other.v1\nb: sh.helm.release.v1.we\n", true, true, true),
            ("a: sh.helm.release.v1.other.v1\nb: sh.helm.release.v1.w\0b.v1\n", true, true, true),
            // Its last digit may be missing.
            ("name: sh.helm.release.v1.other.v1", true, true, true),
            ("data: {release: x, y\n", true, true, true),
            ("kind Deployment\n", true, false, false),
            ("kind Deployment\nda", false, true, true),
        ] {
            let hidden = Hidden::of_text(text.as_bytes(), is_whole);
            assert_eq!(hidden.may_be("web", |_| true), web, "{text:?}");
            assert_eq!(hidden.may_be("other", |_| true), other, "{text:?}");
        }
        let hidden = Hidden::of_text(b"name: sh.helm.release.v1.web.v3\n", true);
        assert!(
            hidden.may_be("web", |revision| revision > 2)
                && !hidden.may_be("web", |revision| revision > 3)
        );
    }
}
