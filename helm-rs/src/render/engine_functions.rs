//! The functions that belong to a running engine: `include`, `tpl`, `required`, `fail`,
//! `lookup` and `getHostByName` (`pkg/engine/engine.go`, `initFunMap`).

#![expect(
    clippy::needless_pass_by_value,
    reason = "arguments are owned: their types are the Go signature"
)]

use std::collections::HashMap;
use std::fmt;

use gotemplate::{CallError, Function, FunctionMap, Runtime, Str, TextError, Value};

use super::engine::without_no_value;
use super::host::Host;
use crate::chart::Warning;
use crate::gotext;

/// Marks around the text of `required` and `fail`, by which [`super::engine`] finds it in the
/// chain of errors.
pub(super) const WARNING_START: &str = "HELM_ERR_START";
pub(super) const WARNING_END: &str = "HELM_ERR_END";

/// How many times one template may be nested in itself.
const MAX_NESTED_INCLUDES: usize = 1000;

/// Answers `lookup`: the cluster as templates see it.
pub trait Lookup {
    /// One object, or with an empty `name` the list of them; an empty map when there is none.
    /// `namespace` is empty for all namespaces and for objects without one.
    ///
    /// # Errors
    /// What the template's error says.
    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<goyaml::Map, String>;
}

/// Answers `getHostByName`: the addresses of a host, none when it is not known.
pub type Resolver = Box<dyn FnMut(&str) -> Vec<String>>;

/// What the engine's functions need besides their arguments, for the time of one render.
#[derive(Default)]
pub struct EngineState {
    /// `required` and `fail` do not fail, as for `helm lint`.
    pub lint: bool,
    /// The cluster; without it, `lookup` finds nothing.
    pub lookup: Option<Box<dyn Lookup>>,
    /// The network; without it, `getHostByName` yields nothing.
    pub resolver: Option<Resolver>,
    /// Asked now and then while a template runs; true ends it with an error.
    pub interrupted: Option<Box<dyn FnMut() -> bool>>,
    /// Lines that Helm would log.
    pub log: Vec<Warning>,
    /// How often each template is being included right now.
    included: HashMap<Str, usize>,
}

impl fmt::Debug for EngineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineState").field("lint", &self.lint).finish_non_exhaustive()
    }
}

/// Adds the engine's functions.
pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("include", Function::new(include));
    functions.insert("tpl", Function::new(tpl));
    functions.insert("required", Function::new(required));
    functions.insert("fail", Function::new(fail));
    functions.insert("lookup", Function::new(lookup));
    functions.insert("getHostByName", Function::new(get_host_by_name));
}

/// The names of the functions that [`register`] adds.
pub const ENGINE_FUNCTIONS: [&str; 6] =
    ["fail", "getHostByName", "include", "lookup", "required", "tpl"];

fn state(runtime: &mut dyn Runtime) -> Result<&mut EngineState, CallError> {
    match runtime.host().downcast_mut::<Host>() {
        Some(host) => Ok(&mut host.engine),
        None => Err(CallError::new("the template does not run in Helm's engine")),
    }
}

/// `includeFun`.
fn include(runtime: &mut dyn Runtime, name: Str, data: Value) -> Result<Str, CallError> {
    let count = state(runtime)?.included.entry(name.clone()).or_default();
    if *count > MAX_NESTED_INCLUDES {
        return Err(CallError::new(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        )));
    }
    *count += 1;
    let result = runtime.execute(&name, data);
    if let Some(count) = state(runtime)?.included.get_mut(&name) {
        *count -= 1;
    }
    result
}

/// `tplFun`.
fn tpl(runtime: &mut dyn Runtime, text: Str, data: Value) -> Result<Str, CallError> {
    let name = runtime.root_name();
    match runtime.execute_text(&name, &text, data) {
        Ok(out) => Ok(Str::from(without_no_value(out.to_vec()))),
        Err(TextError::Parse(error)) => {
            Err(wrap(&format!("cannot parse template {}: ", gotext::quote(&**text)), &error))
        }
        Err(TextError::Execute(error)) => Err(wrap(
            &format!("error during tpl function execution for {}: ", gotext::quote(&**text)),
            &error,
        )),
    }
}

fn wrap(context: &str, error: &Str) -> CallError {
    CallError::new([context.as_bytes(), error.as_bytes()].concat())
}

fn warning(text: &Str) -> CallError {
    CallError::new([WARNING_START.as_bytes(), text.as_bytes(), WARNING_END.as_bytes()].concat())
}

fn required(runtime: &mut dyn Runtime, text: Str, value: Value) -> Result<Value, CallError> {
    let origin = match &value {
        Value::Nil => "engine.go:206",
        Value::String(value) if value.is_empty() => "engine.go:214",
        _ => return Ok(value),
    };
    let state = state(runtime)?;
    if !state.lint {
        return Err(warning(&text));
    }
    state.log.push(Warning::new(origin, format!("[INFO] Missing required value: {text}")));
    Ok(Value::string(""))
}

fn fail(runtime: &mut dyn Runtime, text: Str) -> Result<Str, CallError> {
    let state = state(runtime)?;
    if !state.lint {
        return Err(warning(&text));
    }
    state.log.push(Warning::new("engine.go:227", format!("[INFO] Fail: {text}")));
    Ok(Str::default())
}

fn lookup(
    runtime: &mut dyn Runtime,
    api_version: Str,
    kind: Str,
    namespace: Str,
    name: Str,
) -> Result<Value, CallError> {
    let state = state(runtime)?;
    let found = match &mut state.lookup {
        Some(cluster) if !state.lint => cluster.lookup(
            &api_version.to_text(),
            &kind.to_text(),
            &namespace.to_text(),
            &name.to_text(),
        )?,
        _ => goyaml::Map::new(),
    };
    Ok(Value::Map(super::convert::from_map(found)))
}

/// `getHostByName` of sprig, which takes any of the addresses; this one takes the first.
fn get_host_by_name(runtime: &mut dyn Runtime, name: Str) -> Result<String, CallError> {
    let Some(resolver) = &mut state(runtime)?.resolver else { return Ok(String::new()) };
    resolver(&name.to_text())
        .into_iter()
        .next()
        .ok_or_else(|| CallError::new("invalid argument to Intn"))
}
