//! Finds Cilium in a machine configuration, or in another file of several documents, by what the
//! manifests hold and not by what they are called.
//!
//! (Takeover rules, section 4, step 8: a manifest holding the DaemonSet `cilium` of
//! `kube-system`.)

use goyaml::{Limits, Map, Value};
use helm_rs::manifest::split_manifests;

use crate::object::ObjectRef;
use crate::pinned::{DAEMON_SET, NAMESPACE};

/// How deep lists of objects may lie in lists.
const LIST_DEPTH: usize = 8;

/// An entry of `cluster.inlineManifests` that holds Cilium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineEntry {
    /// The configuration's document, from 0.
    pub document: usize,
    /// The entry's place in the list, from 0.
    pub index: usize,
    /// The entry's name; names need not be unique.
    pub name: String,
    /// All objects of the entry, in its order.
    pub objects: Vec<ObjectRef>,
}

/// What a machine configuration says about Cilium.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The entries that hold Cilium.
    pub entries: Vec<InlineEntry>,
    /// Entries whose contents cannot be read, as place and reason: one may hold Cilium.
    pub unreadable: Vec<(String, String)>,
}

/// Why a file cannot be searched. Contents are not quoted: they may hold secrets.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum InlineError {
    /// A document is no YAML.
    #[error("document {document}")]
    Yaml {
        /// The document, from 0.
        document: usize,
        /// What is wrong.
        #[source]
        source: goyaml::Error,
    },
    /// A field is of a wrong type.
    #[error("document {document}: {path} is not {wanted}")]
    Field {
        /// The document, from 0.
        document: usize,
        /// The field.
        path: String,
        /// What should be there.
        wanted: &'static str,
    },
}

/// The objects of a multi-document manifest, those of lists included.
///
/// # Errors
/// [`InlineError::Yaml`]
pub fn objects(manifest: &[u8]) -> Result<Vec<Map>, InlineError> {
    let mut objects = Vec::new();
    for (document, text) in split_manifests(manifest).iter().enumerate() {
        let value = goyaml::from_yaml(text, &Limits::default())
            .map_err(|source| InlineError::Yaml { document, source })?;
        flatten(value, LIST_DEPTH, &mut objects);
    }
    Ok(objects)
}

fn flatten(value: Value, depth: usize, objects: &mut Vec<Map>) {
    let Value::Map(mut map) = value else { return };
    let is_list = text(&map, &["kind"]).ends_with("List");
    match map.remove("items") {
        Some(Value::Seq(items)) if is_list && depth > 0 => {
            for item in items {
                flatten(item, depth - 1, objects);
            }
        }
        Some(items) => {
            map.insert("items", items);
            objects.push(map);
        }
        None => objects.push(map),
    }
}

fn text(map: &Map, path: &[&str]) -> String {
    let Some((first, rest)) = path.split_first() else { return String::new() };
    let value = map.get(first).and_then(|value| value.at(rest));
    value.and_then(Value::as_str).map(ToString::to_string).unwrap_or_default()
}

fn reference(object: &Map) -> ObjectRef {
    ObjectRef {
        kind: text(object, &["kind"]),
        namespace: text(object, &["metadata", "namespace"]),
        name: text(object, &["metadata", "name"]),
    }
}

/// Whether this is the agent's DaemonSet. An object without a namespace is not: it would be made
/// in `default`.
pub fn is_agent(object: &ObjectRef) -> bool {
    object.kind == "DaemonSet" && object.namespace == NAMESPACE && object.name == DAEMON_SET
}

/// The objects of a manifest, if Cilium's DaemonSet is among them.
///
/// # Errors
/// [`InlineError::Yaml`]
pub fn find(manifest: &[u8]) -> Result<Option<Vec<ObjectRef>>, InlineError> {
    let objects: Vec<ObjectRef> = objects(manifest)?.iter().map(reference).collect();
    Ok(objects.iter().any(is_agent).then_some(objects))
}

/// Searches a Talos machine configuration (of one or more documents) for inline manifests that
/// hold Cilium.
///
/// # Errors
/// [`InlineError`] when the configuration itself is none; a broken manifest in it is told apart.
pub fn in_machine_config(config: &[u8]) -> Result<Search, InlineError> {
    let mut search = Search::default();
    for (document, text) in split_manifests(config).iter().enumerate() {
        let value = goyaml::from_yaml(text, &Limits::default())
            .map_err(|source| InlineError::Yaml { document, source })?;
        let field =
            |path: &str, wanted| InlineError::Field { document, path: path.to_owned(), wanted };
        let Some(map) = value.as_map() else {
            if value.is_null() {
                continue;
            }
            return Err(field("(whole document)", "a table"));
        };
        let Some(cluster) = map.get("cluster").filter(|value| !value.is_null()) else { continue };
        let cluster = cluster.as_map().ok_or_else(|| field("cluster", "a table"))?;
        let Some(list) = cluster.get("inlineManifests").filter(|value| !value.is_null()) else {
            continue;
        };
        let list = list.as_seq().ok_or_else(|| field("cluster.inlineManifests", "a list"))?;
        for (index, entry) in list.iter().enumerate() {
            let path = format!("cluster.inlineManifests[{index}]");
            let entry = entry.as_map().ok_or_else(|| field(&path, "a table"))?;
            let name = self::text(entry, &["name"]);
            let contents = match entry.get("contents") {
                None | Some(Value::Null) => continue,
                Some(contents) => {
                    contents.as_str().ok_or_else(|| field(&format!("{path}.contents"), "a text"))?
                }
            };
            match find(contents) {
                Ok(Some(objects)) => {
                    search.entries.push(InlineEntry { document, index, name, objects });
                }
                Ok(None) => {}
                Err(error) => {
                    let place = format!("document {document}: {path} ({name})");
                    search.unreadable.push((place, helm_rs::error_chain(&error)));
                }
            }
        }
    }
    Ok(search)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r"version: v1alpha1
machine: {type: controlplane}
cluster:
  inlineManifests:
    - name: cilium
      contents: |
        apiVersion: v1
        kind: Namespace
        metadata: {name: decoy}
    - name: network
      contents: |
        ---
        # Source: cilium/templates/x.yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: cilium-config, namespace: kube-system}
        ---
        apiVersion: v1
        kind: List
        items:
        - apiVersion: apps/v1
          kind: DaemonSet
          metadata: {name: cilium, namespace: kube-system}
    - name: broken
      contents: 'a: [token'
    - name: other-namespace
      contents: |
        kind: DaemonSet
        metadata: {name: cilium}
    - name: empty
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: n1
";

    #[test]
    fn content_tells_and_not_the_name() {
        let search = in_machine_config(CONFIG.as_bytes()).unwrap();
        assert_eq!(search.entries.len(), 1);
        let entry = &search.entries[0];
        assert_eq!((entry.document, entry.index, entry.name.as_str()), (0, 1, "network"));
        assert_eq!(
            entry.objects,
            [
                ObjectRef::new("ConfigMap", "kube-system", "cilium-config"),
                ObjectRef::new("DaemonSet", "kube-system", "cilium"),
            ]
        );
        assert_eq!(search.unreadable.len(), 1);
        let (place, reason) = &search.unreadable[0];
        assert_eq!(place, "document 0: cluster.inlineManifests[2] (broken)");
        assert!(!reason.contains("token"), "{reason}");
    }

    #[test]
    fn hostile_configurations() {
        for (config, wanted) in [
            ("cluster: 7", "document 0: cluster is not a table"),
            ("- 1", "document 0: (whole document) is not a table"),
            ("cluster: {inlineManifests: {}}", "document 0: cluster.inlineManifests is not a list"),
            (
                "cluster: {inlineManifests: [1]}",
                "document 0: cluster.inlineManifests[0] is not a table",
            ),
            (
                "cluster: {inlineManifests: [{contents: [1]}]}",
                "document 0: cluster.inlineManifests[0].contents is not a text",
            ),
        ] {
            let error = in_machine_config(config.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), wanted);
        }
        assert!(in_machine_config(b"a: [").is_err());
        assert_eq!(in_machine_config(b"").unwrap(), Search::default());
        let deep = format!("{}{}", "kind: List\nitems: ", "[".repeat(5000));
        assert!(find(deep.as_bytes()).is_err());
        assert_eq!(find(b"kind: DaemonSet\nmetadata: [1]\n"), Ok(None));
    }
}
