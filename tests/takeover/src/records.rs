//! Planes whose Cilium has foreign records of some kind, all written by real Helm.

use std::process::Command;

use plane::{Plane, PlaneOptions, SavedState};

use crate::{Bed, prepared, saved, values_path};

/// Bytes of noise in the values of [`ten_revisions`], so that a record has about 600 KB.
const NOISE: usize = 195_000;

fn helm(plane: &Plane, driver: &str, arguments: &[&str]) {
    let mut helm: Command = plane.helm().expect("helm");
    helm.env("HELM_DRIVER", driver).args(arguments);
    crate::run(&mut helm);
}

/// Release `cilium` in kube-system with three revisions, by a storage driver of Helm's.
pub async fn three_revisions(driver: &'static str) -> Option<Bed> {
    prepared(&format!("three-revisions-{driver}"), "1", move |plane| {
        let chart = plane::cilium::chart("1.20.0").expect("the chart").display().to_string();
        let values = values_path("01");
        let common = ["-n", "kube-system", "--wait", "--timeout", "3m"];
        let first: Vec<&str> =
            ["install", "cilium", &chart, "-f", &values].into_iter().chain(common).collect();
        helm(plane, driver, &first);
        for description in ["second", "third"] {
            let next: Vec<&str> =
                ["upgrade", "cilium", &chart, "-f", &values, "--description", description]
                    .into_iter()
                    .chain(common)
                    .collect();
            helm(plane, driver, &next);
        }
    })
    .await
}

/// Release `net` with its records in namespace `infra` and its objects in kube-system.
pub async fn in_another_namespace() -> Option<Bed> {
    prepared("a10-infra", "1", |plane: &Plane| {
        let values = values_path("01");
        let more = ["--create-namespace", "--set", "namespaceOverride=kube-system", "-f", &values];
        crate::helm_install(plane, "net", "infra", "1.20.0", &more);
    })
    .await
}

/// Release `net` with its records in namespace `infra` and its objects in kube-system: ten
/// revisions of about 600 KB.
pub async fn ten_revisions() -> Option<Bed> {
    Bed::of(ten_revisions_saved().await).await
}

/// The state of [`ten_revisions`].
///
/// # Errors
/// As [`crate::saved`].
pub async fn ten_revisions_saved() -> plane::Result<SavedState> {
    saved(PlaneOptions::default(), "ten-revisions", "3", |plane| {
        let chart = plane::cilium::chart("1.20.0").expect("the chart").display().to_string();
        let values = values_path("01");
        let bulk = plane.folder().join("bulk.yaml");
        std::fs::write(&bulk, format!("ichorTestNoise: {}\n", noise(NOISE))).expect("a file");
        let bulk = bulk.display().to_string();
        let common = [
            "net",
            &chart,
            "-n",
            "infra",
            "-f",
            &values,
            "-f",
            &bulk,
            "--set",
            "namespaceOverride=kube-system",
            "--wait",
            "--timeout",
            "3m",
        ];
        let with = |command: &[&'static str]| -> Vec<String> {
            command.iter().copied().chain(common).map(str::to_owned).collect()
        };
        let run = |arguments: Vec<String>| {
            helm(plane, "secret", &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        };
        let mut first = with(&["install"]);
        first.push("--create-namespace".to_owned());
        run(first);
        for _ in 1..10 {
            run(with(&["upgrade"]));
        }
    })
    .await
}

/// Letters and digits that do not compress below three quarters.
fn noise(bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(LETTERS[usize::try_from(state >> 58).unwrap_or_default()])
    };
    // A letter first: it is text, whatever follows.
    std::iter::once('n').chain(std::iter::repeat_with(&mut next).take(bytes)).collect()
}
