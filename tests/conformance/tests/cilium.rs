//! A sample of the Cilium matrix. The whole of it: `hack/proof cilium-matrix`.
//!
//! `ICHOR_MATRIX_SEED` chooses other cells, `ICHOR_MATRIX_CELLS` another number of them.

use std::process::ExitCode;

use conformance::matrix;
use libtest_mimic::{Arguments, Trial};
use test_support::peer;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let cells = match (matrix::cells(), peer::helm()) {
        (Ok(cells), Ok(_)) => cells,
        (Err(missing), _) | (_, Err(missing)) => {
            missing.excuse();
            return libtest_mimic::run(&arguments, Vec::new()).exit_code();
        }
    };
    let count = number("ICHOR_MATRIX_CELLS", 30) as usize;
    let trials = matrix::sample(&cells, count, number("ICHOR_MATRIX_SEED", 20))
        .into_iter()
        .map(|cell| {
            Trial::test(cell.name.clone(), move || match matrix::compare(&cell)?.difference {
                None => Ok(()),
                Some(difference) => Err(difference.into()),
            })
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
