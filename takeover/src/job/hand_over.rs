//! What of the Job's rights ends with the hand-over: those on foreign records.
//! (Takeover rules, section 6)

use helm_rs::cluster::{
    Cluster, ClusterError, DeleteOptions, ErrorKind, ListQuery, Target, list_all,
};
use serde_json::Value;

use super::{LABEL, RECORDS_ROLE};
use crate::survey::{builtin, text};

const API: &str = "rbac.authorization.k8s.io/v1";

/// A Role of the Job for foreign records, which has a binding of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordsRole {
    namespace: String,
    uid: String,
}

impl std::fmt::Display for RecordsRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Role {}/{RECORDS_ROLE} with its binding", self.namespace)
    }
}

/// Finds them in all namespaces; none where the caller may not list them.
///
/// # Errors
/// [`ClusterError`]
pub async fn records_roles(cluster: &dyn Cluster) -> Result<Vec<RecordsRole>, ClusterError> {
    let query = ListQuery { labels: format!("{}={}", LABEL.0, LABEL.1), ..ListQuery::default() };
    let page = match list_all(cluster, &builtin(API, "Role", "roles", true), &query).await {
        Ok(page) => page,
        Err(error) if error.kind() == ErrorKind::Forbidden => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let is_one = |object: &&Value| text(object, "/metadata/name") == RECORDS_ROLE;
    let role = |object: &Value| RecordsRole {
        namespace: text(object, "/metadata/namespace").to_owned(),
        uid: text(object, "/metadata/uid").to_owned(),
    };
    Ok(page.items.iter().filter(is_one).map(role).collect())
}

/// Removes them: nothing needs them once the foreign records are gone.
///
/// # Errors
/// [`ClusterError`]; what comes before is removed.
pub async fn remove_records_roles(
    cluster: &dyn Cluster,
    roles: &[RecordsRole],
) -> Result<(), ClusterError> {
    for role in roles {
        // The binding first: as long as the Role is there, it is found again.
        for (kind, plural, uid) in
            [("RoleBinding", "rolebindings", ""), ("Role", "roles", role.uid.as_str())]
        {
            let target =
                Target::new(&builtin(API, kind, plural, true), &role.namespace, RECORDS_ROLE);
            let options = DeleteOptions { uid: uid.to_owned(), ..DeleteOptions::default() };
            match cluster.delete(&target, &options).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
