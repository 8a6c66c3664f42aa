//! Why a leaf differs.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Cause;
use crate::gate::{Change, Leaves, is_controller, leaves_of};

/// What tells causes apart.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// The leaves of what the foreign release installed, by object.
    pub(super) foreign: BTreeMap<String, Leaves>,
    /// The leaves of a rendering with the user's values alone, owned keys included, by object.
    pub(super) user: BTreeMap<String, Leaves>,
    /// The field manager that set most leaves.
    pub(super) installer: String,
    /// Whether the versions differ.
    pub(super) other_version: bool,
}

/// What names an object across renderings: group and kind, namespace, name.
pub(super) fn object_key(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    format!("{group}/{}/{}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The leaves of objects, by [`object_key`].
pub(super) fn index<'a>(objects: impl Iterator<Item = &'a Value>) -> BTreeMap<String, Leaves> {
    objects.map(|object| (object_key(object), leaves_of(object))).collect()
}

impl Causes {
    /// The cause of a change, with the manager that set the live value where it is the cause.
    pub(super) fn of(&self, object: &str, change: &Change) -> (Cause, String) {
        let manager = change.managers.first().map(|m| m.name.clone()).unwrap_or_default();
        if change.new.is_none() {
            return (Cause::LiveOnly, manager);
        }
        let value = |of: &BTreeMap<String, Leaves>| {
            of.get(object).map(|leaves| leaves.get(&change.path).map(|leaf| leaf.value.clone()))
        };
        let foreign = value(&self.foreign);
        // The release before said something else than what is live: somebody changed it since.
        // Where it said nothing, what is live may be the server's default.
        let said = foreign.flatten();
        if said.is_some() && change.live.is_some() && said != change.live {
            return (Cause::OtherManager, manager);
        }
        if value(&self.user).is_some_and(|said| said == change.live) {
            return (Cause::OwnedKey, manager);
        }
        if self.other_version {
            return (Cause::Version, manager);
        }
        let known = |manager: &crate::gate::Manager| {
            manager.name == self.installer || is_controller(&manager.name)
        };
        if !change.managers.is_empty() && !change.managers.iter().any(known) {
            return (Cause::OtherManager, manager);
        }
        (Cause::Chart, manager)
    }
}
