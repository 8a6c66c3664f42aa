//! The chart, rendered for a cluster, and which of its leaves are generated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use goyaml::Map;
use helm_rs::action::ClusterLookup;
use helm_rs::action::rights::Right;
use helm_rs::action::template::{self, Options, Rendering};
use helm_rs::apply::{BuildError, Item, build, ownership};
use helm_rs::capabilities::{Capabilities, KubeVersion};
use helm_rs::chart::{Chart, Warning};
use helm_rs::cluster::{Cluster, Discovery, Kind, ServerVersion};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, Host, Lookup};
use serde_json::Value;

use crate::gate::{self, Path, Wanted, leaves_of};
use crate::stand_in::StandIns;

/// A release: its name and its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseName<'a> {
    /// The name.
    pub name: &'a str,
    /// The namespace that the chart is rendered for.
    pub namespace: &'a str,
}

/// What a chart is rendered with.
pub struct Source<'a> {
    /// What renders.
    pub engine: &'a Engine,
    /// The chart.
    pub chart: &'a Chart,
    /// The release.
    pub release: ReleaseName<'a>,
    /// The cluster, for `lookup`.
    pub cluster: Arc<dyn Cluster>,
    /// What it serves.
    pub discovery: &'a Discovery,
    /// Its version.
    pub server: &'a ServerVersion,
    /// 32 bytes of entropy for what the chart generates.
    pub entropy: [u8; 32],
    /// Seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
    /// What templates look up, as the rights that it takes; filled by rendering.
    pub looked_up: LookedUp,
}

/// What templates looked up: the rights that it takes, and the answers, so that both renderings
/// see the same and the server is asked once.
#[derive(Clone, Debug, Default)]
pub struct LookedUp(Arc<Mutex<Account>>);

#[derive(Default)]
struct Account {
    rights: BTreeSet<Right>,
    /// By API version, kind, namespace and name. They may hold credentials.
    answers: BTreeMap<[String; 4], Map>,
    /// Secrets that are known by digests, for which something else stood.
    stand_ins: BTreeSet<String>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account").field("rights", &self.rights).finish_non_exhaustive()
    }
}

impl LookedUp {
    /// The rights, in order.
    pub fn rights(&self) -> BTreeSet<Right> {
        self.lock().rights.clone()
    }

    /// What a rehearsal cannot know, for people: Secrets of which the digests alone are there.
    pub fn stand_ins(&self) -> Vec<String> {
        let told = |name: &String| {
            format!(
                "Secret {name}, which the chart looks up: the snapshot has its digests alone. What \
                 the chart makes of it counts as generated and is kept"
            )
        };
        self.lock().stand_ins.iter().map(told).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `lookup` that keeps account of itself.
struct AccountedLookup {
    inner: ClusterLookup,
    /// Plural name and whether it is namespaced, by kind.
    served: BTreeMap<Kind, (String, bool)>,
    account: LookedUp,
    stand_ins: StandIns,
}

impl Lookup for AccountedLookup {
    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Map, String> {
        let kind_asked = Kind::new(api_version, kind);
        if let Some((plural, namespaced)) = self.served.get(&kind_asked) {
            let place = if *namespaced { namespace } else { "" };
            let verb = if name.is_empty() { "list" } else { "get" };
            let right = Right::named(verb, &kind_asked.group, plural, place, name);
            self.account.lock().rights.insert(right);
        }
        let asked = [api_version, kind, namespace, name].map(str::to_owned);
        let known = self.account.lock().answers.get(&asked).cloned();
        let mut answer = if let Some(answer) = known {
            answer
        } else {
            let answer = self.inner.lookup(api_version, kind, namespace, name)?;
            self.account.lock().answers.insert(asked, answer.clone());
            answer
        };
        if kind == "Secret" {
            let names = self.stand_ins.fill(&mut answer)?;
            self.account.lock().stand_ins.extend(names);
        }
        Ok(answer)
    }
}

/// An object of the chart.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderedObject {
    /// Where it goes, and what is written there.
    pub item: Item,
    /// The same, ready to be compared.
    pub wanted: Wanted,
    /// Whether it is a hook.
    pub is_hook: bool,
}

/// The rendered chart.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The chart with its dependencies processed.
    pub chart: Chart,
    /// What Helm would store.
    pub rendering: Rendering,
    /// The objects in the order of installation, then the hooks.
    pub objects: Vec<RenderedObject>,
    /// What the templates warn of.
    pub warnings: Vec<Warning>,
}

/// Why the chart cannot be rendered for the cluster.
#[derive(Debug, thiserror::Error)]
pub enum RenderedError {
    /// Helm's rendering.
    #[error("the chart does not render with these values")]
    Template(#[source] Box<template::Error>),
    /// What was rendered is not for this cluster.
    #[error("what the chart renders cannot be brought to this cluster")]
    Build(#[from] BuildError),
}

/// Renders the chart with effective values, twice, to tell what is generated.
///
/// # Errors
/// [`RenderedError`]
pub fn render(source: &Source<'_>, values: &Map) -> Result<Rendered, RenderedError> {
    let (chart, rendering, warnings) = once(source, values, 0, false)?;
    let (_, again, _) = once(source, values, 1, false)?;
    let objects = objects(source, &rendering)?;
    let mut others: BTreeMap<String, Value> = objects_by_key(objects_of(source, &again)?);
    let objects = objects
        .into_iter()
        .map(|(item, is_hook)| {
            let mut wanted = Wanted { object: item.value.clone(), ..Wanted::default() };
            let other = others.remove(&key(&item));
            let leaves = leaves_of(&wanted.object);
            let second = other.as_ref().map(leaves_of).unwrap_or_default();
            wanted.generated = leaves
                .iter()
                .filter(|(path, leaf)| {
                    second.get(*path).is_none_or(|other| other.value != leaf.value)
                })
                .map(|(path, _)| path.clone())
                .collect::<std::collections::BTreeSet<Path>>();
            RenderedObject { item, wanted, is_hook }
        })
        .collect();
    Ok(Rendered { chart, rendering, objects, warnings })
}

impl Rendered {
    /// Puts the live values of generated leaves into the manifest, so that the record says what
    /// runs and holds no keys that were never used. `kept` has, by object, the places with their
    /// values.
    pub fn keep(&mut self, kept: &BTreeMap<String, Vec<(Path, Value)>>) {
        if kept.values().all(Vec::is_empty) {
            return;
        }
        for manifest in &mut self.rendering.manifests {
            if let Some(content) = with_kept(&manifest.content, kept) {
                manifest.content = content.into();
            }
        }
        self.rendering.manifest =
            helm_rs::manifest::release_manifest(&self.chart, &self.rendering.manifests, false);
    }
}

/// A document with other values at some places; none when it has no such place.
fn with_kept(document: &[u8], kept: &BTreeMap<String, Vec<(Path, Value)>>) -> Option<String> {
    let limits = goyaml::Limits::default();
    let value = goyaml::from_yaml_exact(document, &limits).ok()?;
    let json = goyaml::json::to_json(&value).ok()?;
    let mut object: Value = serde_json::from_str(&json).ok()?;
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}/{}", text("/kind"), text("/metadata/name"));
    let places = kept.get(&name)?;
    let mut changed = false;
    for (path, value) in places {
        changed |= gate::replace(&mut object, path, value);
    }
    if !changed {
        return None;
    }
    let value = goyaml::json::from_json(object.to_string().as_bytes(), &limits).ok()?;
    let source: String = String::from_utf8_lossy(document)
        .lines()
        .take_while(|line| line.starts_with('#'))
        .flat_map(|line| [line.to_owned(), "\n".to_owned()])
        .collect();
    Some(source + &goyaml::to_yaml(&value).ok()?)
}

/// Renders the chart once and returns the bare objects: for comparisons.
///
/// # Errors
/// [`RenderedError`]
pub fn plain_objects(source: &Source<'_>, values: &Map) -> Result<Vec<Value>, RenderedError> {
    let (_, rendering, _) = once(source, values, 0, false)?;
    Ok(objects_of(source, &rendering)?.into_iter().map(|(item, _)| item.value).collect())
}

/// Renders the chart once and returns the release's objects, hooks left out, as an installation or
/// an upgrade renders them.
///
/// # Errors
/// [`RenderedError`]
pub(crate) fn release_items(
    source: &Source<'_>,
    values: &Map,
    is_upgrade: bool,
) -> Result<Vec<Item>, RenderedError> {
    let (_, rendering, _) = once(source, values, 0, is_upgrade)?;
    let objects = objects(source, &rendering)?.into_iter();
    Ok(objects.filter(|(_, is_hook)| !is_hook).map(|(item, _)| item).collect())
}

/// The objects of a manifest that are served, ready to be compared; others are left out.
pub fn manifest_objects(discovery: &Discovery, manifest: &str, namespace: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for mut document in helm_rs::manifest::split_manifests(manifest.as_bytes()) {
        // Splitting trims, and the newline may belong to a block scalar at the end.
        document.push(b'\n');
        let Ok(built) = build(discovery, &document, namespace, false) else { continue };
        items.extend(built);
    }
    for item in &mut items {
        gate::normalize(&mut item.value);
    }
    items
}

fn key(item: &Item) -> String {
    let (kind, target) = (item.kind(), &item.target);
    format!("{}/{}/{}/{}", kind.group, kind.kind, target.namespace, target.name)
}

fn objects_by_key(objects: Vec<(Item, bool)>) -> BTreeMap<String, Value> {
    objects.into_iter().map(|(item, _)| (key(&item), item.value)).collect()
}

/// What a server is for templates.
pub(crate) fn capabilities(server: &ServerVersion, discovery: &Discovery) -> Capabilities {
    Capabilities {
        kube_version: KubeVersion {
            version: server.git_version.clone(),
            major: server.major.clone(),
            minor: server.minor.clone(),
        },
        api_versions: discovery.api_versions(),
        ..Capabilities::default()
    }
}

fn once(
    source: &Source<'_>,
    values: &Map,
    round: u8,
    is_upgrade: bool,
) -> Result<(Chart, Rendering, Vec<Warning>), RenderedError> {
    let mut entropy = source.entropy;
    if let Some(first) = entropy.first_mut() {
        *first ^= round;
    }
    // Another second, so that what says the time differs as well.
    let clock = Clock::Fixed(Reading::at(source.now + i64::from(round) * 86_461, 0));
    let mut host = Host::new(Randomness::Entropy(entropy), clock, Zone::utc());
    let served = source.discovery.resources();
    host.engine.lookup = Some(Box::new(AccountedLookup {
        inner: ClusterLookup::new(Arc::clone(&source.cluster)),
        served: served
            .iter()
            .map(|one| (one.kind.clone(), (one.plural.clone(), one.namespaced)))
            .collect(),
        account: source.looked_up.clone(),
        stand_ins: StandIns::new(entropy, source.now),
    }));
    let mut chart = source.chart.clone();
    let options = Options {
        release_name: source.release.name.to_owned(),
        namespace: source.release.namespace.to_owned(),
        capabilities: capabilities(source.server, source.discovery),
        is_upgrade,
        ..Options::default()
    };
    let mut warnings = Vec::new();
    let rendering =
        template::template(source.engine, &mut chart, values, &options, &mut host, &mut warnings)
            .map_err(|error| RenderedError::Template(Box::new(error)))?;
    Ok((chart, rendering, warnings))
}

fn objects_of(
    source: &Source<'_>,
    rendering: &Rendering,
) -> Result<Vec<(Item, bool)>, RenderedError> {
    objects(source, rendering)
}

fn objects(source: &Source<'_>, rendering: &Rendering) -> Result<Vec<(Item, bool)>, RenderedError> {
    let namespace = source.release.namespace;
    let mut items: Vec<(Item, bool)> =
        build(source.discovery, &rendering.manifest, namespace, false)?
            .into_iter()
            .map(|item| (item, false))
            .collect();
    for hook in &rendering.hooks {
        let built = build(source.discovery, &hook.manifest, namespace, false)?;
        items.extend(built.into_iter().map(|item| (item, true)));
    }
    for (item, is_hook) in &mut items {
        gate::normalize(&mut item.value);
        if !*is_hook {
            ownership::set(&mut item.value, source.release.name, namespace);
        }
    }
    Ok(items)
}
