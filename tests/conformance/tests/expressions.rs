//! Small templates, one rule each: ours against the stored expectation, and the stored
//! expectation against real Helm.

#![allow(clippy::print_stderr, reason = "a test program's report")]

use std::process::ExitCode;
use std::sync::Arc;

use conformance::cases::{Case, CaseFile};
use conformance::{ours, theirs};
use libtest_mimic::{Arguments, Failed, Trial};
use test_support::driver::Driver;
use test_support::place;

fn main() -> ExitCode {
    let folder = place::repository().join("tests/conformance/expressions");
    let files = match CaseFile::folder(&folder) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let driver = Driver::shared();
    if let Err(missing) = &driver {
        missing.excuse();
    }
    let mut trials = Vec::new();
    let count: usize = files.iter().map(|file| file.cases.len()).sum();
    trials.push(Trial::test("at_least_350_cases", move || {
        if count < 350 { Err(format!("only {count} cases").into()) } else { Ok(()) }
    }));
    let all: Arc<Vec<CaseFile>> = Arc::new(files);
    if let Ok(driver) = driver {
        let files = Arc::clone(&all);
        trials.push(Trial::test("every_function_has_a_case", move || coverage(driver, &files)));
    }
    for file in all.iter() {
        let stem = file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for case in &file.cases {
            let name = format!("{stem}::{}", case.name);
            let (case, driver) = (case.clone(), driver.clone().ok());
            trials.push(Trial::test(name, move || compare(&case, driver)));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn compare(case: &Case, driver: Option<&Driver>) -> Result<(), Failed> {
    let Some(stored) = &case.expectation else {
        return Err("no expectation yet: hack/bless expressions".into());
    };
    let template = String::from_utf8_lossy(&case.template);
    if let Some(driver) = driver {
        let theirs = theirs::render_expression(driver, case)?;
        if theirs != *stored {
            return Err(format!("{template}\nstored {stored}\nHelm   {theirs}").into());
        }
    }
    if ours::unavailable().is_some() {
        return Ok(());
    }
    let ours = ours::render_expression(case);
    if ours == *stored {
        Ok(())
    } else {
        let values = String::from_utf8_lossy(&case.values);
        Err(format!("{template}\nvalues {values}\nHelm {stored}\nours {ours}").into())
    }
}

/// A function that no case names is a function that nobody compared.
fn coverage(driver: &Driver, files: &[CaseFile]) -> Result<(), Failed> {
    let answer = driver.call("functions", serde_json::json!({}))?;
    let mut templates = String::new();
    for case in files.iter().flat_map(|file| &file.cases) {
        templates.push_str(&String::from_utf8_lossy(&case.template));
        for partial in &case.partials {
            templates.push_str(&String::from_utf8_lossy(&partial.text));
        }
        templates.push('\n');
    }
    let words: std::collections::BTreeSet<&str> =
        templates.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let missing: Vec<&str> = ["names", "builtins"]
        .iter()
        .filter_map(|list| answer.0.get(list)?.as_array())
        .flatten()
        .filter_map(|name| name.as_str())
        .filter(|name| !words.contains(name))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("no case calls {missing:?}").into()) }
}
