//! What a chart says about itself, as `helm show` prints it (`pkg/action/show.go`).

use crate::chart::Chart;
use crate::render::metadata_yaml;

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
        out.extend_from_slice(metadata_yaml(chart.metadata.clone())?.as_bytes());
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
