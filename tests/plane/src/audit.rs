//! The API server's audit log, and the proof that somebody wrote nothing.
//!
//! ```text
//! request ── RequestReceived ── authorisation, admission, storage ── ResponseComplete
//!               │ line in the log before anything can have taken effect
//! ```
//!
//! The policy keeps `RequestReceived` for every mutating request, so that a request is in the log
//! before it can take effect, and a reader who sees none has proved that there was none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::identity::NODES_USER;

/// The audit log of one plane.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in an audit log: requests before it are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditMark(u64);

/// One request, put together from its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedRequest {
    /// User name of the caller.
    pub user: String,
    /// Kubernetes verb: `get`, `create`, `patch` and so on.
    pub verb: String,
    /// Path and query as sent.
    pub uri: String,
    /// API group; empty for the core group and for paths that are no resource.
    pub group: String,
    /// Resource in the plural, with its subresource after a slash.
    pub resource: String,
    /// Namespace, if any.
    pub namespace: String,
    /// Name; empty on a create.
    pub name: String,
    /// True when the caller asked for a dry run, in the query or in the body of a delete.
    pub dry_run: bool,
    /// HTTP status of the answer; `None` while the request runs.
    pub status: Option<u16>,
}

impl AuditedRequest {
    /// True for everything that asks the server to change something, whatever it answered.
    pub fn is_mutating(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection" | "post" | "put"
        )
    }

    /// True for a mutating request that leaves nothing behind: a dry run, or the create of an
    /// access or token review, which is a question in the form of an object.
    pub fn writes_nothing(&self) -> bool {
        let review = match self.group.as_str() {
            "authorization.k8s.io" => matches!(
                self.resource.as_str(),
                "selfsubjectaccessreviews"
                    | "subjectaccessreviews"
                    | "localsubjectaccessreviews"
                    | "selfsubjectrulesreviews"
            ),
            "authentication.k8s.io" => {
                matches!(self.resource.as_str(), "tokenreviews" | "selfsubjectreviews")
            }
            _ => false,
        };
        !self.is_mutating() || self.dry_run || (self.verb == "create" && review)
    }
}

impl std::fmt::Display for AuditedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = self.status.map_or_else(|| "running".to_owned(), |code| code.to_string());
        write!(f, "{} {} by {} ({status})", self.verb, self.uri, self.user)
    }
}

impl AuditLog {
    /// The log in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The end of the log at this moment.
    pub fn mark(&self) -> AuditMark {
        AuditMark(fs::metadata(&self.path).map_or(0, |metadata| metadata.len()))
    }

    /// All requests of one user since a mark, in the order of their first line.
    ///
    /// Reads of the plane's own parts (the servers and the node helper) are not logged.
    ///
    /// # Errors
    ///
    /// When the log cannot be read or a line is no audit event.
    pub fn requests(&self, user: &str, since: AuditMark) -> Result<Vec<AuditedRequest>> {
        let bytes = fs::read(&self.path).map_err(Error::file("cannot read", &self.path))?;
        let start = usize::try_from(since.0).unwrap_or(usize::MAX).min(bytes.len());
        let text = String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned();
        let mut order = Vec::new();
        let mut requests: BTreeMap<String, AuditedRequest> = BTreeMap::new();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or(""));
        for line in whole.lines().filter(|line| !line.is_empty()) {
            let event: Event = serde_json::from_str(line)
                .map_err(|source| Error::Document { what: format!("audit line {line}"), source })?;
            if event.user.username != user {
                continue;
            }
            let id = event.audit_id.clone();
            let request = event.into_request();
            if let Some(known) = requests.get_mut(&id) {
                known.status = known.status.or(request.status);
                known.dry_run |= request.dry_run;
            } else {
                order.push(id.clone());
                requests.insert(id, request);
            }
        }
        Ok(order.iter().filter_map(|id| requests.remove(id)).collect())
    }

    /// The requests of one user since a mark that may have left something behind.
    ///
    /// An empty answer proves that the user wrote nothing: see the module's description.
    ///
    /// # Errors
    ///
    /// When the log cannot be read.
    pub fn writes(&self, user: &str, since: AuditMark) -> Result<Vec<AuditedRequest>> {
        let mut requests = self.requests(user, since)?;
        requests.retain(|request| !request.writes_nothing());
        Ok(requests)
    }
}

/// The fields of an audit event that are used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(rename = "auditID")]
    audit_id: String,
    #[serde(rename = "requestURI", default)]
    request_uri: String,
    #[serde(default)]
    verb: String,
    #[serde(default)]
    user: User,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    request_object: Value,
}

#[derive(Debug, Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectRef {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    api_group: String,
}

#[derive(Debug, Default, Deserialize)]
struct ResponseStatus {
    code: Option<u16>,
}

impl Event {
    fn into_request(self) -> AuditedRequest {
        let in_body = self
            .request_object
            .get("dryRun")
            .and_then(Value::as_array)
            .is_some_and(|values| values.iter().any(|value| value == "All"));
        let resource = if self.object_ref.subresource.is_empty() {
            self.object_ref.resource
        } else {
            format!("{}/{}", self.object_ref.resource, self.object_ref.subresource)
        };
        AuditedRequest {
            user: self.user.username,
            verb: self.verb,
            dry_run: in_body || query_asks_dry_run(&self.request_uri),
            uri: self.request_uri,
            group: self.object_ref.api_group,
            resource,
            namespace: self.object_ref.namespace,
            name: self.object_ref.name,
            status: self.response_status.code,
        }
    }
}

/// True when a request's query holds `dryRun=All`.
pub(crate) fn query_asks_dry_run(uri: &str) -> bool {
    uri.split_once('?').is_some_and(|(_, query)| query.split('&').any(|pair| pair == "dryRun=All"))
}

/// Writes the audit policy: no reads of the plane's own parts, one line for everybody else's
/// reads, two for writes; the body of a delete, since its dry run is asked for there.
pub(crate) fn write_policy(path: &Path) -> Result<()> {
    let own = json!([
        "system:apiserver",
        "system:kube-controller-manager",
        "system:kube-scheduler",
        NODES_USER
    ]);
    let reads = json!(["get", "list", "watch"]);
    let policy = json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            {"level": "None", "users": own, "verbs": reads},
            {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"], "verbs": reads},
            {"level": "None", "users": own, "resources": [{"group": "coordination.k8s.io"}]},
            {"level": "Metadata", "verbs": reads, "omitStages": ["RequestReceived"]},
            {"level": "Request", "verbs": ["delete", "deletecollection"]},
            {"level": "Metadata"},
        ],
    });
    fs::write(path, format!("{policy:#}\n")).map_err(Error::file("cannot write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[Value]) -> AuditLog {
        let path = std::env::temp_dir().join(format!(
            "ichor-audit-{}-{:?}.log",
            std::process::id(),
            std::thread::current().id()
        ));
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        let text = text.join("\n") + "\n";
        fs::write(&path, text).unwrap();
        AuditLog::new(path)
    }

    fn event(verb: &str, uri: &str, resource: &Value) -> Value {
        json!({
            "auditID": format!("{verb}{uri}"), "verb": verb, "requestURI": uri,
            "user": {"username": "me"}, "objectRef": resource,
        })
    }

    #[test]
    fn reads_dry_runs_and_reviews_are_no_writes() {
        let mut delete =
            event("delete", "/api/v1/namespaces/a/pods/p", &json!({"resource": "pods"}));
        delete["requestObject"] = json!({"dryRun": ["All"]});
        let review =
            json!({"resource": "selfsubjectaccessreviews", "apiGroup": "authorization.k8s.io"});
        let log = log(&[
            event("get", "/api/v1/pods", &json!({"resource": "pods"})),
            event("patch", "/api/v1/pods/p?a=b&dryRun=All", &json!({"resource": "pods"})),
            event("create", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review),
            delete,
        ]);
        assert_eq!(log.requests("me", AuditMark::default()).unwrap().len(), 4);
        assert_eq!(log.writes("me", AuditMark::default()).unwrap(), []);
        fs::remove_file(log.path).unwrap();
    }

    #[test]
    fn a_write_counts_before_it_is_answered_and_when_it_is_refused() {
        let secrets = json!({"resource": "secrets"});
        let mut refused = event("create", "/api/v1/namespaces/a/secrets", &secrets);
        refused["responseStatus"] = json!({"code": 403});
        let log = log(&[
            event("create", "/api/v1/namespaces/a/secrets", &secrets),
            refused,
            event("update", "/api/v1/namespaces/a/secrets/s?dryRun=none", &secrets),
        ]);
        let writes = log.writes("me", AuditMark::default()).unwrap();
        assert_eq!(writes.len(), 2);
        assert_eq!(writes[0].status, Some(403));
        assert_eq!(writes[1].status, None);
        fs::remove_file(log.path).unwrap();
    }
}
