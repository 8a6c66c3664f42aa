//! One attempt at rendering a record's chart, and what it leaves different.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use bstr::BString;
use goyaml::{Map, Value};

use super::{Interrupt, Rerender};
use crate::action::generated::{GeneratedLeaf, generated_leaves};
use crate::action::template::{Options, Rendering};
use crate::capabilities::{Capabilities, KubeVersion};
use crate::chart::Chart;
use crate::diff::{
    Change, Identity, LeafPath, Lists, ManifestObject, Step, compare_objects, read_objects,
};
use crate::manifest::split_manifests;
use crate::release::record::Record;
use crate::render::host::{Clock, Randomness, Reading};
use crate::render::time::Zone;
use crate::render::{Engine, EngineOptions, Host, Lookup};

/// A record to render again: everything that attempts have in common.
pub(super) struct Subject {
    pub(super) chart: Chart,
    pub(super) values: Map,
    pub(super) manifest: String,
    pub(super) objects: Arc<Vec<ManifestObject>>,
    pub(super) hooks: Vec<ManifestObject>,
    pub(super) left_out: usize,
    pub(super) revision: i64,
    pub(super) description: String,
    name: String,
    namespace: String,
    base: Capabilities,
    engine: Engine,
    interrupt: Option<Interrupt>,
}

/// What one attempt assumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) capabilities: Capabilities,
    pub(super) revision: i64,
    pub(super) is_upgrade: bool,
    /// Whole numbers among the user's values are integers, as `--set` makes them.
    pub(super) integers: bool,
    /// Lookups find what the stored manifest holds.
    pub(super) stored_lookup: bool,
}

/// What an attempt came to.
pub(super) struct Outcome {
    pub(super) differences: Vec<Difference>,
    /// Generated leaves, for people.
    pub(super) generated: Vec<String>,
    /// Whether the texts differ although the objects do not.
    pub(super) text_differs: bool,
    /// Whether a template called `lookup`.
    pub(super) looked_up: bool,
    /// Whether every rendered object has a `# Source:` comment and no stored one has.
    pub(super) comments_gone: bool,
}

/// An object that was rendered otherwise than it is stored.
pub(super) struct Difference {
    pub(super) identity: Identity,
    pub(super) is_hook: bool,
    pub(super) kind: DifferenceKind,
}

pub(super) enum DifferenceKind {
    /// It was rendered and is not stored.
    NotStored,
    /// It is stored and was not rendered.
    NotRendered,
    /// From the rendered object to the stored one.
    Changed(Vec<Change>),
}

impl Outcome {
    /// How far the attempt is from the stored manifest.
    pub(super) fn distance(&self) -> usize {
        let of = |difference: &Difference| match &difference.kind {
            // An object too many weighs more than a few leaves.
            DifferenceKind::NotStored | DifferenceKind::NotRendered => 10,
            DifferenceKind::Changed(changes) => changes.len(),
        };
        self.differences.iter().map(of).sum()
    }
}

/// What to call the places of a difference.
pub(super) fn titles(difference: &Difference) -> Vec<String> {
    let hook = if difference.is_hook { "hook " } else { "" };
    let object = &difference.identity;
    match &difference.kind {
        DifferenceKind::NotStored => vec![format!("{hook}{object} is not in the record")],
        DifferenceKind::NotRendered => vec![format!("{hook}{object} does not come from the chart")],
        DifferenceKind::Changed(changes) => {
            changes.iter().map(|change| format!("{hook}{object} {}", change.path)).collect()
        }
    }
}

impl Subject {
    /// Reads a record. The error says what about it does not read.
    pub(super) fn of(
        record: &Record,
        kube_version: &KubeVersion,
        how: &Rerender,
    ) -> Result<Self, String> {
        let chart = record.chart().map_err(|error| crate::error_chain(&error))?;
        let field = |error| crate::error_chain(&error);
        let manifest = record.manifest().map_err(field)?;
        let hooks: Vec<u8> = record
            .hooks()
            .map_err(field)?
            .iter()
            .flat_map(|hook| document(&hook.path, hook.manifest.as_bytes()))
            .collect();
        let mut objects = read_objects(manifest.as_bytes());
        let mut hooks = read_objects(&hooks);
        let before = objects.len() + hooks.len();
        // A record holds the root chart alone.
        objects.retain(|object| !is_of_subchart(object));
        hooks.retain(|object| !is_of_subchart(object));
        let mut base =
            Capabilities { kube_version: kube_version.clone(), ..Capabilities::default() };
        base.api_versions.extend(how.api_versions.iter().cloned());
        Ok(Self {
            left_out: before - objects.len() - hooks.len(),
            values: record.user_values().map_err(field)?.unwrap_or_default(),
            revision: record.revision().map_err(field)?,
            description: record.info().map_err(field)?.description,
            name: record.name().map_err(field)?,
            namespace: record.namespace().map_err(field)?,
            objects: Arc::new(objects),
            engine: Engine::new(EngineOptions::default()),
            interrupt: how.interrupt.clone(),
            chart,
            manifest,
            hooks,
            base,
        })
    }

    /// An error, with the subcharts that the record lacks and that may explain it.
    pub(super) fn without_subcharts(&self, error: &str) -> String {
        let missing: Vec<&str> = self
            .chart
            .metadata
            .dependencies
            .iter()
            .flatten()
            .map(|dependency| dependency.name.as_str())
            .collect();
        match missing.as_slice() {
            [] => error.to_owned(),
            _ => {
                format!("{error} (records do not hold subcharts; missing: {})", missing.join(", "))
            }
        }
    }

    /// The attempt that is made first.
    pub(super) fn first(&self) -> Attempt {
        Attempt {
            capabilities: self.base.clone(),
            revision: self.revision,
            is_upgrade: self.revision > 1,
            integers: false,
            stored_lookup: false,
        }
    }

    /// Makes an attempt.
    pub(super) fn run(&self, attempt: &Attempt) -> Result<Outcome, String> {
        let options = Options {
            release_name: self.name.clone(),
            namespace: self.namespace.clone(),
            is_upgrade: attempt.is_upgrade,
            revision: attempt.revision,
            capabilities: attempt.capabilities.clone(),
            // They were checked when the record was written, or were not to be.
            skip_schema_validation: true,
            ..Options::default()
        };
        let mut values = self.values.clone();
        if attempt.integers {
            values.values_mut().for_each(to_integers);
        }
        let looked_up = Rc::new(Cell::new(false));
        let mut hosts = [1, 2].map(|number| self.host(number, attempt.stored_lookup, &looked_up));
        let [first, second] = &mut hosts;
        let generated = generated_leaves(
            &self.engine,
            &mut self.chart.clone(),
            &values,
            &options,
            [first, second],
            &mut Vec::new(),
        )
        .map_err(|error| crate::error_chain(&error))?;
        Ok(self.outcome(&generated.rendering, &generated.leaves, looked_up.get()))
    }

    fn host(&self, number: u64, stored_lookup: bool, looked_up: &Rc<Cell<bool>>) -> Host {
        let seconds = i64::try_from(number).unwrap_or_default() * 100_000_000;
        let clock = Clock::Fixed(Reading::at(seconds, 0));
        let mut host = Host::new(Randomness::Seed(number), clock, Zone::utc());
        host.engine.lookup = Some(Box::new(Watched {
            objects: stored_lookup.then(|| Arc::clone(&self.objects)),
            namespace: self.namespace.clone(),
            called: Rc::clone(looked_up),
        }));
        if let Some(Interrupt(interrupt)) = &self.interrupt {
            let interrupt = Arc::clone(interrupt);
            host.engine.interrupted = Some(Box::new(move || interrupt()));
        }
        host
    }

    fn outcome(&self, rendering: &Rendering, leaves: &[GeneratedLeaf], looked_up: bool) -> Outcome {
        let manifest = String::from_utf8_lossy(&rendering.manifest);
        let rendered = read_objects(manifest.as_bytes());
        let hooks: Vec<u8> =
            rendering.hooks.iter().flat_map(|hook| document(&hook.path, &hook.manifest)).collect();
        let rendered_hooks = read_objects(&hooks);
        let mut differences = differences(&rendered, &self.objects, leaves, false);
        differences.extend(self::differences(&rendered_hooks, &self.hooks, leaves, true));
        let has_source = |object: &ManifestObject| !object.source.is_empty();
        let comments_gone = !self.objects.is_empty()
            && rendered.iter().all(has_source)
            && !self.objects.iter().any(has_source);
        let text_differs = differences.is_empty()
            && self.left_out == 0
            && texts_differ(manifest.as_bytes(), self.manifest.as_bytes(), &rendered, leaves);
        Outcome {
            differences,
            generated: leaves.iter().map(title).collect(),
            text_differs,
            looked_up,
            comments_gone,
        }
    }
}

fn title(leaf: &GeneratedLeaf) -> String {
    let object = &leaf.object;
    format!("{} {} {}", object.kind, object.name, leaf.path).trim_end().to_owned()
}

fn document(path: &str, manifest: &[u8]) -> Vec<u8> {
    [b"---\n# Source: ", path.as_bytes(), b"\n", manifest, b"\n"].concat()
}

fn is_of_subchart(object: &ManifestObject) -> bool {
    // NAME/charts/NAME/templates/…
    object.source.split('/').nth(1) == Some("charts")
}

/// Whole numbers as integers, as far as a float is sure of them.
fn to_integers(value: &mut Value) {
    match value {
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
            *value = Value::Int(*number as i64);
        }
        Value::Seq(items) => items.iter_mut().for_each(to_integers),
        Value::Map(map) => map.values_mut().for_each(to_integers),
        _ => {}
    }
}

/// What is different between rendered and stored objects, generated leaves left out.
fn differences(
    rendered: &[ManifestObject],
    stored: &[ManifestObject],
    leaves: &[GeneratedLeaf],
    is_hook: bool,
) -> Vec<Difference> {
    let mut all = Vec::new();
    // Objects with generated names: each stands for one that is stored under another name.
    let mut renamed: Vec<(&str, &str)> = Vec::new();
    let mut not_rendered: Vec<&ManifestObject> = Vec::new();
    // Generated leaves are told by index, so lists are compared by index.
    for difference in compare_objects(rendered, stored, Lists::ByIndex) {
        let identity = difference.identity();
        match (difference.old, difference.new) {
            (Some(object), None) if has_generated_name(object, leaves) => {
                renamed.push((&object.identity.kind, &object.source));
            }
            (Some(_), None) => {
                all.push(Difference { identity, is_hook, kind: DifferenceKind::NotStored });
            }
            (None, new) => not_rendered.extend(new),
            (Some(object), Some(_)) => {
                let places = generated_places(object, leaves);
                let is_generated =
                    |change: &Change| places.iter().any(|place| change.path.is_within(place));
                let mut changes = difference.changes;
                changes.retain(|change| !is_generated(change));
                if !changes.is_empty() {
                    let kind = DifferenceKind::Changed(changes);
                    all.push(Difference { identity, is_hook, kind });
                }
            }
        }
    }
    for object in not_rendered {
        let stands_for = (object.identity.kind.as_str(), object.source.as_str());
        match renamed.iter().position(|pair| *pair == stands_for) {
            Some(at) => drop(renamed.swap_remove(at)),
            None => all.push(Difference {
                identity: object.identity.clone(),
                is_hook,
                kind: DifferenceKind::NotRendered,
            }),
        }
    }
    let missing = renamed.into_iter().map(|(kind, source)| Difference {
        identity: Identity {
            kind: kind.to_owned(),
            name: format!("of {source}"),
            ..Identity::default()
        },
        is_hook,
        kind: DifferenceKind::NotStored,
    });
    all.extend(missing);
    all
}

fn leaves_of<'a>(
    object: &'a ManifestObject,
    leaves: &'a [GeneratedLeaf],
) -> impl Iterator<Item = &'a LeafPath> {
    leaves
        .iter()
        .filter(|leaf| {
            let other = &leaf.object;
            let own = &object.identity;
            other.kind == own.kind && other.name == own.name && other.namespace == own.namespace
        })
        .map(|leaf| &leaf.path)
}

fn generated_places<'a>(
    object: &'a ManifestObject,
    leaves: &'a [GeneratedLeaf],
) -> Vec<&'a LeafPath> {
    leaves_of(object, leaves).collect()
}

/// Whether an object's name, or the whole of it, is generated.
fn has_generated_name(object: &ManifestObject, leaves: &[GeneratedLeaf]) -> bool {
    let key = |name: &str| Step::Key(name.into());
    let name = LeafPath(vec![key("metadata"), key("name")]);
    leaves_of(object, leaves).any(|place| name.is_within(place))
}

/// Whether two manifests with the same objects are written differently. Documents with
/// generated leaves are not looked at.
fn texts_differ(
    rendered: &[u8],
    stored: &[u8],
    objects: &[ManifestObject],
    leaves: &[GeneratedLeaf],
) -> bool {
    if rendered == stored {
        return false;
    }
    if leaves.is_empty() {
        return true;
    }
    let generated: Vec<&BString> = objects
        .iter()
        .filter(|object| leaves_of(object, leaves).next().is_some())
        .map(|object| &object.text)
        .collect();
    let (rendered, stored) = (split_manifests(rendered), split_manifests(stored));
    rendered.len() != stored.len()
        || rendered
            .iter()
            .zip(&stored)
            .any(|(own, other)| own != other && !generated.contains(&own))
}

/// A cluster for `lookup` that holds the stored objects, or nothing, and sees whether it is asked.
struct Watched {
    objects: Option<Arc<Vec<ManifestObject>>>,
    namespace: String,
    called: Rc<Cell<bool>>,
}

impl Lookup for Watched {
    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Map, String> {
        self.called.set(true);
        let wanted = Identity {
            group: api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let found = self.objects.iter().flat_map(|objects| objects.iter()).find(|object| {
            object.identity.clone().in_namespace(&self.namespace)
                == wanted.clone().in_namespace(&self.namespace)
        });
        Ok(found.and_then(|object| object.value.as_map().cloned()).unwrap_or_default())
    }
}
