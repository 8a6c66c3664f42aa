//! Records and dumps that are broken in every layer: an error says where, the other records of
//! the same dump are still there, and nothing panics.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how a test fails")]

mod edits;
mod files;

use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use helm_rs::error_chain;
use helm_rs::release::input::{Input, InputLimits, Scan, StoredRecord, scan};
use helm_rs::release::{CodecError, CodecLimits, Record, Summary, decode, encode};

/// A record with every field that Helm writes.
const WHOLE: &str = r#"{"name":"x","info":{"first_deployed":"2026-01-02T03:04:05.6Z","last_deployed":"2026-01-02T03:04:05.6Z","deleted":"","description":"Install complete","status":"deployed","notes":"n"},"chart":{"metadata":{"name":"c","version":"1.0.0","apiVersion":"v2","appVersion":"1","annotations":{"a":"b"},"keywords":["k"],"maintainers":[{"name":"m"}],"dependencies":[{"name":"d","version":"1"}]},"lock":{"generated":"2026-01-02T03:04:05Z","digest":"d","dependencies":[]},"templates":[{"name":"templates/a.yaml","data":"YTogYg=="}],"values":{"a":1},"schema":"e30=","files":[{"name":"f","data":"Zg=="}]},"config":{"a":2},"manifest":"---\nkind: ConfigMap\n","hooks":[{"name":"h","kind":"Job","path":"p","manifest":"m","events":["test"],"last_run":{"started_at":"","completed_at":"","phase":""},"weight":1,"delete_policies":["before-hook-creation"],"output_log_policies":["hook-failed"]}],"version":1,"namespace":"ns"}"#;

/// Helm's layers around JSON text that need not be text.
fn packed(json: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(json).unwrap();
    STANDARD.encode(gzip.finish().unwrap()).into_bytes()
}

fn secret(name: &str, release: &[u8]) -> String {
    let release = STANDARD.encode(release);
    format!(
        r#"{{"apiVersion":"v1","kind":"Secret","type":"helm.sh/release.v1","metadata":{{"name":"sh.helm.release.v1.{name}.v1","namespace":"ns","labels":{{"owner":"helm","name":"{name}"}}}},"data":{{"release":"{release}"}}}}"#
    )
}

fn good(name: &str) -> String {
    secret(
        name,
        encode(&WHOLE.replace(r#""name":"x""#, &format!(r#""name":"{name}""#))).unwrap().as_bytes(),
    )
}

fn read(text: impl Into<Vec<u8>>) -> Scan<StoredRecord> {
    let stream = Box::new(Cursor::new(text.into()));
    scan(vec![Input::Stream("in".to_owned(), stream)], &InputLimits::default(), None, Some)
}

/// What can be read, and the text of every error, as `list` would tell it.
fn listed(text: impl Into<Vec<u8>>) -> (Vec<String>, Vec<String>) {
    let found = read(text);
    let mut names = Vec::new();
    let mut errors: Vec<String> = found.faults.iter().map(|fault| error_chain(fault)).collect();
    errors.extend(found.empty.iter().map(|name| format!("no release record in {name}")));
    for record in found.items {
        let summary = record
            .decode(&CodecLimits::default())
            .map_err(|error| error_chain(&error))
            .and_then(|json| {
                every_view(&json);
                Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))
            });
        match summary {
            Ok(summary) => names.push(summary.name),
            Err(error) => errors.push(format!("{}: {}: {error}", record.place, record.title())),
        }
    }
    (names, errors)
}

/// Reads everything that can be read of a record; only that nothing panics is of interest.
fn every_view(json: &str) -> bool {
    let Ok(record) = Record::from_json(json) else { return false };
    [
        record.info().is_ok(),
        record.hooks().is_ok(),
        record.manifest().is_ok(),
        record.name().is_ok(),
        record.namespace().is_ok(),
        record.revision().is_ok(),
        record.chart().is_ok(),
        record.user_values().is_ok(),
        record.coalesced_values(&mut Vec::new()).is_ok(),
        record.user_values().ok().is_some_and(|values| {
            record.to_helm_json(values, str::to_owned, str::to_owned, None).is_ok()
        }),
    ]
    .into_iter()
    .all(|good| good)
}

/// A dump with a bad release between two good ones: the good ones are listed, and one error names
/// file, object and layer.
fn between(release: &[u8], layer: &str) {
    let list = format!(
        r#"{{"apiVersion":"v1","kind":"List","items":[{},{},{}]}}"#,
        good("a"),
        secret("bad", release),
        good("b")
    );
    let (names, errors) = listed(list);
    assert_eq!(names, ["a", "b"], "{layer}");
    let [error] = errors.as_slice() else { panic!("{layer}: {errors:?}") };
    assert!(error.starts_with("in object 2: Secret sh.helm.release.v1.bad.v1: "), "{error}");
    assert!(error.contains(layer), "{error} has no {layer}");
}

#[test]
fn a_release_cut_at_every_byte() {
    let release = encode(WHOLE).unwrap();
    let (a, b) = (good("a"), good("b"));
    for end in 0..release.len() {
        let cut = secret("bad", &release.as_bytes()[..end]);
        let (names, errors) = listed(format!("{a}\n{cut}\n{b}\n"));
        assert_eq!(names, ["a", "b"], "cut at {end}");
        assert_eq!(errors.len(), 1, "cut at {end}: {errors:?}");
        assert!(errors[0].contains(" layer"), "cut at {end}: {}", errors[0]);
    }
}

#[test]
fn json_cut_at_every_byte() {
    for end in 0..WHOLE.len() {
        let release = packed(&WHOLE.as_bytes()[..end]);
        let json = decode(&release, CodecLimits::default()).unwrap();
        assert!(Summary::from_json(&json).is_err(), "cut at {end}");
        assert!(!every_view(&json), "cut at {end}");
    }
    between(&packed(&WHOLE.as_bytes()[..100]), "JSON layer");
}

#[test]
fn every_dump_cut_at_every_byte() {
    let (a, b) = (good("a"), good("b"));
    let json = format!(r#"{{"kind":"List","items":[{a},{b}]}}"#);
    let value = goyaml::from_yaml(json.as_bytes(), &goyaml::Limits::default()).unwrap();
    // As kubectl writes it: the list's kind behind its items.
    let yaml = goyaml::to_yaml(&value).unwrap();
    let yaml = format!("apiVersion: v1\n{yaml}");
    let mut archive = tar::Builder::new(Vec::new());
    for (name, text) in [("a.json", &a), ("b.json", &b)] {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_cksum();
        archive.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let archive = archive.into_inner().unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&archive).unwrap();
    let gzip = gzip.finish().unwrap();
    let list = protobuf(&["a", "b"]);
    // Where the second record begins: from there on the first one is whole.
    let second = |dump: &[u8], mark: &[u8]| {
        dump.windows(mark.len()).rposition(|window| window == mark).unwrap()
    };
    let last = list.len() - field(2, &item("b")).len();
    // The same list with its kind first, as people write it, and with blanks in its JSON.
    let by_hand = format!("kind: List\n{}", yaml.replace("\nkind: List\n", "\n"));
    let pretty = json.replace("},{", "},\n  {");
    for (from, dump) in [
        (second(json.as_bytes(), b"{\"apiVersion"), json.clone().into_bytes()),
        (second(pretty.as_bytes(), b"{\"apiVersion"), pretty.into_bytes()),
        (second(yaml.as_bytes(), b"- apiVersion"), yaml.into_bytes()),
        (second(by_hand.as_bytes(), b"- apiVersion"), by_hand.into_bytes()),
        (second(&archive, b"b.json"), archive),
        (gzip.len(), gzip),
        (last, list),
    ] {
        let whole = listed(dump.clone());
        assert_eq!(whole, (vec!["a".to_owned(), "b".to_owned()], vec![]));
        for end in 0..dump.len() {
            let (names, errors) = listed(&dump[..end]);
            assert!(["a", "b"].starts_with(&names.iter().map(String::as_str).collect::<Vec<_>>()));
            assert!(names.len() >= usize::from(end > from), "cut at {end}: {names:?} {errors:?}");
            // An archive tells of its entry and of itself.
            assert!(errors.len() <= 2, "cut at {end}: {errors:?}");
            // By hand: only what stands in the last object can tell.
            let is_told = names.len() == 2 || !errors.is_empty();
            let is_between = dump.starts_with(b"kind") && end <= from && names.len() == 1;
            let is_archive = dump.len() % 512 == 0 && end % 512 == 0;
            assert!(
                is_told || is_between || is_archive,
                "cut at {end} of {}: {names:?} {:?}",
                dump.len(),
                String::from_utf8_lossy(&dump[..end])
            );
        }
    }
}

#[test]
fn a_single_object_cut_at_every_byte() {
    let json = good("a");
    let value = goyaml::from_yaml(json.as_bytes(), &goyaml::Limits::default()).unwrap();
    let yaml = goyaml::to_yaml(&value).unwrap();
    let config_map = yaml.replace("kind: Secret", "kind: ConfigMap");
    let no_labels = yaml.replace("  labels:\n    name: a\n    owner: helm\n", "");
    assert!(no_labels.len() < yaml.len());
    for (is_yaml, dump) in [(false, json), (true, yaml), (true, config_map), (true, no_labels)] {
        for end in 0..dump.len() {
            let (names, errors) = listed(&dump.as_bytes()[..end]);
            assert!(names.len() == 1 || errors.len() == 1, "cut at {end}: {names:?} {errors:?}");
            // From where it shows that this is a record, an error says what happened.
            if is_yaml && end > dump.find("release: ").unwrap() + 10 {
                let line = dump[..end].lines().count();
                let told = format!("the file ends inside this object, at line {line}");
                let is_whole = names.len() == 1 || errors[0].contains("layer");
                let is_told = errors.first().is_some_and(|error| error.contains(": line "));
                assert!(
                    is_whole || is_told || errors[0].contains(&told),
                    "cut at {end}: {errors:?}"
                );
            }
        }
    }
}

#[test]
fn every_layer_corrupted() {
    let release = encode(WHOLE).unwrap();
    let gzip = STANDARD.decode(&release).unwrap();
    for at in 0..release.len() {
        let mut bad = release.clone().into_bytes();
        bad[at] ^= 0x15;
        drop(listed(secret("bad", &bad)));
    }
    for at in 0..gzip.len() {
        let mut bad = gzip.clone();
        bad[at] ^= 0x55;
        drop(listed(secret("bad", STANDARD.encode(bad).as_bytes())));
    }
    for at in 0..WHOLE.len() {
        for byte in [0, b'"', b'{', b']', 0xff, b'9'] {
            let mut bad = WHOLE.as_bytes().to_vec();
            bad[at] = byte;
            drop(listed(secret("bad", &packed(&bad))));
        }
    }
    let mut bad = release.clone().into_bytes();
    bad[40] = b'%';
    between(&bad, "base64 layer: invalid byte 0x25 at byte 40");
    let mut bad = gzip.clone();
    let end = bad.len();
    bad[end - 6] ^= 1;
    between(STANDARD.encode(&bad).as_bytes(), "gzip layer");
    // The last four bytes claim the size of what was packed: two gigabytes.
    let mut bad = gzip;
    bad[end - 4..].copy_from_slice(&0x8000_0000_u32.to_le_bytes());
    between(STANDARD.encode(&bad).as_bytes(), "gzip layer");
    let list = format!("{}\n{}\n", good("a"), secret("bad", b"x").replace("eA==", "e%=="));
    let (names, errors) = listed(list);
    assert_eq!(names, ["a"]);
    assert!(errors[0].contains("Secret layer"), "{}", errors[0]);
}

#[test]
fn bombs_and_claims() {
    let spaces = vec![b' '; CodecLimits::default().decompressed + 1];
    let bomb = packed(&spaces);
    assert!(bomb.len() < 1_000_000);
    between(&bomb, "gzip layer: decompresses to more than 33554432 bytes");
    for field in ["hooks", "new"] {
        let many = format!(r#"{{"name":"bad","{field}":[{}{{}}]}}"#, "{},".repeat(1_000_000));
        between(&packed(many.as_bytes()), "JSON layer: more than 1000000 values");
    }
    assert!(matches!(decode(&bomb, CodecLimits::default()), Err(CodecError::TooLarge { .. })));
    // An archive whose entry claims two gigabytes, and ends.
    let mut header = tar::Header::new_ustar();
    header.set_path("a.json").unwrap();
    header.set_size(1 << 31);
    header.set_cksum();
    let mut archive = header.as_bytes().to_vec();
    archive.extend_from_slice(good("a").as_bytes());
    assert_eq!(listed(archive).0, ["a"]);
    // A list whose item claims two gigabytes.
    let mut list = protobuf(&["a"]);
    let at = list.len() - field(2, &item("a")).len();
    list.truncate(at);
    list.extend_from_slice(&[0x12, 0x80, 0x80, 0x80, 0x80, 0x08]);
    let (names, errors) = listed(list);
    assert_eq!((names.len(), errors.len()), (0, 1), "{errors:?}");
}

#[test]
fn deep_json() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let objects = r#"{"a":"#.repeat(200_000) + "1" + &"}".repeat(200_000);
    for value in [&deep, &objects] {
        for field in ["config", "chart", "info", "hooks", "manifest", "name", "new"] {
            let json = format!(r#"{{"name":"x","{field}":{value}}}"#);
            every_view(&json);
            drop(Summary::from_json(&json));
            drop(listed(secret("bad", &packed(json.as_bytes()))));
        }
        drop(listed(format!(r#"{{"kind":"Secret","metadata":{value}}}"#)));
    }
    drop(listed(format!("items:\n- kind: Secret\n  metadata: {deep}\n")));
    between(&packed(format!(r#"{{"info":{deep}}}"#).as_bytes()), "JSON layer");
}

#[test]
fn wrong_types_in_every_field() {
    let whole: serde_json::Value = serde_json::from_str(WHOLE).unwrap();
    let mut paths = Vec::new();
    collect(&whole, String::new(), &mut paths);
    assert!(paths.len() > 50, "{paths:?}");
    assert!(every_view(WHOLE));
    for path in &paths {
        for wrong in ["null", "true", "7", "-1.5", "1e400", "\"text\"", "[]", "{}", "[null]"] {
            let mut record = whole.clone();
            *record.pointer_mut(path).unwrap() = serde_json::Value::from("\u{1}here\u{1}");
            let json = record.to_string().replace("\"\\u0001here\\u0001\"", wrong);
            let fits = every_view(&json);
            // Null is nothing, for Go; but it is no item of a list, and no record.
            let is_item = path.ends_with("/0") || path == "/chart" || path.is_empty();
            assert!(fits || wrong != "null" || is_item, "{path} null");
            let list = format!(
                "{}\n{}\n{}\n",
                good("a"),
                secret("bad", &packed(json.as_bytes())),
                good("b")
            );
            let (names, errors) = listed(list);
            assert_eq!(names.len() + errors.len(), 3, "{path} {wrong}: {errors:?}");
            assert!(names.starts_with(&["a".to_owned()]) && names.ends_with(&["b".to_owned()]));
            for error in errors {
                assert!(error.contains("Secret sh.helm.release.v1.bad.v1: JSON layer"), "{error}");
            }
        }
    }
}

fn collect(value: &serde_json::Value, path: String, paths: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                collect(value, format!("{path}/{key}"), paths);
            }
        }
        serde_json::Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                collect(value, format!("{path}/{index}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

#[test]
fn nul_and_invalid_utf8() {
    let with = |bytes: &[u8]| {
        let at = WHOLE.find("Install").unwrap();
        let mut json = WHOLE.as_bytes().to_vec();
        json.splice(at..at, bytes.iter().copied());
        packed(&json)
    };
    between(&with(b"\xff\xfe"), "JSON layer: invalid UTF-8 at byte 131");
    between(&with(b"\0"), "JSON layer: control character");
    let json = decode(&with(br"\u0000"), CodecLimits::default()).unwrap();
    assert!(every_view(&json));
    assert_eq!(Record::from_json(&json).unwrap().to_json(), json);
    // In the dump itself, beside the record.
    for bytes in [&b"\xff"[..], b"\0", b"\xed\xa0\x80"] {
        for mark in [&b"\"name\":\"bad\""[..], b"helm.sh/release.v1", b"sh.helm.release.v1.bad"] {
            let bad = secret("bad", b"").into_bytes();
            let at = bad.windows(mark.len()).position(|window| window == mark).unwrap();
            let mut text = good("a").into_bytes();
            text.push(b'\n');
            text.extend_from_slice(&bad[..=at]);
            text.extend_from_slice(bytes);
            text.extend_from_slice(&bad[at + 1..]);
            text.push(b'\n');
            text.extend_from_slice(good("b").as_bytes());
            let (names, _) = listed(text);
            assert_eq!(names, ["a", "b"]);
        }
    }
}

/// A field of a protobuf message.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut size = value.len();
    while size >= 0x80 {
        out.push((size & 0x7f) as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
    out.extend_from_slice(value);
    out
}

/// A Secret with a record, as an API server sends it.
fn item(name: &str) -> Vec<u8> {
    let json = WHOLE.replace(r#""name":"x""#, &format!(r#""name":"{name}""#));
    let entry = |key: &str, value: &[u8]| [field(1, key.as_bytes()), field(2, value)].concat();
    let metadata = [
        field(1, format!("sh.helm.release.v1.{name}.v1").as_bytes()),
        field(3, b"ns"),
        vec![7 << 3, 5],
        field(11, &entry("owner", b"helm")),
        field(11, &entry("name", name.as_bytes())),
    ]
    .concat();
    let data = entry("release", encode(&json).unwrap().as_bytes());
    [field(1, &metadata), field(2, &data), field(3, b"helm.sh/release.v1")].concat()
}

fn protobuf(names: &[&str]) -> Vec<u8> {
    let about = [field(1, b"v1"), field(2, b"SecretList")].concat();
    let mut list = field(1, &field(2, b"77"));
    list.extend(names.iter().flat_map(|name| field(2, &item(name))));
    [b"k8s\0".to_vec(), field(1, &about), field(2, &list)].concat()
}

#[test]
fn an_api_servers_own_forms() {
    let found = read(protobuf(&["a", "b"]));
    assert_eq!((found.items.len(), found.faults.len()), (2, 0));
    let record = &found.items[0];
    assert_eq!((record.namespace.as_str(), record.label("owner")), ("ns", Some("helm")));
    // `kubectl get --raw`: only the list says what its items are.
    let bare = |name: &str| good(name).replace(r#""apiVersion":"v1","kind":"Secret","#, "");
    let list = format!(
        r#"{{"kind":"SecretList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{},{}]}}"#,
        bare("a"),
        bare("b")
    );
    assert_eq!(listed(list.clone()), (vec!["a".to_owned(), "b".to_owned()], vec![]));
    assert_eq!(listed(list.replace("SecretList", "PodList")).0.len(), 0);
    // A list in a layout that the splitter does not see through.
    let flow = format!("# one\n{{kind: SecretList, items: [{}]}}\n", bare("a"));
    assert_eq!(listed(flow).0, ["a"]);
}

/// What can be read, and every fault with whether it may be release `a`'s.
fn hidden(text: &str) -> (Vec<String>, Vec<(String, bool)>) {
    let found = read(text);
    let faults = found.faults.iter();
    let faults =
        faults.map(|fault| (error_chain(fault), fault.hides.may_be("a", |_| true))).collect();
    (found.items.iter().map(|record| record.name.clone()).collect(), faults)
}

#[test]
fn objects_that_do_not_say_what_they_are() {
    let of = |json: &str| goyaml::from_yaml(json.as_bytes(), &goyaml::Limits::default()).unwrap();
    let bare = good("a").replace(r#""kind":"Secret","#, "");
    assert_ne!(bare, good("a"));
    let object = "sh.helm.release.v1.a.v1";
    for kind in ["List", "SecretList"] {
        let json = format!(r#"{{"apiVersion":"v1","kind":"{kind}","items":[{bare},{bare}]}}"#);
        let yaml = goyaml::to_yaml(&of(&json)).unwrap();
        let kind_first =
            format!("kind: {kind}\n{}", yaml.replace(&format!("\nkind: {kind}\n"), "\n"));
        let flow = format!("a: b\n---\n{json}\n");
        for text in [json, yaml, kind_first, flow] {
            let (names, faults) = hidden(&text);
            if kind == "List" {
                assert!(names.is_empty() && faults.len() == 2, "{text}\n{faults:?}");
                for (fault, is_ours) in faults {
                    assert!(
                        fault.contains(&format!("{object}: has no kind")) && is_ours,
                        "{fault}"
                    );
                }
            } else {
                assert_eq!((names, faults), (vec![object.to_owned(); 2], vec![]), "{text}");
            }
        }
    }
    let odd = good("a").replace(r#""kind":"Secret""#, r#""kind":"Secrt""#);
    assert!(hidden(&odd).1[0].0.contains("is a Secrt, and holds a release"));
}

#[test]
fn what_a_broken_object_may_be() {
    let list = |text: &str| format!("apiVersion: v1\nitems:\n{text}kind: List\n");
    let item = |name: &str| {
        let json = goyaml::from_yaml(good(name).as_bytes(), &goyaml::Limits::default()).unwrap();
        format!("- {}", goyaml::to_yaml(&json).unwrap().trim_end().replace('\n', "\n  ")) + "\n"
    };
    for (text, is_ours) in [
        (list(&(item("b") + &item("a").replace("kind:", "kind"))), true),
        (list(&(item("b") + &item("c").replace("kind:", "kind"))), false),
        (list(&(item("b") + &item("a").replace("kind:", "\tkind:"))), true),
        (list(&(item("b") + &item("a").replace("kind:", "kind\0:"))), true),
        (good("b") + "\n" + &good("a").replace(r#""kind":"#, r#""kind" "#), true),
        (good("b") + "\n" + &good("c").replace(r#""kind":"#, r#""kind" "#), false),
        (good("b") + "\n" + &good("c").replace(r#""data":"#, r"data:"), false),
        ("apiVersion: v1\nkind Secret\nmetadata:\n  x: {\n".to_owned(), false),
        ("apiVersion: v1\nkind Secret\ndata: {release: x}\n".to_owned(), true),
        ("apiVersion: v1\ndata:\n  rel".to_owned(), true),
        ("\0apiVersion: v1\ndata: {release: x}\n".to_owned(), true),
    ] {
        let (_, faults) = hidden(&text);
        assert!(faults.len() == 1 && faults[0].1 == is_ours, "{text:?} {faults:?}");
    }
    // What is binary is passed over as before.
    assert_eq!(hidden("\x7fELF\0\0"), (vec![], vec![]));
}

#[test]
fn cut_in_the_head_of_an_object() {
    let json = goyaml::from_yaml(good("a").as_bytes(), &goyaml::Limits::default()).unwrap();
    let item = goyaml::to_yaml(&json).unwrap().trim_end().replace('\n', "\n  ");
    let data_last = "- apiVersion: v1\n  kind: Secret\n  metadata:\n    labels:\n      owner: helm\n    name: sh.helm.release.v1.b.v1\n    namespace: ns\n  data:\n";
    let text = format!("apiVersion: v1\nkind: List\nitems:\n- {item}\n{data_last}");
    let from = text.rfind("- apiVersion").unwrap() + 20;
    for end in from..text.len() {
        let (names, faults) = hidden(&text[..end]);
        assert!(names.len() == 1 && faults.len() == 1, "{:?} {faults:?}", &text[from..end]);
    }
    for end in ["kind: Secr", "name: sh.helm.rel", "release.v1.b.v1"] {
        let (_, faults) = hidden(&text[..text.rfind(end).unwrap() + end.len()]);
        assert!(faults[0].0.contains("the file ends inside this object") && faults[0].1);
    }
    // A record whose last lines are missing, its name among them.
    let single = goyaml::to_yaml(&json).unwrap();
    for end in ["owner: he", "owner: helm\n", "namespace: n"] {
        let end = single.find(end).unwrap_or_else(|| panic!("{single}")) + end.len();
        let (names, faults) = hidden(&single[..end]);
        assert!(names.is_empty() && faults[0].0.contains("ends inside"), "{names:?} {faults:?}");
    }
}
