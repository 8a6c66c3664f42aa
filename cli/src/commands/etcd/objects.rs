//! The objects of an etcd snapshot that a takeover looks at.

use serde_json::Value;
use takeover::snapshot::select::{Selection, is_begun};

use super::EtcdFlags;
use super::shared::{Open, Unreadable};
use crate::commands::Context;
use crate::error::CommandError;

/// What is not decoded at all: there is much of it, and nobody looks at it.
const PASSING: [&str; 12] = [
    "certificatesigningrequests",
    "controllerrevisions",
    "endpointslices",
    "events",
    "masterleases",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "cilium.io/ciliumendpoints",
    "cilium.io/ciliumidentities",
    "services/endpoints",
];

/// Objects with their places.
type Objects = Vec<(String, Value)>;

/// Reads the objects, and what of them cannot be read, for people.
pub(crate) fn objects(
    file: &str,
    flags: &EtcdFlags,
    context: &mut Context<'_>,
) -> Result<(Objects, Vec<String>), CommandError> {
    let keys = flags.options()?;
    let open = Open::file(file, keys.at_revision, context)?;
    let read = |key: &[u8], entry: &_| -> Result<Value, Unreadable> {
        let stored = open.object(key, entry, keys.keys.as_ref())?;
        let json = goyaml::json::to_json(&goyaml::Value::Map(stored.object)).unwrap_or_default();
        Ok(serde_json::from_str(&json).unwrap_or_default())
    };
    // Which records are kept depends on two objects.
    let one = |name: &str| {
        let key = [open.layout.prefix(), b"/", name.as_bytes()].concat();
        let entry = open.index.get(&key).filter(|entry| !entry.is_deleted)?;
        read(&key, entry).ok()
    };
    let agent = one("daemonsets/kube-system/cilium");
    let begun = one("secrets/ichor-system/ichor-cni-plan").is_some_and(|it| is_begun(&it));
    let mut selection = Selection::of(agent.as_ref(), begun, &[]);
    let (mut objects, mut unread) = (Vec::new(), Vec::new());
    for (key, entry) in open.index.iter() {
        let Some(at) = open.layout.read(key).filter(|at| !PASSING.contains(&at.resource)) else {
            continue;
        };
        let name = String::from_utf8_lossy(key).into_owned();
        match read(key, entry) {
            Ok(object) => {
                let plural = at.resource.rsplit('/').next().unwrap_or_default();
                if selection.keeps(&object, plural) {
                    objects.push((name, object));
                }
            }
            Err(error) => unread.push(format!("{name}: {error}")),
        }
    }
    unread.extend(selection.note());
    Ok((objects, unread))
}
