//! The Go types of the built-in kinds, as far as merging asks about them.
//!
//! Helm takes patch metadata from the struct tags of its own client's types
//! (`NewPatchMetaFromStruct` in `pkg/kube/client.go`, `createPatch`), whatever server it talks to. The types
//! of the version it is built with are in `table.txt`; `patch-peer table` (`tests/tools`) makes
//! the file and describes its form.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::{LookupError, PatchMeta, Place, Schema, Schemas};

const TEXT: &str = include_str!("table.txt");

/// The kinds that Helm's own client has types for.
#[derive(Debug)]
pub struct Embedded {
    structs: Vec<Struct>,
    kinds: BTreeMap<(&'static str, &'static str), usize>,
}

/// The table in this program; read on first use, about a millisecond.
pub fn embedded() -> &'static Embedded {
    static TABLE: OnceLock<Embedded> = OnceLock::new();
    TABLE.get_or_init(|| Embedded::parse(TEXT))
}

impl Schemas for Embedded {
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        let number = *self.kinds.get(&(api_version, kind))?;
        self.structs.get(number)?;
        Some(Schema(Place::Go(TypeRef { table: self, of: &STRUCT, number: Some(number) })))
    }
}

#[derive(Debug)]
pub(super) struct Struct {
    pub(super) name: &'static str,
    /// Whether it reads JSON with code of its own.
    pub(super) custom: bool,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) holds: Type,
    meta: PatchMeta<'static>,
}

/// A Go type; names of structs are in the table.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Type {
    Scalar(&'static str),
    Pointer(Box<Self>),
    Slice(Box<Self>),
    Map(Box<Self>),
    Struct(usize),
}

/// The type of a kind itself, whose number [`TypeRef`] carries.
static STRUCT: Type = Type::Struct(usize::MAX);

/// A type of the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeRef<'a> {
    table: &'a Embedded,
    pub(super) of: &'a Type,
    /// Of a kind: its number, instead of the one in `of`.
    number: Option<usize>,
}

impl Type {
    /// `reflect.Kind`'s word.
    fn kind(&self) -> &'static str {
        match self {
            Self::Scalar(kind) => kind,
            Self::Pointer(_) => "ptr",
            Self::Slice(_) => "slice",
            Self::Map(_) => "map",
            Self::Struct(_) => "struct",
        }
    }

    fn parse(text: &'static str) -> Option<Self> {
        let mut characters = text.chars();
        let first = characters.next()?;
        let rest = characters.as_str();
        Some(match first {
            '*' => Self::Pointer(Box::new(Self::parse(rest)?)),
            '[' => Self::Slice(Box::new(Self::parse(rest)?)),
            '{' => Self::Map(Box::new(Self::parse(rest)?)),
            '#' => Self::Struct(rest.parse().ok()?),
            _ => Self::Scalar(scalar(text)?),
        })
    }
}

/// The letters of the table.
fn scalar(letter: &str) -> Option<&'static str> {
    Some(match letter {
        "s" => "string",
        "b" => "bool",
        "n" => "int",
        "i" => "int32",
        "l" => "int64",
        "y" => "uint8",
        "u" => "uint16",
        "v" => "uint32",
        "w" => "uint64",
        "d" => "float64",
        "a" => "interface",
        _ => return None,
    })
}

impl Embedded {
    /// Reads the table. Lines that are none are left out; a test holds that there are none.
    fn parse(text: &'static str) -> Self {
        let mut table = Self { structs: Vec::new(), kinds: BTreeMap::new() };
        for line in text.lines() {
            let mut words = line.split(' ');
            match words.next() {
                Some("T") => {
                    let word = words.next().unwrap_or_default();
                    let (name, custom) = match word.strip_suffix('!') {
                        Some(name) => (name, true),
                        None => (word, false),
                    };
                    let fields = words.filter_map(Field::parse).collect();
                    table.structs.push(Struct { name, custom, fields });
                }
                Some("K") => {
                    let words: Vec<&'static str> = words.collect();
                    if let [api_version, kind, number] = words[..]
                        && let Ok(number) = number.parse()
                    {
                        table.kinds.insert((api_version, kind), number);
                    }
                }
                _ => {}
            }
        }
        table
    }

    /// All kinds: apiVersion and kind, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.kinds.keys().copied()
    }
}

impl Field {
    fn parse(text: &'static str) -> Option<Self> {
        let (name, rest) = text.split_once('=')?;
        let (rest, merge_key) = rest.split_once('/').unwrap_or((rest, ""));
        let (holds, strategies) = rest.split_once(',').unwrap_or((rest, ""));
        let meta = PatchMeta { strategies, merge_key };
        Some(Self { name, holds: Type::parse(holds)?, meta })
    }

    /// Go's JSON finds a field whose name differs in case only. U+212A and U+017F fold to k and s.
    pub(super) fn folds_to(&self, asked: &str) -> bool {
        let fold = |c: char| match c {
            '\u{212a}' => 'k',
            '\u{17f}' => 's',
            other => other.to_ascii_lowercase(),
        };
        self.name.chars().map(fold).eq(asked.chars().map(fold))
    }
}

impl<'a> TypeRef<'a> {
    pub(super) fn kind(self) -> &'static str {
        self.of.kind()
    }

    /// The struct that this is.
    pub(super) fn structure(self) -> Option<&'a Struct> {
        match self.of {
            Type::Struct(number) => self.table.structs.get(self.number.unwrap_or(*number)),
            _ => None,
        }
    }

    fn field(self, name: &str) -> Result<&'a Field, LookupError> {
        let place = match self.of {
            Type::Pointer(to) => self.at(to),
            _ => self,
        };
        let Some(found) = place.structure() else {
            return Err(LookupError::NotStruct { kind: place.kind() });
        };
        let exact = found.fields.iter().find(|field| field.name == name);
        exact.or_else(|| found.fields.iter().find(|field| field.folds_to(name))).ok_or_else(|| {
            LookupError::NoField { name: found.name.to_owned(), field: quoted(name) }
        })
    }

    pub(super) fn at(self, of: &'a Type) -> Self {
        Self { table: self.table, of, number: None }
    }

    pub(super) fn object(self, name: &str) -> Result<(Self, PatchMeta<'a>), LookupError> {
        let field = self.field(name)?;
        Ok((self.at(&field.holds), field.meta))
    }

    pub(super) fn list(self, name: &str) -> Result<(Self, PatchMeta<'a>), LookupError> {
        let field = self.field(name)?;
        let items = match &field.holds {
            Type::Slice(items) if matches!(**items, Type::Slice(_)) => {
                return Err(LookupError::SliceOfSlice);
            }
            Type::Slice(items) => items,
            Type::Pointer(to) => match &**to {
                Type::Slice(items) => items,
                _ => to,
            },
            _ => return Err(LookupError::NotSlice { kind: self.kind() }),
        };
        Ok((self.at(items), field.meta))
    }
}

/// The inside of Go's `%q`.
fn quoted(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            control if control.is_ascii_control() => {
                out.push_str(&format!("\\x{:02x}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let table = embedded();
        let lines = |letter: &str| TEXT.lines().filter(|line| line.starts_with(letter)).count();
        assert_eq!(table.structs.len(), lines("T "));
        assert_eq!(table.kinds.len(), lines("K "));
        assert!(table.kinds.values().all(|number| *number < table.structs.len()));
        let words: usize = TEXT
            .lines()
            .filter(|line| line.starts_with("T "))
            .map(|line| line.split(' ').count() - 2)
            .sum();
        assert_eq!(table.structs.iter().map(|found| found.fields.len()).sum::<usize>(), words);
    }

    #[test]
    fn fields_are_found_as_go_finds_them() {
        let pod = embedded().schema("v1", "Pod").unwrap();
        let (spec, _) = pod.object("SPEC").unwrap();
        let (containers, meta) = spec.list("containers").unwrap();
        assert_eq!((meta.strategies, meta.merge_key), ("merge", "name"));
        let (_, meta) = containers.list("ports").unwrap();
        assert_eq!(meta.merge_key, "containerPort");
        let error = spec.object("nothing\"").unwrap_err().to_string();
        assert_eq!(
            error,
            r#"unable to find api field in struct PodSpec for the json field "nothing\"""#
        );
    }
}
