//! Cases of chart loading, values and manifests whose expectations come from Helm's own code.
//!
//! Each file in `tests/chart_cases/` is a list of requests with the answer of a Go program that
//! runs the Helm packages (`tests/tools/chart-peer`, whose `refresh.py` says how the files are
//! written); here the same requests go to this crate. A case with `differs` is a known
//! difference with its reason, and fails when it has gone. With
//! `ICHOR_CHART_REQUESTS=FILE` the requests (one a line) are read from there and the answers
//! written to `FILE.out`, for comparing many generated ones.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::format_collect,
    reason = "a malformed case file is a failure of the test itself"
)]

mod go_json;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bstr::BString;
use goyaml::{Map, Value};
use helm_rs::capabilities::{Capabilities, KubeVersion};
use helm_rs::chart::{self, BufferedFile, Chart, IgnoreRules, Limits, Metadata, Warning};
use helm_rs::values::{self, Nulls, Options, SchemaCache};
use helm_rs::{compatible, error_chain, gopath, manifest, name};
use serde_json::{Value as Json, json};

use go_json::{dump, leave_out_files, lock, metadata, tag_map, untag};

/// A request, as the Go program understands it.
struct Request<'a>(&'a Json);

impl Request<'_> {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Json::as_str).unwrap_or_default()
    }

    fn list(&self, key: &str) -> Vec<&str> {
        let items = self.0.get(key).and_then(Json::as_array);
        items.into_iter().flatten().filter_map(Json::as_str).collect()
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Json::as_bool).unwrap_or_default()
    }

    fn values(&self) -> Map {
        let value = self.0.get("base").map_or(Value::Null, untag);
        value.into_map().unwrap_or_default()
    }

    fn files(&self) -> Vec<BufferedFile> {
        let file = |pair: &[&str]| BufferedFile {
            name: pair[0].to_owned(),
            data: pair[1].as_bytes().into(),
        };
        self.list("list").chunks_exact(2).map(file).collect()
    }

    fn load(&self, log: &mut Vec<Warning>) -> Result<Chart, chart::LoadError> {
        match self.text("path") {
            "" => chart::load_files(self.files(), &Limits::default(), log),
            path => chart::load(Path::new(path), &Limits::default(), log),
        }
    }
}

/// Floats compare by value, whatever their spelling.
fn normalize(value: &mut Json) {
    match value {
        Json::Number(number) => *value = json!(["f", number.as_f64().unwrap()]),
        Json::Array(items) => {
            if items.len() == 2 && items[0] == "f" {
                if let Some(text) = items[1].as_str() {
                    items[1] = json!(text.parse::<f64>().unwrap());
                }
                return;
            }
            items.iter_mut().for_each(normalize);
        }
        Json::Object(map) => map.values_mut().for_each(normalize),
        _ => {}
    }
}

fn sort_lines(answer: &mut Json, key: &str) {
    if let Some(text) = answer[key].as_str() {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        answer[key] = json!(lines.join("\n"));
    }
}

fn err(error: &dyn Error) -> Json {
    json!({"err": error_chain(error)})
}

fn answer<T, E: Error>(result: Result<T, E>, show: impl FnOnce(T) -> Json) -> Json {
    match result {
        Ok(value) => json!({"err": null, "ok": show(value)}),
        Err(error) => err(&error),
    }
}

fn handle(request: &Request) -> Json {
    let mut log = Vec::new();
    let mut response = respond(request, &mut log);
    let log: String = log.iter().map(|warning| format!("{warning}\n")).collect();
    if response.get("log").is_none() {
        response["log"] = json!(log);
    }
    response
}

fn respond(request: &Request, log: &mut Vec<Warning>) -> Json {
    let input = request.text("input");
    match request.text("op") {
        "strvals" => strvals(request),
        "options" => options(request),
        "loadfiles" | "load" => answer(request.load(log), |chart| dump(&chart, true)),
        "loaddir" => load_dir(request, log),
        "archive" => {
            let archive = BASE64.decode(input).unwrap();
            let chart = chart::load_archive(&archive, &Limits::default(), log);
            answer(chart, |chart| dump(&chart, true))
        }
        "archivefile" => {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(request.text("path"));
            fs::write(&path, BASE64.decode(input).unwrap()).unwrap();
            let chart = chart::load(&path, &Limits::default(), log);
            let text = answer(chart, |chart| dump(&chart, true)).to_string();
            let text = text.replace(directory.path().to_str().unwrap(), "$DIR");
            serde_json::from_str(&text).unwrap()
        }
        "process" | "render" => process(request, log),
        "coalesce" => {
            let chart = match request.load(&mut Vec::new()) {
                Ok(chart) => chart,
                Err(error) => return err(&error),
            };
            let join = if request.text("kind") == "merge" {
                values::merge_values
            } else {
                values::coalesce_values
            };
            answer(join(&chart, &request.values(), log), |values| tag_map(&values))
        }
        "schema" => match values::validate_schema(input.as_bytes(), &request.values(), log) {
            Ok(()) => json!({"err": null}),
            Err(text) => json!({"err": text}),
        },
        "ignore" => match IgnoreRules::parse(input.as_bytes()) {
            Ok(mut rules) => {
                rules.add_defaults();
                json!({"err": null, "ok": rules.ignores(request.text("path"), request.flag("dir"))})
            }
            Err(error) => err(&error),
        },
        "sort" => sort(request, log),
        "split" => {
            let documents = manifest::split_manifests(input.as_bytes());
            json!({"ok": documents.iter().map(ToString::to_string).collect::<Vec<_>>()})
        }
        "kube" => answer(KubeVersion::parse(input), |v| json!([v.version, v.major, v.minor])),
        "release" => match name::validate_release_name(input) {
            Ok(()) => json!({"err": null}),
            Err(error) => err(&error),
        },
        "metaname" => match name::validate_metadata_name(input) {
            Ok(()) => json!({"err": null}),
            Err(error) => err(&error),
        },
        "apis" => json!({"ok": Capabilities::default().api_versions}),
        "compat" => json!({"ok": compatible::is_compatible_range(input, request.text("path"))}),
        "metadata" => {
            let mut m = Metadata::default();
            if let Err(error) = chart::decode_metadata(input.as_bytes(), &mut m) {
                return err(&error);
            }
            let error =
                m.validate().map_or_else(|error| json!(error_chain(&error)), |()| Json::Null);
            json!({"err": error, "ok": metadata(&m)})
        }
        "lock" => match chart::decode_lock(input.as_bytes()) {
            Ok(found) => json!({"err": null, "ok": found.as_ref().map_or(Json::Null, lock)}),
            Err(error) => err(&error),
        },
        "match" => match gopath::matches(input, request.text("path")) {
            Ok(matched) => json!({"err": null, "ok": matched}),
            Err(error) => json!({"err": error.to_string(), "ok": false}),
        },
        "path" => json!({"ok": [
            gopath::clean(input),
            gopath::base(input),
            gopath::ext(input),
            gopath::join(input, request.text("path")),
        ]}),
        other => panic!("unknown op {other}"),
    }
}

fn strvals(request: &Request) -> Json {
    let mut base = request.values();
    let line = request.text("input").as_bytes();
    let mut read = |path: &str| {
        if path.starts_with("bad") {
            return Err(format!("open {path}: no such file or directory").into());
        }
        Ok(format!("<{path}>").into_bytes())
    };
    let result = match request.text("kind") {
        "set" => values::parse_set(line, &mut base),
        "string" => values::parse_set_string(line, &mut base),
        "json" => values::parse_json(line, &mut base),
        "literal" => values::parse_literal(line, &mut base),
        "file" => values::parse_file(line, &mut base, &mut read),
        other => panic!("unknown kind {other}"),
    };
    answer(result, |()| tag_map(&base))
}

fn options(request: &Request) -> Json {
    let list = |key: &str| -> Vec<String> {
        let items = request.0["opts"].get(key).and_then(Json::as_array);
        items.into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let options = Options {
        value_files: list("ValueFiles"),
        json_values: list("JSONValues"),
        values: list("Values"),
        string_values: list("StringValues"),
        file_values: list("FileValues"),
        literal_values: list("LiteralValues"),
    };
    let files = request.0.get("files").cloned().unwrap_or_default();
    let mut read = |path: &str| match files.get(path).and_then(Json::as_str) {
        Some(text) => Ok(text.as_bytes().to_vec()),
        None => Err(format!("open {path}: no such file or directory").into()),
    };
    answer(options.merge(&mut read), |map| tag_map(&map))
}

fn load_dir(request: &Request, log: &mut Vec<Warning>) -> Json {
    let directory = tempfile::tempdir().unwrap();
    let top = directory.path().to_str().unwrap().to_owned();
    let root = directory.path().join("chart");
    fs::create_dir(&root).unwrap();
    for entry in request.list("list").chunks_exact(3) {
        let path = root.join(entry[0]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let content = entry[2].replace("$DIR", &top);
        match entry[1] {
            "file" => fs::write(&path, content).unwrap(),
            "link" => std::os::unix::fs::symlink(content, &path).unwrap(),
            "dir" => fs::create_dir_all(&path).unwrap(),
            "big" => fs::write(&path, "x".repeat(content.parse().unwrap())).unwrap(),
            other => panic!("unknown entry {other}"),
        }
    }
    let path: PathBuf = match request.text("path") {
        "" => root,
        path => root.join(path),
    };
    let chart = chart::load(&path, &Limits::default(), log);
    let mut response = answer(chart, |chart| dump(&chart, true));
    let log: String = log.iter().map(|warning| format!("{warning}\n")).collect();
    response["log"] = json!(log);
    serde_json::from_str(&response.to_string().replace(&top, "$DIR")).unwrap()
}

fn process(request: &Request, log: &mut Vec<Warning>) -> Json {
    let mut chart = match request.load(&mut Vec::new()) {
        Ok(chart) => chart,
        Err(error) => return err(&error),
    };
    let user_values = request.values();
    let nulls = if request.text("kind") == "plain" { Nulls::Remove } else { Nulls::Keep };
    if let Err(error) = values::process_dependencies(&mut chart, &user_values, nulls, log) {
        return err(&error);
    }
    if request.text("op") == "process" {
        let mut dump = dump(&chart, false);
        leave_out_files(&mut dump);
        return json!({"err": null, "ok": dump});
    }
    let effective = match values::coalesce_values(&chart, &user_values, log) {
        Ok(values) => values,
        Err(error) => return err(&error),
    };
    if !request.flag("skip")
        && let Err(error) = values::validate(&chart, &effective, &mut SchemaCache::default(), log)
    {
        return err(&error);
    }
    json!({"err": null, "ok": tag_map(&effective)})
}

fn sort(request: &Request, log: &mut Vec<Warning>) -> Json {
    let files: BTreeMap<String, BString> = request.0["files"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, text)| (name.clone(), text.as_str().unwrap().into()))
        .collect();
    let order = if request.text("order") == "uninstall" {
        &manifest::UNINSTALL_ORDER
    } else {
        &manifest::INSTALL_ORDER
    };
    let (sorted, error) = match manifest::sort_manifests(&files, order, log) {
        Ok(sorted) => (sorted, Json::Null),
        Err(error) => {
            let text = error_chain(&*error);
            (error.partial, json!(text))
        }
    };
    let hook = |hook: &manifest::Hook| {
        let mut map = serde_json::Map::new();
        for (key, value) in [
            ("name", &hook.name),
            ("kind", &hook.kind),
            ("path", &hook.path),
            ("manifest", &hook.manifest.to_string()),
        ] {
            if !value.is_empty() {
                map.insert(key.into(), json!(value));
            }
        }
        if hook.weight != 0 {
            map.insert("weight".into(), json!(hook.weight));
        }
        let events: Vec<&str> = hook.events.iter().map(|event| event.as_str()).collect();
        map.insert("events".into(), json!(events));
        if !hook.delete_policies.is_empty() {
            map.insert("delete_policies".into(), json!(hook.delete_policies));
        }
        if !hook.output_log_policies.is_empty() {
            map.insert("output_log_policies".into(), json!(hook.output_log_policies));
        }
        Json::Object(map)
    };
    let object = |m: &manifest::Manifest| {
        json!([m.name, m.content.to_string(), m.head.api_version, m.head.kind, m.head.name])
    };
    json!({
        "err": error,
        "hooks": sorted.hooks.iter().map(hook).collect::<Vec<_>>(),
        "manifests": sorted.manifests.iter().map(object).collect::<Vec<_>>(),
    })
}

/// Compares an answer with Helm's and returns what differs.
fn difference(request: &Json, want: &Json) -> Option<String> {
    let mut got = handle(&Request(request));
    let mut want = want.clone();
    for answer in [&mut got, &mut want] {
        normalize(answer);
        sort_lines(answer, "log");
        // Helm walks subcharts and objects in random order.
        if request["op"] == "render" || request["op"] == "schema" {
            sort_lines(answer, "err");
        }
    }
    if got.get("err").is_some_and(|e| !e.is_null()) && want.get("err") == got.get("err") {
        got["ok"] = Json::Null;
        want["ok"] = Json::Null;
    }
    (got != want).then(|| format!("request: {request}\n   Helm: {want}\n   ours: {got}\n"))
}

/// The cases of a file, groups and lists of kinds taken apart.
fn read_cases(path: &Path) -> Vec<Json> {
    let entries: Vec<Json> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut singles = Vec::new();
    for mut entry in entries {
        let Some(members) = entry.get_mut("cases").map(Json::take) else {
            singles.push(entry);
            continue;
        };
        let common = entry["common"].as_object().unwrap();
        for mut case in members.as_array().cloned().unwrap() {
            let request = case["request"].as_object_mut().unwrap();
            request.extend(common.clone());
            let kinds = match &request["kind"] {
                Json::Array(kinds) => kinds.clone(),
                kind => vec![kind.clone()],
            };
            for kind in kinds {
                case["request"]["kind"] = kind;
                singles.push(case.clone());
            }
        }
    }
    singles
}

#[test]
fn answers_equal_helms() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chart_cases");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut differences = Vec::new();
    let (mut count, mut known) = (0, 0);
    for path in paths {
        for case in read_cases(&path) {
            count += 1;
            let file = path.file_name().unwrap().display();
            match (difference(&case["request"], &case["answer"]), case.get("differs")) {
                (None, None) => {}
                (Some(_), Some(_)) => known += 1,
                (Some(text), None) => differences.push(format!("{file}: {text}")),
                (None, Some(reason)) => differences.push(format!(
                    "{file}: {} no longer differs, take the mark away: {reason}",
                    case["request"]
                )),
            }
        }
    }
    println!("{count} cases, {known} of them known to differ");
    assert!(count > 0, "no cases found");
    assert!(
        differences.is_empty(),
        "{} of {count} differ\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn requests_from_a_file() {
    let Ok(path) = std::env::var("ICHOR_CHART_REQUESTS") else { return };
    let requests = fs::read_to_string(&path).unwrap();
    let answers: String = requests
        .lines()
        .map(|line| format!("{}\n", handle(&Request(&serde_json::from_str(line).unwrap()))))
        .collect();
    fs::write(format!("{path}.out"), answers).unwrap();
}
