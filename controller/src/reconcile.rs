//! Sends what was decided: the Job, the status, the Event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::{CniPreset, ConditionStatus, TalosCluster, TalosClusterStatus, reason, type_};
use helm_rs::cluster::Clock;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    Preconditions,
};
use kube::runtime::controller::Action as Next;
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::change::Goal;
use crate::decide::{Action, Decision, Told, condition, decide, not_made, not_seen};
use crate::facts::Facts;
use crate::policies::{self, Policies};
use crate::serve;
use crate::trace::{Span, Tracer};
use crate::watch::{Watched, causes};
use crate::{NAME, job};

/// How long the first failed request is waited for; doubled each time, up to [`LAST`].
const FIRST: Duration = Duration::from_secs(2);
/// The longest such wait.
const LAST: Duration = Duration::from_mins(5);
/// Bytes that an Event's note may have.
const NOTE: usize = 1024;
/// Bytes of a server's answer in a condition.
const MESSAGE: usize = 4096;

/// What every look needs.
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) watched: Watched,
    /// The image of the Job.
    pub(crate) image: String,
    pub(crate) recorder: Recorder,
    pub(crate) told: Arc<serve::Told>,
    /// The network policies that are wanted; none when they are switched off.
    pub(crate) policies: Option<Policies>,
    pub(crate) tracer: Tracer,
    /// Failed looks in a row, by name.
    pub(crate) failures: Mutex<BTreeMap<String, u32>>,
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request.
    #[error("{doing}")]
    Request { doing: &'static str, source: Box<kube::Error> },
    /// An object of our own making is none.
    #[error("{what} cannot be made")]
    Object { what: &'static str, source: serde_json::Error },
}

impl Error {
    /// In one word, for traces.
    fn kind(&self) -> String {
        match self {
            Self::Request { source, .. } => match &**source {
                kube::Error::Api(status) => status.code.to_string(),
                _ => "request".to_owned(),
            },
            Self::Object { .. } => "object".to_owned(),
        }
    }
}

fn request(doing: &'static str) -> impl FnOnce(kube::Error) -> Error {
    move |source| Error::Request { doing, source: Box::new(source) }
}

/// Looks at one TalosCluster.
pub(crate) async fn reconcile(
    cluster: Arc<TalosCluster>,
    context: Arc<Context>,
) -> Result<Next, Error> {
    let mut span = Span::begin("reconcile TalosCluster", context.clock.now());
    span.attribute("ichor.taloscluster.name", cluster.name_any());
    span.attribute("ichor.taloscluster.uid", cluster.uid().unwrap_or_default());
    let looked = look(&cluster, &context, &mut span).await;
    let error = looked.as_ref().err().map(|error| {
        span.attribute("error.type", error.kind());
        causes(error)
    });
    context.tracer.end(&span, context.clock.now(), error.as_deref());
    context.told.metrics.dropped(context.tracer.dropped());
    looked
}

async fn look(cluster: &TalosCluster, context: &Context, span: &mut Span) -> Result<Next, Error> {
    context.told.metrics.reconciled();
    let facts = context.watched.facts.borrow().clone();
    let unseen = unseen(context);
    let now = context.clock.now();
    // Facts come with a change that looks at everything again.
    let Some(facts) = facts else {
        if let Some(unseen) = unseen.filter(|_| cluster.spec.cni.preset == CniPreset::Cilium) {
            let mut status = cluster.status.clone().unwrap_or_default();
            not_seen(&mut status, cluster, &unseen, now);
            write_status(cluster, &status, context).await?;
        }
        return Ok(Next::await_change());
    };
    let mut decision = decide(cluster, &facts, now);
    if let Some(unseen) = unseen.filter(|_| !decision.status.conditions.is_empty()) {
        not_seen(&mut decision.status, cluster, &unseen, now);
    }
    if let Some(condition) = decision.status.conditions.first() {
        span.attribute("ichor.condition.reason", condition.reason.clone());
    }
    let mut failed = None;
    if let Some(action) = &decision.action
        && let Err(error) =
            act(cluster, &facts, action, decision.goal.as_ref(), context, span).await
    {
        not_made(&mut decision, cluster, &told_of(&error), now);
        failed = Some(error);
    }
    let mut policies = policies::decide(&facts, context.policies);
    // What goes wrong with them does not keep the rest from being told.
    let unwritten = write_policies(&policies, context).await.err();
    if let (Some(error), Some(told)) = (&unwritten, &mut policies.told) {
        *told = (ConditionStatus::False, reason::NOT_WRITTEN, told_of(error));
    }
    if let Some(told) = policies.told.filter(|_| cluster.metadata.deletion_timestamp.is_none()) {
        let condition = condition(type_::NETWORK_POLICIES_APPLIED, told, cluster, now);
        decision.status.conditions.push(condition);
    }
    if !write_status(cluster, &decision.status, context).await? {
        // The object changed meanwhile: what is decided about that one comes of its own event.
        return Ok(Next::requeue(decision.again));
    }
    if let Some(told) = &decision.event {
        tell(cluster, told, context).await;
    }
    count(cluster, &decision, context);
    if let Some(summary) = facts.job.as_ref().and_then(|job| job.summary.as_ref()) {
        context.told.metrics.gate(summary);
    }
    if let Some(error) = failed.or(unwritten) {
        return Err(error);
    }
    let mut failures = context.failures.lock().unwrap_or_else(PoisonError::into_inner);
    failures.remove(&cluster.name_any());
    Ok(Next::requeue(decision.again))
}

/// What cannot be watched, for people; none when all is seen.
fn unseen(context: &Context) -> Option<String> {
    let unseen = context.watched.unseen.borrow();
    let list: Vec<String> = unseen.iter().map(|(kind, why)| format!("{kind} ({why})")).collect();
    let text = format!(
        "the controller cannot watch {}: see that its Roles are those of charts/ichor",
        list.join(", ")
    );
    (!list.is_empty()).then(|| shortened(text, MESSAGE))
}

/// An error with its causes as a condition has it.
fn told_of(error: &Error) -> String {
    shortened(causes(error), MESSAGE)
}

/// A text of at most so many bytes.
fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let mut end = limit - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// What becomes of a look that failed: the next one, later each time.
#[expect(clippy::needless_pass_by_value, reason = "the signature that the queue calls")]
pub(crate) fn after_error(
    cluster: Arc<TalosCluster>,
    error: &Error,
    context: Arc<Context>,
) -> Next {
    context.told.metrics.failed();
    let mut failures = context.failures.lock().unwrap_or_else(PoisonError::into_inner);
    let count = failures.entry(cluster.name_any()).or_default();
    let wait = FIRST.saturating_mul(1 << (*count).min(16)).min(LAST);
    *count = count.saturating_add(1);
    let again = wait.as_secs();
    tracing::error!(
        cluster = cluster.name_any(),
        error = causes(error),
        again,
        "the cluster could not be looked at"
    );
    Next::requeue(wait)
}

async fn act(
    cluster: &TalosCluster,
    facts: &Facts,
    action: &Action,
    goal: Option<&Goal>,
    context: &Context,
    span: &Span,
) -> Result<(), Error> {
    let namespace = cilium::pinned::NAMESPACE;
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let attempt = match action {
        Action::Create { attempt } => *attempt,
        Action::Replace { uid, attempt } => {
            let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
            let parameters = DeleteParams::background().preconditions(preconditions);
            match jobs.delete(takeover::job::NAME, &parameters).await {
                Ok(_) => {}
                // Gone, or another one: the watch will tell.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
                Err(error) => return Err(request("delete the Job of before")(error)),
            }
            *attempt
        }
    };
    let mut uid = None;
    for object in job::objects(cluster, facts, &context.image, attempt, goal) {
        if object["kind"] == "Job" {
            let job: Job = made("the Job", object)?;
            let mut span = span.within("create Job", context.clock.now());
            span.attribute("k8s.namespace.name", namespace);
            span.attribute("k8s.job.name", takeover::job::NAME);
            span.attribute("ichor.job.attempt", attempt);
            span.attribute(
                "ichor.job.goal",
                goal.map_or("hand-over".to_owned(), ToString::to_string),
            );
            let made = jobs.create(&parameters(), &job).await;
            if let Ok(job) = &made {
                span.attribute("k8s.job.uid", job.uid().unwrap_or_default());
            }
            let error = made.as_ref().err().map(|error| causes(error));
            context.tracer.end(&span, context.clock.now(), error.as_deref());
            match made {
                Ok(job) => uid = job.metadata.uid,
                // The watch will tell whose it is.
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(()),
                Err(error) => return Err(request("create the Job")(error)),
            }
        } else {
            let secrets: Api<Secret> = Api::namespaced(context.client.clone(), namespace);
            let parameters = PatchParams::apply(NAME).force();
            let secret = Patch::Apply(&object);
            secrets
                .patch(takeover::job::VALUES_SECRET, &parameters, &secret)
                .await
                .map_err(request("write the Secret with the values"))?;
        }
    }
    context.told.metrics.job_made();
    tracing::info!(cluster = cluster.name_any(), attempt, "the Job is made");
    let message = format!("Job {namespace}/{} is made, attempt {attempt}", takeover::job::NAME);
    let condition = goal.map_or(type_::CNI_HANDOVER, |_| type_::VALUES_APPLIED);
    let told = Told { condition, reason: "JobCreated", message, is_warning: false, job: uid };
    tell(cluster, &told, context).await;
    Ok(())
}

fn parameters() -> PostParams {
    PostParams { field_manager: Some(NAME.to_owned()), ..PostParams::default() }
}

fn made<T: serde::de::DeserializeOwned>(what: &'static str, object: Value) -> Result<T, Error> {
    serde_json::from_value(object).map_err(|source| Error::Object { what, source })
}

/// Writes the status where it changed; false when the object is not the one any more that it was
/// decided for.
async fn write_status(
    cluster: &TalosCluster,
    status: &TalosClusterStatus,
    context: &Context,
) -> Result<bool, Error> {
    if cluster.status.as_ref() == Some(status) {
        return Ok(true);
    }
    let clusters: Api<TalosCluster> = Api::all(context.client.clone());
    let body = json!({
        "apiVersion": TalosCluster::api_version(&()),
        "kind": TalosCluster::kind(&()),
        "metadata": {
            "name": cluster.name_any(),
            "uid": cluster.uid(),
            // A write that was long on its way does not undo what another controller wrote.
            "resourceVersion": cluster.resource_version(),
        },
        "status": status,
    });
    let parameters = PatchParams::apply(NAME).force();
    match clusters.patch_status(&cluster.name_any(), &parameters, &Patch::Apply(&body)).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => Ok(false),
        Err(error) => Err(request(
            "write the status (a field that is not declared says that the definition of TalosCluster is \
             older than this controller: apply charts/ichor/crds)",
        )(error)),
    }
}

/// Applies and deletes ichor's own network policies.
async fn write_policies(steps: &policies::Steps, context: &Context) -> Result<(), Error> {
    if steps.apply.is_empty() && steps.delete.is_empty() {
        return Ok(());
    }
    let (group, version) = policies::API.split_once('/').unwrap_or_default();
    let kind = GroupVersionKind::gvk(group, version, policies::KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, policies::PLURAL);
    let api: Api<DynamicObject> =
        Api::namespaced_with(context.client.clone(), cilium::pinned::RECORD_NAMESPACE, &resource);
    for object in &steps.apply {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        api.patch(name, &PatchParams::apply(NAME).force(), &Patch::Apply(object))
            .await
            .map_err(request("write ichor's network policy"))?;
        tracing::info!(name, "the network policy is written");
    }
    for name in &steps.delete {
        match api.delete(name, &DeleteParams::default()).await {
            Ok(_) => tracing::info!(name, "the network policy is deleted: it is switched off"),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(request("delete ichor's network policy")(error)),
        }
    }
    Ok(())
}

/// Tells it as an Event. One that cannot be written changes nothing: the condition says the same.
async fn tell(cluster: &TalosCluster, told: &Told, context: &Context) {
    let note = shortened(told.message.clone(), NOTE);
    let event = Event {
        type_: if told.is_warning { EventType::Warning } else { EventType::Normal },
        reason: told.reason.to_owned(),
        note: Some(note),
        action: if told.condition == type_::CNI_HANDOVER { "HandOver" } else { "Change" }
            .to_owned(),
        // Events about another Job are another one's, and not counted as one with these.
        secondary: told.job.clone().map(|uid| ObjectReference {
            api_version: Some("batch/v1".to_owned()),
            kind: Some("Job".to_owned()),
            namespace: Some(cilium::pinned::NAMESPACE.to_owned()),
            name: Some(takeover::job::NAME.to_owned()),
            uid: Some(uid),
            ..ObjectReference::default()
        }),
    };
    if let Err(error) = context.recorder.publish(&event, &cluster.object_ref(&())).await {
        tracing::warn!(error = %causes(&error), "an Event could not be written");
    }
}

fn count(cluster: &TalosCluster, decision: &Decision, context: &Context) {
    let Some(told) = &decision.event else { return };
    let (reason, message) = (told.reason, told.message.as_str());
    let condition = told.condition;
    tracing::info!(cluster = cluster.name_any(), condition, reason, message, "the cluster");
    if condition != type_::CNI_HANDOVER {
        context.told.metrics.change_ended(condition, reason);
        return;
    }
    context.told.metrics.attempt_ended(reason);
    if reason == reason::HANDED_OVER
        && let Some(created) = &cluster.metadata.creation_timestamp
    {
        let after = Duration::try_from(context.clock.now().duration_since(created.0));
        context.told.metrics.handed_over(after.unwrap_or_default());
    }
}
