//! Both programs side by side, each on a plane of its own.
#![expect(clippy::print_stdout, reason = "a difference is told when it is found")]

use std::time::{Duration, Instant};

use plane::support::or_skip;
use plane::{Plane, PlaneOptions};
use test_support::sealed::Outcome;

use crate::objects::{differences, read};
use crate::{Program, Side, summary};

/// Helm and ichor, each with a plane; none when a peer is missing.
pub async fn sides() -> Option<(Side, Side)> {
    or_skip(plane::find_peer("helm"))?;
    let (left, right) =
        tokio::join!(Plane::start(PlaneOptions::default()), Plane::start(PlaneOptions::default()));
    let helm = Side { plane: or_skip(left)?, program: Program::Helm };
    let ichor = Side { plane: or_skip(right)?, program: Program::Ichor };
    Some((helm, ichor))
}

/// Runs a command on both sides and compares what they say.
pub fn both(helm: &Side, ichor: &Side, arguments: &[&str], faults: &mut Vec<String>) {
    let (wanted, got) = std::thread::scope(|scope| {
        let helm = scope.spawn(|| helm.run(arguments));
        let ichor = scope.spawn(|| ichor.run(arguments));
        (helm.join().expect("Helm ran"), ichor.join().expect("ichor ran"))
    });
    if let Some(fault) = compare(&wanted, &got) {
        let fault = format!("{}:\n{fault}", arguments.join(" "));
        println!("{fault}");
        faults.push(fault);
    }
}

/// What differs between what Helm and ichor said, if anything does. Where Helm names its command,
/// ichor names its own.
pub fn compare(wanted: &Outcome, got: &Outcome) -> Option<String> {
    let (wanted, got) = (summary(wanted), summary(got).replace("ichor release ", "helm "));
    (wanted != got).then(|| format!("--- Helm\n{wanted}--- ichor\n{got}"))
}

/// Compares all objects of both sides.
///
/// # Panics
/// When they cannot be read.
pub fn same_objects(helm: &Side, ichor: &Side, when: &str, faults: &mut Vec<String>) -> usize {
    let all = |side: &Side| read(&side.plane).unwrap_or_else(|error| panic!("{}", error.chain()));
    // Controllers need a moment to follow.
    let began = Instant::now();
    let (count, found) = loop {
        let (left, right) = (all(helm), all(ichor));
        let found = differences(&left, &right);
        if found.is_empty() || began.elapsed() > Duration::from_secs(10) {
            break (left.len(), found);
        }
    };
    for difference in found {
        println!("{when}: {difference}");
        faults.push(format!("{when}: {difference}"));
    }
    count
}
