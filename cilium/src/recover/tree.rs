//! Objects made comparable, and where two of them differ.

use serde_json::{Map, Value};

use super::invert::Effect;
use crate::object::ObjectRef;
use crate::version::image_repository;

/// How deep objects are looked into.
const DEPTH: usize = 64;

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// Into a map.
    Key(String),
    /// Into a list, to the item whose field has this text.
    Item(&'static str, String),
}

/// A place in an object.
pub(super) type Path = Vec<Step>;

/// A place in dots and brackets, for people.
pub(super) fn show(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if key.contains(['.', '/']) => text.push_str(&format!("[{key:?}]")),
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.push_str(&format!(".{key}")),
            Step::Item(field, value) => text.push_str(&format!("[{field}={value}]")),
        }
    }
    text
}

/// Annotations and labels that installers, controllers and the server write, and that name a
/// version.
const MARKS: [&str; 11] = [
    "helm.sh/chart",
    "app.kubernetes.io/version",
    "meta.helm.sh/release-name",
    "meta.helm.sh/release-namespace",
    "app.kubernetes.io/managed-by",
    "config.k8s.io/owning-inventory",
    "kubectl.kubernetes.io/last-applied-configuration",
    "kubectl.kubernetes.io/restartedAt",
    "deprecated.daemonset.template.generation",
    "deployment.kubernetes.io/revision",
    "kubernetes.io/metadata.name",
];

/// Fields of one fixed value that the server adds where a manifest is silent.
const DEFAULTS: [(&str, &str); 24] = [
    ("terminationMessagePath", "\"/dev/termination-log\""),
    ("terminationMessagePolicy", "\"File\""),
    ("imagePullPolicy", "\"IfNotPresent\""),
    ("dnsPolicy", "\"ClusterFirst\""),
    ("restartPolicy", "\"Always\""),
    ("schedulerName", "\"default-scheduler\""),
    ("revisionHistoryLimit", "10"),
    ("progressDeadlineSeconds", "600"),
    ("terminationGracePeriodSeconds", "30"),
    ("protocol", "\"TCP\""),
    ("apiVersion", "\"v1\""),
    ("successThreshold", "1"),
    ("failureThreshold", "3"),
    ("timeoutSeconds", "1"),
    ("periodSeconds", "10"),
    ("scheme", "\"HTTP\""),
    ("type", "\"ClusterIP\""),
    ("type", "\"\""),
    ("type", "\"Opaque\""),
    ("sessionAffinity", "\"None\""),
    ("internalTrafficPolicy", "\"Cluster\""),
    ("defaultMode", "420"),
    ("maxSurge", "0"),
    ("serviceAccount", "\"cilium\""),
];

/// Fields that the server leaves out when they are false or 0: those of its Go types that are no
/// pointers (`staging/src/k8s.io/api/core/v1/types.go`). Where a pointer says false, that is said.
const LEFT_OUT: [&str; 10] = [
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPort",
    "initialDelaySeconds",
    "minReadySeconds",
    "publishNotReadyAddresses",
    "readOnly",
    "stdin",
    "tty",
];

/// Maps of amounts (`core/v1` `ResourceList`).
const AMOUNTS: [&str; 2] = ["limits", "requests"];

/// Fields that only the server writes.
const SERVER: [&str; 9] = [
    "status",
    "clusterIP",
    "clusterIPs",
    "ipFamilies",
    "ipFamilyPolicy",
    "serviceAccount",
    "creationTimestamp",
    "aggregationRule",
    "finalizers",
];

/// What of an object values can explain: not the server's fields, not marks, and of a Secret only
/// which keys it has.
///
/// With `is_upgrade`, images are compared by their repository.
pub(super) fn comparable(mut object: Value, is_upgrade: bool) -> Value {
    let Some(map) = object.as_object_mut() else { return Value::Null };
    map.remove("status");
    let is_secret = map.get("kind").and_then(Value::as_str) == Some("Secret");
    if is_secret && let Some(data) = map.get_mut("data").and_then(Value::as_object_mut) {
        data.values_mut().for_each(|value| *value = Value::from("(secret)"));
    }
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| matches!(key.as_str(), "labels" | "annotations"));
    }
    map.retain(|key, _| key != "apiVersion" && key != "kind");
    drop_marks(&mut object, is_upgrade, DEPTH);
    object
}

fn drop_marks(value: &mut Value, is_upgrade: bool, depth: usize) {
    if depth == 0 {
        *value = Value::Null;
        return;
    }
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !MARKS.contains(&key.as_str()) && !SERVER.contains(&key.as_str()));
            if is_upgrade && let Some(Value::String(image)) = map.get_mut("image") {
                *image = image_repository(image).to_owned();
            }
            for place in AMOUNTS {
                if let Some(Value::Object(amounts)) = map.get_mut(place) {
                    amounts.values_mut().for_each(amount_as_text);
                }
            }
            map.values_mut().for_each(|value| drop_marks(value, is_upgrade, depth - 1));
            // Afterwards, since a map of nothing but marks is empty now.
            map.retain(|_, value| !is_empty(value));
        }
        Value::Array(items) => {
            for item in items {
                drop_marks(item, is_upgrade, depth - 1);
            }
        }
        _ => {}
    }
}

/// The server keeps amounts as texts, however they were written.
fn amount_as_text(amount: &mut Value) {
    if let Value::Number(number) = amount {
        *amount = number.to_string().into();
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Whether a leaf that only the live object has is the server's default.
fn is_default(step: Option<&Step>, live: &Value) -> bool {
    let Some(Step::Key(key)) = step else { return false };
    let text = live.to_string();
    DEFAULTS.iter().any(|(field, value)| field == key && *value == text)
}

/// Whether a leaf that only the render has says nothing to the server.
fn is_left_out(step: Option<&Step>, rendered: &Value) -> bool {
    let Some(Step::Key(key)) = step else { return false };
    LEFT_OUT.contains(&key.as_str()) && (*rendered == false || *rendered == 0)
}

/// The number of leaves; lists that are compared as a whole are one.
pub(super) fn leaves(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.values().map(leaves).sum(),
        Value::Array(items) => match merge_key(items, items) {
            Some(_) => items.iter().map(leaves).sum(),
            None => 1,
        },
        _ => 1,
    }
}

/// The field by which the items of two lists are matched, when they can be.
pub(super) fn merge_key(one: &[Value], two: &[Value]) -> Option<&'static str> {
    let unique = |items: &[Value], field: &str| {
        let mut seen = std::collections::BTreeSet::new();
        items.iter().all(|item| {
            item.get(field).and_then(Value::as_str).is_some_and(|text| seen.insert(text))
        })
    };
    // Mounts of one volume share their name.
    let is_mounts = one.iter().chain(two).any(|item| item.get("mountPath").is_some());
    let fields: &[&'static str] = if is_mounts { &["mountPath"] } else { &["name"] };
    fields.iter().copied().find(|field| {
        !(one.is_empty() && two.is_empty()) && unique(one, field) && unique(two, field)
    })
}

/// Where two values differ: the place, and what either has there.
pub(super) type Place<'a> = (Path, Option<&'a Value>, Option<&'a Value>);

/// The places where two objects differ, deepest ones. A subtree that only one has is one place.
pub(super) fn places<'a>(
    one: Option<&'a Value>,
    two: Option<&'a Value>,
    path: &mut Path,
    found: &mut Vec<Place<'a>>,
) {
    match (one, two) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            for key in keys(a, b) {
                path.push(Step::Key(key.clone()));
                places(a.get(key), b.get(key), path, found);
                path.pop();
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if merge_key(a, b).is_some() => {
            let Some(field) = merge_key(a, b) else { return };
            let name = |item: &Value| item.get(field).and_then(Value::as_str).map(str::to_owned);
            let find = |items: &'a [Value], wanted: &str| {
                items.iter().find(|item| item.get(field).and_then(Value::as_str) == Some(wanted))
            };
            let extra = b.iter().filter(|item| name(item).is_some_and(|n| find(a, &n).is_none()));
            for wanted in a.iter().chain(extra).filter_map(name) {
                path.push(Step::Item(field, wanted.clone()));
                places(find(a, &wanted), find(b, &wanted), path, found);
                path.pop();
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push((path.clone(), a, b)),
    }
}

fn keys<'a>(one: &'a Map<String, Value>, two: &'a Map<String, Value>) -> Vec<&'a String> {
    let mut keys: Vec<&String> = one.keys().chain(two.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The places where a live object differs from a rendered one, without the server's defaults,
/// and how many leaves that are.
pub(super) fn differences(rendered: &Value, live: &Value) -> (usize, Vec<Path>) {
    let mut found = Vec::new();
    places(Some(rendered), Some(live), &mut Vec::new(), &mut found);
    found.retain(|(path, rendered, live)| match (rendered, live) {
        (None, Some(live)) => !is_default(path.last(), live),
        (Some(rendered), None) => !is_left_out(path.last(), rendered),
        _ => true,
    });
    let weight = |place: &Place<'_>| place.1.map_or(0, leaves).max(place.2.map_or(0, leaves));
    (found.iter().map(weight).sum(), found.into_iter().map(|(path, ..)| path).collect())
}

/// The value at a place.
pub(super) fn at<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(field, text) => value
            .as_array()?
            .iter()
            .find(|item| item.get(*field).and_then(Value::as_str) == Some(text)),
    })
}

/// The places that hold a value, whole or as part of a text.
pub(super) fn holding(value: &Value, wanted: &Value, path: &mut Path, found: &mut Vec<Effect>) {
    let is_part = |text: &str| wanted.as_str().is_some_and(|wanted| text.contains(wanted));
    if value == wanted || value.as_str().is_some_and(is_part) {
        found.push(Effect { path: path.clone(), after: Some(value.clone()) });
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, below) in map {
                path.push(Step::Key(key.clone()));
                holding(below, wanted, path, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            let Some(field) = merge_key(items, items) else { return };
            for item in items {
                let text = item.get(field).and_then(Value::as_str).unwrap_or_default();
                path.push(Step::Item(field, text.to_owned()));
                holding(item, wanted, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Which object this is; none for what has no kind or name.
pub(super) fn identity(object: &Value) -> Option<ObjectRef> {
    let about = ObjectRef::of(object);
    (!about.kind.is_empty() && !about.name.is_empty()).then_some(about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_server_fills_in_is_no_difference() {
        let rendered = comparable(
            json!({"kind": "DaemonSet", "spec": {"updateStrategy": {"rollingUpdate":
                {"maxUnavailable": 2}}, "resources": {"limits": {"cpu": 1}}}}),
            false,
        );
        let live = |surge: Value, cpu: &str| {
            let rolling = json!({"maxUnavailable": 2, "maxSurge": surge});
            let spec = json!({"updateStrategy": {"rollingUpdate": rolling},
                "resources": {"limits": {"cpu": cpu}}});
            let labels = json!({"kubernetes.io/metadata.name": "x"});
            comparable(json!({"metadata": {"labels": labels}, "spec": spec}), false)
        };
        assert_eq!(differences(&rendered, &live(json!(0), "1")), (0, Vec::new()));
        assert_eq!(differences(&rendered, &live(json!("20%"), "2")).0, 2);
    }

    #[test]
    fn places_by_name_and_by_mount() {
        let one = json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "mounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
            "args": ["x"]});
        let two = json!({"env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}],
            "mounts": [{"name": "v", "mountPath": "/b"}],
            "args": ["x", "y"]});
        let mut found = Vec::new();
        places(Some(&one), Some(&two), &mut Vec::new(), &mut found);
        let shown: Vec<_> = found.iter().map(|(path, ..)| show(path)).collect();
        assert_eq!(
            shown,
            ["args", "env[name=A]", "env[name=B].value", "env[name=C]", "mounts[mountPath=/a]"]
        );
        assert_eq!(differences(&one, &two).0, 1 + 2 + 1 + 2 + 2);
    }

    #[test]
    fn server_defaults_and_marks_are_no_differences() {
        let rendered = comparable(
            json!({"kind": "Service", "metadata": {"name": "x"},
            "spec": {"a": 1, "e": {}}}),
            false,
        );
        let live = comparable(
            json!({"kind": "Service", "status": {"x": 1},
            "metadata": {"uid": "1", "annotations": {"meta.helm.sh/release-name": "x"}},
            "spec": {"a": 1, "clusterIP": "1.2.3.4", "sessionAffinity": "None"}}),
            false,
        );
        assert_eq!(differences(&rendered, &live).0, 0);
    }
}
