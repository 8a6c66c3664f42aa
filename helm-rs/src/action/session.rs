//! What actions on releases work with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::apply::{Cancel, Item, Method, Observer, WaitOptions, Writer, wait};
use crate::capabilities::{Capabilities, KubeVersion};
use crate::cluster::{Clock, Cluster, Discovery};
use crate::release::storage::{Driver, Labels, Storage};
use crate::render::Engine;
use crate::render::time::{Time, Zone};

use super::error::ActionError;
use super::method::MethodOptions;

/// A cluster, the records, and the world around (`action.Configuration`).
#[derive(Clone)]
pub struct Session<'a> {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// Where records are kept.
    pub driver: &'a dyn Driver,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The time zone in which records hold times.
    pub zone: Zone,
    /// Who hears what is going on.
    pub observer: &'a dyn Observer,
    /// Asks for the end.
    pub cancel: &'a Cancel,
    /// What renders charts.
    pub engine: &'a Engine,
    /// How objects are written; each action finds it out for itself.
    pub method: Method,
}

/// Whether to act, or only to say what an action would make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// Act.
    #[default]
    No,
    /// Render, without `lookup`.
    Client,
    /// Render, with `lookup`.
    Server,
}

/// What an installation and an upgrade have in common.
#[derive(Clone, Debug)]
pub struct ReleaseOptions {
    /// The release's name.
    pub name: String,
    /// The namespace that objects without one go to.
    pub namespace: String,
    /// A description for the record in place of Helm's.
    pub description: String,
    /// The user's labels for the record.
    pub labels: Labels,
    /// Whether to act.
    pub dry_run: DryRun,
    /// Leave the contents of Secrets out of a dry run's result.
    pub hide_secret: bool,
    /// Wait until all is ready, for so long.
    pub wait: bool,
    /// Wait for Jobs too.
    pub wait_for_jobs: bool,
    /// How long to wait.
    pub timeout: Duration,
    /// Take objects that are not this release's.
    pub take_ownership: bool,
    /// Do not check what Helm's OpenAPI validation checks.
    pub disable_validation: bool,
    /// Do not run hooks.
    pub no_hooks: bool,
    /// Do not hold values against the chart's schema.
    pub skip_schema_validation: bool,
    /// Subcharts' notes are part of the notes.
    pub subchart_notes: bool,
    /// Undo the action when it fails; waiting is part of it.
    pub atomic: bool,
    /// Delete what a failed upgrade created.
    pub cleanup_on_fail: bool,
    /// How objects are written.
    pub method: MethodOptions,
    /// Delete the pods of what an upgrade changed.
    pub recreate_pods: bool,
    /// What changes the manifest before it is used.
    pub post_renderer: Option<Arc<dyn PostRenderer>>,
    /// Delete objects of other releases too, as Helm does.
    pub helm_compat: bool,
}

/// Changes a rendered manifest (`pkg/postrender/postrender.go`).
pub trait PostRenderer: fmt::Debug + Send + Sync {
    /// The manifest to take instead.
    ///
    /// # Errors
    /// Why there is none, in Helm's words.
    fn run(&self, manifest: &[u8]) -> Result<Vec<u8>, String>;
}

impl Default for ReleaseOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            namespace: "default".to_owned(),
            description: String::new(),
            labels: Labels::new(),
            dry_run: DryRun::No,
            hide_secret: false,
            wait: false,
            wait_for_jobs: false,
            timeout: Duration::from_mins(5),
            take_ownership: false,
            disable_validation: false,
            no_hooks: false,
            skip_schema_validation: false,
            subchart_notes: false,
            atomic: false,
            cleanup_on_fail: false,
            method: MethodOptions::default(),
            recreate_pods: false,
            post_renderer: None,
            helm_compat: false,
        }
    }
}

impl Session<'_> {
    /// The records.
    pub fn storage(&self) -> Storage<'_> {
        Storage::new(self.driver)
    }

    pub(super) fn log(&self, line: impl AsRef<str>) {
        self.observer.log(line.as_ref());
    }

    pub(super) fn writer(&self) -> Writer<'_> {
        Writer {
            cluster: &*self.cluster,
            observer: self.observer,
            cancel: self.cancel,
            owner: None,
            method: self.method,
        }
    }

    /// A writer that deletes nothing of another release, unless Helm's behaviour is asked for.
    pub(super) fn writer_of<'w>(
        &'w self,
        name: &'w str,
        namespace: &'w str,
        helm_compat: bool,
    ) -> Writer<'w> {
        Writer { owner: (!helm_compat).then_some((name, namespace)), ..self.writer() }
    }

    /// The present moment as records hold it.
    pub(super) fn now(&self) -> String {
        let now = self.clock.now();
        let nanoseconds = u32::try_from(now.subsec_nanosecond()).unwrap_or_default();
        Time::unix(now.as_second(), nanoseconds, self.zone.clone())
            .to_rfc3339()
            .unwrap_or_else(|_| now.to_string())
    }

    /// `IsReachable`
    ///
    /// # Errors
    /// [`ActionError::Unreachable`]
    pub async fn reach(&self) -> Result<KubeVersion, ActionError> {
        let version = self.cluster.server_version().await.map_err(ActionError::Unreachable)?;
        Ok(KubeVersion { version: version.git_version, major: version.major, minor: version.minor })
    }

    /// What the server serves; an API group that is down is a warning.
    ///
    /// # Errors
    /// [`ActionError::Discovery`]
    pub async fn discover(&self, refresh: bool) -> Result<Arc<Discovery>, ActionError> {
        let discovery = self.cluster.discovery(refresh).await.map_err(ActionError::Discovery)?;
        let down = discovery.failure_text();
        if !down.is_empty() {
            self.log(format!(
                "WARNING: The Kubernetes server has an orphaned API service. Server reports: {down}"
            ));
        }
        Ok(discovery)
    }

    /// What templates see of the cluster (`getCapabilities`).
    pub fn capabilities(version: KubeVersion, discovery: &Discovery) -> Capabilities {
        Capabilities {
            kube_version: version,
            api_versions: discovery.api_versions(),
            ..Capabilities::default()
        }
    }

    pub(super) async fn wait(
        &self,
        items: &[Item],
        options: &ReleaseOptions,
    ) -> Result<(), ActionError> {
        if !options.wait && !options.atomic {
            return Ok(());
        }
        let wanted = WaitOptions { timeout: options.timeout, jobs: options.wait_for_jobs };
        wait(&*self.cluster, self.clock, items, wanted, self.observer, self.cancel).await?;
        Ok(())
    }
}
