//! What the commands on the running Cilium share: flags, chart, plan, takeover.

use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cilium::kube_proxy::Replacement;
use cilium::pinned::Pinned;
use clap::Args;
use goyaml::{Limits, Map};
use helm_rs::action::Session;
use helm_rs::cluster::snapshot::Secrets;
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use takeover::access::Purpose;
use takeover::change;
use takeover::plan::{
    DryRuns, KubePrism, PlanError, Prepared, RehearsalAbout, Request, WhoWrites, prepare,
};
use takeover::run::{Done, LeftOver, Run, RunError, left_over, take_over};

use super::file;
use super::place::PlaceFlags;
use super::trouble::{reading_error, server_error};
use crate::commands::Context;
use crate::environment::Environment;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::session::{Heard, Host};

/// Bytes that a values file may have.
const MAX_VALUES: usize = 16 * 1024 * 1024;

/// What decides on a plan.
#[derive(Debug, Default, Args)]
pub(crate) struct PlanFlags {
    /// Values for the chart, when no release record has them
    #[arg(long, value_name = "FILE")]
    cilium_values: Option<String>,
    /// Write the values that were recovered from what runs to this file, for --cilium-values
    #[arg(long, value_name = "FILE", conflicts_with = "cilium_values")]
    save_recovered_values: Option<String>,
    /// Leave a CNI that is not Cilium alone
    #[arg(long)]
    pub(crate) cni_unmanaged: bool,
    /// Whose rights are checked.
    #[arg(skip)]
    pub(crate) who_writes: WhoWrites,
    /// What is known of KubePrism on this node.
    #[arg(skip)]
    pub(crate) kube_prism: KubePrism,
    /// What is changed of ichor's own release; none to take over.
    #[arg(skip)]
    pub(crate) change: Option<Change>,
    /// Whether a cluster is looked at whoever looks after its CNI.
    #[arg(skip)]
    pub(crate) whoever: bool,
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
}

/// A change of ichor's own release, beside its values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    /// Whether the release is brought to the pinned chart.
    pub(crate) upgrade: bool,
    /// Who is to answer for Services; none: as it is.
    pub(crate) kube_proxy: Option<Replacement>,
}

/// What changes ichor's own release, on the command line.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Change of ichor's own release")]
pub(crate) struct ChangeFlags {
    /// Bring the release to the pinned chart
    #[arg(long)]
    upgrade: bool,
    /// Who is to answer for Services [default: as it is]
    #[arg(long, value_enum, value_name = "STATE")]
    kube_proxy: Option<KubeProxy>,
}

/// Who answers for Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KubeProxy {
    /// kube-proxy
    Enabled,
    /// Cilium
    Replaced,
}

impl ChangeFlags {
    /// The change.
    pub(crate) fn change(self) -> Change {
        let replacement = |state| match state {
            KubeProxy::Enabled => Replacement::Off,
            KubeProxy::Replaced => Replacement::On,
        };
        Change { upgrade: self.upgrade, kube_proxy: self.kube_proxy.map(replacement) }
    }

    /// A flag of these that was given.
    pub(crate) const fn given(self) -> Option<&'static str> {
        if self.upgrade {
            return Some("--upgrade");
        }
        if self.kube_proxy.is_some() { Some("--kube-proxy") } else { None }
    }
}

/// What a takeover may do.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Consent")]
pub(crate) struct ConsentFlags {
    /// Accept what the gate found: the digest of the plan that was shown
    #[arg(
        long,
        value_name = "DIGEST",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = SHOWN,
        value_parser = consent_digest
    )]
    pub(crate) accept_cilium_diff: Option<String>,
    /// Accept changes of owned keys on the running data plane
    #[arg(long)]
    pub(crate) accept_cilium_changes: bool,
    /// How long the rollout may take
    #[arg(long, value_name = "DURATION", default_value = "10m0s")]
    timeout: String,
}

impl ConsentFlags {
    /// How long the rollout may take, as it was said.
    pub(crate) fn timeout_text(&self) -> &str {
        &self.timeout
    }

    /// How long the rollout may take.
    ///
    /// # Errors
    /// It is no time, or none that anything could be waited for.
    pub(crate) fn timeout(&self) -> Result<Duration, CommandError> {
        let parsed = helm_rs::render::time::Duration::parse(&self.timeout)
            .map_err(|error| CommandError::new(format_args!("--timeout: {error}")))?;
        match u64::try_from(parsed.0) {
            Ok(nanoseconds @ 1..) => Ok(Duration::from_nanos(nanoseconds)),
            _ => Err(CommandError::new(format_args!(
                "--timeout: {} is no time to wait for a rollout: everything would be written, and \
                 then fail",
                self.timeout
            ))),
        }
    }

    /// The digest that was consented to; none when the consent names none.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.accept_cilium_diff.as_deref().filter(|given| *given != SHOWN)
    }

    /// Consents to all that a plan which is named elsewhere says.
    #[cfg(feature = "network")]
    pub(crate) fn accept(&mut self) {
        self.accept_cilium_changes = true;
        self.accept_cilium_diff.get_or_insert_with(|| SHOWN.to_owned());
    }
}

/// The consent without a digest: to the plan that was just shown.
const SHOWN: &str = "shown";

/// A digest after the equals sign. None there is a variable that is not set, and no consent.
fn consent_digest(given: &str) -> Result<String, String> {
    if given.is_empty() {
        return Err("there is no digest after the equals sign".to_owned());
    }
    Ok(given.to_owned())
}

/// What plans are made with.
pub(crate) struct Work {
    engine: Engine,
    pinned: Pinned,
    values: Option<Map>,
    /// Values that the plan recovered, so that they are not searched again.
    recovered: OnceCell<Map>,
    /// What the server answered to the first plan, for the one under the lock.
    dry_runs: DryRuns,
    /// The cluster, which one command opens once.
    host: OnceCell<Host>,
    entropy: [u8; 32],
    holder: String,
}

impl Work {
    /// The operator's values; none when there are none.
    pub(crate) fn values(&self) -> Option<&Map> {
        self.values.as_ref()
    }

    /// The version of the chart.
    #[cfg(feature = "controller")]
    pub(crate) fn version(&self) -> &str {
        &self.pinned.chart.metadata.version
    }

    /// The values that a change asks for.
    #[cfg(feature = "controller")]
    pub(crate) fn ask_for(&mut self, values: Map) {
        self.values = Some(values);
    }

    /// Leaves the keys that ichor decides out of the operator's values: where a TalosCluster has
    /// them, they may not be there. Returns their names.
    #[cfg(feature = "controller")]
    pub(crate) fn without_owned(&mut self) -> Vec<String> {
        let stripped = self.values.as_mut().map(cilium::owned::strip).unwrap_or_default();
        stripped.into_iter().map(|one| one.key).collect()
    }

    /// What another process would begin with: the same inputs on the same cluster, another name in
    /// the lock, and nothing learned.
    pub(super) fn begin_anew(&mut self, environment: &Environment) -> Result<(), CommandError> {
        self.recovered = OnceCell::new();
        self.dry_runs = DryRuns::default();
        self.holder = holder(environment)?;
        Ok(())
    }

    /// The same work on another copy of its cluster, with the same entropy.
    pub(super) fn twin(&self, environment: &Environment) -> Result<Self, CommandError> {
        Ok(Self {
            engine: Engine::new(EngineOptions::default()),
            pinned: self.pinned.clone(),
            values: self.values.clone(),
            recovered: OnceCell::new(),
            dry_runs: DryRuns::default(),
            host: OnceCell::new(),
            entropy: self.entropy,
            holder: holder(environment)?,
        })
    }
}

/// The flags of the cluster as commands on its Cilium have them: the kubeconfig matters, and there
/// is no release's namespace to choose.
pub(crate) fn of_cluster(command: clap::Command) -> clap::Command {
    command.mut_subcommands(of_cluster).mut_args(|flag| match flag.get_id().as_str() {
        "kubeconfig" => flag
            .help("Kubeconfig file [default: $KUBECONFIG, else ~/.kube/config]")
            .hide_short_help(false),
        "kube_context" => {
            flag.help("Context in the kubeconfig [default: its current one]").hide_short_help(false)
        }
        "namespace" => flag.hide(true).value_parser(no_namespace),
        _ => flag,
    })
}

fn no_namespace(_: &str) -> Result<String, String> {
    Err("Cilium is looked for in kube-system, and ichor's records are in ichor-system".to_owned())
}

/// What a run is called in the lock: another name each time, also of one process after the other.
pub(crate) fn holder(environment: &Environment) -> Result<String, CommandError> {
    let run = u32::from_be_bytes(random()?);
    let host = environment.text("HOSTNAME").unwrap_or("ichor");
    Ok(format!("{host}-{}-{run:08x}", std::process::id()))
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], CommandError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| CommandError::new(format_args!("no randomness: {error}")))?;
    Ok(bytes)
}

/// Looks at the cluster, and renders nothing.
pub(crate) fn session<T>(
    place: &PlaceFlags,
    context: &mut Context<'_>,
    action: impl AsyncFnOnce(&Session<'_>) -> T,
) -> Result<T, CommandError> {
    let engine = Engine::new(EngineOptions::default());
    place.open(context)?.look(context, &engine, action).map(|(result, _)| result)
}

impl PlanFlags {
    /// A plan of a cluster, with nothing else decided.
    pub(crate) fn of(place: PlaceFlags) -> Self {
        Self { place, ..Self::default() }
    }

    /// The cluster.
    pub(crate) fn host<'w>(
        &self,
        work: &'w Work,
        context: &mut Context<'_>,
    ) -> Result<&'w Host, CommandError> {
        if let Some(host) = work.host.get() {
            return Ok(host);
        }
        let host =
            if self.whoever { self.place.open_any(context)? } else { self.place.open(context)? };
        Ok(work.host.get_or_init(|| host))
    }

    /// What is said of a rehearsal; none on a live cluster.
    pub(super) fn rehearsal(
        &self,
        work: &Work,
        context: &mut Context<'_>,
    ) -> Result<Option<RehearsalAbout>, CommandError> {
        Ok(self.place.with_chart(self.host(work, context)?, &work.pinned))
    }

    /// Looks at the cluster: a signal ends the program at once.
    pub(crate) fn look<T>(
        &self,
        work: &Work,
        context: &mut Context<'_>,
        action: impl AsyncFnOnce(&Session<'_>) -> T,
    ) -> Result<T, CommandError> {
        let looked = self.host(work, context)?.look(context, &work.engine, action);
        looked.map(|(result, _)| result)
    }

    /// Writes to the cluster, or waits for what becomes of it: the first signal asks for the end, so
    /// that what was begun is told.
    ///
    /// # Errors
    /// The end was asked for before it could begin.
    pub(crate) fn session<T>(
        &self,
        work: &Work,
        context: &mut Context<'_>,
        action: impl AsyncFnOnce(&Session<'_>) -> T,
    ) -> Result<T, CommandError> {
        let host = self.host(work, context)?;
        host.go_on()?;
        host.run(context, &work.engine, action).map(|(result, _)| result)
    }

    /// A takeover that was begun and is not complete.
    pub(crate) fn left_over(
        &self,
        work: &Work,
        context: &mut Context<'_>,
    ) -> Result<Option<LeftOver>, CommandError> {
        let found = self.look(work, context, async |session| {
            left_over(&*session.cluster, session.clock).await
        })?;
        let found = found.map_err(|error| {
            let mut told = reading_error(&error, self.purpose(), &self.place, context);
            if error.is_refusal() {
                told.exit = Exit::No;
            }
            told
        })?;
        let Some(mut left) = found else { return Ok(None) };
        left.plan.rehearsal = self.rehearsal(work, context)?;
        Ok(Some(left))
    }

    /// Files of these flags, each with its flag.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        [
            ("--cilium-values", &self.cilium_values),
            ("--save-recovered-values", &self.save_recovered_values),
        ]
        .into_iter()
        .filter_map(|(flag, file)| Some((flag, Path::new(file.as_deref()?))))
    }

    /// Whether what is to be written can be.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_files(&self) -> Result<(), CommandError> {
        let Some(path) = self.save_recovered_values.as_deref() else { return Ok(()) };
        file::check(Path::new(path))
            .map_err(|why| CommandError::new(format_args!("--save-recovered-values {path}: {why}")))
    }

    /// Finds chart and values.
    pub(crate) fn work(&self, context: &mut Context<'_>) -> Result<Work, CommandError> {
        let values = self.values()?;
        let pinned = self.place.pinned(context)?;
        let engine = Engine::new(EngineOptions::default());
        let (entropy, holder) = (random()?, holder(context.environment)?);
        Ok(Work {
            engine,
            pinned,
            values,
            recovered: OnceCell::new(),
            dry_runs: DryRuns::default(),
            host: OnceCell::new(),
            entropy,
            holder,
        })
    }

    fn values(&self) -> Result<Option<Map>, CommandError> {
        let Some(path) = self.cilium_values.as_deref() else { return Ok(None) };
        let fail =
            |error: String| CommandError::new(format_args!("--cilium-values {path}: {error}"));
        let text = fs::read(path).map_err(|error| fail(helm_rs::gotext::io_text(&error)))?;
        if text.len() > MAX_VALUES {
            return Err(fail(format!("more than {MAX_VALUES} bytes")));
        }
        goyaml::from_yaml_map(&text, "chartutil.Values", &Limits::default())
            .map(Some)
            .map_err(|error| fail(error_chain(&error)))
    }

    const fn purpose(&self) -> Purpose {
        Purpose::Plan { values_given: self.cilium_values.is_some() }
    }

    /// A plan's error as the command's: rights that are missing for reading are a refusal.
    pub(super) fn plan_error(&self, error: &PlanError, context: &mut Context<'_>) -> CommandError {
        if matches!(error, PlanError::Rights(_)) {
            return no(
                error_chain(error),
                "have the rules granted, or name another identity (--kubeconfig, --context)",
            );
        }
        reading_error(error, self.purpose(), &self.place, context)
    }

    fn request<'a>(&self, work: &'a Work, session: &Session<'a>) -> Request<'a> {
        Request {
            cluster: Arc::clone(&session.cluster),
            clock: session.clock,
            engine: &work.engine,
            pinned: &work.pinned,
            values: work.values.as_ref().or_else(|| work.recovered.get()),
            cni_unmanaged: self.cni_unmanaged,
            who_writes: self.who_writes.clone(),
            entropy: work.entropy,
            kube_prism: self.kube_prism.clone(),
            dry_runs: Some(&work.dry_runs),
        }
    }

    pub(super) fn change_request<'a>(
        &self,
        change: Change,
        work: &'a Work,
        session: &Session<'a>,
    ) -> change::Request<'a> {
        change::Request {
            cluster: Arc::clone(&session.cluster),
            clock: session.clock,
            engine: &work.engine,
            pinned: &work.pinned,
            values: work.values.as_ref(),
            upgrade: change.upgrade,
            kube_proxy: change.kube_proxy,
            who_writes: self.who_writes.clone(),
            entropy: work.entropy,
            dry_runs: Some(&work.dry_runs),
        }
    }

    /// Makes a plan.
    pub(crate) fn plan(
        &self,
        work: &Work,
        context: &mut Context<'_>,
    ) -> Result<Prepared, CommandError> {
        let result = self.look(work, context, async |session| match self.change {
            Some(change) => change::prepare(&self.change_request(change, work, session)).await,
            None => prepare(&self.request(work, session)).await,
        })?;
        let mut prepared = result.map_err(|error| {
            let told = self.plan_error(&error, context);
            let stage = work.host.get().and_then(Host::as_stage);
            let by_digest = stage.is_some_and(|stage| stage.about.secrets == Secrets::Digests);
            match error {
                PlanError::Rendered(_) if by_digest => told.hint(
                    "the snapshot holds credentials as digests, which the chart may need: take one \
                     with --include-secrets",
                ),
                _ => told,
            }
        })?;
        prepared.plan.rehearsal = self.rehearsal(work, context)?;
        self.save_recovered(work, &prepared)?;
        if let Some(values) = &prepared.recovered {
            // A second plan has them from the first.
            drop(work.recovered.set(values.clone()));
        }
        Ok(prepared)
    }

    fn save_recovered(&self, work: &Work, prepared: &Prepared) -> Result<(), CommandError> {
        let Some(path) = self.save_recovered_values.as_deref() else { return Ok(()) };
        let fail = |error: String| {
            CommandError::new(format_args!("--save-recovered-values {path}: {error}"))
        };
        let Some(values) = &prepared.recovered else {
            // The plan after a takeover has its values from the record.
            if work.recovered.get().is_some() || prepared.plan.is_refused() {
                return Ok(());
            }
            let source = &prepared.plan.values.source;
            return Err(fail(format!("there is nothing to save, the values come from {source}")));
        };
        let text = goyaml::to_yaml(&goyaml::Value::Map(values.clone()))
            .map_err(|error| fail(error.to_string()))?;
        file::write(Path::new(path), text.as_bytes()).map_err(fail)
    }

    /// Carries a plan out.
    pub(crate) fn carry_out(
        &self,
        work: &Work,
        consent: &ConsentFlags,
        digest: Option<String>,
        context: &mut Context<'_>,
    ) -> Result<(Result<Done, RunError>, Heard), CommandError> {
        let timeout = consent.timeout()?;
        self.host(work, context)?.run(context, &work.engine, async |session| {
            if let Some(change) = self.change {
                let request = self.change_request(change, work, session);
                take_over(&run(request, work, consent, digest, session, timeout)).await
            } else {
                let request = self.request(work, session);
                take_over(&run(request, work, consent, digest, session, timeout)).await
            }
        })
    }
}

fn run<'a, S>(
    request: S,
    work: &Work,
    consent: &ConsentFlags,
    digest: Option<String>,
    session: &Session<'a>,
    timeout: Duration,
) -> Run<'a, S> {
    Run {
        request,
        digest,
        accept_changes: consent.accept_cilium_changes,
        accept_diff: consent.accept_cilium_diff.is_some(),
        holder: work.holder.clone(),
        observer: session.observer,
        cancel: session.cancel,
        timeout,
    }
}

/// The answer no: what it is about, and what to do instead.
pub(crate) fn no(message: impl std::fmt::Display, hint: impl Into<String>) -> CommandError {
    let mut error = CommandError::new(message).hint(hint);
    error.exit = Exit::No;
    error
}

/// A takeover's error as the command's. `heard` tells what a rollout waited for last.
pub(crate) fn run_error(error: &RunError, heard: &Heard) -> CommandError {
    let told = server_error(error);
    if error.is_refusal() {
        let mut result = CommandError::new(error_chain(error));
        result.exit = Exit::No;
        return result.hint("nothing was written; see `ichor cni plan`");
    }
    // Where the server is the reason, that comes first.
    let mut first = told.hint.map_or_else(String::new, |hint| format!("{hint}; then "));
    if matches!(error, RunError::Wait(_)) {
        first.insert_str(0, &heard.not_ready());
    }
    CommandError::new(error_chain(error))
        .hint(format!("{first}run it again to go on where it stopped; see `ichor cni status`"))
}
