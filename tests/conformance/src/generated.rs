//! Runs of generated cases: Helm's driver against ours.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use test_support::driver::{Driver, DriverError};

use crate::cases::{Case, Outcome, escape};
use crate::generator::Generated;
use crate::{ours, theirs};

/// What a run found.
#[derive(Debug, Default)]
pub struct Summary {
    /// Cases that were compared.
    pub compared: usize,
    /// Cases that rendered, in Helm.
    pub rendered: usize,
    /// The kinds of errors that Helm gave, with how often.
    pub errors: BTreeMap<String, usize>,
    /// Cases on which Helm itself gives two answers; they are not compared.
    pub unstable: usize,
    /// Cases that Helm did not answer in time, by their origin.
    pub unanswered: Vec<String>,
    /// The differences, shrunk and described.
    pub differences: Vec<String>,
}

/// Compares the cases `from..to` of a seed; stops after `limit` differences.
///
/// # Errors
/// When the driver gives no answer.
pub fn run(
    driver: &Driver,
    seed: u64,
    range: std::ops::Range<u64>,
    limit: usize,
) -> Result<Summary, DriverError> {
    let mut summary = Summary::default();
    for number in range {
        let generated = Generated::new(seed, number);
        let case = generated.case();
        let expected = match theirs::render_expression(driver, &case) {
            Ok(outcome) => outcome,
            // A case that takes Helm minutes compares nothing; ours need not take them, too.
            Err(DriverError::Timeout { .. }) => {
                summary.unanswered.push(case.name);
                continue;
            }
            Err(error) => return Err(error),
        };
        match &expected {
            Outcome::Output(_) => summary.rendered += 1,
            Outcome::Error(text) => *summary.errors.entry(kind(text)).or_default() += 1,
        }
        if own(driver, &case)? == expected {
            summary.compared += 1;
            continue;
        }
        if theirs::render_expression(driver, &case)? != expected {
            summary.unstable += 1;
            continue;
        }
        summary.compared += 1;
        let smallest = generated.shrink(&mut |candidate| {
            let case = candidate.case();
            matches!(
                (theirs::render_expression(driver, &case), own(driver, &case)),
                (Ok(expected), Ok(got)) if expected != got
            )
        });
        let case = smallest.case();
        let expected = theirs::render_expression(driver, &case)?;
        summary.differences.push(describe(&case, &expected, &own(driver, &case)?));
        if summary.differences.len() >= limit {
            break;
        }
    }
    Ok(summary)
}

/// The last part of an error text, without what the case chose: tells kinds of errors apart.
fn kind(error: &str) -> String {
    let last = error.rsplit(">: ").next().unwrap_or(error);
    let mut out = String::new();
    for (index, part) in last.split('"').enumerate() {
        out.push_str(if index % 2 == 0 { part } else { "…" });
    }
    out.chars().filter(|c| !c.is_ascii_digit()).take(90).collect()
}

/// Our outcome; Helm's own once more until ours renders.
fn own(driver: &Driver, case: &Case) -> Result<Outcome, DriverError> {
    if ours::unavailable().is_some() {
        theirs::render_expression(driver, case)
    } else {
        Ok(ours::render_expression(case))
    }
}

fn describe(case: &Case, theirs: &Outcome, ours: &Outcome) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}{}", case.name, if case.strict { ", strict" } else { "" });
    let _ = writeln!(out, "  template {}", escape(&case.template));
    for partial in &case.partials {
        let _ = writeln!(out, "  partial  {}", escape(&partial.text));
    }
    if !case.values.is_empty() {
        let _ = writeln!(out, "  values   {}", escape(&case.values));
    }
    let _ = writeln!(out, "  Helm     {theirs}");
    let _ = write!(out, "  ours     {ours}");
    out
}

/// The words that occur in the templates of a run, with how often: shows what a generator reaches.
pub fn words(seed: u64, count: u64) -> BTreeMap<String, usize> {
    let mut words = BTreeMap::new();
    for number in 0..count {
        let case = Generated::new(seed, number).case();
        let text = String::from_utf8_lossy(&case.template).into_owned();
        for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 1) {
            *words.entry(word.to_owned()).or_default() += 1;
        }
    }
    words
}
