//! Talos' inventory in words.

use serde::Serialize;

use super::{count, safe};
use crate::inventory::{INVENTORY_NAME, INVENTORY_NAMESPACE, InventoryAbout};

/// Talos' inventory of what it applied.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TalosView {
    pub(crate) summary: String,
    /// What is still to be done, in this order.
    pub(crate) todo: Vec<String>,
    pub(crate) listed: Vec<String>,
    pub(crate) listed_count: usize,
}

pub(super) fn talos(inventory: &InventoryAbout) -> TalosView {
    let listed: Vec<String> = inventory.listed.iter().map(|o| safe(&o.to_string())).collect();
    let place = format!("ConfigMap {INVENTORY_NAMESPACE}/{INVENTORY_NAME}");
    if !inventory.exists {
        return TalosView {
            summary: format!("there is no {place}, so that Talos deletes nothing by it"),
            todo: Vec::new(),
            listed,
            listed_count: 0,
        };
    }
    let others = count(inventory.others, "other reference", "other references");
    let summary = format!(
        "{place} lists {} of what is taken over, and {others}",
        count(listed.len(), "object", "objects")
    );
    let mut todo = Vec::new();
    if !listed.is_empty() {
        todo.push(
            "after the takeover, drop the inline manifest that holds Cilium (the one with the \
             DaemonSet kube-system/cilium, whatever its name) from the machine configuration of \
             every control plane"
                .to_owned(),
        );
        todo.push(format!(
            "once every control plane has dropped it, remove {} from the inventory: earlier, Talos \
             fills them in again; left in, a later `talosctl upgrade-k8s` deletes these objects",
            count(listed.len(), "reference", "references")
        ));
    }
    for (object, owner) in inventory.foreign.iter().map(|f| (&f.object, &f.inventory)) {
        todo.push(format!(
            "{} names another inventory as its owner ({}): while it is listed here, every sync of \
             Talos fails at it",
            safe(&object.to_string()),
            safe(owner)
        ));
    }
    TalosView { summary, todo, listed_count: listed.len(), listed }
}
