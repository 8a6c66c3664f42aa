//! Dumps that somebody edited: whatever was done to one line, no revision goes missing silently.

use std::fmt::Write as _;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::release::{CodecLimits, Summary, encode};

use super::{WHOLE, read};

/// The revisions of release `web` in each dump.
const REVISIONS: [i64; 3] = [1, 2, 3];

/// A kind of object that holds records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Secret,
    ConfigMap,
}

/// The lines of a record's object as `kubectl` orders them.
fn object(kind: Kind, revision: i64) -> Vec<String> {
    let json = WHOLE
        .replace(r#""name":"x""#, r#""name":"web""#)
        .replace(r#""version":1,"#, &format!(r#""version":{revision},"#));
    let release = encode(&json).unwrap();
    let (kind, data, secret_type) = match kind {
        Kind::Secret => ("Secret", STANDARD.encode(&release), Some("type: helm.sh/release.v1")),
        Kind::ConfigMap => ("ConfigMap", release, None),
    };
    let head = [
        "apiVersion: v1".to_owned(),
        "data:".to_owned(),
        format!("  release: {data}"),
        format!("kind: {kind}"),
    ];
    let metadata = [
        "metadata:".to_owned(),
        "  labels:".to_owned(),
        "    modifiedAt: '1796008034'".to_owned(),
        "    name: web".to_owned(),
        "    owner: helm".to_owned(),
        format!("    version: '{revision}'"),
        format!("  name: sh.helm.release.v1.web.v{revision}"),
        "  namespace: ns".to_owned(),
    ];
    head.into_iter().chain(metadata).chain(secret_type.map(str::to_owned)).collect()
}

/// Something else between the records.
fn other() -> Vec<String> {
    let lines = ["apiVersion: v1", "kind: Service", "metadata:", "  name: a", "spec: {}"];
    lines.map(str::to_owned).to_vec()
}

fn objects(kind: Kind) -> Vec<Vec<String>> {
    let [first, second, third] = REVISIONS.map(|revision| object(kind, revision));
    vec![first, second, other(), third]
}

/// A list as `kubectl` writes it, or with its kind first and its dashes moved in.
fn list(kind: Kind, dash: &str, kind_first: bool) -> String {
    let mut text = "apiVersion: v1\n".to_owned();
    let end = "kind: List\nmetadata:\n  resourceVersion: ''\n";
    if kind_first {
        text += end;
    }
    text += "items:\n";
    for object in objects(kind) {
        for (index, line) in object.iter().enumerate() {
            writeln!(text, "{dash}{}{line}", if index == 0 { "- " } else { "  " }).unwrap();
        }
    }
    if !kind_first {
        text += end;
    }
    text
}

fn documents(kind: Kind) -> String {
    objects(kind).iter().map(|lines| lines.join("\n") + "\n").collect::<Vec<_>>().join("---\n")
}

fn json(kind: Kind) -> String {
    let value = goyaml::from_yaml(list(kind, "", false).as_bytes(), &goyaml::Limits::default());
    let value: serde_json::Value =
        serde_json::from_str(&goyaml::json::to_json(&value.unwrap()).unwrap()).unwrap();
    serde_json::to_string_pretty(&value).unwrap() + "\n"
}

/// What an edit makes of a line, and of the line's end.
type Edit = (&'static str, fn(&str) -> String);

fn dedented(line: &str, by: usize) -> String {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    line[by.min(blanks)..].to_owned() + "\n"
}

const EDITS: &[Edit] = &[
    ("deleted", |_| String::new()),
    ("twice", |line| format!("{line}\n{line}\n")),
    ("joined with the next", |line| format!("{line} ")),
    ("joined with the next, no blank", str::to_owned),
    ("a tab before it", |line| format!("\t{line}\n")),
    ("a tab for its indentation", |line| format!("\t{}\n", line.trim_start())),
    ("a tab for two blanks", |line| format!("{}\n", line.replacen("  ", "\t", 1))),
    ("out by one", |line| dedented(line, 1)),
    ("out by two", |line| dedented(line, 2)),
    ("out by three", |line| dedented(line, 3)),
    ("out by four", |line| dedented(line, 4)),
    ("in by one", |line| format!(" {line}\n")),
    ("in by two", |line| format!("  {line}\n")),
    ("in by four", |line| format!("    {line}\n")),
    ("no-break blanks", |line| format!("\u{a0}{line}\n")),
    ("without its colon", |line| line.replacen(':', "", 1) + "\n"),
    ("an equals sign", |line| line.replacen(':', "=", 1) + "\n"),
    ("no blank behind the colon", |line| line.replacen(": ", ":", 1) + "\n"),
    ("without its last sign", |line| {
        line.chars().take(line.chars().count() - 1).collect::<String>() + "\n"
    }),
    ("without its first sign", |line| line.trim_start().chars().skip(1).collect::<String>() + "\n"),
    ("a comment", |line| format!("#{line}\n")),
    ("a comment in its place", |_| "# here\n".to_owned()),
    ("a comment before it", |line| format!("# here\n{line}\n")),
    ("a document's start before it", |line| format!("---\n{line}\n")),
    ("a document's end before it", |line| format!("...\n{line}\n")),
    ("a key of the list before it", |line| format!("kind: List\n{line}\n")),
    ("an odd line before it", |line| format!("<<<<<<< HEAD\n{line}\n")),
    ("a quote", |line| format!("{line}'\n")),
    ("a bracket", |line| format!("{line}{{\n")),
    ("a closing bracket before it", |line| format!("]\n{line}\n")),
    ("a list's end before it", |line| format!("],\"more\":[\n{line}\n")),
    ("an array's start before it", |line| format!("[\n{line}\n")),
    ("an object's end before it", |line| format!("}},\n{line}\n")),
];

/// The revisions of `web` that are neither there nor told to be unreadable.
fn lost(text: &str) -> Vec<i64> {
    let found = read(text);
    let mut there = Vec::new();
    let mut hides: Vec<_> = found.faults.iter().map(|fault| fault.hides.clone()).collect();
    for record in found.items {
        let json = record.decode(&CodecLimits::default()).ok();
        let summary = json.and_then(|json| Summary::from_json(&json).ok());
        match summary {
            Some(summary) if record.may_be_of("web") => there.push(summary.revision),
            Some(_) => {}
            None => hides.push(record.hides()),
        }
    }
    let is_lost = |revision: &i64| {
        !there.contains(revision)
            && !hides.iter().any(|hides| hides.may_be("web", |other| other == *revision))
    };
    REVISIONS.into_iter().filter(is_lost).collect()
}

fn dumps() -> Vec<String> {
    let of = |kind| {
        [
            list(kind, "", false),
            list(kind, "", true),
            list(kind, "  ", false),
            documents(kind),
            json(kind),
        ]
    };
    [Kind::Secret, Kind::ConfigMap].into_iter().flat_map(of).collect()
}

/// The dump with an edit of each of `range`'s lines.
fn edited(lines: &[&str], range: &Range<usize>, edit: fn(&str) -> String) -> String {
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        if range.contains(&index) {
            text += &edit(line);
        } else {
            text += line;
            text.push('\n');
        }
    }
    text
}

/// Edits every range of `length` lines of every dump.
fn edit_all(length: usize, edits: &[Edit]) {
    let mut silent = Vec::new();
    for (number, dump) in dumps().iter().enumerate() {
        let found = read(dump.clone());
        assert!(found.faults.is_empty() && lost(dump).is_empty(), "{dump}");
        let lines: Vec<&str> = dump.lines().collect();
        for index in 0..=lines.len() - length {
            for (name, edit) in edits {
                let lost = lost(&edited(&lines, &(index..index + length), *edit));
                if !lost.is_empty() {
                    let short: String = lines[index].chars().take(40).collect();
                    silent.push(format!("dump {number}, line {index} {short:?} {name}: {lost:?}"));
                }
            }
        }
    }
    assert!(silent.is_empty(), "{} silent losses\n{}", silent.len(), silent.join("\n"));
}

#[test]
fn one_line_of_a_dump_edited() {
    edit_all(1, EDITS);
}

#[test]
fn lines_of_a_dump_moved() {
    let moved: Vec<Edit> = EDITS
        .iter()
        .copied()
        .filter(|(name, _)| name.starts_with("in by") || name.starts_with("out by"))
        .collect();
    for length in [2, 3, 5, 8] {
        edit_all(length, &moved);
    }
}

/// JSON whose brackets moved.
#[test]
fn items_that_stand_elsewhere() {
    for kind in [Kind::Secret, Kind::ConfigMap] {
        let dump = json(kind);
        let list: serde_json::Value = serde_json::from_str(&dump).unwrap();
        let items = list["items"].as_array().unwrap();
        let of = |items: &[serde_json::Value]| serde_json::to_string(items).unwrap();
        let (first, rest) = (of(&items[..1]), of(&items[1..]));
        let last = &items[3];
        let text = serde_json::to_string(&last.to_string()).unwrap();
        // The text, what is not in it, and whether it reads without a fault.
        for (text, absent, is_good) in [
            (format!(r#"{{"kind":"List","items":{first},"more":{rest}}}"#), &[][..], false),
            (format!(r#"{{"kind":"List","more":{rest},"items":{first}}}"#), &[], false),
            (format!(r#"{{"kind":"List","items":[{first},{rest}]}}"#), &[], true),
            (format!("[{first},{rest}]"), &[], true),
            (
                format!(r#"[{{"kind":"List","items":{first}}},{{"kind":"List","items":{rest}}}]"#),
                &[],
                true,
            ),
            (
                format!(r#"{{"kind":"List","items":[{{"kind":"List","items":{first}}},{text}]}}"#),
                &[2],
                false,
            ),
            (format!("[{},{text}]", of(&items[..3])), &[], false),
            (format!("{first}{rest}"), &[], true),
            (format!("{first}\n{text}\n{rest}"), &[], false),
        ] {
            assert_eq!(lost(&text), absent, "{text}");
            assert_eq!(read(text.clone()).faults.is_empty(), is_good, "{text}");
            // The same in YAML's flow layout, which is read as a whole.
            if !text.contains('\n') && !text.contains("][") {
                let yaml = format!("# a\n{text}\n");
                assert!(lost(&yaml).iter().all(|lost| absent.contains(lost)), "{yaml}");
                assert_eq!(read(yaml.clone()).faults.is_empty(), is_good, "{yaml}");
            }
        }
    }
}

#[test]
fn what_only_mentions_records_is_no_fault() {
    let of = |kind: &str, rest: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: a\n  namespace: ns\n{rest}")
    };
    let record = object(Kind::Secret, 1).join("\n");
    let text = record.replace('\n', "\n    ");
    let payload = record.lines().nth(2).unwrap();
    let objects = [
        of("Event", "involvedObject:\n  kind: Secret\n  name: sh.helm.release.v1.web.v1\n"),
        of("Role", "rules:\n- resourceNames:\n  - sh.helm.release.v1.web.v1\n"),
        // A manifest kept as text, and a copy of a record under a name of its own.
        of("ConfigMap", &format!("data:\n  web.yaml: |\n    {text}\n")),
        of("Secret", &format!("data:\n{payload}\ntype: example.com/backup\n")),
        of("ConfigMap", "data:\n  items: |\n    items:\n    - sh.helm.release.v1.web.v1\n"),
        // No object of Kubernetes.
        "items:\n- a\nother:\n- b\nitems2:\n  c: d\n".to_owned(),
        "a: 1\na: 2\n".to_owned(),
    ];
    let item = |text: &String| format!("- {}\n", text.trim_end().replace('\n', "\n  "));
    let items: String = objects.iter().map(item).collect();
    let list = format!("apiVersion: v1\nitems:\n{items}kind: List\n");
    for text in [objects.join("---\n"), list] {
        let faults = read(text.clone()).faults;
        assert!(faults.is_empty(), "{faults:?}\n{text}");
    }
}
