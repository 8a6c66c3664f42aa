//! Our side of every comparison, in one place.

use helm_rs::capabilities::Capabilities;
use helm_rs::chart::{BufferedFile, Limits, load_files};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{ENGINE_FUNCTIONS, Engine, EngineOptions, Host, Release, functions};
use helm_rs::values::{Nulls, coalesce_shared};

use crate::cases::{Case, Outcome};

/// The chart that the driver builds for a case (`tests/tools/helm-driver/ops_template.go`).
const CHART: &str = "apiVersion: v2\nname: c\nversion: 1.2.3\nappVersion: 4.5.6\n\
                     description: One template\n";

/// Why our engine cannot be asked; `None` when it can.
pub fn unavailable() -> Option<&'static str> {
    None
}

/// Renders a case with helm-rs, as [`crate::theirs::render_expression`] does with Helm.
pub fn render_expression(case: &Case) -> Outcome {
    render(case).map_or_else(Outcome::Error, Outcome::Output)
}

fn render(case: &Case) -> Result<Vec<u8>, String> {
    let mut warnings = Vec::new();
    let values =
        goyaml::from_yaml_map(&case.values, "chartutil.Values", &goyaml::Limits::default())
            .map_err(|error| helm_rs::error_chain(&error))?;
    let file = |name: String, text: &[u8]| BufferedFile { name, data: text.into() };
    let mut files = vec![
        file("Chart.yaml".into(), CHART.as_bytes()),
        file("templates/t.yaml".into(), &case.template),
    ];
    for partial in &case.partials {
        files.push(file(format!("templates/{}", partial.name), &partial.text));
    }
    for other in &case.files {
        files.push(file(other.name.clone(), &other.text));
    }
    let chart = load_files(files, &Limits::default(), &mut warnings)
        .map_err(|error| helm_rs::error_chain(&error))?;
    let effective = coalesce_shared(&chart, &values, Nulls::Remove, &mut warnings)
        .map_err(|error| helm_rs::error_chain(&error))?;
    let options = EngineOptions { strict: case.strict, ..EngineOptions::default() };
    let release = Release {
        name: "release-name".into(),
        namespace: "default".into(),
        revision: 1,
        is_upgrade: case.upgrade,
        is_install: !case.upgrade,
    };
    let started =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let clock = Clock::Fixed(Reading::at(
        i64::try_from(started.as_secs()).unwrap_or_default(),
        started.subsec_nanos(),
    ));
    let mut host =
        Host::new(Randomness::Seed(u64::from(started.subsec_nanos())), clock, Zone::utc());
    host.enable_dns = case.dns;
    host.engine.lint = case.lint;
    let mut rendered = Engine::new(options)
        .render(&chart, &effective, &release, &Capabilities::default(), &mut host)
        .map_err(|error| error.message.to_string())?;
    rendered
        .remove("c/templates/t.yaml")
        .map(Into::into)
        .ok_or_else(|| "the template was not rendered".to_owned())
}

/// The names of the functions that helm-rs gives to templates, sorted, without text/template's own.
pub fn function_names() -> Vec<String> {
    let mut names: Vec<String> = functions::builtin_names()
        .iter()
        .chain(&ENGINE_FUNCTIONS)
        .map(ToString::to_string)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}
