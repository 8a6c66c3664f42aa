//! Release ownership: the label and the annotations by which Helm tells whose an object is
//! (`pkg/action/validate.go`).

use serde_json::{Map, Value};

use crate::gotext::quote;

/// The label that says which tool manages an object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Its value on objects of releases.
pub const MANAGED_BY: &str = "Helm";
/// The annotation with the release's name.
pub const RELEASE_NAME: &str = "meta.helm.sh/release-name";
/// The annotation with the release's namespace.
pub const RELEASE_NAMESPACE: &str = "meta.helm.sh/release-namespace";

/// A live object that is not this release's (`checkOwnership`).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid ownership metadata; {}", faults.join("; "))]
pub struct NotOwned {
    /// What is wrong, in Helm's words and order.
    pub faults: Vec<String>,
}

/// Checks that a live object carries the release's ownership metadata.
///
/// # Errors
/// [`NotOwned`] with all faults.
pub fn check(live: &Value, release: &str, namespace: &str) -> Result<(), NotOwned> {
    let rules = [
        ("label", "/metadata/labels", MANAGED_BY_LABEL, MANAGED_BY),
        ("annotation", "/metadata/annotations", RELEASE_NAME, release),
        ("annotation", "/metadata/annotations", RELEASE_NAMESPACE, namespace),
    ];
    let faults: Vec<String> = rules
        .into_iter()
        .filter_map(|(what, place, key, wanted)| {
            let actual = live.pointer(place).and_then(|values| values.get(key)?.as_str());
            let fault = match actual {
                None => format!("missing key {}: must be set to {}", quote(key), quote(wanted)),
                Some(actual) if actual != wanted => format!(
                    "key {} must equal {}: current value is {}",
                    quote(key),
                    quote(wanted),
                    quote(actual)
                ),
                Some(_) => return None,
            };
            Some(format!("{what} validation error: {fault}"))
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(NotOwned { faults }) }
}

/// Whose a live object is, when its metadata names another release than this one.
pub fn other(live: &Value, release: &str, namespace: &str) -> Option<String> {
    let annotation = |key: &str| live.pointer("/metadata/annotations")?.get(key)?.as_str();
    let owner = annotation(RELEASE_NAME).unwrap_or(release);
    let place = annotation(RELEASE_NAMESPACE).unwrap_or(namespace);
    (owner != release || place != namespace)
        .then(|| format!("release {} in namespace {}", quote(owner), quote(place)))
}

/// Gives an object the release's ownership metadata, whatever it had (`setMetadataVisitor` with
/// force). Labels and annotations among which one is neither a text nor null are all dropped, as
/// Go's accessor does not see such a map.
pub fn set(object: &mut Value, release: &str, namespace: &str) {
    let Some(object) = object.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    let Some(metadata) = metadata.as_object_mut() else { return };
    merge(metadata, "labels", &[(MANAGED_BY_LABEL, MANAGED_BY)]);
    merge(metadata, "annotations", &[(RELEASE_NAME, release), (RELEASE_NAMESPACE, namespace)]);
}

/// `mergeLabels` and `mergeAnnotations`: null reads as the empty text, a map with anything else as
/// empty (`unstructured.NestedNullCoercingStringMap`).
fn merge(metadata: &mut Map<String, Value>, name: &str, wanted: &[(&str, &str)]) {
    let text = |(key, value): (&String, &Value)| match value {
        Value::String(_) => Some((key.clone(), value.clone())),
        Value::Null => Some((key.clone(), Value::from(""))),
        _ => None,
    };
    let values = metadata.get(name).and_then(Value::as_object);
    let mut values: Map<String, Value> =
        values.and_then(|values| values.iter().map(text).collect()).unwrap_or_default();
    for (key, value) in wanted {
        values.insert((*key).to_owned(), Value::from(*value));
    }
    metadata.insert(name.to_owned(), Value::Object(values));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MANAGED_BY_LABEL, check, set};

    #[test]
    fn faults_read_as_helms() {
        let live = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "other"}}});
        let error = check(&live, "web", "ns").unwrap_err().to_string();
        assert_eq!(
            error,
            "invalid ownership metadata; label validation error: missing key \
             \"app.kubernetes.io/managed-by\": must be set to \"Helm\"; annotation validation error: \
             key \"meta.helm.sh/release-name\" must equal \"web\": current value is \"other\"; \
             annotation validation error: missing key \"meta.helm.sh/release-namespace\": must be set \
             to \"ns\""
        );
    }

    #[test]
    fn only_what_names_another_release_is_anothers() {
        let named = |annotations| json!({"metadata": {"annotations": annotations}});
        let other = |object| super::other(&object, "web", "ns");
        assert_eq!(other(json!({})), None);
        assert_eq!(other(named(json!({"meta.helm.sh/release-name": "web"}))), None);
        assert_eq!(
            other(named(json!({"meta.helm.sh/release-name": "db"}))).as_deref(),
            Some("release \"db\" in namespace \"ns\"")
        );
        assert!(other(named(json!({"meta.helm.sh/release-namespace": "x"}))).is_some());
    }

    #[test]
    fn what_is_set_passes() {
        let mut object =
            json!({"metadata": {"name": "x", "labels": {"a": "b"}, "annotations": null}});
        set(&mut object, "web", "ns");
        assert_eq!(check(&object, "web", "ns"), Ok(()));
        assert_eq!(object.pointer("/metadata/labels/a"), Some(&json!("b")));
    }

    #[test]
    fn a_null_is_an_empty_label_and_anything_else_hides_all() {
        let labels = |labels| {
            let mut object = json!({"metadata": {"labels": labels}});
            set(&mut object, "web", "ns");
            object["metadata"]["labels"].clone()
        };
        let managed = "Helm";
        assert_eq!(
            labels(json!({"a": "b", "c": null})),
            json!({"a": "b", "c": "", MANAGED_BY_LABEL: managed})
        );
        assert_eq!(labels(json!({"a": "b", "c": 7})), json!({MANAGED_BY_LABEL: managed}));
    }
}
