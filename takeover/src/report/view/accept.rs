//! The command that accepts a plan.

use super::safe;
use crate::job;
use crate::plan::{Consent, Plan};

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
    if plan.is_change() {
        return if is_for_job {
            format!(
                "kubectl annotate taloscluster cluster ichor.maesh.dev/accepted-plan={} --overwrite",
                safe(&plan.digest)
            )
        } else if plan.found.version == plan.chart.version {
            // Which values they were only the user knows.
            format!("ichor cni values set VALUES {} --yes", flags(plan))
        } else {
            format!("ichor cni upgrade {} --yes", flags(plan))
        };
    }
    let mut command = match (is_for_job, plan.rights.granted) {
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
    command.push(' ');
    command.push_str(&flags(plan));
    command + if is_for_job { " | kubectl apply -f -" } else { " --yes" }
}

/// What the user typed, as a command that accepts the plan.
pub(super) fn typed(plan: &Plan, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|text| word(text)).collect();
    format!("{} {} --yes", words.join(" "), flags(plan))
}

/// The consents that the plan asks for, as flags.
fn flags(plan: &Plan) -> String {
    let flag = |consent: &Consent| match consent.flag.as_str() {
        "--accept-cilium-diff" => format!("--accept-cilium-diff={}", safe(&plan.digest)),
        flag => safe(flag),
    };
    plan.consent.iter().map(flag).collect::<Vec<_>>().join(" ")
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
    use super::{command, typed, word};
    use crate::plan::{CHANGE_SCHEMA_VERSION, Consent, Plan};

    #[test]
    fn a_change_is_accepted_by_a_whole_command() {
        let consent = Consent { flag: "--accept-cilium-diff".to_owned(), why: String::new() };
        let mut plan = Plan {
            schema_version: CHANGE_SCHEMA_VERSION.to_owned(),
            digest: "sha256:0".to_owned(),
            consent: vec![consent],
            ..Plan::default()
        };
        "1.20.0".clone_into(&mut plan.found.version);
        "1.20.0".clone_into(&mut plan.chart.version);
        let accept = "--accept-cilium-diff=sha256:0 --yes";
        assert_eq!(command(&plan), format!("ichor cni values set VALUES {accept}"));
        let words = ["ichor", "cni", "values", "set", "--set", "a=b c"].map(str::to_owned);
        assert_eq!(typed(&plan, &words), format!("ichor cni values set --set 'a=b c' {accept}"));
        "1.19.6".clone_into(&mut plan.found.version);
        assert_eq!(command(&plan), format!("ichor cni upgrade {accept}"));
    }

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
