//! Values forgotten and recovered: each shared value set is rendered, and from the objects alone
//! the values are found again.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::print_stdout,
    reason = "test code: a panic is how a test fails, and figures are printed"
)]

mod common;

use std::time::Instant;

use cilium::recover::{Installation, Mapping, Recovered};
use common::{chart, hint, objects, options, value_sets};
use goyaml::Value;

fn show(name: &str, recovered: &Recovered, seconds: f64) {
    println!(
        "{name}: {} of {} differing leaves explained ({:.2} %), {} left, {} by extraConfig, {} \
         renders, {seconds:.1} s",
        recovered.before.saturating_sub(recovered.after),
        recovered.before,
        recovered.share() * 100.0,
        recovered.after,
        recovered.extra_config,
        recovered.renders,
    );
    for place in recovered.unexplained.iter().take(12) {
        println!("    {} {} {:?}", place.object, place.path, place.side);
    }
}

fn is_wanted(name: &str, wanted: &[&str]) -> bool {
    let given = std::env::var("ICHOR_VALUE_SETS").ok();
    let given: Option<Vec<&str>> = given.as_deref().map(|given| given.split(',').collect());
    given.as_deref().unwrap_or(wanted).iter().any(|start| name.starts_with(start))
}

/// Recovers the value sets whose names begin with one of `wanted`; `ICHOR_VALUE_SETS` (a list with
/// commas) names others, and then the values are printed.
fn same_version(version: &str, wanted: &[&str], least: f64) {
    let (chart, sets) = match chart(version).and_then(|chart| Ok((chart, value_sets()?))) {
        Ok(found) => found,
        Err(missing) => test_support::skip!(missing),
    };
    let mapping = Mapping::new(&chart, &options(), 2);
    for (name, values) in sets {
        if !is_wanted(&name, wanted) {
            continue;
        }
        let live = match objects(&chart, &values) {
            Ok(live) => live,
            Err(error) => {
                println!("{name}: does not render: {error}");
                continue;
            }
        };
        let start = Instant::now();
        let hint = hint(&live);
        let installation = Installation { live: &live, hint: &hint, is_upgrade: false };
        let recovered = mapping.recover(&installation).unwrap();
        show(&name, &recovered, start.elapsed().as_secs_f64());
        if std::env::var_os("ICHOR_VALUE_SETS").is_some() {
            println!("{}", goyaml::to_yaml(&Value::Map(recovered.values.clone())).unwrap());
        }
        println!("    mapping: {} keys, {} renders", mapping.keys(), mapping.renders());
        assert!(recovered.share() >= least, "{name}");
        // Proven by rendering once more, from nothing but the values.
        assert!(objects(&chart, &recovered.values).is_ok());
    }
}

/// A live installation of the version before, and the chart of the pinned one. What the versions
/// differ in is not explained by values, so that the measure is the user's own values.
fn upgrade(from: &str, to: &str, least: f64) {
    let found = chart(from).and_then(|old| Ok((old, chart(to)?, value_sets()?)));
    let (old, new, sets) = match found {
        Ok(found) => found,
        Err(missing) => test_support::skip!(missing),
    };
    let mapping = Mapping::new(&new, &options(), 2);
    for (name, values) in sets {
        if !is_wanted(&name, &[""]) {
            continue;
        }
        let Ok(live) = objects(&old, &values) else { continue };
        let start = Instant::now();
        let hint = hint(&live);
        let installation = Installation { live: &live, hint: &hint, is_upgrade: true };
        let recovered = mapping.recover(&installation).unwrap();
        show(&name, &recovered, start.elapsed().as_secs_f64());
        let own = mapping.left(&installation, &values).map(|(left, _)| left);
        println!("    with the user's own values: {own:?} left");
        if std::env::var_os("ICHOR_VALUE_SETS").is_some() {
            println!("{}", goyaml::to_yaml(&Value::Map(recovered.values.clone())).unwrap());
        }
        if let Some(own) = own.filter(|own| recovered.before > *own) {
            let explained = recovered.before as f64 - recovered.after as f64;
            assert!(explained / (recovered.before as f64 - own as f64) >= least, "{name}");
        }
    }
}

/// Those that need keys in company, and settings that no key explains.
#[test]
fn a_sample_of_the_pinned_version() {
    same_version("1.20.0", &["defaults", "04", "06", "08"], 1.0);
}

#[test]
#[ignore = "long: hack/proof recover"]
fn of_the_pinned_version() {
    same_version("1.20.0", &[""], 0.98);
}

#[test]
#[ignore = "long: hack/proof recover"]
fn of_the_version_before() {
    same_version("1.19.6", &[""], 0.98);
}

#[test]
#[ignore = "long: hack/proof recover"]
fn of_an_upgrade() {
    upgrade("1.19.6", "1.20.0", 0.95);
}

/// The sample chart, whose values are few: the whole way in a second, hostile objects included.
#[test]
fn of_any_chart_and_again() {
    let folder = test_support::place::repository().join("charts/sample-cni");
    let limits = helm_rs::chart::Limits::default();
    let chart = helm_rs::chart::load_directory(&folder, &limits, &mut Vec::new()).unwrap();
    let text = b"cluster: {name: east}\nmtu: 1400\noperator: {replicas: 3}\nroutingMode: native\n\
        extraConfig: {custom: setting}\nagent: {extraArgs: [--debug]}\ncommonLabels: {team: '7'}\n";
    let values = goyaml::from_yaml_map(text, "values", &goyaml::Limits::default()).unwrap();
    let mut live = objects(&chart, &values).unwrap();
    let hint = goyaml::Map::new();
    let recover = |live: &[serde_json::Value], threads| {
        let mapping = Mapping::new(&chart, &options(), threads);
        mapping.recover(&Installation { live, hint: &hint, is_upgrade: false }).unwrap()
    };
    let recovered = recover(&live, 2);
    show("sample-cni", &recovered, 0.0);
    assert!(recovered.share() > 0.7, "{recovered:?}");
    assert_eq!(recover(&live, 1).values, recovered.values);
    live.extend([
        serde_json::json!(1),
        serde_json::json!({"kind": "ConfigMap", "metadata": []}),
        serde_json::json!({"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": [[{}], 1]}),
    ]);
    for object in &mut live {
        if object["kind"] == "ConfigMap" {
            object["data"] = serde_json::json!([{"name": "a"}, {"name": 1}]);
        }
    }
    let recovered = recover(&live, 2);
    assert!(recovered.after > 0 && !recovered.unexplained.is_empty());
}
