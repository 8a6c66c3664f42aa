//! A fast answer to "are these values valid?" for schemas that use only common keywords.
//!
//! Compiling a chart's schema takes longer than all the rest of a render, and nearly always the
//! values are valid. This module decides that case on its own. Whenever it is not sure (a keyword
//! it does not know, a schema that may be malformed, values that do not fit) it says so, and the
//! schema library decides and words the report.

mod read;

use bstr::ByteSlice;
use goyaml::{Map, Value};
use serde_json::Value as Json;

/// Levels of schemas and references that are followed.
const MAX_DEPTH: usize = 100;

/// Integers up to here are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether values are valid, if that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Valid,
    Invalid,
    Unknown,
}

use Verdict::{Invalid, Unknown, Valid};

/// The place of a schema in [`Common::nodes`].
type Id = u32;

/// A schema that uses only common keywords.
#[derive(Debug, Default)]
pub(super) struct Common {
    nodes: Vec<Node>,
    root: Id,
    /// Names of properties, in one text, and their schemas. Those of one schema follow each other,
    /// sorted.
    names: String,
    properties: Vec<((u32, u32), Id)>,
}

/// A schema or a part of one.
#[derive(Debug, Default)]
struct Node {
    /// `false`: nothing is valid.
    never: bool,
    /// Empty: all.
    types: Types,
    /// Range in [`Common::properties`].
    properties: Option<(u32, u32)>,
    /// `additionalProperties`
    others: Option<Id>,
    items: Option<Id>,
    rare: Option<Box<Rare>>,
}

/// What most schemas do not say.
#[derive(Debug, Default)]
struct Rare {
    /// `$defs` and `definitions`, as [`Node::properties`].
    definitions: [(u32, u32); 2],
    required: Vec<String>,
    /// `enum`
    allowed: Option<Vec<Json>>,
    /// `const`
    constant: Option<Json>,
    /// Lower, upper, lower exclusive, upper exclusive.
    bounds: [Option<f64>; 4],
    /// Lower and upper for characters, items, properties.
    sizes: [Option<u64>; 6],
    any_of: Vec<Id>,
    all_of: Vec<Id>,
    one_of: Vec<Id>,
    reference: Option<Id>,
}

/// A set of types.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Types(u8);

impl Types {
    const NULL: Self = Self(1);
    const BOOLEAN: Self = Self(2);
    const INTEGER: Self = Self(4);
    const NUMBER: Self = Self(8);
    const STRING: Self = Self(16);
    const ARRAY: Self = Self(32);
    const OBJECT: Self = Self(64);

    fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// The types that a value has.
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::String(_) => Self::STRING,
            Value::Seq(_) => Self::ARRAY,
            Value::Map(_) => Self::OBJECT,
            Value::Float(number) if number.fract() != 0.0 => Self::NUMBER,
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => Self::INTEGER.with(Self::NUMBER),
        }
    }

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// A part of the values.
#[derive(Clone, Copy)]
enum Instance<'a> {
    Map(&'a Map),
    Other(&'a Value),
}

impl<'a> From<&'a Value> for Instance<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Map(map) => Self::Map(map),
            other => Self::Other(other),
        }
    }
}

/// Gives up on the first keyword that is not certainly satisfied.
macro_rules! require {
    ($verdict:expr) => {
        match $verdict {
            Valid => {}
            other => return other,
        }
    };
}

const fn verdict(truth: bool) -> Verdict {
    if truth { Valid } else { Invalid }
}

impl Common {
    /// Reads a schema that is well formed and uses only common keywords.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        read::read(text)
    }

    /// Whether values are certainly valid.
    pub(super) fn is_surely_valid(&self, values: &Map) -> bool {
        self.check(self.root, Instance::Map(values), 0) == Valid
    }

    fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    fn name(&self, (start, end): (u32, u32)) -> &[u8] {
        self.names.as_bytes().get(start as usize..end as usize).unwrap_or_default()
    }

    fn property(&self, (start, end): (u32, u32), name: &[u8]) -> Option<Id> {
        let own = self.properties.get(start as usize..end as usize)?;
        let at = own.binary_search_by(|(own, _)| self.name(*own).cmp(name)).ok()?;
        own.get(at).map(|(_, id)| *id)
    }

    /// What a local reference names; none also where it names something that is no schema.
    fn locate(&self, pointer: &str) -> Option<Id> {
        let mut id = self.root;
        if pointer.is_empty() {
            return Some(id);
        }
        let mut words = pointer.strip_prefix('/')?.split('/');
        while let Some(word) = words.next() {
            let node = self.node(id)?;
            let rare = || node.rare.as_ref();
            let place = |all: &[Id], word: &str| {
                let digits = word.bytes().all(|b| b.is_ascii_digit());
                let exact = digits && (word == "0" || !word.starts_with('0'));
                all.get(word.parse::<usize>().ok().filter(|_| exact)?).copied()
            };
            let mut named = |range: (u32, u32)| {
                let name = words.next().filter(|name| !name.contains(['~', '%']))?;
                self.property(range, name.as_bytes())
            };
            id = match word {
                "properties" => named(node.properties?)?,
                "$defs" => named(rare()?.definitions[0])?,
                "definitions" => named(rare()?.definitions[1])?,
                "items" => node.items?,
                "additionalProperties" => node.others?,
                "anyOf" => place(&rare()?.any_of, words.next()?)?,
                "allOf" => place(&rare()?.all_of, words.next()?)?,
                "oneOf" => place(&rare()?.one_of, words.next()?)?,
                _ => return None,
            };
        }
        Some(id)
    }

    fn check(&self, id: Id, instance: Instance<'_>, depth: usize) -> Verdict {
        let Some(node) = self.node(id).filter(|_| depth <= MAX_DEPTH) else { return Unknown };
        if node.never {
            return Invalid;
        }
        let types = match instance {
            Instance::Map(_) => Types::OBJECT,
            Instance::Other(value) => Types::of(value),
        };
        if node.types != Types::default() {
            require!(verdict(node.types.meets(types)));
        }
        match instance {
            Instance::Map(map) => require!(self.object(node, map, depth)),
            Instance::Other(Value::Seq(items)) => {
                if let Some(schema) = node.items {
                    for item in items {
                        require!(self.check(schema, item.into(), depth + 1));
                    }
                }
            }
            Instance::Other(_) => {}
        }
        node.rare.as_ref().map_or(Valid, |rare| self.rare(rare, instance, depth))
    }

    fn object(&self, node: &Node, map: &Map, depth: usize) -> Verdict {
        if node.properties.is_none() && node.others.is_none() {
            return Valid;
        }
        for (key, value) in map {
            // Text that is no UTF-8 reaches the library in another form.
            if key.to_str().is_err() {
                return Unknown;
            }
            let property = node.properties.and_then(|range| self.property(range, key));
            if let Some(schema) = property.or(node.others) {
                require!(self.check(schema, value.into(), depth + 1));
            }
        }
        Valid
    }

    fn rare(&self, rare: &Rare, instance: Instance<'_>, depth: usize) -> Verdict {
        let [characters, more_characters, items, more_items, entries, more_entries] = rare.sizes;
        match instance {
            Instance::Map(map) => {
                require!(verdict(rare.required.iter().all(|name| map.contains_key(name))));
                require!(size(entries, more_entries, map.len()));
            }
            Instance::Other(Value::Seq(all)) => require!(size(items, more_items, all.len())),
            Instance::Other(Value::String(text)) => {
                if characters.is_some() || more_characters.is_some() {
                    let Ok(text) = text.to_str() else { return Unknown };
                    require!(size(characters, more_characters, text.chars().count()));
                }
            }
            Instance::Other(value) => require!(number(&rare.bounds, value)),
        }
        if let Some(allowed) = &rare.allowed {
            require!(one_equal(allowed, instance));
        }
        if let Some(wanted) = &rare.constant {
            require!(one_equal(std::slice::from_ref(wanted), instance));
        }
        for &schema in rare.reference.iter().chain(&rare.all_of) {
            require!(self.check(schema, instance, depth + 1));
        }
        let verdicts = |all: &[Id]| -> Vec<Verdict> {
            all.iter().map(|&schema| self.check(schema, instance, depth + 1)).collect()
        };
        if !rare.any_of.is_empty() {
            let verdicts = verdicts(&rare.any_of);
            if !verdicts.contains(&Valid) {
                return if verdicts.contains(&Unknown) { Unknown } else { Invalid };
            }
        }
        if !rare.one_of.is_empty() {
            let verdicts = verdicts(&rare.one_of);
            if verdicts.contains(&Unknown) {
                return Unknown;
            }
            require!(verdict(verdicts.iter().filter(|&&v| v == Valid).count() == 1));
        }
        Valid
    }
}

fn number(bounds: &[Option<f64>; 4], value: &Value) -> Verdict {
    if bounds.iter().all(Option::is_none) {
        return Valid;
    }
    let Some(number) = value.as_f64() else { return Valid };
    if number.abs() >= EXACT || number.is_nan() {
        return Unknown;
    }
    let [minimum, maximum, above, below] = *bounds;
    verdict(
        minimum.is_none_or(|bound| number >= bound)
            && maximum.is_none_or(|bound| number <= bound)
            && above.is_none_or(|bound| number > bound)
            && below.is_none_or(|bound| number < bound),
    )
}

fn size(minimum: Option<u64>, maximum: Option<u64>, size: usize) -> Verdict {
    let size = size as u64;
    verdict(minimum.is_none_or(|bound| size >= bound) && maximum.is_none_or(|bound| size <= bound))
}

/// Whether a value equals one of some scalars.
fn one_equal(allowed: &[Json], value: Instance<'_>) -> Verdict {
    let Instance::Other(value) = value else { return Invalid };
    let equal = |wanted: &Json| match (wanted, value) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(wanted), Value::Bool(truth)) => wanted == truth,
        (Json::String(wanted), Value::String(text)) => wanted.as_bytes() == text.as_bytes(),
        (Json::Number(wanted), value) => {
            wanted.as_f64().is_some_and(|wanted| value.as_f64() == Some(wanted))
        }
        _ => false,
    };
    verdict(allowed.iter().any(equal))
}
