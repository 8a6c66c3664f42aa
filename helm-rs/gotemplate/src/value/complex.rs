//! Go's `complex128`, which only constants in templates have.

use std::any::Any;
use std::rc::Rc;

use super::{Kind, Object, Value};

/// A complex number. Templates can print and compare it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
    pub(crate) real: f64,
    pub(crate) imaginary: f64,
}

impl Complex {
    /// The number inside the value, if it is one.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Object(object) => object.as_any().downcast_ref::<Self>().copied(),
            _ => None,
        }
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(Rc::new(self))
    }
}

impl Object for Complex {
    fn type_name(&self) -> &'static str {
        "complex128"
    }

    fn kind(&self) -> Kind {
        Kind::Complex128
    }

    fn is_true(&self) -> bool {
        self.real != 0.0 || self.imaginary != 0.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
