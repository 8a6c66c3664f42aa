//! Charts, value sets and renders of tests.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::print_stdout,
    reason = "test code: a panic is how a test fails, and figures are printed"
)]
#![allow(dead_code, reason = "each test uses a part")]

use std::path::PathBuf;

use cilium::owned::{Facts, Live};
use cilium::pinned::{CONFIG_MAP, DAEMON_SET};
use cilium::values::{effective, set};
use goyaml::Map;
use helm_rs::action::template::{Options, template};
use helm_rs::chart::{Chart, Limits, load_archive};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};
use serde_json::Value as Json;
use test_support::{Missing, place};

pub(crate) fn archive(version: &str) -> Result<Vec<u8>, Missing> {
    let path = place::shared()?.join(format!("charts/cilium-{version}.tgz"));
    std::fs::read(&path)
        .map_err(|error| Missing { what: path.display().to_string(), why: error.to_string() })
}

pub(crate) fn chart(version: &str) -> Result<Chart, Missing> {
    let archive = archive(version)?;
    Ok(load_archive(&archive, &Limits::default(), &mut Vec::new()).unwrap())
}

pub(crate) fn options() -> Options {
    Options { release_name: "cilium".into(), namespace: "kube-system".into(), ..Options::default() }
}

/// The objects of a chart, as a server would have them if it added nothing.
pub(crate) fn objects(chart: &Chart, values: &Map) -> Result<Vec<Json>, String> {
    let mut host = Host::new(Randomness::Seed(7), Clock::Fixed(Reading::at(1, 0)), Zone::utc());
    host.stand_in_keys = true;
    let engine = Engine::new(EngineOptions::default());
    let mut chart = chart.clone();
    let rendering = template(&engine, &mut chart, values, &options(), &mut host, &mut Vec::new())
        .map_err(|error| helm_rs::error_chain(&error))?;
    let hooks = rendering.hooks.iter().map(|hook| &hook.manifest);
    let texts = rendering.manifests.iter().map(|manifest| &manifest.content).chain(hooks);
    let read = |text: &bstr::BString| {
        // Rendering trims; the newline may belong to a block scalar at the end.
        let text = [text.as_slice(), b"\n"].concat();
        let value = goyaml::from_yaml(&text, &goyaml::Limits::default()).unwrap();
        serde_json::from_str(&goyaml::json::to_json(&value).unwrap()).unwrap()
    };
    Ok(texts.map(read).collect())
}

pub(crate) fn value_sets() -> Result<Vec<(String, Map)>, Missing> {
    let mut sets = vec![("defaults".to_owned(), Map::new())];
    for path in place::shared_files("values", ".yaml")? {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.contains("bad") {
            sets.push((name, read(&path)));
        }
    }
    for (_, values) in &mut sets {
        set(values, &["ipam", "mode"], "kubernetes".into()).unwrap();
    }
    Ok(sets)
}

fn read(path: &PathBuf) -> Map {
    let text = std::fs::read(path).unwrap();
    goyaml::from_yaml_map(&text, "values", &goyaml::Limits::default()).unwrap()
}

pub(crate) fn hint(live: &[Json]) -> Map {
    let find = |kind: &str, name: &str| {
        live.iter().find(|o| o["kind"] == kind && o["metadata"]["name"] == name)
    };
    let (Some(daemon_set), Some(config)) =
        (find("DaemonSet", DAEMON_SET), find("ConfigMap", CONFIG_MAP))
    else {
        return Map::new();
    };
    let facts = Facts::running(Live::read(daemon_set, config).unwrap(), false);
    effective(&Map::new(), &facts).unwrap().values
}
