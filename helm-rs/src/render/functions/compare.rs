//! Go's `reflect.DeepEqual` over template values.

use std::collections::HashSet;
use std::rc::Rc;

use gotemplate::{CallError, List, Map, Value};

use super::limits;

/// Whether two values are deeply equal as Go means it: same types, nil is not empty, NaN
/// differs from itself unless it sits in the very same slice or map.
pub(super) fn deep_equal(left: &Value, right: &Value) -> Result<bool, CallError> {
    Comparison::default().equal(left, right, 0)
}

/// The pairs of lists and of maps met so far; Go takes a pair that it meets again as equal,
/// which ends cycles and keeps shared parts from being compared over and over.
#[derive(Default)]
struct Comparison {
    visited: HashSet<(usize, usize)>,
}

impl Comparison {
    fn equal(&mut self, left: &Value, right: &Value, depth: usize) -> Result<bool, CallError> {
        limits::check_depth(depth)?;
        Ok(match (left, right) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Float(left), Value::Float(right)) => left == right,
            (Value::String(left), Value::String(right))
            | (Value::Bytes(left), Value::Bytes(right)) => left == right,
            (Value::List(left), Value::List(right)) => self.lists(left, right, depth)?,
            (Value::Map(left), Value::Map(right)) => self.maps(left, right, depth)?,
            (Value::Object(left), Value::Object(right)) => {
                if Rc::ptr_eq(left, right) {
                    return Ok(true);
                }
                if left.type_name() != right.type_name() || left.string() != right.string() {
                    return Ok(false);
                }
                let (left, right) = (left.all_fields(), right.all_fields());
                if left.len() != right.len() {
                    return Ok(false);
                }
                for ((_, left), (_, right)) in left.iter().zip(&right) {
                    if !self.equal(left, right, depth + 1)? {
                        return Ok(false);
                    }
                }
                true
            }
            _ => false,
        })
    }

    fn lists(&mut self, left: &List, right: &List, depth: usize) -> Result<bool, CallError> {
        if !std::ptr::eq(left.ty(), right.ty())
            || left.is_nil() != right.is_nil()
            || left.items().len() != right.items().len()
        {
            return Ok(false);
        }
        if left.same(right) || !self.visited.insert((left.id(), right.id())) {
            return Ok(true);
        }
        for (left, right) in left.items().iter().zip(right.items()) {
            if !self.equal(left, right, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn maps(&mut self, left: &Map, right: &Map, depth: usize) -> Result<bool, CallError> {
        if !std::ptr::eq(left.ty(), right.ty())
            || left.is_nil() != right.is_nil()
            || left.len() != right.len()
        {
            return Ok(false);
        }
        if left.same(right) || !self.visited.insert((left.id(), right.id())) {
            return Ok(true);
        }
        for (key, left) in left.entries().iter() {
            let Some(right) = right.get(key.as_bytes()) else { return Ok(false) };
            if !self.equal(left, &right, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
