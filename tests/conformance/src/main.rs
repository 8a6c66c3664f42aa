//! `hack/bless` and `hack/proof`: expectations written from Helm, and the long comparisons.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "reports of a test tool")]

use std::process::ExitCode;

use conformance::cases::CaseFile;
use conformance::theirs;
use test_support::driver::Driver;
use test_support::place;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["bless", "expressions", names @ ..] => bless_expressions(names),
        _ => Err("usage: conformance bless expressions [FILE…]".into()),
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
