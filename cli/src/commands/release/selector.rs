//! What `list` lets through: label selectors as `labels.Parse` of apimachinery reads them, and
//! names by regular expression.

use std::collections::BTreeSet;

use helm_rs::release::NameFilter;

/// A regular expression on names, with Go's syntax.
pub(super) type Filter = NameFilter;

/// Requirements on labels, all of which must hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selector(Vec<Requirement>);

#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Debug, PartialEq, Eq)]
enum Rule {
    Exists,
    Missing,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
}

impl Selector {
    /// Reads `key`, `!key`, `key=value`, `key==value`, `key!=value`, `key in (a,b)` and
    /// `key notin (a,b)`, separated by commas.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for part in split(text) {
            let part = part.trim();
            if part.is_empty() && text.trim().is_empty() {
                continue;
            }
            requirements.push(
                requirement(part)
                    .ok_or_else(|| format!("unable to parse requirement: {part:?}"))?,
            );
        }
        Ok(Self(requirements))
    }

    /// Whether labels meet all requirements.
    pub(super) fn matches(&self, labels: &[(String, String)]) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels.iter().find(|(key, _)| *key == requirement.key).map(|(_, v)| v);
            match &requirement.rule {
                Rule::Exists => value.is_some(),
                Rule::Missing => value.is_none(),
                Rule::In(values) => value.is_some_and(|value| values.contains(value)),
                Rule::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            }
        })
    }
}

/// At commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0usize;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

fn requirement(part: &str) -> Option<Requirement> {
    let one = |value: &str| BTreeSet::from([value.trim().to_owned()]);
    let (key, rule) = if let Some(key) = part.strip_prefix('!') {
        (key, Rule::Missing)
    } else if let Some((key, value)) = part.split_once("!=") {
        (key, Rule::NotIn(one(value)))
    } else if let Some((key, value)) = part.split_once("==") {
        (key, Rule::In(one(value)))
    } else if let Some((key, value)) = part.split_once('=') {
        (key, Rule::In(one(value)))
    } else if let Some(list) = part.strip_suffix(')') {
        let (head, list) = list.split_once('(')?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        let (key, word) = head.trim().rsplit_once(char::is_whitespace)?;
        match word {
            "in" => (key, Rule::In(values)),
            "notin" => (key, Rule::NotIn(values)),
            _ => return None,
        }
    } else {
        (part, Rule::Exists)
    };
    let key = key.trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
    (!key.is_empty() && key.chars().all(fits)).then(|| Requirement { key: key.to_owned(), rule })
}

#[cfg(test)]
mod tests {
    use super::Selector;

    #[test]
    fn requirements() {
        let labels = [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())];
        for (selector, expected) in [
            ("", true),
            ("a", true),
            ("!a", false),
            ("a=1,b==2", true),
            ("a!=1", false),
            ("c!=1", true),
            ("a in (1, 3)", true),
            ("a notin (1,3)", false),
            ("b=", false),
        ] {
            assert_eq!(Selector::parse(selector).unwrap().matches(&labels), expected, "{selector}");
        }
        assert!(Selector::parse("a,").is_err());
        assert!(Selector::parse("a b").is_err());
    }
}
