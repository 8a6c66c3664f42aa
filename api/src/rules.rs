//! The rules in CEL: what the definition says itself, and what only a policy can.

use cilium::detect::Kind;
use cilium::owned;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::annotation::{ACCEPTED_PLAN, ADOPTED};
use crate::cluster::MANAGED_NAME;

fn rule(expression: impl Into<String>, message: impl Into<String>) -> Value {
    let (expression, message) = (expression.into(), message.into());
    json!({ "rule": expression, "message": message })
}

/// A rule of a policy.
fn validation(expression: impl Into<String>, message: impl Into<String>) -> Value {
    let (expression, message) = (expression.into(), message.into());
    json!({ "expression": expression, "message": message, "reason": "Invalid" })
}

/// On `spec.cni.preset`. An enumeration would refuse other words too, but could not say why.
pub(crate) fn preset() -> Value {
    let only = "ichor operates Cilium, and no other CNI";
    let alone = "use unmanaged for a cluster whose CNI somebody else operates";
    json!([
        rule("self != 'flannel'", format!("flannel is not offered: {only}; {alone}")),
        rule(
            "self != 'custom'",
            format!(
                "custom is not offered: {only}, least of all one that it does not know; {alone}"
            )
        ),
        rule(
            "self in ['cilium', 'unmanaged', 'flannel', 'custom']",
            "the preset is cilium or unmanaged"
        ),
        rule(
            "self == oldSelf",
            "the preset cannot be changed: ichor migrates no cluster from one CNI to another"
        ),
    ])
}

/// On `spec.cni`, where fields exclude each other and where one may be missing.
pub(crate) fn cni() -> Value {
    let foreign = |field: &str| {
        rule(
            format!("self.preset != 'unmanaged' || !has(self.{field})"),
            format!(
                "{field} is a setting of Cilium, which ichor leaves alone with preset unmanaged"
            ),
        )
    };
    json!([
        rule(
            "self.preset != 'cilium' || !has(self.unmanaged)",
            "unmanaged is for preset unmanaged alone"
        ),
        foreign("tunnel"),
        foreign("cilium"),
        rule(
            "has(self.tunnel) == has(oldSelf.tunnel) \
             && (!has(self.tunnel) || self.tunnel == oldSelf.tunnel)",
            "tunnel cannot be changed, set or taken away later: every connection between nodes \
             would be cut"
        ),
    ])
}

/// On the whole object.
pub(crate) fn object() -> Value {
    json!([rule(
        format!("self.spec.cni.preset != 'cilium' || self.metadata.name == '{MANAGED_NAME}'"),
        format!(
            "a managed TalosCluster is named {MANAGED_NAME}: there is one network, so that there is \
             at most one"
        )
    )])
}

/// Any object, kept as it is. What lies in it is out of sight for the definition's own rules.
pub(crate) fn free_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "Values of Cilium's chart; the keys that ichor decides are refused by name.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// One of the network plugins that detection tells apart.
pub(crate) fn detected(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "description": "A network plugin.",
        "enum": Kind::ALL.map(Kind::name),
    })
}

/// What the definition cannot see: annotations, and what is in `spec.cni.cilium.values`.
pub(crate) fn policy() -> Vec<Value> {
    let annotated = |name: &str, holds: &str| {
        format!(
            "has(object.metadata.annotations) && '{name}' in object.metadata.annotations && \
             object.metadata.annotations['{name}']{holds}"
        )
    };
    let mut rules = vec![
        validation(
            format!(
                "request.operation != 'CREATE' || object.spec.cni.preset != 'unmanaged' || ({})",
                annotated(ADOPTED, " == 'true'")
            ),
            format!(
                "preset unmanaged is for a cluster that is adopted with its CNI: it needs the \
                 annotation {ADOPTED}: \"true\""
            ),
        ),
        validation(
            format!(
                "!({}) || {}",
                annotated(ACCEPTED_PLAN, " != ''"),
                format_args!(
                    "object.metadata.annotations['{ACCEPTED_PLAN}'].matches('^sha256:[0-9a-f]{{64}}$')"
                )
            ),
            format!("{ACCEPTED_PLAN} is the digest of a plan, sha256: and 64 hexadecimal digits"),
        ),
    ];
    rules.extend(owned::KEYS.iter().map(|key| {
        let name = key.name();
        validation(
            format!("!({})", present("object.spec.cni.cilium.values", key.path)),
            format!("spec.cni.cilium.values: {name} is decided by ichor, leave it out"),
        )
    }));
    rules
}

/// Whether a key is there: each table on the way is one, and has the next key.
fn present(root: &str, path: &[&str]) -> String {
    let mut terms = vec![
        "has(object.spec.cni.cilium)".to_owned(),
        "has(object.spec.cni.cilium.values)".to_owned(),
    ];
    let mut at = root.to_owned();
    for key in path {
        if at != root {
            terms.push(format!("type({at}) == map"));
        }
        terms.push(format!("'{key}' in {at}"));
        at = format!("{at}['{key}']");
    }
    terms.join(" && ")
}
