//! Reviews of rights and of the identity. They are sent as creates but change nothing.

use serde::Deserialize;
use serde_json::{Value, json};

use super::retry::Call;
use super::send::Sender;
use crate::cluster::{AccessQuestion, ClusterError, Decision, ResourceRule, Rules, Subject};

async fn review<T: serde::de::DeserializeOwned>(
    sender: &Sender,
    group: &str,
    (kind, plural): (&str, &str),
    spec: Option<Value>,
) -> Result<T, ClusterError> {
    let mut body = json!({ "apiVersion": format!("{group}/v1"), "kind": kind });
    if let Some(spec) = spec {
        body["spec"] = spec;
    }
    let mut call = Call::new("POST", format!("/apis/{group}/v1/{plural}"))
        .body("application/json", body.to_string());
    call.about.0 = format!("{plural}.{group}");
    sender.send(&call).await?.parse()
}

#[derive(Deserialize)]
struct Answered<T> {
    status: T,
}

pub(super) async fn may(
    sender: &Sender,
    subject: Option<&Subject>,
    question: &AccessQuestion,
) -> Result<Decision, ClusterError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        allowed: bool,
        #[serde(default)]
        reason: String,
        #[serde(default)]
        evaluation_error: String,
    }
    let mut spec = json!({ "resourceAttributes": {
        "verb": question.verb,
        "group": question.group,
        "resource": question.resource,
        "subresource": question.subresource,
        "namespace": question.namespace,
        "name": question.name,
    }});
    let review_kind = match subject {
        None => ("SelfSubjectAccessReview", "selfsubjectaccessreviews"),
        Some(subject) => {
            spec["user"] = subject.user.as_str().into();
            spec["groups"] = json!(subject.groups);
            spec["extra"] = json!(subject.extra);
            ("SubjectAccessReview", "subjectaccessreviews")
        }
    };
    let answer: Answered<Status> =
        review(sender, "authorization.k8s.io", review_kind, Some(spec)).await?;
    let Status { allowed, reason, evaluation_error } = answer.status;
    Ok(Decision { allowed, reason, evaluation_error })
}

pub(super) async fn rules(sender: &Sender, namespace: &str) -> Result<Rules, ClusterError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        #[serde(default)]
        resource_rules: Option<Vec<ResourceRule>>,
        #[serde(default)]
        incomplete: bool,
        #[serde(default)]
        evaluation_error: String,
    }
    let kind = ("SelfSubjectRulesReview", "selfsubjectrulesreviews");
    let spec = json!({ "namespace": namespace });
    let answer: Answered<Status> = review(sender, "authorization.k8s.io", kind, Some(spec)).await?;
    Ok(Rules {
        resources: answer.status.resource_rules.unwrap_or_default(),
        incomplete: answer.status.incomplete,
        evaluation_error: answer.status.evaluation_error,
    })
}

pub(super) async fn identity(sender: &Sender) -> Result<Subject, ClusterError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        #[serde(default)]
        user_info: User,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct User {
        username: String,
        groups: Vec<String>,
        extra: std::collections::BTreeMap<String, Vec<String>>,
    }
    let kind = ("SelfSubjectReview", "selfsubjectreviews");
    // This kind has no spec; the server warns of one.
    let answer: Answered<Status> = review(sender, "authentication.k8s.io", kind, None).await?;
    let User { username, groups, extra } = answer.status.user_info;
    Ok(Subject { user: username, groups, extra })
}
