//! What a chart says about itself, as `helm show` prints it (`pkg/action/show.go`).

use goyaml::{Map, Value};

use crate::chart::{Chart, Metadata};

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything, in the order chart, values, readme, CRDs.
    All,
    /// `Chart.yaml`, in the order and spelling of Helm's own writer.
    Chart,
    /// `values.yaml` as it stands.
    Values,
    /// The readme.
    Readme,
    /// The manifests under `crds/`, of subcharts too.
    Crds,
}

impl Part {
    fn includes(self, part: Self) -> bool {
        self == part || self == Self::All
    }
}

/// The text that `helm show` prints.
///
/// # Errors
/// When the metadata cannot be written as YAML, which no loaded chart does.
pub fn show(chart: &Chart, part: Part) -> Result<Vec<u8>, goyaml::Error> {
    let mut out = Vec::new();
    if part.includes(Part::Chart) {
        out.extend_from_slice(goyaml::to_yaml(&metadata_value(&chart.metadata))?.as_bytes());
        out.push(b'\n');
    }
    if part.includes(Part::Values) && chart.values.is_some() {
        separate(&mut out, part);
        for file in chart.raw.iter().filter(|file| file.name == "values.yaml") {
            out.extend_from_slice(&file.data);
            out.push(b'\n');
        }
    }
    if part.includes(Part::Readme)
        && let Some(readme) = chart.files.iter().find(|file| is_readme(&file.name))
    {
        separate(&mut out, part);
        out.extend_from_slice(&readme.data);
        out.push(b'\n');
    }
    if part.includes(Part::Crds) {
        let crds = chart.crds();
        if crds.first().is_some_and(|crd| !crd.file.data.starts_with(b"---")) {
            separate(&mut out, part);
        }
        for crd in crds {
            out.extend_from_slice(&crd.file.data);
            out.push(b'\n');
        }
    }
    Ok(out)
}

fn separate(out: &mut Vec<u8>, part: Part) {
    if part == Part::All {
        out.extend_from_slice(b"---\n");
    }
}

fn is_readme(name: &str) -> bool {
    ["readme.md", "readme.txt", "readme"].iter().any(|readme| name.eq_ignore_ascii_case(readme))
}

/// The metadata as Helm writes it to YAML and JSON: empty fields left out.
pub fn metadata_value(metadata: &Metadata) -> Value {
    let mut map = Map::new();
    let mut text = |name: &str, value: &str| {
        if !value.is_empty() {
            map.insert(name, value);
        }
    };
    text("name", &metadata.name);
    text("home", &metadata.home);
    text("version", &metadata.version);
    text("description", &metadata.description);
    text("icon", &metadata.icon);
    text("apiVersion", &metadata.api_version);
    text("condition", &metadata.condition);
    text("tags", &metadata.tags);
    text("appVersion", &metadata.app_version);
    text("kubeVersion", &metadata.kube_version);
    text("type", &metadata.chart_type);
    Value::Map(map)
}
