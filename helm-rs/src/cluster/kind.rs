//! Kinds, the resources that serve them, and addresses of objects.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::ClusterError;

/// A kind in a version of a group: what `apiVersion` and `kind` of an object say.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `ConfigMap`.
    pub kind: String,
}

impl Kind {
    /// The kind for an `apiVersion` (`v1`, `apps/v1`) and a `kind`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    /// The kind of an object; empty where the object does not say.
    pub fn of(object: &Value) -> Self {
        let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
        Self::new(text("apiVersion"), text("kind"))
    }

    /// `apiVersion`: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// A resource that the server serves: the URL part for a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The kind that it holds.
    pub kind: Kind,
    /// The name in URLs and RBAC rules, such as `configmaps`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What may be done with it: `get`, `list`, `create` and so on.
    pub verbs: Vec<String>,
    /// Its subresources, such as `status`.
    pub subresources: Vec<String>,
    /// Other names for people, such as `cm`.
    pub short_names: Vec<String>,
}

/// What may be done with an object of the usual kind.
const USUAL_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

impl Resource {
    /// A resource with the usual verbs, known without asking the server.
    pub fn builtin(api_version: &str, kind: &str, plural: &str, namespaced: bool) -> Self {
        Self {
            kind: Kind::new(api_version, kind),
            plural: plural.to_owned(),
            namespaced,
            verbs: USUAL_VERBS.map(String::from).to_vec(),
            ..Self::default()
        }
    }

    /// Whether the server allows `verb` on it.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// `configmaps`, `deployments.apps`: as API errors name it (`GroupResource.String`).
    pub fn qualified(&self) -> String {
        if self.kind.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.kind.group)
        }
    }
}

/// The address of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The resource.
    pub resource: Arc<Resource>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
}

impl Target {
    /// The object of that name. The namespace of a cluster-scoped resource is dropped.
    pub fn new(resource: &Arc<Resource>, namespace: &str, name: &str) -> Self {
        let namespace = if resource.namespaced { namespace } else { "" };
        Self {
            resource: Arc::clone(resource),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        }
    }

    /// The address that an object itself gives, with `namespace` where it gives none.
    pub fn of(resource: &Arc<Resource>, object: &Value, namespace: &str) -> Self {
        let text =
            |field| object.pointer(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        Self::new(
            resource,
            text("/metadata/namespace").unwrap_or(namespace),
            text("/metadata/name").unwrap_or_default(),
        )
    }

    /// Whether this is the address of one object. Without a name it would be that of a whole
    /// collection, and a name with a slash that of something else (`Request.Name` and
    /// `Request.Namespace` of client-go, `IsValidPathSegmentName` of apimachinery).
    ///
    /// # Errors
    /// [`ClusterError::Address`]
    pub fn check(&self) -> Result<(), ClusterError> {
        let wrong = |reason: String| Err(ClusterError::Address { reason });
        if self.name.is_empty() {
            return wrong("resource name may not be empty".to_owned());
        }
        self.check_namespace()?;
        match segment_fault(&self.name) {
            Some(fault) => wrong(format!(
                "invalid resource name {}: [{fault}]",
                crate::gotext::quote(&self.name)
            )),
            None => Ok(()),
        }
    }

    /// Whether the namespace is one part of a path, as [`Self::check`]; for creations.
    ///
    /// # Errors
    /// [`ClusterError::Address`]
    pub fn check_namespace(&self) -> Result<(), ClusterError> {
        let Some(fault) = segment_fault(&self.namespace) else { return Ok(()) };
        let namespace = crate::gotext::quote(&self.namespace);
        Err(ClusterError::Address { reason: format!("invalid namespace {namespace}: [{fault}]") })
    }

    /// The same object's subresource.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.subresource);
        self
    }
}

/// What keeps a text from being one part of a path.
fn segment_fault(text: &str) -> Option<String> {
    if matches!(text, "." | "..") {
        return Some(format!("may not be '{text}'"));
    }
    let faults: Vec<String> = ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect();
    (!faults.is_empty()).then(|| faults.join(" "))
}

impl fmt::Display for Target {
    /// `configmaps ns/name`, `deployments.apps ns/name`, `namespaces name`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource.qualified())?;
        if !self.subresource.is_empty() {
            write!(f, "/{}", self.subresource)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}
