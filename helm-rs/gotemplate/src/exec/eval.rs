//! Pipelines, commands, fields and constants.

use super::{Evaluated, Machine, Result};
use crate::function::Method;
use crate::program::{Id, Node, Number, Run, Span};
use crate::set::MissingKey;
use crate::value::{Complex, Kind, Type, Value};
use crate::with_stack;

/// Where a chain of fields starts.
enum Start {
    Dot,
    /// A place on the stack of variables.
    Variable(usize),
    Value(Evaluated),
}

/// What a field name means on a value.
enum Field {
    Value(Evaluated),
    Method(&'static Method),
}

impl Machine<'_, '_, '_> {
    /// `evalPipeline`.
    pub(super) fn evaluate_pipe(&mut self, id: Id) -> Result<Value> {
        self.at = id;
        let program = self.program;
        let Node::Pipe { declared, assigns, commands } = program.node(id) else {
            return Ok(Value::Nil);
        };
        let mut value = None;
        for &command in program.children(*commands) {
            value = Some(self.evaluate_command(command, value)?.value);
        }
        let value = value.unwrap_or_default();
        for &variable in program.children(*declared) {
            if *assigns {
                self.set_variable(variable, Evaluated::plain(value.clone()))?;
            } else {
                self.declare_variable(variable, Evaluated::plain(value.clone()));
            }
        }
        Ok(value)
    }

    /// A pipeline in parentheses, which may be deep inside others.
    fn evaluate_nested(&mut self, id: Id) -> Result<Evaluated> {
        with_stack(|| self.evaluate_pipe(id).map(Evaluated::plain))
    }

    /// `evalCommand`; `last` is the value of the command before.
    fn evaluate_command(&mut self, id: Id, last: Option<Value>) -> Result<Evaluated> {
        let program = self.program;
        let Node::Command { args } = *program.node(id) else { return Ok(Evaluated::NONE) };
        let Some(&first) = program.children(args).first() else { return Ok(Evaluated::NONE) };
        match program.node(first) {
            Node::Field { names } => {
                self.at = first;
                self.evaluate_fields(Start::Dot, first, *names, args, last)
            }
            Node::Chain { .. } => self.evaluate_chain(first, args, last),
            Node::Identifier { .. } => self.evaluate_function(first, id, args.tail(), last),
            Node::Pipe { .. } => {
                self.not_a_function(args, last.is_some())?;
                self.evaluate_nested(first)
            }
            Node::Variable { .. } => self.evaluate_variable(first, args, last),
            node => {
                self.at = first;
                self.not_a_function(args, last.is_some())?;
                match node {
                    Node::Dot => Ok(self.dot.clone()),
                    Node::Nil => self.fail("nil is not a command", &[]),
                    _ => self.constant(first),
                }
            }
        }
    }

    /// `notAFunction`; `args` starts with the operand itself.
    fn not_a_function(&self, args: Run, has_last: bool) -> Result<()> {
        if args.len() > 1 || has_last {
            let first = self.program.children(args).first().copied().unwrap_or_default();
            let first = Value::string(self.program.describe(first));
            return self.fail("can't give argument to non-function %s", &[first]);
        }
        Ok(())
    }

    /// `evalVariableNode`.
    pub(super) fn evaluate_variable(
        &mut self,
        id: Id,
        args: Run,
        last: Option<Value>,
    ) -> Result<Evaluated> {
        self.at = id;
        let Node::Variable { fields, .. } = *self.program.node(id) else {
            return Ok(Evaluated::NONE);
        };
        let place = self.variable_place(id)?;
        if fields.len() == 0 {
            self.not_a_function(args, last.is_some())?;
            return Ok(self.variables.get(place).cloned().flatten().unwrap_or_default());
        }
        self.evaluate_fields(Start::Variable(place), id, fields, args, last)
    }

    /// `evalChainNode`.
    pub(super) fn evaluate_chain(
        &mut self,
        id: Id,
        args: Run,
        last: Option<Value>,
    ) -> Result<Evaluated> {
        self.at = id;
        let Node::Chain { node, fields } = *self.program.node(id) else {
            return Ok(Evaluated::NONE);
        };
        let start = self.evaluate_operand(node)?;
        self.evaluate_fields(Start::Value(start), id, fields, args, last)
    }

    /// The value of an operand that is no constant (`evalArg` without its type).
    pub(super) fn evaluate_operand(&mut self, id: Id) -> Result<Evaluated> {
        self.at = id;
        match *self.program.node(id) {
            Node::Dot => Ok(self.dot.clone()),
            Node::Field { names } => {
                self.evaluate_fields(Start::Dot, id, names, Run::default(), None)
            }
            Node::Variable { .. } => self.evaluate_variable(id, Run::default(), None),
            Node::Pipe { .. } => self.evaluate_nested(id),
            Node::Identifier { .. } => self.evaluate_function(id, id, Run::default(), None),
            Node::Chain { .. } => self.evaluate_chain(id, Run::default(), None),
            _ => Ok(Evaluated::NONE),
        }
    }

    /// `evalFieldChain`: `args` starts with the operand itself, if there are any.
    fn evaluate_fields(
        &mut self,
        start: Start,
        node: Id,
        names: Run,
        args: Run,
        last: Option<Value>,
    ) -> Result<Evaluated> {
        let program = self.program;
        let Some((&last_name, others)) = program.names(names).split_last() else {
            return Ok(Evaluated::NONE);
        };
        let mut start = start;
        for &name in others {
            let value = self.evaluate_field(&start, name, node, Run::default(), None)?;
            start = Start::Value(value);
        }
        self.evaluate_field(&start, last_name, node, args, last)
    }

    /// `evalField`.
    fn evaluate_field(
        &mut self,
        start: &Start,
        name: Span,
        node: Id,
        args: Run,
        last: Option<Value>,
    ) -> Result<Evaluated> {
        const NONE: Evaluated = Evaluated::NONE;
        let has_args = args.len() > 1 || last.is_some();
        let receiver = match start {
            Start::Dot => &self.dot,
            Start::Variable(place) => {
                self.variables.get(*place).and_then(Option::as_ref).unwrap_or(&NONE)
            }
            Start::Value(value) => value,
        };
        let method = match self.find_field(receiver, self.program.span(name), has_args)? {
            Field::Value(value) => return Ok(value),
            Field::Method(method) => method,
        };
        let receiver = receiver.value.clone();
        let args = if args.len() > 0 { args.tail() } else { args };
        self.call_method(method, &receiver, node, args, last)
    }

    /// The part of `evalField` that needs no call.
    fn find_field(&self, receiver: &Evaluated, name: &[u8], has_args: bool) -> Result<Field> {
        let as_text = || Value::string(name);
        match &receiver.value {
            Value::Map(map) => {
                if let Some(method) = find_method(map.ty().methods, name) {
                    return Ok(Field::Method(method));
                }
                if has_args {
                    return self.fail("%s is not a method but has arguments", &[as_text()]);
                }
                let element = map.ty().element;
                let wrapped = matches!(element, Type::Any);
                if let Some(value) = map.get(name) {
                    return Ok(Field::Value(Evaluated { value, wrapped }));
                }
                match self.missing_key() {
                    MissingKey::Invalid => Ok(Field::Value(Evaluated::NONE)),
                    MissingKey::Zero => {
                        Ok(Field::Value(Evaluated { value: Value::zero(element), wrapped }))
                    }
                    MissingKey::Error => self.fail("map has no entry for key %q", &[as_text()]),
                }
            }
            Value::Nil => {
                if receiver.wrapped {
                    let args = ["interface {}".into(), as_text()];
                    return self.fail("nil pointer evaluating %s.%s", &args);
                }
                if self.missing_key() == MissingKey::Error {
                    return self.fail("nil data; no entry for key %q", &[as_text()]);
                }
                Ok(Field::Value(Evaluated::NONE))
            }
            Value::List(list) => match find_method(list.ty().methods, name) {
                Some(method) => Ok(Field::Method(method)),
                None => self.no_field(receiver, as_text()),
            },
            Value::Object(object) => {
                if let Some(method) = find_method(object.methods(), name) {
                    return Ok(Field::Method(method));
                }
                let field = std::str::from_utf8(name).ok().and_then(|name| object.field(name));
                match field {
                    Some(_) if has_args => self
                        .fail("%s has arguments but cannot be invoked as function", &[as_text()]),
                    Some(value) => {
                        let wrapped = matches!(value, Value::Nil);
                        Ok(Field::Value(Evaluated { value, wrapped }))
                    }
                    None if object.kind() == Kind::Ptr
                        && object.is_nil()
                        && object.fields().iter().any(|(known, _)| known.as_bytes() == name) =>
                    {
                        let args = [receiver.type_name().into(), as_text()];
                        self.fail("nil pointer evaluating %s.%s", &args)
                    }
                    None if object
                        .all_fields()
                        .iter()
                        .any(|(known, _)| known.as_bytes() == name) =>
                    {
                        let args = [as_text(), receiver.type_name().into()];
                        self.fail("%s is an unexported field of struct type %s", &args)
                    }
                    None => self.no_field(receiver, as_text()),
                }
            }
            _ => self.no_field(receiver, as_text()),
        }
    }

    fn no_field<T>(&self, receiver: &Evaluated, name: Value) -> Result<T> {
        let args = [name, receiver.type_name().into()];
        self.fail("can't evaluate field %s in type %s", &args)
    }

    /// A constant where any type will do (`evalEmptyInterface`, `idealConstant`).
    pub(super) fn constant(&mut self, id: Id) -> Result<Evaluated> {
        self.at = id;
        let program = self.program;
        let value = match program.node(id) {
            Node::Bool(value) => Value::Bool(*value),
            Node::String { text, .. } => Value::String(program.string(*text).clone()),
            Node::Number(number) => match program.numbers.get(*number as usize) {
                Some(number) => return self.ideal_number(number),
                None => Value::Nil,
            },
            _ => Value::Nil,
        };
        Ok(Evaluated::plain(value))
    }

    fn ideal_number(&self, number: &Number) -> Result<Evaluated> {
        let value = if let Some((real, imaginary)) = number.complex {
            Complex { real, imaginary }.into_value()
        } else if let Some(float) = number.float.filter(|_| number.looks_float) {
            Value::Float(float)
        } else if let Some(int) = number.int {
            Value::int(int)
        } else if number.uint.is_some() {
            let text = Value::string(self.program.span(number.text));
            return self.fail("%s overflows int", &[text]);
        } else {
            Value::Nil
        };
        Ok(Evaluated::plain(value))
    }
}

// Variables.
impl Machine<'_, '_, '_> {
    /// Where the variable is on the stack (`varValue`): the declaration that the name means
    /// or, when that was skipped, one that it hides.
    fn variable_place(&self, id: Id) -> Result<usize> {
        let program = self.program;
        let Node::Variable { name, declaration, .. } = *program.node(id) else {
            return Ok(self.base);
        };
        let mut next = declaration;
        while let Some(declaration) = next {
            let Some(known) = program.declarations.get(declaration as usize) else { break };
            let place = self.base + known.slot as usize;
            if matches!(self.variables.get(place), Some(Some(_))) {
                return Ok(place);
            }
            next = known.outer;
        }
        let name = program.span(name);
        if name == b"$" {
            return Ok(self.base);
        }
        self.fail("undefined variable: %s", &[Value::string(name)])
    }

    /// `setVar`.
    pub(super) fn set_variable(&mut self, id: Id, value: Evaluated) -> Result<()> {
        let place = self.variable_place(id)?;
        if let Some(variable) = self.variables.get_mut(place) {
            *variable = Some(value);
        }
        Ok(())
    }

    /// Pushes a declared variable.
    fn declare_variable(&mut self, id: Id, value: Evaluated) {
        let program = self.program;
        let Node::Variable { declaration: Some(declaration), .. } = *program.node(id) else {
            return;
        };
        let Some(known) = program.declarations.get(declaration as usize) else { return };
        let place = self.base + known.slot as usize;
        // Declarations before this one may have been skipped.
        self.variables.resize(place, None);
        self.variables.push(Some(value));
    }
}

fn find_method(methods: &'static [Method], name: &[u8]) -> Option<&'static Method> {
    methods.iter().find(|method| method.name.as_bytes() == name)
}
