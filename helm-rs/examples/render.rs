//! Renders a chart many times on one warm engine and prints how long each stage takes:
//! `cargo run --release --example render -- CHART [VALUES]`.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for people, which measures time"
)]

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use helm_rs::action::template::{self, Options};
use helm_rs::chart;
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};

const RUNS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let path = arguments.next().ok_or("usage: render CHART [VALUES]")?;
    let values = match arguments.next() {
        Some(file) => goyaml::from_yaml_map(
            &std::fs::read(file)?,
            "map[string]interface {}",
            &goyaml::Limits::default(),
        )?,
        None => goyaml::Map::default(),
    };
    let options = Options {
        release_name: "cilium".into(),
        namespace: "kube-system".into(),
        ..Options::default()
    };

    let began = Instant::now();
    let loaded = chart::load(&path, &chart::Limits::default(), &mut Vec::new())?;
    let load = began.elapsed();

    let engine = Engine::new(EngineOptions::default());
    let render = || -> Result<(Duration, usize), Box<dyn Error>> {
        // A render changes the chart's dependencies: each gets its own copy, outside the clock.
        let mut chart = loaded.clone();
        let clock = Clock::Fixed(Reading::at(1_750_000_000, 0));
        let mut host = Host::new(Randomness::Seed(1), clock, Zone::utc());
        let began = Instant::now();
        let rendering =
            template::template(&engine, &mut chart, &values, &options, &mut host, &mut Vec::new())?;
        Ok((began.elapsed(), rendering.manifest.len()))
    };
    let (first, bytes) = render()?;
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        times.push(render()?.0);
    }
    times.sort_unstable();
    let median = times.get(RUNS / 2).copied().unwrap_or_default();
    let best = times.first().copied().unwrap_or_default();
    println!("  load the chart       {load:>12.2?}");
    println!("  first render         {first:>12.2?}   (parses {bytes} bytes' worth of manifest)");
    println!("  warm render, median  {median:>12.2?}   of {RUNS}, best {best:.2?}");
    println!("  renders per second   {:>12.0}", 1.0 / median.as_secs_f64());
    Ok(())
}
