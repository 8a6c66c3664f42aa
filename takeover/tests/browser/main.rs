//! Reports in a real browser: nothing sticks out, everything can be read, folds work, and nothing is
//! complained of, at a desktop's width, a phone's and on paper.
//!
//! `ICHOR_SCREENSHOTS` names a folder for pictures of what was seen.
#![allow(
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test code: a panic is how a test fails, and figures are printed"
)]

#[path = "../../examples/before/cluster.rs"]
mod cluster;
mod devtools;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cilium::pinned::Pinned;
use devtools::Browser;
use helm_rs::chart::{Chart, Limits, load_archive};
use helm_rs::cluster::block_on;
use helm_rs::render::{Engine, EngineOptions};
use helm_rs::repo::Digest;
use serde_json::json;
use takeover::plan::{KubePrism, Plan, Request, WhoWrites, prepare};
use takeover::report::{Form, render};
use takeover::snapshot::Stage;
use test_support::{Missing, peer, place};

const CHECK: &str = include_str!("check.js");
const STYLE: &str = include_str!("../../src/report/page.css");
const FOLDS: &str = include_str!("folds.js");

/// Name, medium, width and height of what a page is looked at on. A4 within its margins is 180 mm
/// wide, at 96 dots an inch.
const LOOKS: [(&str, &str, u32, u32); 3] =
    [("desktop", "screen", 1280, 900), ("phone", "screen", 390, 844), ("paper", "print", 680, 960)];

/// A plan on a snapshot.
fn plan(snapshot: &[u8], chart: Chart) -> Plan {
    let stage = Stage::open(snapshot, &helm_rs::cluster::snapshot::Limits::default()).unwrap();
    let version = chart.metadata.app_version.parse().unwrap();
    let pinned = Pinned { chart, version, digest: Digest::of(b"a chart") };
    let engine = Engine::new(EngineOptions::default());
    let request = Request {
        cluster: stage.cluster(),
        clock: &*stage.clock,
        engine: &engine,
        pinned: &pinned,
        values: None,
        cni_unmanaged: false,
        who_writes: WhoWrites::Caller,
        entropy: [7; 32],
        kube_prism: KubePrism::default(),
        dry_runs: None,
    };
    block_on(prepare(&request)).unwrap().plan
}

/// A page for a plan.
fn page(folder: &Path, name: &str, plan: &Plan) -> PathBuf {
    let path = folder.join(format!("{name}.html"));
    let html = render(plan, Form::Html).unwrap();
    println!("{name}: {} bytes, {:?}", html.len(), plan.figures());
    std::fs::write(&path, html).unwrap();
    path
}

/// Looks at a page on everything, in both colour schemes, and collects what is wrong.
fn look(browser: &mut Browser, page: &Path, wrong: &mut Vec<String>) {
    let stem = page.file_stem().unwrap().to_string_lossy().into_owned();
    for (name, media, width, height) in LOOKS {
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": name == "phone",
        });
        browser.call("Emulation.setDeviceMetricsOverride", &metrics);
        let schemes: &[&str] = if media == "print" { &["light"] } else { &["light", "dark"] };
        for scheme in schemes {
            let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
            let medium = json!({"media": media, "features": feature});
            browser.call("Emulation.setEmulatedMedia", &medium);
            browser.open(page);
            let mut found = vec![browser.evaluate(&format!("{CHECK}('{media}')"))];
            picture(browser, &format!("{stem}-{name}-{scheme}"));
            if media == "screen" {
                found.push(browser.evaluate(FOLDS));
                let open = "document.querySelectorAll('details').forEach(d => d.open = true)";
                browser.evaluate(open);
                found.push(browser.evaluate(&format!("{CHECK}('{media}')")));
            }
            let found = found.iter().flat_map(|found| found.as_array().unwrap());
            let told = found.map(|line| line.as_str().unwrap().to_owned());
            let told: Vec<String> = told.chain(browser.complaints()).collect();
            wrong.extend(told.iter().map(|line| format!("{stem}, {name}, {scheme}: {line}")));
        }
    }
}

/// What the window shows, for people.
fn picture(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("ICHOR_SCREENSHOTS") else { return };
    let shot = browser.call("Page.captureScreenshot", &json!({"format": "png"}));
    let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
    std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
}

fn archive(version: &str) -> Result<Chart, Missing> {
    let path = place::shared()?.join(format!("charts/cilium-{version}.tgz"));
    let bytes = std::fs::read(&path)
        .map_err(|error| Missing { what: path.display().to_string(), why: error.to_string() })?;
    Ok(load_archive(&bytes, &Limits::default(), &mut Vec::new()).unwrap())
}

/// The upgrade of a whole Cilium: hundreds of leaves, long texts among them.
fn large() -> Result<Plan, Missing> {
    let (old, new) = (archive("1.19.6")?, archive("1.20.0")?);
    let values = "
ipam: {mode: kubernetes}
kubeProxyReplacement: true
k8sServiceHost: 192.0.2.10
k8sServicePort: 6443
hubble: {relay: {enabled: true}, ui: {enabled: true}}
";
    let objects = cluster::installed(&old, &[("2026-03-02T09:12:40Z", values)]).unwrap();
    Ok(plan(&cluster::snapshot(objects).unwrap(), new))
}

#[test]
fn reports_are_readable_on_desktop_phone_and_paper() {
    let program = match peer::program("chromium") {
        Ok(program) => program,
        Err(missing) => test_support::skip!(missing),
    };
    let folder = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    for (name, snapshot) in [("before", cluster::before()), ("refused", cluster::refused())] {
        let plan = plan(&snapshot.unwrap(), cluster::sample().unwrap());
        assert_eq!(plan.is_refused(), name == "refused", "{:?}", plan.refusals);
        pages.push(page(folder.path(), name, &plan));
    }
    match large() {
        Ok(plan) => pages.push(page(folder.path(), "large", &plan)),
        Err(missing) => missing.excuse(),
    }
    // Plans with something of everything.
    for name in ["upgrade", "quiet"] {
        let report = place::repository().join(format!("takeover/tests/report/{name}.html"));
        let html = std::fs::read_to_string(report).unwrap();
        let path = folder.path().join(format!("{name}.html"));
        std::fs::write(&path, html.replace("(page.css)", STYLE)).unwrap();
        pages.push(path);
    }
    let mut browser = Browser::start(&program);
    let version = browser.call("Runtime.evaluate", &json!({"expression": "navigator.userAgent"}));
    println!("{}", version["result"]["value"]);
    let mut wrong = Vec::new();
    for page in &pages {
        look(&mut browser, page, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The checks themselves see what they are there for.
#[test]
fn a_page_that_is_wrong_is_told() {
    let program = match peer::program("chromium") {
        Ok(program) => program,
        Err(missing) => test_support::skip!(missing),
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.html");
    let page = "<!DOCTYPE html><meta name=viewport content='width=device-width'>\
        <p style='color:#999'>grey</p><p style='width:3000px'>wide</p>\
        <details><summary>empty</summary></details><script>missing()</script>";
    std::fs::write(&path, page).unwrap();
    let mut browser = Browser::start(&program);
    let mut wrong: Vec<String> = Vec::new();
    look(&mut browser, &path, &mut wrong);
    let wrong = wrong.join("\n");
    for text in
        ["contrast 2.85", "the page is", "has nothing in it: empty", "missing is not defined"]
    {
        assert!(wrong.contains(text), "{text}\n{wrong}");
    }
}
