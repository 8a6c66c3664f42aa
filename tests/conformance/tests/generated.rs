//! A sample of generated templates. Long runs: `hack/proof generated --cases N --seed N`.
//!
//! `ICHOR_GENERATED_SEED` and `ICHOR_GENERATED_CASES` choose another sample.

use std::process::ExitCode;

use conformance::generated;
use libtest_mimic::{Arguments, Trial};
use test_support::driver::Driver;

/// Cases per named test.
const BATCH: u64 = 50;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let driver = match Driver::shared() {
        Ok(driver) => driver,
        Err(missing) => {
            missing.excuse();
            return libtest_mimic::run(&arguments, Vec::new()).exit_code();
        }
    };
    let seed = number("ICHOR_GENERATED_SEED", 1);
    let cases = number("ICHOR_GENERATED_CASES", 300);
    let trials = (0..cases.div_ceil(BATCH))
        .map(|batch| {
            let range = batch * BATCH..((batch + 1) * BATCH).min(cases);
            let name = format!("seed_{seed}::{}_to_{}", range.start, range.end);
            Trial::test(name, move || {
                let summary = generated::run(driver, seed, range, 5)?;
                if summary.differences.is_empty() {
                    Ok(())
                } else {
                    Err(summary.differences.join("\n\n").into())
                }
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
