//! Keys: where an API server puts an object.

use goyaml::{Map, Value};

use crate::keyspace::Index;

/// Where API servers put objects unless `--etcd-prefix` says otherwise.
const PREFIX: &[u8] = b"/registry";
/// An object that every cluster has, and behind which the prefix is found.
const MARKS: [&[u8]; 2] = [b"/namespaces/kube-system", b"/namespaces/default"];

/// The prefix of a cluster's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    prefix: Vec<u8>,
}

/// What a key says about its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectKey<'a> {
    /// The resource as in the key: `secrets`, `services/specs`, `cilium.io/ciliumnodes`.
    pub resource: &'a str,
    /// The namespace; empty for an object without.
    pub namespace: &'a str,
    /// The object's name; of odd keys all that is left.
    pub name: &'a str,
}

impl ObjectKey<'_> {
    /// Whether an object that stands under this key is the one that it names. What has no name,
    /// such as an allocation of addresses, is.
    pub fn is_of(&self, object: &Map) -> bool {
        let metadata = object.get("metadata").and_then(Value::as_map);
        let text = |field| {
            let value = metadata.and_then(|metadata| metadata.get(field)).and_then(Value::as_str);
            value.map(ToString::to_string).unwrap_or_default()
        };
        let (namespace, name) = (text("namespace"), text("name"));
        name.is_empty() || (namespace.as_str(), name.as_str()) == (self.namespace, self.name)
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self { prefix: PREFIX.to_vec() }
    }
}

impl Layout {
    /// Finds out the prefix by the namespaces that every cluster has.
    pub fn of(index: &Index) -> Self {
        let marked =
            |key: &[u8]| MARKS.iter().find_map(|mark| key.strip_suffix(*mark)).map(<[u8]>::to_vec);
        // A custom resource could be named so too, further down: the shortest one counts.
        let found = index.iter_all().filter_map(|(key, _)| marked(key)).min_by_key(Vec::len);
        let found = found.or_else(|| {
            // Where these are lost, and no object is where most clusters have them.
            let is_default =
                |key: &[u8]| key.strip_prefix(PREFIX).is_some_and(|it| it.starts_with(b"/"));
            if index.iter_all().any(|(key, _)| is_default(key)) {
                return None;
            }
            index.iter_all().filter_map(|(key, _)| before_resource(key)).min_by_key(Vec::len)
        });
        found.map_or_else(Self::default, |prefix| Self { prefix })
    }

    /// The prefix, without a slash at its end.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// What a key says; `None` for keys that are not of this cluster.
    pub fn read<'a>(&self, key: &'a [u8]) -> Option<ObjectKey<'a>> {
        let path = std::str::from_utf8(key.strip_prefix(self.prefix.as_slice())?).ok()?;
        let path = path.strip_prefix('/')?;
        let (first, _) = path.split_once('/')?;
        // A group of custom resources has a dot in its name; services share a folder.
        let words = if first.contains('.') || first == "services" { 2 } else { 1 };
        let (end, _) = path.match_indices('/').nth(words - 1)?;
        let (resource, rest) = path.split_at_checked(end)?;
        let rest = rest.strip_prefix('/')?;
        let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
        Some(ObjectKey { resource, namespace, name })
    }
}

/// What stands before the resource in the key of a Secret or a `ConfigMap`.
fn before_resource(key: &[u8]) -> Option<Vec<u8>> {
    let key = std::str::from_utf8(key).ok()?;
    ["/secrets/", "/configmaps/"].iter().find_map(|resource| {
        let (prefix, object) = key.split_once(resource)?;
        (object.matches('/').count() == 1).then(|| prefix.as_bytes().to_vec())
    })
}

#[cfg(test)]
mod tests {
    use super::Layout;

    #[test]
    fn keys() {
        let layout = Layout::default();
        let read = |key: &'static str| {
            layout.read(key.as_bytes()).map(|it| (it.resource, it.namespace, it.name))
        };
        assert_eq!(read("/registry/secrets/a/b"), Some(("secrets", "a", "b")));
        assert_eq!(read("/registry/namespaces/a"), Some(("namespaces", "", "a")));
        assert_eq!(read("/registry/services/specs/a/b"), Some(("services/specs", "a", "b")));
        assert_eq!(read("/registry/cilium.io/nodes/n"), Some(("cilium.io/nodes", "", "n")));
        assert_eq!(read("/registry/g.io/r/a/b"), Some(("g.io/r", "a", "b")));
        assert_eq!(read("/registry/health"), None);
        assert_eq!(read("compact_rev_key"), None);
    }
}
