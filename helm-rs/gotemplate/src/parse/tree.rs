//! What belongs to one template while it is read: lookahead, variables, loops, code.

use super::lexer::{Kind, Token};
use super::{Parser, Tree};
use crate::program::{Declaration, Id, Loop, Node, Op, Span};
use crate::value::Str;

/// The state of one tree (`parse.Tree`). Go gives each `define` and `block` a parser of
/// its own, with its own lookahead, and error lines follow from that.
pub(super) struct TreeState {
    pub(super) name: Str,
    pub(super) tokens: [Token; 3],
    /// How many tokens were read ahead or pushed back.
    pub(super) peeked: usize,
    /// The line of the action being read, 0 outside.
    pub(super) action_line: u32,
    /// The depth of parentheses.
    pub(super) stack_depth: u32,
    pub(super) is_empty: bool,
    pub(super) code: Vec<Op>,
    pub(super) loops: Vec<Loop>,
    /// The loops around this place, outermost first.
    pub(super) open_loops: Vec<OpenLoop>,
    /// Names that may be used; a name counts from its declaration's start.
    pub(super) visible: Vec<Span>,
    /// Declarations that have been evaluated when an action here runs, one per slot after
    /// the slot of `$`.
    pub(super) declared: Vec<Id>,
}

/// A loop that is being read.
#[derive(Clone, Copy)]
pub(super) struct OpenLoop {
    pub(super) id: Id,
    /// In its `{{else}}`: there, `break` ends only this loop (`walkRange` recovers it around both
    /// branches), but does not count as being in a loop.
    pub(super) in_else: bool,
}

/// How much of the variables was there when a scope began.
#[derive(Clone, Copy)]
pub(super) struct Scope {
    visible: usize,
    declared: usize,
}

impl TreeState {
    pub(super) const fn new(name: Str) -> Self {
        Self {
            name,
            tokens: [Token::NONE; 3],
            peeked: 0,
            action_line: 0,
            stack_depth: 0,
            is_empty: true,
            code: Vec::new(),
            loops: Vec::new(),
            open_loops: Vec::new(),
            visible: Vec::new(),
            declared: Vec::new(),
        }
    }

    pub(super) fn into_tree(self) -> Tree {
        Tree { name: self.name, code: self.code, loops: self.loops, is_empty: self.is_empty }
    }

    /// `backup2` and `backup3`: pushes tokens back in front of the last one read, given
    /// last first.
    pub(super) fn push_back(&mut self, tokens: &[Token]) {
        for (place, token) in self.tokens.iter_mut().skip(1).zip(tokens) {
            *place = *token;
        }
        self.peeked = tokens.len() + 1;
    }

    pub(super) const fn scope(&self) -> Scope {
        Scope { visible: self.visible.len(), declared: self.declared.len() }
    }

    /// Whether the scope had variables of its own.
    pub(super) fn leave_scope(&mut self, scope: Scope) -> bool {
        self.visible.truncate(scope.visible);
        let had_own = self.declared.len() > scope.declared;
        self.declared.truncate(scope.declared);
        had_own
    }

    /// The number of slots in use, with the one of `$`.
    pub(super) const fn slots(&self) -> u32 {
        self.declared.len() as u32 + 1
    }
}

// Variables.
impl Parser<'_> {
    /// Whether the name may be used here; `$` always.
    pub(super) fn is_visible(&self, name: Span) -> bool {
        let text = self.program.span(name);
        text == b"$" || self.tree.visible.iter().any(|&known| self.program.span(known) == text)
    }

    /// The declaration that the name means when it is used here.
    pub(super) fn resolve(&self, name: Span) -> Option<Id> {
        let text = self.program.span(name);
        self.tree.declared.iter().rev().copied().find(|&id| {
            self.program
                .declarations
                .get(id as usize)
                .is_some_and(|known| self.program.span(known.name) == text)
        })
    }

    /// Declares the name in the next slot.
    pub(super) fn declare(&mut self, name: Span) -> Id {
        let outer = self.resolve(name);
        let id = self.program.declarations.len() as Id;
        self.program.declarations.push(Declaration { name, slot: self.tree.slots(), outer });
        self.tree.declared.push(id);
        id
    }
}

// Loops.
impl Parser<'_> {
    /// Emits the start of a loop over `pipe`.
    pub(super) fn open_loop(&mut self, pipe: Id) -> Id {
        let mut variables = [None; 2];
        if let Node::Pipe { declared, .. } = *self.program.node(pipe) {
            for (place, &variable) in variables.iter_mut().zip(self.program.children(declared)) {
                *place = Some(variable);
            }
        }
        let id = self.tree.loops.len() as Id;
        self.emit(Op::Range(id));
        let slots = self.tree.slots();
        let body = self.here();
        self.tree.loops.push(Loop { pipe, body, otherwise: 0, done: 0, slots, variables });
        self.tree.open_loops.push(OpenLoop { id, in_else: false });
        id
    }

    /// Ends the body; the branch for nothing to range over follows.
    pub(super) fn close_loop_body(&mut self, id: Id) {
        self.emit(Op::Next(id));
        if let Some(open) = self.tree.open_loops.last_mut() {
            open.in_else = true;
        }
        let here = self.here();
        if let Some(info) = self.tree.loops.get_mut(id as usize) {
            info.otherwise = here;
        }
    }

    /// Ends the loop.
    pub(super) fn close_loop(&mut self, id: Id) {
        // The other branch runs inside the loop's state, too.
        self.emit(Op::Break(id));
        self.tree.open_loops.pop();
        let here = self.here();
        if let Some(info) = self.tree.loops.get_mut(id as usize) {
            info.done = here;
        }
    }
}

/// Whether a token may start an operand (`pipeline`).
pub(super) const fn starts_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::CharConstant
            | Kind::Complex
            | Kind::Dot
            | Kind::Field
            | Kind::Identifier
            | Kind::Number
            | Kind::Nil
            | Kind::RawString
            | Kind::String
            | Kind::Variable
            | Kind::LeftParen
    )
}
