//! What the next upgrade would do after a move that it would not have done before: charts name
//! objects after their release, and put them into its namespace.

use cilium::provenance::{History, counting};
use goyaml::Map;
use helm_rs::apply::Item;
use helm_rs::error_chain;
use helm_rs::release::Record;
use serde::Serialize;
use serde_json::Value;

use super::found::Found;
use super::{ACCEPT_NEXT, At, MovePlan, Request};
use crate::plan::{Consent, Needs};
use crate::rendered::{LookedUp, ReleaseName, RenderedError, Source, release_items};

/// Kinds with a selector that cannot be changed.
const SELECTING: [&str; 4] = ["DaemonSet", "Deployment", "Job", "StatefulSet"];

/// What an upgrade with the same chart and values would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NextUpgrade {
    /// Objects that it would create.
    pub created: Vec<String>,
    /// Objects that it would delete.
    pub deleted: Vec<String>,
    /// Objects that it would change.
    pub changed: Vec<String>,
    /// Objects of these whose selector would change, which no server takes: it would fail.
    pub selectors: Vec<String>,
}

impl NextUpgrade {
    /// Whether it needs a consent of its own.
    pub fn asks(&self) -> bool {
        !(self.created.is_empty() && self.deleted.is_empty() && self.selectors.is_empty())
    }
}

/// Renders the chart of the record that counts for both places, and tells the difference.
pub(super) fn preview(
    request: &Request<'_>,
    found: &Found,
    history: &History,
    plan: &mut MovePlan,
    needs: &mut Needs,
) {
    // Of an uninstalled release nothing is there that an upgrade could change.
    let Ok((revision, _)) = counting(history, request.clock.now().as_second()) else { return };
    let Ok(record) = revision.record() else { return };
    let rendered = [&request.from, &request.to]
        .map(|at| render(request, found, &record, at, needs).map_err(|why| (at, why)));
    let [before, after] = match rendered {
        [Ok(before), Ok(after)] => [before, after],
        [Err((at, why)), _] | [_, Err((at, why))] => {
            plan.unchecked.push(format!(
                "what the next upgrade would do: the chart in the record of revision {} does not \
                 render for release {} in namespace {} ({why})",
                revision.revision, at.release, at.namespace
            ));
            return;
        }
    };
    let has_parts = record
        .chart()
        .is_ok_and(|chart| chart.metadata.dependencies.is_some_and(|parts| !parts.is_empty()));
    if has_parts {
        plan.unchecked.push(
            "what the next upgrade would do to objects of subcharts: a record holds its own \
             chart's templates alone"
                .to_owned(),
        );
    }
    plan.next_upgrade = compare(&before, &after);
    let next = &plan.next_upgrade;
    if next.asks() {
        let mut why = Vec::new();
        for (objects, what) in [
            (&next.created, "would be created"),
            (&next.deleted, "would be deleted"),
            (&next.selectors, "have a selector that would change, so that it would fail"),
        ] {
            if !objects.is_empty() {
                why.push(format!("{} object(s) {what}", objects.len()));
            }
        }
        plan.consent.push(Consent {
            flag: ACCEPT_NEXT.to_owned(),
            why: format!("at the next upgrade {}", why.join(", ")),
        });
    }
}

fn render(
    request: &Request<'_>,
    found: &Found,
    record: &Record,
    at: &At,
    needs: &mut Needs,
) -> Result<Vec<Item>, String> {
    let chart = record.chart().map_err(|error| error_chain(&error))?;
    let values: Map =
        record.user_values().map_err(|error| error_chain(&error))?.unwrap_or_default();
    let source = Source {
        engine: request.engine,
        chart: &chart,
        release: ReleaseName { name: &at.release, namespace: &at.namespace },
        cluster: std::sync::Arc::clone(&request.cluster),
        discovery: &found.discovery,
        server: &found.server,
        entropy: request.entropy,
        now: request.clock.now().as_second(),
        looked_up: LookedUp::default(),
    };
    let items = release_items(&source, &values, true);
    needs.read(source.looked_up.rights(), "its chart looks it up");
    items.map_err(|error: RenderedError| error_chain(&error))
}

fn compare(before: &[Item], after: &[Item]) -> NextUpgrade {
    let mut next = NextUpgrade::default();
    let titles = |items: &[Item], others: &[Item]| -> Vec<String> {
        let only = items.iter().filter(|item| !others.iter().any(|other| other.matches(item)));
        only.map(|item| item.target.to_string()).collect()
    };
    next.created = titles(after, before);
    next.deleted = titles(before, after);
    for new in after {
        let Some(old) = before.iter().find(|old| old.matches(new)) else { continue };
        if old.value == new.value {
            continue;
        }
        let selector = |item: &Item| item.value.pointer("/spec/selector").cloned();
        if SELECTING.contains(&new.kind().kind.as_str()) && selector(old) != selector(new) {
            next.selectors.push(new.target.to_string());
        }
        if without_owner(&old.value) != without_owner(&new.value) {
            next.changed.push(new.target.to_string());
        }
    }
    next
}

/// An object without the ownership metadata, which a move changes itself.
fn without_owner(object: &Value) -> Value {
    let mut object = object.clone();
    helm_rs::apply::ownership::set(&mut object, "", "");
    object
}
