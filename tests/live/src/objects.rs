//! All objects of a cluster, without what differs from one run to the next.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::release::{CodecLimits, decode};
use plane::Plane;
use plane::support::run;
use serde_json::{Value, json};

/// Resources that controllers and servers fill by themselves.
const SKIPPED: [&str; 12] = [
    "componentstatuses",
    "controllerrevisions.apps",
    "csinodes.storage.k8s.io",
    "endpointslices.discovery.k8s.io",
    "events",
    "events.events.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "ipaddresses.networking.k8s.io",
    "nodes",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
    "replicasets.apps",
    "servicecidrs.networking.k8s.io",
];

/// Objects by kind, namespace and name.
pub type Objects = BTreeMap<String, Value>;

/// Reads all objects of a cluster.
///
/// # Errors
/// When kubectl fails.
pub fn read(plane: &Plane) -> plane::Result<Objects> {
    read_with(plane, &[])
}

/// [`read`], with the owners of fields where these are programs under test: both programs' names as
/// one, times aside.
///
/// # Errors
/// When kubectl fails.
pub fn read_owned(plane: &Plane) -> plane::Result<Objects> {
    read_with(plane, &["--show-managed-fields"])
}

fn read_with(plane: &Plane, flags: &[&str]) -> plane::Result<Objects> {
    let mut kubectl = plane.kubectl()?;
    kubectl.args(["api-resources", "--verbs=list", "-o", "name"]);
    let resources = run(&mut kubectl)?;
    let wanted: Vec<&str> =
        resources.split_whitespace().filter(|name| !SKIPPED.contains(name)).collect();
    let mut kubectl = plane.kubectl()?;
    kubectl.args(["get", "-A", "-o", "json", &wanted.join(",")]).args(flags);
    let text = run(&mut kubectl)?;
    let list: Value = serde_json::from_str(&text)
        .map_err(|source| plane::Error::Document { what: "a list".to_owned(), source })?;
    let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(items
        .into_iter()
        .filter(|item| !is_servers_own(item))
        .map(|item| (title(&item), plain(item)))
        .collect())
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// What every cluster has, with contents of its own.
fn is_servers_own(object: &Value) -> bool {
    let (kind, namespace) = (text(object, "/kind"), text(object, "/metadata/namespace"));
    match kind {
        "Lease" => namespace.starts_with("kube-"),
        // Those of hooks have no owner.
        "Pod" => object.pointer("/metadata/ownerReferences").is_some(),
        "ConfigMap" => matches!(
            text(object, "/metadata/name"),
            "kube-root-ca.crt" | "extension-apiserver-authentication" | "cluster-info"
        ),
        // Those of Services name pods.
        "Endpoints"
            if object.pointer("/metadata/labels/endpoints.kubernetes.io~1managed-by").is_some() =>
        {
            true
        }
        "Service" | "Endpoints" => {
            namespace == "default" && text(object, "/metadata/name") == "kubernetes"
        }
        _ => false,
    }
}

/// `Kind namespace/name`
pub fn title(object: &Value) -> String {
    format!(
        "{} {}/{}",
        text(object, "/kind"),
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name")
    )
}

/// An object without what is volatile; a record's content in clear, its times taken out.
fn plain(mut object: Value) -> Value {
    object.as_object_mut().map(|fields| fields.remove("status"));
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let entries = metadata.remove("managedFields");
        if let Some(owners) = entries.as_ref().and_then(Value::as_array).map(|all| owners(all)) {
            metadata.insert("managedFields".to_owned(), owners);
        }
        for field in ["resourceVersion", "uid", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    match text(&object, "/kind").to_owned().as_str() {
        "Secret" if text(&object, "/type") == "helm.sh/release.v1" => record(&mut object),
        "Service" => service(&mut object),
        "Job" => without_controller(&mut object),
        "Deployment" => without_generation(&mut object),
        "Pod" => drop(object.as_object_mut().map(|fields| fields.remove("spec"))),
        _ => {}
    }
    let masked = test_support::mask::certificates(&object.to_string());
    serde_json::from_str(&masked).unwrap_or(object)
}

/// Who owns which fields, other than the server's own programs.
fn owners(entries: &[Value]) -> Value {
    let mut owners: Vec<Value> = entries
        .iter()
        .filter(|entry| {
            let server = ["kube-", "plane"];
            text(entry, "/subresource").is_empty()
                && !server.into_iter().any(|name| text(entry, "/manager").starts_with(name))
        })
        .cloned()
        .collect();
    for entry in &mut owners {
        if text(entry, "/manager") == "ichor" {
            entry["manager"] = json!("helm");
        }
        entry.as_object_mut().map(|fields| fields.remove("time"));
    }
    owners.sort_by_key(ToString::to_string);
    json!(owners)
}

/// Addresses and node ports are given out by the server.
fn service(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["clusterIP", "clusterIPs", "healthCheckNodePort"] {
        let headless = [json!("None"), json!(["None"])];
        if spec.get(field).is_some_and(|value| !headless.contains(value)) {
            spec.insert(field.to_owned(), json!("(given)"));
        }
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(port) = port.as_object_mut()
            && port.contains_key("nodePort")
        {
            port.insert("nodePort".to_owned(), json!("(given)"));
        }
    }
}

/// The server counts a Deployment's annotations too, and its controller writes one as often as it
/// gets to look.
fn without_generation(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("generation");
    }
}

/// A Job's labels name its UID.
fn without_controller(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.contains("controller-uid"));
            fields.values_mut().for_each(without_controller);
        }
        Value::Array(items) => items.iter_mut().for_each(without_controller),
        _ => {}
    }
}

fn record(object: &mut Value) {
    let data = text(object, "/data/release").to_owned();
    let release = STANDARD.decode(data).unwrap_or_default();
    let mut json = decode(&release, CodecLimits::default()).unwrap_or_default();
    let read: Value = serde_json::from_str(&json).unwrap_or_default();
    let times = times(&read);
    assert!(times.len() > 1, "a record without time: {json}");
    for time in times {
        json = json.replace(&time, "(time)");
    }
    object["data"]["release"] = Value::from(test_support::mask::certificates(&json));
    for label in ["createdAt", "modifiedAt"] {
        if let Some(value) = object.pointer_mut(&format!("/metadata/labels/{label}")) {
            *value = json!("(time)");
        }
    }
}

/// The times in a record.
pub fn times(record: &Value) -> Vec<String> {
    let info = ["/info/first_deployed", "/info/last_deployed", "/info/deleted"];
    let mut times: Vec<&str> = info.into_iter().map(|place| text(record, place)).collect();
    for hook in record.get("hooks").and_then(Value::as_array).into_iter().flatten() {
        times.push(text(hook, "/last_run/started_at"));
        times.push(text(hook, "/last_run/completed_at"));
    }
    times.retain(|time| !time.is_empty());
    times.into_iter().map(str::to_owned).collect()
}

/// What is in a namespace or has its name, and so belongs to what goes on there; the name itself is
/// taken out.
///
/// # Panics
/// Never: JSON without the name stays JSON.
pub fn around(all: &Objects, namespace: &str) -> Objects {
    all.iter()
        .filter(|(title, _)| {
            let (place, name) = title
                .split_once(' ')
                .and_then(|(_, rest)| rest.split_once('/'))
                .unwrap_or_default();
            let is_own = |text: &str| {
                text.strip_prefix(namespace)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            };
            (is_own(place) && name != "default") || (place.is_empty() && is_own(name))
        })
        .map(|(title, object)| {
            let text = object.to_string().replace(namespace, "(namespace)");
            let object = serde_json::from_str(&text).expect("JSON stays JSON");
            (title.replace(namespace, "(namespace)"), object)
        })
        .collect()
}

/// What differs between two clusters, a line each.
pub fn differences(left: &Objects, right: &Objects) -> Vec<String> {
    let mut found = Vec::new();
    for (title, object) in left {
        match right.get(title) {
            None => found.push(format!("{title}: only on the left")),
            Some(other) => compare(title, object, other, &mut found),
        }
    }
    for title in right.keys().filter(|title| !left.contains_key(*title)) {
        found.push(format!("{title}: only on the right"));
    }
    found
}

fn compare(path: &str, left: &Value, right: &Value, found: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let null = Value::Null;
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let side = |fields: &serde_json::Map<String, Value>| {
                    fields.get(name).cloned().unwrap_or_else(|| null.clone())
                };
                compare(&format!("{path} .{name}"), &side(left), &side(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{index}]"), left, right, found);
            }
        }
        (left, right) if left != right => {
            let (left, right) = excerpts(&left.to_string(), &right.to_string());
            found.push(format!("{path}:\n  {left}\n  {right}"));
        }
        _ => {}
    }
}

/// Long texts from a little before their first difference on.
fn excerpts(left: &str, right: &str) -> (String, String) {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let same = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
    let cut = |text: &[char]| text.iter().skip(same.saturating_sub(80)).take(240).collect();
    (cut(&left), cut(&right))
}
