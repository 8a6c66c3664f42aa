//! The Job `ichor-cni`: the takeover as the cluster itself runs it.
//!
//! ```text
//! plan ─ needs ─ roles ─┐
//!                       ├─ objects: namespace, ServiceAccount, Roles, bindings, Job
//! options ─ pod ────────┘
//! ```
//!
//! Its Roles hold exactly what the plan needs and the check before the first write asks for
//! ([`crate::plan::Needs`]); there is no wildcard in them. (Takeover rules, section 6)

mod hand_over;
mod pod;
mod roles;
mod summary;

use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE};
use helm_rs::cluster::Subject;
use serde_json::{Value, json};

pub use hand_over::{RecordsRole, records_roles, remove_records_roles};
pub use pod::{ApiServer, ChangeOptions, JobOptions, TALOS_API_SERVER, VALUES_SECRET, api_server};
pub use roles::{Place, place};
pub use summary::Summary;

use crate::plan::{Missing, Needs};

/// The name of the Job, its ServiceAccount, and most of its Roles.
pub const NAME: &str = "ichor-cni";
/// The Role that holds what is needed of foreign records, in each namespace that has some.
pub const RECORDS_ROLE: &str = "ichor-cni-records-role";
/// The ClusterRole for what lies in namespaces that the takeover creates: no Role can lie there
/// before.
pub const NEW_NAMESPACES_ROLE: &str = "ichor-cni-new-namespaces";
/// The label that all these objects have.
const LABEL: (&str, &str) = ("app.kubernetes.io/name", NAME);

/// Who the Job is to the API server.
pub fn subject() -> Subject {
    Subject::service_account(NAMESPACE, NAME)
}

/// Everything that the Job needs, in the order in which it can be applied: ichor's namespace, the
/// ServiceAccount, Roles with their bindings, the operator's values if any, the Job.
pub fn objects(needs: &Needs, options: &JobOptions) -> Vec<Value> {
    let mut objects = vec![
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": RECORD_NAMESPACE },
        }),
        json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(NAME, NAMESPACE),
            "automountServiceAccountToken": false,
        }),
    ];
    objects.extend(rights(needs));
    objects.extend(pod::objects(options));
    objects
}

/// The Roles and ClusterRoles of the Job, each followed by its binding.
pub fn rights(needs: &Needs) -> Vec<Value> {
    roles::objects(needs)
}

/// Those of [`rights`] in which something is missing, whole.
pub fn missing_rights(needs: &Needs, missing: &[Missing]) -> Vec<Value> {
    let lacks = |pair: &[Value]| {
        let Some(role) = pair.first() else { return false };
        let place = roles::title(
            role["metadata"]["namespace"].as_str().unwrap_or_default(),
            role["metadata"]["name"].as_str().unwrap_or_default(),
        );
        missing.iter().any(|missing| missing.role == place)
    };
    rights(needs).chunks(2).filter(|pair| lacks(pair)).flatten().cloned().collect()
}

fn metadata(name: &str, namespace: &str) -> Value {
    let mut metadata = json!({ "name": name, "labels": { LABEL.0: LABEL.1 } });
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    metadata
}
