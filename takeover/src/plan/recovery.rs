//! Values of an installation that left none, recovered from what runs.
//!
//! Listed is what the chart could have made; [`cilium::recover`] searches the values whose render
//! comes nearest to it. That takes seconds of computing, so that it has a thread of its own.

use std::collections::BTreeSet;

use cilium::object::ObjectRef;
use cilium::owned::Facts;
use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE, RELEASE};
use cilium::provenance::CLI_SECRET;
use cilium::recover::{Installation, Mapping, Recovered, Side};
use cilium::values;
use futures::channel::oneshot;
use futures::stream::{self, StreamExt as _};
use goyaml::Map;
use helm_rs::action::template::Options;
use helm_rs::chart::Chart;
use helm_rs::cluster::{ErrorKind, ListQuery, Resource, list_all};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::make::{CONCURRENCY, PlanError, Request};
use crate::gate::is_controller;
use crate::rendered;
use crate::survey::{Survey, SurveyError, failed, text};

/// Renders under way at once.
const THREADS: usize = 4;
/// Places that a plan names; the number of all is in the plan too.
const NAMED: usize = 100;
/// How the names of Cilium's objects begin.
const NAMES: [&str; 4] = ["cilium", "clustermesh", "hubble", "spire"];
/// Kinds that the chart puts into other namespaces as well, by its values.
const ELSEWHERE: [&str; 3] = ["Role", "RoleBinding", "ServiceMonitor"];

/// Recovered values, as a plan tells of them. The values themselves are in
/// [`super::Prepared::recovered`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveredAbout {
    /// Leaves in which what runs differs from the chart with its default values.
    pub differing: usize,
    /// How many of them the values explain, proven by rendering.
    pub explained: usize,
    /// Settings that only `extraConfig` explains.
    pub extra_config: usize,
    /// What stays unexplained, the first of it.
    pub unexplained: Vec<UnexplainedAbout>,
}

/// A place that the recovered values do not explain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnexplainedAbout {
    /// The object.
    pub object: String,
    /// The place in it; empty for the whole object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `live`, `rendered` or `both`: who has something there.
    pub side: String,
}

impl RecoveredAbout {
    fn of(recovered: &Recovered) -> Self {
        let place = |one: &cilium::recover::Unexplained| UnexplainedAbout {
            object: one.object.to_string(),
            path: one.path.clone(),
            side: match one.side {
                Side::Live => "live",
                Side::Rendered => "rendered",
                Side::Both => "both",
            }
            .to_owned(),
        };
        Self {
            differing: recovered.before,
            explained: recovered.before.saturating_sub(recovered.after),
            extra_config: recovered.extra_config,
            unexplained: recovered.unexplained.iter().take(NAMED).map(place).collect(),
        }
    }

    /// As a sentence.
    pub(super) fn tell(&self) -> String {
        let share = (self.explained * 100).checked_div(self.differing).unwrap_or(100);
        let extra = match self.extra_config {
            0 => String::new(),
            count => format!(", {count} of them by extraConfig"),
        };
        let left = match self.differing.saturating_sub(self.explained) {
            0 => String::new(),
            count => format!(
                "; {count} unexplained, first {}",
                self.unexplained.first().map_or_else(String::new, ToString::to_string)
            ),
        };
        format!(
            "recovered from what runs, since there is no record and no --cilium-values: {} of {} \
             leaves that differ from the chart's defaults are explained ({share} %){extra}{left}",
            self.explained, self.differing
        )
    }
}

impl std::fmt::Display for UnexplainedAbout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.object)?;
        if !self.path.is_empty() {
            write!(f, " {}", self.path)?;
        }
        Ok(())
    }
}

/// Recovers the values; none when the chart does not render with its defaults.
pub(super) async fn recover(
    request: &Request<'_>,
    survey: &Survey,
    facts: &Facts,
    is_upgrade: bool,
) -> Result<Option<(Map, RecoveredAbout)>, PlanError> {
    let live = possible(request, survey).await?;
    let hint = values::effective(&Map::new(), facts).map(|hint| hint.values).unwrap_or_default();
    let chart = request.pinned.chart.clone();
    let options = Options {
        release_name: RELEASE.to_owned(),
        namespace: NAMESPACE.to_owned(),
        capabilities: rendered::capabilities(&survey.server, &survey.discovery),
        ..Options::default()
    };
    let (sender, receiver) = oneshot::channel();
    let search = move || {
        let installation = Installation { live: &live, hint: &hint, is_upgrade };
        let recovered = Mapping::new(&chart, &options, THREADS).recover(&installation);
        // Nobody waits any more when the plan was dropped.
        drop(sender.send(recovered.ok()));
    };
    // Where no thread can be had, there is nothing recovered, and the gate shows what is missing.
    drop(std::thread::Builder::new().name("recover".to_owned()).spawn(search));
    let recovered = receiver.await.ok().flatten();
    Ok(recovered.map(|recovered| {
        let about = RecoveredAbout::of(&recovered);
        (recovered.values, about)
    }))
}

/// Live objects that the chart could have made with some values: of a kind that it speaks of, and
/// named as its objects are or saying that they are Cilium's.
async fn possible(request: &Request<'_>, survey: &Survey) -> Result<Vec<Value>, SurveyError> {
    let kinds = kinds(&request.pinned.chart);
    let mut seen = BTreeSet::new();
    let resources: Vec<&Resource> = survey
        .discovery
        .resources()
        .iter()
        .map(AsRef::as_ref)
        .filter(|resource| {
            kinds.contains(resource.kind.kind.as_str())
                && resource.can("list")
                && seen.insert((resource.kind.group.clone(), resource.plural.clone()))
        })
        .collect();
    let cluster = &*request.cluster;
    let pages: Vec<_> = stream::iter(resources.into_iter().map(|resource| async move {
        let is_everywhere =
            !resource.namespaced || ELSEWHERE.contains(&resource.kind.kind.as_str());
        let namespace = if is_everywhere { "" } else { NAMESPACE };
        let query = ListQuery { namespace: namespace.to_owned(), ..ListQuery::default() };
        match list_all(cluster, resource, &query).await {
            Ok(page) => Ok(page.items),
            // What may not be read is missing in the comparison, and named as unexplained.
            Err(error) if error.kind() == ErrorKind::Forbidden => Ok(Vec::new()),
            Err(error) => Err((format!("list {}", resource.plural), error)),
        }
    }))
    .buffered(CONCURRENCY)
    .collect()
    .await;
    let mut objects = Vec::new();
    for page in pages {
        let items = page.map_err(|(doing, error)| failed(doing)(error))?;
        objects.extend(items.into_iter().filter(is_possible));
    }
    objects.sort_by_key(ObjectRef::of);
    Ok(objects)
}

/// The kinds that a chart's templates speak of.
fn kinds(chart: &Chart) -> BTreeSet<String> {
    let mut kinds: BTreeSet<String> =
        ["ConfigMap", "Secret"].into_iter().map(str::to_owned).collect();
    for file in &chart.templates {
        let text = String::from_utf8_lossy(&file.data);
        let named = text.lines().filter_map(|line| line.strip_prefix("kind:"));
        let plain =
            named.map(str::trim).filter(|kind| kind.bytes().all(|b| b.is_ascii_alphanumeric()));
        kinds.extend(plain.map(str::to_owned));
    }
    kinds
}

fn is_possible(object: &Value) -> bool {
    let name = text(object, "/metadata/name");
    let label = |key: &str| {
        object.pointer("/metadata/labels").and_then(|l| l.get(key)?.as_str()).unwrap_or_default()
    };
    let is_named = NAMES.iter().any(|start| name.starts_with(start));
    let is_ours = is_named || label("app.kubernetes.io/part-of") == "cilium";
    let is_record = label("owner") == "helm" || name == CLI_SECRET;
    let is_own = text(object, "/metadata/namespace") == RECORD_NAMESPACE;
    is_ours && !is_record && !is_own && !is_made_by_another(object)
}

/// Whether another object or a controller made it: a ReplicaSet's pods, certificates that a Job
/// issued.
fn is_made_by_another(object: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let by_controllers = entries.is_some_and(|entries| {
        !entries.is_empty() && entries.iter().all(|entry| is_controller(text(entry, "/manager")))
    });
    owners.is_some_and(|owners| !owners.is_empty()) || by_controllers
}
