//! A plan for a terminal: what was found, what will happen, what needs consent and why,
//! differences by object, restarts, records, rights.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Action, Computed, Difference, ObjectPlan, Outcome, Plan};

/// Leaves of one object that are shown before the rest is counted.
const SHOWN: usize = 12;
/// Characters of a value that are shown.
const WIDTH: usize = 100;

/// The plan as text. `all` shows every leaf.
pub fn to_text(plan: &Plan, all: bool) -> String {
    let mut out = String::new();
    found(&mut out, plan);
    if plan.is_refused() {
        heading(&mut out, "Refused, nothing is written");
        for refusal in &plan.refusals {
            let _ = writeln!(out, "  {}: {}", refusal.reason, refusal.message);
        }
    }
    if plan.digest.is_empty() {
        return out;
    }
    what_happens(&mut out, plan);
    consent(&mut out, plan);
    objects(&mut out, plan, all);
    restarts(&mut out, plan);
    records(&mut out, plan);
    rights(&mut out, plan);
    let _ = writeln!(out, "\nDigest  {}", plan.digest);
    out
}

fn heading(out: &mut String, text: &str) {
    let gap = if out.is_empty() { "" } else { "\n" };
    let _ = writeln!(out, "{gap}{text}");
}

fn found(out: &mut String, plan: &Plan) {
    let found = &plan.found;
    heading(out, "Found");
    let system = if found.talos { ", all Talos" } else { "" };
    let _ = writeln!(out, "  cluster     Kubernetes {}, {} node(s){system}", found.kubernetes, found.nodes);
    let version = if found.version.is_empty() { String::new() } else { format!(" {}", found.version) };
    let _ = writeln!(out, "  CNI         {}{version}", found.cni);
    if !found.provenance.is_empty() {
        let _ = writeln!(out, "  comes from  {}", found.provenance);
    }
    if !found.kube_proxy.is_empty() {
        let _ = writeln!(out, "  kube-proxy  {}", found.kube_proxy);
    }
    if !plan.values.source.is_empty() {
        let _ = writeln!(out, "  values      {}", plan.values.source);
    }
    for one in &plan.values.overridden {
        let to = if one.to.is_empty() { "the chart's default" } else { &one.to };
        let _ = writeln!(out, "              {} is {to}, whatever the values say ({})", one.key, one.from);
    }
}

fn what_happens(out: &mut String, plan: &Plan) {
    heading(out, "What happens");
    let figures = plan.figures();
    let _ = match plan.outcome {
        Outcome::Nothing => writeln!(out, "  nothing: this Cilium is ichor's already"),
        Outcome::Upgrade => writeln!(
            out,
            "  Cilium {} is taken over and UPGRADED to {} (chart {})",
            plan.found.version, plan.chart.version, plan.chart.version
        ),
        _ => writeln!(
            out,
            "  Cilium {} is taken over in place with chart {} {}",
            plan.found.version, plan.chart.name, plan.chart.version
        ),
    };
    let _ = writeln!(
        out,
        "  {} objects: {} difference(s), {} residue, {} to create, {} ownership leaves",
        plan.objects.len(),
        figures.differences,
        figures.residue,
        figures.creations,
        figures.ownership
    );
    if figures.differences == 0 && figures.residue == 0 && figures.creations == 0 {
        let _ = writeln!(out, "  the gate is empty: what runs is what the chart renders");
    }
    if plan.restarts.is_empty() {
        let _ = writeln!(out, "  no pod restarts");
    } else {
        let pods: u64 = plan.restarts.iter().map(|restart| restart.pods).sum();
        let _ = writeln!(out, "  {} workload(s) restart, {pods} pods", plan.restarts.len());
    }
    if !plan.records.is_empty() {
        let _ = writeln!(
            out,
            "  {} foreign record(s) are backed up to ichor-system, compared, then deleted",
            plan.records.len()
        );
    }
}

fn consent(out: &mut String, plan: &Plan) {
    heading(out, "Consent");
    if plan.consent.is_empty() {
        let _ = writeln!(out, "  none needed beside the word to begin");
    }
    for consent in &plan.consent {
        let _ = writeln!(out, "  {}: {}", consent.flag, consent.why);
    }
}

/// The few that matter first: those that restart pods, then other differences, then what is
/// created, then residue.
fn rank(object: &ObjectPlan, plan: &Plan) -> u8 {
    if plan.restarts.iter().any(|restart| restart.about == object.about) {
        0
    } else if !object.differences.is_empty() {
        1
    } else if object.action == Action::Create {
        2
    } else {
        3
    }
}

fn objects(out: &mut String, plan: &Plan, all: bool) {
    let mut loud: Vec<&ObjectPlan> = plan
        .objects
        .iter()
        .filter(|object| {
            !object.differences.is_empty()
                || !object.residue.is_empty()
                || object.action == Action::Create
        })
        .collect();
    loud.sort_by_key(|object| rank(object, plan));
    if !loud.is_empty() || !plan.left_objects.is_empty() {
        heading(out, "Differences");
    }
    for object in &loud {
        let how = match object.computed {
            Computed::Memory => format!(
                " [computed in memory: {}]",
                if object.computed_why.is_empty() { "no dry run" } else { &object.computed_why }
            ),
            _ => String::new(),
        };
        let create = if object.action == Action::Create { " is created" } else { "" };
        let effect =
            if object.effect.is_empty() { String::new() } else { format!(": {}", object.effect) };
        let _ = writeln!(out, "  {}{create}{effect}{how}", object.about);
        let limit = if all { usize::MAX } else { SHOWN };
        for difference in object.differences.iter().take(limit) {
            leaf(out, difference);
        }
        folded(out, object.differences.len(), limit, "differences");
        for residue in object.residue.iter().take(limit) {
            let by = by(&residue.manager);
            let _ = writeln!(out, "    = {} stays: {}{by}", residue.path, brief(Some(&residue.value)));
        }
        folded(out, object.residue.len(), limit, "residue leaves");
    }
    for left in &plan.left_objects {
        let _ = writeln!(out, "  {left} stays: the chart does not render it");
    }
    let figures = plan.figures();
    let quiet = plan.objects.len() - loud.len();
    let _ = writeln!(
        out,
        "\n  {quiet} object(s) without differences; {} leaves of controllers and the server, {} \
         generated leaves kept, {} defaults",
        figures.others, figures.generated, figures.defaults
    );
    if all {
        for object in &plan.objects {
            for other in &object.others {
                let _ = writeln!(out, "    {} {} is {}'s", object.about, other.path, other.manager);
            }
            for path in &object.generated {
                let _ = writeln!(out, "    {} {path} is generated, the live value is kept", object.about);
            }
        }
    }
}

fn folded(out: &mut String, count: usize, limit: usize, what: &str) {
    if count > limit {
        let _ = writeln!(out, "    … and {} more {what} (--verbose shows all)", count - limit);
    }
}

fn by(manager: &str) -> String {
    if manager.is_empty() { String::new() } else { format!(" (set by {manager})") }
}

fn leaf(out: &mut String, difference: &Difference) {
    let _ = writeln!(
        out,
        "    ~ {} [{}{}]",
        difference.path,
        difference.cause.text(),
        if difference.cause == super::Cause::OtherManager {
            format!(" {}", difference.manager)
        } else {
            String::new()
        }
    );
    if let (Some(Value::Array(live)), Some(Value::Array(new))) = (&difference.live, &difference.new) {
        for item in live.iter().filter(|item| !new.contains(item)) {
            let _ = writeln!(out, "        - {}", brief(Some(item)));
        }
        for item in new.iter().filter(|item| !live.contains(item)) {
            let _ = writeln!(out, "        + {}", brief(Some(item)));
        }
        return;
    }
    if let (Some(Value::String(live)), Some(Value::String(new))) = (&difference.live, &difference.new)
        && live.chars().count().max(new.chars().count()) > WIDTH
    {
        let (live, new) = around(live, new);
        let _ = writeln!(out, "        - {live}\n        + {new}");
        return;
    }
    let _ = writeln!(
        out,
        "        {} → {}",
        brief(difference.live.as_ref()),
        brief(difference.new.as_ref())
    );
}

/// Two long texts where they first differ.
fn around(live: &str, new: &str) -> (String, String) {
    let (live, new): (Vec<char>, Vec<char>) = (live.chars().collect(), new.chars().collect());
    let same = live.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(WIDTH / 3);
    let cut = |text: &[char]| {
        let part: String = text.iter().skip(start).take(WIDTH).collect();
        let dots = |is: bool| if is { "…" } else { "" };
        let (before, after) = (dots(start > 0), dots(text.len() > start + WIDTH));
        format!("{before}{}{after} ({} characters)", Value::from(part), text.len())
    };
    (cut(&live), cut(&new))
}

fn brief(value: Option<&Value>) -> String {
    let Some(value) = value else { return "(nothing)".to_owned() };
    let text = value.to_string();
    if text.chars().count() <= WIDTH {
        return text;
    }
    let start: String = text.chars().take(WIDTH).collect();
    format!("{start}… ({} characters)", text.chars().count())
}

fn restarts(out: &mut String, plan: &Plan) {
    heading(out, "Restarts");
    if plan.restarts.is_empty() {
        let _ = writeln!(out, "  none");
    }
    for restart in &plan.restarts {
        let how = if restart.on_delete { ", each when it is deleted" } else { "" };
        let _ = writeln!(
            out,
            "  {}: {} pod(s) on {} node(s){how}, because of {} leaf(s), first {}",
            restart.about,
            restart.pods,
            restart.nodes,
            restart.leaves.len(),
            restart.leaves.first().map_or("", String::as_str)
        );
    }
}

fn records(out: &mut String, plan: &Plan) {
    heading(out, "Records");
    if plan.records.is_empty() {
        let _ = writeln!(out, "  no foreign records");
    }
    for record in &plan.records {
        let _ = writeln!(
            out,
            "  {} (revision {}, {}, {} bytes): backed up, then deleted",
            record.about, record.revision, record.status, record.bytes
        );
    }
    for size in &plan.sizes {
        let _ = writeln!(out, "  {}: {} bytes", size.what, size.bytes);
    }
}

fn rights(out: &mut String, plan: &Plan) {
    heading(out, "Rights");
    let rights = &plan.rights;
    let _ = writeln!(
        out,
        "  {}: {} checked, {} missing",
        rights.identity,
        rights.checked,
        rights.missing.len()
    );
    for missing in &rights.missing {
        let _ = writeln!(out, "  missing: {missing}");
    }
    for note in rights.unchecked.iter().chain(&plan.unchecked) {
        let _ = writeln!(out, "  not checked: {note}");
    }
}
