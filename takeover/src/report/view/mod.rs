//! A plan in words: what the terminal, the HTML page and the Markdown text show, made once.
//!
//! Every text in a [`View`] is safe to look at (see [`visible`]) but not escaped for any markup.

mod accept;
mod figures;
mod happens;
mod none;
mod talos;

use std::collections::BTreeMap;

use serde::Serialize;

pub(crate) use self::figures::count;
use self::figures::{FigureView, bytes, figures, stays};
use self::happens::{happens, headline};
use self::none::Nones;
use self::talos::{TalosView, talos};
use super::change::{self, Line, Room, Side};
use super::visible;
use crate::plan::{
    Action, Cause, Computed, Difference, MAX_SECRET, ObjectPlan, Outcome, OwnedChange, Plan, Rights,
};

/// A plan in words.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct View {
    /// What comes of it, in one line.
    pub(crate) headline: String,
    /// That it is a rehearsal, and what that means; empty for a plan of a cluster.
    pub(crate) rehearsal: Vec<String>,
    /// `refused`, `consent`, `ready` or `nothing`: how the headline is coloured.
    pub(crate) mood: &'static str,
    pub(crate) found: Vec<Fact>,
    /// What runs and no value explains, where values were recovered.
    pub(crate) unexplained: Vec<String>,
    pub(crate) overridden: Vec<Owned>,
    /// Owned keys that change on the running data plane.
    pub(crate) changes: Vec<Owned>,
    pub(crate) refusals: Vec<RefusalView>,
    /// Whether the gate ran, so that the rest means something.
    pub(crate) gated: bool,
    pub(crate) happens: Vec<String>,
    pub(crate) consent: Vec<ConsentView>,
    /// The command that gives the whole consent; empty when none is needed or can be given.
    pub(crate) command: String,
    /// What is said where no consent is asked for, nothing differs, no pod restarts, nothing is
    /// created, nothing stays.
    pub(crate) none: Nones,
    /// The same as sentences.
    pub(crate) none_sentences: Nones,
    pub(crate) figures: Vec<FigureView>,
    /// Objects with differences, those whose pods restart first.
    pub(crate) objects: Vec<ObjectView>,
    /// Objects of which nothing changes.
    pub(crate) quiet: usize,
    /// What is said of `creations`: they are created, or only missing.
    pub(crate) creations_title: &'static str,
    pub(crate) creations: Vec<CreationView>,
    pub(crate) residue: Vec<ResidueView>,
    pub(crate) left_objects: Vec<String>,
    pub(crate) deletions: Vec<String>,
    pub(crate) hooks: Vec<String>,
    pub(crate) ownership: Vec<Group>,
    pub(crate) ownership_count: usize,
    pub(crate) generated: Vec<Group>,
    /// Leaves of controllers and the server, by field manager.
    pub(crate) others: Vec<Group>,
    pub(crate) defaults: usize,
    pub(crate) restarts: Vec<RestartView>,
    pub(crate) records: Vec<RecordView>,
    pub(crate) sizes: Vec<SizeView>,
    pub(crate) rights: RightsView,
    pub(crate) talos: Option<TalosView>,
    /// What stays on the cluster that the chart does not name, as sentences.
    pub(crate) stays: Vec<String>,
    pub(crate) unchecked: Vec<String>,
    pub(crate) digest: String,
    pub(crate) chart_digest: String,
    pub(crate) schema: String,
}

/// A thing that was found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) text: String,
}

/// An owned key.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owned {
    pub(crate) key: String,
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) needs_consent: bool,
}

/// Why nothing is done, and what to do instead.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RefusalView {
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Empty when the message says it.
    pub(crate) instead: &'static str,
}

/// A consent that is needed.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ConsentView {
    pub(crate) flag: String,
    pub(crate) why: String,
}

/// An object with differences.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectView {
    pub(crate) name: String,
    /// How its differences were computed, where that is not the server's word.
    pub(crate) note: String,
    /// What happens to its pods; empty for nothing.
    pub(crate) restart: String,
    pub(crate) leaves: Vec<LeafView>,
}

/// A leaf that changes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeafView {
    pub(crate) path: String,
    pub(crate) cause: String,
    /// Whether the pods restart because of it.
    pub(crate) restarts: bool,
    pub(crate) lines: Vec<Line>,
    /// The live side of [`Self::lines`], for two columns.
    pub(crate) before: Vec<Line>,
    /// The new side of them.
    pub(crate) after: Vec<Line>,
}

/// An object that is created.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CreationView {
    pub(crate) name: String,
    pub(crate) effect: String,
    pub(crate) note: String,
}

/// What only the live object has, and keeps.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ResidueView {
    pub(crate) name: String,
    pub(crate) leaves: Vec<StayingLeaf>,
}

/// A live-only leaf.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StayingLeaf {
    pub(crate) path: String,
    pub(crate) value: String,
    pub(crate) manager: String,
}

/// Leaves under a common name, folded.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) count: usize,
    pub(crate) entries: Vec<String>,
}

/// A workload whose pods are replaced.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RestartView {
    pub(crate) name: String,
    pub(crate) pods: String,
    pub(crate) leaves: Vec<String>,
}

/// A foreign record.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RecordView {
    pub(crate) name: String,
    pub(crate) about: String,
}

/// A Secret's size.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SizeView {
    pub(crate) what: String,
    pub(crate) bytes: String,
    /// Share of what a Secret may hold.
    pub(crate) share: String,
}

/// Rights of the one who writes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RightsView {
    pub(crate) identity: String,
    pub(crate) checked: usize,
    pub(crate) missing: Vec<String>,
    pub(crate) granted: bool,
}

/// Each right that is missing; of those that are granted, how many in which Role.
fn missing(rights: &Rights) -> Vec<String> {
    if !rights.granted {
        return rights.missing.iter().map(|m| safe(&m.to_string())).collect();
    }
    let mut roles: BTreeMap<&str, usize> = BTreeMap::new();
    for missing in &rights.missing {
        *roles.entry(&missing.role).or_default() += 1;
    }
    roles
        .into_iter()
        .map(|(role, rights)| safe(&format!("{role}: {}", count(rights, "right", "rights"))))
        .collect()
}

fn safe(text: &str) -> String {
    visible::line(text).into_owned()
}

impl View {
    /// Shows the command as the user typed it, where its own words are what a plan cannot know.
    pub(crate) fn typed(&mut self, plan: &Plan, words: &[String]) {
        if !words.is_empty() && !self.command.is_empty() {
            self.command = accept::typed(plan, words);
        }
    }

    /// The plan in words, with as much of every value as there is room.
    pub(crate) fn new(plan: &Plan, room: Room) -> Self {
        let gated = !plan.digest.is_empty();
        let (headline, mood) = headline(plan);
        let none = Nones::of(plan.is_refused());
        Self {
            headline,
            rehearsal: rehearsal(plan),
            mood,
            found: found(plan),
            unexplained: unexplained(plan),
            overridden: owned(&plan.values.overridden),
            changes: owned(&plan.values.changes),
            refusals: plan
                .refusals
                .iter()
                .map(|refusal| RefusalView {
                    reason: safe(&refusal.reason),
                    message: visible::lines(&refusal.message).into_owned(),
                    instead: instead(&refusal.reason),
                })
                .collect(),
            gated,
            happens: if gated { happens(plan) } else { Vec::new() },
            consent: plan
                .consent
                .iter()
                .map(|consent| ConsentView { flag: safe(&consent.flag), why: safe(&consent.why) })
                .collect(),
            command: accept::command(plan),
            none_sentences: none.sentences(),
            none,
            figures: figures(plan),
            objects: objects(plan, room),
            quiet: plan.objects.iter().filter(|object| is_quiet(object)).count(),
            creations_title: if plan.outcome == Outcome::Nothing { "Missing" } else { "To create" },
            creations: of(plan, Action::Create)
                .map(|object| CreationView {
                    name: safe(&object.about.to_string()),
                    effect: safe(&object.effect),
                    note: note(object),
                })
                .collect(),
            residue: residue(plan, room),
            left_objects: plan.left_objects.iter().map(|o| safe(&o.to_string())).collect(),
            deletions: plan.deletions.iter().map(|o| safe(&o.about.to_string())).collect(),
            hooks: of(plan, Action::Hook).map(|object| safe(&object.about.to_string())).collect(),
            ownership: groups(plan, |object| {
                object.ownership.iter().map(|leaf| ownership(leaf, room)).collect()
            }),
            ownership_count: plan.figures().ownership,
            generated: groups(plan, |object| object.generated.iter().map(|p| safe(p)).collect()),
            others: others(plan),
            defaults: plan.figures().defaults,
            restarts: restarts(plan),
            records: plan
                .records
                .iter()
                .map(|record| RecordView {
                    name: safe(&record.about.to_string()),
                    about: safe(&format!(
                        "release {}, revision {}, {}, {}",
                        record.release,
                        record.revision,
                        record.status,
                        bytes(record.bytes)
                    )),
                })
                .collect(),
            sizes: plan
                .sizes
                .iter()
                .map(|size| SizeView {
                    what: safe(&size.what),
                    bytes: bytes(size.bytes),
                    share: format!("{} % of a Secret", (size.bytes * 100).div_ceil(MAX_SECRET)),
                })
                .collect(),
            rights: RightsView {
                identity: safe(&plan.rights.identity),
                checked: plan.rights.checked,
                missing: missing(&plan.rights),
                granted: plan.rights.granted,
            },
            talos: plan.talos_inventory.as_ref().map(talos),
            stays: stays(plan),
            unchecked: plan
                .rights
                .unchecked
                .iter()
                .chain(&plan.unchecked)
                .map(|note| safe(note))
                .collect(),
            digest: safe(&plan.digest),
            chart_digest: safe(&plan.chart.digest),
            schema: safe(&plan.schema_version),
        }
    }
}

fn of(plan: &Plan, action: Action) -> impl Iterator<Item = &ObjectPlan> {
    plan.objects.iter().filter(move |object| object.action == action)
}

fn is_quiet(object: &ObjectPlan) -> bool {
    object.differences.is_empty() && object.residue.is_empty() && object.action != Action::Create
}

fn rehearsal(plan: &Plan) -> Vec<String> {
    let Some(about) = &plan.rehearsal else { return Vec::new() };
    std::iter::once(about.headline() + ".")
        .chain(about.notes.iter().cloned())
        .map(|line| safe(&line))
        .collect()
}

fn found(plan: &Plan) -> Vec<Fact> {
    let found = &plan.found;
    let mut facts = Vec::new();
    let mut fact = |label, text: String| {
        if !text.is_empty() {
            facts.push(Fact { label, text });
        }
    };
    let system = if found.talos { ", all Talos" } else { "" };
    let nodes = count(found.nodes, "node", "nodes");
    let nodes = if plan.release.is_some() { String::new() } else { format!(", {nodes}{system}") };
    fact("cluster", format!("Kubernetes {}{nodes}", safe(&found.kubernetes)));
    fact("CNI", safe(format!("{} {}", found.cni, found.version).trim()));
    fact("installed by", safe(&found.installer));
    fact("comes from", safe(&found.provenance));
    fact("kube-proxy", safe(&found.kube_proxy));
    fact("values", values(plan));
    fact("ichor adds", added(plan));
    if !plan.chart.version.is_empty() {
        fact("chart", safe(&format!("{} {}", plan.chart.name, plan.chart.version)));
    }
    facts
}

/// Whether the gate ran over everything and found nothing.
fn is_settled(plan: &Plan) -> bool {
    !plan.digest.is_empty() && plan.gate_is_empty() && !plan.is_refused()
}

/// Where the values come from. Of recovered ones the gate has the last word.
fn values(plan: &Plan) -> String {
    let source = safe(&plan.values.source);
    match &plan.values.recovered {
        Some(recovered) if recovered.explained < recovered.differing && is_settled(plan) => {
            let told = source.split("; ").next().unwrap_or_default();
            format!(
                "{told}; the rest are the server's defaults and others' leaves: the gate is empty"
            )
        }
        _ => source,
    }
}

/// Owned keys that the values do not have: what runs, written down.
fn added(plan: &Plan) -> String {
    let all: Vec<String> = plan
        .values
        .added
        .iter()
        .map(|owned| format!("{}: {}", safe(&owned.key), safe(&owned.to)))
        .collect();
    all.join(", ")
}

/// What the recovered values do not explain. Where the gate is empty, none of it differs from what
/// the chart renders but the server's defaults and others' leaves, so that there is nothing to tell.
fn unexplained(plan: &Plan) -> Vec<String> {
    let Some(recovered) = &plan.values.recovered else { return Vec::new() };
    if is_settled(plan) {
        return Vec::new();
    }
    recovered.unexplained.iter().map(|one| safe(&one.to_string())).collect()
}

fn owned(changes: &[OwnedChange]) -> Vec<Owned> {
    let or = |text: &str, nothing: &str| safe(if text.is_empty() { nothing } else { text });
    changes
        .iter()
        // What the values say already is no change, whatever it is called.
        .filter(|change| change.from != change.to)
        .map(|change| Owned {
            key: safe(&change.key),
            from: or(&change.from, "nothing"),
            to: or(&change.to, "the chart's default"),
            needs_consent: change.needs_consent,
        })
        .collect()
}

/// What to do about a refusal whose message names only the finding.
fn instead(reason: &str) -> &'static str {
    match reason {
        "DryRun" => {
            "look at what the server says above: delete or correct the object it names (a Job cannot \
             be changed, an admission webhook may object), then plan again"
        }
        "Kubernetes" => {
            "use an ichor whose Cilium is tested with this Kubernetes, or bring Kubernetes to a \
             version of the range first"
        }
        "Values" => "correct the values with the tool that installed Cilium, or in --cilium-values",
        "Rights" => "have the missing rules granted, or plan as an identity that holds them",
        _ => "",
    }
}

fn note(object: &ObjectPlan) -> String {
    match object.computed {
        Computed::Memory if object.computed_why.is_empty() => "computed in memory".to_owned(),
        Computed::Memory => format!("computed in memory: {}", safe(&object.computed_why)),
        _ => String::new(),
    }
}

fn pods(restart: &crate::plan::Restart) -> String {
    let (pods, nodes) = (
        usize::try_from(restart.pods).unwrap_or(usize::MAX),
        usize::try_from(restart.nodes).unwrap_or(usize::MAX),
    );
    let how =
        if restart.on_delete { ", each only when somebody deletes it (OnDelete)" } else { "" };
    format!("{} on {}{how}", count(pods, "pod", "pods"), count(nodes, "node", "nodes"))
}

fn restarts(plan: &Plan) -> Vec<RestartView> {
    plan.restarts
        .iter()
        .map(|restart| RestartView {
            name: safe(&restart.about.to_string()),
            pods: pods(restart),
            leaves: restart.leaves.iter().map(|leaf| safe(leaf)).collect(),
        })
        .collect()
}

/// Objects with differences: those whose pods restart first, and in each the leaves that do it.
fn objects(plan: &Plan, room: Room) -> Vec<ObjectView> {
    let restart = |object: &ObjectPlan| plan.restarts.iter().find(|r| r.about == object.about);
    let mut all: Vec<&ObjectPlan> =
        plan.objects.iter().filter(|object| !object.differences.is_empty()).collect();
    all.sort_by_key(|object| restart(object).is_none());
    all.into_iter()
        .map(|object| {
            let restart = restart(object);
            let restarts = |leaf: &Difference| {
                restart.is_some_and(|restart| restart.leaves.contains(&leaf.path))
            };
            let mut leaves: Vec<LeafView> = object
                .differences
                .iter()
                .map(|leaf| leaf_view(leaf, restarts(leaf), room))
                .collect();
            leaves.sort_by_key(|leaf| !leaf.restarts);
            ObjectView {
                name: safe(&object.about.to_string()),
                note: note(object),
                restart: restart.map(|r| format!("restarts {}", pods(r))).unwrap_or_default(),
                leaves,
            }
        })
        .collect()
}

fn leaf_view(leaf: &Difference, restarts: bool, room: Room) -> LeafView {
    let lines = change::lines(leaf.live.as_ref(), leaf.new.as_ref(), room);
    let side = |other: Side| lines.iter().filter(|line| line.side != other).cloned().collect();
    LeafView {
        path: safe(&leaf.path),
        cause: cause(leaf),
        restarts,
        before: side(Side::New),
        after: side(Side::Old),
        lines,
    }
}

fn cause(leaf: &Difference) -> String {
    match leaf.cause {
        Cause::OtherManager if leaf.manager.is_empty() => "changed by somebody else".to_owned(),
        Cause::OtherManager => format!("changed by {}", safe(&leaf.manager)),
        cause => cause.text().to_owned(),
    }
}

fn ownership(leaf: &Difference, room: Room) -> String {
    let value = leaf.new.as_ref().map_or_else(
        || "(removed)".to_owned(),
        |value| value.as_str().map_or_else(|| change::brief(value, room.width), safe),
    );
    let was = match &leaf.live {
        Some(live) => format!(" (was {})", live.as_str().map_or_else(|| live.to_string(), safe)),
        None => String::new(),
    };
    format!("{} = {value}{was}", safe(&leaf.path))
}

fn residue(plan: &Plan, room: Room) -> Vec<ResidueView> {
    plan.objects
        .iter()
        .filter(|object| !object.residue.is_empty())
        .map(|object| ResidueView {
            name: safe(&object.about.to_string()),
            leaves: object
                .residue
                .iter()
                .map(|leaf| StayingLeaf {
                    path: safe(&leaf.path),
                    value: change::brief(&leaf.value, room.width),
                    manager: safe(&leaf.manager),
                })
                .collect(),
        })
        .collect()
}

fn groups(plan: &Plan, entries: impl Fn(&ObjectPlan) -> Vec<String>) -> Vec<Group> {
    plan.objects
        .iter()
        .map(|object| {
            let entries = entries(object);
            Group { name: safe(&object.about.to_string()), count: entries.len(), entries }
        })
        .filter(|group| group.count > 0)
        .collect()
}

/// By manager, the one with the most leaves first.
fn others(plan: &Plan) -> Vec<Group> {
    let mut by: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for object in &plan.objects {
        for leaf in &object.others {
            let entry = safe(&format!("{} {}", object.about, leaf.path));
            by.entry(&leaf.manager).or_default().push(entry);
        }
    }
    let mut groups: Vec<Group> = by
        .into_iter()
        .map(|(name, entries)| Group { name: safe(name), count: entries.len(), entries })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}
