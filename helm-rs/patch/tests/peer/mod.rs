//! The Go libraries behind `patch-peer`, and our answers in the same form.
#![allow(dead_code, clippy::expect_used, reason = "shared by test programs; peers must answer")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use mergepatch::{Error, Patch, PatchType, Schema, Schemas as _, Untyped, embedded};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use test_support::Missing;

/// One question; documents are JSON text.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Request {
    pub op: String,
    pub api_version: String,
    pub kind: String,
    pub original: String,
    pub modified: String,
    pub current: String,
    pub patch: String,
    pub three_way: bool,
    pub times: usize,
}

/// One answer, Go's or ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Answer {
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub patch_type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub patch: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub panic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result_error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result_panic: String,
}

pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Peer {
    pub fn start() -> Result<Self, Missing> {
        test_support::peer::program("patch-peer").map(|program| Self::of(&program))
    }

    fn of(program: &std::path::Path) -> Self {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input, output }
    }

    /// The different answers to a question, in the order in which they appeared.
    pub fn ask(&mut self, request: &Request) -> Vec<Answer> {
        let mut line = serde_json::to_string(request).expect("a request is JSON");
        line.push('\n');
        self.input.write_all(line.as_bytes()).expect("the peer listens");
        self.input.flush().expect("the peer listens");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the peer answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}: {request:?}"))
    }
}

/// Whether ours is the answer, or one of several that Go gives in turn.
pub fn agrees(peer: &mut Peer, request: &Request, ours: &Answer) -> Result<bool, Vec<Answer>> {
    let theirs = peer.ask(request);
    if theirs.first() == Some(ours) {
        return Ok(true);
    }
    let theirs = peer.ask(&Request { times: 60, ..request.clone() });
    if theirs.contains(ours) { Ok(false) } else { Err(theirs) }
}

fn parse(text: &str) -> Value {
    if text.is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).expect("cases are JSON")
}

/// Our answer to the same question.
pub fn answer(request: &Request) -> Answer {
    let schema = embedded().schema(&request.api_version, &request.kind);
    let mut answer = Answer {
        patch_type: if schema.is_some() { "strategic" } else { "merge" }.to_owned(),
        ..Answer::default()
    };
    let patch = if request.op == "apply" {
        answer.patch.clone_from(&request.patch);
        let patch_type = if schema.is_some() { PatchType::Strategic } else { PatchType::Merge };
        Patch { patch_type, body: parse(&request.patch) }
    } else {
        match create(request, schema) {
            Ok(patch) => {
                answer.patch = patch.to_json();
                patch
            }
            Err(error) => {
                if request.op.starts_with("merge") {
                    "merge".clone_into(&mut answer.patch_type);
                } else if request.op == "helm" {
                    answer.patch_type = helm_type(request);
                }
                (answer.error, answer.panic) = split(&error);
                return answer;
            }
        }
    };
    answer.patch_type = match patch.patch_type {
        PatchType::Strategic => "strategic".to_owned(),
        _ => "merge".to_owned(),
    };
    if request.current.is_empty() {
        return answer;
    }
    // As the peer: a patch that was sent is read again by who applies it.
    let sent = Patch { patch_type: patch.patch_type, body: parse(&answer.patch) };
    let current = parse(&request.current);
    match mergepatch::apply(&current, &sent, schema) {
        Ok(result) => answer.result = mergepatch::to_json(&result),
        Err(error) => (answer.result_error, answer.result_panic) = split(&error),
    }
    answer
}

fn helm_type(request: &Request) -> String {
    // The type does not depend on the documents but on the kind.
    let empty = Request {
        original: request.modified.clone(),
        current: request.modified.clone(),
        ..request.clone()
    };
    match create(&empty, None) {
        Ok(patch) if patch.patch_type == PatchType::Strategic => "strategic".to_owned(),
        Err(_) => "strategic".to_owned(),
        Ok(_) => "merge".to_owned(),
    }
}

fn split(error: &Error) -> (String, String) {
    match error {
        Error::GoPanics(text) => (String::new(), text.clone()),
        error => (error.to_string(), String::new()),
    }
}

fn create(request: &Request, schema: Option<Schema<'_>>) -> Result<Patch, Error> {
    let original = parse(&request.original);
    let modified = parse(&request.modified);
    let current = parse(&request.current);
    let strategic = |body| Patch { patch_type: PatchType::Strategic, body };
    let merge = |body| Patch { patch_type: PatchType::Merge, body };
    match request.op.as_str() {
        "two-way" => {
            let schema = schema.expect("a kind with a type");
            mergepatch::strategic::two_way(&original, &modified, schema).map(strategic)
        }
        "three-way" => {
            let schema = schema.expect("a kind with a type");
            mergepatch::strategic::three_way(&original, &modified, &current, schema).map(strategic)
        }
        "merge-two-way" => mergepatch::merge::two_way(&original, &modified).map(merge),
        "merge-three-way" => mergepatch::three_way(&original, &modified, &current, None),
        "helm" => {
            let untyped = if request.three_way { Untyped::ThreeWay } else { Untyped::TwoWay };
            mergepatch::helm(&original, &modified, &current, embedded(), untyped)
        }
        other => panic!("no operation {other}"),
    }
}
