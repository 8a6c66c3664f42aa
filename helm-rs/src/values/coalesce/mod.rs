//! Joining values of users, charts and subcharts, as Helm's `pkg/chartutil/coalesce.go`.

mod coalescer;

use goyaml::Map;

pub(super) use self::coalescer::{ChartView, Coalescer};
use super::graph::{Graph, TableId};
use crate::chart::{Chart, Warning};

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

impl SharedValues {
    /// The values as a tree; shared tables are copied to every place.
    fn export(&self) -> Result<Map, CoalesceError> {
        self.graph.export(self.root)
    }
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
    coalesce_shared(chart, values, Nulls::Remove, warnings)?.export()
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
    coalesce_shared(chart, values, Nulls::Keep, warnings)?.export()
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
    Coalescer { graph: &mut graph, warnings }.coalesce(chart, root, "", nulls)?;
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
