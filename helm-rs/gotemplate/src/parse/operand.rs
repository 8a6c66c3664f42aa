//! Pipelines, commands and operands.

use super::lexer::{Kind, Token};
use super::number::parse_number;
use super::tree::starts_operand;
use super::{Parser, Result};
use crate::program::{Id, Node, Run, Span};
use crate::value::{Str, Value};
use crate::with_stack;

/// Go's `maxStackDepth` for parentheses.
const MAX_PARENTHESES: u32 = 10_000;

impl Token {
    const fn span(self) -> Span {
        Span { start: self.start, end: self.end }
    }
}

impl Parser<'_> {
    /// `pipeline`: declarations and commands up to a token of the kind `end`.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Result<Id> {
        let at = self.peek_non_space().start;
        let (variables, assigns) = self.declarations(context)?;
        let start = self.pending.len();
        loop {
            let token = self.next_non_space();
            if token.kind == end {
                break;
            }
            if !starts_operand(token.kind) {
                return self.unexpected(token, context);
            }
            self.backup();
            let command = self.command()?;
            self.pending.push(command);
        }
        let commands = self.take_children(start);
        self.check_pipeline(commands, context)?;
        let start = self.pending.len();
        for variable in variables.into_iter().flatten() {
            let name = variable.span();
            let declaration = if assigns { self.resolve(name) } else { Some(self.declare(name)) };
            let fields = Run::default();
            let node = Node::Variable { name, declaration, fields };
            let node = self.add_node(node, variable.start);
            self.pending.push(node);
        }
        let declared = self.take_children(start);
        Ok(self.add_node(Node::Pipe { declared, assigns, commands }, at))
    }

    /// The declared or assigned variables in front of a pipeline, and whether they are
    /// assigned.
    fn declarations(&mut self, context: &str) -> Result<([Option<Token>; 2], bool)> {
        let mut variables = [None; 2];
        loop {
            let variable = self.peek_non_space();
            if variable.kind != Kind::Variable {
                return Ok((variables, false));
            }
            self.next();
            // "$x" may be an argument; then what was read after it is given back.
            let after = self.peek();
            let next = self.peek_non_space();
            let is_comma = next.kind == Kind::Char && self.lexer.text_of(next) == b",";
            let count = variables.iter().flatten().count();
            if matches!(next.kind, Kind::Assign | Kind::Declare) || is_comma {
                self.next_non_space();
                if let Some(place) = variables.get_mut(count) {
                    *place = Some(variable);
                }
                self.tree.visible.push(variable.span());
                if !is_comma {
                    return Ok((variables, next.kind == Kind::Assign));
                }
                if context == "range" && count == 0 {
                    match self.peek_non_space().kind {
                        Kind::Variable | Kind::RightDelim | Kind::RightParen => continue,
                        _ => return self.fail("range can only initialize variables", &[]),
                    }
                }
                return self.fail("too many declarations in %s", &[context.into()]);
            }
            if after.kind == Kind::Space {
                self.tree.push_back(&[after, variable]);
            } else {
                self.tree.push_back(&[variable]);
            }
            return Ok((variables, false));
        }
    }

    /// `checkPipeline`.
    fn check_pipeline(&self, commands: Run, context: &str) -> Result<()> {
        if commands.len() == 0 {
            return self.fail("missing value for %s", &[context.into()]);
        }
        for (index, &command) in self.program.children(commands).iter().enumerate().skip(1) {
            let Node::Command { args } = *self.program.node(command) else { continue };
            let first = self.program.children(args).first().map(|&arg| self.program.node(arg));
            if matches!(
                first,
                Some(Node::Bool(_) | Node::Dot | Node::Nil | Node::Number(_) | Node::String { .. })
            ) {
                let stage = Value::int(index as i64 + 1);
                return self.fail("non executable command in pipeline stage %d", &[stage]);
            }
        }
        Ok(())
    }

    /// `command`: operands up to a pipe or the end of the pipeline.
    fn command(&mut self) -> Result<Id> {
        let at = self.peek_non_space().start;
        let start = self.pending.len();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                self.pending.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => continue,
                Kind::RightDelim | Kind::RightParen => self.backup(),
                Kind::Pipe => {}
                _ => return self.unexpected(token, "operand"),
            }
            break;
        }
        let args = self.take_children(start);
        if args.len() == 0 {
            return self.fail("empty command", &[]);
        }
        Ok(self.add_node(Node::Command { args }, at))
    }

    /// `operand`: a term and the fields after it.
    fn operand(&mut self) -> Result<Option<Id>> {
        let Some(node) = self.term()? else { return Ok(None) };
        let first = self.peek();
        if first.kind != Kind::Field {
            return Ok(Some(node));
        }
        // Fields of a field or variable become part of it, others a chain.
        let start = self.program.names.len() as Id;
        let (own, name) = match *self.program.node(node) {
            Node::Field { names } => (names, None),
            Node::Variable { name, declaration, .. } => (Run::default(), Some((name, declaration))),
            _ => (Run::default(), None),
        };
        let is_field = matches!(self.program.node(node), Node::Field { .. });
        for &name in &self.program.names(own).to_vec() {
            self.program.names.push(name);
        }
        while self.peek().kind == Kind::Field {
            let token = self.next();
            self.program.names.push(Span { start: token.start + 1, end: token.end });
        }
        let fields = Run { start, end: self.program.names.len() as Id };
        let at = first.start;
        if is_field {
            return Ok(Some(self.add_node(Node::Field { names: fields }, at)));
        }
        if let Some((name, declaration)) = name {
            return Ok(Some(self.add_node(Node::Variable { name, declaration, fields }, at)));
        }
        if matches!(self.program.node(node), Node::Identifier { .. } | Node::Pipe { .. }) {
            return Ok(Some(self.add_node(Node::Chain { node, fields }, at)));
        }
        let text = Value::string(self.program.describe(node));
        self.fail("unexpected . after term %q", &[text])
    }

    /// `term`.
    fn term(&mut self) -> Result<Option<Id>> {
        let token = self.next_non_space();
        let at = token.start;
        let node = match token.kind {
            Kind::Identifier => self.identifier(token)?,
            Kind::Dot => Node::Dot,
            Kind::Nil => Node::Nil,
            Kind::Variable => {
                let name = token.span();
                if !self.is_visible(name) {
                    let name = Value::string(self.lexer.text_of(token));
                    return self.fail("undefined variable %q", &[name]);
                }
                Node::Variable { name, declaration: self.resolve(name), fields: Run::default() }
            }
            Kind::Field => {
                let start = self.program.names.len() as Id;
                self.program.names.push(Span { start: token.start + 1, end: token.end });
                Node::Field { names: Run { start, end: start + 1 } }
            }
            Kind::Bool => Node::Bool(self.lexer.text_of(token) == b"true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                match parse_number(self.lexer.text_of(token), token.kind) {
                    Ok(mut number) => {
                        number.text = token.span();
                        self.program.numbers.push(number);
                        Node::Number(self.program.numbers.len() as Id - 1)
                    }
                    Err(message) => return self.fail("%s", &[Value::string(message)]),
                }
            }
            Kind::LeftParen => {
                if self.tree.stack_depth >= MAX_PARENTHESES {
                    return self.fail("max expression depth exceeded", &[]);
                }
                self.tree.stack_depth += 1;
                let pipe =
                    with_stack(|| self.pipeline("parenthesized pipeline", Kind::RightParen))?;
                self.tree.stack_depth -= 1;
                return Ok(Some(pipe));
            }
            Kind::String | Kind::RawString => {
                let text = self.unquote(token)?;
                Node::String { literal: token.span(), text: self.add_string(text) }
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(self.add_node(node, at)))
    }

    fn identifier(&mut self, token: Token) -> Result<Node> {
        let text = self.lexer.text_of(token);
        let name = token.span();
        let known = self.program.callees.iter().position(|(known, _)| known.as_bytes() == text);
        if let Some(known) = known {
            return Ok(Node::Identifier { name, callee: known as Id });
        }
        let Some(callee) = self.functions.find(text) else {
            return self.fail("function %q not defined", &[Value::string(text)]);
        };
        self.program.callees.push((Str::from(text), callee));
        Ok(Node::Identifier { name, callee: self.program.callees.len() as Id - 1 })
    }
}
