//! What a takeover or a change of ichor's own release did, for people.

use takeover::run::Done;

/// What was done, for people.
pub(crate) fn account(done: &Done) -> String {
    if done.changed {
        return account_of_change(done);
    }
    if done.nothing {
        let mut text = format!(
            "Nothing was left to do: Cilium is ichor's, revision {} of release cilium, records in \
             namespace ichor-system.\n",
            done.revision
        );
        still_to_do(done, &mut text);
        return text;
    }
    let mut text = String::new();
    if done.resumed {
        text.push_str("An earlier takeover was finished.\n");
    }
    let records = &done.records;
    text.push_str(&format!(
        "Taken over: revision {} of release cilium, records in namespace ichor-system.\n\
         {} object(s) patched, {} created, {} as they should be; {} foreign record(s) backed up \
         and deleted.\n",
        done.revision,
        done.patched.len(),
        done.created.len(),
        done.unchanged,
        records.deleted.len(),
    ));
    for backup in &records.backups {
        text.push_str(&format!("Backup: Secret ichor-system/{backup}\n"));
    }
    still_to_do(done, &mut text);
    text
}

/// The same of a change of ichor's own release.
fn account_of_change(done: &Done) -> String {
    let chart = done.summary.as_ref().map(|summary| summary.chart.as_str()).unwrap_or_default();
    if done.nothing {
        return format!(
            "Nothing was left to do: revision {} of release cilium has these values and chart \
             {chart}.\n",
            done.revision
        );
    }
    let earlier = if done.resumed { "An earlier change was finished.\n" } else { "" };
    format!(
        "{earlier}Changed: revision {} of release cilium, chart {chart}.\n{} object(s) patched, {} \
         created, {} deleted, {} as they should be.\nThe way back: ichor release rollback cilium -n \
         ichor-system\n",
        done.revision,
        done.patched.len(),
        done.created.len(),
        done.deleted.len(),
        done.unchanged
    )
}

fn still_to_do(done: &Done, text: &mut String) {
    for left in &done.left {
        text.push_str(&format!("Still to do: {left}\n"));
    }
}
