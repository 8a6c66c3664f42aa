//! Values as a graph of shared tables.
//!
//! Helm coalesces Go maps in place, and maps end up in several places at once: a table below
//! `global.x` of a chart is the very table below `global.x` of its subcharts, so that what is
//! merged into one shows in the other. Plain trees cannot express that; here a table has an
//! identity, and a tree is made at the end.
//!
//! ```text
//! root ── global ── x ── y ──┐
//!   └──── sub ── global ── x' ── y      (x' is a copy of x, y is shared)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use bstr::{BStr, BString};
use goyaml::{Map, Value};

use super::CoalesceError;

/// How deep tables may nest; deeper values (which `import-values` can make, even endless ones)
/// are an error. Helm overflows its stack on endless ones.
pub(super) const MAX_DEPTH: usize = 1200;

/// Identity of a table in a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(usize);

/// What a table holds under a key.
#[derive(Debug, Clone)]
pub enum Node {
    /// Another table.
    Table(TableId),
    /// Anything else. The same allocation in two places is the same Go object.
    Leaf(Arc<Value>),
}

impl Node {
    pub(super) fn null() -> Self {
        Self::Leaf(Arc::new(Value::Null))
    }

    /// Whether this is Go's `nil`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Leaf(value) if value.is_null())
    }

    pub(super) const fn table(&self) -> Option<TableId> {
        match self {
            Self::Table(id) => Some(*id),
            Self::Leaf(_) => None,
        }
    }
}

/// Tables that may be shared.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    tables: Vec<BTreeMap<BString, Node>>,
}

impl Graph {
    /// Makes an empty table.
    pub(super) fn new_table(&mut self) -> TableId {
        self.add(BTreeMap::new())
    }

    fn add(&mut self, table: BTreeMap<BString, Node>) -> TableId {
        self.tables.push(table);
        TableId(self.tables.len() - 1)
    }

    /// The entries of a table in the byte order of their keys.
    pub fn entries(&self, table: TableId) -> impl Iterator<Item = (&BString, &Node)> {
        self.tables.get(table.0).into_iter().flatten()
    }

    /// The entries as they are now, to be walked while the table changes.
    pub(super) fn snapshot(&self, table: TableId) -> Vec<(BString, Node)> {
        self.entries(table).map(|(key, node)| (key.clone(), node.clone())).collect()
    }

    /// What a table holds under a key.
    pub fn get(&self, table: TableId, key: impl AsRef<[u8]>) -> Option<&Node> {
        self.tables.get(table.0)?.get(BStr::new(key.as_ref()))
    }

    pub(super) fn set(&mut self, table: TableId, key: impl Into<BString>, node: Node) {
        if let Some(table) = self.tables.get_mut(table.0) {
            table.insert(key.into(), node);
        }
    }

    pub(super) fn remove(&mut self, table: TableId, key: impl AsRef<[u8]>) {
        if let Some(table) = self.tables.get_mut(table.0) {
            table.remove(BStr::new(key.as_ref()));
        }
    }

    pub(super) fn is_empty(&self, table: TableId) -> bool {
        self.tables.get(table.0).is_none_or(BTreeMap::is_empty)
    }

    /// A new table with the same entries: what it holds is shared.
    pub(super) fn copy(&mut self, table: TableId) -> TableId {
        let copy = self.tables.get(table.0).cloned().unwrap_or_default();
        self.add(copy)
    }

    /// Copies a tree into the graph.
    pub(super) fn import(&mut self, map: &Map, depth: usize) -> Result<TableId, CoalesceError> {
        check_depth(depth)?;
        let mut table = BTreeMap::new();
        for (key, value) in map {
            let node = match value {
                Value::Map(map) => Node::Table(self.import(map, depth + 1)?),
                value => Node::Leaf(Arc::new(value.clone())),
            };
            table.insert(key.clone(), node);
        }
        Ok(self.add(table))
    }

    /// The tree below a table; shared tables are copied to every place.
    ///
    /// # Errors
    ///
    /// [`CoalesceError::TooDeep`]
    pub fn export(&self, table: TableId) -> Result<Map, CoalesceError> {
        self.export_below(table, 0)
    }

    fn export_below(&self, table: TableId, depth: usize) -> Result<Map, CoalesceError> {
        check_depth(depth)?;
        self.entries(table)
            .map(|(key, node)| {
                let value = match node {
                    Node::Table(id) => Value::Map(self.export_below(*id, depth + 1)?),
                    Node::Leaf(value) => Value::clone(value),
                };
                Ok((key.clone(), value))
            })
            .collect()
    }

    /// The tree below a node.
    pub(super) fn export_node(&self, node: &Node) -> Result<Value, CoalesceError> {
        match node {
            Node::Table(id) => Ok(Value::Map(self.export(*id)?)),
            Node::Leaf(value) => Ok(Value::clone(value)),
        }
    }

    /// Follows a path of keys through tables, as `Values.Table`; the error is the key that is no
    /// table.
    pub(super) fn follow<'a>(&self, table: TableId, path: &'a str) -> Result<TableId, &'a str> {
        path.split('.')
            .try_fold(table, |table, key| self.get(table, key).and_then(Node::table).ok_or(key))
    }
}

pub(super) const fn check_depth(depth: usize) -> Result<(), CoalesceError> {
    if depth > MAX_DEPTH { Err(CoalesceError::TooDeep { limit: MAX_DEPTH }) } else { Ok(()) }
}
