//! The search: candidates from the differences, kept when a render proves them.

use std::collections::{BTreeMap, BTreeSet};

use goyaml::{Map, Value};
use serde_json::Value as Json;

use super::keys::KeyPath;
use super::render::{Objects, Renderer};
use super::tree::{self, Path};
use super::{
    Installation, Mapping, Moved, NoDefaultRender, Outcome, Probed, RENDERS, Recovered, Side,
    Unexplained, invert, probe, with,
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

pub(super) fn run(
    mapping: &Mapping<'_>,
    installation: &Installation<'_>,
) -> Result<Recovered, NoDefaultRender> {
    let is_upgrade = installation.is_upgrade;
    let renderer =
        Renderer::new(&mapping.engine, mapping.chart, &mapping.options, is_upgrade);
    let live = installation.live.iter().filter_map(|object| {
        Some((tree::identity(object)?, tree::comparable(object.clone(), is_upgrade)))
    });
    let mut search = Search {
        mapping,
        live: live.collect(),
        objects: renderer.settle(&Map::new()).ok_or(NoDefaultRender)?,
        renderer,
        is_upgrade,
        values: Map::new(),
        score: 0,
        chosen: BTreeSet::new(),
        effects: BTreeMap::new(),
    };
    search.score = search.judge(&search.objects);
    let before = search.score;
    let mut hint = Vec::new();
    flatten(installation.hint, &mut Vec::new(), &mut hint);
    for _ in 0..ROUNDS {
        if search.score == 0 || !search.round(&hint) {
            break;
        }
    }
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
                Some(live) => {
                    object.judged.get_or_init(|| tree::differences(&object.tree, live)).0
                }
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
        true
    }

    fn settle_on(&mut self, values: Map, objects: Objects) {
        self.score = self.judge(&objects);
        (self.values, self.objects) = (values, objects);
    }

    /// One round over all candidates, best first. Whether anything was kept.
    fn round(&mut self, hint: &Candidate) -> bool {
        let mut is_better = !hint.is_empty() && self.keep(hint);
        let mut weighed: Vec<(usize, Candidate)> = Vec::new();
        for candidate in self.candidates() {
            if !self.has_budget() {
                break;
            }
            if let Some((_, score)) = self.weigh(&candidate)
                && score < self.score
            {
                weighed.push((score, candidate));
            }
        }
        // Of equals, the key higher up explains more, and the order of names is as good as any.
        weighed.sort_by(|(a, one), (b, two)| {
            let depth = |candidate: &Candidate| candidate.iter().map(|(p, _)| p.len()).sum::<usize>();
            (a, depth(one)).cmp(&(b, depth(two)))
        });
        let chosen = self.chosen.clone();
        for (_, candidate) in weighed {
            is_better |= self.has_budget() && self.keep(&candidate);
        }
        let new: Vec<KeyPath> = self.chosen.difference(&chosen).cloned().collect();
        self.look_again(&new);
        is_better
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
        for path in keys.defaults.keys().filter(|path| is_near(path)) {
            if self.has_budget() && !self.chosen.contains(path) {
                let probed = probe(&self.renderer, keys, path, &self.values, &self.objects);
                self.effects.insert(path.clone(), probed);
            }
        }
    }

    /// What might explain something, without repetition, in the order of keys.
    fn candidates(&self) -> Vec<Candidate> {
        let differing = self.differing();
        let mut candidates = Vec::new();
        for (path, from_mapping) in &self.mapping.effects {
            if path.first().is_some_and(|key| key == CATCH_ALL) || self.is_version(path) {
                continue;
            }
            let probed = self.effects.get(path).unwrap_or(from_mapping);
            let mut values: Vec<Value> = Vec::new();
            for Probed { value, outcome } in probed {
                match outcome {
                    Outcome::Fails => candidates.extend(self.in_company(path, value)),
                    Outcome::Moves(moved) => {
                        for value in self.values_for(path, value, moved, &differing) {
                            if !values.contains(&value) && values.len() < CANDIDATES {
                                values.push(value);
                            }
                        }
                    }
                }
            }
            candidates.extend(values.into_iter().map(|value| vec![(path.clone(), value)]));
        }
        candidates
    }

    /// A value that fails alone: again, and with each switch of the same table the other way.
    fn in_company(&self, path: &KeyPath, value: &Value) -> Vec<Candidate> {
        let is_text = self.mapping.keys.texts.get(path).is_some_and(|texts| {
            value.as_str().is_some_and(|value| texts.contains(&value.to_string()))
        });
        if value.as_bool().is_none() && !is_text {
            return Vec::new();
        }
        let alone = vec![(path.clone(), value.clone())];
        let Some((_, table)) = path.split_last() else { return vec![alone] };
        let switches = self.mapping.keys.defaults.iter().filter(|(other, _)| {
            *other != path && other.len() == path.len() && other.starts_with(table)
        });
        let pairs = switches.filter_map(|(other, default)| {
            let flipped = Value::Bool(!default.as_bool()?);
            Some(vec![(other.clone(), flipped), (path.clone(), value.clone())])
        });
        let pairs: Vec<Candidate> =
            if table.is_empty() { Vec::new() } else { pairs.collect() };
        std::iter::once(alone).chain(pairs).collect()
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
                            place.starts_with(&effect.path) || effect.path.starts_with(place)
                                || shares_list(place, &effect.path)
                        };
                        if !places.iter().any(touches) {
                            continue;
                        }
                        is_relevant = true;
                        let base = self.objects.get(about).map(|object| &object.tree);
                        let value = live.and_then(|live| invert::invert(&json, effect, base, live));
                        match value {
                            Some(Json::String(text)) if !matches!(json, Json::Array(_) | Json::Object(_)) => {
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
            let texts = self.mapping.keys.texts.get(path);
            let is_own = probe.as_str().is_some_and(|text| {
                texts.is_some_and(|texts| texts.contains(&text.to_string()))
            });
            if probe.as_bool().is_some() || is_own {
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
            if take(&mut values, &keys).is_none() {
                continue;
            }
            let Some(objects) = self.renderer.objects(&values) else { continue };
            let score = self.judge(&objects);
            if score <= self.score
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
                let has = |object: Option<&Json>| object.is_some_and(|o| tree::at(o, &path).is_some());
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

/// Whether two places are in one list or table, as a live entry and a probe's entry beside it.
fn shares_list(place: &Path, effect: &Path) -> bool {
    match (place.split_last(), effect.split_last()) {
        (Some((_, a)), Some((_, b))) => a == b || place.starts_with(b),
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
