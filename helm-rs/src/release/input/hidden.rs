//! Whose records a part of the input may have held that does not read.

use bstr::ByteSlice;

use super::object::NAME_PREFIX;

/// The releases that something unreadable may have been a record of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// Any release's: it does not say.
    Any,
    /// These releases' only, each with its revision, and none when it is no record at all.
    Releases(Vec<(String, Option<i64>)>),
}

/// What every record's object has in its text: the key of its data, its type, its name.
const WORD: &[u8] = b"release";

impl Hidden {
    /// Told by the names of objects that stand in a text. `is_whole` is whether the text was not
    /// cut off: what does not even have the word `release` is then no record.
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
        if found.is_empty() && !(is_whole && text.find(WORD).is_none()) {
            return Self::Any;
        }
        Self::Releases(found)
    }

    /// Told by an object's head: its name, else its labels.
    pub(super) fn of_object(name: &str, labels: &[(String, String)]) -> Self {
        let label = |key: &str| labels.iter().find(|(of, _)| of == key).map(|(_, value)| value);
        let by_name = name.strip_prefix(NAME_PREFIX).and_then(|name| {
            let (name, revision) = name.rsplit_once(".v")?;
            Some((name.to_owned(), revision.parse().ok()))
        });
        let by_label = || {
            let revision = label("version").and_then(|version| version.parse().ok());
            Some((label("name")?.clone(), revision))
        };
        by_name.or_else(by_label).map_or(Self::Any, |named| Self::Releases(vec![named]))
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
