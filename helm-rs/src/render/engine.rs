//! The engine: a chart's templates and values become text by file (`pkg/engine/engine.go`).
//!
//! ```text
//! Chart ── templates ─► Program (parsed once, kept, shared by renders)
//!                          │
//! values, release ── dots ─┴─► run ─► BTreeMap<file, text>
//! ```
//!
//! An [`Engine`] keeps the programs it has parsed: rendering the same chart again with other
//! values parses nothing, unless the values switch subcharts on or off.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BString, ByteSlice};
use gotemplate::value::Entries;
use gotemplate::{ErrorKind, Map, MissingKey, Set, Value};

use super::capabilities_object::CapabilitiesObject;
use super::engine_functions;
use super::files::files;
use super::functions::builtin_functions;
use super::host::Host;
use super::objects::{ChartObject, VALUES, table};
use super::shared;
use crate::capabilities::Capabilities;
use crate::chart::{Chart, Warning};
use crate::gopath;
use crate::values::{self, SchemaCache, SchemaError, SharedValues};

/// Programs that an engine keeps; a chart has one per set of enabled subcharts.
const KEPT_PROGRAMS: usize = 16;

/// Renders charts, and keeps the templates that it has parsed. Shared between threads.
pub struct Engine {
    options: EngineOptions,
    programs: Mutex<Vec<Arc<Program>>>,
    schemas: Mutex<SchemaCache>,
}

/// How an [`Engine`] renders.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineOptions {
    /// A missing map key is an error.
    pub strict: bool,
    /// Bounds on what a render may cost.
    pub limits: RenderLimits,
}

/// Bounds on what one render may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderLimits {
    /// Bytes that the files of one render may come to, in all (256 MiB). Sixteen times as much,
    /// and never less than 1 GiB, may one file's calls return on the way.
    pub output: usize,
    /// Steps of one file's execution, each loop's rounds counted (1,000,000,000).
    pub steps: u64,
}

impl Default for RenderLimits {
    fn default() -> Self {
        Self { output: 256 * 1024 * 1024, steps: 1_000_000_000 }
    }
}

/// What `.Release` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `.Release.Name`.
    pub name: String,
    /// `.Release.Namespace`.
    pub namespace: String,
    /// `.Release.Revision`.
    pub revision: i64,
    /// `.Release.IsUpgrade`.
    pub is_upgrade: bool,
    /// `.Release.IsInstall`. Neither this nor the other is set in a lint.
    pub is_install: bool,
}

/// Why a chart did not render. Its text is Helm's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    /// The template that was read or run, as `.Template.Name` has it.
    pub template: String,
    /// Helm's text. Not necessarily UTF-8, since it may quote a template's data.
    pub message: BString,
    /// The line of the template with the failing part marked, for a terminal.
    pub excerpt: Option<String>,
    /// Whether a limit was reached: of this program, not of Helm.
    pub is_limit: bool,
}

/// The templates of a chart, parsed.
struct Program {
    set: Set,
    sources: Vec<(String, Arc<[u8]>)>,
}

/// A template and what it gets.
struct Renderable {
    source: Arc<[u8]>,
    dot: Map,
    base_path: String,
}

/// Orders templates as Helm reads and runs them: deeper ones first, later names first
/// (`sortTemplates`).
fn helm_order(a: &str, b: &str) -> std::cmp::Ordering {
    let depth = |name: &str| name.bytes().filter(|&b| b == b'/').count();
    depth(b).cmp(&depth(a)).then_with(|| b.cmp(a))
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine without programs.
    pub fn new(options: EngineOptions) -> Self {
        Self { options, programs: Mutex::default(), schemas: Mutex::default() }
    }

    /// Lets go of what is kept: the programs and the schemas.
    pub fn forget(&self) {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.schemas.lock().unwrap_or_else(PoisonError::into_inner) = SchemaCache::default();
    }

    /// Holds values against the schemas of a chart and its subcharts; compiled schemas are kept.
    ///
    /// # Errors
    /// [`SchemaError`] with every failure.
    pub fn validate(
        &self,
        chart: &Chart,
        values: &goyaml::Map,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), SchemaError> {
        let mut schemas = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        values::validate(chart, values, &mut schemas, warnings)
    }

    /// Renders every template of the chart and its subcharts that is not a partial.
    ///
    /// `values` are coalesced ([`crate::values`]); `chart` has had its dependencies processed
    /// with the same values. Randomness, clock and lookups come from `host`.
    ///
    /// # Errors
    /// Helm's error for the first template, in Helm's order, that does not parse or run.
    pub fn render(
        &self,
        chart: &Chart,
        values: &SharedValues,
        release: &Release,
        capabilities: &Capabilities,
        host: &mut Host,
    ) -> Result<BTreeMap<String, BString>, RenderError> {
        let root = Map::any(Entries::new());
        root.set("Release".into(), release_value(release));
        root.set("Capabilities".into(), CapabilitiesObject::value(capabilities));
        root.set("Values".into(), Value::Map(shared::values(values).retyped(&VALUES)));
        let mut templates = BTreeMap::new();
        collect(chart, &root, &mut templates);

        let mut names: Vec<&String> = templates.keys().collect();
        names.sort_unstable_by(|a, b| helm_order(a, b));
        let sources = names
            .iter()
            .filter_map(|name| Some(((*name).clone(), Arc::clone(&templates.get(*name)?.source))))
            .collect();
        let program = self.program(sources)?;
        self.run(&program, &templates, host)
    }

    /// The parsed form of the given templates: a kept one, or a new one that is kept.
    fn program(&self, sources: Vec<(String, Arc<[u8]>)>) -> Result<Arc<Program>, RenderError> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.iter().find(|program| program.has(&sources)) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Program::parse(sources, &self.options)?);
        if programs.len() == KEPT_PROGRAMS {
            programs.remove(0);
        }
        programs.push(Arc::clone(&program));
        Ok(program)
    }

    fn run(
        &self,
        program: &Program,
        templates: &BTreeMap<String, Renderable>,
        host: &mut Host,
    ) -> Result<BTreeMap<String, BString>, RenderError> {
        let mut rendered = BTreeMap::new();
        let mut left = self.options.limits.output;
        for (name, _) in &program.sources {
            let Some(template) = templates.get(name) else { continue };
            if gopath::base(name).starts_with('_') {
                continue;
            }
            let about = [("Name", name), ("BasePath", &template.base_path)];
            let about = about.map(|(key, value)| (key.into(), Value::string(value.as_str())));
            template.dot.set("Template".into(), Value::Map(Map::new(&VALUES, about.into())));
            let dot = Value::Map(template.dot.clone());
            let mut out = Vec::new();
            // The function belongs to the host, which the templates need as a whole.
            let mut interrupted = host.engine.interrupted.take();
            let result = match &mut interrupted {
                Some(ask) => program.set.execute_until(name, &dot, host, &mut out, ask),
                None => program.set.execute(name, &dot, host, &mut out),
            };
            host.engine.interrupted = interrupted;
            result.map_err(|error| error_while_running(name, &error))?;
            let text = without_no_value(out);
            left = left.checked_sub(text.len()).ok_or_else(|| RenderError {
                template: name.clone(),
                message: format!(
                    "rendering {name}: the chart's output is larger than the limit of {} bytes",
                    self.options.limits.output
                )
                .into(),
                excerpt: None,
                is_limit: true,
            })?;
            rendered.insert(name.clone(), text.into());
        }
        Ok(rendered)
    }
}

impl Program {
    fn parse(
        sources: Vec<(String, Arc<[u8]>)>,
        options: &EngineOptions,
    ) -> Result<Self, RenderError> {
        let mut functions = builtin_functions();
        engine_functions::register(&mut functions);
        let limits = gotemplate::Limits {
            output_bytes: options.limits.output,
            steps: options.limits.steps,
            made_bytes: options.limits.output.saturating_mul(16).max(1 << 30),
            ..gotemplate::Limits::default()
        };
        let missing_key = if options.strict { MissingKey::Error } else { MissingKey::Zero };
        let mut set =
            Set::new("gotpl", functions).with_options(gotemplate::Options { missing_key, limits });
        for (name, source) in &sources {
            set.parse_shared(name.as_str(), source)
                .map_err(|error| error_while_reading(name, &error))?;
        }
        Ok(Self { set, sources })
    }

    fn has(&self, sources: &[(String, Arc<[u8]>)]) -> bool {
        self.sources.len() == sources.len()
            && self.sources.iter().zip(sources).all(|((name, text), (other_name, other_text))| {
                name == other_name && (Arc::ptr_eq(text, other_text) || text == other_text)
            })
    }
}

fn release_value(release: &Release) -> Value {
    Value::map([
        ("Name", Value::string(release.name.as_str())),
        ("Namespace", Value::string(release.namespace.as_str())),
        ("IsUpgrade", Value::Bool(release.is_upgrade)),
        ("IsInstall", Value::Bool(release.is_install)),
        ("Revision", Value::int(release.revision)),
        ("Service", Value::string("Helm")),
    ])
}

/// Gives each template of a chart and its subcharts the dot of its chart (`recAllTpls`), and
/// returns the chart's own dot. `parent` holds the values that the chart's are a part of.
fn collect(chart: &Chart, parent: &Map, templates: &mut BTreeMap<String, Renderable>) -> Map {
    let values = if chart.is_root() {
        parent.get(b"Values").unwrap_or_default()
    } else {
        let path = format!("Values.{}", chart.name());
        let values = table(parent, path.as_bytes());
        Value::Map(values.unwrap_or_else(|_| Map::new(&VALUES, Entries::new())))
    };
    let subcharts = Map::any(Entries::new());
    let dot = Map::any(Entries::from([
        ("Chart".into(), ChartObject::value(chart.metadata.clone(), chart.is_root())),
        ("Files".into(), files(&chart.files)),
        ("Release".into(), parent.get(b"Release").unwrap_or_default()),
        ("Capabilities".into(), parent.get(b"Capabilities").unwrap_or_default()),
        ("Values".into(), values),
        ("Subcharts".into(), Value::Map(subcharts.clone())),
    ]));
    for child in &chart.dependencies {
        let child_dot = collect(child, &dot, templates);
        subcharts.set(child.name().into(), Value::Map(child_dot));
    }
    for template in &chart.templates {
        // Of a library chart, only the partials count.
        if chart.is_library() && !gopath::base(&template.name).starts_with('_') {
            continue;
        }
        let renderable = Renderable {
            source: Arc::clone(&template.data),
            // `renderable.vals` has this type; what `.Subcharts` holds is the plain map.
            dot: dot.retyped(&VALUES),
            base_path: gopath::join(chart.full_path(), "templates"),
        };
        templates.insert(gopath::join(chart.full_path(), &template.name), renderable);
    }
    dot
}

/// Go prints `<no value>` for a missing map entry even where Helm asks it not to; Helm then
/// removes the words wherever they come from.
pub(super) fn without_no_value(text: Vec<u8>) -> Vec<u8> {
    const NO_VALUE: &[u8] = b"<no value>";
    if text.find(NO_VALUE).is_none() { text } else { text.replace(NO_VALUE, b"") }
}

/// `cleanupParseError`.
fn error_while_reading(name: &str, error: &gotemplate::Error) -> RenderError {
    let excerpt = error.excerpt();
    let is_limit = error.kind() == ErrorKind::Limit;
    let error = error.text().as_bytes();
    let mut parts = error.split_str(": ");
    let location = parts.nth(1);
    let message = match (location, error.rsplitn_str(2, ": ").next()) {
        (Some(location), Some(last)) => [b"parse error at (", location, b"): ", last].concat(),
        _ => [b"parse error in (", name.as_bytes(), b"): ", error].concat(),
    };
    RenderError { template: name.to_owned(), message: message.into(), excerpt, is_limit }
}

/// `cleanupExecError`: what `required` and `fail` say stands between two marks.
fn error_while_running(name: &str, error: &gotemplate::Error) -> RenderError {
    let excerpt = error.excerpt();
    let is_limit = error.kind() == ErrorKind::Limit;
    let is_exec_error = error.is_exec_error();
    let error = error.text().as_bytes();
    let parts: Vec<&[u8]> = error.splitn_str(3, ": ").collect();
    let message = match parts[..] {
        _ if !is_exec_error => error.to_vec(),
        [_, location, rest] => match marked(rest) {
            Some(warning) => [b"execution error at (", location, b"): ", warning].concat(),
            None => error.to_vec(),
        },
        _ => [b"execution error in (", name.as_bytes(), b"): ", error].concat(),
    };
    RenderError { template: name.to_owned(), message: message.into(), excerpt, is_limit }
}

fn marked(text: &[u8]) -> Option<&[u8]> {
    let start = text.find(engine_functions::WARNING_START)? + engine_functions::WARNING_START.len();
    let rest = text.get(start..)?;
    rest.get(..rest.rfind(engine_functions::WARNING_END)?)
}
