//! The chart itself, as Helm's `pkg/chart/chart.go`.

use std::sync::Arc;

use goyaml::Map;

use super::metadata::{Lock, Metadata};
use crate::gopath;

/// A named file of a chart.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// Slash-separated path below the chart's root.
    pub name: String,
    /// Content, without a leading UTF-8 byte order mark. Shared, so that copies of a chart are
    /// cheap.
    pub data: Arc<[u8]>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File")
            .field("name", &self.name)
            .field("data", &format_args!("{} bytes", self.data.len()))
            .finish()
    }
}

/// A chart with its subcharts.
#[derive(Debug, Clone)]
pub struct Chart {
    /// What `Chart.yaml` (and `requirements.yaml`) says.
    pub metadata: Metadata,
    /// `Chart.lock`, or `requirements.lock` of a v1 chart.
    pub lock: Option<Lock>,
    /// Files under `templates/`, in load order.
    pub templates: Vec<File>,
    /// Default values; none without a `values.yaml`.
    pub values: Option<Map>,
    /// Text of `values.schema.json`.
    pub schema: Option<Arc<[u8]>>,
    /// All other files, `crds/` included, in load order.
    pub files: Vec<File>,
    /// Every file as it was in the package, in load order.
    pub raw: Vec<File>,
    /// Subcharts. After loading they stand in the order of their names in `charts/` (Helm: random
    /// order); after [`process_dependencies`](crate::values::process_dependencies) in Helm's order.
    pub dependencies: Vec<Self>,
    pub(crate) path: ChartPath,
}

/// Where a chart stands in its tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChartPath {
    /// Chart names joined by dots, as `Chart.ChartPath`.
    pub dotted: String,
    /// Chart names joined by `/charts/`, as `Chart.ChartFullPath`.
    pub full: String,
    /// Whether this is the chart that was asked for.
    pub is_root: bool,
}

impl ChartPath {
    /// The path of a chart without parent.
    pub(crate) fn root(name: &str) -> Self {
        Self { dotted: name.to_owned(), full: name.to_owned(), is_root: true }
    }

    /// The path of a subchart of this chart.
    pub(crate) fn child(&self, name: &str) -> Self {
        Self {
            dotted: format!("{}.{name}", self.dotted),
            full: format!("{}/charts/{name}", self.full),
            is_root: false,
        }
    }
}

/// A file under `crds/`.
#[derive(Debug, Clone, Copy)]
pub struct Crd<'a> {
    /// The file, named from its chart's root.
    pub file: &'a File,
    /// The chart that holds it.
    pub chart: &'a Chart,
}

impl Crd<'_> {
    /// The name that `# Source:` comments use: the chart's full path and the file's name.
    pub fn filename(&self) -> String {
        gopath::join(self.chart.full_path(), &self.file.name)
    }
}

impl Chart {
    /// A chart without files.
    pub fn new(metadata: Metadata) -> Self {
        let path = ChartPath::root(&metadata.name);
        Self {
            metadata,
            lock: None,
            templates: Vec::new(),
            values: None,
            schema: None,
            files: Vec::new(),
            raw: Vec::new(),
            dependencies: Vec::new(),
            path,
        }
    }

    /// The chart's name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether this is the chart that was asked for, not one of its subcharts.
    pub fn is_root(&self) -> bool {
        self.path.is_root
    }

    /// Names of this chart and its ancestors joined by dots, as `Chart.ChartPath`.
    pub fn dotted_path(&self) -> &str {
        &self.path.dotted
    }

    /// Names of this chart and its ancestors joined by `/charts/`, as `Chart.ChartFullPath`: the
    /// prefix of its templates' names. Subcharts of an aliased chart that lists no dependencies
    /// keep the path under the unaliased name, as in Helm.
    pub fn full_path(&self) -> &str {
        &self.path.full
    }

    /// Whether this is a library chart.
    pub fn is_library(&self) -> bool {
        self.metadata.chart_type.eq_ignore_ascii_case("library")
    }

    /// The manifests under `crds/` of this chart, then of its subcharts, as `Chart.CRDObjects`.
    pub fn crds(&self) -> Vec<Crd<'_>> {
        let mut crds: Vec<Crd<'_>> = self
            .files
            .iter()
            .filter(|file| file.name.starts_with("crds/") && is_manifest(&file.name))
            .map(|file| Crd { file, chart: self })
            .collect();
        for dependency in &self.dependencies {
            crds.extend(dependency.crds());
        }
        crds
    }

    /// Adds a subchart.
    pub fn add_dependency(&mut self, chart: Self) {
        self.dependencies.push(chart);
    }

    /// Gives the whole tree the paths that follow from its names. To be called on a root after its
    /// dependencies or names were changed by hand.
    pub fn refresh_paths(&mut self) {
        let path = ChartPath::root(self.name());
        self.set_paths(path);
    }

    fn set_paths(&mut self, path: ChartPath) {
        for dependency in &mut self.dependencies {
            let child = path.child(&dependency.metadata.name);
            dependency.set_paths(child);
        }
        self.path = path;
    }
}

fn is_manifest(name: &str) -> bool {
    let extension = gopath::ext(name);
    [".yaml", ".yml", ".json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}
