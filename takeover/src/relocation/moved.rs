//! A record as it is after the move, and what keeps it from meaning the same there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::build;
use helm_rs::cluster::Discovery;
use helm_rs::release::storage::{ObjectKind, record_key};
use helm_rs::release::{CodecLimits, RELEASE_FIELDS, RawObject, Record, decode, encode};
use serde_json::{Value, json};

use super::{MovePlan, Request};
use crate::place::kind_name;
use crate::plan::make::refusal;
use crate::survey::text;

/// How a Secret with a record is typed (`newSecretsObject` in `pkg/storage/driver/secrets.go`).
const SECRET_TYPE: &str = "helm.sh/release.v1";
/// Objects that a refusal names.
const NAMED: usize = 10;

/// The object of a record after the move: name and namespace are set, in the object, its label and
/// the record; everything else stays to the byte. None when the record does not read.
pub(super) fn moved(request: &Request<'_>, original: &Value) -> Option<Value> {
    let (from, to) = (&request.from, &request.to);
    let kind = kind_name(to.records);
    let mut object = original.clone();
    let revision = text(original, "/metadata/name").rsplit_once(".v")?.1.parse().ok()?;
    let mut labels = original.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    labels["name"] = to.release.as_str().into();
    let mut metadata = json!({
        "name": record_key(&to.release, revision),
        "namespace": to.namespace,
        "labels": labels,
    });
    if let Some(annotations) = original.pointer("/metadata/annotations") {
        metadata["annotations"] = annotations.clone();
    }
    let map = object.as_object_mut()?;
    map.insert("apiVersion".to_owned(), "v1".into());
    map.insert("kind".to_owned(), kind.into());
    map.insert("metadata".to_owned(), metadata);
    match (from.records, to.records) {
        (_, ObjectKind::ConfigMap) => {
            map.remove("type");
        }
        (ObjectKind::ConfigMap, ObjectKind::Secret) => {
            map.insert("type".to_owned(), SECRET_TYPE.into());
        }
        (ObjectKind::Secret, ObjectKind::Secret) => {}
    }
    let mut data = serde_json::Map::new();
    for (key, value) in original.get("data")?.as_object()? {
        let mut bytes = match from.records {
            ObjectKind::Secret => STANDARD.decode(value.as_str()?).ok()?,
            ObjectKind::ConfigMap => value.as_str()?.as_bytes().to_vec(),
        };
        if key == "release" && !to.is_same_release(from) {
            bytes = renamed(request, &bytes)?.into_bytes();
        }
        let value = match to.records {
            ObjectKind::Secret => STANDARD.encode(bytes),
            ObjectKind::ConfigMap => String::from_utf8(bytes).ok()?,
        };
        data.insert(key.clone(), value.into());
    }
    object["data"] = Value::Object(data);
    Some(object)
}

/// A record's release string with other name and namespace.
fn renamed(request: &Request<'_>, release: &[u8]) -> Option<String> {
    let json = decode(release, CodecLimits::default()).ok()?;
    let mut record = RawObject::parse(&json).ok()?;
    for (field, value) in [("name", &request.to.release), ("namespace", &request.to.namespace)] {
        record.set(field, Value::from(value.as_str()).to_string(), RELEASE_FIELDS).ok()?;
    }
    encode(&record.to_json()).ok()
}

/// Refuses a move to another namespace while manifests hold namespaced objects that name none.
///
/// Helm takes such an object to lie in the release's namespace (`setNamespaceVisitor` of the client
/// in `pkg/kube/client.go`), so that after the move an upgrade would create all of them a second
/// time, and an uninstallation would delete none of them.
pub(super) fn namespaces(
    request: &Request<'_>,
    records: &[Record],
    discovery: &Discovery,
    plan: &mut MovePlan,
) {
    if request.from.namespace == request.to.namespace {
        return;
    }
    let mut without = std::collections::BTreeSet::new();
    for record in records {
        let manifest = record.manifest().unwrap_or_default();
        let hooks = record.hooks().unwrap_or_default();
        let hooks = hooks.iter().map(|hook| hook.manifest.as_bytes().into());
        for document in
            helm_rs::manifest::split_manifests(manifest.as_bytes()).into_iter().chain(hooks)
        {
            // Built for no namespace, what names none has none.
            let Ok(items) = build(discovery, &document, "", false) else { continue };
            for item in items {
                if item.target.resource.namespaced
                    && text(&item.value, "/metadata/namespace").is_empty()
                {
                    without.insert(format!("{} {}", item.kind().kind, item.target.name));
                }
            }
        }
    }
    if without.is_empty() {
        return;
    }
    let mut names: Vec<String> = without.iter().take(NAMED).cloned().collect();
    if without.len() > NAMED {
        names.push(format!("and {} more", without.len() - NAMED));
    }
    plan.refusals.push(refusal(
        "Namespace",
        format!(
            "{} object(s) of its manifests name no namespace ({}), so that Helm takes them to lie in \
             the release's: after a move to {} its next upgrade would create all of them once more \
             there, and an uninstallation would not find them. Objects do not move; give them their \
             namespace in the chart first (many charts have `namespaceOverride`), and move when no \
             revision without it is left",
            without.len(),
            names.join(", "),
            request.to.namespace
        ),
    ));
}
