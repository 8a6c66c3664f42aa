//! JSON objects kept as they were written.

use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON object whose fields keep their order and their exact text: number forms, escapes,
/// fields that this version does not know. Only what is set anew is written anew. A copy shares
/// the texts, of which a record's chart is a megabyte.
#[derive(Clone, Debug, Default)]
pub struct RawObject {
    fields: Vec<(String, Arc<RawValue>)>,
}

impl RawObject {
    /// Reads an object's own level; the values are checked to be JSON but not read.
    ///
    /// # Errors
    /// When `json` is not one JSON object.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
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
        let value = Arc::from(RawValue::from_string(json)?);
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
        let size: usize =
            self.fields.iter().map(|(name, raw)| name.len() + raw.get().len() + 4).sum();
        let mut out = String::with_capacity(size + 2);
        out.push('{');
        for (index, (name, value)) in self.fields.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(&serde_json::Value::from(name.as_str()).to_string());
            out.push(':');
            out.push_str(value.get());
        }
        out.push('}');
        out
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push((name, value.into()));
                }
                Ok(RawObject { fields })
            }
        }
        deserializer.deserialize_map(Fields)
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
    fn deep_values_do_not_overflow() {
        let json = format!("{{\"deep\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000));
        // Either answer is right, an overflow is not.
        drop(RawObject::parse(&json).map(|object| object.to_json()));
    }
}
