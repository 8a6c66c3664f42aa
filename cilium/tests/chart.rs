//! The pinned chart, and that a takeover with unchanged values renders what runs.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::print_stdout,
    reason = "test code: a panic is how a test fails, and figures are printed"
)]

mod common;

use cilium::inline_manifest::{find, in_machine_config};
use cilium::owned::{Facts, Live, changes, check_ipam};
use cilium::pinned::{CONFIG_MAP, DAEMON_SET, LOCK, Pinned, PinnedError, pin};
use cilium::values::effective;
use cilium::version::{Step, image_tag, live, step};
use helm_rs::chart::Limits;
use serde_json::Value as Json;

#[test]
fn the_pinned_chart_and_no_other() {
    let pin = pin(LOCK).unwrap();
    let archive = match common::archive(&pin.version) {
        Ok(archive) => archive,
        Err(missing) => test_support::skip!(missing),
    };
    let limits = Limits::default();
    let pinned = Pinned::load(&pin, &archive, &limits, &mut Vec::new()).unwrap();
    assert_eq!((pinned.version.to_string(), pinned.digest), (pin.version.clone(), pin.digest));
    let mut other = archive;
    other.push(0);
    let other = Pinned::load(&pin, &other, &limits, &mut Vec::new());
    assert!(matches!(other, Err(PinnedError::Digest { .. })));
    assert!(matches!(self::pin(b"charts: []"), Err(PinnedError::Missing)));
    assert!(matches!(self::pin(b"charts: [{}]"), Err(PinnedError::Pins(_))));
}

fn object<'a>(live: &'a [Json], kind: &str, name: &str) -> &'a Json {
    live.iter().find(|o| o["kind"] == kind && o["metadata"]["name"] == name).unwrap()
}

/// Owned keys that are kept change nothing: what the effective values render is what runs.
#[test]
fn kept_owned_keys_render_what_runs() {
    for version in ["1.19.6", "1.20.0"] {
        let found = common::chart(version).and_then(|chart| Ok((chart, common::value_sets()?)));
        let (chart, sets) = match found {
            Ok(found) => found,
            Err(missing) => test_support::skip!(missing),
        };
        for (name, values) in sets {
            let Ok(running) = common::objects(&chart, &values) else {
                println!("{version} {name}: does not render");
                continue;
            };
            let daemon_set = object(&running, "DaemonSet", DAEMON_SET);
            let read = Live::read(daemon_set, object(&running, "ConfigMap", CONFIG_MAP)).unwrap();
            assert_eq!(check_ipam(&read), Ok(()));
            let image = daemon_set["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
            assert!(image.and_then(image_tag).is_some());
            let version = live(image, None).unwrap();
            assert_eq!(step(&version, &version), Ok(Step::Same));
            let facts = Facts::running(read, false);
            assert_eq!(changes(&facts), [], "{name}");
            let effective = effective(&values, &facts).unwrap();
            let rendered = common::objects(&chart, &effective.values).unwrap();
            assert_eq!(rendered.len(), running.len(), "{name}");
            for (one, other) in running.iter().zip(&rendered) {
                assert_eq!(one, other, "{version} {name}");
            }
        }
    }
}

/// The set of the Talos guide is what ichor wants on Talos.
#[test]
fn the_talos_guide_needs_no_change() {
    let found = common::chart("1.20.0").and_then(|chart| Ok((chart, common::value_sets()?)));
    let (chart, sets) = match found {
        Ok(found) => found,
        Err(missing) => test_support::skip!(missing),
    };
    for (name, values) in sets.iter().filter(|(name, _)| name.contains("talos")) {
        let running = common::objects(&chart, values).unwrap();
        let daemon_set = object(&running, "DaemonSet", DAEMON_SET);
        let read = Live::read(daemon_set, object(&running, "ConfigMap", CONFIG_MAP)).unwrap();
        let facts = Facts::running(read, true);
        assert_eq!(changes(&facts), [], "{name}");
        let effective = effective(values, &facts).unwrap();
        assert_eq!(common::objects(&chart, &effective.values).unwrap(), running, "{name}");
    }
}

/// A whole render as an inline manifest is found under whatever name.
#[test]
fn a_render_in_a_machine_configuration() {
    let chart = match common::chart("1.20.0") {
        Ok(chart) => chart,
        Err(missing) => test_support::skip!(missing),
    };
    let objects = common::objects(&chart, &goyaml::Map::new()).unwrap();
    // JSON is YAML.
    let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let manifest = documents.join("\n---\n");
    assert_eq!(find(manifest.as_bytes()).unwrap().unwrap().len(), objects.len());
    let config = serde_json::json!({
        "cluster": {"inlineManifests": [{"name": "x", "contents": manifest}]},
    });
    let search = in_machine_config(config.to_string().as_bytes()).unwrap();
    assert_eq!((search.entries.len(), search.unreadable.len()), (1, 0));
}
