//! `hack/bless` and `hack/proof`: expectations written from Helm, and the long comparisons.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "reports of a test tool")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use conformance::cases::{CaseFile, escape};
use conformance::generator::Generated;
use conformance::{generated, matrix, theirs};
use test_support::driver::Driver;
use test_support::place;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["bless", "expressions", names @ ..] => bless_expressions(names),
        ["cilium-matrix"] => cilium_matrix(),
        ["generated", options @ ..] => generated_cases(options),
        ["show", seed, number] => show(seed, number),
        _ => Err("usage: conformance bless expressions [FILE…] | cilium-matrix \
                  | generated [--cases N] [--seed N] [--limit N] [--words] | show SEED CASE"
            .into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How often a case is asked again before its answer counts as stable: random results and the
/// key order of `toYaml` (its comparator is not transitive) show up within a few.
const REPEATS: usize = 5;

/// Writes what Helm says into every case file, or only into those whose name holds one of `names`.
fn bless_expressions(names: &[&str]) -> Result<bool, Failure> {
    let driver = Driver::shared()?;
    let folder = place::repository().join("tests/conformance/expressions");
    for mut file in CaseFile::folder(&folder)? {
        let stem = file.path.to_string_lossy().into_owned();
        if !names.is_empty() && !names.iter().any(|name| stem.contains(name)) {
            continue;
        }
        let mut changed = 0;
        for case in &mut file.cases {
            let said = Some(theirs::render_expression(driver, case)?);
            for _ in 0..REPEATS {
                if said != Some(theirs::render_expression(driver, case)?) {
                    return Err(format!("{stem}: {}: Helm itself is not stable", case.name).into());
                }
            }
            changed += usize::from(case.expectation != said);
            case.expectation = said;
        }
        let text = file.text();
        // What was written must mean the same, or the format has a hole.
        let back = CaseFile::parse(&file.path, &text)?;
        if let Some((written, _)) =
            file.cases.iter().zip(&back.cases).find(|(written, read)| written != read)
        {
            return Err(format!("{stem}: {} does not read back", written.name).into());
        }
        std::fs::write(&file.path, text)?;
        println!("{stem}: {} cases, {changed} changed", file.cases.len());
    }
    Ok(true)
}

/// At least so many cells must render: a matrix of equal refusals would prove nothing.
const LEAST_RENDERED: usize = 300;

/// Every cell of the Cilium matrix, on as many threads as there are processors.
fn cilium_matrix() -> Result<bool, Failure> {
    let helm = test_support::peer::helm()?;
    let version = test_support::sealed::Sealed::new(&helm).run(["version", "--short"]);
    println!("helm {}", String::from_utf8_lossy(&version.stdout).trim_end());
    if let Some(reason) = conformance::ours::unavailable() {
        println!("Helm against Helm: {reason}");
    }
    let cells = matrix::cells()?;
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism()?.get();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = matrix::compare(cell);
                    results
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((cell.name.clone(), result));
                }
            });
        }
    });
    let mut results = results.into_inner()?;
    results.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (mut rendered, mut equal) = (0, 0);
    for (name, result) in &results {
        let compared = result.as_ref().map_err(Clone::clone)?;
        rendered += usize::from(compared.rendered);
        match &compared.difference {
            None => equal += 1,
            Some(difference) => println!("{name}\n{difference}"),
        }
    }
    println!("{} compared, {equal} equal, {rendered} not empty", results.len());
    if rendered < LEAST_RENDERED {
        println!("fewer than {LEAST_RENDERED} are not empty");
    }
    Ok(equal == results.len() && rendered >= LEAST_RENDERED)
}

/// How many kinds of errors a run's report shows.
const KINDS_SHOWN: usize = 25;

/// A run of generated cases.
fn generated_cases(options: &[&str]) -> Result<bool, Failure> {
    let (mut cases, mut seed, mut limit) = (10_000, 1, 20);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut number = || -> Result<u64, Failure> {
            Ok(options.next().ok_or("a number is missing")?.parse()?)
        };
        match *option {
            "--cases" => cases = number()?,
            "--seed" => seed = number()?,
            "--limit" => limit = usize::try_from(number()?)?,
            "--words" => {
                for (word, count) in generated::words(seed, cases) {
                    println!("{count}\t{word}");
                }
                return Ok(true);
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    let driver = Driver::shared()?;
    if let Some(reason) = conformance::ours::unavailable() {
        println!("Helm against Helm: {reason}");
    }
    let summary = generated::run(driver, seed, 0..cases, limit)?;
    let mut errors: Vec<_> = summary.errors.iter().map(|(text, count)| (count, text)).collect();
    errors.sort_unstable_by(|a, b| b.cmp(a));
    println!("errors of Helm, by kind:");
    for (count, text) in errors.iter().take(KINDS_SHOWN) {
        println!("{count}\t{}", escape(text.as_bytes()));
    }
    for difference in &summary.differences {
        println!("{difference}\n");
    }
    for case in &summary.unanswered {
        println!("no answer from Helm in time: {case}");
    }
    println!(
        "seed {seed}: {} compared, {} rendered, {} not stable in Helm itself, {} differ",
        summary.compared,
        summary.rendered,
        summary.unstable,
        summary.differences.len()
    );
    Ok(summary.differences.is_empty())
}

/// One generated case and what ours makes of it.
fn show(seed: &str, number: &str) -> Result<bool, Failure> {
    let case = Generated::new(seed.parse()?, number.parse()?).case();
    println!("template {}", escape(&case.template));
    for partial in &case.partials {
        println!("partial  {}", escape(&partial.text));
    }
    println!("values   {}", escape(&case.values));
    let began = std::time::Instant::now();
    let ours = conformance::ours::render_expression(&case);
    println!("ours     {ours}\nin {:?}", began.elapsed());
    Ok(true)
}
