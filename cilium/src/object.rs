//! Reading fields of Kubernetes objects that may be anything.
//!
//! Objects come from a server, a file or a test, as plain JSON. A missing field is none; a field
//! of the wrong type is an error that names the object and the field, never a guess.

use std::fmt;

use serde_json::{Map, Value};

/// Which object is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// `kind`
    pub kind: String,
    /// `metadata.namespace`; empty for objects without one.
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
}

impl ObjectRef {
    /// The object with the given coordinates.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// What an object says of itself. What it does not say, or says with a wrong type, is empty.
    pub fn of(object: &Value) -> Self {
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self::new(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.kind.is_empty() { "object" } else { &self.kind };
        let name = if self.name.is_empty() { "without a name" } else { &self.name };
        if self.namespace.is_empty() {
            write!(f, "{kind} {name}")
        } else {
            write!(f, "{kind} {}/{name}", self.namespace)
        }
    }
}

/// A field that is of another type than Kubernetes has there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: field {path} is {found} and not {wanted}")]
pub struct FieldError {
    /// The object.
    pub object: Box<ObjectRef>,
    /// The field, as `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What should be there.
    pub wanted: &'static str,
    /// What is there.
    pub found: &'static str,
}

/// A place in an object, to read on from.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    object: &'a Value,
    value: Option<&'a Value>,
    path: String,
}

impl<'a> Field<'a> {
    /// The whole object.
    pub const fn root(object: &'a Value) -> Self {
        Self { object, value: Some(object), path: String::new() }
    }

    /// The value at this place; none when it is missing or null.
    pub fn value(&self) -> Option<&'a Value> {
        self.value.filter(|value| !value.is_null())
    }

    /// The field below. Missing fields have missing fields.
    ///
    /// # Errors
    /// When this place holds something other than an object.
    pub fn get(&self, key: &str) -> Result<Self, FieldError> {
        let value = self.object()?.and_then(|object| object.get(key));
        let dot = if self.path.is_empty() { "" } else { "." };
        Ok(Self { object: self.object, value, path: format!("{}{dot}{key}", self.path) })
    }

    /// The field at the end of a path of keys.
    ///
    /// # Errors
    /// When something on the way is not an object.
    pub fn at(&self, keys: &[&str]) -> Result<Self, FieldError> {
        keys.iter().try_fold(self.clone(), |field, key| field.get(key))
    }

    /// The entries of an object.
    ///
    /// # Errors
    /// When it is something else.
    pub fn object(&self) -> Result<Option<&'a Map<String, Value>>, FieldError> {
        self.read("an object", Value::as_object)
    }

    /// The text of a string.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self) -> Result<Option<&'a str>, FieldError> {
        self.read("a string", Value::as_str)
    }

    /// A boolean.
    ///
    /// # Errors
    /// When it is something else.
    pub fn boolean(&self) -> Result<Option<bool>, FieldError> {
        self.read("a boolean", Value::as_bool)
    }

    /// An integer.
    ///
    /// # Errors
    /// When it is something else.
    pub fn integer(&self) -> Result<Option<i64>, FieldError> {
        self.read("an integer", Value::as_i64)
    }

    /// The items of a list, each a place of its own; none of a missing list.
    ///
    /// # Errors
    /// When it is something else.
    pub fn items(&self) -> Result<Vec<Self>, FieldError> {
        let items = self.read("a list", Value::as_array)?;
        let item = |(index, value)| Self {
            object: self.object,
            value: Some(value),
            path: format!("{}[{index}]", self.path),
        };
        Ok(items.into_iter().flatten().enumerate().map(item).collect())
    }

    /// The item of a list whose `name` is the given one.
    ///
    /// # Errors
    /// When this is no list of objects.
    pub fn named(&self, name: &str) -> Result<Option<Self>, FieldError> {
        for item in self.items()? {
            if item.get("name")?.text()? == Some(name) {
                return Ok(Some(item));
            }
        }
        Ok(None)
    }

    /// The error that this place should have been something else.
    pub fn unexpected(&self, wanted: &'static str) -> FieldError {
        let found = match self.value {
            None | Some(Value::Null) => "missing",
            Some(Value::Bool(_)) => "a boolean",
            Some(Value::Number(_)) => "a number",
            Some(Value::String(_)) => "a string",
            Some(Value::Array(_)) => "a list",
            Some(Value::Object(_)) => "an object",
        };
        let path = if self.path.is_empty() { "(whole object)" } else { &self.path };
        FieldError {
            object: ObjectRef::of(self.object).into(),
            path: path.to_owned(),
            wanted,
            found,
        }
    }

    fn read<T>(
        &self,
        wanted: &'static str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        match self.value() {
            None => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| self.unexpected(wanted)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Field;
    use serde_json::json;

    #[test]
    fn a_wrong_type_is_named_with_object_and_field() {
        let object = json!({
            "kind": "DaemonSet",
            "metadata": {"name": "cilium", "namespace": "kube-system"},
            "spec": {"template": {"spec": {"containers": [{"image": 7}]}}},
        });
        let containers =
            Field::root(&object).at(&["spec", "template", "spec", "containers"]).unwrap();
        let image = containers.items().unwrap()[0].get("image").unwrap();
        assert_eq!(
            image.text().unwrap_err().to_string(),
            "DaemonSet kube-system/cilium: field spec.template.spec.containers[0].image is a \
             number and not a string"
        );
        assert!(Field::root(&object).at(&["status", "x", "y"]).unwrap().value().is_none());
        assert!(Field::root(&object).at(&["kind", "x"]).is_err());
        assert!(Field::root(&json!([1])).get("kind").is_err());
    }
}
