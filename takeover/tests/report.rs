//! Reports of plans built here, beside what was reviewed: `report/NAME.{html,md,txt}`.
//! `ICHOR_BLESS=1` writes them anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a panic is how a test says that something is wrong"
)]

use std::path::PathBuf;

use serde_json::{Value, json};
use takeover::inventory::InventoryAbout;
use takeover::plan::{
    Action, Cause, ChartAbout, Computed, Consent, Difference, Found, HIDDEN, Look, ObjectAbout,
    ObjectPlan, OtherLeaf, Outcome, OwnedChange, Plan, RecordAbout, RecoveredAbout, Refusal,
    ResidueAbout, Restart, Rights, SCHEMA_VERSION, Size, UnexplainedAbout, ValuesAbout,
    to_terminal, to_text,
};
use takeover::report::{Form, render};

fn owned(key: &str, from: &str, to: &str, needs_consent: bool) -> OwnedChange {
    let [key, from, to] = [key, from, to].map(str::to_owned);
    OwnedChange { key, from, to, needs_consent }
}

fn about(kind: &str, namespace: &str, name: &str) -> ObjectAbout {
    let api_version = if matches!(kind, "DaemonSet" | "Deployment") { "apps/v1" } else { "v1" };
    ObjectAbout {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn difference(path: &str, live: Value, new: Value, cause: Cause) -> Difference {
    let some = |value: Value| (!value.is_null()).then_some(value);
    let manager = if cause == Cause::OtherManager { "kubectl-patch" } else { "helm" };
    Difference {
        path: path.to_owned(),
        live: some(live),
        new: some(new),
        cause,
        manager: manager.to_owned(),
    }
}

fn others(manager: &str, paths: &[&str]) -> Vec<OtherLeaf> {
    let leaf = |path: &&str| OtherLeaf { path: (*path).to_owned(), manager: manager.to_owned() };
    paths.iter().map(leaf).collect()
}

/// A plan with something of everything.
fn upgrade() -> Plan {
    let document = |port: u16, pad: &str| {
        json!({"admin": {"address": {"pipe": {"mode": 432, "path": "/var/run/admin.sock"}}},
               "listeners": [{"name": "health", "port": port, "password": "marker-secret"}], "pad": pad})
        .to_string()
    };
    let pad = "x".repeat(7000);
    let template = "spec.template.spec.containers[name=cilium-agent]";
    let agent = about("DaemonSet", "kube-system", "cilium");
    Plan {
        release: None,
        schema_version: SCHEMA_VERSION.to_owned(),
        digest: format!("sha256:{}", "0123456789abcdef".repeat(4)),
        outcome: Outcome::Upgrade,
        found: Found {
            kubernetes: "v1.36.4".to_owned(),
            nodes: 5,
            talos: true,
            cni: "cilium".to_owned(),
            version: "1.19.6".to_owned(),
            kube_proxy: "replaced".to_owned(),
            installer: "Helm".to_owned(),
            provenance: "Helm release net, records in namespace infra, 2 revision(s); revision 2 \
                         failed, so that the values are those of revision 1, the last deployed one"
                .to_owned(),
        },
        chart: ChartAbout {
            name: "cilium".to_owned(),
            version: "1.20.0".to_owned(),
            digest: format!("sha256:{}", "fedcba9876543210".repeat(4)),
        },
        values: ValuesAbout {
            source: "the record of revision 1 of release net".to_owned(),
            recovered: Some(RecoveredAbout {
                differing: 40,
                explained: 39,
                extra_config: 1,
                unexplained: vec![UnexplainedAbout {
                    object: "DaemonSet kube-system/cilium".to_owned(),
                    path: "metadata.labels.tier".to_owned(),
                    side: "live".to_owned(),
                }],
            }),
            changes: vec![owned("k8sServiceHost", "10.0.0.1", "localhost", true)],
            overridden: vec![
                owned("k8sServicePort", "7445", "7445", false),
                owned("cgroup.autoMount.enabled", "true", "false", false),
            ],
            added: vec![owned("routingMode", "", "tunnel", false)],
        },
        refusals: Vec::new(),
        deletions: Vec::new(),
        consent: vec![
            Consent {
                flag: "--accept-cilium-diff".to_owned(),
                why: "8 leaves would change, 2 live-only leaves or objects would stay, 1 objects \
                      would be created"
                    .to_owned(),
            },
            Consent {
                flag: "--accept-cilium-changes".to_owned(),
                why:
                    "settings of the running data plane would change: k8sServiceHost from 10.0.0.1 \
                      to localhost"
                        .to_owned(),
            },
        ],
        objects: vec![
            ObjectPlan {
                about: about("ConfigMap", "kube-system", "cilium-config"),
                action: Action::Patch,
                computed: Computed::Server,
                differences: vec![
                    difference(
                        "data[\"cni-log-file\"]",
                        json!("/var/log/a"),
                        Value::Null,
                        Cause::LiveOnly,
                    ),
                    difference(
                        "data[\"envoy.json\"]",
                        document(9878, &pad).into(),
                        document(9879, &pad).into(),
                        Cause::Version,
                    ),
                    difference(
                        "data[\"init.sh\"]",
                        json!("#!/bin/sh\nset -e\necho one\necho two\necho three\n"),
                        json!("#!/bin/sh\nset -e\necho one\necho 2\necho three\n"),
                        Cause::Chart,
                    ),
                    difference("data.token", json!(HIDDEN), json!(HIDDEN), Cause::Chart),
                ],
                others: others(
                    "kube-apiserver",
                    &["metadata.labels[\"kubernetes.io/metadata.name\"]"],
                ),
                defaults: 3,
                ..ObjectPlan::default()
            },
            ObjectPlan {
                about: agent.clone(),
                action: Action::Patch,
                computed: Computed::Memory,
                computed_why: "this identity may not write it, not even in a dry run".to_owned(),
                differences: vec![
                    difference("metadata.labels.tier", json!("net"), json!("node"), Cause::Chart),
                    difference(
                        &format!("{template}.image"),
                        json!("quay.io/cilium/cilium:v1.19.6"),
                        json!("quay.io/cilium/cilium:v1.20.0"),
                        Cause::Version,
                    ),
                    difference(
                        &format!("{template}.args"),
                        json!(["--config-dir=/tmp/cilium/config-map", "--extra=1", "--debug"]),
                        json!(["--config-dir=/tmp/cilium/config-map", "--debug"]),
                        Cause::OtherManager,
                    ),
                    difference(
                        &format!("{template}.env[name=KUBERNETES_SERVICE_HOST].value"),
                        json!("10.0.0.1"),
                        json!("localhost"),
                        Cause::OwnedKey,
                    ),
                ],
                ownership: vec![difference(
                    "metadata.annotations[\"meta.helm.sh/release-name\"]",
                    json!("net"),
                    json!("cilium"),
                    Cause::Chart,
                )],
                others: others(
                    "kubectl-rollout",
                    &["spec.template.metadata.annotations[\"kubectl.kubernetes.io/restartedAt\"]"],
                ),
                defaults: 40,
                ..ObjectPlan::default()
            },
            ObjectPlan {
                about: about("Secret", "kube-system", "hubble-server-certs"),
                generated: vec!["data[\"ca.crt\"]".to_owned(), "data[\"tls.key\"]".to_owned()],
                others: others(
                    "talos",
                    &["metadata.annotations[\"config.k8s.io/owning-inventory\"]"],
                ),
                ..ObjectPlan::default()
            },
            ObjectPlan {
                about: about("Service", "kube-system", "cilium-envoy"),
                residue: vec![ResidueAbout {
                    path: "metadata.annotations.team".to_owned(),
                    value: json!("net"),
                    manager: "kubectl-annotate".to_owned(),
                }],
                others: others("kube-apiserver", &["spec.clusterIPs", "spec.ipFamilies"]),
                defaults: 4,
                ..ObjectPlan::default()
            },
            ObjectPlan {
                about: about("Job", "kube-system", "hubble-generate-certs"),
                action: Action::Create,
                computed: Computed::Server,
                effect: "the Job runs once and issues new certificates".to_owned(),
                ..ObjectPlan::default()
            },
        ],
        left_objects: vec![about("ServiceAccount", "kube-system", "hubble-old")],
        restarts: vec![Restart {
            about: agent,
            leaves: vec![
                format!("{template}.image"),
                format!("{template}.args"),
                format!("{template}.env[name=KUBERNETES_SERVICE_HOST].value"),
            ],
            pods: 5,
            nodes: 5,
            on_delete: false,
        }],
        records: (1..=2)
            .map(|revision| RecordAbout {
                about: about("Secret", "infra", &format!("sh.helm.release.v1.net.v{revision}")),
                uid: format!("uid-{revision}"),
                release: "net".to_owned(),
                revision,
                status: if revision == 1 { "deployed" } else { "failed" }.to_owned(),
                bytes: 404_988,
            })
            .collect(),
        sizes: vec![Size { what: "ichor's record".to_owned(), bytes: 400_480 }],
        rights: {
            let mut rights = Rights::default();
            "ops@example.org".clone_into(&mut rights.identity);
            rights.checked = 274;
            rights.unchecked = vec!["rules of ClusterRole cilium: not readable".to_owned()];
            rights
        },
        talos_inventory: Some(InventoryAbout {
            exists: true,
            listed: vec![about("DaemonSet", "kube-system", "cilium")],
            others: 31,
            foreign: Vec::new(),
        }),
        unchecked: vec!["KubePrism (localhost:7445): this command makes no Talos call".to_owned()],
        rehearsal: None,
    }
}

/// The same version, nothing to consent to.
fn quiet() -> Plan {
    let mut plan = upgrade();
    plan.outcome = Outcome::TakeOver;
    "1.20.0".clone_into(&mut plan.found.version);
    plan.found.talos = false;
    plan.talos_inventory = None;
    plan.values =
        ValuesAbout { source: "the record of revision 1".to_owned(), ..ValuesAbout::default() };
    plan.consent.clear();
    plan.restarts.clear();
    plan.left_objects.clear();
    plan.unchecked.clear();
    plan.rights.unchecked.clear();
    plan.objects.retain(|object| object.action != Action::Create);
    for object in &mut plan.objects {
        object.action = Action::Keep;
        object.computed = Computed::Unchanged;
        object.differences.clear();
        object.residue.clear();
    }
    plan
}

/// Refused before and after the gate.
fn refused() -> Plan {
    let mut plan = upgrade();
    plan.outcome = Outcome::Refused;
    plan.refusals = vec![
        Refusal {
            reason: "Ipam".to_owned(),
            message:
                "ipam is \"cluster-pool\" in the ConfigMap cilium-config: go on with the tool \
                      that installed Cilium"
                    .to_owned(),
        },
        Refusal {
            reason: "DryRun".to_owned(),
            message: "the server refuses it:\nfield is immutable".to_owned(),
        },
    ];
    Plan {
        digest: String::new(),
        objects: Vec::new(),
        consent: Vec::new(),
        restarts: Vec::new(),
        ..plan
    }
}

/// What strangers may put into a cluster.
const HOSTILE: [&str; 8] = [
    "</script><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</code></td></table></details></body>{{digest}}{{{digest}}}",
    "| a | b |\n```\n# heading\n</details>\n```` `` [x](javascript:alert(1)) ![i](http://e.x/)",
    "\u{202e}gnp.exe\u{2066}\u{200b}",
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\r\n",
    "<!-- <style> @import url(//evil.example)",
];

/// A plan in which every text is hostile, one value is large, and the marker is in no text.
fn hostile() -> Plan {
    let mut json: Value = serde_json::from_str(&upgrade().to_json().unwrap()).unwrap();
    let mut turn = 0;
    poison(&mut json, &mut turn);
    let mut plan: Plan = serde_json::from_value(json).unwrap();
    plan.objects[0].residue.push(ResidueAbout {
        path: "metadata.annotations.large".to_owned(),
        value: json!("</script>\u{202e}'\"".repeat(80_000)),
        manager: String::new(),
    });
    plan.objects[1].differences.push(difference(
        "metadata.annotations.large",
        json!("<a>\n".repeat(260_000)),
        json!("</b>`|\n".repeat(150_000)),
        Cause::Chart,
    ));
    plan
}

fn poison(value: &mut Value, turn: &mut usize) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                // What is read back into an enumeration stays.
                let fixed = ["outcome", "action", "computed", "cause", "digest", "schemaVersion"];
                if !fixed.contains(&key.as_str()) {
                    poison(value, turn);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| poison(item, turn)),
        Value::String(text) => {
            text.push_str(HOSTILE[*turn % HOSTILE.len()]);
            *turn += 1;
        }
        _ => {}
    }
}

fn golden(name: &str, text: &str) {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/report").join(name);
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(text == expected, "{name} differs: run with ICHOR_BLESS=1 and review");
}

#[test]
fn reports_are_as_reviewed() {
    for (name, plan) in [("upgrade", upgrade()), ("quiet", quiet()), ("refused", refused())] {
        let page = render(&plan, Form::Html).unwrap();
        well_formed(&page);
        golden(&format!("{name}.html"), &without_style(&page));
        golden(&format!("{name}.md"), &render(&plan, Form::Markdown).unwrap());
        golden(&format!("{name}.txt"), &to_text(&plan, false));
    }
    golden("upgrade-all.txt", &to_text(&upgrade(), true));
    let colour = Look { colour: true, width: 60, ..Look::default() };
    golden("upgrade-colour.txt", &to_terminal(&upgrade(), colour));
}

/// The style sheet, which every page has whole.
const STYLE: &str = include_str!("../src/report/page.css");

/// A page without its style sheet, so that what is reviewed is what the plan says.
fn without_style(page: &str) -> String {
    let (before, rest) = page.split_once(STYLE).unwrap();
    assert!(!rest.contains(STYLE), "once");
    format!("{before}(page.css)\n{rest}")
}

/// On paper there are light colours whatever the screen has, nothing is folded or scrolled, and no
/// leaf is torn apart; on a phone both sides of a difference stand one below the other.
#[test]
fn the_style_knows_paper_and_phone() {
    let (_, print) = STYLE.split_once("@media print {").unwrap();
    for rule in [
        "color-scheme: light",
        "--paper: #fff",
        ".scroll { overflow: visible",
        "break-inside: avoid",
        "details::details-content { content-visibility: visible",
    ] {
        assert!(print.contains(rule), "{rule}");
    }
    let dark = STYLE.find("prefers-color-scheme: dark").unwrap();
    assert!(dark < STYLE.find("@media print").unwrap(), "paper has the last word");
    let (_, phone) = STYLE.split_once("@media (max-width: 40rem) {").unwrap();
    assert!(phone.contains(".sides { grid-template-columns: 1fr; }"));
    for elsewhere in ["url(", "@import", "http"] {
        assert!(!STYLE.contains(elsewhere), "{elsewhere}");
    }
    assert_eq!(STYLE.matches('{').count(), STYLE.matches('}').count());
}

/// Where the Job will write, what accepts the plan is applying the Job.
#[test]
fn the_command_that_accepts_a_plan() {
    let mut plan = upgrade();
    let adopt = "ichor adopt --cilium-only --accept-cilium-diff=sha256:";
    assert!(to_text(&plan, false).contains(adopt));
    "system:serviceaccount:kube-system:ichor-cni".clone_into(&mut plan.rights.identity);
    let text = to_text(&plan, false);
    assert!(text.contains("ichor cni manifest --image IMAGE --accept-cilium-diff=sha256:"));
    assert!(text.contains("--accept-cilium-changes | kubectl apply -f -") && !text.contains(adopt));
    "the operator's file (--cilium-values)".clone_into(&mut plan.values.source);
    assert!(to_text(&plan, false).contains("--cilium-values FILE --accept-cilium-diff="));
}

/// What recovered values do not explain alarms nobody when the gate finds nothing in it.
#[test]
fn what_stays_unexplained_is_judged_by_the_gate() {
    let recovered = |plan: &mut Plan| {
        plan.values.recovered = Some(RecoveredAbout {
            differing: 10,
            explained: 9,
            unexplained: vec![UnexplainedAbout {
                object: "Service kube-system/cilium-envoy".to_owned(),
                path: "spec.trafficDistribution".to_owned(),
                side: "live".to_owned(),
            }],
            ..RecoveredAbout::default()
        });
    };
    let mut plan = quiet();
    recovered(&mut plan);
    assert!(plan.gate_is_empty());
    for text in [to_text(&plan, true), render(&plan, Form::Html).unwrap()] {
        assert!(!text.contains("nexplained") && !text.contains("do not explain"), "{text}");
        assert!(text.contains("the gate is empty"), "{text}");
    }
    let mut plan = upgrade();
    recovered(&mut plan);
    let text = to_text(&plan, true);
    assert!(text.contains("unexplained: Service kube-system/cilium-envoy spec.traffic"), "{text}");
}

#[test]
fn the_json_is_the_plan() {
    let plan = upgrade();
    let json = render(&plan, Form::Json).unwrap();
    assert_eq!(json, plan.to_json().unwrap() + "\n");
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn nothing_hostile_gets_through() {
    let plan = hostile();
    let page = render(&plan, Form::Html).unwrap();
    well_formed(&page);
    let text = render(&plan, Form::Markdown).unwrap();
    assert!(page.len() + text.len() < 1 << 20, "{} {}", page.len(), text.len());
    // Raw HTML in Markdown is only what the report itself writes.
    let outside: String = without_blocks(&text);
    for tag in outside.split('<').skip(1) {
        let own = ["code>", "/code>", "details>", "summary>", "/summary>", "/details>", "br>"];
        assert!(own.iter().any(|own| tag.starts_with(own)), "<{tag:.60}");
    }
    assert!(!outside.contains("](") && !outside.contains("://"));
    for shown in [&page, &text, &to_text(&plan, true), &to_text(&plan, false)] {
        let odd = shown.chars().find(|c| {
            c.is_control() && *c != '\n'
                || matches!(*c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        });
        assert_eq!(odd, None);
    }
}

/// Markdown without its fenced blocks; panics when one is not closed.
fn without_blocks(text: &str) -> String {
    let mut out = String::new();
    let mut fence = None;
    for line in text.lines() {
        let ticks = line.chars().take_while(|c| *c == '`').count();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            None => out.push_str(&format!("{line}\n")),
            Some(open) if ticks >= open && line.trim_matches('`').is_empty() => fence = None,
            Some(_) => {}
        }
    }
    assert_eq!(fence, None, "a block is not closed");
    out
}

#[test]
fn no_secret_is_shown() {
    let plan = upgrade();
    for shown in [
        render(&plan, Form::Html).unwrap(),
        render(&plan, Form::Markdown).unwrap(),
        to_text(&plan, true),
    ] {
        assert!(!shown.contains("marker-secret"));
    }
}

#[test]
fn forms_by_extension() {
    for (file, form) in [
        ("a.html", Some(Form::Html)),
        ("A.HTM", Some(Form::Html)),
        ("a.b.md", Some(Form::Markdown)),
        ("a.json", Some(Form::Json)),
        ("a.pdf", None),
        ("html", None),
        ("a", None),
        ("", None),
    ] {
        assert_eq!(Form::of_file(file.as_ref()).ok(), form, "{file}");
    }
    let error = Form::of_file("plan.pdf".as_ref()).unwrap_err();
    assert_eq!(error.to_string(), "plan.pdf: a report ends in .html, .md or .json");
}

#[test]
fn the_same_plan_gives_the_same_bytes() {
    for form in [Form::Html, Form::Markdown, Form::Json] {
        assert_eq!(render(&upgrade(), form).unwrap(), render(&upgrade(), form).unwrap());
    }
}

/// Reads a page as strictly as XHTML: known elements that are closed in order, attributes in
/// double quotes, known entities, no script, no reference to anything elsewhere.
fn well_formed(page: &str) {
    const EMPTY: [&str; 1] = ["meta"];
    const KNOWN: &str = "html head title style body header main section article footer h1 h2 h3 h4 p \
        ul ol li dl dt dd table thead tbody tr th td div span b code details summary";
    let mut rest = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let mut open: Vec<&str> = Vec::new();
    while let Some(at) = rest.find('<') {
        entities(&rest[..at]);
        let end = rest[at..].find('>').unwrap() + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(EMPTY.contains(&name) || KNOWN.split_whitespace().any(|k| k == name), "<{name}>");
        let mut quoted = attributes.split('"');
        while let (Some(key), Some(value)) = (quoted.next(), quoted.next()) {
            let key = key.trim().strip_suffix('=').unwrap();
            let known = ["class", "id", "lang", "charset", "name", "content", "http-equiv"];
            assert!(known.contains(&key), "{key}");
            entities(value);
        }
        if !EMPTY.contains(&name) {
            open.push(name);
        }
        if name == "style" {
            let end = rest.find("</style>").unwrap();
            assert!(!rest[..end].contains("url(") && !rest[..end].contains("@import"));
            rest = &rest[end..];
        }
    }
    entities(rest);
    assert_eq!(open, [] as [&str; 0], "everything is closed");
}

fn entities(text: &str) {
    for part in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;", "#96;"];
        assert!(known.iter().any(|known| part.starts_with(known)), "&{part:.20}");
    }
}
