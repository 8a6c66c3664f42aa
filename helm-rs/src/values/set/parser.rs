//! The parser itself. Functions are those of `parser.go`; what `literal_parser.go` does
//! differently is in [`Mode::Literal`].

use bstr::BString;
use goyaml::{Limits, Map, Value};

use super::{FileError, MAX_INDEX, MAX_NAME_LEVELS, SetError, typed};
use crate::values::options::ReadError;

/// Levels of lists and maps that one path may open. Helm recurses without bound here.
const MAX_LEVELS: usize = 1000;

/// List items that one argument may create: sixteen full lists.
const MAX_ITEMS: usize = 16 * MAX_INDEX;

/// What a value is taken for.
pub(super) enum Mode<'a> {
    Typed,
    Text,
    Json,
    File(&'a mut dyn FnMut(&str) -> Result<Vec<u8>, ReadError>),
    Literal,
}

/// Why parsing stops.
enum Stop {
    /// The input is at its end, which Helm takes for success wherever it happens.
    End,
    Failed(SetError),
}

impl From<SetError> for Stop {
    fn from(error: SetError) -> Self {
        Self::Failed(error)
    }
}

pub(super) struct Parser<'a> {
    input: &'a [u8],
    mode: Mode<'a>,
    levels: usize,
    items: usize,
}

const MAP_TYPE: &str = "map[string]interface {}";
const LIST_TYPE: &str = "[]interface {}";

impl<'a> Parser<'a> {
    pub(super) fn new(input: &'a [u8], mode: Mode<'a>) -> Self {
        Self { input, mode, levels: 0, items: 0 }
    }

    pub(super) fn parse(mut self, values: &mut Map) -> Result<(), SetError> {
        loop {
            match self.key(values, 0) {
                Ok(()) => {}
                Err(Stop::End) => return Ok(()),
                Err(Stop::Failed(error)) => return Err(error),
            }
        }
    }

    /// Reads one item below a map.
    fn key(&mut self, data: &mut Map, names: usize) -> Result<(), Stop> {
        self.enter()?;
        let stops: &[char] =
            if self.is_literal() { &['=', '[', '.'] } else { &['=', '[', ',', '.'] };
        let (key, stop) = self.read_until(stops);
        let key = BString::from(key.into_iter().collect::<String>());
        let result = match stop {
            None if key.is_empty() => Err(Stop::End),
            None => Err(SetError::NoValue { key }.into()),
            Some('[') => self.indexed(data, key, names),
            Some('=') => self.assigned(data, key),
            Some(',') => {
                set(data, key.clone(), Value::from(""));
                Err(SetError::EndsWithComma { key }.into())
            }
            Some(_) => self.nested(data, key, names + 1),
        };
        self.levels -= 1;
        result
    }

    /// A key with an index behind it.
    fn indexed(&mut self, data: &mut Map, key: BString, names: usize) -> Result<(), Stop> {
        let index = self.index()?;
        let mut list = match data.get_mut(&key) {
            None => Vec::new(),
            // Without a name the list is changed in place and never stored.
            Some(Value::Seq(list)) if key.is_empty() => list.clone(),
            Some(Value::Seq(list)) => std::mem::take(list),
            Some(other) => return Err(conversion(other, LIST_TYPE)),
        };
        let result = self.list_item(&mut list, index, names);
        set(data, key, Value::Seq(list));
        result
    }

    /// A key with its value.
    fn assigned(&mut self, data: &mut Map, key: BString) -> Result<(), Stop> {
        match self.mode {
            Mode::Json => {
                let value = self.json_value()?;
                set(data, key, value);
                Ok(())
            }
            Mode::Literal => {
                let value = self.rest();
                set(data, key, value);
                Ok(())
            }
            _ => {
                if self.input.is_empty() {
                    set(data, key, Value::from(""));
                    return Err(Stop::End);
                }
                let value = self.plain_value()?;
                set(data, key, value);
                Ok(())
            }
        }
    }

    /// A key with further names behind it.
    fn nested(&mut self, data: &mut Map, key: BString, names: usize) -> Result<(), Stop> {
        if names > MAX_NAME_LEVELS {
            return Err(SetError::TooManyNames.into());
        }
        if let Some(existing) = data.get_mut(&key) {
            let Value::Map(inner) = existing else { return Err(conversion(existing, MAP_TYPE)) };
            let result = self.key(inner, names);
            if result.is_ok() && inner.is_empty() {
                return Err(SetError::EmptyMap { key }.into());
            }
            return result;
        }
        let mut inner = Map::new();
        let result = self.key(&mut inner, names);
        if result.is_ok() && inner.is_empty() {
            return Err(SetError::EmptyMap { key }.into());
        }
        if !inner.is_empty() {
            set(data, key, Value::Map(inner));
        }
        result
    }

    /// Reads what follows an index.
    fn list_item(&mut self, list: &mut Vec<Value>, index: i64, names: usize) -> Result<(), Stop> {
        self.enter()?;
        let Ok(position) = usize::try_from(index) else {
            return Err(SetError::NegativeIndex { index }.into());
        };
        let (data, stop) = self.read_until(&['[', '.', '=']);
        if !data.is_empty() {
            return Err(SetError::AfterIndex { data }.into());
        }
        let Some(stop) = stop else { return Err(Stop::End) };
        match stop {
            '=' => {
                let value = match self.mode {
                    Mode::Json => self.json_value()?,
                    Mode::Literal => self.rest(),
                    _ if self.input.is_empty() => Value::from(""),
                    _ => self.plain_value()?,
                };
                self.set_index(list, index, value)?;
            }
            '[' => {
                let next = self.index()?;
                match list.get_mut(position) {
                    Some(Value::Seq(inner)) => {
                        self.list_item(inner, next, names)?;
                        check_index(index)?;
                    }
                    None | Some(Value::Null) => {
                        let mut inner = Vec::new();
                        self.list_item(&mut inner, next, names)?;
                        self.set_index(list, index, Value::Seq(inner))?;
                    }
                    Some(other) => return Err(conversion(other, LIST_TYPE)),
                }
            }
            _ => {
                if let Some(item) = list.get_mut(position) {
                    if item.as_map().is_none() {
                        *item = Value::Map(Map::new());
                    }
                    if let Value::Map(inner) = item {
                        self.key(inner, names)?;
                    }
                    check_index(index)?;
                } else {
                    let mut inner = Map::new();
                    self.key(&mut inner, names)?;
                    self.set_index(list, index, Value::Map(inner))?;
                }
            }
        }
        self.levels -= 1;
        Ok(())
    }

    /// `setIndex`
    fn set_index(&mut self, list: &mut Vec<Value>, index: i64, value: Value) -> Result<(), Stop> {
        let position = check_index(index)?;
        if list.len() <= position {
            self.items += position + 1 - list.len();
            if self.items > MAX_ITEMS {
                return Err(SetError::Limit { what: "list items", limit: MAX_ITEMS }.into());
            }
            list.resize(position + 1, Value::Null);
        }
        if let Some(slot) = list.get_mut(position) {
            *slot = value;
        }
        Ok(())
    }

    /// `keyIndex`
    fn index(&mut self) -> Result<i64, Stop> {
        let (text, stop) = self.read_until(&[']']);
        if stop.is_none() {
            return Err(SetError::IndexEnd.into());
        }
        let text: String = text.into_iter().collect();
        text.parse().map_err(|error: std::num::ParseIntError| {
            use std::num::IntErrorKind::{NegOverflow, PosOverflow};
            let text = BString::from(text);
            match error.kind() {
                PosOverflow | NegOverflow => SetError::IndexRange { text }.into(),
                _ => SetError::IndexSyntax { text }.into(),
            }
        })
    }

    /// A value up to the next comma, or a list in braces.
    fn plain_value(&mut self) -> Result<Value, Stop> {
        if let Some(rest) = self.input.strip_prefix(b"{") {
            self.input = rest;
            return self.list();
        }
        let (text, _) = self.read_until(&[',']);
        self.convert(text)
    }

    /// `valList` behind its brace
    fn list(&mut self) -> Result<Value, Stop> {
        let mut list = Vec::new();
        loop {
            let (text, stop) = self.read_until(&[',', '}']);
            let Some(stop) = stop else { return Err(SetError::OpenList.into()) };
            list.push(self.convert(text)?);
            if stop == '}' {
                self.input = self.input.strip_prefix(b",").unwrap_or(self.input);
                return Ok(Value::Seq(list));
            }
        }
    }

    /// The value that a text stands for.
    fn convert(&mut self, text: Vec<char>) -> Result<Value, Stop> {
        let text: String = text.into_iter().collect();
        match &mut self.mode {
            Mode::Typed => Ok(typed(&text)),
            Mode::File(read) => match read(&text) {
                Ok(content) => Ok(Value::String(content.into())),
                Err(error) => Err(SetError::File(FileError(error)).into()),
            },
            Mode::Text | Mode::Json | Mode::Literal => Ok(Value::from(text)),
        }
    }

    /// A JSON value and the blanks and comma behind it; nothing is null.
    fn json_value(&mut self) -> Result<Value, Stop> {
        if self.skip_empty() {
            return Ok(Value::Null);
        }
        let (value, length) = goyaml::json::from_json_prefix(self.input, &Limits::default())
            .map_err(SetError::from)?;
        self.input = self.input.get(length..).unwrap_or_default();
        self.skip_empty();
        Ok(value)
    }

    /// `emptyVal`: skips blanks and one comma; whether there was nothing else before the comma or
    /// the end.
    fn skip_empty(&mut self) -> bool {
        loop {
            let before = self.input;
            match self.read() {
                None | Some(',') => return true,
                Some(c) if c.is_whitespace() => {}
                Some(_) => {
                    self.input = before;
                    return false;
                }
            }
        }
    }

    /// Everything that is left, as text.
    fn rest(&mut self) -> Value {
        let (text, _) = self.read_until(&[]);
        Value::from(text.into_iter().collect::<String>())
    }

    /// `runesUntil`: the text up to a stop character, and which one it was; escapes are resolved.
    /// An escape at the very end is dropped.
    fn read_until(&mut self, stops: &[char]) -> (Vec<char>, Option<char>) {
        let mut text = Vec::new();
        while let Some(c) = self.read() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            if c != '\\' || self.is_literal() {
                text.push(c);
            } else if let Some(escaped) = self.read() {
                text.push(escaped);
            }
        }
        (text, None)
    }

    /// The next rune; a byte that is no UTF-8 reads as U+FFFD.
    fn read(&mut self) -> Option<char> {
        if self.input.is_empty() {
            return None;
        }
        let (decoded, size) = bstr::decode_utf8(self.input);
        let (c, size) = decoded.map_or((char::REPLACEMENT_CHARACTER, 1), |c| (c, size));
        self.input = self.input.get(size..).unwrap_or_default();
        Some(c)
    }

    const fn is_literal(&self) -> bool {
        matches!(self.mode, Mode::Literal)
    }

    fn enter(&mut self) -> Result<(), Stop> {
        self.levels += 1;
        if self.levels > MAX_LEVELS {
            return Err(SetError::Limit { what: "levels", limit: MAX_LEVELS }.into());
        }
        Ok(())
    }
}

/// `set`: nothing is set under an empty key.
fn set(data: &mut Map, key: BString, value: Value) {
    if !key.is_empty() {
        data.insert(key, value);
    }
}

fn check_index(index: i64) -> Result<usize, Stop> {
    match usize::try_from(index) {
        Ok(position) if position <= MAX_INDEX => Ok(position),
        _ => Err(SetError::IndexTooLarge { index }.into()),
    }
}

/// Go's failed type assertion.
fn conversion(value: &Value, wanted: &'static str) -> Stop {
    let actual = if value.is_null() { "nil" } else { value.type_name() };
    SetError::Conversion { actual, wanted }.into()
}
