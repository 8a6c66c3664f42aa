//! What the in-memory cluster holds: objects by address, and the events of their changes.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::table::Table;
use crate::cluster::{Discovery, Resource, Target};

/// Events that a watch can go back to; older ones are expired.
const EVENTS: usize = 10_000;

/// The address of an object, versions aside; in the order of a server's lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) plural: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self {
            group: resource.kind.group.clone(),
            plural: resource.plural.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(super) fn of(target: &Target) -> Self {
        Self::new(&target.resource, &target.namespace, &target.name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

/// What happened to an object at a version.
#[derive(Clone)]
pub(super) struct Event {
    pub(super) version: u64,
    pub(super) change: Change,
    pub(super) key: Key,
    pub(super) object: Arc<Value>,
    /// The object before; for selectors that it no longer fits.
    pub(super) before: Option<Arc<Value>>,
}

pub(super) struct State {
    pub(super) objects: BTreeMap<Key, Arc<Value>>,
    pub(super) events: VecDeque<Event>,
    /// The newest version.
    pub(super) version: u64,
    /// The newest version whose event is gone; watches from before it are expired.
    pub(super) expired: u64,
    /// For UIDs and generated names.
    random: u64,
    /// What is served, CRDs included.
    pub(super) table: Table,
    /// What discovery said last.
    pub(super) discovery: Option<Arc<Discovery>>,
}

impl State {
    pub(super) fn new(seed: u64, served: Option<&Discovery>) -> Self {
        Self {
            objects: BTreeMap::new(),
            events: VecDeque::new(),
            version: 0,
            expired: 0,
            random: seed,
            table: served.map_or_else(Table::builtin, Table::of),
            discovery: None,
        }
    }

    /// Random bits (SplitMix64): the same seed gives the same UIDs.
    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A UUID of version 4.
    pub(super) fn uid(&mut self) -> String {
        let (high, low) = (self.bits(), self.bits());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }

    /// What `metadata.generateName` ends with (`apiserver/pkg/storage/names/generate.go`).
    pub(super) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.bits();
        (0..5)
            .map(|_| {
                let index = (bits % LETTERS.len() as u64) as usize;
                bits /= LETTERS.len() as u64;
                char::from(LETTERS.get(index).copied().unwrap_or(b'x'))
            })
            .collect()
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    /// Stores an object at a new version, which is written into it, and tells the watches.
    pub(super) fn store(&mut self, key: Key, mut object: Value, definition: bool) -> Arc<Value> {
        self.version += 1;
        set(&mut object, "resourceVersion", self.version.to_string().into());
        let object = Arc::new(object);
        let before = self.objects.insert(key.clone(), Arc::clone(&object));
        let change = if before.is_some() { Change::Modified } else { Change::Added };
        if definition {
            self.table.add_definition(&object);
        }
        self.tell(change, key, Arc::clone(&object), before);
        object
    }

    /// Takes an object out.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Arc<Value>> {
        let object = self.objects.remove(key)?;
        self.version += 1;
        let mut last = Value::clone(&object);
        set(&mut last, "resourceVersion", self.version.to_string().into());
        self.tell(Change::Deleted, key.clone(), Arc::new(last), Some(Arc::clone(&object)));
        if key.plural == "customresourcedefinitions" && key.group == "apiextensions.k8s.io" {
            self.rebuild_table();
        }
        Some(object)
    }

    fn tell(&mut self, change: Change, key: Key, object: Arc<Value>, before: Option<Arc<Value>>) {
        self.events.push_back(Event { version: self.version, change, key, object, before });
        if self.events.len() > EVENTS
            && let Some(event) = self.events.pop_front()
        {
            self.expired = event.version;
        }
    }

    fn rebuild_table(&mut self) {
        let mut table = Table::builtin();
        for (key, object) in &self.objects {
            if key.plural == "customresourcedefinitions" && key.group == "apiextensions.k8s.io" {
                table.add_definition(object);
            }
        }
        self.table = table;
    }

    /// The objects of a resource in a namespace (empty for all), in order, after `after`.
    pub(super) fn of_resource<'a>(
        &'a self,
        resource: &'a Resource,
        namespace: &'a str,
        after: Option<Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Value>)> {
        let from = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Included(Key::new(resource, namespace, "")),
        };
        self.objects.range((from, Bound::Unbounded)).take_while(move |(key, _)| {
            key.group == resource.kind.group
                && key.plural == resource.plural
                && (namespace.is_empty() || key.namespace == namespace)
        })
    }
}

/// The metadata of an object, made when it is missing. `None` for what is no object.
pub(super) fn metadata(object: &mut Value) -> Option<&mut serde_json::Map<String, Value>> {
    let metadata = object
        .as_object_mut()?
        .entry("metadata")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(serde_json::Map::new());
    }
    metadata.as_object_mut()
}

/// Sets a field of the metadata; null takes it away.
pub(super) fn set(object: &mut Value, field: &str, value: Value) {
    let Some(metadata) = metadata(object) else { return };
    if value.is_null() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// A text of the metadata; empty for none.
pub(super) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(field)?.as_str()).unwrap_or_default()
}

/// The finalizers that hold an object: its own and, of a namespace, those of its spec.
pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}
