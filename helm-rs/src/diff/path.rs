//! Places in structured data.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};
use goyaml::Value;

/// A place in an object.
///
/// ```
/// use helm_rs::diff::{LeafPath, Step};
///
/// let path = LeafPath(vec![
///     Step::Key("containers".into()),
///     Step::Item(vec![("name".into(), "agent".into())]),
///     Step::Key("ca.crt".into()),
///     Step::Index(0),
/// ]);
/// assert_eq!(path.to_string(), r#"containers[name=agent]["ca.crt"][0]"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafPath(pub Vec<Step>);

/// One step of a [`LeafPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// Into a mapping.
    Key(BString),
    /// Into a sequence, from 0.
    Index(usize),
    /// To the item of a sequence with these fields: its merge key.
    Item(Vec<(BString, BString)>),
    /// The order of a sequence whose items have merge keys. Old and new value of such a change
    /// are the items' keys; no value stands there.
    Order,
}

impl LeafPath {
    /// The value at this place.
    pub fn find<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.as_seq()?.get(*index),
            Step::Item(keys) => value.as_seq()?.iter().find(|item| has_keys(item, keys)),
            Step::Order => None,
        })
    }

    /// The value at this place, to be changed.
    pub fn find_mut<'a>(&self, root: &'a mut Value) -> Option<&'a mut Value> {
        self.0.iter().try_fold(root, |value, step| match step {
            Step::Key(key) => value.as_map_mut()?.get_mut(key),
            Step::Index(index) => value.as_seq_mut()?.get_mut(*index),
            Step::Item(keys) => value.as_seq_mut()?.iter_mut().find(|item| has_keys(item, keys)),
            Step::Order => None,
        })
    }

    /// Whether this place is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

/// A merge key's value as text; `None` when it is no scalar.
pub(super) fn key_text(value: &Value) -> Option<BString> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Int(number) => Some(number.to_string().into()),
        Value::Uint(number) => Some(number.to_string().into()),
        Value::Float(number) => Some(goyaml::number::format_json(*number)?.into()),
        Value::Bool(_) | Value::Null | Value::Seq(_) | Value::Map(_) => None,
    }
}

fn has_keys(item: &Value, keys: &[(BString, BString)]) -> bool {
    keys.iter().all(|(name, text)| match item.get(name) {
        Some(value) => key_text(value).as_ref() == Some(text),
        None => text.is_empty(),
    })
}

impl fmt::Display for LeafPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if is_plain(key.as_ref()) => {
                    let dot = if at == 0 { "" } else { "." };
                    write!(f, "{dot}{key}")?;
                }
                Step::Key(key) => write!(f, "[{}]", crate::gotext::quote(key))?,
                Step::Item(keys) => {
                    f.write_str("[")?;
                    // A part of the key that this item does not have says nothing.
                    let present = keys.iter().filter(|(_, text)| !text.is_empty());
                    for (place, (name, text)) in present.enumerate() {
                        let comma = if place == 0 { "" } else { "," };
                        if is_value(text.as_ref()) {
                            write!(f, "{comma}{name}={text}")?;
                        } else {
                            write!(f, "{comma}{name}={}", crate::gotext::quote(text))?;
                        }
                    }
                    f.write_str("]")?;
                }
                Step::Order => f.write_str("[order]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(key: &BStr) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn is_value(text: &BStr) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b':'))
}
