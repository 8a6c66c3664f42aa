//! A list of objects in the memory that Go would keep it in.

use serde_json::Value;

use crate::error::Error;
use crate::schema::Schema;
use crate::value::{Object, identical};

use super::{Side, maps};

/// A list of objects, and the memory that Go keeps it in: a list without room to grow, as the
/// server's are. Deleting moves the rest down and leaves the end as it was; appending overwrites
/// that end, and when there is none left, moves to other memory.
pub(super) struct Shared {
    objects: Vec<Object>,
    /// The list, by numbers of `objects`.
    pub(super) items: Vec<usize>,
    /// The memory that began as the list.
    memory: Vec<usize>,
    /// Whether the list still lives in `memory`.
    in_memory: bool,
}

impl Shared {
    pub(super) fn new(list: Vec<Value>) -> Self {
        let objects = objects(list);
        let items: Vec<usize> = (0..objects.len()).collect();
        Self { memory: items.clone(), items, objects, in_memory: true }
    }

    pub(super) fn replace(&mut self, list: Vec<Value>) {
        let first = self.objects.len();
        self.objects.extend(objects(list));
        self.items = (first..self.objects.len()).collect();
        self.in_memory = false;
    }

    /// The position in the list of the object with a key's value.
    fn position(&self, merge_key: &str, value: &Value) -> Result<Option<usize>, Error> {
        for (position, number) in self.items.iter().enumerate() {
            let found = self.objects.get(*number).and_then(|object| object.get(merge_key));
            if let Some(found) = found
                && identical(found, value)?
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// The number of the object with a key's value.
    pub(super) fn find(&self, merge_key: &str, value: &Value) -> Result<Option<usize>, Error> {
        let position = self.position(merge_key, value)?;
        Ok(position.and_then(|position| self.items.get(position).copied()))
    }

    /// `deleteMatchingEntries`.
    pub(super) fn delete(&mut self, merge_key: &str, value: &Value) -> Result<(), Error> {
        while let Some(position) = self.position(merge_key, value)? {
            self.items.remove(position);
            if self.in_memory {
                for (place, number) in self.memory.iter_mut().zip(&self.items) {
                    *place = *number;
                }
            }
        }
        Ok(())
    }

    pub(super) fn push(&mut self, item: Value) {
        let number = self.objects.len();
        self.objects.extend(objects(vec![item]));
        if self.in_memory {
            match self.memory.get_mut(self.items.len()) {
                Some(place) => *place = number,
                None => self.in_memory = false,
            }
        }
        self.items.push(number);
    }

    pub(super) fn merge(
        &mut self,
        number: usize,
        item: Value,
        schema: Schema<'_>,
        side: Side,
    ) -> Result<(), Error> {
        if let (Some(object), Value::Object(item)) = (self.objects.get_mut(number), item) {
            *object = maps(std::mem::take(object), item, schema, side)?;
        }
        Ok(())
    }

    /// Merge keys of objects; null where there is none, which no list with an order lets through.
    pub(super) fn identities(&self, numbers: &[usize], merge_key: &str) -> Vec<Value> {
        let key = |number: &usize| self.objects.get(*number)?.get(merge_key).cloned();
        numbers.iter().map(|number| key(number).unwrap_or_default()).collect()
    }

    pub(super) fn live(&self, merge_key: &str) -> Vec<Value> {
        self.identities(&self.memory, merge_key)
    }

    pub(super) fn into_items(self) -> Vec<Value> {
        let mut objects: Vec<Option<Object>> = self.objects.into_iter().map(Some).collect();
        self.items
            .iter()
            .filter_map(|number| objects.get_mut(*number)?.take())
            .map(Value::Object)
            .collect()
    }
}

/// The objects of a list that holds nothing else.
fn objects(list: Vec<Value>) -> Vec<Object> {
    list.into_iter()
        .filter_map(|item| match item {
            Value::Object(object) => Some(object),
            _ => None,
        })
        .collect()
}
