//! The fields of the built-in kinds: numbers on the wire, names and forms in JSON.
//!
//! `kinds.txt` is made from the Go types of k8s.io/api by `etcd-peer table` (`tests/tools`), which
//! describes its form. The crate k8s-pb has the messages, but no JSON: which fields are left out
//! when they are empty, which are flattened and which are written in a form of their own is in the
//! Go types alone.

use std::collections::BTreeMap;
use std::sync::OnceLock;

const TEXT: &str = include_str!("kinds.txt");

/// The table in this program; read on first use.
pub(super) fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| Table::parse(TEXT))
}

#[derive(Debug, Default)]
pub(super) struct Table {
    structs: Vec<Struct>,
    kinds: BTreeMap<(&'static str, &'static str), usize>,
}

/// A message's fields, ordered by number.
#[derive(Debug, Default)]
pub(super) struct Struct {
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    /// Its number on the wire.
    pub(super) number: u64,
    /// Its name in JSON; empty for a message whose fields stand in its place.
    pub(super) name: &'static str,
    pub(super) empty: Empty,
    pub(super) holds: Type,
}

/// When a field is left out of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Empty {
    /// Never.
    Kept,
    /// Go's `omitempty`: nothing, zero, false; a message never.
    Omitted,
    /// Go's `omitzero`: a message too.
    OmittedZero,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    /// Base64 in JSON.
    Bytes,
    Signed,
    Unsigned,
    Bool,
    Double,
    Float,
    /// RFC 3339, seconds.
    Time,
    /// RFC 3339, microseconds.
    MicroTime,
    /// As Go prints it.
    Duration,
    Quantity,
    IntOrString,
    /// JSON within the message's only field.
    Raw,
    /// A message of nothing but a list of texts, which JSON has bare.
    Texts,
    Message(usize),
    Pointer(Box<Self>),
    List(Box<Self>),
    /// From text to this.
    Map(Box<Self>),
}

impl Table {
    /// The number of a kind's message.
    pub(super) fn kind(&self, api_version: &str, kind: &str) -> Option<usize> {
        self.kinds.get(&(api_version, kind)).copied()
    }

    /// The message that every object's head is.
    pub(super) fn metadata(&self) -> Option<usize> {
        let fields = &self.structs.get(self.kind("v1", "ConfigMap")?)?.fields;
        let metadata = fields.iter().find(|field| field.name == "metadata")?;
        match metadata.holds {
            Type::Message(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn fields(&self, number: usize) -> &[Field] {
        self.structs.get(number).map_or(&[], |it| it.fields.as_slice())
    }

    /// Reads the table. Lines that are none are left out; a test holds that there are none.
    fn parse(text: &'static str) -> Self {
        let mut table = Self::default();
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next() {
                Some("T") => {
                    let fields = words.filter_map(Field::parse).collect();
                    table.structs.push(Struct { fields });
                }
                Some("K") => {
                    if let (Some(version), Some(kind), Some(Ok(number))) =
                        (words.next(), words.next(), words.next().map(str::parse))
                    {
                        table.kinds.insert((version, kind), number);
                    }
                }
                _ => {}
            }
        }
        table
    }
}

impl Field {
    /// `NUMBER:NAME=[?|!]TYPE`.
    fn parse(word: &'static str) -> Option<Self> {
        let (number, rest) = word.split_once(':')?;
        let (name, holds) = rest.split_once('=')?;
        let (empty, holds) = match holds.split_at_checked(1)? {
            ("?", holds) => (Empty::Omitted, holds),
            ("!", holds) => (Empty::OmittedZero, holds),
            _ => (Empty::Kept, holds),
        };
        Some(Self { number: number.parse().ok()?, name, empty, holds: Type::parse(holds)? })
    }
}

impl Type {
    fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.split_at_checked(1)?;
        let below = || Some(Box::new(Self::parse(rest)?));
        Some(match first {
            "*" => Self::Pointer(below()?),
            "[" => Self::List(below()?),
            "{" => Self::Map(below()?),
            "#" => Self::Message(rest.parse().ok()?),
            _ if !rest.is_empty() => return None,
            "s" => Self::Text,
            "y" => Self::Bytes,
            "i" => Self::Signed,
            "u" => Self::Unsigned,
            "b" => Self::Bool,
            "d" => Self::Double,
            "f" => Self::Float,
            "t" => Self::Time,
            "m" => Self::MicroTime,
            "D" => Self::Duration,
            "Q" => Self::Quantity,
            "I" => Self::IntOrString,
            "R" => Self::Raw,
            "X" => Self::Texts,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{TEXT, Type, table};

    #[test]
    fn every_line_reads() {
        let table = table();
        let words = |kind: &'static str| {
            TEXT.lines()
                .filter(move |line| line.starts_with(kind))
                .flat_map(|line| line.split(' ').skip(1))
        };
        let fields: usize = table.structs.iter().map(|it| it.fields.len()).sum();
        assert_eq!(fields, words("T").count());
        assert_eq!(table.kinds.len() * 3, words("K").count());
        assert!(table.kind("apps/v1", "Deployment").is_some());
        assert!(table.metadata().is_some());
        for field in table.structs.iter().flat_map(|it| &it.fields) {
            let mut holds = &field.holds;
            while let Type::Pointer(below) | Type::List(below) | Type::Map(below) = holds {
                holds = below;
            }
            if let Type::Message(number) = holds {
                assert!(*number < table.structs.len(), "{}", field.name);
            }
        }
        assert!(table.kinds.values().all(|number| *number < table.structs.len()));
    }
}
