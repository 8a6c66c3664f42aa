//! The manifests that are applied to a cluster: definition and policies.

use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use crate::{TalosCluster, rules};

/// The policy and its binding.
pub const POLICY: &str = "talosclusters.ichor.maesh.dev";

/// The definition of [`TalosCluster`].
///
/// # Errors
/// Never for these types; the conversion to JSON has a way to fail.
pub fn definition() -> Result<Value, serde_json::Error> {
    let mut definition = serde_json::to_value(TalosCluster::crd())?;
    if let Some(schema) = definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        without_null(schema);
        schema["x-kubernetes-validations"] = rules::object();
    }
    Ok(definition)
}

/// A field that may be left out need not be null as well: then the API server drops a null, and a
/// rule's `has` means what it says.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("nullable");
            fields.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// The ValidatingAdmissionPolicy for what the definition's own rules cannot see, with its binding.
///
/// No webhook: all that is asked is in the one object, so that CEL in the API server answers it, and
/// nothing has to run for a TalosCluster to be written.
pub fn policies() -> Vec<Value> {
    let api = "admissionregistration.k8s.io/v1";
    vec![
        json!({
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": POLICY },
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": { "resourceRules": [{
                    "apiGroups": ["ichor.maesh.dev"],
                    "apiVersions": ["v1alpha1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["talosclusters"],
                }] },
                "validations": rules::policy(),
            },
        }),
        json!({
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": { "name": POLICY },
            "spec": { "policyName": POLICY, "validationActions": ["Deny"] },
        }),
    ]
}
