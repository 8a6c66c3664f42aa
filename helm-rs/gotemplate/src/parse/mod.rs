//! From tokens to the compiled program (Go `text/template/parse/parse.go`).
//!
//! There is no separate syntax tree: expressions become nodes of the [`Program`], control
//! structures become instructions as they are read.

mod lexer;
mod number;
mod operand;
mod tree;

use std::sync::Arc;

use lexer::{Kind, Lexer, Token};
use tree::TreeState;

use crate::error::{Details, Error, ErrorKind, Place};
use crate::fmt;
use crate::program::{Callee, Id, Node, Op, Program, Run, Span, Tree};
use crate::strconv;
use crate::value::{Str, Value};
use crate::with_stack;

/// Control structures inside each other beyond this are refused. Go has no such limit; it
/// only protects memory.
const MAX_NESTING: u32 = 100_000;

/// Finds a function by name.
pub(crate) trait Functions {
    fn find(&self, name: &[u8]) -> Option<Callee>;
}

/// Parses `text` under `name`. The first tree is the one of the text itself.
pub(crate) fn parse(name: &Str, text: &Arc<[u8]>, functions: &dyn Functions) -> Result<Program> {
    if u32::try_from(text.len()).is_err() {
        return Err(Error::new(Details {
            kind: ErrorKind::Limit,
            text: format!("template: {name}: text is larger than 4 GiB").into(),
            template: name.clone(),
            place: None,
        }));
    }
    let keyword = |word: &[u8]| functions.find(word).is_none();
    let lexer = Lexer::new(text, keyword(b"break"), keyword(b"continue"));
    let program = Program {
        name: name.clone(),
        text: Arc::clone(text),
        nodes: Vec::new(),
        positions: Vec::new(),
        children: Vec::new(),
        names: Vec::new(),
        callees: Vec::new(),
        declarations: Vec::new(),
        numbers: Vec::new(),
        strings: Vec::new(),
        trees: Vec::new(),
    };
    let tree = TreeState::new(name.clone());
    let mut parser = Parser { lexer, functions, program, tree, nesting: 0, pending: Vec::new() };
    parser.parse()?;
    Ok(parser.program)
}

/// The state of reading one text.
struct Parser<'t> {
    lexer: Lexer<'t>,
    functions: &'t dyn Functions,
    program: Program,
    /// The tree being read: the text itself, or a `define` or `block` in it.
    tree: TreeState,
    nesting: u32,
    /// Children of the nodes being read, innermost last.
    pending: Vec<Id>,
}

/// How a list of actions ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// `{{end}}`
    End,
    /// `{{else}}`; of `{{else if` and `{{else with` the rest is still to be read.
    Else,
}

impl Ending {
    const fn text(self) -> &'static str {
        match self {
            Self::End => "{{end}}",
            Self::Else => "{{else}}",
        }
    }
}

/// A control structure with a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    If,
    Range,
    With,
}

impl Control {
    const fn context(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Range => "range",
            Self::With => "with",
        }
    }
}

type Result<T> = std::result::Result<T, Error>;

// Tokens, with up to three pushed back.
impl Parser<'_> {
    fn next(&mut self) -> Token {
        if self.tree.peeked > 0 {
            self.tree.peeked -= 1;
        } else {
            self.tree.tokens[0] = self.lexer.next();
        }
        self.tree.tokens[self.tree.peeked]
    }

    const fn backup(&mut self) {
        self.tree.peeked += 1;
    }

    fn peek(&mut self) -> Token {
        if self.tree.peeked > 0 {
            return self.tree.tokens[self.tree.peeked - 1];
        }
        self.tree.peeked = 1;
        self.tree.tokens[0] = self.lexer.next();
        self.tree.tokens[0]
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }
}

// Errors.
impl Parser<'_> {
    /// `errorf`: an error at the line of the last token read.
    fn fail<T>(&self, format: &str, args: &[Value]) -> Result<T> {
        let line = self.tree.tokens[0].line;
        let name = &self.program.name;
        // Go formats the place first and uses the outcome as a format again, so that a `%`
        // in the name does what it does there.
        let mut whole = Vec::new();
        let place = [name.clone().into(), Value::int(line.into())];
        fmt::append_printf(&mut whole, b"template: %s:%d: ", &place);
        whole.extend_from_slice(format.as_bytes());
        Err(Error::new(Details {
            kind: ErrorKind::Parse,
            text: fmt::sprintf(&whole, args).into(),
            template: self.tree.name.clone(),
            place: Some(Place {
                source_name: name.clone(),
                source: Arc::clone(&self.program.text),
                line: line.max(1),
                column: None,
                length: 0,
            }),
        }))
    }

    /// `unexpected`.
    fn unexpected<T>(&self, token: Token, context: &str) -> Result<T> {
        let described = self.lexer.describe(token);
        if token.kind != Kind::Error {
            let args = [Value::string(described), context.into()];
            return self.fail("unexpected %s in %s", &args);
        }
        let mut extra = String::new();
        let line = self.tree.action_line;
        if line != 0 && line != token.line {
            // Go avoids "action in action".
            let start = if described.ends_with(b" action") { "" } else { " in action" };
            extra = format!("{start} started at {}:{line}", self.program.name);
        }
        self.fail("%s%s", &[Value::string(described), extra.into()])
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Result<Token> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(token, context) }
    }
}

// The program under construction.
impl Parser<'_> {
    fn add_node(&mut self, node: Node, at: u32) -> Id {
        self.program.nodes.push(node);
        self.program.positions.push(at);
        self.program.nodes.len() as Id - 1
    }

    /// Moves the pending children from `start` on into the program.
    fn take_children(&mut self, start: usize) -> Run {
        let first = self.program.children.len() as Id;
        self.program.children.extend(self.pending.drain(start..));
        Run { start: first, end: self.program.children.len() as Id }
    }

    fn add_string(&mut self, text: impl Into<Str>) -> Id {
        self.program.strings.push(text.into());
        self.program.strings.len() as Id - 1
    }

    fn emit(&mut self, op: Op) -> usize {
        self.tree.code.push(op);
        self.tree.code.len() - 1
    }

    const fn here(&self) -> u32 {
        self.tree.code.len() as u32
    }

    fn patch(&mut self, at: usize, target: u32) {
        if let Some(op) = self.tree.code.get_mut(at) {
            match op {
                Op::If { otherwise, .. } | Op::With { otherwise, .. } => *otherwise = target,
                Op::Jump(to) => *to = target,
                _ => {}
            }
        }
    }

    /// Installs the finished tree (`Tree.add`); reading goes on with `outer`.
    fn finish_tree(&mut self, outer: TreeState) -> Result<()> {
        self.emit(Op::Return);
        let trees = &mut self.program.trees;
        if let Some(known) = trees.iter().position(|tree| tree.name == self.tree.name) {
            if !trees[known].is_empty && !self.tree.is_empty {
                let name = self.tree.name.clone().into();
                return self.fail("template: multiple definition of template %q", &[name]);
            }
            if !trees[known].is_empty {
                self.tree = outer;
                return Ok(());
            }
            trees.remove(known);
        }
        let finished = std::mem::replace(&mut self.tree, outer);
        self.program.trees.push(finished.into_tree());
        Ok(())
    }
}

// Actions.
impl Parser<'_> {
    /// `Tree.parse`: the whole text.
    fn parse(&mut self) -> Result<()> {
        loop {
            let token = self.peek();
            if token.kind == Kind::Eof {
                break;
            }
            if token.kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                self.tree.push_back(&[delim]);
            }
            if let Some(ending) = self.text_or_action()? {
                return self.fail("unexpected %s", &[ending.text().into()]);
            }
        }
        self.finish_tree(TreeState::new(Str::default()))
    }

    /// `parseDefinition`, after the keyword.
    fn definition(&mut self) -> Result<()> {
        const CONTEXT: &str = "define clause";
        // Errors about the name itself are those of the new tree.
        let outer = std::mem::replace(&mut self.tree, TreeState::new("definition".into()));
        let token = self.next_non_space();
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, CONTEXT);
        }
        self.tree.name = Str::from(self.unquote(token)?);
        self.expect(Kind::RightDelim, CONTEXT)?;
        let ending = self.item_list()?;
        if ending != Ending::End {
            let args = [ending.text().into(), CONTEXT.into()];
            return self.fail("unexpected %s in %s", &args);
        }
        self.finish_tree(outer)
    }

    /// `itemList`: up to `{{end}}` or `{{else}}`.
    fn item_list(&mut self) -> Result<Ending> {
        while self.peek_non_space().kind != Kind::Eof {
            if let Some(ending) = self.text_or_action()? {
                return Ok(ending);
            }
        }
        self.fail("unexpected EOF", &[])
    }

    /// `textOrAction`.
    fn text_or_action(&mut self) -> Result<Option<Ending>> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => {
                let text = self.lexer.text_of(token);
                if self.tree.is_empty {
                    self.tree.is_empty = is_blank(text);
                }
                self.emit(Op::Text(Span { start: token.start, end: token.end }));
                Ok(None)
            }
            Kind::LeftDelim => {
                self.tree.action_line = token.line;
                let ending = self.action()?;
                self.tree.action_line = 0;
                Ok(ending)
            }
            _ => self.unexpected(token, "input"),
        }
    }

    /// `action`, after the left delimiter.
    fn action(&mut self) -> Result<Option<Ending>> {
        let token = self.next_non_space();
        match token.kind {
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Some(Ending::End));
            }
            Kind::Else => {
                if !matches!(self.peek_non_space().kind, Kind::If | Kind::With) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Some(Ending::Else));
            }
            _ => {}
        }
        match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => self.leave_loop(token, "break")?,
            Kind::Continue => self.leave_loop(token, "continue")?,
            Kind::If => self.control(Control::If)?,
            Kind::Range => self.control(Control::Range)?,
            Kind::With => self.control(Control::With)?,
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                let at = self.peek().start;
                let pipe = self.pipeline("command", Kind::RightDelim)?;
                if matches!(self.program.node(pipe), Node::Pipe { declared, .. } if declared.len() > 0)
                {
                    self.emit(Op::Evaluate { pipe });
                } else {
                    let action = self.add_node(Node::Action { pipe }, at);
                    self.emit(Op::Print { action, pipe });
                }
            }
        }
        self.tree.is_empty = false;
        Ok(None)
    }

    /// `breakControl` and `continueControl`.
    fn leave_loop(&mut self, keyword: Token, word: &str) -> Result<()> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(token, &format!("{{{{{word}}}}}"));
        }
        let open = &self.tree.open_loops;
        let Some(body) = open.iter().rposition(|open| !open.in_else) else {
            return self.fail("{{%s}} outside {{range}}", &[word.into()]);
        };
        if keyword.kind == Kind::Break {
            if let Some(innermost) = open.last() {
                self.emit(Op::Break(innermost.id));
            }
            return Ok(());
        }
        let (id, left) = (open[body].id, open.len() - body - 1);
        for _ in 0..left {
            self.emit(Op::LeaveLoop);
        }
        self.emit(Op::Next(id));
        Ok(())
    }

    /// `parseControl`.
    fn control(&mut self, control: Control) -> Result<()> {
        if self.nesting >= MAX_NESTING {
            return self.fail("exceeded maximum nesting of control structures", &[]);
        }
        self.nesting += 1;
        let scope = self.tree.scope();
        with_stack(|| self.control_body(control))?;
        if self.tree.leave_scope(scope) {
            let slots = self.tree.slots();
            self.emit(Op::EndScope { slots });
        }
        self.nesting -= 1;
        Ok(())
    }

    fn control_body(&mut self, control: Control) -> Result<()> {
        let pipe = self.pipeline(control.context(), Kind::RightDelim)?;
        let start = match control {
            Control::If => self.emit(Op::If { pipe, otherwise: 0 }),
            Control::With => self.emit(Op::With { pipe, otherwise: 0 }),
            Control::Range => return self.loop_body(pipe),
        };
        let ending = self.item_list()?;
        if control == Control::With {
            self.emit(Op::EndWith);
        }
        if ending == Ending::Else {
            let over = self.emit(Op::Jump(0));
            self.patch(start, self.here());
            self.other_branch(control)?;
            self.patch(over, self.here());
        } else {
            self.patch(start, self.here());
        }
        Ok(())
    }

    fn loop_body(&mut self, pipe: Id) -> Result<()> {
        let id = self.open_loop(pipe);
        let ending = self.item_list()?;
        self.close_loop_body(id);
        if ending == Ending::Else {
            self.other_branch(Control::Range)?;
        }
        self.close_loop(id);
        Ok(())
    }

    fn other_branch(&mut self, control: Control) -> Result<()> {
        let next = self.peek().kind;
        match (control, next) {
            (Control::If, Kind::If) | (Control::With, Kind::With) => {
                self.next();
                // Its `{{end}}` is that of the whole chain.
                self.control(control)
            }
            _ => {
                let ending = self.item_list()?;
                if ending == Ending::End {
                    return Ok(());
                }
                self.fail("expected end; found %s", &[ending.text().into()])
            }
        }
    }

    /// `blockControl`: a definition and its use in one.
    fn block(&mut self) -> Result<()> {
        const CONTEXT: &str = "block clause";
        if self.nesting >= MAX_NESTING {
            return self.fail("exceeded maximum nesting of control structures", &[]);
        }
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        let outer = std::mem::replace(&mut self.tree, TreeState::new(name.clone()));
        self.nesting += 1;
        let ending = with_stack(|| self.item_list())?;
        self.nesting -= 1;
        if ending != Ending::End {
            // This error is one of the outer tree.
            self.tree = outer;
            let args = [ending.text().into(), CONTEXT.into()];
            return self.fail("unexpected %s in %s", &args);
        }
        self.finish_tree(outer)?;
        self.emit_template(token, name, Some(pipe));
        Ok(())
    }

    /// `templateControl`.
    fn template(&mut self) -> Result<()> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?);
        }
        self.emit_template(token, name, pipe);
        Ok(())
    }

    fn emit_template(&mut self, token: Token, name: Str, pipe: Option<Id>) {
        let name = self.add_string(name);
        let node = self.add_node(Node::Template { name, pipe }, token.start);
        self.emit(Op::Template(node));
    }

    fn template_name(&mut self, token: Token, context: &str) -> Result<Str> {
        match token.kind {
            Kind::String | Kind::RawString => Ok(Str::from(self.unquote(token)?)),
            _ => self.unexpected(token, context),
        }
    }

    fn unquote(&self, token: Token) -> Result<Vec<u8>> {
        match strconv::unquote(self.lexer.text_of(token)) {
            Ok(text) => Ok(text.into_owned()),
            Err(error) => self.fail("%s", &[error.to_string().into()]),
        }
    }
}

/// `bytes.TrimSpace` leaves nothing.
fn is_blank(text: &[u8]) -> bool {
    use bstr::ByteSlice as _;
    text.trim().is_empty()
}
