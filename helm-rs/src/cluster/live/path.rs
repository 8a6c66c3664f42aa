//! URLs of the API.

use std::fmt::Write as _;

use crate::cluster::{Resource, Target};

/// The path of a resource's collection: `/api/v1/namespaces/ns/configmaps`.
pub(super) fn collection(resource: &Resource, namespace: &str) -> String {
    let kind = &resource.kind;
    let mut path = if kind.group.is_empty() {
        format!("/api/{}", segment(&kind.version))
    } else {
        format!("/apis/{}/{}", segment(&kind.group), segment(&kind.version))
    };
    if resource.namespaced && !namespace.is_empty() {
        let _ = write!(path, "/namespaces/{}", segment(namespace));
    }
    path.push('/');
    path.push_str(&segment(&resource.plural));
    path
}

/// The path of an object, or of its subresource.
pub(super) fn object(target: &Target) -> String {
    let mut path = collection(&target.resource, &target.namespace);
    path.push('/');
    path.push_str(&segment(&target.name));
    if !target.subresource.is_empty() {
        path.push('/');
        path.push_str(&target.subresource);
    }
    path
}

/// A path segment: everything is escaped but what needs no escape anywhere, and colons, which
/// names of RBAC objects have (Go's `url.PathEscape` leaves them too).
fn segment(text: &str) -> String {
    escape(text, b"-._~:$&+=@")
}

fn escape(text: &str, plain: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Query parameters.
#[derive(Default)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    pub(super) fn add(&mut self, name: &'static str, value: &str) {
        self.0.push((name, escape(value, b"-._~")));
    }

    /// Adds a parameter unless it is empty.
    pub(super) fn add_some(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.add(name, value);
        }
    }

    /// The path with these parameters, sorted as Go's `url.Values.Encode` sorts them.
    pub(super) fn on(mut self, path: &str) -> String {
        self.0.sort_by_key(|(name, _)| *name);
        let mut url = path.to_owned();
        for (index, (name, value)) in self.0.iter().enumerate() {
            let sign = if index == 0 { '?' } else { '&' };
            let _ = write!(url, "{sign}{name}={value}");
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Query, object};
    use crate::cluster::{Resource, Target};

    #[test]
    fn paths_and_queries() {
        let roles = Resource::builtin("rbac.authorization.k8s.io/v1", "Role", "roles", true);
        let target = Target::new(&Arc::new(roles), "a", "system:x/y").subresource("status");
        assert_eq!(
            object(&target),
            "/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles/system:x%2Fy/status"
        );
        let mut query = Query::default();
        query.add("limit", "5");
        query.add_some("continue", "");
        query.add("labelSelector", "a=b,c in (d)");
        assert_eq!(query.on("/x"), "/x?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
    }
}
