//! The project's own charts: `ichor chart template` against `helm template`, both run as programs.
#![allow(clippy::print_stderr, reason = "a test program's report")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use conformance::charts::{self, Prepared};
use libtest_mimic::{Arguments, Failed, Trial};
use test_support::peer;

type Shared = Arc<Mutex<Option<Prepared>>>;

fn main() -> ExitCode {
    if let Err(missing) = peer::helm() {
        missing.excuse();
        return libtest_mimic::run(&Arguments::from_args(), Vec::new()).exit_code();
    }
    let cases = match charts::all() {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    };
    // A chart's cases share one prepared copy, made when the first of them runs.
    let mut folders: BTreeMap<String, Shared> = BTreeMap::new();
    let mut trials = Vec::new();
    for case in cases {
        let folder = Arc::clone(folders.entry(case.chart.clone()).or_default());
        let name = format!("{}::{}", case.chart, case.name);
        trials.push(Trial::test(name, move || {
            let mut folder = folder.lock().unwrap_or_else(PoisonError::into_inner);
            let prepared = match &mut *folder {
                Some(prepared) => prepared,
                none => none.insert(charts::prepare(&case.chart)?),
            };
            match charts::compare(prepared, &case)? {
                None => Ok(()),
                Some(difference) => {
                    Err(format!("template {}\n{difference}", case.arguments.join(" ")).into())
                }
            }
        }));
    }
    let count = folders.len();
    trials.push(Trial::test("at_least_15_charts", move || -> Result<(), Failed> {
        if count < 15 { Err(format!("only {count} charts").into()) } else { Ok(()) }
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
