//! Go's structs as `encoding/json` writes them.

use goyaml::{Value, json};

use crate::render::time::{Time, Zone};

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// Fields of a Go struct, written in the order in which they are added.
#[derive(Default)]
pub struct Fields {
    text: String,
    /// Whether the object, which may be nested, has a field.
    begun: bool,
}

impl Fields {
    /// An object for which there is room.
    pub fn with_capacity(size: usize) -> Self {
        Self { text: String::with_capacity(size), begun: false }
    }

    fn separator(&mut self) {
        self.text.push(if self.begun { ',' } else { '{' });
        self.begun = true;
    }

    fn key(&mut self, name: &str) {
        self.separator();
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    /// A field whose JSON is there already.
    pub fn raw(&mut self, name: &str, json: &str) {
        self.key(name);
        self.text.push_str(json);
    }

    /// A field whose name may hold any character.
    pub fn raw_key(&mut self, name: &[u8], json: &str) {
        self.separator();
        let name = json::to_json(&Value::String(name.into()));
        // A string always encodes.
        self.text.push_str(name.as_deref().unwrap_or("\"\""));
        self.text.push(':');
        self.text.push_str(json);
    }

    /// A field whose JSON is written in place.
    pub fn write(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.key(name);
        write(&mut self.text);
    }

    /// A field that is an object, written in place.
    pub fn object<E>(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.key(name);
        let mut inner = Self { text: std::mem::take(&mut self.text), begun: false };
        let result = write(&mut inner);
        self.text = inner.end();
        result
    }

    /// A text that may not be UTF-8, as Go writes it: wrong bytes become U+FFFD.
    pub fn bytes(&mut self, name: &str, text: &[u8]) {
        if !text.is_empty() {
            let json = json::to_json(&Value::String(text.into()));
            self.raw(name, json.as_deref().unwrap_or("\"\""));
        }
    }

    /// A text, left out when it is empty.
    pub fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.raw(name, &string(text));
        }
    }

    /// A number, left out when it is zero.
    pub fn number(&mut self, name: &str, number: i64) {
        if number != 0 {
            self.raw(name, &number.to_string());
        }
    }

    /// A list of texts, left out when it is empty.
    pub fn texts(&mut self, name: &str, texts: &[String]) {
        if !texts.is_empty() {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            self.raw(name, &format!("[{}]", texts.join(",")));
        }
    }

    /// A time as Go writes back what it read.
    pub fn time(&mut self, name: &str, text: &str) {
        self.raw(name, &string(&go_time(text)));
    }

    /// The object.
    pub fn end(mut self) -> String {
        self.text.push_str(if self.begun { "}" } else { "{}" });
        self.text
    }
}

/// A string as `encoding/json` writes it.
pub fn string(text: &str) -> String {
    // A string always encodes.
    json::to_json(&Value::String(text.into())).unwrap_or_else(|_| String::from("\"\""))
}

/// A time as Go writes back what it read.
fn go_time(text: &str) -> String {
    match Time::parse(RFC3339, text, &Zone::utc()) {
        Ok(time) if time.is_zero() => String::new(),
        Ok(time) => time.to_rfc3339().unwrap_or_else(|_| text.to_owned()),
        Err(_) => text.to_owned(),
    }
}
