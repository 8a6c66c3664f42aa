//! The values of an installation that left neither a record nor a file, recovered from what runs.
//!
//! ```text
//! chart ─ probe every key ─► Mapping: key → what it moves ─┐
//! live objects ─ compare with a render ─► differences ─────┴─ candidates ─ render ─► kept if the
//!                                                                          difference shrinks
//! ```
//!
//! Which value makes which leaf is not written down anywhere here: it is found by rendering the
//! chart with one value changed and looking at what moves. What a live leaf says about the value
//! follows from what the change did to it. Each candidate is proven by a render: only values that
//! bring it nearer to the live objects, and that the chart's schema allows, are kept. (Takeover
//! rules, section 1: values "recovered", and the issue's "proven by rendering".)
//!
//! The result is the same for the same input, and the number of renders is bounded.

mod invert;
mod keys;
mod render;
mod search;
mod tree;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use goyaml::{Map, Value};
use helm_rs::action::template::Options;
use helm_rs::chart::Chart;
use helm_rs::render::{Engine, EngineOptions};
use serde_json::Value as Json;

use crate::object::ObjectRef;
use crate::values::set;
use invert::Effect;
use keys::{KeyPath, Keys};
use render::{Objects, Renderer};

/// Renders that one recovery may take.
const RENDERS: usize = 6000;

/// What each value of a chart moves in its default render.
pub struct Mapping<'a> {
    chart: &'a Chart,
    options: Options,
    engine: Engine,
    keys: Keys,
    effects: OnceLock<(BTreeMap<KeyPath, Vec<Probed>>, usize)>,
    threads: usize,
}

/// A key with a value tried under it, and what that did.
#[derive(Clone, Debug)]
struct Probed {
    value: Value,
    outcome: Outcome,
}

#[derive(Clone, Debug)]
enum Outcome {
    /// The chart does not render with it.
    Fails,
    /// Objects that come, go or change.
    Moves(Vec<(ObjectRef, Moved)>),
}

#[derive(Clone, Debug)]
enum Moved {
    Added,
    Removed,
    Changed(Vec<Effect>),
}

/// The chart does not render with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chart does not render with its default values, so that none can be recovered")]
pub struct NoDefaultRender;

/// What is known about the installation.
#[derive(Clone, Copy, Debug)]
pub struct Installation<'a> {
    /// Its live objects: those that some values of the chart would make.
    pub live: &'a [Json],
    /// Values to try first, such as those that the owned keys ask for.
    pub hint: &'a Map,
    /// The live version differs from the chart's: image tags are not compared, and settings that
    /// only one of the versions has are not taken for the user's.
    pub is_upgrade: bool,
}

/// The recovered values and how good they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// The user values.
    pub values: Map,
    /// Leaves in which the live objects differ from the chart's default render.
    pub before: usize,
    /// Leaves in which they differ from the render with the recovered values.
    pub after: usize,
    /// Keys of `extraConfig` among the values: settings of `cilium-config` that no value of the
    /// chart explains.
    pub extra_config: usize,
    /// What is not explained.
    pub unexplained: Vec<Unexplained>,
    /// How many renders it took, the mapping's not counted.
    pub renders: usize,
}

/// A place that the recovered values do not explain. Texts are not quoted: they may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexplained {
    /// The object.
    pub object: ObjectRef,
    /// The place in it; empty when the whole object is live only or rendered only.
    pub path: String,
    /// Which side has something there.
    pub side: Side,
}

/// Who has something at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The live object alone.
    Live,
    /// The render alone.
    Rendered,
    /// Both, and it differs.
    Both,
}

impl Recovered {
    /// The share of the difference that the values explain, from 0 to 1. No difference is
    /// explained in full.
    pub fn share(&self) -> f64 {
        if self.before == 0 {
            return 1.0;
        }
        1.0 - self.after as f64 / self.before as f64
    }
}

impl<'a> Mapping<'a> {
    /// The mapping of a chart, which is made when a recovery first needs it. `options` say for
    /// which release, cluster and namespace; `threads` render at a time.
    pub fn new(chart: &'a Chart, options: &Options, threads: usize) -> Self {
        Self {
            chart,
            options: options.clone(),
            engine: Engine::new(EngineOptions::default()),
            keys: Keys::of(chart),
            effects: OnceLock::new(),
            threads,
        }
    }

    /// What each key moves in the default render.
    fn effects(&self) -> &BTreeMap<KeyPath, Vec<Probed>> {
        let (effects, _) = self.effects.get_or_init(|| {
            let renderer = Renderer::new(&self.engine, self.chart, &self.options, false);
            let values = Map::new();
            let Some(base) = renderer.settle(&values) else { return Default::default() };
            let paths: Vec<&KeyPath> = self.keys.defaults.keys().collect();
            let probed = in_parallel(&paths, self.threads, |path| {
                probe(&renderer, &self.keys, path, &values, &base)
            });
            (paths.into_iter().cloned().zip(probed).collect(), renderer.count())
        });
        effects
    }

    /// How many renders the mapping took; none before it was needed.
    pub fn renders(&self) -> usize {
        self.effects.get().map_or(0, |(_, renders)| *renders)
    }

    /// How many keys the chart has.
    pub fn keys(&self) -> usize {
        self.keys.defaults.len()
    }

    /// Recovers the values of an installation.
    ///
    /// # Errors
    /// [`NoDefaultRender`]
    pub fn recover(&self, installation: &Installation<'_>) -> Result<Recovered, NoDefaultRender> {
        search::run(self, installation)
    }

    /// In how many leaves, and where, the live objects differ from the render with some values;
    /// none when the chart does not render with them.
    pub fn left(
        &self,
        installation: &Installation<'_>,
        values: &Map,
    ) -> Option<(usize, Vec<Unexplained>)> {
        search::left(self, installation, values)
    }
}

impl std::fmt::Debug for Mapping<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("keys", &self.keys()).finish_non_exhaustive()
    }
}

/// Does work for each item, on several threads, and gives the results in the items' order.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.clamp(1, 64).min(items.len().max(1));
    let size = items.len().div_ceil(threads).max(1);
    let work = &work;
    std::thread::scope(|scope| {
        let parts: Vec<_> = items
            .chunks(size)
            .map(|part| scope.spawn(move || part.iter().map(work).collect::<Vec<R>>()))
            .collect();
        // A part that panicked would be a fault of the program, and is passed on as one.
        parts
            .into_iter()
            .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Tries values under a key on top of others: generic ones until one moves something, and every
/// text that the chart itself knows for it.
fn probe(
    renderer: &Renderer<'_>,
    keys: &Keys,
    path: &KeyPath,
    values: &Map,
    base: &Objects,
) -> Vec<Probed> {
    let default = keys.defaults.get(path).unwrap_or(&Value::Null);
    let mut probed = Vec::new();
    for value in keys::probes(default) {
        match outcome(renderer, path, values, base, &value) {
            Outcome::Moves(moved) if moved.is_empty() => {}
            Outcome::Fails => probed.push(Probed { value, outcome: Outcome::Fails }),
            outcome @ Outcome::Moves(_) => {
                // The ones before that failed are explained by their type.
                probed = vec![Probed { value, outcome }];
                break;
            }
        }
    }
    for text in keys.texts.get(path).into_iter().flatten() {
        let value = Value::from(text.as_str());
        if value != *default {
            let outcome = outcome(renderer, path, values, base, &value);
            probed.push(Probed { value, outcome });
        }
    }
    probed
}

fn outcome(
    renderer: &Renderer<'_>,
    path: &KeyPath,
    values: &Map,
    base: &Objects,
    value: &Value,
) -> Outcome {
    let objects = with(values, path, value).and_then(|values| renderer.objects(&values));
    objects.map_or(Outcome::Fails, |objects| Outcome::Moves(moved(base, &objects)))
}

/// Values with one more.
fn with(values: &Map, path: &KeyPath, value: &Value) -> Option<Map> {
    let mut values = values.clone();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    set(&mut values, &path, value.clone()).ok()?;
    Some(values)
}

fn moved(base: &Objects, other: &Objects) -> Vec<(ObjectRef, Moved)> {
    let mut found = Vec::new();
    for (about, object) in base {
        let Some(changed) = other.get(about) else {
            found.push((about.clone(), Moved::Removed));
            continue;
        };
        if std::sync::Arc::ptr_eq(object, changed) {
            continue;
        }
        let mut places = Vec::new();
        tree::places(Some(&object.tree), Some(&changed.tree), &mut Vec::new(), &mut places);
        let effect = |(path, _, after): tree::Place<'_>| Effect { path, after: after.cloned() };
        if !places.is_empty() {
            let effects = places.into_iter().map(effect).collect();
            found.push((about.clone(), Moved::Changed(effects)));
        }
    }
    let added = other.keys().filter(|about| !base.contains_key(*about));
    found.extend(added.map(|about| (about.clone(), Moved::Added)));
    found
}
