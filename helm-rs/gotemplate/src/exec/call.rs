//! Calls: arguments checked against Go signatures.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Builtin, Evaluated, Machine, Result, builtin};
use crate::function::{CallError, Method};
use crate::program::{Callee, Id, Node, Run};
use crate::value::{Kind, Type, Value};

/// The parameters of what is called.
#[derive(Clone, Copy)]
struct Parameters<'p> {
    types: &'p [Type],
    variadic: bool,
}

impl Parameters<'_> {
    /// The type of the argument at `index`.
    fn at(self, index: usize) -> Type {
        let last = self.types.len().saturating_sub(1);
        self.types.get(index.min(last)).copied().unwrap_or(Type::Any)
    }
}

impl Machine<'_, '_, '_> {
    /// `evalFunction`: `node` is what an error of the function itself is reported at.
    pub(super) fn evaluate_function(
        &mut self,
        id: Id,
        node: Id,
        args: Run,
        last: Option<Value>,
    ) -> Result<Evaluated> {
        self.at = id;
        self.step()?;
        let program = self.program;
        let Node::Identifier { callee, .. } = *program.node(id) else {
            return Ok(Evaluated::NONE);
        };
        let Some((name, callee)) = program.callees.get(callee as usize) else {
            return Ok(Evaluated::NONE);
        };
        let name = name.as_bytes();
        let mut values = self.take_arguments();
        let outcome = match callee {
            Callee::Builtin(callee) => {
                self.call_builtin(*callee, node, name, args, last, &mut values)
            }
            Callee::Function(function) => {
                let signature = function.signature();
                let parameters =
                    Parameters { types: &signature.params, variadic: signature.variadic };
                self.arguments(name, parameters, args, last, &mut values).and_then(|_| {
                    let outcome = catch(|| function.call(&mut *self, &values));
                    let wrapped = function.returns_interface();
                    self.finish_call(outcome, node, name).map(|value| Evaluated { value, wrapped })
                })
            }
        };
        self.give_arguments(values);
        outcome
    }

    /// A call of a method that `find_field` found.
    pub(super) fn call_method(
        &mut self,
        method: &'static Method,
        receiver: &Value,
        node: Id,
        args: Run,
        last: Option<Value>,
    ) -> Result<Evaluated> {
        self.step()?;
        let name = method.name.as_bytes();
        let parameters = Parameters { types: method.params, variadic: method.variadic };
        let mut values = self.take_arguments();
        let outcome = self.arguments(name, parameters, args, last, &mut values).and_then(|_| {
            let outcome = catch(|| (method.call)(receiver, &values));
            self.finish_call(outcome, node, name).map(Evaluated::plain)
        });
        self.give_arguments(values);
        outcome
    }

    /// Reports what a function says went wrong, unless a limit ended the execution.
    fn finish_call(
        &mut self,
        outcome: std::result::Result<Value, CallError>,
        node: Id,
        name: &[u8],
    ) -> Result<Value> {
        if let Some(limit) = &self.shared.limit {
            return Err(limit.clone());
        }
        match outcome {
            Ok(value) => {
                self.count_made(&value)?;
                Ok(value)
            }
            Err(error) if error.is_of_go => {
                self.at = node;
                self.fail("%s", &[error.message.into()])
            }
            Err(error) => {
                self.at = node;
                let args = [Value::string(name), error.message.into()];
                self.fail("error calling %s: %s", &args)
            }
        }
    }

    fn take_arguments(&mut self) -> Vec<Value> {
        self.shared.arguments.pop().unwrap_or_default()
    }

    fn give_arguments(&mut self, mut values: Vec<Value>) {
        values.clear();
        self.shared.arguments.push(values);
    }

    /// The first half of `evalCall`: evaluates the arguments, each checked. Bit N of the
    /// result says that argument N is still inside an interface; only builtins see that.
    fn arguments(
        &mut self,
        name: &[u8],
        parameters: Parameters<'_>,
        args: Run,
        last: Option<Value>,
        values: &mut Vec<Value>,
    ) -> Result<u64> {
        self.check_count(name, parameters, args, last.is_some())?;
        let program = self.program;
        let mut wrapped = 0;
        for (index, &arg) in program.children(args).iter().enumerate() {
            let argument = self.evaluate_argument(parameters.at(index), arg)?;
            if argument.wrapped && index < 64 {
                wrapped |= 1 << index;
            }
            values.push(argument.value);
        }
        if let Some(last) = last {
            let last = self.checked(Evaluated::plain(last), parameters.at(values.len()))?;
            values.push(last);
        }
        Ok(wrapped)
    }

    fn check_count(
        &self,
        name: &[u8],
        parameters: Parameters<'_>,
        args: Run,
        has_last: bool,
    ) -> Result<()> {
        let count = args.len() + usize::from(has_last);
        let wanted = parameters.types.len();
        let number = |value: usize| Value::int(value as i64);
        if parameters.variadic {
            let fixed = wanted.saturating_sub(1);
            if count < fixed {
                let args = [Value::string(name), number(fixed), number(args.len())];
                let message = "wrong number of args for %s: want at least %d got %d";
                return self.fail(message, &args);
            }
        } else if count != wanted {
            let args = [Value::string(name), number(wanted), number(count)];
            return self.fail("wrong number of args for %s: want %d got %d", &args);
        }
        Ok(())
    }

    /// `evalArg`.
    fn evaluate_argument(&mut self, ty: Type, id: Id) -> Result<Evaluated> {
        self.at = id;
        let node = self.program.node(id);
        let value = match node {
            Node::Nil => {
                if can_be_nil(ty) {
                    return Ok(Evaluated::plain(Value::zero(ty)));
                }
                return self.fail("cannot assign nil to %s", &[ty.name().into()]);
            }
            Node::Bool(_) | Node::Number(_) | Node::String { .. } => {
                return self.constant_argument(ty, id).map(Evaluated::plain);
            }
            _ => self.evaluate_operand(id)?,
        };
        if matches!(ty, Type::Reflect) {
            return Ok(value);
        }
        self.checked(value, ty).map(Evaluated::plain)
    }

    /// `evalBool`, `evalString`, `evalInteger` and so on.
    fn constant_argument(&mut self, ty: Type, id: Id) -> Result<Value> {
        let program = self.program;
        let node = program.node(id);
        // Go sorts by the kind: a constant fits a named integer, such as a duration.
        let ty = match ty {
            Type::Named(_, Kind::Int(kind)) => Type::Int(kind),
            ty => ty,
        };
        let number = match node {
            Node::Number(number) => program.numbers.get(*number as usize),
            _ => None,
        };
        let (value, expected) = match ty {
            Type::Any | Type::Reflect => return Ok(self.constant(id)?.value),
            Type::Bool => match node {
                Node::Bool(value) => (Some(Value::Bool(*value)), "bool"),
                _ => (None, "bool"),
            },
            Type::String => match node {
                Node::String { text, .. } => {
                    (Some(Value::String(program.string(*text).clone())), "string")
                }
                _ => (None, "string"),
            },
            Type::Float32 | Type::Float64 => {
                (number.and_then(|number| number.float).map(Value::Float), "float")
            }
            Type::Int(kind) if kind.is_unsigned() => {
                let value = number.and_then(|number| number.uint);
                (value.map(|bits| Value::sized(kind, kind.wrap(bits as i64))), "unsigned integer")
            }
            Type::Int(kind) => {
                let value = number.and_then(|number| number.int);
                (value.map(|bits| Value::sized(kind, kind.wrap(bits))), "integer")
            }
            Type::Bytes | Type::List(_) | Type::Map(_) | Type::Named(..) => {
                let args = [Value::string(program.describe(id)), ty.name().into()];
                return self.fail("can't handle %s for arg of type %s", &args);
            }
        };
        if let Some(value) = value {
            return Ok(value);
        }
        let args = [expected.into(), Value::string(program.describe(id))];
        self.fail("expected %s; found %s", &args)
    }

    /// `validateType`: the value as one of the parameter's type.
    fn checked(&self, value: Evaluated, ty: Type) -> Result<Value> {
        match (ty, &value.value) {
            (Type::Any, Value::Object(object)) => {
                return Ok(object.copied().unwrap_or(value.value));
            }
            (Type::Any | Type::Reflect, _) => return Ok(value.value),
            _ => {}
        }
        if value.is_invalid() {
            if can_be_nil(ty) {
                return Ok(Value::zero(ty));
            }
            return self.fail("invalid value; expected %s", &[ty.name().into()]);
        }
        if let Some(value) = assign(&value.value, ty) {
            return Ok(value);
        }
        let name = match &value.value {
            Value::Nil => "interface {}",
            value => value.type_name(),
        };
        let args = [ty.name().into(), name.into()];
        self.fail("wrong type for value; expected %s; got %s", &args)
    }
}

// Builtins: their parameters are mostly `reflect.Value`, and some look at more than values.
impl Machine<'_, '_, '_> {
    fn call_builtin(
        &mut self,
        callee: Builtin,
        node: Id,
        name: &[u8],
        args: Run,
        last: Option<Value>,
        values: &mut Vec<Value>,
    ) -> Result<Evaluated> {
        let (types, variadic) = callee.signature();
        let parameters = Parameters { types, variadic };
        if matches!(callee, Builtin::And | Builtin::Or) {
            self.check_count(name, parameters, args, last.is_some())?;
            return self.and_or(callee == Builtin::Or, args, last);
        }
        let has_args = args.len() > 0;
        let piped = last.clone().filter(|_| callee == Builtin::Call && !has_args);
        let wrapped = self.arguments(name, parameters, args, last, values)?;
        let outcome = if callee == Builtin::Call {
            let called = match (self.program.children(args).first(), piped) {
                (Some(&first), _) => self.program.describe(first),
                (None, Some(value)) => builtin::reflect_string(&value),
                (None, None) => Vec::new(),
            };
            match builtin::callable(&called, values) {
                Ok(function) => {
                    let args = values.get(1..).unwrap_or_default().to_vec();
                    catch(|| function.call(&mut *self, &args))
                }
                Err(error) => Err(error),
            }
        } else {
            catch(|| callee.call(values, wrapped))
        };
        self.finish_call(outcome, node, name).map(Evaluated::plain)
    }

    /// The builtins that stop early.
    fn and_or(&mut self, is_or: bool, args: Run, last: Option<Value>) -> Result<Evaluated> {
        let mut value = Evaluated::NONE;
        let program = self.program;
        for &arg in program.children(args) {
            value = self.evaluate_argument(Type::Reflect, arg)?;
            if value.value.is_true() == is_or {
                return Ok(value);
            }
        }
        Ok(last.map_or(value, Evaluated::plain))
    }
}

/// Runs a function; a panic becomes its error, as in Go's `safeCall`.
fn catch(
    body: impl FnOnce() -> std::result::Result<Value, CallError>,
) -> std::result::Result<Value, CallError> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        Err(CallError::new(text.unwrap_or_else(|| "panic".to_owned())))
    })
}

/// `canBeNil`.
pub(super) const fn can_be_nil(ty: Type) -> bool {
    match ty {
        Type::Any | Type::Bytes | Type::List(_) | Type::Map(_) | Type::Reflect => true,
        Type::Named(_, kind) => {
            matches!(kind, Kind::Ptr | Kind::Func | Kind::Map | Kind::Slice | Kind::Interface)
        }
        _ => false,
    }
}

/// The value when Go can assign it to the type, converted as the assignment does.
pub(super) fn assign(value: &Value, ty: Type) -> Option<Value> {
    let fits = match (value, ty) {
        (_, Type::Any | Type::Reflect)
        | (Value::Bool(_), Type::Bool)
        | (Value::Float(_), Type::Float64)
        | (Value::String(_), Type::String)
        | (Value::Bytes(_), Type::Bytes) => true,
        (Value::Int(int), Type::Int(kind)) => int.kind == kind,
        (Value::List(list), Type::List(wanted)) => {
            if list.ty().name == wanted.name {
                true
            } else if list.ty().element == wanted.element
                && (is_unnamed(list.ty().name) || is_unnamed(wanted.name))
            {
                return Some(Value::List(list.retyped(wanted)));
            } else {
                false
            }
        }
        (Value::Map(map), Type::Map(wanted)) => {
            if map.ty().name == wanted.name {
                true
            } else if map.ty().element == wanted.element
                && (is_unnamed(map.ty().name) || is_unnamed(wanted.name))
            {
                return Some(Value::Map(map.retyped(wanted)));
            } else {
                false
            }
        }
        (Value::Object(object), Type::Named(name, _)) => {
            // A pointer is dereferenced once.
            object.type_name() == name || object.type_name().strip_prefix('*') == Some(name)
        }
        _ => false,
    };
    fits.then(|| value.clone())
}

fn is_unnamed(name: &str) -> bool {
    name.starts_with('[') || name.starts_with("map[")
}
