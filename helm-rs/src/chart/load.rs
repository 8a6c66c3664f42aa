//! Building a chart from its files, as Helm's `pkg/chart/loader/load.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Warning;
use super::archive::read_archive;
use super::decode;
use super::error::LoadError;
use super::limits::Limits;
use super::metadata::{API_VERSION_V1, Lock, Metadata};
use super::model::{Chart, ChartPath, File};
use crate::gopath;

/// The Go type that `values.yaml` is decoded into.
const VALUES_TYPE: &str = "map[string]interface {}";

/// A file on its way into a chart.
#[derive(Debug, Clone)]
pub struct BufferedFile {
    /// Slash-separated path below the chart's root.
    pub name: String,
    /// Content without byte order mark.
    pub data: Arc<[u8]>,
}

/// Builds a chart from files in the given order, as `LoadFiles`. Packed subcharts are unpacked.
///
/// # Errors
///
/// [`LoadError`] when the files do not make a valid chart or a limit is exceeded.
pub fn load_files(
    files: Vec<BufferedFile>,
    limits: &Limits,
    warnings: &mut Vec<Warning>,
) -> Result<Chart, LoadError> {
    Loader::new(limits, warnings).load(files)
}

/// `bytes.TrimPrefix` with the UTF-8 byte order mark.
pub(super) fn strip_bom(data: &[u8]) -> &[u8] {
    data.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(data)
}

/// One load with what it has used up so far.
pub(super) struct Loader<'a> {
    limits: &'a Limits,
    warnings: &'a mut Vec<Warning>,
    bytes: u64,
    depth: usize,
}

impl<'a> Loader<'a> {
    pub(super) fn new(limits: &'a Limits, warnings: &'a mut Vec<Warning>) -> Self {
        Self { limits, warnings, bytes: 0, depth: 0 }
    }

    /// Builds the root chart.
    pub(super) fn load(&mut self, files: Vec<BufferedFile>) -> Result<Chart, LoadError> {
        self.count(&files)?;
        let mut chart = self.load_chart(files)?;
        chart.refresh_paths();
        Ok(chart)
    }

    /// Adds unpacked files to what the whole load may hold.
    fn count(&mut self, files: &[BufferedFile]) -> Result<(), LoadError> {
        for file in files {
            self.bytes = self.bytes.saturating_add(file.data.len() as u64);
            if self.bytes > self.limits.total_size {
                let (limit, place) = (self.limits.total_size, file.name.clone());
                return Err(LoadError::Limit { what: "bytes", limit, place });
            }
        }
        Ok(())
    }

    fn load_chart(&mut self, files: Vec<BufferedFile>) -> Result<Chart, LoadError> {
        let mut metadata = read_chart_yaml(&files)?;
        let mut parts = Parts::default();
        for file in files {
            let file = File { name: file.name, data: file.data };
            parts.raw.push(file.clone());
            self.sort_file(file, &mut metadata, &mut parts)?;
        }
        let mut metadata = metadata.ok_or(LoadError::NoChartYaml)?;
        metadata.validate()?;
        let name = metadata.name.clone();
        let dependencies = self.load_subcharts(parts.subcharts, &name)?;
        Ok(Chart {
            metadata,
            lock: parts.lock,
            templates: parts.templates,
            values: parts.values,
            schema: parts.schema,
            files: parts.files,
            raw: parts.raw,
            dependencies,
            path: ChartPath::default(),
        })
    }

    /// Puts one file where it belongs.
    fn sort_file(
        &mut self,
        file: File,
        metadata: &mut Option<Metadata>,
        parts: &mut Parts,
    ) -> Result<(), LoadError> {
        match file.name.as_str() {
            "Chart.yaml" => {}
            "Chart.lock" => parts.lock = read_lock(&file.data, "Chart.lock")?,
            "values.yaml" => {
                let values =
                    goyaml::from_yaml_map(&file.data, VALUES_TYPE, &goyaml::Limits::default())
                        .map_err(|error| yaml_error("values.yaml", error.into()))?;
                parts.values = Some(values);
            }
            "values.schema.json" => parts.schema = Some(file.data),
            "requirements.yaml" => {
                let metadata = metadata.get_or_insert_default();
                let is_v1 = metadata.api_version == API_VERSION_V1;
                if !is_v1 {
                    self.warnings.push(Warning::new(
                        "load.go:120",
                        "Warning: Dependencies are handled in Chart.yaml since apiVersion \"v2\". \
                         We recommend migrating dependencies to Chart.yaml.",
                    ));
                }
                decode::decode_metadata(&file.data, metadata)
                    .map_err(|error| yaml_error("requirements.yaml", error))?;
                if metadata.api_version == API_VERSION_V1 {
                    parts.files.push(file);
                }
            }
            "requirements.lock" => {
                parts.lock = read_lock(&file.data, "requirements.lock")?;
                let metadata = metadata.get_or_insert_default();
                if metadata.api_version == API_VERSION_V1 {
                    parts.files.push(file);
                } else {
                    self.warnings.push(Warning::new(
                        "load.go:138",
                        "Warning: Dependency locking is handled in Chart.lock since apiVersion \
                         \"v2\". We recommend migrating to Chart.lock.",
                    ));
                }
            }
            name if name.starts_with("templates/") => parts.templates.push(file),
            name => match name.strip_prefix("charts/") {
                Some(name) if gopath::ext(name) != ".prov" => {
                    let top = name.split('/').next().unwrap_or(name).to_owned();
                    let file = BufferedFile { name: name.to_owned(), data: file.data };
                    parts.subcharts.entry(top).or_default().push(file);
                }
                _ => parts.files.push(file),
            },
        }
        Ok(())
    }

    /// Loads what lies in `charts/`, in the order of the names.
    fn load_subcharts(
        &mut self,
        subcharts: BTreeMap<String, Vec<BufferedFile>>,
        parent: &str,
    ) -> Result<Vec<Chart>, LoadError> {
        let mut charts = Vec::new();
        for (name, files) in subcharts {
            if name.starts_with(['_', '.']) {
                continue;
            }
            if self.depth >= self.limits.chart_depth {
                let limit = self.limits.chart_depth as u64;
                return Err(LoadError::Limit { what: "levels of charts", limit, place: name });
            }
            self.depth += 1;
            let chart = self.load_subchart(&name, files, parent);
            self.depth -= 1;
            charts.push(chart.map_err(|error| match error {
                LoadError::SubchartArchiveName { .. } => error,
                error => {
                    LoadError::Subchart { name, parent: parent.to_owned(), source: error.into() }
                }
            })?);
        }
        Ok(charts)
    }

    fn load_subchart(
        &mut self,
        name: &str,
        files: Vec<BufferedFile>,
        parent: &str,
    ) -> Result<Chart, LoadError> {
        if gopath::ext(name) == ".tgz" {
            let Some(archive) = files.first() else { return Err(LoadError::NoChartYaml) };
            if archive.name != name {
                return Err(LoadError::SubchartArchiveName {
                    parent: parent.to_owned(),
                    expected: name.to_owned(),
                    actual: archive.name.clone(),
                });
            }
            let files = read_archive(&archive.data, self.limits)?;
            self.count(&files)?;
            return self.load_chart(files);
        }
        let inside = files.into_iter().filter_map(|file| {
            let (_, rest) = file.name.split_once('/')?;
            Some(BufferedFile { name: rest.to_owned(), data: file.data })
        });
        self.load_chart(inside.collect())
    }
}

/// What `LoadFiles` collects before the subcharts are loaded.
#[derive(Default)]
struct Parts {
    lock: Option<Lock>,
    templates: Vec<File>,
    values: Option<goyaml::Map>,
    schema: Option<Arc<[u8]>>,
    files: Vec<File>,
    raw: Vec<File>,
    subcharts: BTreeMap<String, Vec<BufferedFile>>,
}

/// Reads every `Chart.yaml`: a second one in an archive is read over the first, as in Helm.
fn read_chart_yaml(files: &[BufferedFile]) -> Result<Option<Metadata>, LoadError> {
    let mut metadata: Option<Metadata> = None;
    for file in files.iter().filter(|file| file.name == "Chart.yaml") {
        let metadata = metadata.get_or_insert_default();
        decode::decode_metadata(&file.data, metadata)
            .map_err(|error| yaml_error("Chart.yaml", error))?;
        if metadata.api_version.is_empty() {
            API_VERSION_V1.clone_into(&mut metadata.api_version);
        }
    }
    Ok(metadata)
}

fn read_lock(data: &[u8], file: &'static str) -> Result<Option<Lock>, LoadError> {
    decode::decode_lock(data).map_err(|error| yaml_error(file, error))
}

fn yaml_error(file: &'static str, source: decode::DecodeError) -> LoadError {
    LoadError::Yaml { file, source }
}
