//! Merging as dario.cat/mergo v1.0.1 (`merge.go`, `deepMerge`) does it for sprig.
//!
//! What matters beyond the contents is which maps are shared afterwards, because `set`
//! changes them in place: a map that the destination lacks is taken over as it is, while a
//! map that it has is filled in place.

use gotemplate::function::Rest;
use gotemplate::value::Entries;
use gotemplate::value::MAP_ANY;
use gotemplate::{CallError, Map, Str, Type, Value};

use super::defaults::is_empty;
use super::limits::{self, Budget};

/// Mergo's `ErrDifferentArgumentsTypes`.
const DIFFERENT_TYPES: &str = "src and dst must be of same type";

/// Why a merge ended early.
enum Failure {
    /// An error that mergo returns; `merge` gives an empty string then.
    Returned(&'static str),
    /// A panic, or a bound of ours: it ends the call in any case.
    Thrown(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Thrown(error)
    }
}

pub(super) fn merge(destination: Map, sources: Rest<Map>) -> Result<Value, CallError> {
    swallow(merge_all(destination, &sources.0, false))
}

pub(super) fn merge_overwrite(destination: Map, sources: Rest<Map>) -> Result<Value, CallError> {
    swallow(merge_all(destination, &sources.0, true))
}

pub(super) fn must_merge(destination: Map, sources: Rest<Map>) -> Result<Value, CallError> {
    throw(merge_all(destination, &sources.0, false))
}

pub(super) fn must_merge_overwrite(
    destination: Map,
    sources: Rest<Map>,
) -> Result<Value, CallError> {
    throw(merge_all(destination, &sources.0, true))
}

fn swallow(result: Result<Value, Failure>) -> Result<Value, CallError> {
    match result {
        Ok(value) => Ok(value),
        Err(Failure::Returned(_)) => Ok("".into()),
        Err(Failure::Thrown(error)) => Err(error),
    }
}

fn throw(result: Result<Value, Failure>) -> Result<Value, CallError> {
    result.map_err(|failure| match failure {
        Failure::Returned(message) => CallError::new(message),
        Failure::Thrown(error) => error,
    })
}

fn merge_all(mut into: Map, sources: &[Map], overwrite: bool) -> Result<Value, Failure> {
    let mut merger = Merger { overwrite, budget: Budget::default() };
    for source in sources {
        if into.is_nil() && !source.is_nil() {
            into = Map::new(&MAP_ANY, Entries::new());
        }
        merger.maps(&into, source, 0)?;
    }
    Ok(Value::Map(into))
}

struct Merger {
    overwrite: bool,
    budget: Budget,
}

impl Merger {
    /// Fills `into` from `from`.
    fn maps(&mut self, into: &Map, from: &Map, depth: usize) -> Result<(), Failure> {
        limits::check_depth(depth)?;
        if into.is_nil() {
            return Ok(());
        }
        let keys: Vec<Str> = from.entries().keys().cloned().collect();
        for key in keys {
            self.budget.spend()?;
            if let Some(value) = from.get(&key) {
                self.entry(into, key, value, depth)?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, into: &Map, key: Str, value: Value, depth: usize) -> Result<(), Failure> {
        if matches!(value, Value::Nil) {
            if self.overwrite {
                assign(into, key, value)?;
            }
            return Ok(());
        }
        let present = into.get(&key);
        match (&present, &value) {
            (Some(Value::Map(present)), Value::Map(value)) => {
                self.maps(present, value, depth + 1)?;
            }
            // A pointer is merged with a pointer only.
            (Some(Value::Object(present)), Value::Map(_))
                if present.kind() == gotemplate::Kind::Ptr && !self.overwrite =>
            {
                return Err(Failure::Returned(DIFFERENT_TYPES));
            }
            // Mergo asks the old element whether it is nil, which a string cannot be asked.
            (Some(_), Value::List(_) | Value::Bytes(_)) if into.ty().element == Type::String => {
                let message = "reflect: call of reflect.Value.IsNil on string Value";
                return Err(Failure::Thrown(CallError::new(message)));
            }
            _ => {}
        }
        // Emptiness counts after the merge: an empty map that was filled is kept.
        let kept = present.filter(|present| !is_empty(present));
        match (&kept, &value) {
            (Some(Value::Map(_)), Value::Map(_)) => {}
            (Some(_), _) if !self.overwrite => {}
            _ => assign(into, key, value)?,
        }
        Ok(())
    }
}

/// Sets an entry if the map's element type takes the value, as Go's `SetMapIndex`.
fn assign(into: &Map, key: Str, value: Value) -> Result<(), CallError> {
    match (into.ty().element, &value) {
        (Type::Any, _) | (Type::String, Value::String(_)) => {
            into.set(key, value);
            Ok(())
        }
        (element, value) => {
            // Mergo sets slices as such and everything else as the interface that it was in.
            let found = match value {
                Value::List(_) | Value::Bytes(_) => value.type_name(),
                _ => "interface {}",
            };
            Err(CallError::from(format!(
                "reflect.Value.SetMapIndex: value of type {found} is not assignable to type {}",
                element.name()
            )))
        }
    }
}
