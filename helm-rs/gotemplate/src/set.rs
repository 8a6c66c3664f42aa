//! A set of templates that call each other.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::exec::{self, Builtin, Scope, Shared, Template, Templates};
use crate::function::FunctionMap;
use crate::parse::{self, Functions};
use crate::program::{Callee, Program};
use crate::value::{Str, Value};

/// What a missing key of a map gives; Go's option `missingkey`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// `default`, `invalid`: no value, printed as `<no value>`.
    #[default]
    Invalid,
    /// `zero`: the zero value of the map's element type.
    Zero,
    /// `error`: the execution fails.
    Error,
}

/// Bounds on one execution. Reaching one ends it with [`crate::ErrorKind::Limit`].
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes written, counting outputs that functions take back while they wait.
    pub output_bytes: usize,
    /// Instructions and calls.
    pub steps: u64,
    /// Executions inside each other, by functions that run templates.
    pub nesting: usize,
    /// Bytes of the texts and lists that calls return, in all (4 GiB). A template can keep
    /// them all, and double a text at every turn of a loop.
    pub made_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output_bytes: 256 << 20, steps: u64::MAX, nesting: 10_000, made_bytes: 4 << 30 }
    }
}

/// How templates are run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What a missing key gives.
    pub missing_key: MissingKey,
    /// The bounds.
    pub limits: Limits,
}

/// Templates by name, and the functions that they may call: Go's `template.Template` with
/// everything associated with it.
///
/// A set is parsed once and may run many times, from several threads at once.
///
/// ```
/// use gotemplate::{FunctionMap, Set, Value};
///
/// let mut set = Set::new("root", FunctionMap::new());
/// set.parse("hello", br#"{{define "name"}}{{.name}}{{end}}Hello, {{template "name" .}}!"#)?;
/// let mut out = Vec::new();
/// set.execute("hello", &Value::map([("name", Value::from("world"))]), &mut (), &mut out)?;
/// assert_eq!(out, b"Hello, world!");
/// # Ok::<(), gotemplate::Error>(())
/// ```
pub struct Set {
    root_name: Str,
    functions: FunctionMap,
    options: Options,
    templates: Templates,
    texts: Mutex<Texts>,
}

/// Texts that templates gave to be parsed at run time, most of them again and again.
#[derive(Default)]
struct Texts {
    bytes: usize,
    programs: HashMap<(Str, Str), Arc<Program>>,
}

/// Texts beyond this are parsed anew each time.
const MAX_CACHED_BYTES: usize = 8 << 20;

impl Set {
    /// An empty set. `root_name` is what Go's `template.New` is given: errors about missing
    /// templates show it, and texts parsed at run time get it.
    pub fn new(root_name: impl Into<Str>, functions: FunctionMap) -> Self {
        Self {
            root_name: root_name.into(),
            functions,
            options: Options::default(),
            templates: Templates::new(),
            texts: Mutex::default(),
        }
    }

    /// The same set with other options.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The options, for changing.
    pub const fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// The name of the set's root.
    pub const fn root_name(&self) -> &Str {
        &self.root_name
    }

    /// Whether there is a template of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.templates.contains_key(name.as_bytes())
    }

    /// The names of all templates, sorted.
    pub fn names(&self) -> Vec<&Str> {
        let mut names: Vec<&Str> = self.templates.keys().collect();
        names.sort_unstable();
        names
    }

    /// Parses a text, as `root.New(name).Parse(text)`: it becomes the template `name`, and
    /// the templates that it defines join the set. A template of nothing but space and
    /// comments does not replace another.
    ///
    /// # Errors
    /// When the text does not parse; the set is then as before.
    pub fn parse(&mut self, name: impl Into<Str>, text: &[u8]) -> Result<(), Error> {
        self.parse_shared(name, &Arc::from(text))
    }

    /// As [`Set::parse`], keeping the text itself instead of a copy.
    ///
    /// # Errors
    /// As [`Set::parse`].
    pub fn parse_shared(&mut self, name: impl Into<Str>, text: &Arc<[u8]>) -> Result<(), Error> {
        let name = name.into();
        let program = Arc::new(parse::parse(&name, text, self)?);
        for (index, tree) in program.trees.iter().enumerate() {
            let known = self.templates.get(&tree.name).is_some_and(Template::is_defined);
            if !(known && tree.is_empty) {
                let template = Template { parsed: Some((Arc::clone(&program), index)) };
                self.templates.insert(tree.name.clone(), template);
            }
        }
        Ok(())
    }

    /// Runs a template and appends what it writes to `out`, up to where it failed. `host`
    /// is handed to the functions ([`crate::Runtime::host`]).
    ///
    /// # Errors
    /// When there is no such template, it fails, or a limit is reached.
    pub fn execute(
        &self,
        name: &str,
        dot: &Value,
        host: &mut dyn Any,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut shared = Shared::new(host, &self.options, None);
        exec::execute(&Scope::new(self), name.as_bytes(), dot, &mut shared, out)
    }

    /// As [`Set::execute`]; `interrupted` is asked after every few steps and ends
    /// the execution by returning true, for a deadline or a cancelled request.
    ///
    /// # Errors
    /// As [`Set::execute`], and when it was interrupted.
    pub fn execute_until(
        &self,
        name: &str,
        dot: &Value,
        host: &mut dyn Any,
        out: &mut Vec<u8>,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error> {
        let mut shared = Shared::new(host, &self.options, Some(interrupted));
        exec::execute(&Scope::new(self), name.as_bytes(), dot, &mut shared, out)
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&Template> {
        self.templates.get(name)
    }

    /// Parses a text at run time. The outcome depends on name, text and functions only, so
    /// that it is kept.
    pub(crate) fn parse_text(&self, name: &Str, text: &Str) -> Result<Arc<Program>, Error> {
        let key = (name.clone(), text.clone());
        let texts = || self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = texts().programs.get(&key) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(parse::parse(name, &text.shared(), self)?);
        let mut texts = texts();
        if texts.bytes + text.len() <= MAX_CACHED_BYTES {
            texts.bytes += text.len();
            texts.programs.insert(key, Arc::clone(&program));
        }
        Ok(program)
    }
}

impl Functions for Set {
    fn find(&self, name: &[u8]) -> Option<Callee> {
        let own = std::str::from_utf8(name).ok().and_then(|name| self.functions.get(name));
        match own {
            Some(function) => Some(Callee::Function(function.clone())),
            None => Builtin::find(name).map(Callee::Builtin),
        }
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set")
            .field("root_name", &self.root_name)
            .field("templates", &self.names())
            .finish_non_exhaustive()
    }
}
