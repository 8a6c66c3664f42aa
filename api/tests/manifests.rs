//! The manifests in the chart are those of the types. `ICHOR_BLESS=1` writes them anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use goyaml::Limits;
use serde_json::Value;
use test_support::place::repository;

fn check(path: &str, objects: &[Value]) {
    let mut text = String::from(
        "# Generated from the crate `api`: ICHOR_BLESS=1 cargo test -p api --test manifests\n",
    );
    for (at, object) in objects.iter().enumerate() {
        let value =
            goyaml::json::from_json(object.to_string().as_bytes(), &Limits::default()).unwrap();
        text.push_str(if at == 0 { "" } else { "---\n" });
        text.push_str(&goyaml::to_yaml(&value).unwrap());
    }
    assert!(!text.contains("{{"), "a chart's template would read it");
    let file = repository().join("charts/ichor").join(path);
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    } else {
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(there == text, "{path} is not current: run with ICHOR_BLESS=1 and review");
    }
}

#[test]
fn the_definition_is_current() {
    check("crds/talosclusters.yaml", &[api::manifest::definition().unwrap()]);
}

#[test]
fn the_policies_are_current() {
    check("templates/policies.yaml", &api::manifest::policies());
}

/// Every key that ichor decides is refused by a rule of its own.
#[test]
fn every_owned_key_has_its_rule() {
    let policies = api::manifest::policies();
    let rules = policies[0]["spec"]["validations"].as_array().unwrap();
    for key in &cilium::owned::KEYS {
        let named = format!("spec.cni.cilium.values: {} is decided", key.name());
        let count = rules.iter().filter(|rule| {
            rule["message"].as_str().is_some_and(|message| message.starts_with(&named))
        });
        assert_eq!(count.count(), 1, "{named}");
    }
}
