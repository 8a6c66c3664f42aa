//! One request as the proxy saw it.

use std::time::SystemTime;

use hyper::Method;

use crate::audit::query_asks_dry_run;

/// A request in the terms of Kubernetes.
#[derive(Debug, Clone)]
pub struct RequestRecord {
    /// When it came.
    pub arrived: SystemTime,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: &'static str,
    /// Path without the query.
    pub path: String,
    /// Query without the question mark.
    pub query: String,
    /// API group; empty for the core group and for paths that are no resource.
    pub group: String,
    /// Resource in the plural, with its subresource after a slash; empty for other paths.
    pub resource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name, or empty.
    pub name: String,
    /// True for `dryRun=All` in the query or in the body of a delete.
    pub dry_run: bool,
    /// HTTP status of the answer; `None` when there was none (yet).
    pub status: Option<u16>,
    /// Name of the fault that a rule put on it.
    pub fault: Option<&'static str>,
}

impl RequestRecord {
    /// True for requests that ask for a change and are no dry run.
    pub fn is_write(&self) -> bool {
        !self.dry_run && !matches!(self.verb, "get" | "list" | "watch")
    }

    /// Reads method, path, query and body as `apiserver/pkg/endpoints/request/requestinfo.go`,
    /// `NewRequestInfo`, does for resources.
    pub(super) fn new(method: &Method, path: &str, query: &str, body: &[u8]) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest): (&str, &[&str]) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (group, rest),
            _ => ("", &[]),
        };
        // `namespaces/N` alone is the namespace itself, and so are its subresources.
        let (namespace, rest): (&str, &[&str]) = match rest {
            ["namespaces", name, "status" | "finalize"] => (name, rest),
            ["namespaces", namespace, tail @ ..] if !tail.is_empty() => (namespace, tail),
            ["namespaces", name] => (name, rest),
            _ => ("", rest),
        };
        let resource = rest.first().copied().unwrap_or_default();
        let name = rest.get(1).copied().unwrap_or_default();
        let subresource = rest.get(2).copied().unwrap_or_default();
        let watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if name.is_empty() => "deletecollection",
            Method::DELETE => "delete",
            _ if watch => "watch",
            _ if !resource.is_empty() && name.is_empty() => "list",
            _ => "get",
        };
        let in_body = *method == Method::DELETE && body_asks_dry_run(body);
        Self {
            arrived: SystemTime::UNIX_EPOCH,
            verb,
            path: path.to_owned(),
            query: query.to_owned(),
            group: group.to_owned(),
            resource: if subresource.is_empty() {
                resource.to_owned()
            } else {
                format!("{resource}/{subresource}")
            },
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            dry_run: in_body || query_asks_dry_run(&format!("?{query}")),
            status: None,
            fault: None,
        }
    }
}

impl std::fmt::Display for RequestRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.path)?;
        if self.dry_run {
            f.write_str(" (dry run)")?;
        }
        if let Some(status) = self.status {
            write!(f, " {status}")?;
        }
        if let Some(fault) = self.fault {
            write!(f, " [{fault}]")?;
        }
        Ok(())
    }
}

/// `DeleteOptions` carry the dry run in the body.
fn body_asks_dry_run(body: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|options| {
        let values = options.get("dryRun").and_then(serde_json::Value::as_array);
        values.is_some_and(|values| values.iter().any(|value| value == "All"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &Method, path: &str, query: &str) -> (String, RequestRecord) {
        let record = RequestRecord::new(method, path, query, b"");
        let line = format!(
            "{} {}|{}|{}|{}",
            record.verb, record.group, record.resource, record.namespace, record.name
        );
        (line, record)
    }

    #[test]
    fn requests_are_read_as_the_server_does() {
        let cases = [
            (Method::GET, "/api/v1/namespaces/a/pods", "", "list |pods|a|"),
            (Method::GET, "/api/v1/pods", "watch=true", "watch |pods||"),
            (Method::GET, "/api/v1/namespaces/a", "", "get |namespaces|a|a"),
            (Method::POST, "/api/v1/namespaces", "", "create |namespaces||"),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/deployments/d/scale",
                "",
                "patch apps|deployments/scale|a|d",
            ),
            (
                Method::DELETE,
                "/apis/apps/v1/namespaces/a/deployments",
                "",
                "deletecollection apps|deployments|a|",
            ),
            (Method::GET, "/version", "", "get |||"),
        ];
        for (method, path, query, line) in cases {
            assert_eq!(of(&method, path, query).0, line, "{path}");
        }
    }

    #[test]
    fn a_dry_run_is_seen_in_query_and_body() {
        assert!(of(&Method::PATCH, "/api/v1/nodes/n", "fieldManager=x&dryRun=All").1.dry_run);
        let body = br#"{"dryRun":["All"]}"#;
        assert!(RequestRecord::new(&Method::DELETE, "/api/v1/nodes/n", "", body).dry_run);
        assert!(!RequestRecord::new(&Method::POST, "/api/v1/nodes", "", body).dry_run);
    }
}
