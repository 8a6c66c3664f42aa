use std::io::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::cluster::{Discovery, Resource, ServerVersion, Subject};

fn about() -> About {
    let mut scaled = Resource::builtin("apps/v1", "Deployment", "deployments", true);
    scaled.subresources.push("scale".to_owned());
    let discovery = Discovery::new(
        vec![("apps".to_owned(), vec!["v1".to_owned()])],
        vec![scaled],
        ["apps/v1/Scale".to_owned()].into(),
        Vec::new(),
    );
    let version = ServerVersion { git_version: "v1.36.4".to_owned(), ..ServerVersion::default() };
    let user = Subject { user: "me".to_owned(), ..Subject::default() };
    let mut about = About::new(version, &user, &discovery);
    "uid".clone_into(&mut about.cluster);
    about
}

fn objects() -> Vec<Value> {
    (0..3).map(|n| json!({"kind": "ConfigMap", "metadata": {"name": format!("n{n}")}})).collect()
}

fn written() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &about()).unwrap();
    for object in objects() {
        writer.object(&object).unwrap();
    }
    writer.finish(vec!["secrets: forbidden".to_owned()], Vec::new()).unwrap()
}

fn all(bytes: &[u8], limits: &Limits) -> Result<(About, End, Vec<Value>), SnapshotError> {
    let mut found = Vec::new();
    let (about, end) = read(bytes, limits, |_| {}, |object| found.push(object))?;
    Ok((about, end, found))
}

#[test]
fn what_is_written_is_read() {
    let text = written();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&text).unwrap();
    for bytes in [text, packed.finish().unwrap()] {
        let (head, end, found) = all(&bytes, &Limits::default()).unwrap();
        assert_eq!((&head, found), (&about(), objects()));
        assert_eq!((end.objects, end.unread.len()), (3, 1));
        let kind = crate::cluster::Kind::new("apps/v1", "Deployment");
        let discovery = head.discovery();
        assert_eq!(discovery.resource(&kind).unwrap().subresources, ["scale"]);
        assert!(discovery.api_versions().contains(&"apps/v1/Scale".to_owned()));
    }
}

#[test]
fn a_cut_file_is_never_whole() {
    let text = written();
    for end in 0..text.len() - 1 {
        let error = all(&text[..end], &Limits::default()).unwrap_err();
        let is_told = matches!(error, SnapshotError::Cut { .. } | SnapshotError::Foreign);
        assert!(is_told, "cut at {end}: {error}");
    }
    // The last line break carries nothing.
    all(&text[..text.len() - 1], &Limits::default()).unwrap();
}

#[test]
fn a_changed_file_is_told() {
    let text = String::from_utf8(written()).unwrap();
    let read = |text: &str| all(text.as_bytes(), &Limits::default()).unwrap_err().to_string();
    assert!(read(&text.replacen("n1", "nx", 1)).contains("the digest"));
    let lines: Vec<&str> = text.lines().collect();
    let without = [&lines[..2], &lines[3..]].concat().join("\n");
    assert!(read(&without).contains("the number of objects"));
    assert!(read(&format!("{text}{text}")).contains("two snapshots in one file"));
    assert!(read(&text.replacen(":1,", ":7,", 1)).contains("schema version 7"));
    assert!(read(&text.replacen("{\"kind\":\"ConfigMap\"", "[1", 1)).contains("line 2: "));
    for foreign in ["", "\n", "[]", "kind: List\n", "{\"kind\":\"List\"}\n", "\u{1f}\u{8b}"] {
        assert!(all(foreign.as_bytes(), &Limits::default()).is_err(), "{foreign:?}");
    }
}

#[test]
fn there_is_an_end_to_what_is_read() {
    let text = written();
    let told = |limits: Limits| match all(&text, &limits).unwrap_err() {
        SnapshotError::TooMuch { number, limit } => (number, limit),
        other => panic!("{other}"),
    };
    assert_eq!(told(Limits { objects: 2, ..Limits::default() }), (4, "2 objects".to_owned()));
    assert_eq!(told(Limits { line: 40, ..Limits::default() }).1, "40 bytes in a line");
    assert_eq!(told(Limits { total: 40, ..Limits::default() }).1, "40 bytes in all");
}
