#![allow(missing_docs, clippy::all, clippy::pedantic, clippy::restriction)]
use helm_rs::action::template::{Options, template};
use helm_rs::chart::{Limits, load_archive};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};
use std::time::Instant;
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let chart = load_archive(&std::fs::read(path).unwrap(), &Limits::default(), &mut vec![]).unwrap();
    let engine = Engine::new(EngineOptions::default());
    let mut values = goyaml::Map::new();
    for extra in ["", "hubble: {tls: {auto: {method: cronJob}}}"] {
        values.extend(goyaml::from_yaml_map(extra.as_bytes(), "v", &goyaml::Limits::default()).unwrap());
        for _ in 0..3 {
            let t = Instant::now();
            let mut c = chart.clone();
            let t1 = t.elapsed();
            let mut host = Host::new(Randomness::Seed(0), Clock::Fixed(Reading::at(0, 0)), Zone::utc());
            let options = Options { release_name: "cilium".into(), namespace: "kube-system".into(), skip_schema_validation: true, ..Options::default() };
            let r = template(&engine, &mut c, &values, &options, &mut host, &mut vec![]).unwrap();
            let t2 = t.elapsed();
            for m in &r.manifests { goyaml::from_yaml(&m.content, &goyaml::Limits::default()).unwrap(); }
            println!("clone {t1:?} render {t2:?} parse {:?} docs {}", t.elapsed(), r.manifests.len());
        }
    }
}
