//! Reading a schema's text straight into its checks, without the document in between: most of a
//! chart's schema is words that nobody looks at again.
//!
//! Reading fails for whatever the quick check does not understand for certain; the schema library
//! reads the text then.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

use super::{Common, EXACT, Id, MAX_DEPTH, Node, Rare, Types};

/// Reads a schema that is well formed and uses only keywords that [`super`] understands.
pub(super) fn read(text: &[u8]) -> Option<Common> {
    let text = std::str::from_utf8(text).ok()?;
    let mut builder = Builder::default();
    let mut input = serde_json::Deserializer::from_str(text);
    let root = Schema { builder: &mut builder, depth: 0 }.deserialize(&mut input).ok()?;
    input.end().ok()?;
    let draft_7 = match builder.draft.as_deref() {
        None
        | Some(
            "https://json-schema.org/draft/2020-12/schema"
            | "https://json-schema.org/draft/2020-12/schema#",
        ) => false,
        Some(
            "http://json-schema.org/draft-07/schema"
            | "http://json-schema.org/draft-07/schema#"
            | "https://json-schema.org/draft-07/schema"
            | "https://json-schema.org/draft-07/schema#",
        ) => true,
        Some(_) => return None,
    };
    // Before 2019 a reference switches off everything beside it.
    if draft_7 && builder.has_beside_reference {
        return None;
    }
    let mut common = builder.common;
    common.root = root;
    for (node, pointer) in builder.references {
        let target = common.locate(&pointer)?;
        common.nodes.get_mut(node as usize)?.rare.as_mut()?.reference = Some(target);
    }
    Some(common)
}

#[derive(Default)]
struct Builder {
    common: Common,
    draft: Option<String>,
    /// Nodes with a reference, and the pointer in it.
    references: Vec<(Id, String)>,
    has_beside_reference: bool,
}

/// Keywords; a schema may have each of them once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keyword {
    Draft,
    Type,
    Properties,
    Definitions(usize),
    Items,
    AdditionalProperties,
    AnyOf,
    AllOf,
    OneOf,
    Required,
    Enum,
    Const,
    Bound(usize),
    Size(usize),
    Reference,
    Title,
    Description,
    Comment,
    Default,
    Examples,
    Flag(u32),
    /// No keyword of any draft: it has no meaning for validation.
    None,
    /// A keyword that is not handled here.
    Unknown,
}

impl Keyword {
    fn new(word: &str) -> Self {
        match word {
            "$schema" => Self::Draft,
            "type" => Self::Type,
            "properties" => Self::Properties,
            "$defs" => Self::Definitions(0),
            "definitions" => Self::Definitions(1),
            "items" => Self::Items,
            "additionalProperties" => Self::AdditionalProperties,
            "anyOf" => Self::AnyOf,
            "allOf" => Self::AllOf,
            "oneOf" => Self::OneOf,
            "required" => Self::Required,
            "enum" => Self::Enum,
            "const" => Self::Const,
            "minimum" => Self::Bound(0),
            "maximum" => Self::Bound(1),
            "exclusiveMinimum" => Self::Bound(2),
            "exclusiveMaximum" => Self::Bound(3),
            "minLength" => Self::Size(0),
            "maxLength" => Self::Size(1),
            "minItems" => Self::Size(2),
            "maxItems" => Self::Size(3),
            "minProperties" => Self::Size(4),
            "maxProperties" => Self::Size(5),
            "$ref" => Self::Reference,
            "title" => Self::Title,
            "description" => Self::Description,
            "$comment" => Self::Comment,
            "default" => Self::Default,
            "examples" => Self::Examples,
            "readOnly" => Self::Flag(0),
            "writeOnly" => Self::Flag(1),
            "deprecated" => Self::Flag(2),
            "$id"
            | "id"
            | "$anchor"
            | "$dynamicRef"
            | "$dynamicAnchor"
            | "$recursiveRef"
            | "$recursiveAnchor"
            | "$vocabulary"
            | "patternProperties"
            | "propertyNames"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "prefixItems"
            | "additionalItems"
            | "contains"
            | "minContains"
            | "maxContains"
            | "uniqueItems"
            | "multipleOf"
            | "pattern"
            | "format"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema" => Self::Unknown,
            _ => Self::None,
        }
    }

    /// A bit of its own, none for what may be repeated.
    const fn bit(self) -> u64 {
        let place = match self {
            Self::None | Self::Unknown => return 0,
            Self::Draft => 0,
            Self::Type => 1,
            Self::Properties => 2,
            Self::Items => 3,
            Self::AdditionalProperties => 4,
            Self::AnyOf => 5,
            Self::AllOf => 6,
            Self::OneOf => 7,
            Self::Required => 8,
            Self::Enum => 9,
            Self::Const => 10,
            Self::Reference => 11,
            Self::Title => 12,
            Self::Description => 13,
            Self::Comment => 14,
            Self::Default => 15,
            Self::Examples => 16,
            Self::Definitions(which) => 20 + which as u64,
            Self::Bound(which) => 24 + which as u64,
            Self::Size(which) => 32 + which as u64,
            Self::Flag(which) => 40 + which as u64,
        };
        1 << place
    }

    const fn may_stand_beside_reference(self) -> bool {
        matches!(self, Self::Reference | Self::Title | Self::Description)
    }
}

/// A word that is looked at and not kept.
struct Word<F>(F);

impl<'de, T, F: FnOnce(&str) -> Option<T>> DeserializeSeed<'de> for Word<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<T, D::Error> {
        input.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> Option<T>> Visitor<'_> for Word<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a known word")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
        (self.0)(word).ok_or_else(unsure)
    }
}

fn unsure<E: Error>() -> E {
    E::custom("not certain")
}

/// A schema, which becomes a node.
struct Schema<'b> {
    builder: &'b mut Builder,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Schema<'_> {
    type Value = Id;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Id, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Schema<'_> {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema")
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Id, E> {
        Ok(self.builder.add(Node { never: !truth, ..Node::default() }))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Id, A::Error> {
        let Self { builder, depth } = self;
        if depth >= MAX_DEPTH {
            return Err(unsure());
        }
        let below = depth + 1;
        let mut node = Node::default();
        let mut rare = Rare::default();
        let mut is_rare = false;
        let mut pointer = None;
        let mut seen = 0;
        let mut is_alone = true;
        while let Some(keyword) = map.next_key_seed(Word(|word: &str| Some(Keyword::new(word))))? {
            if seen & keyword.bit() != 0 {
                return Err(unsure());
            }
            seen |= keyword.bit();
            is_alone &= keyword.may_stand_beside_reference();
            match keyword {
                Keyword::Draft if depth == 0 => builder.draft = Some(map.next_value()?),
                Keyword::Draft | Keyword::Unknown => return Err(unsure()),
                Keyword::Type => node.types = map.next_value_seed(TypesSeed)?,
                Keyword::Properties => {
                    node.properties =
                        Some(map.next_value_seed(Properties { builder, depth: below })?);
                }
                Keyword::Definitions(which) => {
                    let range = map.next_value_seed(Properties { builder, depth: below })?;
                    if let Some(place) = rare.definitions.get_mut(which) {
                        *place = range;
                    }
                    is_rare = true;
                }
                Keyword::Items => {
                    node.items = Some(map.next_value_seed(Schema { builder, depth: below })?);
                }
                Keyword::AdditionalProperties => {
                    node.others = Some(map.next_value_seed(Schema { builder, depth: below })?);
                }
                Keyword::AnyOf | Keyword::AllOf | Keyword::OneOf => {
                    let all = map.next_value_seed(Schemas { builder, depth: below })?;
                    is_rare = true;
                    match keyword {
                        Keyword::AnyOf => rare.any_of = all,
                        Keyword::AllOf => rare.all_of = all,
                        _ => rare.one_of = all,
                    }
                }
                Keyword::Required => {
                    rare.required = map.next_value()?;
                    is_rare = true;
                    let repeats = |(at, name)| rare.required.iter().skip(at + 1).any(|n| n == name);
                    if rare.required.iter().enumerate().any(repeats) {
                        return Err(unsure());
                    }
                }
                Keyword::Enum => {
                    let allowed: Vec<Json> = map.next_value()?;
                    if allowed.is_empty() || !allowed.iter().all(is_plain) {
                        return Err(unsure());
                    }
                    rare.allowed = Some(allowed);
                    is_rare = true;
                }
                Keyword::Const => {
                    let wanted = Some(map.next_value()?).filter(is_plain);
                    rare.constant = Some(wanted.ok_or_else(unsure)?);
                    is_rare = true;
                }
                Keyword::Bound(which) => {
                    let bound = Some(map.next_value::<Json>()?).filter(is_exact);
                    let bound = bound.and_then(|bound| bound.as_f64()).ok_or_else(unsure)?;
                    if let Some(place) = rare.bounds.get_mut(which) {
                        *place = Some(bound);
                    }
                    is_rare = true;
                }
                Keyword::Size(which) => {
                    let size = map.next_value::<Json>()?.as_u64().ok_or_else(unsure)?;
                    if let Some(place) = rare.sizes.get_mut(which) {
                        *place = Some(size);
                    }
                    is_rare = true;
                }
                Keyword::Reference => {
                    let reference: Cow<'de, str> = map.next_value()?;
                    pointer = Some(reference.strip_prefix('#').ok_or_else(unsure)?.to_owned());
                    is_rare = true;
                }
                Keyword::Title | Keyword::Description | Keyword::Comment => {
                    map.next_value_seed(Word(|_: &str| Some(())))?;
                }
                Keyword::Examples => drop(map.next_value::<Vec<IgnoredAny>>()?),
                Keyword::Flag(_) => drop(map.next_value::<bool>()?),
                Keyword::Default | Keyword::None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        builder.has_beside_reference |= pointer.is_some() && !is_alone;
        node.rare = is_rare.then(|| Box::new(rare));
        let id = builder.add(node);
        if let Some(pointer) = pointer {
            builder.references.push((id, pointer));
        }
        Ok(id)
    }
}

impl Builder {
    fn add(&mut self, node: Node) -> Id {
        self.common.nodes.push(node);
        self.common.nodes.len() as Id - 1
    }
}

/// Schemas by name; the answer is their range among all properties.
struct Properties<'b> {
    builder: &'b mut Builder,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Properties<'_> {
    type Value = (u32, u32);

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(u32, u32), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Properties<'_> {
    type Value = (u32, u32);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schemas by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(u32, u32), A::Error> {
        let Self { builder, depth } = self;
        let mut own = Vec::new();
        loop {
            let names = &mut builder.common.names;
            let start = names.len() as u32;
            let name = map.next_key_seed(Word(|name: &str| {
                names.push_str(name);
                Some((start, names.len() as u32))
            }))?;
            let Some(name) = name else { break };
            own.push((name, map.next_value_seed(Schema { builder, depth })?));
        }
        let common = &mut builder.common;
        own.sort_unstable_by(|(a, _), (b, _)| common.name(*a).cmp(common.name(*b)));
        if own
            .windows(2)
            .any(|pair| matches!(pair, [(a, _), (b, _)] if common.name(*a) == common.name(*b)))
        {
            return Err(unsure());
        }
        let start = common.properties.len() as u32;
        common.properties.append(&mut own);
        Ok((start, common.properties.len() as u32))
    }
}

/// A list of schemas that is not empty.
struct Schemas<'b> {
    builder: &'b mut Builder,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Schemas<'_> {
    type Value = Vec<Id>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Vec<Id>, D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Schemas<'_> {
    type Value = Vec<Id>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schemas")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Id>, A::Error> {
        let Self { builder, depth } = self;
        let mut all = Vec::new();
        while let Some(id) = items.next_element_seed(Schema { builder, depth })? {
            all.push(id);
        }
        if all.is_empty() { Err(unsure()) } else { Ok(all) }
    }
}

/// A type or several.
struct TypesSeed;

impl<'de> DeserializeSeed<'de> for TypesSeed {
    type Value = Types;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Types, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TypesSeed {
    type Value = Types;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("types")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Types, E> {
        Types::of_word(word).ok_or_else(unsure)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Types, A::Error> {
        let mut all = Types::default();
        while let Some(one) = items.next_element_seed(Word(Types::of_word))? {
            if all.meets(one) {
                return Err(unsure());
            }
            all = all.with(one);
        }
        if all == Types::default() { Err(unsure()) } else { Ok(all) }
    }
}

/// Scalars that can be compared without doubt.
fn is_plain(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(_) | Json::String(_) => true,
        Json::Number(_) => is_exact(value),
        Json::Array(_) | Json::Object(_) => false,
    }
}

fn is_exact(value: &Json) -> bool {
    value.as_f64().is_some_and(|number| number.abs() < EXACT)
}
