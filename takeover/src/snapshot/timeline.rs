//! What a rehearsal sent, call by call.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use helm_rs::cluster::CallRecord;
use serde::Serialize;
use serde_json::{Value, json};

use crate::plan::RehearsalAbout;

/// The form of a timeline's JSON.
const SCHEMA_VERSION: &str = "ichor.maesh.dev/timeline/v1";

/// One run, from its first call to its last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunCalls {
    /// How it ended, for people: `done`, or what stopped it.
    pub ended: String,
    /// Its calls, in the order in which they were sent.
    pub calls: Vec<CallRecord>,
}

/// The calls of every run of a rehearsal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// What it was made on.
    pub about: RehearsalAbout,
    /// The runs: one, or one that was killed and the one after it.
    pub runs: Vec<RunCalls>,
}

impl Timeline {
    /// As data.
    pub fn to_json(&self) -> Value {
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|run| {
                let calls: Vec<Value> = run.calls.iter().map(call).collect();
                json!({ "ended": run.ended, "calls": calls })
            })
            .collect();
        json!({
            "schemaVersion": SCHEMA_VERSION,
            "rehearsal": self.about,
            "note": self.about.headline(),
            "runs": runs,
        })
    }

    /// For people: a line a call; `W` marks what changes something.
    pub fn to_text(&self) -> String {
        let mut out = format!("{}.\n", self.about.headline());
        for (index, run) in self.runs.iter().enumerate() {
            let _ = writeln!(out, "\nRun {}: {}, {}", index + 1, run.ended, summary(&run.calls));
            for call in &run.calls {
                let mark = if call.is_write() { 'W' } else { ' ' };
                let _ = writeln!(out, "{mark} {:5}  {call}", call.number);
            }
        }
        out
    }
}

/// How many calls there are, by verb: `57 calls (2 create, 40 get, …), of which 9 write`.
pub fn summary(calls: &[CallRecord]) -> String {
    let mut verbs: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        *verbs.entry(call.verb).or_default() += 1;
    }
    let verbs: Vec<String> = verbs.iter().map(|(verb, count)| format!("{count} {verb}")).collect();
    let writes = calls.iter().filter(|call| call.is_write()).count();
    let dry_runs = calls.iter().filter(|call| call.dry_run).count();
    format!(
        "{} calls ({}): {writes} write, {dry_runs} are dry runs, the others read",
        calls.len(),
        verbs.join(", ")
    )
}

/// A call as data: what it is about taken apart, where it is about objects.
fn call(call: &CallRecord) -> Value {
    let is_about_objects =
        !matches!(call.verb, "discover" | "version" | "openapi" | "review" | "logs");
    let (resource, rest) = match call.object.split_once(' ') {
        Some(parts) if is_about_objects => parts,
        _ if is_about_objects => (call.object.as_str(), ""),
        _ => ("", ""),
    };
    let (place, labels) = match rest.split_once('(') {
        Some((place, labels)) => (place.trim_end(), labels.strip_suffix(')').unwrap_or(labels)),
        None => (rest, ""),
    };
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    json!({
        "number": call.number,
        "verb": call.verb,
        "object": call.object,
        "resource": resource,
        "namespace": namespace,
        "name": name,
        "labels": labels,
        "patch": call.patch,
        "mutating": call.is_write(),
        "dryRun": call.dry_run,
        "status": call.outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(verb: &'static str, object: &str, dry_run: bool) -> CallRecord {
        CallRecord {
            number: 1,
            verb,
            object: object.to_owned(),
            patch: "",
            dry_run,
            began_us: 0,
            lasted_us: 0,
            outcome: "ok",
        }
    }

    #[test]
    fn what_a_call_is_about_is_taken_apart() {
        let parts = |verb, object| {
            let call = call(&record(verb, object, false));
            ["resource", "namespace", "name", "labels"]
                .map(|field| call[field].as_str().unwrap_or("?").to_owned())
        };
        assert_eq!(parts("get", "deployments.apps ns/web"), ["deployments.apps", "ns", "web", ""]);
        assert_eq!(parts("get", "namespaces kube-system"), ["namespaces", "", "kube-system", ""]);
        assert_eq!(parts("list", "secrets (owner=helm)"), ["secrets", "", "", "owner=helm"]);
        assert_eq!(parts("list", "secrets ns/ (a in (b,c))"), ["secrets", "ns", "", "a in (b,c)"]);
        assert_eq!(parts("list", "nodes"), ["nodes", "", "", ""]);
        assert_eq!(parts("review", "rules ns"), ["", "", "", ""]);
    }

    #[test]
    fn writes_are_marked_and_counted() {
        let calls = vec![record("get", "nodes a", false), record("create", "pods n/a", false)];
        let runs = vec![RunCalls { ended: "done".to_owned(), calls }];
        let timeline = Timeline { about: RehearsalAbout::default(), runs };
        let text = timeline.to_text();
        assert!(text.starts_with("REHEARSAL on ") && text.contains("no cluster is touched"));
        assert!(text.contains("2 calls (1 create, 1 get): 1 write, 0 are dry runs"), "{text}");
        assert!(text.contains("\nW     1  create pods n/a ok\n"), "{text}");
    }
}
