//! Times renders of one chart on a warm engine, part by part.
//!
//! ```text
//! cargo run --release -p helm-rs --example warm_render -- CHART VALUES [ROUNDS]
//! ```

#![expect(clippy::print_stdout, reason = "an example's result")]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use helm_rs::action::template::{Options, template};
use helm_rs::chart::{self, Chart};
use helm_rs::manifest::{INSTALL_ORDER, sort_manifests};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host, Release};
use helm_rs::values::{Nulls, coalesce_shared, process_dependencies};

fn host() -> Host {
    Host::new(Randomness::Seed(1), Clock::Fixed(Reading::at(0, 0)), Zone::utc())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(chart), Some(values)) = (arguments.first(), arguments.get(1)) else {
        return Err("usage: warm_render CHART VALUES [ROUNDS]".into());
    };
    let rounds: u32 = arguments.get(2).map_or(Ok(200), |text| text.parse())?;

    let start = Instant::now();
    let chart: Chart = chart::load(Path::new(chart), &chart::Limits::default(), &mut Vec::new())?;
    println!("load chart            {:>10.3?}", start.elapsed());
    let user = goyaml::from_yaml_map(&fs::read(values)?, "", &goyaml::Limits::default())?;
    let engine = Engine::new(EngineOptions::default());
    let options = Options {
        release_name: "release".to_owned(),
        namespace: "default".to_owned(),
        ..Options::default()
    };
    let whole =
        |chart: &mut Chart| template(&engine, chart, &user, &options, &mut host(), &mut Vec::new());
    let start = Instant::now();
    whole(&mut chart.clone())?;
    println!("first template        {:>10.3?}", start.elapsed());

    let mut parts = [Duration::ZERO; 6];
    let release = Release {
        name: "release".to_owned(),
        namespace: "default".to_owned(),
        revision: 1,
        is_upgrade: false,
        is_install: true,
    };
    for _ in 0..rounds {
        let start = Instant::now();
        let mut processed = chart.clone();
        parts[0] += start.elapsed();
        let start = Instant::now();
        process_dependencies(&mut processed, &user, Nulls::Keep, &mut Vec::new())?;
        parts[1] += start.elapsed();
        let start = Instant::now();
        let effective = coalesce_shared(&processed, &user, Nulls::Remove, &mut Vec::new())?;
        parts[2] += start.elapsed();
        let start = Instant::now();
        let exported = effective.graph.export(effective.root)?;
        engine.validate(&processed, &exported, &mut Vec::new())?;
        parts[3] += start.elapsed();
        let start = Instant::now();
        let files =
            engine.render(&processed, &effective, &release, &options.capabilities, &mut host())?;
        parts[4] += start.elapsed();
        let start = Instant::now();
        sort_manifests(&files, &INSTALL_ORDER, &mut Vec::new())?;
        parts[5] += start.elapsed();
    }
    let names = [
        "clone chart",
        "process dependencies",
        "coalesce values",
        "check schema",
        "run templates",
        "sort manifests",
    ];
    for (name, time) in names.iter().zip(parts) {
        println!("{name:<21} {:>10.3?}", time / rounds);
    }
    let start = Instant::now();
    for _ in 0..rounds {
        whole(&mut chart.clone())?;
    }
    println!("template, in all      {:>10.3?}", start.elapsed() / rounds);
    Ok(())
}
