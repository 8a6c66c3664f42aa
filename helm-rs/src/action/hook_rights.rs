//! What a plan tells of hooks: which run, what they need, and what keeps one from being made.

use super::rights::{self, Right};
use super::session::ReleaseOptions;
use crate::apply::{BuildError, Item, Method, build};
use crate::cluster::Discovery;
use crate::error_chain;
use crate::manifest::{Hook, HookEvent};

/// The hooks of a planned action.
#[derive(Clone, Debug, Default)]
pub(super) struct PlannedHooks {
    /// `Kind name (event)`, each.
    pub(super) titles: Vec<String>,
    /// Why some cannot be made.
    pub(super) faults: Vec<String>,
    /// What all of them need.
    pub(super) rights: Vec<Right>,
}

impl PlannedHooks {
    /// The hooks of these events.
    pub(super) fn of(
        discovery: &Discovery,
        hooks: &[Hook],
        events: &[HookEvent],
        method: Method,
        options: &ReleaseOptions,
    ) -> Self {
        let mut planned = Self::default();
        if options.no_hooks {
            return planned;
        }
        for hook in hooks {
            let Some(event) = hook.events.iter().find(|event| events.contains(event)) else {
                continue;
            };
            let title = format!("{} {} ({})", hook.kind, hook.name, event.as_str());
            let logs = !hook.output_log_policies.is_empty();
            match needs(discovery, &hook.manifest, &hook.kind, logs, method, options) {
                Ok(rights) => planned.rights.extend(rights),
                Err(error) => planned.faults.push(format!("{title}: {}", error_chain(&error))),
            }
            planned.titles.push(title);
        }
        planned
    }
}

/// What a hook needs, whose log may be asked for.
pub(super) fn needs(
    discovery: &Discovery,
    manifest: &[u8],
    kind: &str,
    logs: bool,
    method: Method,
    options: &ReleaseOptions,
) -> Result<Vec<Right>, BuildError> {
    let items = build(discovery, manifest, &options.namespace, true)?;
    Ok(items.iter().flat_map(|item| needed(item, kind, logs, method)).collect())
}

/// What one object of a hook needs.
fn needed(item: &Item, kind: &str, logs: bool, method: Method) -> Vec<Right> {
    let mut needed = rights::creation(method, item);
    needed.extend(rights::escalation(item, true));
    // By its policies; without any, an older one is deleted first. Whether it is gone is looked at.
    if kind != "CustomResourceDefinition" {
        needed.push(Right::on_object("get", item));
        needed.push(Right::on_object("delete", item));
    }
    if matches!(item.kind().kind.as_str(), "Job" | "Pod") {
        needed.push(Right::on_object("list", item));
        needed.push(Right::on_object("watch", item));
        if logs {
            let namespace = &item.target.namespace;
            needed.push(Right::any("list", "", "pods", namespace));
            needed.push(Right::any("get", "", "pods/log", namespace));
        }
    }
    needed
}
