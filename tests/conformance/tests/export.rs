//! `ichor release export` and `ichor release chart` against real Helm.
//!
//! Records that are exported and applied with kubectl to another server read there as they do on
//! the first one; a chart that is written back renders, shows and lints as the one it came from.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]
#![expect(clippy::print_stderr, reason = "what is compared is told to whoever reads the output")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plane::support::{or_skip, run};
use plane::{Plane, PlaneOptions};
use test_support::place::{ichor, repository, shared};

/// Charts without subcharts, which records do not hold.
const CHARTS: [&str; 9] = [
    "tests/conformance/records/charts/bare",
    "tests/conformance/records/charts/everyday",
    "tests/conformance/records/charts/files",
    "tests/conformance/records/charts/hooked",
    "tests/conformance/records/charts/numbers",
    "tests/charts/ignore/chart",
    "tests/charts/kube-version/chart",
    "tests/charts/links/chart",
    "tests/charts/tpl/chart",
];

/// A release: namespace, name, driver, chart.
type Release = (&'static str, String, &'static str, PathBuf);

/// What a program prints, standard error included; it may fail.
fn says(command: &mut Command) -> String {
    let output = command.output().unwrap();
    format!(
        "{:?}\n{}\n{}",
        output.status.code(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn helm<S: AsRef<OsStr>>(
    plane: &Plane,
    driver: &str,
    words: impl IntoIterator<Item = S>,
) -> String {
    says(plane.helm().unwrap().env("HELM_DRIVER", driver).args(words))
}

fn release(words: &[&str], dump: &Path) -> Command {
    let mut command = Command::new(ichor());
    command.env_clear().arg("release").args(words).arg("--from").arg(dump);
    command
}

/// Installs everything, in several states.
fn releases(plane: &Plane) -> Vec<Release> {
    let change = |driver: &str, words: &[&str]| {
        let text = helm(plane, driver, words);
        assert!(text.starts_with("Some(0)"), "helm {words:?}: {text}");
    };
    let mut all: Vec<Release> = Vec::new();
    let mut install =
        |namespace: &'static str, name: &str, driver: &'static str, chart: PathBuf| {
            let path = chart.display().to_string();
            change(driver, &["install", name, &path, "-n", namespace, "--create-namespace"]);
            all.push((namespace, name.to_owned(), driver, chart));
        };
    for (index, chart) in CHARTS.iter().enumerate() {
        install("plain", &format!("r{index}"), "secret", repository().join(chart));
    }
    install("maps", "mapped", "configmap", repository().join(CHARTS[1]));
    if let Ok(folder) = shared() {
        let cilium = folder.join("charts/cilium-1.20.0.tgz");
        if cilium.is_file() {
            install("kube-system", "cilium", "secret", cilium);
        }
    }
    let everyday = repository().join(CHARTS[1]).display().to_string();
    change("secret", &["upgrade", "r1", &everyday, "-n", "plain", "--set", "replicas=9,a=Ü"]);
    change("secret", &["rollback", "r1", "1", "-n", "plain"]);
    change("secret", &["uninstall", "r0", "--keep-history", "-n", "plain"]);
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn exported_records_and_charts_are_helms() {
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    let releases = releases(&plane);
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump.yaml");
    let mut kubectl = plane.kubectl().unwrap();
    kubectl.args(["get", "secrets,configmaps", "-A", "-o", "yaml"]);
    fs::write(&dump, run(&mut kubectl).unwrap()).unwrap();

    charts(&plane, &releases, &dump, folder.path());

    let other = or_skip(Plane::start(PlaneOptions::default()).await).unwrap();
    for namespace in ["plain", "maps", "moved"] {
        run(other.kubectl().unwrap().args(["create", "namespace", namespace])).unwrap();
    }
    let exported = folder.path().join("exported");
    let to = exported.display().to_string();
    run(&mut release(&["export", "--to", &to], &dump)).unwrap();
    let again = says(&mut release(&["export", "--to", &to], &dump));
    assert!(again.starts_with("Some(1)") && again.contains("exists"), "{again}");
    // As the help says: never over a record that is there, and no annotation that it must fit into.
    let create = ["create", "-f"];
    run(other.kubectl().unwrap().args(create).arg(&exported)).unwrap();
    same_answers(&plane, &other, &releases);

    let moved = folder.path().join("moved.yaml");
    let words = [
        "export",
        "r1",
        "--into-namespace",
        "moved",
        "--into-name",
        "other",
        "--into-driver",
        "configmap",
    ];
    fs::write(&moved, run(&mut release(&words, &dump)).unwrap()).unwrap();
    run(other.kubectl().unwrap().args(create).arg(&moved)).unwrap();
    let rename = |text: String| text.replace("plain", "moved").replace("r1", "other");
    let before = helm(&plane, "secret", ["get", "values", "r1", "-n", "plain", "-a"]);
    assert_eq!(helm(&other, "configmap", ["get", "values", "other", "-n", "moved", "-a"]), before);
    let before = helm(&plane, "secret", ["history", "r1", "-n", "plain"]);
    assert_eq!(helm(&other, "configmap", ["history", "other", "-n", "moved"]), rename(before));
}

/// Helm says the same on both servers.
fn same_answers(one: &Plane, two: &Plane, releases: &[Release]) {
    let mut count = 0;
    let mut compare = |driver: &str, words: &[&str]| {
        count += 1;
        assert_eq!(helm(two, driver, words), helm(one, driver, words), "helm {words:?}");
    };
    for driver in ["secret", "configmap"] {
        for output in ["table", "json", "yaml"] {
            compare(driver, &["list", "-A", "-a", "-o", output]);
            compare(driver, &["list", "-A", "--superseded", "-o", output]);
        }
    }
    for (namespace, name, driver, _) in releases {
        for words in [&["history"][..], &["status"], &["status", "-o", "json"], &["get", "all"]] {
            let words: Vec<&str> =
                words.iter().copied().chain([name.as_str(), "-n", namespace]).collect();
            compare(driver, &words);
        }
    }
    eprintln!("{count} answers of Helm about exported records");
}

/// Charts written back, as a folder and as an archive, beside the originals.
fn charts(plane: &Plane, releases: &[Release], dump: &Path, folder: &Path) {
    let mut count = 0;
    for (namespace, name, driver, original) in releases {
        let to = folder.join(format!("chart-{namespace}-{name}"));
        let to_text = to.display().to_string();
        let words = ["chart", name, "-n", namespace, "--revision", "1", "--to", &to_text];
        let written = [&words[..], &[&words[..], &["--archive"]].concat()].map(|words| {
            let out = run(&mut release(words, dump)).unwrap();
            PathBuf::from(out.trim_end())
        });
        let says = |words: &[&str], chart: &Path| {
            let words = words.iter().map(OsStr::new).chain([chart.as_os_str()]);
            let text = helm(plane, driver, words);
            // Lint names the chart's place; Cilium's chart generates keys.
            let keep = |line: &&str| {
                !line.starts_with("==>")
                    && !["ca.crt", "ca.key", "tls.crt", "tls.key"]
                        .iter()
                        .any(|key| line.contains(key))
            };
            text.lines().filter(keep).collect::<Vec<_>>().join("\n")
        };
        for chart in &written {
            for words in [
                &["template", name, "-n", namespace, "--include-crds"][..],
                &["show", "chart"],
                &["show", "readme"],
                &["show", "crds"],
                &["lint"],
            ] {
                // A subchart that is switched off leaves Chart.yaml when the chart is installed.
                if words == ["show", "chart"] && original.ends_with("kube-version/chart") {
                    continue;
                }
                count += 1;
                assert_eq!(
                    says(words, chart),
                    says(words, original),
                    "{words:?} {}",
                    chart.display()
                );
            }
        }
    }
    eprintln!("{count} answers of Helm about charts that were written back");
}
