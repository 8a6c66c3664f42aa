//! Coalesced values as template values, shared tables staying shared.

use std::collections::HashMap;

use gotemplate::value::Entries;
use gotemplate::{Map, Str, Value};

use super::convert::from_tree;
use crate::values::{Graph, Node, SharedValues, TableId};

/// The values of the root chart. A table that Helm has in two places is one map here, so that
/// a template's change of it shows in both.
pub(crate) fn values(shared: &SharedValues) -> Map {
    let mut tables = HashMap::new();
    table(&shared.graph, shared.root, &mut tables)
}

fn table(graph: &Graph, id: TableId, tables: &mut HashMap<TableId, Map>) -> Map {
    if let Some(map) = tables.get(&id) {
        return map.clone();
    }
    let map = Map::any(Entries::new());
    // Known before it is filled: imports can make tables that hold themselves.
    tables.insert(id, map.clone());
    let entries: Entries = graph
        .entries(id)
        .map(|(key, node)| {
            let value = match node {
                Node::Table(id) => Value::Map(table(graph, *id, tables)),
                Node::Leaf(leaf) => from_tree(goyaml::Value::clone(leaf)),
            };
            (Str::from(key.as_slice()), value)
        })
        .collect();
    *map.entries_mut() = entries;
    map
}
