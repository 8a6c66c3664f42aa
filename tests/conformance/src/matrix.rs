//! The Cilium matrix: every shared chart, with every shared values file, with every flag set.

use std::path::PathBuf;

use test_support::sealed::{Outcome, Sealed};
use test_support::{Missing, difference, mask, peer, place};

/// The flag sets, by name.
pub const FLAG_SETS: [(&str, &[&str]); 6] = [
    ("default", &[]),
    ("include-crds", &["--include-crds"]),
    ("is-upgrade", &["--is-upgrade"]),
    ("kube-version", &["--kube-version", "1.33.0"]),
    ("api-versions", &["--api-versions", "monitoring.coreos.com/v1"]),
    ("no-hooks", &["--no-hooks"]),
];

/// One cell of the matrix.
#[derive(Debug, Clone)]
pub struct Cell {
    /// `CHART/VALUES/FLAGS`.
    pub name: String,
    arguments: Vec<String>,
}

/// All cells, in order: charts, then values, then flag sets.
///
/// # Errors
/// [`Missing`] when the shared inputs are not there.
pub fn cells() -> Result<Vec<Cell>, Missing> {
    let charts = place::shared_files("charts", ".tgz")?;
    let values = place::shared_files("values", ".yaml")?;
    let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut cells = Vec::new();
    for chart in &charts {
        for file in &values {
            for (flags, given) in FLAG_SETS {
                let mut arguments: Vec<String> = vec![
                    "cilium".into(),
                    chart.to_string_lossy().into_owned(),
                    "--namespace".into(),
                    "kube-system".into(),
                    "--values".into(),
                    file.to_string_lossy().into_owned(),
                ];
                arguments.extend(given.iter().map(|&flag| flag.to_owned()));
                cells.push(Cell {
                    name: format!("{}/{}/{flags}", stem(chart), stem(file)),
                    arguments,
                });
            }
        }
    }
    Ok(cells)
}

/// What one comparison found.
#[derive(Debug)]
pub struct Compared {
    /// Whether Helm printed anything on standard output.
    pub rendered: bool,
    /// What differs, if anything.
    pub difference: Option<String>,
}

/// Runs Helm and ours for one cell.
///
/// # Errors
/// [`Missing`] when Helm is not there.
pub fn compare(cell: &Cell) -> Result<Compared, Missing> {
    let helm = peer::helm()?;
    let run = |program: &std::path::Path, prefix: &[&str]| {
        let arguments = prefix.iter().copied().chain(cell.arguments.iter().map(String::as_str));
        Sealed::new(program).run(arguments)
    };
    let theirs = run(&helm, &["template"]);
    let ours = if crate::ours::unavailable().is_some() {
        run(&helm, &["template"])
    } else {
        run(place::ichor(), &["chart", "template"])
    };
    Ok(Compared { rendered: !theirs.stdout.is_empty(), difference: differs(&theirs, &ours) })
}

fn differs(theirs: &Outcome, ours: &Outcome) -> Option<String> {
    let mut found = Vec::new();
    if theirs.code != ours.code {
        found.push(format!("exit status: Helm {:?}, ours {:?}", theirs.code, ours.code));
    }
    let masked = |bytes: &[u8]| mask::certificates(&String::from_utf8_lossy(bytes)).into_bytes();
    found.extend(difference::first(&masked(&theirs.stdout), &masked(&ours.stdout)));
    // Schema violations come out of a map: the same lines, in any order.
    let lines = |outcome: &Outcome| {
        let text = outcome.error_text().unwrap_or_default();
        mask::as_set(&text).join("\n")
    };
    found.extend(
        difference::first(lines(theirs).as_bytes(), lines(ours).as_bytes())
            .map(|text| format!("error text:\n{text}")),
    );
    (!found.is_empty()).then(|| found.join("\n"))
}

/// A seeded choice of `count` cells: reproducible, and different ones for another seed.
pub fn sample(cells: &[Cell], count: usize, seed: u64) -> Vec<Cell> {
    let mut random = crate::random::Random::new(seed);
    let mut left: Vec<&Cell> = cells.iter().collect();
    let mut chosen = Vec::new();
    while chosen.len() < count && !left.is_empty() {
        chosen.push(left.swap_remove(random.below(left.len())).clone());
    }
    chosen.sort_by(|a, b| a.name.cmp(&b.name));
    chosen
}
