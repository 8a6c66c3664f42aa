//! Which leaves of a chart are generated.
#![allow(clippy::expect_used, clippy::panic, reason = "a test: a panic is how it fails")]

use helm_rs::action::generated::generated_leaves;
use helm_rs::action::template::Options;
use helm_rs::chart::{BufferedFile, Chart, Limits, load_files};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};

fn chart(template: &str) -> Chart {
    let file = |name: &str, text: &str| BufferedFile {
        name: name.to_owned(),
        data: text.as_bytes().into(),
    };
    let files = vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("templates/t.yaml", template),
    ];
    load_files(files, &Limits::default(), &mut Vec::new()).expect("a chart")
}

fn host(seed: u64) -> Host {
    let clock = Clock::Fixed(Reading::at(1_000_000 * i64::try_from(seed).unwrap_or(1), 0));
    Host::new(Randomness::Seed(seed), clock, Zone::utc())
}

fn leaves(template: &str) -> Vec<String> {
    let options =
        Options { release_name: "r".to_owned(), namespace: "n".to_owned(), ..Options::default() };
    let generated = generated_leaves(
        &Engine::new(EngineOptions::default()),
        &mut chart(template),
        &goyaml::Map::new(),
        &options,
        [&mut host(1), &mut host(2)],
        &mut Vec::new(),
    )
    .expect("a rendering");
    let describe = |leaf: helm_rs::action::generated::GeneratedLeaf| {
        format!("{} {}: {}", leaf.object.kind, leaf.object.name, leaf.path)
    };
    generated.leaves.into_iter().map(describe).collect()
}

#[test]
fn what_randomness_and_clock_make_is_found() {
    let template = "\
apiVersion: v1
kind: Secret
metadata:
  name: fixed
data:
  same: YQ==
  ca.key: {{ randAlphaNum 8 | b64enc }}
items:
- name: same
- name: {{ uuidv4 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: made-{{ now | date \"2006-01-02\" }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: plain
";
    assert_eq!(
        leaves(template),
        [
            "Secret fixed: data[\"ca.key\"]",
            "Secret fixed: items[1].name",
            "ConfigMap made-1970-01-12: metadata.name"
        ]
    );
}

#[test]
fn a_chart_without_them_has_none() {
    assert_eq!(leaves("kind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"), [""; 0]);
}
