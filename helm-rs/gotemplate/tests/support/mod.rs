//! A small notation for template values, so that cases can stand in text files:
//! `nil`, `true`, `12`, `uint8(3)`, `float64(0.5)`, `"text"`, `bytes"text"`, `[1, "a"]`,
//! `[]string["a"]`, `{"key": 1}`, `map[string]string{"a": "b"}`. The oracle that wrote the
//! expectations reads the same notation into Go values.

#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::needless_pass_by_value,
    reason = "a broken case file must stop the test; functions have the types of Go's"
)]

pub(crate) mod functions;
pub(crate) mod objects;

use gotemplate::value::{
    Entries, IntKind, LIST_ANY, LIST_INT, LIST_LIST_ANY, LIST_STRING, ListType, MAP_ANY,
    MAP_STRING, MapType,
};
use gotemplate::{List, Map, Str, Value, strconv};

/// Parses one value.
pub(crate) fn parse_value(text: &str) -> Value {
    let mut reader = Reader { rest: text };
    let value = reader.value();
    reader.space();
    assert!(reader.rest.is_empty(), "trailing text {:?} in {text:?}", reader.rest);
    value
}

/// Undoes Go's quoting.
pub(crate) fn unquote(text: &str) -> Vec<u8> {
    strconv::unquote(text.as_bytes()).unwrap_or_else(|_| panic!("not a literal: {text}")).into()
}

struct Reader<'t> {
    rest: &'t str,
}

const LISTS: [(&str, &ListType); 4] = [
    ("[]string[", &LIST_STRING),
    ("[]int[", &LIST_INT),
    ("[][]interface {}[", &LIST_LIST_ANY),
    ("[", &LIST_ANY),
];
const MAPS: [(&str, &MapType); 3] =
    [("map[string]string{", &MAP_STRING), ("Values{", &objects::VALUES), ("{", &MAP_ANY)];
const KINDS: [IntKind; 11] = [
    IntKind::Int,
    IntKind::Int8,
    IntKind::Int16,
    IntKind::Int32,
    IntKind::Int64,
    IntKind::Uint,
    IntKind::Uint8,
    IntKind::Uint16,
    IntKind::Uint32,
    IntKind::Uint64,
    IntKind::Uintptr,
];

impl<'t> Reader<'t> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, prefix: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn until(&mut self, end: char) -> &'t str {
        let (word, rest) = self.rest.split_once(end).expect("closing bracket");
        self.rest = rest;
        word
    }

    fn literal(&mut self) -> Vec<u8> {
        let bytes = self.rest.as_bytes();
        assert_eq!(bytes[0], b'"', "literal at {:?}", self.rest);
        let mut end = 1;
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let (literal, rest) = self.rest.split_at(end + 1);
        self.rest = rest;
        unquote(literal)
    }

    fn value(&mut self) -> Value {
        self.space();
        for (word, make) in objects::NAMES {
            if self.eat(word) {
                return make();
            }
        }
        for (word, value) in
            [("nil", Value::Nil), ("true", Value::Bool(true)), ("false", Value::Bool(false))]
        {
            if self.eat(word) {
                return value;
            }
        }
        if self.eat("bytes") {
            return Value::Bytes(Str::from(self.literal()));
        }
        if self.rest.starts_with('"') {
            return Value::String(Str::from(self.literal()));
        }
        for (open, ty) in MAPS {
            if self.eat(open) {
                let mut entries = Entries::new();
                while !self.eat("}") {
                    self.space();
                    let key = self.literal();
                    assert!(self.eat(":"));
                    entries.insert(Str::from(key), self.value());
                    let _ = self.eat(",");
                }
                return Value::Map(Map::new(ty, entries));
            }
        }
        for (open, ty) in LISTS {
            if self.eat(open) {
                let mut items = Vec::new();
                while !self.eat("]") {
                    items.push(self.value());
                    let _ = self.eat(",");
                }
                return Value::List(List::new(ty, items));
            }
        }
        if self.eat("float64(") {
            let text = self.until(')');
            return Value::Float(strconv::parse_float(text.as_bytes()).expect("float"));
        }
        for kind in KINDS {
            if self.eat(&format!("{}(", kind.name())) {
                let text = self.until(')');
                let wide: i128 = text.parse().expect("integer");
                return Value::sized(kind, wide as i64);
            }
        }
        let end =
            self.rest.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        Value::int(number.parse().unwrap_or_else(|_| panic!("value at {rest:?}")))
    }
}
