//! Joining values of users, charts and subcharts, as Helm's `pkg/chartutil/coalesce.go`.

use std::collections::BTreeSet;

use bstr::{BString, ByteSlice};
use goyaml::{Map, Value};

use super::graph::{Graph, Node, TableId, check_depth};
use crate::chart::{Chart, Warning};
use crate::gotext::{display, display_truth, quote};

/// The key whose table every subchart sees.
pub const GLOBAL_KEY: &str = "global";

/// Why values cannot be joined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoalesceError {
    /// The value under a subchart's name is no table.
    #[error("type mismatch on {chart}: {value}")]
    NotATable {
        /// Name of the subchart.
        chart: String,
        /// The value as Go's `%t` prints it.
        value: String,
    },
    /// Tables nest too deep, or endlessly.
    #[error("values nest deeper than {limit} tables")]
    TooDeep {
        /// Levels allowed.
        limit: usize,
    },
}

/// What happens to null values of the user and of higher charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// They stay, for a later coalescing to act on (`MergeValues`, `MergeTables`).
    Keep,
    /// They delete the default that they hide, and are gone with it (`CoalesceValues`,
    /// `CoalesceTables`).
    Remove,
}

/// Effective values of a chart tree, with tables shared as they are in Helm.
#[derive(Debug, Clone)]
pub struct SharedValues {
    /// All tables.
    pub graph: Graph,
    /// The values of the root chart.
    pub root: TableId,
}

/// The effective values of a chart and its subcharts, those of a subchart under its name: user
/// values win over a chart's values, and those over its subcharts'. Tables are joined, everything
/// else is replaced, null deletes.
///
/// # Errors
///
/// [`CoalesceError`] when a subchart's values are no table.
pub fn coalesce_values(
    chart: &Chart,
    values: &Map,
    warnings: &mut Vec<Warning>,
) -> Result<Map, CoalesceError> {
    let shared = coalesce_shared(chart, values, Nulls::Remove, warnings)?;
    shared.graph.export(shared.root)
}

/// As [`coalesce_values`] with [`Nulls::Keep`].
///
/// # Errors
///
/// [`CoalesceError`] when a subchart's values are no table.
pub fn merge_values(
    chart: &Chart,
    values: &Map,
    warnings: &mut Vec<Warning>,
) -> Result<Map, CoalesceError> {
    let shared = coalesce_shared(chart, values, Nulls::Keep, warnings)?;
    shared.graph.export(shared.root)
}

/// As [`coalesce_values`], keeping which tables are one and the same in Helm: a template that
/// changes one of them in place changes all.
///
/// # Errors
///
/// [`CoalesceError`] when a subchart's values are no table.
pub fn coalesce_shared(
    chart: &Chart,
    values: &Map,
    nulls: Nulls,
    warnings: &mut Vec<Warning>,
) -> Result<SharedValues, CoalesceError> {
    let mut graph = Graph::default();
    let root = graph.import(values, 0)?;
    let mut coalescer = Coalescer { graph: &mut graph, warnings };
    coalescer.coalesce(chart, root, "", nulls)?;
    Ok(SharedValues { graph, root })
}

/// Joins two tables, the first one winning, as `CoalesceTables` and `MergeTables`.
///
/// # Errors
///
/// [`CoalesceError::TooDeep`]
pub fn coalesce_tables(
    winner: &Map,
    defaults: &Map,
    nulls: Nulls,
    warnings: &mut Vec<Warning>,
) -> Result<Map, CoalesceError> {
    let mut graph = Graph::default();
    let to = graph.import(winner, 0)?;
    let from = graph.import(defaults, 0)?;
    Coalescer { graph: &mut graph, warnings }.tables(to, from, "", nulls, 0)?;
    graph.export(to)
}

/// A chart as coalescing sees it: a handle, cheap to copy.
pub(super) trait ChartView: Copy {
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

/// One run over a graph. The functions are those of `coalesce.go` under their Rust names.
pub(super) struct Coalescer<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) warnings: &'a mut Vec<Warning>,
}

impl Coalescer<'_> {
    fn warn(&mut self, origin: &'static str, message: String) {
        self.warnings.push(Warning::new(origin, message));
    }

    /// `coalesce`
    pub(super) fn coalesce(
        &mut self,
        chart: impl ChartView,
        dest: TableId,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), CoalesceError> {
        self.values(chart, dest, prefix, nulls)?;
        self.dependencies(chart, dest, prefix, nulls)
    }

    /// `coalesceDeps`
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
            let prefix = join(prefix, chart.name().as_ref());
            self.globals(table, dest, &prefix)?;
            self.coalesce(subchart, table, &prefix, nulls)?;
        }
        Ok(())
    }

    /// `coalesceGlobals`
    fn globals(&mut self, dest: TableId, src: TableId, prefix: &str) -> Result<(), CoalesceError> {
        let dest_globals = match self.graph.get(dest, GLOBAL_KEY) {
            None => self.graph.new_table(),
            Some(Node::Table(table)) => *table,
            Some(Node::Leaf(_)) => {
                self.warn(
                    "coalesce.go:138",
                    "warning: skipping globals because destination global is not a table."
                        .to_owned(),
                );
                return Ok(());
            }
        };
        let globals = match self.graph.get(src, GLOBAL_KEY) {
            None => Vec::new(),
            Some(Node::Table(table)) => self.graph.snapshot(*table),
            Some(Node::Leaf(_)) => {
                self.warn(
                    "coalesce.go:145",
                    "warning: skipping globals because source global is not a table.".to_owned(),
                );
                return Ok(());
            }
        };
        for (key, node) in globals {
            self.global(dest_globals, &key, node, prefix)?;
        }
        self.graph.set(dest, GLOBAL_KEY, Node::Table(dest_globals));
        Ok(())
    }

    /// One round of the loop in `coalesceGlobals`.
    fn global(
        &mut self,
        dest: TableId,
        key: &BString,
        node: Node,
        prefix: &str,
    ) -> Result<(), CoalesceError> {
        let existing = self.graph.get(dest, key).cloned();
        match (node, existing) {
            (Node::Table(table), None) => {
                let copy = self.graph.copy(table);
                self.graph.set(dest, key.clone(), Node::Table(copy));
            }
            (Node::Table(_), Some(Node::Leaf(_))) => {
                let key = quote(key);
                self.warn(
                    "coalesce.go:161",
                    format!("Conflict: cannot merge map onto non-map for {key}. Skipping."),
                );
            }
            (Node::Table(table), Some(Node::Table(existing))) => {
                // The other way round than usual: what stands above wins.
                let copy = self.graph.copy(table);
                let prefix = join(prefix, key);
                self.tables(copy, existing, &prefix, Nulls::Keep, 0)?;
                self.graph.set(dest, key.clone(), Node::Table(copy));
            }
            (Node::Leaf(_), Some(Node::Table(_))) => {
                let key = key.to_str_lossy();
                self.warn("coalesce.go:175", format!("key {key} is table. Skipping"));
            }
            (leaf @ Node::Leaf(_), _) => self.graph.set(dest, key.clone(), leaf),
        }
        Ok(())
    }

    /// `coalesceValues`
    fn values(
        &mut self,
        chart: impl ChartView,
        dest: TableId,
        prefix: &str,
        nulls: Nulls,
    ) -> Result<(), CoalesceError> {
        let Some(values) = chart.values() else { return Ok(()) };
        let prefix = join(prefix, chart.name().as_ref());
        let subcharts: BTreeSet<BString> =
            chart.dependencies().iter().map(|chart| chart.name().into()).collect();
        let defaults = self.graph.import(values, 0)?;
        for (key, default) in self.graph.snapshot(defaults) {
            match (self.graph.get(dest, &key).cloned(), default) {
                (None, default) => self.graph.set(dest, key, default),
                (Some(value), _) if value.is_null() && nulls == Nulls::Remove => {
                    self.graph.remove(dest, &key);
                }
                (Some(Node::Table(table)), Node::Table(default)) => {
                    // Nulls meant for a subchart must reach its own values.
                    let nulls = if subcharts.contains(&key) { Nulls::Keep } else { nulls };
                    self.tables(table, default, &join(&prefix, &key), nulls, 0)?;
                }
                (Some(Node::Table(_)), Node::Leaf(default)) if !default.is_null() => {
                    let key = key.to_str_lossy();
                    self.warn(
                        "coalesce.go:237",
                        format!("warning: skipped value for {prefix}.{key}: Not a table."),
                    );
                }
                (Some(_), _) => {}
            }
        }
        Ok(())
    }

    /// `coalesceTablesFullKey`
    pub(super) fn tables(
        &mut self,
        dest: TableId,
        src: TableId,
        prefix: &str,
        nulls: Nulls,
        depth: usize,
    ) -> Result<(), CoalesceError> {
        check_depth(depth)?;
        let real_defaults: BTreeSet<BString> = self
            .graph
            .entries(src)
            .filter(|(_, node)| !node.is_null())
            .map(|(key, _)| key.clone())
            .collect();
        for (key, node) in self.graph.snapshot(dest) {
            if node.is_null() {
                self.graph.set(src, key, Node::null());
            }
        }
        for (key, default) in self.graph.snapshot(src) {
            let value = self.graph.get(dest, &key).cloned();
            match (value, default) {
                (Some(value), _)
                    if nulls == Nulls::Remove
                        && value.is_null()
                        && real_defaults.contains(&key) =>
                {
                    self.graph.remove(dest, &key);
                }
                (None, default) => self.graph.set(dest, key, default),
                (Some(Node::Table(value)), Node::Table(default)) => {
                    self.tables(value, default, &join(prefix, &key), nulls, depth + 1)?;
                }
                (Some(Node::Leaf(_)), default @ Node::Table(_)) => {
                    let full_key = join(prefix, &key);
                    let shown = self.show(&default);
                    self.warn(
                        "coalesce.go:316",
                        format!(
                            "warning: cannot overwrite table with non table for {full_key} \
                             ({shown})"
                        ),
                    );
                }
                (Some(Node::Table(_)), default @ Node::Leaf(_)) if !default.is_null() => {
                    let full_key = join(prefix, &key);
                    let shown = self.show(&default);
                    self.warn(
                        "coalesce.go:319",
                        format!(
                            "warning: destination for {full_key} is a table. Ignoring non-table \
                             value ({shown})"
                        ),
                    );
                }
                (Some(_), _) => {}
            }
        }
        Ok(())
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
