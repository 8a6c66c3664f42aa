//! Records out of dumps in every form, and the audit: each code with a record that has it and
//! one that nearly does.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::capabilities::KubeVersion;
use helm_rs::release::input::{Input, InputLimits, Scan, StoredRecord, scan};
use helm_rs::release::verify::{Code, Question, audit, undecodable, verify};
use helm_rs::release::{CodecLimits, encode};

/// A record and its object.
#[derive(Clone)]
struct Made {
    name: &'static str,
    revision: i64,
    status: &'static str,
    manifest: String,
    deployed: &'static str,
    labels: [(&'static str, String); 3],
    object: String,
    hooks: &'static str,
    padding: usize,
}

fn made(name: &'static str, revision: i64, status: &'static str) -> Made {
    Made {
        name,
        revision,
        status,
        manifest: format!("---\nkind: ConfigMap\napiVersion: v1\nmetadata: {{name: {name}}}\n"),
        deployed: "2026-01-01T00:00:00Z",
        labels: [
            ("name", name.to_owned()),
            ("version", revision.to_string()),
            ("status", status.to_owned()),
        ],
        object: format!("sh.helm.release.v1.{name}.v{revision}"),
        hooks: "[]",
        padding: 0,
    }
}

impl Made {
    fn json(&self) -> String {
        // Text that gzip cannot make smaller.
        let mut state = 1u64;
        let padding: String = (0..self.padding)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'0' + ((state >> 33) % 64) as u8).to_string()
            })
            .map(|text| if text == "\\" { "~".to_owned() } else { text })
            .collect();
        format!(
            r#"{{"name":"{}","info":{{"last_deployed":"{}","status":"{}"}},"chart":{{"metadata":{{"name":"c","version":"1"}},"x":"{padding}"}},"manifest":{},"hooks":{},"version":{},"namespace":"ns"}}"#,
            self.name,
            self.deployed,
            self.status,
            serde_json::to_string(&self.manifest).unwrap(),
            self.hooks,
            self.revision
        )
    }

    fn secret(&self) -> String {
        let release = STANDARD.encode(encode(&self.json()).unwrap());
        let labels: Vec<String> =
            self.labels.iter().map(|(key, value)| format!(r#""{key}":"{value}""#)).collect();
        format!(
            r#"{{"apiVersion":"v1","kind":"Secret","type":"helm.sh/release.v1","metadata":{{"name":"{}","namespace":"ns","labels":{{"owner":"helm",{}}}}},"data":{{"release":"{release}"}}}}"#,
            self.object,
            labels.join(",")
        )
    }
}

fn read(text: impl Into<Vec<u8>>) -> Scan<StoredRecord> {
    let stream = Cursor::new(text.into());
    scan(
        vec![Input::Stream("in".to_owned(), Box::new(stream))],
        &InputLimits::default(),
        None,
        Some,
    )
}

fn names(scan: &Scan<StoredRecord>) -> Vec<&str> {
    scan.items.iter().filter_map(StoredRecord::release_name).collect()
}

fn codes(records: &[Made]) -> Vec<Code> {
    let text: Vec<String> = records.iter().map(Made::secret).collect();
    let question = Question {
        now: 1_767_225_600 + 86_400,
        kube_version: Some(KubeVersion::parse("1.36.0").unwrap()),
        ..Question::default()
    };
    let mut audited = Vec::new();
    let mut codes = Vec::new();
    for stored in read(text.join("\n")).items {
        let result = match stored.decode(&CodecLimits::default()) {
            Ok(json) => audit(&stored, &json, &question),
            Err(error) => Err(undecodable(&stored, error.to_string())),
        };
        match result {
            Ok(record) => audited.push(record),
            Err(finding) => codes.push(finding.code),
        }
    }
    codes.extend(verify(audited).into_iter().map(|finding| finding.code));
    codes
}

#[test]
fn every_form_of_a_dump() {
    let (a, b) = (made("a", 1, "deployed").secret(), made("b", 2, "failed").secret());
    let other =
        r#"{"kind":"Secret","metadata":{"name":"x","note":"\"items\":["},"data":{"a":"e30="}}"#;
    let list = format!(r#"{{"apiVersion":"v1","items":[{a},{other},{b}],"kind":"List"}}"#);
    let pretty =
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&list).unwrap())
            .unwrap();
    let yaml =
        goyaml::to_yaml(&goyaml::from_yaml(list.as_bytes(), &goyaml::Limits::default()).unwrap())
            .unwrap();
    let indented = yaml.replace("\n- ", "\n  - ").replace("\n  ", "\n    ");
    for text in [
        list.clone(),
        pretty,
        format!("{a}\n{other}\n{b}\n"),
        format!("[{a},{other},{b}]"),
        yaml.clone(),
        format!("---\n{yaml}"),
        format!("# a comment\n---\n{a}\n---\n{other}\n---\n{b}\n"),
    ] {
        let found = read(text.clone());
        assert_eq!(names(&found), ["a", "b"], "{text}");
        assert_eq!((found.skipped, found.faults.len()), (1, 0), "{text}");
    }
    // Dashes that are indented too.
    assert!(indented.contains("\n    - "));
}

#[test]
fn bare_releases_with_one_and_two_layers() {
    let json = made("a", 1, "deployed").json();
    let one = encode(&json).unwrap();
    let two = STANDARD.encode(&one);
    let wrapped: String = one
        .as_bytes()
        .chunks(60)
        .flat_map(|line| [std::str::from_utf8(line).unwrap(), "\n"])
        .collect();
    for text in [one, two, wrapped, json.clone()] {
        let found = read(text);
        assert_eq!(found.items.len(), 1);
        assert_eq!(found.items[0].decode(&CodecLimits::default()).unwrap(), json);
    }
}

#[test]
fn archives_and_folders() {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in [
        ("resources/secrets/a.json", made("a", 1, "deployed").secret()),
        ("resources/secrets/b.json", made("b", 1, "deployed").secret()),
        ("resources/picture.bin", "\0\0\0".to_owned()),
    ] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_cksum();
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let found = read(archive.into_inner().unwrap());
    assert_eq!(names(&found), ["a", "b"]);
    assert_eq!(found.skipped, 1);
}

#[test]
fn one_bad_object_does_not_hide_the_others() {
    let (a, b) = (made("a", 1, "deployed").secret(), made("b", 1, "deployed").secret());
    for bad in [
        r#"{"kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"x"},"data":{"release":"%"}}"#,
        r#"{"kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"x"},"data":{"release":7}}"#,
        r#"{"kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"x"}}"#,
        r#"{"kind":"Secret",,}"#,
    ] {
        let found = read(format!(r#"{{"items":[{a},{bad},{b}]}}"#));
        assert_eq!(names(&found), ["a", "b"], "{bad}");
        assert_eq!(found.faults.len(), 1, "{bad}");
        assert!(found.faults[0].place.ends_with("object 2"), "{}", found.faults[0].place);
    }
}

#[test]
fn a_dump_cut_at_every_byte() {
    let text = format!(r#"{{"items":[{}]}}"#, made("a", 1, "deployed").secret());
    let whole = text.len() - 2;
    for end in 0..text.len() {
        let found = read(&text.as_bytes()[..end]);
        assert_eq!(found.items.len(), usize::from(end >= whole), "cut at {end}");
        assert_eq!(found.faults.len(), usize::from(end > 0), "cut at {end}");
    }
}

#[test]
fn deep_and_odd_input() {
    for text in [
        "[".repeat(1_000_000),
        "{\"a\":".repeat(100_000),
        "]".to_owned(),
        "- a\n- b\n".to_owned(),
        "items:\n- 1\n- kind: Secret\n".to_owned(),
        "\u{feff}{}".to_owned(),
        "a: [".to_owned(),
    ] {
        assert_eq!(read(text).items.len(), 0);
    }
    assert_eq!(read(vec![0xff, 0xfe, 0x00, b'a']).items.len(), 0);
}

#[test]
fn a_sound_release_has_no_findings() {
    let records =
        [made("a", 3, "superseded"), made("a", 4, "superseded"), made("a", 5, "deployed")];
    assert_eq!(codes(&records), []);
}

#[test]
fn labels_and_names() {
    for (index, code) in
        [Code::LabelName, Code::LabelVersion, Code::LabelStatus].into_iter().enumerate()
    {
        let mut record = made("a", 1, "deployed");
        record.labels[index].1 = "9".to_owned();
        assert_eq!(codes(&[record]), [code]);
    }
    let mut record = made("a", 1, "deployed");
    record.object.push('1');
    assert_eq!(codes(&[record]), [Code::ObjectName]);
}

#[test]
fn deployed_revisions() {
    assert_eq!(
        codes(&[made("a", 1, "deployed"), made("a", 2, "deployed")]),
        [Code::SeveralDeployed]
    );
    assert_eq!(codes(&[made("a", 1, "failed")]), [Code::NoneDeployed]);
    assert_eq!(codes(&[made("a", 1, "uninstalled")]), []);
    assert_eq!(codes(&[made("a", 1, "deployed"), made("a", 2, "failed")]), []);
    assert_eq!(codes(&[made("a", 1, "superseded"), made("a", 3, "deployed")]), [Code::RevisionGap]);
}

#[test]
fn pending_operations() {
    let deployed = made("a", 1, "deployed");
    let mut pending = made("a", 2, "pending-upgrade");
    assert_eq!(codes(&[deployed.clone(), pending.clone()]), [Code::StuckPending]);
    pending.deployed = "2026-01-01T23:59:00Z";
    assert_eq!(codes(&[deployed, pending]), []);
}

#[test]
fn sizes() {
    let mut record = made("a", 1, "deployed");
    // 6 bits a character: about three quarters survive gzip, and base64 adds a third.
    for (padding, expected) in
        [(700_000, vec![]), (900_000, vec![Code::SizeNear]), (1_100_000, vec![Code::SizeOver])]
    {
        record.padding = padding;
        let found = codes(std::slice::from_ref(&record));
        assert_eq!(found, expected, "{padding}: {}", record.secret().len() * 3 / 4);
    }
}

#[test]
fn manifests() {
    let object = |kind: &str, name: &str, namespace: &str| {
        format!(
            "---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        )
    };
    let with = |manifest: String| {
        let mut record = made("a", 1, "deployed");
        record.manifest = manifest;
        codes(&[record])
    };
    assert_eq!(with(object("ConfigMap", "x", "other")), [Code::OtherNamespace]);
    assert_eq!(
        with(object("ConfigMap", "x", "ns") + &object("ConfigMap", "x", "ns")),
        [Code::DuplicateObject]
    );
    assert_eq!(with(object("ConfigMap", "x", "ns") + &object("Secret", "x", "ns")), []);
    assert_eq!(with("---\na: [\n".to_owned()), [Code::UnreadableManifest]);
    let api = |version: &str| {
        format!("---\napiVersion: {version}\nkind: PodDisruptionBudget\nmetadata: {{name: p}}\n")
    };
    assert_eq!(with(api("policy/v1beta1")), [Code::RemovedApi]);
    assert_eq!(with(api("policy/v1")), []);
    let mut other = made("b", 1, "deployed");
    other.manifest = made("a", 1, "deployed").manifest;
    assert_eq!(codes(&[made("a", 1, "deployed"), other.clone()]), [Code::ClaimedTwice]);
    let mut old = other.clone();
    old.status = "superseded";
    old.labels[2].1 = "superseded".to_owned();
    let mut new = made("b", 2, "deployed");
    new.manifest = object("Secret", "b", "ns");
    assert_eq!(codes(&[made("a", 1, "deployed"), old, new]), []);
}

#[test]
fn hooks_and_layers() {
    let mut record = made("a", 1, "deployed");
    record.hooks = r#"[{"name":7}]"#;
    assert_eq!(codes(&[record.clone()]), [Code::UnreadableHooks]);
    record.hooks = r#"[{"name":"h","last_run":{"phase":""}}]"#;
    assert_eq!(codes(&[record.clone()]), []);
    record.hooks = "[";
    assert_eq!(codes(&[record]), [Code::Undecodable]);
}
