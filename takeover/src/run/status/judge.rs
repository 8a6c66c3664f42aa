//! What the facts mean.

use super::facts::{RecordState, Wants};
use super::{Facts, RecordFact, SCHEMA_VERSION, State, Status};

/// Finishes what was begun.
const GO_ON: &str = "ichor adopt --cilium-only --yes (or the Job again)";
/// Finishes a restore, or begins one.
const GIVE_BACK: &str = "ichor cni restore --yes";
/// Waits.
const WAIT: &str = "wait until the run that holds the lock is done, or has not renewed it for 15 s, \
                    then look again";
/// Objects that are named before the rest is counted.
const NAMED: usize = 5;

/// Judges.
pub(super) fn judge(facts: Facts, wants: &Wants) -> Status {
    let mut status = Status {
        schema_version: SCHEMA_VERSION.to_owned(),
        running: facts.lock.as_ref().is_some_and(|lock| !lock.stale),
        ..Status::default()
    };
    status.problems.clone_from(&facts.damaged);
    let own = facts.own.as_ref().map(|own| own.status.as_str());
    match own {
        None if wants.stored && wants.own_retired => restored(&mut status, &facts, wants),
        None if wants.stored => {
            status.begun(3, "the plan is stored, and nothing of Cilium was written".to_owned());
        }
        None => {
            status.next.push("ichor adopt --cilium-only --plan".to_owned());
        }
        Some(_) if is_being_restored(&facts, wants) => restore_begun(&mut status, &facts),
        Some("deployed") => deployed(&mut status, &facts, wants),
        Some(other) => under_way(&mut status, &facts, other),
    }
    if !facts.damaged.is_empty() && matches!(status.state, State::NotBegun | State::Done) {
        status.state = State::Incomplete;
    }
    if status.running && matches!(status.state, State::Begun | State::RestoreBegun) {
        status.next = vec![WAIT.to_owned()];
    }
    status.facts = facts;
    status
}

impl Status {
    fn begun(&mut self, step: u8, stopped: String) {
        self.state = State::Begun;
        self.step = Some(step);
        self.stopped = stopped;
        self.next = vec![GO_ON.to_owned()];
    }
}

/// Some of a list, and how many there are more.
fn some(names: &[String]) -> String {
    let mut text = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > NAMED {
        text.push_str(&format!(" and {} more", names.len() - NAMED));
    }
    text
}

fn in_state(facts: &Facts, state: RecordState) -> Vec<String> {
    let all = facts.records.iter().filter(|record| record.state == state);
    all.map(|record| record.record.clone()).collect()
}

/// A restore puts the foreign records back first, and backs ichor's own up last.
fn is_being_restored(facts: &Facts, wants: &Wants) -> bool {
    wants.own_retired || facts.records.iter().any(|record| record.state == RecordState::Back)
}

fn restore_begun(status: &mut Status, facts: &Facts) {
    status.state = State::RestoreBegun;
    let back = in_state(facts, RecordState::Back).len();
    status.stopped = format!(
        "{back} of {} foreign record(s) are back, and ichor's own are still there",
        facts.records.len()
    );
    status.next = vec![GIVE_BACK.to_owned()];
    foreign_names(status, facts);
}

/// A takeover whose record is not deployed.
fn under_way(status: &mut Status, facts: &Facts, own: &str) {
    let objects = &facts.objects;
    let revision = facts.own.as_ref().map_or(0, |own| own.revision);
    if facts.digest.is_none() {
        status.begun(
            4,
            format!(
                "revision {revision} is {own}, and no stored plan tells what was to be written: it \
                 is planned again"
            ),
        );
        status.next.insert(0, "ichor cni plan".to_owned());
        return;
    }
    let (step, stopped) = if objects.written < objects.all {
        (4, format!("{} of {} objects are written", objects.written, objects.all))
    } else {
        (5, format!("all {} objects are written, and the rollout was not seen Ready", objects.all))
    };
    status.begun(step, format!("revision {revision} is {own}; {stopped}"));
    let mut strange = objects.changed.clone();
    strange.extend(objects.missing.iter().map(|object| format!("{object} (gone)")));
    if !strange.is_empty() {
        status.problems.push(format!(
            "{} object(s) are neither as they were at the consent nor as the takeover writes them, \
             so that somebody else wrote them: {}",
            strange.len(),
            some(&strange)
        ));
        status.next = vec![
            "put them back, then: ichor adopt --cilium-only --yes".to_owned(),
            "or look at the plan as it is now, and consent to it: ichor cni plan".to_owned(),
        ];
    }
    lost_records(status, facts);
}

/// One whose record is deployed.
fn deployed(status: &mut Status, facts: &Facts, wants: &Wants) {
    let there = in_state(facts, RecordState::There);
    if !there.is_empty() {
        let held = facts.records.iter().filter(|record| !record.backup.is_empty()).count();
        status.begun(
            7,
            format!(
                "ichor's record is deployed; {} of {} foreign record(s) are still there, {held} are \
                 in a backup",
                there.len(),
                facts.records.len()
            ),
        );
        lost_records(status, facts);
        return;
    }
    status.state = State::Done;
    lost_records(status, facts);
    foreign_names(status, facts);
    damaged_backups(status, facts);
    if !wants.stored {
        status.problems.push(
            "the stored plan (Secret ichor-system/ichor-cni-plan) is not there: Cilium is not \
             affected, but `ichor cni restore` cannot know what was before"
                .to_owned(),
        );
    }
    let objects = &facts.objects;
    if !objects.missing.is_empty() {
        status.problems.push(format!(
            "{} object(s) of ichor's record are gone: {}",
            objects.missing.len(),
            some(&objects.missing)
        ));
        status.next.push(
            "create what is gone as the record has it: ichor release manifest cilium -n \
             ichor-system --show-secrets"
                .to_owned(),
        );
    }
    if !objects.not_owned.is_empty() {
        status.problems.push(format!(
            "{} object(s) of ichor's record do not say that they belong to it: {}",
            objects.not_owned.len(),
            some(&objects.not_owned)
        ));
        status.next.push(
            "for each of them: kubectl label --overwrite KIND NAME \
             app.kubernetes.io/managed-by=Helm, and kubectl annotate --overwrite KIND NAME \
             meta.helm.sh/release-name=cilium meta.helm.sh/release-namespace=kube-system"
                .to_owned(),
        );
    }
    if !status.problems.is_empty() {
        status.state = State::Incomplete;
    }
}

/// Records that are neither there nor in a backup.
fn lost_records(status: &mut Status, facts: &Facts) {
    let lost = |record: &&RecordFact| {
        matches!(record.state, RecordState::Gone | RecordState::Another) && record.backup.is_empty()
    };
    let lost: Vec<String> =
        facts.records.iter().filter(lost).map(|record| record.record.clone()).collect();
    if !lost.is_empty() {
        status.problems.push(format!(
            "{} foreign record(s) are gone, and no backup holds them whole: {}; Cilium is not \
             affected, but `ichor cni restore` refuses until the backup is put back",
            lost.len(),
            some(&lost)
        ));
    }
}

/// Other objects under the names of foreign records.
fn foreign_names(status: &mut Status, facts: &Facts) {
    let mut others = in_state(facts, RecordState::Another);
    others.extend(facts.again.iter().cloned());
    if others.is_empty() {
        return;
    }
    status.problems.push(format!(
        "{} record(s) of the release before are there again and are not those that were taken \
         over, so that another tool installed or upgraded Cilium since: {}",
        others.len(),
        some(&others)
    ));
    status.next.push("stop that tool, which works on what is ichor's".to_owned());
    for record in others.iter().take(NAMED) {
        let (kind, place) = record.split_once(' ').unwrap_or_default();
        let (namespace, name) = place.split_once('/').unwrap_or_default();
        let kind = kind.to_lowercase();
        status.next.push(format!(
            "then remove its record (objects stay): kubectl -n {namespace} delete {kind} {name}"
        ));
    }
}

fn damaged_backups(status: &mut Status, facts: &Facts) {
    for backup in &facts.backups {
        if backup.whole < backup.records || backup.records == 0 {
            status.problems.push(format!(
                "backup Secret ichor-system/{} was changed: {} of its {} record(s) are whole",
                backup.name, backup.whole, backup.records
            ));
        }
    }
}

fn restored(status: &mut Status, facts: &Facts, wants: &Wants) {
    status.state = State::Restored;
    let gone = in_state(facts, RecordState::Gone);
    if !gone.is_empty() && gone.len() == facts.records.len() {
        status.problems.push(format!(
            "none of the {} record(s) that were put back is there any more: {}",
            gone.len(),
            some(&gone)
        ));
    }
    if !wants.not_given_back.is_empty() {
        status.problems.push(format!(
            "{} object(s) still name ichor's release as their owner: {}",
            wants.not_given_back.len(),
            some(&wants.not_given_back)
        ));
    }
    damaged_backups(status, facts);
}

#[cfg(test)]
mod tests {
    use super::super::{BackupFact, LockFact, ObjectFacts, Own};
    use super::*;

    fn record(name: &str, state: RecordState, backup: &str) -> RecordFact {
        RecordFact { record: name.to_owned(), state, backup: backup.to_owned() }
    }

    fn facts(own: Option<&str>, records: &[(RecordState, &str)]) -> Facts {
        let names = ["Secret a/v1", "Secret a/v2", "Secret a/v3"];
        Facts {
            digest: Some("sha256:1".to_owned()),
            own: own.map(|status| Own { revision: 1, status: status.to_owned() }),
            records: names
                .iter()
                .zip(records)
                .map(|(name, (state, backup))| record(name, *state, backup))
                .collect(),
            ..Facts::default()
        }
    }

    fn stored() -> Wants {
        Wants { stored: true, ..Wants::default() }
    }

    #[test]
    fn nothing_is_there() {
        let status = judge(Facts::default(), &Wants::default());
        assert_eq!((status.state, status.step), (State::NotBegun, None));
        assert!(status.is_whole() && status.next[0].contains("--plan"));
    }

    #[test]
    fn a_lock_that_is_renewed_is_a_run() {
        let mut facts = facts(Some("pending-install"), &[]);
        let lock = |stale| LockFact {
            holder: "x".to_owned(),
            renewed: String::new(),
            age: Some(if stale { 15 } else { 3 }),
            stale,
        };
        facts.lock = Some(lock(false));
        let status = judge(facts.clone(), &stored());
        assert!(status.running && status.next == [WAIT]);
        facts.lock = Some(lock(true));
        let status = judge(facts, &stored());
        assert!(!status.running && status.next == [GO_ON]);
    }

    #[test]
    fn both_a_lost_record_and_a_damaged_backup_are_told() {
        let mut facts = facts(Some("deployed"), &[(RecordState::Gone, "")]);
        facts.backups = vec![BackupFact { name: "b".to_owned(), whole: 0, records: 1, own: false }];
        let status = judge(facts, &stored());
        assert_eq!(status.state, State::Incomplete);
        assert_eq!(status.problems.len(), 2, "{:?}", status.problems);
        assert!(status.problems[0].contains("Secret a/v1") && status.problems[1].contains("0 of"));
    }

    #[test]
    fn long_lists_are_counted() {
        let mut facts = facts(Some("deployed"), &[]);
        let missing = (0..8).map(|n| format!("object {n}")).collect();
        facts.objects = ObjectFacts { all: 8, missing, ..ObjectFacts::default() };
        let status = judge(facts, &stored());
        assert!(status.problems[0].ends_with("object 4 and 3 more"), "{:?}", status.problems);
    }

    #[test]
    fn a_stored_plan_that_does_not_read_is_no_beginning() {
        let mut facts = facts(Some("deployed"), &[]);
        facts.digest = None;
        facts.damaged.push("the stored plan is damaged".to_owned());
        let status = judge(facts, &stored());
        assert_eq!((status.state, status.problems.len()), (State::Incomplete, 1));
    }
}
