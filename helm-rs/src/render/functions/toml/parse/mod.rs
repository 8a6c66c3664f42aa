//! Documents (`parse.go`): tables, arrays of tables and values, with the package's rules
//! on what may be defined again.

mod scalars;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use gotemplate::strconv::quote;
use gotemplate::{CallError, List, Value};

use super::LIST_TABLES;
use super::keys::whole;
use super::lex::{Kind, Lexer, Token};
use crate::render::functions::limits::check_depth;
use crate::render::time::Zone;

/// The zones of times that have none of their own.
pub(super) struct Zones {
    pub(super) local: Zone,
    pub(super) date_time: Zone,
    pub(super) date: Zone,
    pub(super) time: Zone,
}

/// Why a document is refused.
pub(super) enum Failure {
    /// The package's error.
    Error(Vec<u8>),
    /// Its panic, or a limit.
    Panic(CallError),
}

type Outcome<T> = Result<T, Failure>;
type Key = Vec<Vec<u8>>;
type Table = Rc<RefCell<BTreeMap<Vec<u8>, Entry>>>;

/// What stands under a key while reading.
#[derive(Clone)]
enum Entry {
    Value(Value),
    Array(Vec<Self>),
    Table(Table),
    Tables(Vec<Table>),
}

/// What the package remembers of a key's kind: only this matters later.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Array,
    Other,
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    zones: &'a Zones,
    context: Key,
    current_key: Vec<u8>,
    /// The line of the last key.
    line: i64,
    kinds: HashMap<Vec<u8>, KeyKind>,
    root: Table,
    implicits: HashSet<Vec<u8>>,
}

/// Reads a document.
pub(super) fn parse(text: &[u8], zones: &Zones) -> Outcome<Value> {
    let text = [&b"\xff\xfe"[..], b"\xfe\xff", b"\xef\xbb\xbf"]
        .iter()
        .find_map(|mark| text.strip_prefix(*mark))
        .unwrap_or(text);
    if text.get(..text.len().min(6)).unwrap_or_default().contains(&0) {
        let message = "toml: line 1: files cannot contain NULL bytes; probably using UTF-16; \
                       TOML files must be UTF-8";
        return Err(Failure::Error(message.into()));
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        zones,
        context: Vec::new(),
        current_key: Vec::new(),
        line: 0,
        kinds: HashMap::new(),
        root: Table::default(),
        implicits: HashSet::new(),
    };
    loop {
        let token = parser.next()?;
        if token.kind == Kind::End {
            break;
        }
        parser.top_level(&token)?;
    }
    Ok(table_value(&parser.root))
}

fn table_value(table: &Table) -> Value {
    Value::map(table.borrow().iter().map(|(key, entry)| (key.as_slice(), entry_value(entry))))
}

fn entry_value(entry: &Entry) -> Value {
    match entry {
        Entry::Value(value) => value.clone(),
        Entry::Array(items) => Value::list(items.iter().map(entry_value).collect::<Vec<_>>()),
        Entry::Table(table) => table_value(table),
        Entry::Tables(tables) => {
            let tables: Vec<Value> = tables.iter().map(table_value).collect();
            Value::List(List::new(&LIST_TABLES, tables))
        }
    }
}

/// The words before, a quoted text, the words after.
fn about(before: &str, text: &[u8], after: &str) -> Vec<u8> {
    let mut message = before.as_bytes().to_vec();
    message.extend_from_slice(&quote(text));
    message.extend_from_slice(after.as_bytes());
    message
}

fn already(key: &[Vec<u8>], what: &str) -> Vec<u8> {
    let mut message = b"Key '".to_vec();
    message.extend_from_slice(&whole(key));
    message.extend_from_slice(what.as_bytes());
    message
}

fn bug(message: &str) -> Failure {
    Failure::Panic(CallError::new(format!("BUG: {message}\n\n")))
}

impl Parser<'_> {
    fn fail(&self, line: i64, message: &[u8]) -> Failure {
        let last = self.last_key();
        let mut text = format!("toml: line {line}").into_bytes();
        if !last.is_empty() {
            text.extend_from_slice(&about(" (last key ", &last, ")"));
        }
        text.extend_from_slice(b": ");
        text.extend_from_slice(message);
        Failure::Error(text)
    }

    /// The package's `current`.
    fn last_key(&self) -> Vec<u8> {
        if self.current_key.is_empty() {
            return whole(&self.context);
        }
        if self.context.is_empty() {
            return self.current_key.clone();
        }
        [&whole(&self.context), b".".as_slice(), &self.current_key].concat()
    }

    fn next(&mut self) -> Outcome<Token> {
        let token = self.lexer.next_token();
        if token.kind == Kind::Error {
            return Err(self.fail(token.line, &token.text));
        }
        Ok(token)
    }

    /// Reads the parts of a key up to the given token.
    fn key(&mut self, end: Kind) -> Outcome<Key> {
        let mut token = self.next()?;
        self.line = token.line;
        let mut key = Key::new();
        while token.kind != end && token.kind != Kind::End {
            let part = match token.kind {
                Kind::Text => token.text,
                _ => self.string(&token)?.ok_or_else(|| bug("Unexpected key type"))?,
            };
            key.push(part);
            token = self.next()?;
        }
        Ok(key)
    }

    fn top_level(&mut self, token: &Token) -> Outcome<()> {
        match token.kind {
            Kind::CommentStart => {
                self.next()?;
            }
            Kind::TableStart => {
                let key = self.key(Kind::TableEnd)?;
                self.add_context(&key, false)?;
                self.set_kind(&[], KeyKind::Other);
            }
            Kind::ArrayTableStart => {
                let key = self.key(Kind::ArrayTableEnd)?;
                self.add_context(&key, true)?;
                self.set_kind(&[], KeyKind::Other);
            }
            Kind::KeyStart => {
                let outer = self.context.clone();
                self.key_value(0)?;
                self.context = outer;
                self.current_key.clear();
            }
            _ => return Err(bug("Unexpected type at top level")),
        }
        Ok(())
    }

    /// A key with its value; gives the key's outer parts and the value.
    fn key_value(&mut self, depth: usize) -> Outcome<(Key, Entry)> {
        let mut outer = self.key(Kind::KeyEnd)?;
        self.current_key = outer.pop().unwrap_or_default();
        for part in &outer {
            let mut key = self.context.clone();
            key.push(part.clone());
            self.implicits.insert(whole(&key));
            self.add_context(&key, false)?;
        }
        let token = self.next()?;
        let (value, kind) = self.value(&token, false, depth)?;
        let key = self.current_key.clone();
        self.set_value(&key, value.clone())?;
        self.set_kind(&key, kind);
        Ok((outer, value))
    }

    fn value(&mut self, token: &Token, in_array: bool, depth: usize) -> Outcome<(Entry, KeyKind)> {
        check_depth(depth).map_err(Failure::Panic)?;
        if let Some(text) = self.string(token)? {
            return Ok((Entry::Value(Value::string(text)), KeyKind::Other));
        }
        let value = match token.kind {
            Kind::Integer => self.integer(token)?,
            Kind::Float => self.float(token)?,
            Kind::Bool => Value::Bool(token.text == b"true"),
            Kind::Datetime => self.datetime(token)?,
            Kind::Array => return Ok((self.array(depth)?, KeyKind::Array)),
            Kind::InlineTableStart => {
                return Ok((self.inline_table(in_array, depth)?, KeyKind::Other));
            }
            _ => return Err(bug("Unexpected value type")),
        };
        Ok((Entry::Value(value), KeyKind::Other))
    }

    fn array(&mut self, depth: usize) -> Outcome<Entry> {
        let key = self.current_key.clone();
        self.set_kind(&key, KeyKind::Array);
        let mut items = Vec::new();
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::ArrayEnd => return Ok(Entry::Array(items)),
                Kind::CommentStart => {
                    self.next()?;
                }
                _ => items.push(self.value(&token, true, depth + 1)?.0),
            }
        }
    }

    fn inline_table(&mut self, in_array: bool, depth: usize) -> Outcome<Entry> {
        let top = Table::default();
        let outer_context = self.context.clone();
        let outer_key = std::mem::take(&mut self.current_key);
        self.context.push(outer_key.clone());
        let context = self.context.clone();
        self.implicits.insert(whole(&context));
        self.add_context(&context, in_array)?;
        // The package remembers the context before `addContext` rebuilt it: the same key.
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::InlineTableEnd => break,
                Kind::CommentStart => {
                    self.next()?;
                    continue;
                }
                _ => {}
            }
            let (outer, value) = self.key_value(depth + 1)?;
            let mut table = Rc::clone(&top);
            for part in outer {
                let next = table
                    .borrow_mut()
                    .entry(part)
                    .or_insert_with(|| Entry::Table(Table::default()))
                    .clone();
                let Entry::Table(next) = next else {
                    let message = about("", &whole(&self.context), " is not a table");
                    return Err(self.fail(self.line, &message));
                };
                table = next;
            }
            table.borrow_mut().insert(self.current_key.clone(), value);
            self.context.clone_from(&context);
        }
        self.context = outer_context;
        self.current_key = outer_key;
        Ok(Entry::Table(top))
    }

    /// Makes `key` the current table, or a new one at the end of an array of tables.
    fn add_context(&mut self, key: &[Vec<u8>], array: bool) -> Outcome<()> {
        let Some((last, parents)) = key.split_last() else {
            return Err(bug("empty key"));
        };
        let mut table = Rc::clone(&self.root);
        let mut context = Key::new();
        for part in parents {
            context.push(part.clone());
            let existing = table.borrow().get(part).cloned();
            let entry = if let Some(entry) = existing {
                entry
            } else {
                self.implicits.insert(whole(&context));
                let entry = Entry::Table(Table::default());
                table.borrow_mut().insert(part.clone(), entry.clone());
                entry
            };
            let Some(inner) = inner_table(&entry) else {
                let message = already(&context, "' was already created as a hash.");
                return Err(self.fail(self.line, &message));
            };
            table = inner;
        }
        self.context = context;
        if array {
            let mut entries = table.borrow_mut();
            let entry = entries.entry(last.clone()).or_insert_with(|| Entry::Tables(Vec::new()));
            let Entry::Tables(tables) = entry else {
                let message = already(key, "' was already created and cannot be used as an array.");
                return Err(self.fail(self.line, &message));
            };
            tables.push(Table::default());
        } else {
            self.set_value(last, Entry::Table(Table::default()))?;
        }
        self.context.push(last.clone());
        Ok(())
    }

    fn set_value(&mut self, key: &[u8], value: Entry) -> Outcome<()> {
        let mut table = Rc::clone(&self.root);
        let mut context = Key::new();
        for part in self.context.clone() {
            context.push(part.clone());
            let entry = table.borrow().get(&part).cloned();
            let Some(entry) = entry else {
                let name = String::from_utf8_lossy(&whole(&context)).into_owned();
                return Err(bug(&format!("Context for key '{name}' has not been established.")));
            };
            let Some(next) = inner_table(&entry) else {
                let message = already(&context, "' has already been defined.");
                return Err(self.fail(self.line, &message));
            };
            table = next;
        }
        context.push(key.to_vec());
        let name = whole(&context);
        if table.borrow().contains_key(key) {
            let implicit = self.implicits.remove(&name);
            if !implicit {
                let message = already(&context, "' has already been defined.");
                return Err(self.fail(self.line, &message));
            }
            // What was only implied may be spelled out; a table is there already.
            if self.kinds.get(&name) != Some(&KeyKind::Array) {
                return Ok(());
            }
        }
        table.borrow_mut().insert(key.to_vec(), value);
        Ok(())
    }

    fn set_kind(&mut self, key: &[u8], kind: KeyKind) {
        let mut name = self.context.clone();
        if !key.is_empty() {
            name.push(key.to_vec());
        }
        if name.is_empty() {
            name.push(Vec::new());
        }
        self.kinds.insert(whole(&name), kind);
    }
}

/// The table that an entry leads into: itself, or the last of an array of tables.
fn inner_table(entry: &Entry) -> Option<Table> {
    match entry {
        Entry::Table(table) => Some(Rc::clone(table)),
        Entry::Tables(tables) => tables.last().cloned(),
        Entry::Value(_) | Entry::Array(_) => None,
    }
}
