//! The walk through charts and tables. Its methods are the functions of
//! `pkg/chartutil/coalesce.go`; what Go does by writing to maps in place, they do to a [`Graph`].

use std::collections::BTreeSet;

use bstr::{BString, ByteSlice};
use goyaml::{Map, Value};

use super::super::graph::{Graph, Node, TableId, check_depth};
use super::{CoalesceError, GLOBAL_KEY, Nulls};
use crate::chart::{Chart, Warning};
use crate::gotext::{display, display_truth, quote};

/// A chart as coalescing sees it: a handle, cheap to copy.
pub(in super::super) trait ChartView: Copy {
    fn name(&self) -> &str;
    fn values(&self) -> Option<&Map>;
    fn dependencies(&self) -> Vec<Self>;
}

impl ChartView for &Chart {
    fn name(&self) -> &str {
        Chart::name(self)
    }

    fn values(&self) -> Option<&Map> {
        self.values.as_ref()
    }

    fn dependencies(&self) -> Vec<Self> {
        self.dependencies.iter().collect()
    }
}

/// One run over a graph.
pub(in super::super) struct Coalescer<'a> {
    pub(in super::super) graph: &'a mut Graph,
    pub(in super::super) warnings: &'a mut Vec<Warning>,
}

/// What is left to do where a default meets the value that hides it.
enum Meeting {
    /// Nothing: the default was taken over, deleted, or simply loses.
    Settled,
    /// Both are tables, to be joined.
    Tables { value: TableId, default: TableId },
    /// The value is a table and the default is not.
    TableHidesLeaf,
    /// The default is a table and the value is not.
    LeafHidesTable,
}

impl Coalescer<'_> {
    /// `coalesce`
    pub(in super::super) fn coalesce(
        &mut self,
        chart: impl ChartView,
        dest: TableId,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), CoalesceError> {
        let prefix = join(prefix, chart.name().as_ref());
        self.values(chart, dest, &prefix, nulls)?;
        self.dependencies(chart, dest, &prefix, nulls)
    }

    /// `coalesceDeps`; the prefix ends with the chart's name.
    fn dependencies(
        &mut self,
        chart: impl ChartView,
        dest: TableId,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), CoalesceError> {
        for subchart in chart.dependencies() {
            let name = subchart.name();
            let table = match self.graph.get(dest, name) {
                None => {
                    let table = self.graph.new_table();
                    self.graph.set(dest, name, Node::Table(table));
                    table
                }
                Some(Node::Table(table)) => *table,
                Some(Node::Leaf(value)) => {
                    let (chart, value) = (name.to_owned(), display_truth(value));
                    return Err(CoalesceError::NotATable { chart, value });
                }
            };
            self.globals(table, dest, prefix)?;
            self.coalesce(subchart, table, prefix, nulls)?;
        }
        Ok(())
    }

    /// `coalesceGlobals`
    fn globals(&mut self, dest: TableId, src: TableId, prefix: &str) -> Result<(), CoalesceError> {
        let Some(dest_globals) = self.globals_of(dest, "destination", "coalesce.go:138") else {
            return Ok(());
        };
        let Some(src_globals) = self.globals_of(src, "source", "coalesce.go:145") else {
            return Ok(());
        };
        for (key, node) in self.graph.snapshot(src_globals) {
            self.global(dest_globals, key, node, prefix)?;
        }
        self.graph.set(dest, GLOBAL_KEY, Node::Table(dest_globals));
        Ok(())
    }

    /// The globals in a table, empty ones if it has none. Nothing but a warning if they are no
    /// table.
    fn globals_of(&mut self, table: TableId, role: &str, origin: &'static str) -> Option<TableId> {
        match self.graph.get(table, GLOBAL_KEY) {
            None => Some(self.graph.new_table()),
            Some(Node::Table(globals)) => Some(*globals),
            Some(Node::Leaf(_)) => {
                let text = format!(
                    "warning: skipping globals because {role} {GLOBAL_KEY} is not a table."
                );
                self.warn(origin, text);
                None
            }
        }
    }

    /// One round of the loop in `coalesceGlobals`.
    fn global(
        &mut self,
        dest: TableId,
        key: BString,
        node: Node,
        prefix: &str,
    ) -> Result<(), CoalesceError> {
        let existing = self.graph.get(dest, &key).cloned();
        match (node, existing) {
            (Node::Table(_), Some(Node::Leaf(_))) => {
                let key = quote(key);
                let text = format!("Conflict: cannot merge map onto non-map for {key}. Skipping.");
                self.warn("coalesce.go:161", text);
            }
            (Node::Leaf(_), Some(Node::Table(_))) => {
                self.warn("coalesce.go:175", format!("key {key} is table. Skipping"));
            }
            (Node::Table(table), existing) => {
                let copy = self.graph.copy(table);
                if let Some(Node::Table(existing)) = existing {
                    // The other way round than usual: what stands above wins.
                    self.tables(copy, existing, &join(prefix, &key), Nulls::Keep, 0)?;
                }
                self.graph.set(dest, key, Node::Table(copy));
            }
            (leaf @ Node::Leaf(_), _) => self.graph.set(dest, key, leaf),
        }
        Ok(())
    }

    /// `coalesceValues`; the prefix ends with the chart's name.
    fn values(
        &mut self,
        chart: impl ChartView,
        dest: TableId,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), CoalesceError> {
        let Some(values) = chart.values() else { return Ok(()) };
        let subcharts: BTreeSet<BString> =
            chart.dependencies().iter().map(|chart| chart.name().into()).collect();
        let defaults = self.graph.import(values, 0)?;
        for (key, default) in self.graph.snapshot(defaults) {
            match self.meet(dest, &key, &default, nulls == Nulls::Remove) {
                Meeting::Settled | Meeting::LeafHidesTable => {}
                Meeting::Tables { value, default } => {
                    // Nulls meant for a subchart must reach its own values.
                    let nulls = if subcharts.contains(&key) { Nulls::Keep } else { nulls };
                    self.tables(value, default, &join(prefix, &key), nulls, 0)?;
                }
                Meeting::TableHidesLeaf => self.warn(
                    "coalesce.go:237",
                    format!("warning: skipped value for {prefix}.{key}: Not a table."),
                ),
            }
        }
        Ok(())
    }

    /// `coalesceTablesFullKey`
    pub(in super::super) fn tables(
        &mut self,
        dest: TableId,
        src: TableId,
        prefix: &str,
        nulls: Nulls,
        depth: usize,
    ) -> Result<(), CoalesceError> {
        check_depth(depth)?;
        // Only a null that hides a real default deletes.
        let real_defaults: BTreeSet<BString> = self
            .graph
            .entries(src)
            .filter(|(_, node)| nulls == Nulls::Remove && !node.is_null())
            .map(|(key, _)| key.clone())
            .collect();
        for (key, node) in self.graph.snapshot(dest) {
            if node.is_null() {
                self.graph.set(src, key, Node::null());
            }
        }
        for (key, default) in self.graph.snapshot(src) {
            match self.meet(dest, &key, &default, real_defaults.contains(&key)) {
                Meeting::Settled => {}
                Meeting::Tables { value, default } => {
                    self.tables(value, default, &join(prefix, &key), nulls, depth + 1)?;
                }
                Meeting::LeafHidesTable => {
                    let text = format!(
                        "warning: cannot overwrite table with non table for {} ({})",
                        join(prefix, &key),
                        self.show(&default)
                    );
                    self.warn("coalesce.go:316", text);
                }
                Meeting::TableHidesLeaf => {
                    let text = format!(
                        "warning: destination for {} is a table. Ignoring non-table \
                         value ({})",
                        join(prefix, &key),
                        self.show(&default)
                    );
                    self.warn("coalesce.go:319", text);
                }
            }
        }
        Ok(())
    }

    /// Takes the default over if there is no value, deletes the value if it is null and
    /// `null_deletes`; else says what has met. A null default gives way to anything.
    fn meet(
        &mut self,
        dest: TableId,
        key: &BString,
        default: &Node,
        null_deletes: bool,
    ) -> Meeting {
        match (self.graph.get(dest, key), default) {
            (None, _) => self.graph.set(dest, key.clone(), default.clone()),
            (Some(value), _) if null_deletes && value.is_null() => self.graph.remove(dest, key),
            (Some(&Node::Table(value)), &Node::Table(default)) => {
                return Meeting::Tables { value, default };
            }
            (Some(Node::Leaf(_)), Node::Table(_)) => return Meeting::LeafHidesTable,
            (Some(Node::Table(_)), Node::Leaf(leaf)) if !leaf.is_null() => {
                return Meeting::TableHidesLeaf;
            }
            (Some(_), _) => {}
        }
        Meeting::Settled
    }

    fn warn(&mut self, origin: &'static str, message: String) {
        self.warnings.push(Warning::new(origin, message));
    }

    /// A value in a warning, as `%v`.
    fn show(&self, node: &Node) -> String {
        display(&self.graph.export_node(node).unwrap_or(Value::Null))
    }
}

/// `concatPrefix`
fn join(prefix: &str, key: &[u8]) -> String {
    let key = key.to_str_lossy();
    if prefix.is_empty() { key.into_owned() } else { format!("{prefix}.{key}") }
}
