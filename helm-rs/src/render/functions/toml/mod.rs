//! TOML as Helm reads and writes it (`pkg/engine/funcs.go`, `toTOML` and `fromTOML`, over
//! BurntSushi/toml v1.6.0).
//!
//! Own code: layout, key order, tolerance and error texts are that package's, and no crate
//! shares them.

mod encode;
mod keys;
mod lex;
mod parse;

use gotemplate::value::{ListType, MAP_ANY};
use gotemplate::{CallError, Function, FunctionMap, Runtime, Str, Type, Value};

use crate::render::host::Host;
use crate::render::time::Zone;

/// `[]map[string]interface {}`: an array of tables.
static LIST_TABLES: ListType =
    ListType { name: "[]map[string]interface {}", element: Type::Map(&MAP_ANY), methods: &[] };

/// Writes a value; an error becomes the result, and a panic the function's error.
fn to_toml(value: Value) -> Result<Vec<u8>, CallError> {
    match encode::encode(&value) {
        Ok(text) => Ok(text),
        Err(encode::Failure::Error(message)) => Ok(message),
        Err(encode::Failure::Panic(error)) => Err(error),
    }
}

/// Reads a document; an error becomes the only entry, `Error`.
fn from_toml(runtime: &mut dyn Runtime, text: Str) -> Result<Value, CallError> {
    let host = Host::of(runtime)?;
    let now = host.now().seconds;
    let local = host.local().clone();
    // Dates without a zone are taken for times at the offset of this moment.
    let offset = local.lookup(now).offset;
    let zones = parse::Zones {
        date_time: Zone::fixed(DATE_TIME, offset),
        date: Zone::fixed(DATE, offset),
        time: Zone::fixed(TIME, offset),
        local,
    };
    match parse::parse(text.as_bytes(), &zones) {
        Ok(table) => Ok(table),
        Err(parse::Failure::Error(message)) => Ok(Value::map([("Error", Value::string(message))])),
        Err(parse::Failure::Panic(error)) => Err(error),
    }
}

/// The names of the zones that mark times without one (`internal/tz.go`).
const DATE_TIME: &str = "datetime-local";
const DATE: &str = "date-local";
const TIME: &str = "time-local";

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("fromToml", Function::new(from_toml));
    functions.insert("toToml", Function::new(to_toml));
}
