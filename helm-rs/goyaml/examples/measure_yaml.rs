//! Times decoding and encoding of a YAML file, the Cilium chart's values for one:
//!
//! ```text
//! tar xzf cilium-1.20.0.tgz cilium/values.yaml
//! cargo run --release -p goyaml --example measure_yaml -- cilium/values.yaml
//! ```

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use goyaml::{Limits, json};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: bench FILE")?;
    let text = std::fs::read(&path)?;
    let limits = Limits::default();
    let value = goyaml::from_yaml(&text, &limits)?;
    let yaml = goyaml::to_yaml(&value)?;
    let encoded = json::to_json(&value)?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{path}: {} bytes; {} as YAML, {} as JSON",
        text.len(),
        yaml.len(),
        encoded.len()
    )?;
    let mut report = |name: &str, run: &dyn Fn()| {
        let (best, median) = time(run);
        writeln!(out, "{name:<16} best {best:>10.1?}  median {median:>10.1?}")
    };
    report("from_yaml", &|| drop(black_box(goyaml::from_yaml(&text, &limits))))?;
    report("from_yaml again", &|| drop(black_box(goyaml::from_yaml(yaml.as_bytes(), &limits))))?;
    report("from_json", &|| drop(black_box(json::from_json(encoded.as_bytes(), &limits))))?;
    report("to_yaml", &|| drop(black_box(goyaml::to_yaml(&value))))?;
    report("to_yaml_pretty", &|| drop(black_box(goyaml::to_yaml_pretty(&value))))?;
    report("to_json", &|| drop(black_box(json::to_json(&value))))?;
    Ok(())
}

/// The best and the median of the runs that fit into a second.
fn time(run: &dyn Fn()) -> (Duration, Duration) {
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 10 || (start.elapsed() < Duration::from_secs(1) && times.len() < 2000) {
        let start = Instant::now();
        run();
        times.push(start.elapsed());
    }
    times.sort();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (at(0), at(times.len() / 2))
}
