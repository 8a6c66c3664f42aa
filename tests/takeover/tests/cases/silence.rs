//! The gate's second proof: no false silence. Every change by hand is named in some class.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use helm_rs::cluster::WriteOptions;
use plane::Signal;
use serde_json::Value;
use takeover::gate::{
    Classes, Path, Step, Wanted, apply_in_memory, classify, desired, leaves_of, patch,
};
use takeover::plan::{Outcome, Plan, Prepared, PreparedObject, to_text};
use takeover_tests::by_hand::{Deed, Edit, delta, edited, edits, exempt, is_at_or_below};
use takeover_tests::{Bed, installed};

/// What became of the changes that were made.
#[derive(Debug, Default)]
struct Account {
    made: BTreeMap<Deed, usize>,
    named: BTreeMap<&'static str, usize>,
    exempt: BTreeMap<&'static str, usize>,
    /// Live-only leaves that were removed: there is nothing left to name.
    gone: usize,
    /// Objects that cannot be merged any more: the plan ends with an error that names them.
    errors: BTreeSet<String>,
    silent: Vec<String>,
}

fn class_of(classes: &Classes, delta: &BTreeSet<Path>) -> Option<&'static str> {
    let is = |named: &Path| delta.iter().any(|path| named.is_above(path));
    let any = |mut paths: Box<dyn Iterator<Item = &Path> + '_>| paths.any(&is);
    if any(Box::new(classes.differences.iter().map(|change| &change.path))) {
        return Some("differences");
    }
    if any(Box::new(classes.residue.iter().map(|left| &left.path))) {
        return Some("residue");
    }
    if any(Box::new(classes.ownership.iter().map(|change| &change.path))) {
        return Some("ownership");
    }
    if any(Box::new(classes.generated.iter())) {
        return Some("generated");
    }
    any(Box::new(classes.others.iter().map(|(path, _)| path))).then_some("others'")
}

impl Account {
    fn tell(&self, name: &str) {
        let made: usize = self.made.values().sum();
        println!(
            "values {name}: {made} changes by hand {:?}, named as {:?}; {} live-only leaves gone; \
             exempt {:?}; {} took an item's key, which no server allows; {} silent",
            self.made,
            self.named,
            self.gone,
            self.exempt,
            self.errors.len(),
            self.silent.len()
        );
    }

    fn check(&mut self, object: &PreparedObject, edit: &Edit) {
        let live = object.live.as_ref().unwrap();
        let Some(hand) = edited(live, edit) else { return };
        let delta = delta(live, &hand);
        if delta.is_empty() {
            return;
        }
        if let Some(name) = delta.iter().find_map(exempt) {
            *self.exempt.entry(name).or_default() += 1;
            return;
        }
        *self.made.entry(edit.deed).or_default() += 1;
        let wanted =
            Wanted { object: object.item.value.clone(), generated: object.generated.clone() };
        let desired = desired(&wanted, &hand);
        let after = match patch(&desired.object, &hand) {
            Ok(None) => Ok(hand.clone()),
            Ok(Some(patch)) => apply_in_memory(&hand, &patch),
            Err(error) => Err(error),
        };
        let title = format!("{} {edit}", object.item.target);
        let takes_its_key = edit.deed == Deed::Removed && takes_a_key(&edit.path);
        let after = match after {
            Ok(after) => after,
            Err(error) => {
                // No server lets an item be without what tells it apart.
                assert!(takes_its_key, "{title}: {error}");
                let error: String = error.to_string().chars().take(60).collect();
                self.errors.insert(format!("{title}: {error}"));
                return;
            }
        };
        match class_of(&classify(&hand, &after, &desired), &delta) {
            Some(class) => *self.named.entry(class).or_default() += 1,
            None if edit.deed == Deed::Removed && is_live_only(&desired.object, &edit.path) => {
                self.gone += 1;
            }
            None => self.silent.push(title),
        }
    }
}

/// Whether a leaf is what tells a list's item apart.
fn takes_a_key(path: &Path) -> bool {
    match path.0.as_slice() {
        [.., Step::Item(keys), Step::Key(last)] => keys.iter().any(|(key, _)| key == last),
        _ => false,
    }
}

fn is_live_only(chart: &Value, path: &Path) -> bool {
    !leaves_of(chart).keys().any(|named| named.is_above(path) || path.is_above(named))
}

/// Every change of every live object of an installation, one at a time, in memory.
async fn in_memory(number: &str) {
    let Some(bed) = installed(number).await else { return };
    let prepared = bed.plan(None).await;
    bed.plane.stop();
    assert!(prepared.plan.gate_is_empty());
    let mut account = Account::default();
    for object in &prepared.objects {
        for edit in edits(object.live.as_ref().unwrap()) {
            account.check(object, &edit);
        }
    }
    account.tell(number);
    assert!(account.made.values().sum::<usize>() > 1500);
    let few = &account.silent[..account.silent.len().min(60)];
    assert!(few.is_empty(), "{} silent: {few:#?}", account.silent.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_is_never_silent() {
    in_memory("03").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof gate"]
async fn gate_is_never_silent_other_values() {
    for number in ["09", "defaults"] {
        in_memory(number).await;
    }
}

/// A generator of numbers that anybody can repeat (SplitMix64).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            let bound = u64::try_from(at).unwrap() + 1;
            items.swap(at, usize::try_from(self.next() % bound).unwrap());
        }
    }
}

/// Objects that a plan looks at before the gate: a change there may refuse the takeover, and then
/// nothing else is named.
fn is_looked_at_first(object: &PreparedObject) -> bool {
    matches!(object.item.target.name.as_str(), "cilium" | "cilium-config" | "cilium-operator")
        && matches!(object.item.kind().kind.as_str(), "DaemonSet" | "ConfigMap" | "Deployment")
}

/// Who makes the changes.
fn by_hand() -> WriteOptions {
    WriteOptions { field_manager: "by-hand".to_owned(), ..WriteOptions::default() }
}

async fn write(bed: &Bed, object: &PreparedObject, content: &Value) -> Option<Value> {
    let mut content = content.clone();
    content["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    bed.cluster.update(&object.item.target, &content, &by_hand()).await.ok()
}

/// Whether a plan names a change.
fn plan_names(plan: &Plan, object: &PreparedObject, delta: &BTreeSet<Path>) -> bool {
    let (kind, name) = (&object.item.kind().kind, &object.item.target.name);
    let is_it = |o: &&takeover::plan::ObjectPlan| {
        o.about.kind == *kind
            && o.about.name == *name
            && o.about.namespace == object.item.target.namespace
    };
    let Some(found) = plan.objects.iter().find(is_it) else {
        // The server does not take what would be written: that says so.
        return plan.refusals.iter().any(|refusal| refusal.message.contains(name.as_str()));
    };
    let paths = found
        .differences
        .iter()
        .chain(&found.ownership)
        .map(|one| &one.path)
        .chain(found.residue.iter().map(|one| &one.path))
        .chain(found.others.iter().map(|one| &one.path))
        .chain(&found.generated);
    let delta: Vec<String> = delta.iter().map(ToString::to_string).collect();
    paths.into_iter().any(|named| delta.iter().any(|path| is_at_or_below(path, named)))
}

/// Changes of the sample, on the real server.
#[derive(Debug, Default)]
struct Sample {
    made: BTreeMap<Deed, usize>,
    refused_by_server: usize,
    undone_by_server: usize,
    refusals: BTreeSet<String>,
    plans: usize,
    silent: Vec<String>,
}

impl Sample {
    /// Makes some changes, one to an object, plans, and undoes them. The changes are those that
    /// the server took.
    async fn round(&mut self, bed: &Bed, prepared: &Prepared, round: &[(usize, Edit)]) {
        let mut made = Vec::new();
        for (at, edit) in round {
            let object = &prepared.objects[*at];
            let live = bed.cluster.get(&object.item.target).await.unwrap();
            let Some(hand) = edited(&live, edit) else { continue };
            let Some(after) = write(bed, object, &hand).await else {
                self.refused_by_server += 1;
                continue;
            };
            let mut delta = delta(&live, &after);
            delta.retain(|path| exempt(path).is_none());
            if delta.is_empty() {
                self.undone_by_server += 1;
                continue;
            }
            made.push((object, edit, live, delta));
        }
        let mut plan = bed.plan_only(None).await.plan;
        self.plans += 1;
        if plan.objects.is_empty() {
            assert_eq!(plan.outcome, Outcome::Refused);
            let first = made.iter().position(|(object, ..)| is_looked_at_first(object));
            let (object, edit, live, _) = made.remove(first.expect("something refused it"));
            for refusal in &plan.refusals {
                self.refusals.insert(format!("{edit}: {}", refusal.reason));
            }
            *self.made.entry(edit.deed).or_default() += 1;
            write(bed, object, &live).await.expect("undone");
            plan = bed.plan_only(None).await.plan;
            self.plans += 1;
        }
        for (object, edit, live, delta) in made {
            *self.made.entry(edit.deed).or_default() += 1;
            if !plan_names(&plan, object, &delta) {
                self.silent.push(format!("{} {edit}", object.item.target));
            }
            write(bed, object, &live).await.expect("undone");
        }
    }
}

/// `count` changes, drawn with `seed` out of all.
async fn on_the_server(number: &str, count: usize, seed: u64) {
    let Some(bed) = installed(number).await else { return };
    let prepared = bed.plan(None).await;
    // Pods stay as they are, so that the changes themselves are looked at and not a rollout.
    for (name, pid) in bed.plane.processes() {
        if name == "kube-controller-manager" {
            plane::signal(pid, Signal::SIGSTOP);
        }
    }
    let mut all: Vec<(usize, Edit)> = Vec::new();
    for (at, object) in prepared.objects.iter().enumerate() {
        let live = object.live.as_ref().unwrap();
        for edit in edits(live) {
            let is_gone =
                edit.deed == Deed::Removed && is_live_only(&object.item.value, &edit.path);
            if exempt(&edit.path).is_none() && !is_gone {
                all.push((at, edit));
            }
        }
    }
    let total = all.len();
    Seeded(seed).shuffle(&mut all);
    let mut queue: VecDeque<(usize, Edit)> = all.into();
    let mut sample = Sample::default();
    while sample.made.values().sum::<usize>() < count && !queue.is_empty() {
        let missing = count - sample.made.values().sum::<usize>();
        let (mut round, mut used, mut later) = (Vec::new(), BTreeSet::new(), Vec::new());
        let mut first_is_free = true;
        // What waits for its object comes first in the next round, so that the draw stays one.
        while round.len() < missing && later.len() < 40 {
            let Some((at, edit)) = queue.pop_front() else { break };
            let first = is_looked_at_first(&prepared.objects[at]);
            if used.contains(&at) || first && !first_is_free {
                later.push((at, edit));
                continue;
            }
            first_is_free &= !first;
            used.insert(at);
            round.push((at, edit));
        }
        for one in later.into_iter().rev() {
            queue.push_front(one);
        }
        sample.round(&bed, &prepared, &round).await;
    }
    println!(
        "values {number}, seed {seed}: {} of {total} changes made on the server {:?}, {} plans; \
         {} not taken by the server, {} undone by it; refusals {:?}; {} silent",
        sample.made.values().sum::<usize>(),
        sample.made,
        sample.plans,
        sample.refused_by_server,
        sample.undone_by_server,
        sample.refusals,
        sample.silent.len()
    );
    assert!(sample.silent.is_empty(), "{:#?}", sample.silent);
    let plan = bed.plan(None).await.plan;
    assert!(plan.gate_is_empty(), "all is undone: {}", to_text(&plan, true));
}

fn seed() -> u64 {
    std::env::var("ICHOR_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_names_a_sample_on_the_server() {
    on_the_server("03", 30, seed()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof gate"]
async fn gate_names_a_larger_sample_on_the_server() {
    for (number, count) in [("03", 70), ("09", 70), ("defaults", 60)] {
        on_the_server(number, count, seed()).await;
    }
}
