//! Running a compiled template (Go `text/template/exec.go`).
//!
//! [`Machine`] runs the instructions of one template and of those it calls; expressions
//! are evaluated in `eval`, calls checked and made in `call`. A function that runs a
//! template (`include`) enters the same machine again; one that parses a text first
//! (`tpl`) starts another machine over a [`Scope`] of its own.

mod builtin;
mod call;
mod compare;
mod escape;
mod eval;
mod place;
mod ranges;

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

pub(crate) use builtin::Builtin;
use ranges::Items;

use crate::error::{Error, ErrorKind};
use crate::fmt;
use crate::function::{CallError, Runtime, TextError};
use crate::program::{Id, Op, Program, Tree};
use crate::set::{MissingKey, Options, Set};
use crate::value::{Str, Value};
use crate::with_stack;

/// Templates inside templates, as Go's `maxExecDepth`.
const MAX_TEMPLATE_DEPTH: usize = 100_000;

/// Steps between two looks at the clock of the caller: few, since one step may be a call that
/// makes a key and takes a second.
const STEPS_PER_CHECK: u64 = 16;

type Result<T> = std::result::Result<T, Error>;

/// A template that can run: its program and the number of its tree there. Nothing when it
/// has a name but no text (Go's template without a tree).
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) parsed: Option<(Arc<Program>, usize)>,
}

impl Template {
    fn tree(&self) -> Option<(&Program, &Tree)> {
        let (program, tree) = self.parsed.as_ref()?;
        Some((program, program.trees.get(*tree)?))
    }

    /// Whether another template may not replace it when that one is empty.
    pub(crate) const fn is_defined(&self) -> bool {
        self.parsed.is_some()
    }
}

/// The templates by name.
pub(crate) type Templates = HashMap<Str, Template>;

/// The templates that can be seen: those of the set, and in front of them those that texts
/// parsed at run time define. This stands for Go's clone of the whole set.
pub(crate) struct Scope<'s> {
    pub(crate) set: &'s Set,
    /// What has the set's root name here, since every text run by `tpl` redefines that.
    root: Option<Template>,
    own: Templates,
    /// The nearest scope outside that defines a name of its own. Texts that define nothing
    /// are passed over: otherwise a deep recursion through them would look through all of
    /// them at every level.
    outer: Option<&'s Self>,
}

impl<'s> Scope<'s> {
    pub(crate) fn new(set: &'s Set) -> Self {
        Self { set, root: None, own: Templates::new(), outer: None }
    }

    fn find(&self, name: &[u8]) -> Option<&Template> {
        if let Some(root) = &self.root
            && name == self.set.root_name().as_bytes()
        {
            return Some(root);
        }
        let mut scope = Some(self);
        while let Some(here) = scope {
            if let Some(template) = here.own.get(name) {
                return Some(template);
            }
            scope = here.outer;
        }
        self.set.find(name)
    }

    fn define(&mut self, name: &Str, template: Template) {
        if name == self.set.root_name() {
            self.root = Some(template);
        } else {
            self.own.insert(name.clone(), template);
        }
    }

    /// A scope for a text parsed under the set's root name, and its main template.
    fn with_text(outer: &'s Self, program: &Arc<Program>) -> (Self, Template) {
        let mut scope = Self {
            set: outer.set,
            root: outer.root.clone(),
            own: Templates::new(),
            outer: if outer.own.is_empty() { outer.outer } else { Some(outer) },
        };
        // Go's clone has a root template without a text.
        if outer.find(program.name.as_bytes()).is_some() {
            scope.define(&program.name, Template { parsed: None });
        }
        let mut main = Template { parsed: None };
        for (index, tree) in program.trees.iter().enumerate() {
            let template = Template { parsed: Some((Arc::clone(program), index)) };
            if tree.name == program.name {
                main = template.clone();
            }
            let known = scope.find(tree.name.as_bytes()).is_some_and(Template::is_defined);
            if !(known && tree.is_empty) {
                scope.define(&tree.name, template);
            }
        }
        (scope, main)
    }
}

/// A value as Go's reflection sees it: what an `interface {}` holds, and whether it still
/// is inside one, as the items of most lists and maps are. Nil that is not is no value at
/// all (the zero `reflect.Value`).
#[derive(Clone, Default)]
struct Evaluated {
    value: Value,
    wrapped: bool,
}

impl Evaluated {
    const fn plain(value: Value) -> Self {
        Self { value, wrapped: false }
    }

    const NONE: Self = Self { value: Value::Nil, wrapped: false };

    /// The zero `reflect.Value`.
    const fn is_invalid(&self) -> bool {
        matches!(self.value, Value::Nil) && !self.wrapped
    }

    /// The name of the type that the value has where it stands.
    fn type_name(&self) -> &str {
        if self.wrapped { "interface {}" } else { self.value.type_name() }
    }
}

/// What all machines of one execution share.
pub(crate) struct Shared<'h> {
    pub(crate) host: &'h mut dyn Any,
    pub(crate) options: &'h Options,
    /// Asked now and then; true stops the execution.
    pub(crate) interrupted: Option<&'h mut dyn FnMut() -> bool>,
    steps: u64,
    /// When the limits are looked at next.
    next_check: u64,
    /// Executions inside each other.
    nested: usize,
    /// Bytes in the outputs that wait for the one being written.
    waiting_bytes: usize,
    /// Bytes that calls have returned ([`crate::Limits::made_bytes`]).
    made_bytes: usize,
    /// The limit that was reached: it ends the execution whatever functions make of it.
    limit: Option<Error>,
    arguments: Vec<Vec<Value>>,
    outputs: Vec<Vec<u8>>,
}

impl<'h> Shared<'h> {
    pub(crate) fn new(
        host: &'h mut dyn Any,
        options: &'h Options,
        interrupted: Option<&'h mut dyn FnMut() -> bool>,
    ) -> Self {
        Self {
            host,
            options,
            interrupted,
            steps: 0,
            next_check: STEPS_PER_CHECK,
            nested: 0,
            waiting_bytes: 0,
            made_bytes: 0,
            limit: None,
            arguments: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

/// A loop that is running.
struct LoopState {
    items: Items,
    /// The dot outside.
    dot: Evaluated,
    /// The height of the stack of dots.
    dots: usize,
}

/// A template that waits for the one it called.
struct Frame<'s> {
    program: &'s Program,
    tree: &'s Tree,
    next: usize,
    dot: Evaluated,
    base: usize,
    at: Id,
}

/// The state of an execution.
pub(crate) struct Machine<'s, 'm, 'h> {
    scope: &'s Scope<'s>,
    shared: &'m mut Shared<'h>,
    out: Vec<u8>,
    program: &'s Program,
    tree: &'s Tree,
    /// The next instruction.
    next: usize,
    dot: Evaluated,
    /// The node that errors name (Go's `state.node`).
    at: Id,
    /// Where the variables of the running template start; the first is `$`.
    base: usize,
    /// None where a declaration was skipped.
    variables: Vec<Option<Evaluated>>,
    /// Dots that `with` hides.
    dots: Vec<Evaluated>,
    loops: Vec<LoopState>,
    frames: Vec<Frame<'s>>,
}

/// Runs the named template from outside.
pub(crate) fn execute(
    scope: &Scope<'_>,
    name: &[u8],
    dot: &Value,
    shared: &mut Shared<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let result = match scope.find(name) {
        Some(template) => run_alone(scope, template, name, dot.clone(), shared, out),
        None => Err(scope.no_template(name)),
    };
    match shared.limit.take() {
        Some(limit) => Err(limit),
        None => result,
    }
}

/// Runs a template on a machine of its own.
fn run_alone(
    scope: &Scope<'_>,
    template: &Template,
    name: &[u8],
    dot: Value,
    shared: &mut Shared<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some((program, tree)) = template.tree() else {
        return Err(Scope::incomplete(name));
    };
    let mut machine = Machine {
        scope,
        shared,
        out: std::mem::take(out),
        program,
        tree,
        next: 0,
        dot: Evaluated::NONE,
        at: 0,
        base: 0,
        variables: Vec::new(),
        dots: Vec::new(),
        loops: Vec::new(),
        frames: Vec::new(),
    };
    let result = machine.run_tree(program, tree, dot);
    *out = machine.out;
    result
}

impl<'s> Machine<'s, '_, '_> {
    /// Runs a tree from its start with its own `$` and dot.
    fn run_tree(&mut self, program: &'s Program, tree: &'s Tree, dot: Value) -> Result<()> {
        let (dots, loops, frames) = (self.dots.len(), self.loops.len(), self.frames.len());
        self.enter(program, tree, Evaluated::plain(dot));
        let result = self.run(frames + 1);
        self.dots.truncate(dots);
        self.loops.truncate(loops);
        self.frames.truncate(frames + 1);
        self.leave();
        result
    }

    /// Saves the running template and starts another.
    fn enter(&mut self, program: &'s Program, tree: &'s Tree, dot: Evaluated) {
        self.frames.push(Frame {
            program: self.program,
            tree: self.tree,
            next: self.next,
            dot: std::mem::replace(&mut self.dot, dot.clone()),
            base: self.base,
            at: self.at,
        });
        self.program = program;
        self.tree = tree;
        self.next = 0;
        self.base = self.variables.len();
        self.variables.push(Some(dot));
    }

    /// Goes on with the template that was saved last.
    fn leave(&mut self) {
        self.variables.truncate(self.base);
        if let Some(frame) = self.frames.pop() {
            self.program = frame.program;
            self.tree = frame.tree;
            self.next = frame.next;
            self.dot = frame.dot;
            self.base = frame.base;
            self.at = frame.at;
        }
    }

    /// Runs instructions until the template entered at this height of frames returns.
    fn run(&mut self, floor: usize) -> Result<()> {
        loop {
            self.step()?;
            let Some(&op) = self.tree.code.get(self.next) else { return Ok(()) };
            self.next += 1;
            match op {
                Op::Text(span) => self.out.extend_from_slice(self.program.span(span)),
                Op::Print { action, pipe } => {
                    self.at = action;
                    let value = self.evaluate_pipe(pipe)?;
                    self.at = action;
                    self.print(action, &value)?;
                }
                Op::Evaluate { pipe } => {
                    self.evaluate_pipe(pipe)?;
                }
                Op::If { pipe, otherwise } => {
                    if !self.evaluate_pipe(pipe)?.is_true() {
                        self.next = otherwise as usize;
                    }
                }
                Op::With { pipe, otherwise } => {
                    let value = self.evaluate_pipe(pipe)?;
                    if value.is_true() {
                        let outer = std::mem::replace(&mut self.dot, Evaluated::plain(value));
                        self.dots.push(outer);
                    } else {
                        self.next = otherwise as usize;
                    }
                }
                Op::EndWith => {
                    if let Some(dot) = self.dots.pop() {
                        self.dot = dot;
                    }
                }
                Op::Range(id) => self.start_loop(id)?,
                Op::Next(id) => self.next_turn(id)?,
                Op::Break(id) => self.end_loop(id),
                Op::LeaveLoop => self.leave_loop(),
                Op::Jump(target) => self.next = target as usize,
                Op::EndScope { slots } => self.variables.truncate(self.base + slots as usize),
                Op::Template(node) => self.call_template(node, floor)?,
                Op::Return => {
                    if self.frames.len() == floor {
                        return Ok(());
                    }
                    self.leave();
                }
            }
        }
    }

    /// Counts a step and looks at the limits now and then.
    fn step(&mut self) -> Result<()> {
        self.shared.steps += 1;
        let written = self.out.len() + self.shared.waiting_bytes;
        if self.shared.steps < self.shared.next_check
            && written <= self.shared.options.limits.output_bytes
        {
            return Ok(());
        }
        self.check_limits(written)
    }

    #[cold]
    fn check_limits(&mut self, written: usize) -> Result<()> {
        let limits = &self.shared.options.limits;
        if written > limits.output_bytes {
            let text = format!("output exceeds {} bytes", limits.output_bytes);
            return self.stop(&text);
        }
        if self.shared.steps >= limits.steps {
            let text = format!("execution exceeds {} steps", limits.steps);
            return self.stop(&text);
        }
        self.shared.next_check = (self.shared.steps + STEPS_PER_CHECK).min(limits.steps);
        if let Some(interrupted) = &mut self.shared.interrupted
            && interrupted()
        {
            return self.stop("execution was interrupted");
        }
        Ok(())
    }

    /// Counts what a call has returned.
    fn count_made(&mut self, value: &Value) -> Result<()> {
        let bytes = match value {
            Value::String(text) | Value::Bytes(text) => text.len(),
            Value::List(list) => size_of_val(list.items()),
            _ => return Ok(()),
        };
        self.check_text(bytes)?;
        let limits = &self.shared.options.limits;
        self.shared.made_bytes = self.shared.made_bytes.saturating_add(bytes);
        if self.shared.made_bytes > limits.made_bytes {
            let text = format!("calls return more than {} bytes", limits.made_bytes);
            return self.stop(&text);
        }
        Ok(())
    }

    /// Refuses a text that is too long, or that `fmt` has cut off.
    fn check_text(&mut self, bytes: usize) -> Result<()> {
        let limit = self.shared.options.limits.output_bytes.min(fmt::MAX_OUTPUT);
        if bytes > limit {
            return self.stop(&format!("a value exceeds {limit} bytes"));
        }
        Ok(())
    }

    /// Ends the whole execution at a limit.
    fn stop<T>(&mut self, text: &str) -> Result<T> {
        let error = self.error(ErrorKind::Limit, "%s", &[text.into()]);
        self.shared.limit = Some(error.clone());
        Err(error)
    }

    /// `walkTemplate`.
    fn call_template(&mut self, node: Id, floor: usize) -> Result<()> {
        self.at = node;
        let program = self.program;
        let crate::program::Node::Template { name, pipe } = program.node(node) else {
            return Ok(());
        };
        let name = program.string(*name);
        let Some(template) = self.scope.find(name.as_bytes()) else {
            return self.fail("template %q not defined", &[name.clone().into()]);
        };
        if self.frames.len() - floor >= MAX_TEMPLATE_DEPTH {
            let depth = Value::int(MAX_TEMPLATE_DEPTH as i64);
            return self.fail("exceeded maximum template depth (%v)", &[depth]);
        }
        let dot = match pipe {
            Some(pipe) => self.evaluate_pipe(*pipe)?,
            None => Value::Nil,
        };
        // Without a tree Go runs into a nil pointer here, and Helm reports that as its own.
        let Some((program, tree)) = template.tree() else {
            return self.fail("%q is an incomplete or empty template", &[name.clone().into()]);
        };
        self.enter(program, tree, Evaluated::plain(dot));
        Ok(())
    }

    /// `printValue`.
    fn print(&mut self, node: Id, value: &Value) -> Result<()> {
        if let Value::Object(object) = value
            && object.kind() == crate::value::Kind::Func
            && object.string().is_none()
        {
            let node = Value::string(self.program.describe(node));
            return self.fail("can't print %s of type %s", &[node, object.type_name().into()]);
        }
        let before = self.out.len();
        fmt::append_printable(&mut self.out, value);
        // What is too long for the whole output is noticed there.
        let written = self.out.len().saturating_sub(before);
        if written > fmt::MAX_OUTPUT { self.check_text(written) } else { Ok(()) }
    }

    const fn missing_key(&self) -> MissingKey {
        self.shared.options.missing_key
    }

    /// Runs `body` one execution deeper, with an output of its own that it returns.
    fn nested(
        &mut self,
        body: impl FnOnce(&mut Self) -> std::result::Result<(), TextError>,
    ) -> std::result::Result<Str, TextError> {
        if self.shared.nested >= self.shared.options.limits.nesting {
            let text = format!("more than {} executions inside each other", self.shared.nested);
            let error = self.stop::<()>(&text).err();
            return Err(TextError::Execute(
                error.map_or_else(|| text.into(), |error| error.text().clone()),
            ));
        }
        let buffer = self.shared.outputs.pop().unwrap_or_default();
        let outer = std::mem::replace(&mut self.out, buffer);
        self.shared.waiting_bytes += outer.len();
        self.shared.nested += 1;
        let result = with_stack(|| body(self));
        self.shared.nested -= 1;
        self.shared.waiting_bytes -= outer.len();
        let mut buffer = std::mem::replace(&mut self.out, outer);
        let text = result.map(|()| Str::from(buffer.as_slice()));
        buffer.clear();
        self.shared.outputs.push(buffer);
        text
    }
}

impl Runtime for Machine<'_, '_, '_> {
    fn execute(&mut self, name: &Str, data: Value) -> std::result::Result<Str, CallError> {
        let outcome = self.nested(|machine| {
            let scope = machine.scope;
            let result = match scope.find(name.as_bytes()) {
                None => Err(scope.no_template(name.as_bytes())),
                Some(template) => match template.tree() {
                    None => Err(Scope::incomplete(name.as_bytes())),
                    Some((program, tree)) => machine.run_tree(program, tree, data),
                },
            };
            result.map_err(|error| TextError::Execute(error.text().clone()))
        });
        outcome.map_err(|error| match error {
            TextError::Parse(text) | TextError::Execute(text) => CallError::new(text),
        })
    }

    fn execute_text(
        &mut self,
        name: &Str,
        text: &Str,
        data: Value,
    ) -> std::result::Result<Str, TextError> {
        self.nested(|machine| {
            let outer = machine.scope;
            let program = outer
                .set
                .parse_text(name, text)
                .map_err(|error| TextError::Parse(error.text().clone()))?;
            let (scope, main) = Scope::with_text(outer, &program);
            let mut out = std::mem::take(&mut machine.out);
            let shared = &mut *machine.shared;
            let result = run_alone(&scope, &main, name.as_bytes(), data, shared, &mut out);
            machine.out = out;
            result.map_err(|error| TextError::Execute(error.text().clone()))
        })
    }

    fn root_name(&self) -> Str {
        self.scope.set.root_name().clone()
    }

    fn host(&mut self) -> &mut dyn Any {
        self.shared.host
    }
}
