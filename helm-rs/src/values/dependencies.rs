//! Which subcharts take part, under which names, and what they hand up, as Helm's
//! `pkg/chartutil/dependencies.go`.
//!
//! Helm does this on pointers, and what it does shows that: a chart used twice under two aliases
//! shares its `dependencies` entries between both copies, and its own subcharts keep pointing at
//! the original. So the tree is taken apart into an arena with identities, worked on there, and
//! put together again.

use std::collections::BTreeSet;

use bstr::ByteSlice;
use goyaml::{Map, Value};

use super::coalesce::{ChartView, Coalescer, Nulls};
use super::graph::{Graph, Node, TableId};
use super::{CoalesceError, path_value};
use crate::chart::{Chart, ChartPath, Dependency, ImportValues, Metadata, Warning};
use crate::compatible::is_compatible_range;
use crate::gotext::{display, quote, trim_space};

/// Applies conditions, tags, aliases and `import-values` of a chart tree to itself, for the given
/// user values: disabled subcharts are gone afterwards, aliased ones renamed, and imported values
/// are part of [`Chart::values`].
///
/// Helm's actions use [`Nulls::Keep`] (`ProcessDependenciesWithMerge`); [`Nulls::Remove`] is
/// `ProcessDependencies`.
///
/// # Errors
///
/// [`CoalesceError`] when a subchart's values are no table. The chart is then half processed.
pub fn process_dependencies(
    chart: &mut Chart,
    values: &Map,
    nulls: Nulls,
    warnings: &mut Vec<Warning>,
) -> Result<(), CoalesceError> {
    if !lists_dependencies(chart) {
        return Ok(());
    }
    let root = std::mem::replace(chart, Chart::new(Metadata::default()));
    let mut tree = Tree::default();
    let id = tree.add(root, None);
    let result = tree
        .process_enabled(id, values, "", warnings)
        .and_then(|()| tree.process_imports(id, nulls, warnings));
    *chart = tree.build(id);
    result
}

/// Whether any chart of a tree has a `dependencies` list; without one there is nothing to process.
fn lists_dependencies(chart: &Chart) -> bool {
    chart.metadata.dependencies.is_some() || chart.dependencies.iter().any(lists_dependencies)
}

/// Names in `dependencies` for which there is no subchart, as `CheckDependencies` of Helm's
/// `pkg/action/install.go`; to be called before [`process_dependencies`].
pub fn missing_dependencies(chart: &Chart) -> Vec<&str> {
    let present: BTreeSet<&str> = chart.dependencies.iter().map(Chart::name).collect();
    let wanted = chart.metadata.dependencies.iter().flatten();
    wanted.map(|d| d.name.as_str()).filter(|name| !present.contains(name)).collect()
}

type ChartId = usize;
type DependencyId = usize;

#[derive(Default)]
struct Tree {
    charts: Vec<ChartNode>,
    /// Entries of `dependencies`, which copies of a chart share.
    dependencies: Vec<Dependency>,
}

/// A chart with its relations by identity.
#[derive(Clone)]
struct ChartNode {
    /// The chart without subcharts and without `metadata.dependencies`.
    chart: Chart,
    wanted: Option<Vec<DependencyId>>,
    subcharts: Vec<ChartId>,
    parent: Option<ChartId>,
}

/// A chart of the arena.
#[derive(Clone, Copy)]
struct View<'a> {
    tree: &'a Tree,
    node: &'a ChartNode,
}

impl ChartView for View<'_> {
    fn name(&self) -> &str {
        self.node.chart.name()
    }

    fn values(&self) -> Option<&Map> {
        self.node.chart.values.as_ref()
    }

    fn dependencies(&self) -> Vec<Self> {
        let view = |id: &ChartId| self.tree.view(*id);
        self.node.subcharts.iter().filter_map(view).collect()
    }
}

impl Tree {
    /// Takes a chart apart.
    fn add(&mut self, mut chart: Chart, parent: Option<ChartId>) -> ChartId {
        let subcharts = std::mem::take(&mut chart.dependencies);
        let wanted = chart.metadata.dependencies.take().map(|wanted| {
            let first = self.dependencies.len();
            self.dependencies.extend(wanted);
            (first..self.dependencies.len()).collect()
        });
        let id = self.charts.len();
        self.charts.push(ChartNode { chart, wanted, subcharts: Vec::new(), parent });
        let subcharts = subcharts.into_iter().map(|chart| self.add(chart, Some(id))).collect();
        if let Some(node) = self.charts.get_mut(id) {
            node.subcharts = subcharts;
        }
        id
    }

    /// Puts a chart together again. The path of a chart follows its parent pointer, which is not
    /// always the chart that holds it.
    fn build(&self, id: ChartId) -> Chart {
        let Some(node) = self.charts.get(id) else { return Chart::new(Metadata::default()) };
        let mut chart = node.chart.clone();
        chart.metadata.dependencies = node.wanted.as_ref().map(|wanted| {
            wanted.iter().filter_map(|&id| self.dependencies.get(id).cloned()).collect()
        });
        chart.dependencies = node.subcharts.iter().map(|&id| self.build(id)).collect();
        chart.path = self.path(id);
        chart
    }

    fn path(&self, id: ChartId) -> ChartPath {
        let Some(node) = self.charts.get(id) else { return ChartPath::default() };
        match node.parent {
            None => ChartPath::root(node.chart.name()),
            Some(parent) => self.path(parent).child(node.chart.name()),
        }
    }

    fn view(&self, id: ChartId) -> Option<View<'_>> {
        self.charts.get(id).map(|node| View { tree: self, node })
    }

    fn name(&self, id: ChartId) -> &str {
        self.charts.get(id).map_or("", |node| node.chart.name())
    }

    /// `SetDependencies`
    fn set_subcharts(&mut self, id: ChartId, subcharts: Vec<ChartId>) {
        for &subchart in &subcharts {
            if let Some(node) = self.charts.get_mut(subchart) {
                node.parent = Some(id);
            }
        }
        if let Some(node) = self.charts.get_mut(id) {
            node.subcharts = subcharts;
        }
    }

    /// `CoalesceValues` for a chart of the arena.
    fn coalesce(
        &self,
        id: ChartId,
        values: &Map,
        nulls: Nulls,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Graph, TableId), CoalesceError> {
        let mut graph = Graph::default();
        let root = graph.import(values, 0)?;
        if let Some(view) = self.view(id) {
            Coalescer { graph: &mut graph, warnings }.coalesce(view, root, "", nulls)?;
        }
        Ok((graph, root))
    }

    /// `processDependencyEnabled`
    fn process_enabled(
        &mut self,
        id: ChartId,
        values: &Map,
        path: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), CoalesceError> {
        let Some(node) = self.charts.get(id) else { return Ok(()) };
        let Some(wanted) = node.wanted.clone() else { return Ok(()) };
        let present = node.subcharts.clone();
        let mut chosen: Vec<ChartId> =
            present.iter().copied().filter(|&id| !self.is_wanted(id, &wanted)).collect();
        for &dependency in &wanted {
            chosen.extend(self.aliased(&present, dependency));
            if let Some(dependency) = self.dependencies.get_mut(dependency)
                && !dependency.alias.is_empty()
            {
                dependency.name.clone_from(&dependency.alias);
            }
        }
        self.set_subcharts(id, chosen.clone());
        let (graph, root) = self.coalesce(id, values, Nulls::Remove, warnings)?;
        let effective = graph.export(root)?;
        self.apply_switches(&wanted, &effective, path, warnings);

        let disabled: BTreeSet<String> = wanted
            .iter()
            .filter_map(|&id| self.dependencies.get(id))
            .filter(|dependency| !dependency.enabled)
            .map(|dependency| dependency.name.clone())
            .collect();
        chosen.retain(|&id| !disabled.contains(self.name(id)));
        for &subchart in &chosen {
            let path = format!("{path}{}.", self.name(subchart));
            self.process_enabled(subchart, &effective, &path, warnings)?;
        }
        let kept: Vec<DependencyId> = wanted
            .into_iter()
            .filter(|&id| self.dependencies.get(id).is_some_and(|d| !disabled.contains(&d.name)))
            .collect();
        if let Some(node) = self.charts.get_mut(id) {
            node.wanted = if kept.is_empty() { None } else { Some(kept) };
        }
        self.set_subcharts(id, chosen);
        Ok(())
    }

    /// Whether a subchart is one that `dependencies` asks for.
    fn is_wanted(&self, subchart: ChartId, wanted: &[DependencyId]) -> bool {
        let Some(node) = self.charts.get(subchart) else { return false };
        let metadata = &node.chart.metadata;
        wanted.iter().filter_map(|&id| self.dependencies.get(id)).any(|dependency| {
            dependency.name == metadata.name
                && is_compatible_range(&dependency.version, &metadata.version)
        })
    }

    /// `getAliasDependency`: a copy of the first subchart that fits an entry.
    fn aliased(&mut self, present: &[ChartId], dependency: DependencyId) -> Option<ChartId> {
        let wanted = self.dependencies.get(dependency)?;
        let original = present.iter().filter_map(|&id| self.charts.get(id)).find(|node| {
            let metadata = &node.chart.metadata;
            metadata.name == wanted.name && is_compatible_range(&wanted.version, &metadata.version)
        })?;
        let mut copy = original.clone();
        if !wanted.alias.is_empty() {
            copy.chart.metadata.name.clone_from(&wanted.alias);
        }
        self.charts.push(copy);
        Some(self.charts.len() - 1)
    }

    /// `processDependencyTags`, then `processDependencyConditions`, which win.
    fn apply_switches(
        &mut self,
        wanted: &[DependencyId],
        values: &Map,
        path: &str,
        warnings: &mut Vec<Warning>,
    ) {
        let tags = values.get("tags").and_then(Value::as_map);
        for &id in wanted {
            let Some(dependency) = self.dependencies.get_mut(id) else { continue };
            dependency.enabled = true;
            if let Some(tags) = tags {
                apply_tags(dependency, tags, warnings);
            }
        }
        for &id in wanted {
            if let Some(dependency) = self.dependencies.get_mut(id) {
                apply_conditions(dependency, values, path, warnings);
            }
        }
    }

    /// `processDependencyImportValues`
    fn process_imports(
        &mut self,
        id: ChartId,
        nulls: Nulls,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), CoalesceError> {
        let subcharts = self.charts.get(id).map(|node| node.subcharts.clone()).unwrap_or_default();
        for subchart in subcharts {
            self.process_imports(subchart, nulls, warnings)?;
        }
        let Some(wanted) = self.charts.get(id).and_then(|node| node.wanted.clone()) else {
            return Ok(());
        };
        let (mut graph, root) = self.coalesce(id, &Map::new(), nulls, warnings)?;
        let imported = graph.new_table();
        for dependency in wanted {
            let Some(dependency) = self.dependencies.get_mut(dependency) else { continue };
            let entries = std::mem::take(&mut dependency.import_values);
            let mut imports = Imports { graph: &mut graph, root, imported, nulls, warnings };
            for entry in entries {
                if let Some(resolved) = imports.import(&dependency.name, &entry)? {
                    dependency.import_values.push(resolved);
                }
            }
        }
        // A deep copy, so that the tables which `imported` shares with it stay apart.
        let mut own = graph.export(root)?;
        if nulls == Nulls::Remove {
            trim_nulls(&mut own);
        }
        let own = graph.import(&own, 0)?;
        Coalescer { graph: &mut graph, warnings }.tables(own, imported, "", nulls, 0)?;
        let values = graph.export(own)?;
        if let Some(node) = self.charts.get_mut(id) {
            node.chart.values = Some(values);
        }
        Ok(())
    }
}

fn apply_tags(dependency: &mut Dependency, tags: &Map, warnings: &mut Vec<Warning>) {
    let (mut has_true, mut has_false) = (false, false);
    for tag in &dependency.tags {
        match tags.get(tag) {
            None => {}
            Some(Value::Bool(true)) => has_true = true,
            Some(Value::Bool(false)) => has_false = true,
            Some(_) => warnings.push(Warning::new(
                "dependencies.go:95",
                format!(
                    "Warning: Tag '{tag}' for chart {} returned non-bool value",
                    dependency.name
                ),
            )),
        }
    }
    dependency.enabled = has_true || !has_false;
}

fn apply_conditions(
    dependency: &mut Dependency,
    values: &Map,
    path: &str,
    warnings: &mut Vec<Warning>,
) {
    for condition in trim_space(&dependency.condition).split(',').filter(|c| !c.is_empty()) {
        match path_value(values, &format!("{path}{condition}")) {
            None => {}
            Some(Value::Bool(enabled)) => {
                dependency.enabled = *enabled;
                break;
            }
            Some(_) => warnings.push(Warning::new(
                "dependencies.go:64",
                format!(
                    "Warning: Condition path '{condition}' for chart {} returned non-bool value",
                    dependency.name
                ),
            )),
        }
    }
}

/// The loop body of `processImportValues`.
struct Imports<'a> {
    graph: &'a mut Graph,
    root: TableId,
    imported: TableId,
    nulls: Nulls,
    warnings: &'a mut Vec<Warning>,
}

impl Imports<'_> {
    /// Imports one entry and returns what stands for it afterwards; entries of other types are
    /// dropped.
    fn import(
        &mut self,
        chart: &str,
        entry: &ImportValues,
    ) -> Result<Option<ImportValues>, CoalesceError> {
        let (child, parent, origin, subject) = match entry {
            ImportValues::Written(Value::Map(map)) => {
                let show = |key: &str| display(map.get(key).unwrap_or(&Value::Null));
                let subject = format!("missing table from chart {chart}");
                (show("child"), show("parent"), "dependencies.go:270", subject)
            }
            ImportValues::Written(Value::String(key)) => {
                let child = format!("exports.{}", key.to_str_lossy());
                (child, ".".to_owned(), "dependencies.go:287", "missing table".to_owned())
            }
            ImportValues::Written(_) | ImportValues::Resolved { .. } => return Ok(None),
        };
        match self.graph.follow(self.root, &format!("{chart}.{child}")) {
            Ok(table) => self.merge(table, &parent)?,
            Err(key) => {
                let key = quote(key);
                let text = format!("Warning: ImportValues {subject}: {key} is not a table");
                self.warnings.push(Warning::new(origin, text));
            }
        }
        Ok(Some(ImportValues::Resolved { child, parent }))
    }

    /// Merges a table into what is imported so far, below the parent path (`pathToMap`).
    fn merge(&mut self, table: TableId, parent: &str) -> Result<(), CoalesceError> {
        let mut table = if self.graph.is_empty(table) { self.graph.new_table() } else { table };
        if parent != "." {
            for key in parent.rsplit('.') {
                let outer = self.graph.new_table();
                self.graph.set(outer, key, Node::Table(table));
                table = outer;
            }
        }
        let mut coalescer = Coalescer { graph: self.graph, warnings: self.warnings };
        coalescer.tables(self.imported, table, "", self.nulls, 0)
    }
}

/// `trimNilValues`
fn trim_nulls(map: &mut Map) {
    map.retain(|_, value| !value.is_null());
    for value in map.values_mut() {
        if let Value::Map(map) = value {
            trim_nulls(map);
        }
    }
}
