//! JSON objects kept as they were written.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON object whose fields keep their order and their exact text: number forms, escapes,
/// fields that this version does not know. Only what is set anew is written anew. Fields are
/// parts of the text that was read, which copies share: a record's chart is a megabyte.
#[derive(Clone, Debug, Default)]
pub struct RawObject {
    fields: Vec<(String, Part)>,
}

/// A value's JSON: part of a text.
#[derive(Clone)]
struct Part {
    text: Arc<String>,
    range: Range<usize>,
}

impl Part {
    fn whole(text: String) -> Self {
        Self { range: 0..text.len(), text: Arc::new(text) }
    }

    fn get(&self) -> &str {
        // The range was taken from this very text.
        self.text.get(self.range.clone()).unwrap_or("null")
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

/// Where `part` lies in `text`, out of which it was borrowed.
fn place(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    start..start.saturating_add(part.len())
}

impl RawObject {
    /// Reads an object's own level; the values are checked to be JSON but not read.
    ///
    /// # Errors
    /// When `json` is not one JSON object.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        Self::from_text(json.to_owned())
    }

    /// [`Self::parse`] of a text that is kept and not copied.
    ///
    /// # Errors
    /// When `json` is not one JSON object.
    pub fn from_text(json: String) -> Result<Self, serde_json::Error> {
        let Borrowed(fields) = serde_json::from_str(&json)?;
        let places: Vec<(String, Range<usize>)> =
            fields.into_iter().map(|(name, value)| (name, place(&json, value.get()))).collect();
        let text = Arc::new(json);
        let part = |range| Part { text: Arc::clone(&text), range };
        Ok(Self { fields: places.into_iter().map(|(name, range)| (name, part(range))).collect() })
    }

    /// The exact text of a field's value. Of a repeated field the last one counts, as in Go.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().rev().find(|(field, _)| field == name).map(|(_, value)| value.get())
    }

    /// A field read as `T`; `None` when it is missing or `null`.
    ///
    /// # Errors
    /// When the value is not a `T`.
    pub fn read<'a, T: Deserialize<'a>>(
        &'a self,
        name: &str,
    ) -> Result<Option<T>, serde_json::Error> {
        self.get(name).map_or(Ok(None), serde_json::from_str)
    }

    /// Sets a field to the given JSON text, in its old place, else before the first field that
    /// `order` lists after it, else at the end; so a record keeps Go's order of fields.
    ///
    /// # Errors
    /// When `json` is not JSON.
    pub fn set(
        &mut self,
        name: &str,
        json: String,
        order: &[&str],
    ) -> Result<(), serde_json::Error> {
        let value: &RawValue = serde_json::from_str(&json)?;
        let range = place(&json, value.get());
        let value = Part { range, text: Arc::new(json) };
        if let Some(field) = self.fields.iter_mut().rev().find(|(field, _)| field == name) {
            field.1 = value;
            return Ok(());
        }
        let rank = |field: &str| order.iter().position(|known| *known == field);
        let at = rank(name).and_then(|own| {
            self.fields.iter().position(|(field, _)| rank(field).is_some_and(|other| other > own))
        });
        self.fields.insert(at.unwrap_or(self.fields.len()), (name.to_owned(), value));
        Ok(())
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.fields.retain(|(field, _)| field != name);
    }

    /// The names of the fields, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// The object as compact JSON, unchanged values to the byte.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(self.json_size());
        // Writing to memory does not fail, and parts of texts are text.
        match self.write_json(&mut out) {
            Ok(()) => String::from_utf8(out).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// Bytes of [`Self::to_json`], or a few more.
    pub fn json_size(&self) -> usize {
        let size = |(name, value): &(String, Part)| name.len() + value.range.len() + 4;
        self.fields.iter().map(size).sum::<usize>() + 2
    }

    /// Writes what [`Self::to_json`] returns, so that it need not be held.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_json(&self, out: &mut impl io::Write) -> io::Result<()> {
        for (index, (name, value)) in self.fields.iter().enumerate() {
            out.write_all(if index == 0 { b"{" } else { b"," })?;
            serde_json::to_writer(&mut *out, name)?;
            out.write_all(b":")?;
            out.write_all(value.get().as_bytes())?;
        }
        out.write_all(if self.fields.is_empty() { b"{}" } else { b"}" })
    }
}

/// An object's fields as parts of the text that is being read.
struct Borrowed<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Borrowed<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Borrowed<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Borrowed<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Borrowed(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Borrowed(fields) = Borrowed::deserialize(deserializer)?;
        let own = |(name, value): (String, &RawValue)| (name, Part::whole(value.get().to_owned()));
        Ok(Self { fields: fields.into_iter().map(own).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::RawObject;

    const ORDER: &[&str] = &["name", "info", "version"];

    #[test]
    fn untouched_fields_keep_their_text() {
        let json = r#"{"name":"a\u003cb","new":1e2,"version":1.0}"#;
        let mut object = RawObject::parse(json).unwrap();
        assert_eq!(object.to_json(), json);
        object.set("version", "2".into(), ORDER).unwrap();
        object.set("info", "{}".into(), ORDER).unwrap();
        assert_eq!(object.to_json(), r#"{"name":"a\u003cb","new":1e2,"info":{},"version":2}"#);
    }

    #[test]
    fn parts_are_found_in_any_text() {
        let json = " { \"a\" : [1 , 2] , \"\\u0062\" :\t\"\u{f6}\", \"a\": {} } ";
        let object = RawObject::parse(json).unwrap();
        assert_eq!(object.get("a"), Some("{}"));
        assert_eq!(object.get("b"), Some("\"\u{f6}\""));
        assert_eq!(object.to_json(), "{\"a\":[1 , 2],\"b\":\"\u{f6}\",\"a\":{}}");
        assert!(object.to_json().len() <= object.json_size());
        assert_eq!(RawObject::default().to_json(), "{}");
        let inner: RawObject =
            RawObject::parse(r#"{"x":{"y": 1 }}"#).unwrap().read("x").unwrap().unwrap();
        assert_eq!(inner.to_json(), r#"{"y":1}"#);
        assert!(RawObject::parse("[]").is_err() && RawObject::parse("{} x").is_err());
    }

    #[test]
    fn deep_values_do_not_overflow() {
        let json = format!("{{\"deep\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000));
        // Either answer is right, an overflow is not.
        drop(RawObject::parse(&json).map(|object| object.to_json()));
    }
}
