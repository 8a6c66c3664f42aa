//! Running a release's hooks (`pkg/action/hooks.go`).
//!
//! ```text
//! hooks of the event, by weight and name
//!   each: delete an old one ─ create ─ wait ─┬─ done: the next one
//!                                            └─ failed: log, delete, and those before it
//!   all done, the last one first: log, delete
//! ```
//!
//! How far it got is in the record, which is written before each hook is created.

use std::sync::Arc;
use std::time::Duration;

use crate::apply::{
    BuildError, CompletionErrors, Item, WaitError, WriteErrors, Writer, build, wait_until_complete,
    wait_until_gone,
};
use crate::cluster::{ClusterError, Discovery, ListQuery, Propagation, Resource, Target, list_all};
use crate::error_chain;
use crate::manifest::HookEvent;
use crate::release::storage::Labels;
use crate::release::{FieldError, Hook, HookRun, Record};

use super::error::ActionError;
use super::session::{ReleaseOptions, Session};

/// Delete policies.
const BEFORE_CREATION: &str = "before-hook-creation";
const SUCCEEDED: &str = "hook-succeeded";
const FAILED: &str = "hook-failed";

/// Why hooks of an event ended the action. The texts down the chain, joined by `: `, are Helm's.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// The hook is no object that the cluster can take.
    #[error("unable to build kubernetes object for {event} hook {path}")]
    Build {
        /// The event.
        event: &'static str,
        /// The template.
        path: String,
        /// What is wrong.
        source: BuildError,
    },
    /// The same, when it is to be deleted.
    #[error("unable to build kubernetes object for deleting hook {path}")]
    BuildDeletion {
        /// The template.
        path: String,
        /// What is wrong.
        source: BuildError,
    },
    /// It cannot be deleted.
    #[error("{}", texts(errors))]
    Delete {
        /// The server's errors.
        errors: Vec<ClusterError>,
    },
    /// It does not go away.
    #[error(transparent)]
    Gone(WaitError),
    /// It cannot be created.
    #[error("warning: Hook {event} {path} failed")]
    Create {
        /// The event.
        event: &'static str,
        /// The template.
        path: String,
        /// The server's errors.
        source: WriteErrors,
    },
    /// It is a list without objects.
    #[error("warning: Hook {event} {path} failed: no objects visited")]
    Empty {
        /// The event.
        event: &'static str,
        /// The template.
        path: String,
    },
    /// It did not do its work.
    #[error(transparent)]
    Failed(CompletionErrors),
    /// The record's hooks cannot be read.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The end was asked for.
    #[error("context canceled")]
    Cancelled,
}

fn texts(errors: &[ClusterError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// How hooks are run.
#[derive(Clone, Copy)]
pub(super) struct Hooks<'a> {
    pub(super) session: &'a Session<'a>,
    /// The release, name and namespace.
    pub(super) release: (&'a str, &'a str),
    /// Where objects go that name no namespace.
    pub(super) namespace: &'a str,
    /// How long one hook may take.
    pub(super) timeout: Duration,
    /// Objects of other releases are deleted too.
    pub(super) helm_compat: bool,
}

impl<'a> Hooks<'a> {
    /// Hooks of an installation or upgrade; none when they are not to run.
    pub(super) fn of(
        session: &'a Session<'a>,
        options: &'a ReleaseOptions,
        namespace: &'a str,
    ) -> Option<Self> {
        (!options.no_hooks).then_some(Self {
            session,
            release: (&options.name, namespace),
            namespace: &options.namespace,
            timeout: options.timeout,
            helm_compat: options.helm_compat,
        })
    }

    /// [`Self::run`], with what Helm puts before the error, where it does.
    pub(super) async fn run_for(
        &self,
        record: &mut Record,
        labels: &Labels,
        event: HookEvent,
        when: &'static str,
    ) -> Result<(), ActionError> {
        self.run(record, labels, event).await.map_err(|error| match error {
            HookError::Cancelled => ActionError::Wait(WaitError::Cancelled),
            source if when.is_empty() => ActionError::Hook(Box::new(source)),
            source => ActionError::HookFailed { when, source: Box::new(source) },
        })
    }

    /// Runs the hooks of an event (`execHook`). The record tells what became of them; it is stored
    /// before each is created, and not afterwards.
    pub(super) async fn run(
        &self,
        record: &mut Record,
        labels: &Labels,
        event: HookEvent,
    ) -> Result<(), HookError> {
        self.run_some(record, labels, event, |_| true).await
    }

    /// [`Self::run`] of those hooks alone that are wanted.
    pub(super) async fn run_some(
        &self,
        record: &mut Record,
        labels: &Labels,
        event: HookEvent,
        is_wanted: impl Fn(&Hook) -> bool,
    ) -> Result<(), HookError> {
        let event = event.as_str();
        let hooks = record.hooks()?;
        let told: Vec<Vec<String>> =
            hooks.iter().map(|hook| hook.delete_policies.clone()).collect();
        let hooks = executing(hooks, event, is_wanted);
        for (place, (index, hook)) in hooks.iter().enumerate() {
            // Before anything can fail: Helm records the policy it went by.
            if hook.delete_policies != told.get(*index).cloned().unwrap_or_default() {
                record.set_hook_policies(*index, &hook.delete_policies)?;
            }
            self.delete_by_policy(hook, BEFORE_CREATION).await?;
            let items = self
                .items(&hook.manifest, true)
                .await
                .map_err(|source| HookError::Build { event, path: hook.path.clone(), source })?;
            let mut run = HookRun {
                started_at: self.session.now(),
                completed_at: String::new(),
                phase: "Running".to_owned(),
            };
            record.set_hook_run(*index, &run)?;
            self.store(record, labels).await;
            "Unknown".clone_into(&mut run.phase);
            record.set_hook_run(*index, &run)?;

            let result = self.create(&items, event, hook).await;
            let result = match result {
                Ok(()) => self.wait(&items).await,
                Err(error) => {
                    self.end(record, *index, &mut run, "Failed")?;
                    return Err(error);
                }
            };
            match result {
                Ok(()) => self.end(record, *index, &mut run, "Succeeded")?,
                // As it is: nobody knows what becomes of the hook.
                Err(HookError::Cancelled) => return Err(HookError::Cancelled),
                Err(error) => {
                    self.end(record, *index, &mut run, "Failed")?;
                    self.clean_up_after_failure(&hooks, place).await?;
                    return Err(error);
                }
            }
        }
        for (_, hook) in hooks.iter().rev() {
            self.print_log(hook, SUCCEEDED).await;
            self.delete_by_policy(hook, SUCCEEDED).await?;
        }
        Ok(())
    }

    fn end(
        &self,
        record: &mut Record,
        index: usize,
        run: &mut HookRun,
        phase: &str,
    ) -> Result<(), FieldError> {
        run.completed_at = self.session.now();
        phase.clone_into(&mut run.phase);
        record.set_hook_run(index, run)
    }

    /// The failed hook's log and end, and the end of those that had succeeded.
    async fn clean_up_after_failure(
        &self,
        hooks: &[(usize, Hook)],
        failed: usize,
    ) -> Result<(), HookError> {
        if let Some((_, hook)) = hooks.get(failed) {
            self.print_log(hook, FAILED).await;
            if let Err(error) = self.delete_by_policy(hook, FAILED).await {
                self.session.log(format!(
                    "WARNING: error deleting the hook resource on hook failure: {}",
                    error_chain(&error)
                ));
            }
        }
        for (_, hook) in hooks.iter().take(failed) {
            self.delete_by_policy(hook, SUCCEEDED).await?;
        }
        Ok(())
    }

    /// Writes how far it got; a failure is told and no more (`recordRelease`).
    async fn store(&self, record: &Record, labels: &Labels) {
        if let Err(error) = self.session.storage().update(record, labels).await {
            self.session.log(format!(
                "warning: Failed to update release {}: {}",
                self.release.0,
                error_chain(&error)
            ));
        }
    }

    /// The objects of a hook. What the chart brings may be served since.
    async fn items(&self, manifest: &str, validate: bool) -> Result<Vec<Item>, BuildError> {
        let refused = |error: ClusterError| BuildError::Parse(error.to_string());
        let make = |discovery: Arc<Discovery>| {
            build(&discovery, manifest.as_bytes(), self.namespace, validate)
        };
        let cluster = &self.session.cluster;
        match make(cluster.discovery(false).await.map_err(refused)?) {
            Ok(items) => Ok(items),
            Err(_) => make(cluster.discovery(true).await.map_err(refused)?),
        }
    }

    async fn create(
        &self,
        items: &[Item],
        event: &'static str,
        hook: &Hook,
    ) -> Result<(), HookError> {
        if items.is_empty() {
            return Err(HookError::Empty { event, path: hook.path.clone() });
        }
        match self.writer().create(items).await {
            Ok(()) => Ok(()),
            Err(errors) if errors.cancelled => Err(HookError::Cancelled),
            Err(source) => Err(HookError::Create { event, path: hook.path.clone(), source }),
        }
    }

    async fn wait(&self, items: &[Item]) -> Result<(), HookError> {
        let Session { cluster, clock, observer, cancel, .. } = self.session;
        match wait_until_complete(&**cluster, *clock, items, self.timeout, *observer, cancel).await
        {
            Ok(()) => Ok(()),
            Err(errors) if errors.is_cancelled() => Err(HookError::Cancelled),
            Err(errors) => Err(HookError::Failed(errors)),
        }
    }

    fn writer(&self) -> Writer<'_> {
        self.session.writer_of(self.release.0, self.release.1, self.helm_compat)
    }

    /// `deleteHookByPolicy`
    async fn delete_by_policy(&self, hook: &Hook, policy: &str) -> Result<(), HookError> {
        let is_told = hook.delete_policies.iter().any(|told| told == policy);
        // Deleting a definition deletes all objects of its kind.
        if !is_told || hook.kind == "CustomResourceDefinition" {
            return Ok(());
        }
        let items = self
            .items(&hook.manifest, false)
            .await
            .map_err(|source| HookError::BuildDeletion { path: hook.path.clone(), source })?;
        let removed = match self.writer().delete(&items, Propagation::Background).await {
            Ok(removed) => removed,
            Err(errors) if errors.cancelled => return Err(HookError::Cancelled),
            Err(errors) => return Err(HookError::Delete { errors: errors.errors }),
        };
        let Session { cluster, clock, observer, cancel, .. } = self.session;
        let timeout = self.timeout;
        wait_until_gone(&**cluster, *clock, &removed.deleted, timeout, *observer, cancel)
            .await
            .map_err(|error| match error {
                WaitError::Cancelled => HookError::Cancelled,
                error => HookError::Gone(error),
            })
    }

    /// Shows the logs of a hook's containers, if it wants that; what fails is told
    /// (`outputLogsByPolicy`).
    async fn print_log(&self, hook: &Hook, policy: &str) {
        if !hook.output_log_policies.iter().any(|told| told == policy) {
            return;
        }
        if let Err(error) = self.logs(hook).await {
            self.session.log(format!("WARNING: error outputting logs for hook failure: {error}"));
        }
    }

    async fn logs(&self, hook: &Hook) -> Result<(), String> {
        let mut query = ListQuery { namespace: self.namespace_of(hook), ..ListQuery::default() };
        match hook.kind.as_str() {
            "Job" => query.labels = format!("job-name={}", hook.name),
            "Pod" => query.fields = format!("metadata.name={}", hook.name),
            _ => return Ok(()),
        }
        let pods = Arc::new(Resource::builtin("v1", "Pod", "pods", true));
        let cluster = &*self.session.cluster;
        let page = list_all(cluster, &pods, &query)
            .await
            .map_err(|error| format!("failed to get pod list: {error}"))?;
        for pod in &page.items {
            let text = |value: &serde_json::Value, path: &str| {
                value
                    .pointer(path)
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let name = text(pod, "/metadata/name");
            let target = Target::new(&pods, &query.namespace, &name);
            let containers = pod.pointer("/spec/containers").and_then(serde_json::Value::as_array);
            for container in containers.into_iter().flatten() {
                let container = text(container, "/name");
                let log = cluster.logs(&target, &container).await.map_err(|error| {
                    format!(
                        "Failed to stream pod logs for pod: {name}, container: {container}: {error}"
                    )
                })?;
                self.session.observer.output(&log);
            }
        }
        Ok(())
    }

    /// Where a hook's pods are (`deriveNamespace`).
    fn namespace_of(&self, hook: &Hook) -> String {
        let limits = goyaml::Limits::default();
        goyaml::from_yaml_exact(hook.manifest.as_bytes(), &limits)
            .ok()
            .and_then(|value| goyaml::json::to_json(&value).ok())
            .and_then(|json| serde_json::from_str::<serde_json::Value>(&json).ok())
            .and_then(|value| Some(value.pointer("/metadata/namespace")?.as_str()?.to_owned()))
            .filter(|namespace| !namespace.is_empty())
            .unwrap_or_else(|| self.release.1.to_owned())
    }
}

/// The hooks of an event in the order in which they run, each with its place in the record. A hook
/// that names the event twice runs twice.
fn executing(
    hooks: Vec<Hook>,
    event: &str,
    is_wanted: impl Fn(&Hook) -> bool,
) -> Vec<(usize, Hook)> {
    let mut chosen = Vec::new();
    for (index, mut hook) in hooks.into_iter().enumerate() {
        let count = hook.events.iter().filter(|told| *told == event).count();
        if count == 0 || !is_wanted(&hook) {
            continue;
        }
        if hook.delete_policies.is_empty() {
            hook.delete_policies.push(BEFORE_CREATION.to_owned());
        }
        for _ in 0..count {
            chosen.push((index, hook.clone()));
        }
    }
    chosen
        .sort_by(|(_, one), (_, other)| (one.weight, &one.name).cmp(&(other.weight, &other.name)));
    chosen
}

#[cfg(test)]
mod tests {
    use super::{Hook, executing};

    #[test]
    fn hooks_run_by_weight_then_name_as_often_as_they_say() {
        let hook = |name: &str, weight, events: &[&str], policies: &[&str]| Hook {
            name: name.to_owned(),
            weight,
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            delete_policies: policies.iter().map(|policy| (*policy).to_owned()).collect(),
            ..Hook::default()
        };
        let hooks = vec![
            hook("z", 0, &["test"], &["hook-failed"]),
            hook("other", 0, &["pre-install"], &[]),
            hook("b", -1, &["test", "test"], &[]),
            hook("a", 0, &["test"], &[]),
            hook("unwanted", -9, &["test"], &[]),
        ];
        let chosen = executing(hooks, "test", |hook| hook.name != "unwanted");
        let order: Vec<(usize, &str)> =
            chosen.iter().map(|(place, hook)| (*place, hook.name.as_str())).collect();
        assert_eq!(order, [(2, "b"), (2, "b"), (3, "a"), (0, "z")]);
        let policies: Vec<&str> =
            chosen.iter().map(|(_, hook)| hook.delete_policies[0].as_str()).collect();
        let before = "before-hook-creation";
        assert_eq!(policies, [before, before, before, "hook-failed"]);
    }
}
