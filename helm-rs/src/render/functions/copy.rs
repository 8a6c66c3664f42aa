//! Deep copies as github.com/mitchellh/copystructure v1.2.0 makes them for sprig.

use gotemplate::value::Entries;
use gotemplate::{CallError, List, Map, Value};

use super::limits;

/// Sprig's `deepCopy`: new lists and maps all the way down; parts that were shared are not
/// shared in the copy.
pub(super) fn deep_copy(value: &Value) -> Result<Value, CallError> {
    if matches!(value, Value::Nil) {
        return Err(CallError::new("reflect: call of reflect.Value.Type on zero Value"));
    }
    let mut budget = limits::Budget::default();
    copy(value, 0, &mut budget)
}

fn copy(value: &Value, depth: usize, budget: &mut limits::Budget) -> Result<Value, CallError> {
    limits::check_depth(depth)?;
    budget.spend()?;
    Ok(match value {
        Value::List(list) if list.is_nil() => Value::List(List::nil(list.ty())),
        Value::List(list) => {
            let items = list.items().iter().map(|item| copy(item, depth + 1, budget));
            Value::List(List::new(list.ty(), items.collect::<Result<Vec<_>, _>>()?))
        }
        Value::Map(map) if map.is_nil() => Value::Map(Map::nil(map.ty())),
        Value::Map(map) => {
            let mut entries = Entries::new();
            for (key, value) in map.entries().iter() {
                entries.insert(key.clone(), copy(value, depth + 1, budget)?);
            }
            Value::Map(Map::new(map.ty(), entries))
        }
        Value::Object(object) => {
            super::semver::blank_copy(&**object).unwrap_or_else(|| value.clone())
        }
        other => other.clone(),
    })
}
