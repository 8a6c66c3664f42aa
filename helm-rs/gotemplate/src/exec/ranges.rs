//! `range`: what can be ranged over, and the turns of a loop.

use super::{Evaluated, LoopState, Machine, Result};
use crate::fmt;
use crate::program::Id;
use crate::value::{Int, IntKind, List, Str, Type, Value};

/// What is left of the things a loop ranges over.
pub(super) enum Items {
    List(List, usize),
    Bytes(Str, usize),
    /// The entries as they were when the loop began.
    Map(std::vec::IntoIter<(Str, Value)>, bool),
    Count(Int, i128),
}

impl Items {
    /// Index or key, and item.
    fn next(&mut self) -> Option<(Evaluated, Evaluated)> {
        match self {
            Self::List(list, at) => {
                let value = list.items().get(*at)?.clone();
                let index = Evaluated::plain(Value::int(*at as i64));
                *at += 1;
                let wrapped = matches!(list.ty().element, Type::Any);
                Some((index, Evaluated { value, wrapped }))
            }
            Self::Bytes(bytes, at) => {
                let byte = *bytes.as_bytes().get(*at)?;
                let index = Evaluated::plain(Value::int(*at as i64));
                *at += 1;
                let value = Value::sized(IntKind::Uint8, byte.into());
                Some((index, Evaluated::plain(value)))
            }
            Self::Map(entries, wrapped) => {
                let (key, value) = entries.next()?;
                let key = Evaluated::plain(Value::String(key));
                Some((key, Evaluated { value, wrapped: *wrapped }))
            }
            Self::Count(count, at) => {
                if *at >= count.to_i128() {
                    return None;
                }
                let value = Value::sized(count.kind, *at as i64);
                *at += 1;
                Some((Evaluated::NONE, Evaluated::plain(value)))
            }
        }
    }
}

impl Machine<'_, '_, '_> {
    /// `walkRange`, up to the first turn.
    pub(super) fn start_loop(&mut self, id: Id) -> Result<()> {
        let tree = self.tree;
        let Some(info) = tree.loops.get(id as usize) else { return Ok(()) };
        let value = self.evaluate_pipe(info.pipe)?;
        let items = match &value {
            Value::Int(count) => {
                if info.variables[1].is_some() {
                    let message = "can't use %v to iterate over more than one variable";
                    return self.fail(message, &[value]);
                }
                Items::Count(*count, 0)
            }
            Value::List(list) => Items::List(list.clone(), 0),
            Value::Bytes(bytes) => Items::Bytes(bytes.clone(), 0),
            Value::Map(map) => {
                let wrapped = matches!(map.ty().element, Type::Any);
                let entries: Vec<_> =
                    map.entries().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                Items::Map(entries.into_iter(), wrapped)
            }
            Value::Nil => Items::Map(Vec::new().into_iter(), true),
            _ => {
                // Go has followed the pointer when it prints the value.
                let mut shown = Vec::new();
                fmt::append_pointee(&mut shown, &value);
                return self.fail("range can't iterate over %s", &[Value::string(shown)]);
            }
        };
        self.loops.push(LoopState { items, dot: self.dot.clone(), dots: self.dots.len() });
        if !self.turn(id)? {
            self.next = info.otherwise as usize;
        }
        Ok(())
    }

    /// The end of a turn, or `continue`.
    pub(super) fn next_turn(&mut self, id: Id) -> Result<()> {
        if !self.turn(id)? {
            self.end_loop(id);
        }
        Ok(())
    }

    /// Gives the dot from before the innermost loop back.
    pub(super) fn leave_loop(&mut self) {
        if let Some(state) = self.loops.pop() {
            self.dot = state.dot;
            self.dots.truncate(state.dots);
        }
    }

    /// After the last turn, or `break`.
    pub(super) fn end_loop(&mut self, id: Id) {
        self.leave_loop();
        if let Some(info) = self.tree.loops.get(id as usize) {
            self.next = info.done as usize;
        }
    }

    /// Sets dot and variables for the next turn; false when there is none.
    fn turn(&mut self, id: Id) -> Result<bool> {
        let tree = self.tree;
        let (Some(info), Some(state)) = (tree.loops.get(id as usize), self.loops.last_mut()) else {
            return Ok(false);
        };
        self.dots.truncate(state.dots);
        let Some((index, item)) = state.items.next() else { return Ok(false) };
        // `continue` may have left variables of the body behind.
        self.variables.truncate(self.base + info.slots as usize);
        match info.variables {
            [Some(first), Some(second)] => {
                self.set_variable(first, index)?;
                self.set_variable(second, item.clone())?;
            }
            [Some(first), None] => self.set_variable(first, item.clone())?,
            _ => {}
        }
        self.dot = item;
        self.next = info.body as usize;
        Ok(true)
    }
}
