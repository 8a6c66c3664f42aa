//! Every code of the audit: records that trigger it, and records that nearly do and must not.
//!
//! [`pair`] is a match over all codes, so that a code without a pair does not compile. The page
//! `docs/audit.md` lists the same codes; `ICHOR_BLESS=1` writes it anew.
#![allow(clippy::expect_used, clippy::panic, reason = "a test: a panic is how it fails")]

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::capabilities::KubeVersion;
use helm_rs::release::input::{Input, InputLimits, scan};
use helm_rs::release::verify::{
    Code, Finding, KeptApart, Live, Question, Rerender, audit, compare_live, expected, no_record,
    undecodable, verify_beside,
};
use helm_rs::release::{CodecLimits, encode};
use helm_rs::render::time::{Time, Zone};
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;

/// A record to be written.
struct Built {
    body: Value,
    /// Labels that are not what the body says.
    labels: Vec<(&'static str, &'static str)>,
    object: Option<&'static str>,
    namespace: &'static str,
    /// Bytes that the JSON is filled up to, stored without compression.
    size: usize,
    /// The string that is stored instead of the encoded body.
    stored: Option<String>,
}

fn record(name: &str, revision: i64, status: &str) -> Built {
    Built {
        body: json!({
            "name": name,
            "info": {
                "first_deployed": "2026-01-01T00:00:00Z",
                "last_deployed": "2026-01-01T00:00:00Z",
                "deleted": "",
                "description": "x",
                "status": status,
            },
            "chart": {"metadata": {"name": "c", "version": "1.0.0", "apiVersion": "v2"}},
            "manifest": "",
            "version": revision,
            "namespace": "prod",
        }),
        labels: Vec::new(),
        object: None,
        namespace: "prod",
        size: 0,
        stored: None,
    }
}

fn deployed() -> Built {
    record("web", 1, "deployed")
}

impl Built {
    fn label(mut self, name: &'static str, value: &'static str) -> Self {
        self.labels.push((name, value));
        self
    }

    fn object(mut self, name: &'static str) -> Self {
        self.object = Some(name);
        self
    }

    fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body[name] = value.into();
        self
    }

    fn info(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.body["info"][name] = value.into();
        self
    }

    fn manifest(self, text: &str) -> Self {
        self.field("manifest", text)
    }

    fn namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = namespace;
        self.field("namespace", namespace)
    }

    fn size(mut self, size: usize) -> Self {
        self.size = size;
        self
    }

    fn stored(mut self, text: String) -> Self {
        self.stored = Some(text);
        self
    }

    /// A chart with one template, and the manifest under the comment that Helm writes.
    fn chart(mut self, template: &str, manifest: &str) -> Self {
        self.body["chart"]["templates"] =
            json!([{"name": "templates/t.yaml", "data": STANDARD.encode(template)}]);
        let documents = manifest.split("---\n").filter(|text| !text.trim().is_empty());
        let text = documents.map(|text| format!("---\n# Source: c/templates/t.yaml\n{text}"));
        self.field("manifest", text.collect::<String>())
    }

    fn secret(&self) -> String {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let name = format!(
            "sh.helm.release.v1.{}.v{}",
            text(&self.body["name"]),
            text(&self.body["version"])
        );
        let mut labels = json!({
            "name": text(&self.body["name"]),
            "owner": "helm",
            "status": text(&self.body["info"]["status"]),
            "version": text(&self.body["version"]),
        });
        for (label, value) in &self.labels {
            labels[*label] = json!(value);
        }
        let stored = self.stored.clone().unwrap_or_else(|| {
            if self.size == 0 {
                return encode(&self.body.to_string()).expect("a record");
            }
            let mut body = self.body.clone();
            body["filler"] = json!("");
            let filler = self.size - body.to_string().len();
            body["filler"] = json!("x".repeat(filler));
            STANDARD.encode(body.to_string())
        });
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "helm.sh/release.v1",
            "metadata": {
                "name": self.object.map_or(name, str::to_owned),
                "namespace": self.namespace,
                "labels": labels,
            },
            "data": {"release": STANDARD.encode(stored)},
        })
        .to_string()
    }
}

/// Records, what is asked about them, and what a cluster says about every object.
#[derive(Default)]
struct Case {
    records: Vec<Built>,
    question: Question,
    live: Option<Live>,
}

impl<T: IntoIterator<Item = Built>> From<T> for Case {
    fn from(records: T) -> Self {
        Self { records: records.into_iter().collect(), ..Self::default() }
    }
}

fn kubernetes(version: &str, records: impl Into<Case>) -> Case {
    let kube_version = Some(KubeVersion::parse(version).expect("a version"));
    Case { question: Question { kube_version, ..Question::default() }, ..records.into() }
}

fn rendered(record: Built) -> Case {
    let question = Question { rerender: Some(Rerender::default()), ..Question::default() };
    Case { question, ..Case::from([record]) }
}

fn live(live: Live, record: Built) -> Case {
    Case { live: Some(live), ..Case::from([record]) }
}

fn findings(case: &Case) -> Vec<Finding> {
    let text: Vec<String> = case.records.iter().map(Built::secret).collect();
    let text = text.join("\n");
    let input = Input::Stream("test".to_owned(), Box::new(std::io::Cursor::new(text)));
    let question = Question { now: NOW, ..case.question.clone() };
    let scan = scan(vec![input], &InputLimits::default(), None, |record| {
        Some(match record.decode(&CodecLimits::default()) {
            Ok(json) => audit(&record, &json, &question),
            Err(error) => Err(undecodable(&record, helm_rs::error_chain(&error))),
        })
    });
    assert!(scan.faults.is_empty(), "{:?}", scan.faults);
    let empty = scan.empty.iter().map(|name| no_record(name, "nothing".to_owned()));
    let (mut records, mut findings) = (Vec::new(), empty.collect::<Vec<_>>());
    for item in scan.items {
        match item {
            Ok(record) => records.push(record),
            Err(finding) => findings.push(finding),
        }
    }
    if let Some(live) = &case.live {
        findings.extend(expected(&records).iter().filter_map(|object| compare_live(object, live)));
    }
    findings.extend(verify_beside(records, &findings.clone()));
    findings
}

const ROLE: &str = "kind: Role\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: r}\n";
const CLUSTER_ROLE: &str =
    "kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: r}\n";
const BUDGET: &str = "kind: PodDisruptionBudget\napiVersion: policy/v1beta1\nmetadata: {name: b}\n";
const TWO: &str =
    "kind: ConfigMap\nmetadata: {name: a}\n---\nkind: ConfigMap\nmetadata: {name: b}\n";

/// Seconds before now, as a record writes them.
fn ago(seconds: i64) -> String {
    let time = Time::unix(NOW - seconds, 0, Zone::utc());
    String::from_utf8_lossy(&time.format("2006-01-02T15:04:05Z07:00")).into_owned()
}

/// What triggers a code, and what nearly does.
fn pair(code: Code) -> (Case, Case) {
    match code {
        Code::Undecodable => {
            let mut cut = encode(&deployed().body.to_string()).expect("a record");
            cut.truncate(cut.len() / 2);
            // Neither compression nor line breaks are anything wrong.
            let mut plain = STANDARD.encode(deployed().body.to_string());
            plain.insert(40, '\n');
            ([deployed().stored(cut)].into(), [deployed().stored(plain)].into())
        }
        Code::NoRecord => (
            // Nothing at all; and a record that is one by its name alone.
            [].into(),
            [deployed().label("owner", "nobody").label("name", "nobody")].into(),
        ),
        Code::RecordTwice => (
            [deployed(), deployed().info("description", "y")].into(),
            // The same file given twice, and the same revision of other releases.
            [deployed(), deployed(), record("www", 1, "deployed"), deployed().namespace("other")]
                .into(),
        ),
        Code::LabelName => ([deployed().label("name", "www")].into(), [deployed()].into()),
        Code::LabelVersion => {
            ([deployed().label("version", "2")].into(), [deployed().label("version", "1")].into())
        }
        Code::LabelStatus => (
            [deployed().label("status", "failed")].into(),
            // A status that nobody knows is still the same one in both places.
            [deployed(), record("x", 1, "resting")].into(),
        ),
        Code::LabelOwner => (
            [deployed().label("owner", "tiller")].into(),
            [deployed().label("team", "tiller")].into(),
        ),
        Code::ObjectName => (
            [deployed().object("sh.helm.release.v1.web.v2")].into(),
            [record("my.web", 12, "deployed").object("sh.helm.release.v1.my.web.v12")].into(),
        ),
        Code::ObjectNamespace => (
            [deployed().field("namespace", "elsewhere")].into(),
            [deployed().namespace("elsewhere")].into(),
        ),
        Code::SeveralDeployed => (
            [deployed(), record("web", 2, "deployed")].into(),
            [deployed(), deployed().namespace("other"), record("www", 2, "deployed")].into(),
        ),
        Code::NoneDeployed => (
            [record("web", 1, "superseded"), record("web", 2, "failed")].into(),
            [
                record("gone", 2, "uninstalled"),
                record("new", 1, "pending-install").info("last_deployed", ago(1)),
            ]
            .into(),
        ),
        Code::StuckPending => (
            [record("web", 1, "pending-install").info("last_deployed", ago(301))].into(),
            [record("web", 1, "pending-install").info("last_deployed", ago(299))].into(),
        ),
        Code::RevisionGap => (
            [record("web", 1, "superseded"), record("web", 3, "deployed")].into(),
            // Helm's history limit prunes at the beginning, and a broken record is not missing.
            [
                record("web", 7, "superseded"),
                record("web", 8, "superseded").stored("AAAA".to_owned()),
                record("web", 9, "deployed"),
            ]
            .into(),
        ),
        // 786,432 bytes of JSON are 1 MiB of base64.
        Code::SizeOver => ([deployed().size(786_433)].into(), [deployed().size(786_432)].into()),
        Code::SizeNear => ([deployed().size(629_148)].into(), [deployed().size(629_145)].into()),
        Code::SizeForecast => {
            let two = |first: usize, second: usize| {
                let old = record("web", 1, "superseded").size(first);
                Case::from([old, record("web", 2, "deployed").size(second)])
            };
            (two(300_000, 550_000), two(310_000, 548_000))
        }
        Code::OtherNamespace => (
            [deployed().manifest("kind: ConfigMap\nmetadata: {name: a, namespace: other}")].into(),
            [deployed().manifest(&format!(
                "kind: ConfigMap\nmetadata: {{name: a, namespace: prod}}\n---\n{}",
                CLUSTER_ROLE.replace("name: r", "name: r, namespace: other")
            ))]
            .into(),
        ),
        Code::DuplicateObject => (
            [deployed().manifest(&format!("{ROLE}---\n{}", ROLE.replace("/v1", "/v1beta1")))]
                .into(),
            [deployed().manifest(&format!("{ROLE}---\n{CLUSTER_ROLE}"))].into(),
        ),
        Code::ClaimedTwice => {
            let two = |manifest: &str| {
                [deployed().manifest(manifest), deployed().namespace("other").manifest(manifest)]
            };
            (two(CLUSTER_ROLE).into(), two(ROLE).into())
        }
        Code::RemovedApi => (
            kubernetes("1.25", [deployed().manifest(BUDGET)]),
            kubernetes("1.24", [deployed().manifest(BUDGET)]),
        ),
        Code::DeprecatedApi => (
            kubernetes("1.21", [deployed().manifest(BUDGET)]),
            kubernetes("1.20", [deployed().manifest(BUDGET)]),
        ),
        Code::UnreadableHooks => (
            [deployed().field("hooks", json!([{"manifest": "a: ["}]))].into(),
            // A list where an object is expected does read; so do nothing and comments.
            [deployed().field(
                "hooks",
                json!([{"manifest": "a: []"}, {"manifest": "# nothing"}, {}, null]),
            )]
            .into(),
        ),
        Code::UnreadableManifest => (
            [deployed().manifest("kind: A\n---\nb: [")].into(),
            [deployed().manifest("---\n# nothing\n---\n---\nkind: A\n")].into(),
        ),
        Code::RerenderEdited => (
            rendered(
                deployed()
                    .chart("kind: ConfigMap\ndata: {a: b}\n", "kind: ConfigMap\ndata: {a: c}\n\n"),
            ),
            // A generated leaf is another one each time.
            rendered(deployed().chart(
                "kind: ConfigMap\ndata: {a: {{ randAlphaNum 5 }}, b: c}\n",
                "kind: ConfigMap\ndata: {a: Xyzzy, b: c}\n\n",
            )),
        ),
        Code::RerenderPostRendered => {
            let everywhere = TWO.replace("name", "labels: {x: y}, name");
            let once = TWO.replace("name: a", "labels: {x: y}, name: a");
            (
                rendered(deployed().chart(TWO, &everywhere)),
                // One object alone: somebody edited it.
                rendered(deployed().chart(TWO, &once)),
            )
        }
        Code::RerenderCapabilities => {
            let template = "{{ if .Capabilities.APIVersions.Has \"example.org/v1\" }}kind: Thing\napiVersion: example.org/v1\n{{ end }}";
            let record = || deployed().chart(template, "kind: Thing\napiVersion: example.org/v1\n");
            let mut told = rendered(record());
            if let Some(rerender) = &mut told.question.rerender {
                rerender.api_versions.push("example.org/v1".to_owned());
            }
            (rendered(record()), told)
        }
        Code::RerenderLookup => {
            let template = |kind: &str| {
                format!(
                    "kind: ConfigMap\nmetadata: {{name: a}}\ndata: {{x: {{{{ ((lookup \"v1\" \"{kind}\" \"prod\" \"a\").data).x | default \"new\" }}}}}}\n"
                )
            };
            let manifest = "kind: ConfigMap\nmetadata: {name: a}\ndata: {x: kept}\n\n";
            (
                rendered(deployed().chart(&template("Secret"), manifest)),
                // The chart keeps what it finds, and that is what the manifest holds.
                rendered(
                    deployed()
                        .chart(&template("ConfigMap"), manifest)
                        .manifest(&format!(
                            "---\n# Source: c/templates/t.yaml\napiVersion: v1\n{manifest}"
                        ))
                        .template_prefix("apiVersion: v1\n"),
                ),
            )
        }
        Code::RerenderImpossible => (
            rendered(deployed().chart("{{ fail \"no\" }}", "")),
            rendered(deployed().chart("{{ if .Values.x }}{{ fail \"no\" }}{{ end }}", "")),
        ),
        Code::MissingObject => (
            live(Live::Missing, deployed().manifest(ROLE)),
            // The current revision's object, which this identity may not read: nobody knows.
            live(Live::Unknown, deployed().manifest(ROLE)),
        ),
        Code::ForeignOwner => {
            let owner = |release: &str, namespace: &str| Live::Present {
                release: release.to_owned(),
                namespace: namespace.to_owned(),
            };
            (
                live(owner("web", "other"), deployed().manifest(ROLE)),
                live(owner("web", "prod"), deployed().manifest(ROLE)),
            )
        }
    }
}

impl Built {
    /// Puts a text before the chart's template.
    fn template_prefix(mut self, prefix: &str) -> Self {
        let template = &mut self.body["chart"]["templates"][0]["data"];
        let text = STANDARD.decode(template.as_str().unwrap_or_default()).expect("base64");
        *template = json!(STANDARD.encode([prefix.as_bytes(), &text].concat()));
        self
    }
}

#[test]
fn every_code_has_what_triggers_it_and_what_nearly_does() {
    let mut wrong = Vec::new();
    for &code in Code::ALL {
        let (trigger, near) = pair(code);
        let found = findings(&trigger);
        if !found.iter().any(|finding| finding.code == code) {
            wrong.push(format!("{} is not triggered: {found:#?}", code.as_str()));
        }
        let found = findings(&near);
        if let Some(finding) = found.iter().find(|finding| finding.code == code) {
            wrong.push(format!("{} is triggered by what nearly does: {finding:#?}", code.as_str()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The records of one release lie apart from it by design: that release, and no other.
#[test]
fn a_release_whose_records_are_kept_apart() {
    let found = |release: &str, own: &str, live: Option<Live>| {
        let record = record(release, 1, "deployed").namespace("apart").field("namespace", own);
        let kept_apart = Some(KeptApart {
            release: "net".to_owned(),
            namespace: "system".to_owned(),
            records: "apart".to_owned(),
        });
        let question = Question { kept_apart, ..Question::default() };
        let case = Case { question, live, ..Case::from([record.manifest(ROLE)]) };
        findings(&case).iter().map(|finding| finding.code).collect::<Vec<_>>()
    };
    let owner = |namespace: &str| {
        Some(Live::Present { release: "net".to_owned(), namespace: namespace.to_owned() })
    };
    assert_eq!(found("net", "system", None), []);
    // The objects name the release's namespace, and not that of its records.
    assert_eq!(found("net", "system", owner("system")), []);
    assert_eq!(found("net", "system", owner("apart")), [Code::ForeignOwner]);
    assert_eq!(found("net", "elsewhere", None), [Code::ObjectNamespace]);
    assert_eq!(found("web", "system", None), [Code::ObjectNamespace]);
}

#[test]
fn a_whole_release_has_no_findings() {
    let records = [
        record("web", 1, "superseded").manifest(ROLE),
        record("web", 2, "deployed").manifest(ROLE),
    ];
    let case = kubernetes("1.36", records);
    assert_eq!(findings(&case), []);
}

#[test]
fn codes_are_stable_words() {
    let mut texts: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    for text in &texts {
        assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{text}");
    }
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), Code::ALL.len());
}

#[test]
fn the_page_lists_every_code() {
    const START: &str = "| code | severity | meaning | what to do |\n|---|---|---|---|\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/audit.md");
    let page = std::fs::read_to_string(&path).expect("docs/audit.md");
    let (head, rest) = page.split_once(START).expect("the table");
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    let rows = Code::ALL.iter().map(|code| {
        format!(
            "| `{}` | {} | {} | {} |\n",
            code.as_str(),
            code.severity().as_str(),
            code.meaning(),
            code.advice()
        )
    });
    let rows: String = rows.collect();
    let tail = rest.get(end..).unwrap_or_default();
    let expected = format!("{head}{START}{rows}{tail}");
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&path, expected).expect("the page");
    } else {
        assert_eq!(page, expected, "run with ICHOR_BLESS=1");
    }
}

/// Many releases with the same objects: what is said of each pair is bounded, and stable.
#[test]
fn claims_of_many_objects_are_told_in_short() {
    let mut manifest = String::new();
    for number in 0..300 {
        let head = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:";
        manifest.push_str(&format!("{head} {{name: c{number}}}\n"));
    }
    let question = Question::default();
    let audited = |name: &str, manifest: &str| {
        let json = serde_json::json!({
            "name": name, "namespace": "ns", "version": 1, "manifest": manifest,
            "info": {"status": "deployed"},
            "hooks": [{"name": "h", "kind": "Job", "path": "p", "events": ["test", "pre-flight"]}],
        })
        .to_string();
        let stream = Box::new(std::io::Cursor::new(json.clone().into_bytes()));
        let input = Input::Stream("in".to_owned(), stream);
        let stored = scan(vec![input], &InputLimits::default(), None, Some).items.remove(0);
        audit(&stored, &json, &question).unwrap()
    };
    let of = |code: Code, findings: &[Finding]| -> Vec<String> {
        let fits = findings.iter().filter(|finding| finding.code == code);
        fits.map(|finding| format!("{} {}", finding.release, finding.message)).collect()
    };
    let findings = helm_rs::release::verify::verify(
        ["a", "b", "c"].map(|name| audited(name, &manifest)).into(),
    );
    let claims = of(Code::ClaimedTwice, &findings);
    assert_eq!(claims.len(), 22, "{claims:?}");
    for more in [
        "b 290 more objects also belong to release a in ns",
        "c 290 more objects also belong to release b in ns",
        "b ConfigMap ns/c9 also belongs to release a in ns",
    ] {
        assert!(claims.iter().any(|claim| claim == more), "{claims:?}");
    }
    let hooks = of(Code::UnreadableHooks, &findings);
    assert_eq!(hooks.len(), 3);
    assert!(hooks[0].ends_with("hook Job h of p: Helm knows no event \"pre-flight\""), "{hooks:?}");
    let findings = helm_rs::release::verify::verify(vec![audited("a", &manifest.repeat(2))]);
    let twice = of(Code::DuplicateObject, &findings);
    assert_eq!(twice.len(), 101);
    assert!(twice.contains(&"a and 200 more of these".to_owned()), "{twice:?}");
}
