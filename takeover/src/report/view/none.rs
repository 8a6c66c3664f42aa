//! What is said where there is nothing to show.

use serde::Serialize;

/// What stands where a list is empty. A plan that is refused may lack the very object that a refusal
/// names, so that an empty list says nothing of the cluster.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Nones {
    pub(crate) consent: String,
    pub(crate) differences: String,
    pub(crate) restarts: String,
    pub(crate) creations: String,
    pub(crate) stays: String,
}

impl Nones {
    /// For a plan.
    pub(super) fn of(is_refused: bool) -> Self {
        let compared = "found in what could be compared";
        if is_refused {
            return Self {
                consent: "not asked for: the plan is refused".to_owned(),
                differences: format!(
                    "none {compared}, which is not all where the server refuses an object"
                ),
                restarts: format!("none {compared}"),
                creations: format!("nothing {compared}"),
                stays: format!("nothing {compared}"),
            };
        }
        Self {
            consent: "none needed beside the word to begin".to_owned(),
            differences: "none: the live objects have what the chart renders".to_owned(),
            restarts: "none".to_owned(),
            creations: "nothing".to_owned(),
            stays: "nothing beside what the chart renders".to_owned(),
        }
    }

    /// Each with a capital and a full stop.
    pub(super) fn sentences(&self) -> Self {
        let sentence = |text: &str| {
            let mut letters = text.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).chain(['.']).collect()
        };
        Self {
            consent: sentence(&self.consent),
            differences: sentence(&self.differences),
            restarts: sentence(&self.restarts),
            creations: sentence(&self.creations),
            stays: sentence(&self.stays),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::{Look, ObjectPlan, Outcome, Plan, Refusal, to_terminal};
    use crate::report::{Form, render};

    /// What the server refuses is not among what was compared: nothing that a refused plan says may
    /// read as if nothing differed.
    #[test]
    fn a_refused_plan_does_not_claim_that_nothing_differs() {
        let mut plan = Plan {
            digest: "sha256:0".to_owned(),
            objects: vec![ObjectPlan::default()],
            outcome: Outcome::TakeOver,
            ..Plan::default()
        };
        let claims = [
            "the gate is empty",
            "as the chart renders",
            "one needed beside",
            "what the chart renders",
            "no pod restarts\n",
        ];
        let texts = |plan: &Plan| {
            [
                to_terminal(plan, Look::default()),
                render(plan, Form::Markdown).unwrap(),
                render(plan, Form::Html).unwrap(),
            ]
        };
        for text in texts(&plan) {
            for claim in claims.iter().take(4) {
                assert!(text.contains(claim), "{claim}: {text}");
            }
        }
        plan.outcome = Outcome::Refused;
        plan.refusals = vec![Refusal {
            reason: "DryRun".to_owned(),
            message: "the server refuses the write of configmaps".to_owned(),
        }];
        for text in texts(&plan) {
            for claim in claims {
                assert!(!text.contains(claim), "{claim}: {text}");
            }
            assert!(text.contains("1 object could be compared"), "{text}");
            assert!(text.contains("ot asked for: the plan is refused"), "{text}");
        }
    }
}
