//! Patches on a real API server: what it makes of ours, against what `mergepatch` makes of them.
//!
//! The cases are the table under `helm-rs/patch/tests/cases`. Of each, the live side is created,
//! the patch is made from what the server then holds, as Helm does, and applied twice: by the
//! server, and in memory with a dry-run update behind it, which gives the server's defaults to the
//! result. Both objects must be the same. Documents that the server refuses must be refused both
//! ways.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test: a panic is how it says that its surroundings are wrong"
)]

use std::path::PathBuf;

use kube::Client;
use mergepatch::{OpenApi, Patch, Schemas, apply, embedded, three_way, to_json};
use plane::support::or_skip;
use serde_json::{Value, json};

/// The files whose objects a server takes and no controller interferes with, and where their
/// kinds are served.
const FILES: [(&str, &str); 15] = [
    ("containers", "/apis/apps/v1/namespaces/{}/deployments"),
    ("container-ports", "/apis/apps/v1/namespaces/{}/deployments"),
    ("daemonset", "/apis/apps/v1/namespaces/{}/daemonsets"),
    ("definition-versions", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("env", "/apis/apps/v1/namespaces/{}/deployments"),
    ("finalizers", "/api/v1/namespaces/{}/persistentvolumeclaims"),
    ("rules", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
    ("service-ports", "/api/v1/namespaces/{}/services"),
    ("strategy", "/apis/apps/v1/namespaces/{}/deployments"),
    ("tolerations", "/apis/apps/v1/namespaces/{}/deployments"),
    ("topology-spread", "/apis/apps/v1/namespaces/{}/deployments"),
    ("volume-claim-templates", "/apis/apps/v1/namespaces/{}/statefulsets"),
    ("volume-mounts", "/apis/apps/v1/namespaces/{}/deployments"),
    ("volumes", "/apis/apps/v1/namespaces/{}/deployments"),
    ("webhooks", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
];

/// How one case went.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// The server's object and ours are the same.
    Same,
    /// They are not.
    Different,
    /// There was nothing to send.
    Empty,
    /// The server refuses the object either way.
    Refused,
    /// The live side cannot be created, or the patch cannot be made.
    NotSent,
}

async fn send(
    client: &Client,
    verb: &str,
    path: &str,
    kind: &str,
    body: &str,
) -> Result<Value, String> {
    let request = hyper::Request::builder()
        .method(verb)
        .uri(path)
        .header("content-type", kind)
        .body(body.as_bytes().to_vec())
        .unwrap();
    client.request::<Value>(request).await.map_err(|error| error.to_string())
}

/// Without what every write changes.
fn settled(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "resourceVersion", "generation"] {
            metadata.remove(field);
        }
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object
}

fn document(base: &Value, case: &Value, side: &str) -> Value {
    let mut document = base.clone();
    if let Some(operations) = case.get(side) {
        let operations: json_patch::Patch = serde_json::from_value(operations.clone()).unwrap();
        json_patch::patch(&mut document, &operations).unwrap();
    }
    document
}

async fn run(
    client: &Client,
    collection: &str,
    file: &Value,
    case: &Value,
    number: usize,
) -> Outcome {
    let base = &file["base"];
    // A name of its own: the group is part of a definition's name.
    let text = base.to_string().replace("example.org", &format!("example{number}.org"));
    let mut base: Value = if collection.contains("customresource") {
        serde_json::from_str(&text).unwrap()
    } else {
        base.clone()
    };
    if !collection.contains("customresource") {
        let name = base["metadata"]["name"].as_str().unwrap().to_owned();
        base["metadata"].as_object_mut().unwrap().remove("namespace");
        base["metadata"]["name"] = json!(format!("{name}-{number}"));
    }
    let (original, modified) =
        (document(&base, case, "original"), document(&base, case, "modified"));
    let current = document(&base, case, "current");
    let json = "application/json";
    if send(client, "POST", collection, json, &current.to_string()).await.is_err() {
        return Outcome::NotSent;
    }
    let name = current["metadata"]["name"].as_str().unwrap();
    let path = format!("{collection}/{name}");
    let word = |field: &str| base[field].as_str().unwrap().to_owned();
    let schema = embedded().schema(&word("apiVersion"), &word("kind"));
    let mut last = (Value::Null, Value::Null);
    // A controller may write in between: then once more.
    for _ in 0..5 {
        let live = send(client, "GET", &path, json, "").await.unwrap();
        let Ok(patch) = three_way(&original, &modified, &live, schema) else {
            return Outcome::NotSent;
        };
        if patch.is_empty() {
            return Outcome::Empty;
        }
        let Patch { patch_type, .. } = patch;
        let Ok(mut ours) = apply(&live, &patch, schema) else { return Outcome::NotSent };
        // The server lets no patch change what an object is.
        for field in ["apiVersion", "kind"] {
            ours[field] = live[field].clone();
        }
        let dry = format!("{path}?dryRun=All");
        let ours = send(client, "PUT", &dry, json, &to_json(&ours)).await;
        let theirs = send(client, "PATCH", &dry, patch_type.content_type(), &patch.to_json()).await;
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) if settled(&ours) == settled(&theirs) => {
                let written =
                    send(client, "PATCH", &path, patch_type.content_type(), &patch.to_json()).await;
                if written.is_ok_and(|written| settled(&written) == settled(&ours)) {
                    return Outcome::Same;
                }
                last = (ours, theirs);
            }
            (Err(error), _) if error.contains("Conflict") => last.0 = json!(error),
            (Err(_), Err(_)) => return Outcome::Refused,
            // An update decodes JSON and refuses an integer that its type cannot hold; a patch
            // goes through apimachinery's converter, which cuts it off.
            (Err(error), Ok(_)) if error.contains("cannot unmarshal number") => {
                return Outcome::Refused;
            }
            (ours, theirs) => {
                let value = |side: Result<Value, String>| match side {
                    Ok(object) => settled(&object),
                    Err(error) => json!(error),
                };
                last = (value(ours), value(theirs));
            }
        }
    }
    println!("{}: {}\n  in memory {}\n  server    {}", word("kind"), case["name"], last.0, last.1);
    Outcome::Different
}

#[tokio::test(flavor = "multi_thread")]
async fn server_makes_of_a_patch_what_we_make_of_it() {
    let Some(cluster) = or_skip(plane::support::shared().await) else { return };
    let namespace = cluster.namespace("patch").await.unwrap();
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../helm-rs/patch/tests/cases");
    let (mut same, mut different, mut empty, mut refused, mut not_sent) = (0, 0, 0, 0, 0);
    let mut number = 0;
    for (name, collection) in FILES {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let collection = collection.replace("{}", &namespace.name);
        for case in file["cases"].as_array().unwrap() {
            number += 1;
            match run(&namespace.client, &collection, &file, case, number).await {
                Outcome::Same => same += 1,
                Outcome::Different => different += 1,
                Outcome::Empty => empty += 1,
                Outcome::Refused => refused += 1,
                Outcome::NotSent => not_sent += 1,
            }
        }
    }
    println!(
        "{number} cases: {same} the same on the server, {different} different, {empty} with nothing to send, \
         {refused} refused both ways, {not_sent} not sent"
    );
    assert_eq!(different, 0);
    assert!(same >= 50, "too few cases reach the server");
}

/// The documents of OpenAPI version 3 for the groups of [`FILES`].
const GROUPS: [&str; 5] = [
    "api/v1",
    "apis/apps/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
];

#[tokio::test(flavor = "multi_thread")]
async fn server_documents_give_the_patches_that_go_types_give() {
    let Some(cluster) = or_skip(plane::support::shared().await) else { return };
    let namespace = cluster.namespace("patch-openapi").await.unwrap();
    let client = &namespace.client;
    let json = "application/json";
    let two = OpenApi::new(send(client, "GET", "/openapi/v2", json, "").await.unwrap());
    let mut three = OpenApi::new(Value::Null);
    for group in GROUPS {
        let document = send(client, "GET", &format!("/openapi/v3/{group}"), json, "").await;
        three.extend(OpenApi::new(document.unwrap()));
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../helm-rs/patch/tests/cases");
    let (mut same, mut errors) = (0, 0);
    for (name, _) in FILES {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let file: Value = serde_json::from_str(&text).unwrap();
        let base = &file["base"];
        let word = |field: &str| base[field].as_str().unwrap();
        let (api_version, kind) = (word("apiVersion"), word("kind"));
        for case in file["cases"].as_array().unwrap() {
            let sides = ["original", "modified", "current"].map(|side| document(base, case, side));
            let patch = |schemas: &dyn Schemas| {
                let schema = schemas.schema(api_version, kind);
                assert!(schema.is_some(), "{kind} is unknown");
                three_way(&sides[0], &sides[1], &sides[2], schema)
            };
            match patch(embedded()) {
                // What does not fit a kind is noticed by each source in its own way, as upstream.
                Err(_) => errors += 1,
                // Only Go's JSON takes a field in other letters.
                Ok(_) if case["name"] == "field in other letters" => {}
                Ok(wanted) => {
                    same += 1;
                    assert_eq!(patch(&two), Ok(wanted.clone()), "version 2: {name}: {case}");
                    assert_eq!(patch(&three), Ok(wanted), "version 3: {name}: {case}");
                }
            }
        }
    }
    println!("{same} patches the same from both documents, {errors} that Go types refuse");
}
