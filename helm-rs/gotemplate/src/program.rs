//! The compiled form of a template text.
//!
//! ```text
//! Program ── the text, and what all templates in it share
//!   ├─ nodes   expressions, as a flat tree: pipelines, commands, operands
//!   └─ trees   one per template in the text, each with its instructions
//! ```
//!
//! Names are resolved once: functions to handles, variables to declarations with a place
//! on the stack. Everything else refers to spans of the text, so that a program is small
//! and can be shared between threads. Nodes can be written back as text, as Go does
//! in its errors.

use std::sync::Arc;

use crate::exec::Builtin;
use crate::function::Function;
use crate::strconv;
use crate::value::Str;

/// A part of the program's text, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// An index into a table of the program.
pub(crate) type Id = u32;

/// A run of entries of [`Program::children`] or [`Program::names`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Run {
    pub(crate) const fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// The run without its first entry.
    pub(crate) const fn tail(self) -> Self {
        Self { start: self.start + 1, end: self.end }
    }
}

/// What an identifier calls.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Builtin(Builtin),
    Function(Function),
}

/// An expression, or an action as far as errors name it.
#[derive(Debug)]
pub(crate) enum Node {
    /// `(A | B)` or the inside of an action.
    Pipe { declared: Run, assigns: bool, commands: Run },
    /// An operand and its arguments.
    Command { args: Run },
    /// A function: an index into [`Program::callees`].
    Identifier { name: Span, callee: Id },
    /// `.A.B`.
    Field { names: Run },
    /// `$x.A.B`: the declaration that `$x` means, if any.
    Variable { name: Span, declaration: Option<Id>, fields: Run },
    /// `(pipe).A.B`.
    Chain { node: Id, fields: Run },
    /// `.`
    Dot,
    /// `nil`
    Nil,
    /// `true`, `false`
    Bool(bool),
    /// An index into [`Program::numbers`].
    Number(Id),
    /// The literal, and an index into [`Program::strings`].
    String { literal: Span, text: Id },
    /// An action that prints.
    Action { pipe: Id },
    /// `{{template "name" pipe}}`: the name is in [`Program::strings`].
    Template { name: Id, pipe: Option<Id> },
}

/// A declared variable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declaration {
    pub(crate) name: Span,
    /// Its place on the variable stack of the template.
    pub(crate) slot: u32,
    /// The declaration of the same name that it hides. Go looks variables up by name when
    /// it runs, and finds that one when this declaration was skipped.
    pub(crate) outer: Option<Id>,
}

/// A numeric constant under every type that can hold it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    pub(crate) text: Span,
    pub(crate) int: Option<i64>,
    pub(crate) uint: Option<u64>,
    pub(crate) float: Option<f64>,
    pub(crate) complex: Option<(f64, f64)>,
    /// Written as a float, so that it is one where any type will do.
    pub(crate) looks_float: bool,
}

/// One instruction. Jumps are absolute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Writes text.
    Text(Span),
    /// Evaluates the action's pipeline and prints the result.
    Print {
        action: Id,
        pipe: Id,
    },
    /// Evaluates a pipeline that declares or assigns.
    Evaluate {
        pipe: Id,
    },
    /// Goes on when the pipeline is true, else jumps.
    If {
        pipe: Id,
        otherwise: u32,
    },
    /// As `If`, and makes the value the dot.
    With {
        pipe: Id,
        otherwise: u32,
    },
    /// Gives the dot of `With` back.
    EndWith,
    /// Starts a loop: an index into [`Tree::loops`].
    Range(Id),
    /// The end of a loop's body.
    Next(Id),
    Break(Id),
    /// Leaves the innermost loop's `{{else}}`, for a `continue` of one around it.
    LeaveLoop,
    Jump(u32),
    /// Drops the variables from this slot on.
    EndScope {
        slots: u32,
    },
    /// Runs another template: a node.
    Template(Id),
    Return,
}

/// A `range` action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loop {
    pub(crate) pipe: Id,
    /// The first instruction of the body.
    pub(crate) body: u32,
    /// Where it goes on when there was nothing to range over.
    pub(crate) otherwise: u32,
    /// Where it goes on after the last turn.
    pub(crate) done: u32,
    /// The variables that live through all turns.
    pub(crate) slots: u32,
    /// The declared or assigned variables, by node.
    pub(crate) variables: [Option<Id>; 2],
}

/// A compiled template.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) name: Str,
    pub(crate) code: Vec<Op>,
    pub(crate) loops: Vec<Loop>,
    /// Nothing but space and comments (`parse.IsEmptyTree`).
    pub(crate) is_empty: bool,
}

/// A parsed text with all templates in it.
#[derive(Debug)]
pub(crate) struct Program {
    /// The name it was parsed under, which errors show with the line.
    pub(crate) name: Str,
    pub(crate) text: Arc<[u8]>,
    pub(crate) nodes: Vec<Node>,
    /// The position of each node.
    pub(crate) positions: Vec<u32>,
    pub(crate) children: Vec<Id>,
    pub(crate) names: Vec<Span>,
    pub(crate) callees: Vec<(Str, Callee)>,
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) numbers: Vec<Number>,
    pub(crate) strings: Vec<Str>,
    pub(crate) trees: Vec<Tree>,
}

/// The number of newlines.
pub(crate) fn count_newlines(text: &[u8]) -> u32 {
    // Summing small chunks of bytes is what vectorises; a crate for it would be one more.
    text.chunks(255)
        .map(|chunk| u32::from(chunk.iter().map(|&b| u8::from(b == b'\n')).sum::<u8>()))
        .sum()
}

impl Program {
    pub(crate) fn span(&self, span: Span) -> &[u8] {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    pub(crate) fn node(&self, id: Id) -> &Node {
        self.nodes.get(id as usize).unwrap_or(&Node::Nil)
    }

    pub(crate) fn children(&self, run: Run) -> &[Id] {
        self.children.get(run.start as usize..run.end as usize).unwrap_or_default()
    }

    pub(crate) fn names(&self, run: Run) -> &[Span] {
        self.names.get(run.start as usize..run.end as usize).unwrap_or_default()
    }

    /// Line (from 1) and column (bytes from 0, as Go counts) of a node
    /// (`parse.Tree.ErrorContext`).
    pub(crate) fn place(&self, id: Id) -> (u32, u32) {
        let at = self.positions.get(id as usize).copied().unwrap_or(0) as usize;
        let before = self.text.get(..at).unwrap_or_default();
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        (1 + count_newlines(before), (at - line_start) as u32)
    }

    /// The node as Go's `Node.String` writes it.
    pub(crate) fn describe(&self, id: Id) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_node(&mut out, id, 0);
        out
    }

    fn write_node(&self, out: &mut Vec<u8>, id: Id, depth: usize) {
        // Only a text of that many parentheses gets here; its error needs no such context.
        if depth > 2_000 {
            out.extend_from_slice(b"...");
            return;
        }
        match self.node(id) {
            Node::Pipe { declared, assigns, commands } => {
                for (index, &variable) in self.children(*declared).iter().enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b", ");
                    }
                    self.write_node(out, variable, depth + 1);
                }
                if declared.len() > 0 {
                    out.extend_from_slice(if *assigns { b" = " } else { b" := " });
                }
                for (index, &command) in self.children(*commands).iter().enumerate() {
                    if index > 0 {
                        out.extend_from_slice(b" | ");
                    }
                    self.write_node(out, command, depth + 1);
                }
            }
            Node::Command { args } => {
                for (index, &arg) in self.children(*args).iter().enumerate() {
                    if index > 0 {
                        out.push(b' ');
                    }
                    self.write_operand(out, arg, depth);
                }
            }
            Node::Identifier { name, .. } => out.extend_from_slice(self.span(*name)),
            Node::Field { names } => self.write_fields(out, *names),
            Node::Variable { name, fields, .. } => {
                out.extend_from_slice(self.span(*name));
                self.write_fields(out, *fields);
            }
            Node::Chain { node, fields } => {
                self.write_operand(out, *node, depth);
                self.write_fields(out, *fields);
            }
            Node::Dot => out.push(b'.'),
            Node::Nil => out.extend_from_slice(b"nil"),
            Node::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Node::Number(number) => {
                if let Some(number) = self.numbers.get(*number as usize) {
                    out.extend_from_slice(self.span(number.text));
                }
            }
            Node::String { literal, .. } => out.extend_from_slice(self.span(*literal)),
            Node::Action { pipe } => {
                out.extend_from_slice(b"{{");
                self.write_node(out, *pipe, depth + 1);
                out.extend_from_slice(b"}}");
            }
            Node::Template { name, pipe } => {
                out.extend_from_slice(b"{{template ");
                strconv::append_quote(out, self.string(*name).as_bytes());
                if let Some(pipe) = pipe {
                    out.push(b' ');
                    self.write_node(out, *pipe, depth + 1);
                }
                out.extend_from_slice(b"}}");
            }
        }
    }

    /// An operand: pipelines stand in parentheses.
    fn write_operand(&self, out: &mut Vec<u8>, id: Id, depth: usize) {
        let is_pipe = matches!(self.node(id), Node::Pipe { .. });
        if is_pipe {
            out.push(b'(');
        }
        self.write_node(out, id, depth + 1);
        if is_pipe {
            out.push(b')');
        }
    }

    fn write_fields(&self, out: &mut Vec<u8>, names: Run) {
        for &name in self.names(names) {
            out.push(b'.');
            out.extend_from_slice(self.span(name));
        }
    }

    pub(crate) fn string(&self, id: Id) -> &Str {
        // The table is filled by the parser together with the node; the fallback is the
        // program's own name, so that nothing needs to be made here.
        self.strings.get(id as usize).unwrap_or(&self.name)
    }
}
