//! The command that accepts a plan.

use super::safe;
use crate::job;
use crate::plan::Plan;

/// What is to be typed to accept the plan as it is. Where the Job will write, that is applying it.
pub(super) fn command(plan: &Plan) -> String {
    if plan.is_refused() || plan.consent.is_empty() || plan.digest.is_empty() {
        return String::new();
    }
    // Where missing rights are granted, the controller makes the Job.
    let is_for_job = plan.rights.identity == job::subject().user && !plan.rights.granted;
    if plan.release.is_some() {
        // The command line is the user's own, with what consents added.
        return format!("--accept-plan={} --yes", safe(&plan.digest));
    }
    let mut command =
        match (is_for_job, plan.rights.granted) {
            (true, _) => "ichor cni manifest --image IMAGE",
            (_, true) => "ichor adopt",
            _ => "ichor adopt --cilium-only",
        }
        .to_owned();
    if let Some(about) = &plan.rehearsal {
        command.push_str(&format!(" --snapshot {}", word(&about.snapshot)));
        if !about.chart.is_empty() {
            command.push_str(&format!(" --chart {}", word(&about.chart)));
        }
    }
    if plan.values.source.starts_with("the operator's file") {
        command.push_str(" --cilium-values FILE");
    }
    for consent in &plan.consent {
        command.push(' ');
        command.push_str(&safe(&consent.flag));
        if consent.flag == "--accept-cilium-diff" {
            command.push('=');
            command.push_str(&safe(&plan.digest));
        }
    }
    command + if is_for_job { " | kubectl apply -f -" } else { " --yes" }
}

/// A text as one word of a shell's command.
fn word(text: &str) -> String {
    let text = safe(text);
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:@%+,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn a_path_is_one_word_of_the_command() {
        for (text, expected) in [
            ("examples/before.ndjson", "examples/before.ndjson"),
            ("a b.ndjson", "'a b.ndjson'"),
            ("it's", "'it'\\''s'"),
            ("$(x)", "'$(x)'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
