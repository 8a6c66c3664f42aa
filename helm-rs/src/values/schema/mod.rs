//! Holding values against `values.schema.json`, as Helm's `pkg/chartutil/jsonschema.go`.
//!
//! Helm uses santhosh-tekuri/jsonschema v6 for Go; `boon` is its author's port to Rust. Results
//! are the same tree of failures, [`report`] words them as the Go library does. Objects are
//! walked in key order (Go: random order), so the lines of a report come in a stable order.
//!
//! A schema may refer to files, as in Helm; references to the network are refused, where Helm
//! would fetch them.

mod formats;
mod loader;
mod quick;
mod report;

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bstr::ByteSlice;
use goyaml::{Limits, Map, Value};
use serde_json::Value as Json;

use self::loader::Loader;
use crate::chart::{Chart, Warning};

/// The address under which Helm compiles every schema.
const URL: &str = "file:///values.schema.json";

/// Values nested deeper than this are validated on a thread with a stack of its own.
const DEEP: usize = 64;

/// Stack for values and schemas that are deeply nested.
const DEEP_STACK: usize = 512 * 1024 * 1024;

/// Values that break a schema, or a schema that is broken: the whole text as Helm prints it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "values don't meet the specifications of the schema(s) in the following chart(s):\n{report}"
)]
pub struct SchemaError {
    /// For each chart its name and what is wrong, one failure a line.
    pub report: String,
}

/// Compiled schemas, to be kept between renders: compiling costs far more than validating.
#[derive(Default)]
pub struct SchemaCache {
    /// By address of the text, which the entry keeps alive.
    compiled: HashMap<usize, Compiled>,
}

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchemaCache").field("compiled", &self.compiled.len()).finish()
    }
}

/// Holds effective values against the schemas of a chart and its subcharts, as
/// `ValidateAgainstSchema`.
///
/// # Errors
///
/// [`SchemaError`] with every failure.
pub fn validate(
    chart: &Chart,
    values: &Map,
    cache: &mut SchemaCache,
    warnings: &mut Vec<Warning>,
) -> Result<(), SchemaError> {
    let mut report = String::new();
    validate_tree(chart, values, cache, warnings, &mut report);
    if report.is_empty() { Ok(()) } else { Err(SchemaError { report }) }
}

/// Holds values against one schema, as `ValidateAgainstSingleSchema`.
///
/// # Errors
///
/// The failures, one a line, or why the schema cannot be used.
pub fn validate_schema(
    schema: &[u8],
    values: &Map,
    warnings: &mut Vec<Warning>,
) -> Result<(), String> {
    Compiled::new(Arc::from(schema)).validate(values, warnings)
}

fn validate_tree(
    chart: &Chart,
    values: &Map,
    cache: &mut SchemaCache,
    warnings: &mut Vec<Warning>,
    report: &mut String,
) {
    if let Some(schema) = &chart.schema
        && let Err(text) = cache.get(schema).validate(values, warnings)
    {
        report.push_str(chart.name());
        report.push_str(":\n");
        report.push_str(&text);
    }
    for subchart in &chart.dependencies {
        match values.get(subchart.name()) {
            None | Some(Value::Null) => {}
            Some(Value::Map(values)) => validate_tree(subchart, values, cache, warnings, report),
            Some(other) => {
                report.push_str(subchart.name());
                report.push_str(":\ninvalid type for values: expected object (map), got ");
                report.push_str(other.type_name());
                report.push('\n');
            }
        }
    }
}

impl SchemaCache {
    fn get(&mut self, schema: &Arc<[u8]>) -> &Compiled {
        let address = schema.as_ptr() as usize;
        self.compiled.entry(address).or_insert_with(|| Compiled::new(Arc::clone(schema)))
    }
}

/// A schema, compiled when it is needed.
struct Compiled {
    /// The text, and what it says if it uses only common keywords.
    text: Arc<[u8]>,
    common: Option<quick::Common>,
    schema: OnceLock<Result<Schema, String>>,
}

struct Schema {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
    /// The schema as it was read.
    document: Json,
}

impl Compiled {
    fn new(text: Arc<[u8]>) -> Self {
        let common = quick::Common::read(&text);
        Self { text, common, schema: OnceLock::new() }
    }

    /// Validates and leaves what is noted on the way in `warnings`.
    fn validate(&self, values: &Map, warnings: &mut Vec<Warning>) -> Result<(), String> {
        if self.common.as_ref().is_some_and(|schema| schema.is_surely_valid(values)) {
            return Ok(());
        }
        let schema = self.schema.get_or_init(|| {
            // A schema that is one long line of brackets must not exhaust the stack.
            let brackets = self.text.iter().filter(|b| matches!(b, b'{' | b'[')).count();
            let (result, notes) = on_deep_stack(brackets > DEEP * DEEP, || compile(&self.text));
            warnings.extend(notes);
            result
        });
        let schema = schema.as_ref().map_err(Clone::clone)?;
        let run = || {
            let values = to_json_map(values);
            let result = schema.schemas.validate(&values, schema.index);
            result.map_err(|error| report::validation(&error, &schema.document))
        };
        on_deep_stack(depth(values) > DEEP, || caught(run).and_then(|result| result))
    }
}

/// Compiles on this stack and returns what was noted on the way.
fn compile(schema: &[u8]) -> (Result<Schema, String>, Vec<Warning>) {
    let notes = Rc::new(RefCell::new(Vec::new()));
    let result = caught(|| {
        let document = parse(schema)?;
        let mut compiler = boon::Compiler::new();
        formats::register(&mut compiler);
        compiler.use_loader(Box::new(Loader { notes: Rc::clone(&notes) }));
        let mut schemas = boon::Schemas::new();
        compiler
            .add_resource(URL, document.clone())
            .map_err(|error| report::compilation(&error))?;
        let index =
            compiler.compile(URL, &mut schemas).map_err(|error| report::compilation(&error))?;
        Ok(Schema { schemas, index, document })
    });
    let notes = notes.take();
    (result.and_then(|result| result), notes)
}

/// Runs code of the schema library; a panic in it becomes an error, as Helm recovers from one.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        format!("unable to validate schema: {}", text.unwrap_or("unknown panic"))
    })
}

/// Runs on a thread with a large stack if `deep`. Only pages that are used cost memory.
fn on_deep_stack<T: Send>(deep: bool, run: impl FnOnce() -> T + Send) -> T {
    if !deep {
        return run();
    }
    let mut run = Some(run);
    let on_thread = std::thread::scope(|scope| {
        let run = &mut run;
        let thread = std::thread::Builder::new()
            .stack_size(DEEP_STACK)
            .spawn_scoped(scope, move || run.take().map(|run| run()));
        thread.ok().and_then(|thread| thread.join().ok()).flatten()
    });
    match (on_thread, run) {
        (Some(result), _) => result,
        // The thread could not be started: do without.
        (None, Some(run)) => run(),
        // Panics are caught inside, so that a started thread always has a result.
        (None, None) => std::process::abort(),
    }
}

fn depth(values: &Map) -> usize {
    let below = |value: &Value| match value {
        Value::Map(map) => depth(map),
        Value::Seq(items) => items.iter().map(seq_depth).max().unwrap_or(0) + 1,
        _ => 0,
    };
    values.values().map(below).max().unwrap_or(0) + 1
}

fn seq_depth(value: &Value) -> usize {
    match value {
        Value::Map(map) => depth(map),
        Value::Seq(items) => items.iter().map(seq_depth).max().unwrap_or(0) + 1,
        _ => 0,
    }
}

/// Reads a schema, with Go's errors for text that is no JSON.
fn parse(text: &[u8]) -> Result<Json, String> {
    let (value, length) = goyaml::json::from_json_prefix(text, &Limits::default())
        .map_err(|error| error.to_string())?;
    let rest = text.get(length..).unwrap_or_default();
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    if !rest.iter().all(is_space) {
        return Err("invalid character after top-level value".to_owned());
    }
    // The library's own reader keeps integers apart from floats, but refuses what Go reads here
    // and there (deep nesting, half surrogates).
    Ok(serde_json::from_slice(text).unwrap_or_else(|_| to_json(&value)))
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Int(number) => Json::from(*number),
        Value::Uint(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::String(text) => Json::String(text.to_str_lossy().into_owned()),
        Value::Seq(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Map(map) => to_json_map(map),
    }
}

fn to_json_map(map: &Map) -> Json {
    let entry =
        |(key, value): (&bstr::BString, &Value)| (key.to_str_lossy().into_owned(), to_json(value));
    Json::Object(map.iter().map(entry).collect())
}
