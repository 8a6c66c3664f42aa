//! The search: candidates from the differences, kept when a render proves them.

use std::collections::{BTreeMap, BTreeSet};

use goyaml::{Map, Value};
use serde_json::Value as Json;

use super::keys::{self, KeyPath};
use super::render::{Objects, Renderer};
use super::tree::{self, Path, Step};
use super::{
    Installation, Mapping, Moved, NoDefaultRender, Outcome, Probed, RENDERS, Recovered, Side,
    Unexplained, in_parallel, invert, probe, with,
};
use crate::object::ObjectRef;
use crate::owned::take;
use crate::pinned::{CONFIG_MAP, NAMESPACE};

/// Rounds of candidates; each round needs an improvement in the one before.
const ROUNDS: usize = 8;
/// Candidates that one key may have in a round.
const CANDIDATES: usize = 6;
/// A key into which every setting would fit, and which therefore comes last.
const CATCH_ALL: &str = "extraConfig";

/// The state of a search.
struct Search<'m, 'a> {
    mapping: &'m Mapping<'a>,
    renderer: Renderer<'m>,
    is_upgrade: bool,
    live: BTreeMap<ObjectRef, Json>,
    /// The values so far, their render, and how much that differs from the live objects.
    values: Map,
    objects: Objects,
    score: usize,
    /// Keys that were set.
    chosen: BTreeSet<KeyPath>,
    /// What keys move now, where that was looked at since the mapping.
    effects: BTreeMap<KeyPath, Vec<Probed>>,
}

/// Values for several keys at once.
type Candidate = Vec<(KeyPath, Value)>;

/// A search that has the given values.
fn start<'m, 'a>(
    mapping: &'m Mapping<'a>,
    installation: &Installation<'_>,
    values: Map,
) -> Option<Search<'m, 'a>> {
    let is_upgrade = installation.is_upgrade;
    let renderer = Renderer::new(&mapping.engine, mapping.chart, &mapping.options, is_upgrade);
    let live = installation.live.iter().filter_map(|object| {
        Some((tree::identity(object)?, tree::comparable(object.clone(), is_upgrade)))
    });
    let mut search = Search {
        mapping,
        live: live.collect(),
        objects: renderer.settle(&values)?,
        renderer,
        is_upgrade,
        values,
        score: 0,
        chosen: BTreeSet::new(),
        effects: BTreeMap::new(),
    };
    search.score = search.judge(&search.objects);
    Some(search)
}

/// How much some values leave unexplained, and where.
pub(super) fn left(
    mapping: &Mapping<'_>,
    installation: &Installation<'_>,
    values: &Map,
) -> Option<(usize, Vec<Unexplained>)> {
    let search = start(mapping, installation, values.clone())?;
    Some((search.score, search.unexplained()))
}

pub(super) fn run(
    mapping: &Mapping<'_>,
    installation: &Installation<'_>,
) -> Result<Recovered, NoDefaultRender> {
    let mut search = start(mapping, installation, Map::new()).ok_or(NoDefaultRender)?;
    let before = search.score;
    let mut hint = Vec::new();
    flatten(installation.hint, &mut Vec::new(), &mut hint);
    if search.score > 0 && !hint.is_empty() {
        search.keep(&hint);
    }
    search.rounds(&hint);
    search.prune();
    let extra_config = search.extra_config();
    Ok(Recovered {
        unexplained: search.unexplained(),
        before,
        after: search.score,
        extra_config,
        renders: search.renderer.count(),
        values: search.values,
    })
}

fn flatten(table: &Map, path: &mut KeyPath, found: &mut Candidate) {
    for (key, value) in table {
        path.push(key.to_string());
        match value {
            Value::Map(below) if !below.is_empty() => flatten(below, path, found),
            _ => found.push((path.clone(), value.clone())),
        }
        path.pop();
    }
}

impl Search<'_, '_> {
    /// How many leaves differ between a render and the live objects.
    fn judge(&self, objects: &Objects) -> usize {
        let rendered: usize = objects
            .iter()
            .map(|(about, object)| match self.live.get(about) {
                Some(live) => object.judged.get_or_init(|| tree::differences(&object.tree, live)).0,
                None => tree::leaves(&object.tree).max(1),
            })
            .sum();
        let missing = self.live.iter().filter(|(about, _)| !objects.contains_key(*about));
        rendered + missing.map(|(_, live)| tree::leaves(live).max(1)).sum::<usize>()
    }

    fn has_budget(&self) -> bool {
        self.renderer.count() < RENDERS
    }

    /// The values with a candidate, and how much they leave; none when they do not render.
    fn weigh(&self, candidate: &Candidate) -> Option<(Map, usize)> {
        let mut values = self.values.clone();
        for (path, value) in candidate {
            values = with(&values, path, value)?;
        }
        let objects = self.renderer.objects(&values)?;
        Some((values, self.judge(&objects)))
    }

    /// Keeps a candidate if it explains something and the schema allows it.
    fn keep(&mut self, candidate: &Candidate) -> bool {
        let Some((values, score)) = self.weigh(candidate) else { return false };
        if score >= self.score {
            return false;
        }
        let Some(objects) = self.renderer.settle(&values) else { return false };
        self.chosen.extend(candidate.iter().map(|(path, _)| path.clone()));
        self.settle_on(values, objects);
        for (path, value) in candidate {
            self.fill_in(path, value);
        }
        true
    }

    /// Replaces a stand-in that was kept by what the live objects have where it went.
    fn fill_in(&mut self, path: &KeyPath, stand_in: &Value) {
        let probe = json(stand_in);
        if !probe.to_string().contains(keys::PROBE) {
            return;
        }
        let mut values = Vec::new();
        for (about, object) in &self.objects {
            let Some(live) = self.live.get(about) else { continue };
            let mut places = Vec::new();
            tree::holding(&object.tree, &probe, &mut Path::new(), &mut places);
            for effect in places {
                let value = invert::invert(&probe, &effect, Some(&object.tree), live);
                values.extend(value.as_ref().and_then(yaml));
            }
        }
        for value in values.into_iter().take(CANDIDATES) {
            if self.keep(&vec![(path.clone(), value)]) {
                return;
            }
        }
    }

    fn settle_on(&mut self, values: Map, objects: Objects) {
        self.score = self.judge(&objects);
        (self.values, self.objects) = (values, objects);
    }

    /// Rounds until nothing is left or nothing helps: single keys first, and only when those are
    /// at an end, keys that fail alone together with another of their table.
    fn rounds(&mut self, hint: &Candidate) {
        let mut tried = BTreeSet::new();
        for _ in 0..ROUNDS {
            if self.score == 0 || !self.has_budget() {
                return;
            }
            if self.round(self.candidates(), &mut tried) {
                // What failed as a whole may do so no longer.
                self.keep(hint);
                continue;
            }
            // Once more, with what was of no use before other keys were set.
            let again = !tried.is_empty() && {
                tried.clear();
                self.round(self.candidates(), &mut tried)
            };
            if !again && !self.round(self.pairs(), &mut BTreeSet::new()) {
                return;
            }
        }
    }

    /// One round over candidates, best first. Whether anything was kept. What does not help is
    /// noted in `tried`, and what is there is passed over.
    fn round(&mut self, mut candidates: Vec<Candidate>, tried: &mut BTreeSet<String>) -> bool {
        let note = |candidate: &Candidate| format!("{candidate:?}");
        candidates.retain(|candidate| !tried.contains(&note(candidate)));
        let mut weighed: Vec<(usize, Candidate)> = Vec::new();
        for (score, candidate) in self.weigh_all(&candidates).into_iter().zip(candidates) {
            match score.filter(|score| *score < self.score) {
                Some(score) => weighed.push((score, candidate)),
                None => {
                    tried.insert(note(&candidate));
                }
            }
        }
        // Of equals, the key higher up explains more, and the order of names is as good as any.
        weighed.sort_by_key(|(score, candidate)| {
            (*score, candidate.iter().map(|(path, _)| path.len()).sum::<usize>())
        });
        let chosen = self.chosen.clone();
        let mut is_better = false;
        for (_, candidate) in weighed {
            is_better |= self.has_budget() && self.keep(&candidate);
        }
        let new: Vec<KeyPath> = self.chosen.difference(&chosen).cloned().collect();
        self.look_again(&new);
        is_better
    }

    /// The scores of candidates, none for those that do not render, on several threads.
    fn weigh_all(&self, candidates: &[Candidate]) -> Vec<Option<usize>> {
        let room = RENDERS.saturating_sub(self.renderer.count());
        let candidates = candidates.get(..room).unwrap_or(candidates);
        in_parallel(candidates, self.mapping.threads, |candidate| {
            self.weigh(candidate).map(|(_, score)| score)
        })
    }

    /// Probes the keys of the tables in which something was set: it may have turned a feature on.
    fn look_again(&mut self, new: &[KeyPath]) {
        let tables: BTreeSet<&[String]> = new
            .iter()
            .filter_map(|path| path.split_last())
            .map(|(_, table)| table)
            .filter(|table| !table.is_empty())
            .collect();
        let is_near = |path: &KeyPath| tables.iter().any(|table| path.starts_with(table));
        let keys = &self.mapping.keys;
        let near: Vec<&KeyPath> = keys
            .defaults
            .keys()
            .filter(|path| self.has_budget() && is_near(path) && !self.chosen.contains(*path))
            .collect();
        let probed = in_parallel(&near, self.mapping.threads, |path| {
            probe(&self.renderer, keys, path, &self.values, &self.objects)
        });
        self.effects.extend(near.into_iter().cloned().zip(probed));
    }

    /// What might explain something, without repetition, in the order of keys.
    fn candidates(&self) -> Vec<Candidate> {
        let differing = self.differing();
        let mut candidates = Vec::new();
        for (path, probed) in self.effects() {
            let mut values: Vec<Value> = Vec::new();
            for Probed { value, outcome } in probed {
                let found = match outcome {
                    Outcome::Fails if self.is_own(path, value) => vec![value.clone()],
                    Outcome::Fails => continue,
                    Outcome::Moves(moved) => self.values_for(path, value, moved, &differing),
                };
                for value in found {
                    // A chart's default taken away is more likely one that the older version lacks.
                    let is_odd = self.is_upgrade && has_null(&value);
                    if !is_odd && !values.contains(&value) && values.len() < CANDIDATES {
                        values.push(value);
                    }
                }
            }
            candidates.extend(values.into_iter().map(|value| vec![(path.clone(), value)]));
        }
        candidates
    }

    /// What each key moves, as it was seen last; without those that are not to be set.
    fn effects(&self) -> impl Iterator<Item = (&KeyPath, &Vec<Probed>)> {
        self.mapping.effects().iter().filter_map(|(path, from_mapping)| {
            let is_catch_all = path.first().is_some_and(|key| key == CATCH_ALL);
            let probed = self.effects.get(path).unwrap_or(from_mapping);
            (!is_catch_all && !self.is_version(path)).then_some((path, probed))
        })
    }

    /// Whether a value is one that the chart itself knows for the key: a switch the other way, or
    /// a text that it compares with.
    fn is_own(&self, path: &KeyPath, value: &Value) -> bool {
        let texts = self.mapping.keys.texts.get(path);
        value.as_bool().is_some()
            || value
                .as_str()
                .is_some_and(|text| texts.is_some_and(|texts| texts.contains(&text.to_string())))
    }

    /// Values that fail alone, each with one other key of the same table: a switch the other way,
    /// or a stand-in for what must be said. And texts that the chart knows, each with the switches
    /// of its table, since a kind counts only once the feature is on.
    fn pairs(&self) -> Vec<Candidate> {
        let mut pairs = Vec::new();
        for (path, probed) in self.effects() {
            let Some((_, table)) = path.split_last() else { continue };
            let own = probed.iter().filter(|probed| self.is_own(path, &probed.value));
            for Probed { value, outcome } in own {
                let fails = matches!(outcome, Outcome::Fails);
                if !fails && value.as_bool().is_some() {
                    continue;
                }
                let others = self.mapping.keys.defaults.iter().filter(|(other, _)| {
                    *other != path
                        && other.len() == path.len()
                        && !table.is_empty()
                        && other.starts_with(table)
                });
                for (other, default) in others {
                    let company = match default {
                        Value::Bool(value) => Some(Value::Bool(!value)),
                        Value::Seq(_) | Value::Float(_) | Value::Int(_) => continue,
                        _ if !fails => continue,
                        default => keys::probes(default).into_iter().next(),
                    };
                    pairs.extend(company.map(|company| {
                        vec![(other.clone(), company), (path.clone(), value.clone())]
                    }));
                }
            }
        }
        pairs
    }

    /// Whether a key says which version runs, which an upgrade must not bring back.
    fn is_version(&self, path: &KeyPath) -> bool {
        self.is_upgrade
            && path.iter().any(|key| key == "image")
            && path.last().is_some_and(|key| {
                ["tag", "digest", "useDigest", "override"].contains(&key.as_str())
            })
    }

    /// The places where live objects differ, by object; an empty path for one side alone.
    fn differing(&self) -> BTreeMap<&ObjectRef, Vec<Path>> {
        let mut differing = BTreeMap::new();
        for (about, object) in &self.objects {
            match (self.live.get(about), object.judged.get()) {
                (None, _) => {
                    differing.insert(about, vec![Path::new()]);
                }
                (Some(_), Some((_, paths))) if !paths.is_empty() => {
                    differing.insert(about, paths.clone());
                }
                _ => {}
            }
        }
        let missing = self.live.keys().filter(|about| !self.objects.contains_key(*about));
        differing.extend(missing.map(|about| (about, vec![Path::new()])));
        differing
    }

    /// The values under a key that what it moves and what differs suggest.
    fn values_for(
        &self,
        path: &KeyPath,
        probe: &Value,
        moved: &[(ObjectRef, Moved)],
        differing: &BTreeMap<&ObjectRef, Vec<Path>>,
    ) -> Vec<Value> {
        let mut values = Vec::new();
        let mut is_relevant = false;
        let json = json(probe);
        for (about, moved) in moved {
            let Some(places) = differing.get(about) else { continue };
            let live = self.live.get(about);
            match moved {
                Moved::Added => is_relevant |= live.is_some() && !self.objects.contains_key(about),
                Moved::Removed => {
                    is_relevant |= live.is_none() && self.objects.contains_key(about);
                }
                Moved::Changed(effects) => {
                    for effect in effects {
                        let touches = |place: &Path| {
                            place.starts_with(&effect.path)
                                || effect.path.starts_with(place)
                                || shares_list(place, &effect.path)
                        };
                        if !places.iter().any(touches) {
                            continue;
                        }
                        is_relevant = true;
                        let base = self.objects.get(about).map(|object| &object.tree);
                        let value = live.and_then(|live| invert::invert(&json, effect, base, live));
                        match value {
                            Some(Json::String(text))
                                if !matches!(json, Json::Array(_) | Json::Object(_)) =>
                            {
                                values.extend(self.mapping.keys.typed(path, &text));
                            }
                            Some(value) => values.extend(yaml(&value)),
                            None => {}
                        }
                    }
                }
            }
        }
        if is_relevant {
            if self.is_own(path, probe) {
                values.push(probe.clone());
            } else if self.mapping.keys.defaults.get(path).is_none_or(Value::is_null) {
                values.extend([Value::Bool(true), Value::Bool(false)]);
            }
        }
        values
    }

    /// Takes back what turned out to explain nothing that the others do not.
    fn prune(&mut self) {
        for path in self.chosen.clone() {
            let mut values = self.values.clone();
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let Some(value) = take(&mut values, &keys) else { continue };
            let Some(objects) = self.renderer.objects(&values) else { continue };
            let is_stand_in = json(&value).to_string().contains(keys::PROBE);
            if (is_stand_in || self.judge(&objects) <= self.score)
                && let Some(objects) = self.renderer.settle(&values)
            {
                self.settle_on(values, objects);
                self.chosen.remove(&path);
            }
        }
    }

    /// Puts what is left of `cilium-config` into the key that takes any setting. Not in an
    /// upgrade, where settings differ by version.
    fn extra_config(&mut self) -> usize {
        let about = ObjectRef::new("ConfigMap", NAMESPACE, CONFIG_MAP);
        let data = |object: &Json| object.get("data").and_then(Json::as_object).cloned();
        let live = self.live.get(&about).and_then(data).unwrap_or_default();
        let own = self.objects.get(&about).and_then(|object| data(&object.tree));
        let own = own.unwrap_or_default();
        if self.is_upgrade {
            return 0;
        }
        let left: Map = live
            .iter()
            .filter(|(key, value)| own.get(*key) != Some(value))
            .filter_map(|(key, value)| Some((key.as_str(), yaml(value)?)))
            .collect();
        let count = left.len();
        let candidate = vec![(vec![CATCH_ALL.to_owned()], Value::Map(left))];
        if count > 0 && self.keep(&candidate) { count } else { 0 }
    }

    fn unexplained(&self) -> Vec<Unexplained> {
        let mut found = Vec::new();
        for (about, paths) in self.differing() {
            let (live, own) = (self.live.get(about), self.objects.get(about));
            for path in paths {
                let has =
                    |object: Option<&Json>| object.is_some_and(|o| tree::at(o, &path).is_some());
                let side = match (has(live), has(own.map(|object| &object.tree))) {
                    (true, false) => Side::Live,
                    (false, true) => Side::Rendered,
                    _ => Side::Both,
                };
                found.push(Unexplained { object: about.clone(), path: tree::show(&path), side });
            }
        }
        found
    }
}

/// Whether a place lies in the list or table to which a probe added its own entry.
fn shares_list(place: &Path, effect: &Path) -> bool {
    match effect.split_last() {
        Some((Step::Key(key) | Step::Item(_, key), list)) => {
            key == keys::PROBE && place.starts_with(list)
        }
        None => false,
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Map(map) => map.values().any(has_null),
        Value::Seq(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn json(value: &Value) -> Json {
    let text = goyaml::json::to_json(value).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn yaml(value: &Json) -> Option<Value> {
    goyaml::json::from_json(value.to_string().as_bytes(), &goyaml::Limits::default()).ok()
}
