//! The command line beside a controller that runs as its chart has it: a Deployment whose pods are
//! executed, and so is the Job's.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Output, Stdio};

use controller_tests::site::{IMAGE, KubeProxy, Site, condition};
use controller_tests::{apply, chart, flannel};
use plane::PlaneOptions;
use serde_json::{Value, json};
use test_support::place::repository;

/// What a command printed, and its exit code.
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn told(output: &Output) -> Told {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Told { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

impl Told {
    /// Checks code and texts: `>` begins what standard output has, anything else is on standard
    /// error.
    pub(crate) fn expect(&self, code: i32, texts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        for text in texts {
            let (stream, text) = match text.strip_prefix("> ") {
                Some(text) => (&self.out, text),
                None => (&self.err, *text),
            };
            assert!(stream.contains(text), "{text:?} is not in\n{}\n{}", self.out, self.err);
        }
        self
    }
}

pub(crate) fn run(site: &Site, arguments: &[&str]) -> Told {
    println!("$ ichor {}", arguments.join(" "));
    let told = told(&site.try_ichor(arguments));
    println!("{}{}[{:?}]\n", told.out, told.err, told.code);
    told
}

/// Runs a command and sends it SIGINT once it tells a text.
fn interrupted(site: &Site, arguments: &[&str], when: &str) -> Told {
    println!("$ ichor {} (SIGINT at {when:?})", arguments.join(" "));
    let mut command = site.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut err = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !err.contains(when) {
        assert!(lines.read_line(&mut err).unwrap() > 0, "{when:?} was never told: {err}");
    }
    plane::signal(child.id(), plane::Signal::SIGINT);
    lines.read_to_string(&mut err).unwrap();
    let told = Told { err, ..told(&child.wait_with_output().unwrap()) };
    println!("{}{}[{:?}]\n", told.out, told.err, told.code);
    told
}

pub(crate) const CONTROLLER: [&str; 4] =
    ["--set", "image.repository=example.org/ichor", "--set", "replicas=1"];

fn exists(site: &Site) -> bool {
    !site.kubectl(&["get", "talosclusters", "-o", "name", "--ignore-not-found"]).is_empty()
}

/// The digest in a hint.
pub(crate) fn digest(text: &str) -> String {
    let at = text.find("sha256:").expect("a digest");
    text[at..].chars().take("sha256:".len() + 64).collect()
}

/// A2 from nothing: no controller, one that does not start, a consent that is missing, a TalosCluster
/// that waits for it, the hand-over, and the commands after it.
#[tokio::test(flavor = "multi_thread")]
async fn adopt_waits_asks_and_hands_over() {
    let state = plane::cilium::state("1.20.0", "03").await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    assert_eq!(IMAGE, "example.org/ichor");
    run(&site, &["adopt", "--yes"]).expect(2, &["no controller runs here", "--cilium-only"]);
    run(&site, &["cluster", "status"]).expect(
        2,
        &[
            "> its definition is not installed",
            "> cni: cilium v1.20.0\n",
            "> release: none of ichor's yet\n",
            "> controller: not installed\n",
            "> next: ichor adopt --cilium-only --plan",
        ],
    );

    // Its image cannot be pulled.
    let mut bad = CONTROLLER.to_vec();
    bad.extend(["--set", r"podAnnotations.plane\.ichor\.maesh\.dev/health=image"]);
    site.install(&chart(), &bad);
    let late = run(&site, &["adopt", "--yes", "--wait-timeout=8s"]);
    late.expect(1, &["is not available: 0 of 1 pods available", "ImagePull"]);
    assert!(!exists(&site), "nothing was written");
    run(&site, &["cluster", "status"]).expect(
        2,
        &["> There is no TalosCluster:", "> controller: 0 of 1 pods available", "> ImagePull"],
    );

    // It can, and something was changed by hand.
    let folder = chart().display().to_string();
    let mut upgrade = vec!["release", "upgrade", "ichor", &folder, "--namespace", "ichor-system"];
    upgrade.extend(CONTROLLER);
    site.ichor(&upgrade);
    let by_hand = r#"{"data": {"by-hand": "x"}}"#;
    let patch = ["-n", "kube-system", "patch", "configmap", "cilium-config", "--type=merge", "-p"];
    site.kubectl(&[patch.as_slice(), &[by_hand]].concat());
    run(&site, &["adopt", "--plan"]).expect(
        2,
        &[
            "> granted: Role ichor-cni in namespace cilium-secrets: 4 rights",
            "> ichor adopt --accept-cilium-diff=sha256:",
        ],
    );
    let refused = run(&site, &["adopt", "--yes"]);
    refused.expect(2, &["consent is missing", "--accept-cilium-diff=sha256:"]);
    let digest = digest(&refused.err);
    assert!(!exists(&site), "nothing was written");

    // Somebody granted the rights, and wrote a TalosCluster without the consent.
    assert_eq!(site.digest(&[]), digest, "the Job's plan is the one that was shown");
    let mut early = controller_tests::site::talos_cluster("", &json!({ "preset": "cilium" }));
    let annotations = early["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("ichor.maesh.dev/cni-inline-manifest");
    apply(&site.plane, &[early]);
    site.until("ConsentRequired", 60).await;
    let waits = run(&site, &["cluster", "status"]);
    waits.expect(
        2,
        &[
            "> CNIHandover: False (ConsentRequired)",
            &format!("> next: ichor adopt (shows the plan, and asks for the consent to it; --accept-cilium-diff={digest} --yes"),
        ],
    );
    let mut transcript = String::new();
    let mut shown = |command: &str, out: &str| {
        transcript.push_str(&format!("$ {command}\n{out}"));
    };
    let get = ["get", "talosclusters"];
    let describe = ["describe", "taloscluster", "cluster"];
    shown("kubectl get talosclusters", &site.kubectl(&get));
    shown("kubectl describe taloscluster cluster", &site.kubectl(&describe));
    shown("ichor cluster status", &waits.out);
    run(&site, &["cni", "run", "--takeover"])
        .expect(2, &["a controller (ichor-controller-", "`ichor adopt` has the controller do it"]);
    run(&site, &["cni", "run"]).expect(2, &["`ichor cni values set`, or `ichor cni upgrade`"]);
    run(&site, &["cni", "status"]).expect(0, &["> next: ichor adopt --plan, then ichor adopt"]);
    run(&site, &["adopt", "--cilium-only", "--yes"]).expect(2, &["`ichor adopt` has the"]);
    run(&site, &["cni", "manifest", "--image=x"]).expect(2, &["the controller makes the Job"]);

    let accept = format!("--accept-cilium-diff={digest}");
    let adopted = run(&site, &["adopt", "--yes", &accept]);
    adopted.expect(
        0,
        &[
            "> Handed over. done: Taken over: revision 1",
            "TalosCluster cluster is written",
            "CNIHandover: InProgress: ",
            "is removed: the hand-over is complete",
        ],
    );
    let cluster = site.cluster();
    assert_eq!(condition(&cluster, "CNIHandover")["status"], "True");
    let annotations = &cluster["metadata"]["annotations"];
    assert_eq!(annotations["ichor.maesh.dev/accepted-plan"], digest.as_str());
    assert_eq!(cluster["spec"], json!({ "cni": { "preset": "cilium" } }), "as somebody wrote it");
    let (_, end) = adopted.out.split_once("\nHanded over").unwrap();
    let line = format!("ichor adopt {accept} --yes");
    shown(&line, &format!("…\n{}Handed over{end}", adopted.err));
    shown("kubectl get talosclusters", &site.kubectl(&get));
    let done = run(&site, &["cluster", "status"]);
    shown("ichor cluster status", &done.out);
    in_the_docs(&transcript);
    done.expect(
        0,
        &[
            "> cni: cilium v1.20.0 (preset cilium, managed by Ichor)\n",
            "> release: cilium, revision 1, deployed\n",
            "> controller: 1 of 1 pods available; ichor-controller-",
            "> CNIHandover: True (HandedOver)",
        ],
    );
    let data = run(&site, &["cluster", "status", "--output=json"]);
    let data: Value = serde_json::from_str(&data.out).unwrap();
    assert_eq!(data["release"]["status"], "deployed");
    assert_eq!(data["controller"]["deployment"]["available"], 1);
    run(&site, &["adopt", "--yes"]).expect(0, &["> Cilium is ichor's already, handed over at "]);
    run(&site, &["cni", "status"])
        .expect(0, &["> managed: by TalosCluster cluster", "> CNIHandover: True"]);
    run(&site, &["cni", "restore", "--yes"]).expect(2, &["> TalosCluster cluster manages this"]);
}

/// The page of the docs with the transcript, and what stands around it.
const DOCS: &str = "docs/controller.md";
const BEGIN: &str =
    "<!-- transcript: ICHOR_BLESS=1 cargo test -p controller-tests cli::adopt_waits -->\n";
const END: &str = "<!-- end of transcript -->\n";
/// Characters of a line that are shown.
const WIDTH: usize = 180;

/// What operators see is what the docs show, but for times and names that are made up.
fn in_the_docs(transcript: &str) {
    let mut shown = String::new();
    for line in transcript.lines() {
        let line = settled(line.trim_end());
        let Some(line) = line else { continue };
        shown.extend(line.chars().take(WIDTH));
        shown.push_str(if line.chars().count() > WIDTH { "…\n" } else { "\n" });
    }
    let file = repository().join(DOCS);
    let text = std::fs::read_to_string(&file).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the transcript's place");
    let (there, after) = rest.split_once(END).expect("the transcript's end");
    let block = format!("\n```console\n{shown}```\n\n");
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&file, format!("{before}{BEGIN}{block}{END}{after}")).unwrap();
        return;
    }
    // Events of the same second come in any order.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(there), sorted(&block), "{DOCS} is not current: ICHOR_BLESS=1 writes it");
}

/// A line without what comes out differently each time; none for one that has nothing else.
fn settled(line: &str) -> Option<String> {
    if ["UID:", "Resource Version:"].iter().any(|field| line.trim_start().starts_with(field)) {
        return None;
    }
    let is_event = ["  Normal ", "  Warning ", "  Type ", "  ---- "]
        .iter()
        .any(|start| line.starts_with(start));
    let mut words: Vec<String> = line.split(' ').map(word).collect();
    if let Some(at) =
        words.windows(3).position(|three| three[1] == "s" && three[2].starts_with("ago"))
    {
        "2".clone_into(&mut words[at]);
    }
    if !is_event {
        return Some(words.join(" "));
    }
    // The age decides on the width of its column.
    let words: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    Some(format!("  {}", words.join(" ")))
}

fn word(word: &str) -> String {
    let is_age = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || c == 'm')
    };
    if let Some((head, tail)) = word.split_once("sha256:") {
        let rest: String = tail.chars().skip_while(char::is_ascii_hexdigit).collect();
        return format!("{head}sha256:…{rest}");
    }
    if word.starts_with("ichor-controller-") {
        return "ichor-controller-…".to_owned();
    }
    let time = word.trim_end_matches([':', ',']);
    if time.len() == 20 && time.ends_with('Z') && time.starts_with("20") {
        return word.replace(time, "2026-01-01T00:00:00Z");
    }
    if word.strip_suffix('s').is_some_and(is_age) {
        return "9s".to_owned();
    }
    word.to_owned()
}

/// A2 with nothing to consent to, and no TalosCluster: what is written is what runs. The Job's image
/// comes late; the wait says so, gives up, and the next one goes on.
#[tokio::test(flavor = "multi_thread")]
async fn adopt_writes_what_runs_and_waits_on() {
    let state = plane::cilium::state("1.20.0", "03").await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    let quota = |pods: &str| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": { "name": "none", "namespace": "kube-system" },
            "spec": { "hard": { "count/pods": pods } },
        })
    };
    site.install(&chart(), &CONTROLLER);
    apply(&site.plane, &[quota("0")]);
    let config = site.plane.folder().join("machine.yaml");
    std::fs::write(&config, MACHINE_CONFIG).unwrap();
    let flag = format!("--machine-config={}", config.display());
    let late = run(&site, &["adopt", "--yes", "--wait-timeout=20s", &flag]);
    late.expect(1, &["granted: Role kube-system/ichor-cni-records-role"]);
    let late_texts = ["the hand-over is not complete when time is up: ", "there is no pod yet"];
    late.expect(1, &late_texts);
    let stopped = interrupted(&site, &["adopt", "--yes"], "CNIHandover: InProgress");
    stopped
        .expect(1, &["stopped waiting for the hand-over, as was asked: CNIHandover: InProgress"]);
    let cluster = site.cluster();
    assert_eq!(
        cluster["spec"]["cni"],
        json!({ "preset": "cilium", "kubeProxy": "enabled", "tunnel": "geneve" })
    );
    let annotations = &cluster["metadata"]["annotations"];
    assert_eq!(annotations["ichor.maesh.dev/cni-inline-manifest"], "net");
    run(&site, &["cluster", "status"]).expect(
        2,
        &[
            "> CNIHandover: False (InProgress)",
            "> waiting: there is no pod yet\n",
            "> next: see why the Job's pod does not start",
        ],
    );
    apply(&site.plane, &[quota("100")]);
    run(&site, &["adopt", "--yes"]).expect(0, &["> Handed over. done: Taken over: revision 1"]);
    let status = &site.cluster()["status"];
    assert_eq!(status["cni"]["takenOverInlineManifest"], "net");
}

const MACHINE_CONFIG: &str = "\
version: v1alpha1
cluster:
  inlineManifests:
    - name: other
      contents: |
        apiVersion: v1
        kind: Namespace
        metadata: {name: x}
    - name: net
      contents: |
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: cilium, namespace: kube-system}
";

/// After the hand-over: values, looked at, asked for, refused, consented to, and taken back; each by
/// the Job.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_set_by_the_controller() {
    let state = plane::cilium::state("1.20.0", "03").await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    site.install(&chart(), &CONTROLLER);
    run(&site, &["cni", "values", "get"]).expect(2, &["there is no release of ichor's here"]);
    run(&site, &["cni", "values", "set", "--set=debug.enabled=true"])
        .expect(2, &["> Refused, nothing is written"]);
    run(&site, &["adopt", "--yes"]).expect(0, &["> Handed over. done: "]);
    let got = run(&site, &["cni", "values", "get"]);
    got.expect(0, &["> # Release cilium, records in ichor-system: revision 1, deployed\n"]);
    run(&site, &["cni", "values", "set", "--set=ipam.mode=cluster-pool,routingMode=native"])
        .expect(2, &["refused: ichor decides ipam.mode, routingMode"]);

    // Nothing that runs depends on it, and yet it is a change.
    let set = ["cni", "values", "set", "--set=debug.enabled=true"];
    let planned = run(&site, &[set.as_slice(), &["--plan"]].concat());
    planned.expect(
        2,
        &[
            "> data.debug",
            "> ichor cni values set --set debug.enabled=true --accept-cilium-diff=sha256:",
        ],
    );
    assert_eq!(site.cluster()["spec"]["cni"].get("cilium"), None, "nothing was written");
    let refused = run(&site, &[set.as_slice(), &["--yes"]].concat());
    refused.expect(2, &["consent is missing", "--accept-cilium-diff=sha256:"]);
    let accept = format!("--accept-cilium-diff={}", digest(&refused.err));
    run(&site, &[set.as_slice(), &["--yes", &accept]].concat())
        .expect(0, &["TalosCluster cluster is written", "ValuesApplied: InProgress: ", "> Done. "]);
    assert_eq!(
        site.cluster()["spec"]["cni"]["cilium"],
        json!({ "values": { "debug": { "enabled": true } } })
    );
    let config = site.get(&["-n", "kube-system", "configmap", "cilium-config"]);
    assert_eq!(config["data"]["debug"], "true");
    let got = run(&site, &["cni", "values", "get", "--output=json"]);
    let got: Value = serde_json::from_str(&got.out).unwrap();
    assert_eq!(got["release"]["values"]["debug"]["enabled"], true);
    assert_eq!(got["release"]["revision"], 2);
    assert_eq!(got["asked"], json!({ "debug": { "enabled": true } }));
    run(&site, &[set.as_slice(), &["--yes"]].concat()).expect(0, &["> nothing: "]);
    for nothing in [&set[..], &["cni", "upgrade"]] {
        let data = run(&site, &[nothing, &["--yes", "--output=json"]].concat());
        let data: Value = serde_json::from_str(&data.expect(0, &[]).out).unwrap();
        assert_eq!(data["outcome"], "nothing");
    }

    // Somebody else asks for other values, and consents to nothing: the command consents.
    site.kubectl(&[
        "patch",
        "taloscluster",
        "cluster",
        "--type=merge",
        "-p",
        r#"{"spec": {"cni": {"cilium": {"values": {"debug": {"enabled": null}}}}}}"#,
    ]);
    // Refused where the Job lacks a right as well, which the command grants.
    let reasons = ["ConsentRequired", "Refused"];
    let mut looks = 0;
    while !reasons.iter().any(|one| condition(&site.cluster(), "ValuesApplied")["reason"] == *one) {
        looks += 1;
        assert!(looks < 600, "{}", site.cluster()["status"]);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    run(&site, &["cluster", "status"]).expect(2, &["> ValuesApplied: False (", "> next: "]);
    let refused = run(&site, &["cni", "values", "set", "--yes"]);
    let accept = format!("--accept-cilium-diff={}", digest(&refused.err));
    run(&site, &["cni", "values", "set", "--yes", &accept]).expect(0, &["> Done. "]);
    let config = site.get(&["-n", "kube-system", "configmap", "cilium-config"]);
    assert_eq!(config["data"]["debug"], "false");
    run(&site, &["cni", "upgrade", "--yes"]).expect(0, &["> nothing: "]);
    run(&site, &["cluster", "status"]).expect(0, &["> ValuesApplied: True (Applied)"]);
}

/// Without a controller the commands make the change themselves.
#[tokio::test(flavor = "multi_thread")]
async fn values_are_set_from_here() {
    let state = plane::cilium::state("1.20.0", "03").await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    run(&site, &["adopt", "--cilium-only", "--yes"]).expect(0, &["> Taken over: revision 1"]);
    for (values, expected) in [("--set=debug.enabled=true", "true"), ("--reset", "false")] {
        let refused = run(&site, &["cni", "values", "set", values, "--yes"]);
        refused.expect(2, &["consent is missing"]);
        let accept = format!("--accept-cilium-diff={}", digest(&refused.err));
        run(&site, &["cni", "values", "set", values, "--yes", &accept])
            .expect(0, &["> Changed: revision "]);
        let config = site.get(&["-n", "kube-system", "configmap", "cilium-config"]);
        assert_eq!(config["data"]["debug"], expected);
    }
    run(&site, &["cni", "upgrade", "--plan"]).expect(0, &["> nothing: "]);
}

/// flannel, which is to stay.
#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_cluster_is_written_down() {
    let prepare = |_: std::sync::Arc<plane::Plane>| async { Ok(()) };
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-bare", "1", options, prepare).await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    apply(&site.plane, &[flannel()]);
    site.install(&chart(), &CONTROLLER);
    run(&site, &["adopt", "--yes"]).expect(2, &["> --cni-unmanaged"]);
    assert!(!exists(&site));
    let unmanaged = "cni: unmanaged (flannel, not managed by Ichor)";
    for _ in 0..2 {
        let adopted = run(&site, &["adopt", "--cni-unmanaged", "--yes"]);
        adopted.expect(0, &[&format!("> {unmanaged}\n")]);
    }
    let cluster = site.cluster();
    assert_eq!(cluster["spec"], json!({ "cni": { "preset": "unmanaged" } }));
    run(&site, &["cluster", "status"])
        .expect(0, &[&format!("> cluster: cluster\n{unmanaged}\nnext: nothing\n")]);
    let message = "the CNI is not managed by Ichor (spec.cni.preset: unmanaged)";
    for arguments in [
        ["adopt", "--yes"].as_slice(),
        &["adopt", "--cilium-only", "--yes"],
        &["cni", "plan"],
        &["cni", "plan", "--cni-unmanaged"],
        &["cni", "status"],
        &["cni", "restore", "--yes"],
        &["cni", "run", "--takeover"],
        &["cni", "manifest", "--rights"],
    ] {
        let told = run(&site, arguments);
        assert_eq!(told.code, Some(2), "{arguments:?}");
        assert!(told.err.contains(message), "{arguments:?}: {}", told.err);
    }
}
