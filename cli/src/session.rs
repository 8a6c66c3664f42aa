//! Running an action on a cluster: client, records, signals, what is heard. The cluster is a live
//! one, or a snapshot's in memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use helm_rs::action::Session;
use helm_rs::apply::{Cancel, FIELD_MANAGER, Method, Observer, Waiting};
use helm_rs::cluster::{Clock, Cluster, block_on};
use helm_rs::release::storage::{ObjectDriver, ObjectKind};
use helm_rs::render::Engine;
use takeover::snapshot::Stage;

use crate::commands::Context;
use crate::error::CommandError;
use crate::ui::Ui;
#[cfg(feature = "network")]
use {
    crate::connection::{ClusterFlags, record_kind},
    helm_rs::cluster::live::SystemClock,
    tokio::runtime::Runtime,
    tokio::signal::unix::{SignalKind, signal},
};

/// What an action told while it ran.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// What it waited for last.
    pub(crate) waiting: Vec<Waiting>,
    /// Whether a signal asked for the end.
    pub(crate) cancelled: bool,
}

impl Heard {
    /// What was not ready when time was up, an object a line; empty when nothing was waited for.
    pub(crate) fn not_ready(&self) -> String {
        if self.waiting.is_empty() {
            return String::new();
        }
        let mut text = "not ready when time was up:\n".to_owned();
        for object in &self.waiting {
            text.push_str(&format!("  {}: {}\n", object.object, object.reason));
            for detail in &object.details {
                text.push_str(&format!("    {detail}\n"));
            }
        }
        text
    }
}

/// Tells the user what is going on, as it happens.
struct Teller<'a> {
    ui: Mutex<&'a mut Ui>,
    heard: Mutex<Heard>,
    progress: bool,
}

impl Observer for Teller<'_> {
    fn log(&self, line: &str) {
        let mut ui = self.ui.lock().unwrap_or_else(PoisonError::into_inner);
        if line.starts_with("WARNING: ") {
            ui.warning(line);
        } else {
            ui.debug(line);
        }
    }

    fn progress(&self, line: &str) {
        if self.progress {
            self.ui.lock().unwrap_or_else(PoisonError::into_inner).note(line);
        }
    }

    fn output(&self, log: &[u8]) {
        self.ui.lock().unwrap_or_else(PoisonError::into_inner).log(log);
    }

    fn waiting(&self, objects: &[Waiting]) {
        if self.progress {
            let mut ui = self.ui.lock().unwrap_or_else(PoisonError::into_inner);
            for object in objects {
                ui.warning(format!("waiting for {}: {}", object.object, object.reason));
                for detail in &object.details {
                    ui.warning(format!("    {detail}"));
                }
            }
        }
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).waiting = objects.to_vec();
    }
}

/// Runs an action: connects, watches for signals, and hands out a session. Returns what the
/// action returns and what it told.
#[cfg(feature = "network")]
pub(crate) fn run<T>(
    flags: &ClusterFlags,
    context: &mut Context<'_>,
    engine: &Engine,
    action: impl AsyncFnOnce(&Session<'_>) -> T,
) -> Result<(T, Heard), CommandError> {
    Host::open(flags, context)?.run(context, engine, action)
}

/// A cluster, for one action or several: discovery is read once.
pub(crate) struct Host {
    place: Place,
    cancel: Arc<Cancel>,
    /// Whether nothing but reading is under way: then a signal ends the program at once.
    looks: Arc<AtomicBool>,
    /// Whether progress is told although nobody may be watching.
    tells: AtomicBool,
    /// What the server warned of, since it was told last.
    warnings: Arc<Mutex<Vec<String>>>,
    kind: ObjectKind,
    namespace: String,
}

/// What stands behind a [`Host`].
enum Place {
    #[cfg(feature = "network")]
    Live {
        /// None once it is dropped.
        runtime: Option<Runtime>,
        cluster: Arc<dyn Cluster>,
    },
    Stage(Arc<Stage>),
}

impl Host {
    /// Connects, and watches for signals.
    #[cfg(feature = "network")]
    pub(crate) fn open(flags: &ClusterFlags, context: &Context<'_>) -> Result<Self, CommandError> {
        let environment = context.environment;
        let kind = record_kind(environment)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // One for the connection; this thread renders, and asks.
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| CommandError::new(format_args!("cannot start: {error}")))?;
        let warnings: Arc<Mutex<Vec<String>>> = Arc::default();
        let server = Arc::clone(&warnings);
        let hear = move |text: &str| {
            server.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
        };
        let (cancel, looks) = (Arc::new(Cancel::default()), Arc::new(AtomicBool::default()));
        let cluster = runtime.block_on(async {
            let live = flags.connect(environment, Arc::new(hear)).await?;
            watch_signals(&cancel, &looks)?;
            Ok::<_, CommandError>(live)
        })?;
        let namespace = flags.namespace(environment);
        let place = Place::Live { runtime: Some(runtime), cluster };
        let tells = AtomicBool::default();
        Ok(Self { place, cancel, looks, tells, warnings, kind, namespace })
    }

    /// A snapshot's cluster in memory, at the time when it was taken.
    pub(crate) fn stage(stage: Stage) -> Self {
        Self {
            place: Place::Stage(Arc::new(stage)),
            cancel: Arc::default(),
            looks: Arc::default(),
            tells: AtomicBool::default(),
            warnings: Arc::default(),
            kind: ObjectKind::Secret,
            namespace: String::new(),
        }
    }

    /// From here on progress is told, on a terminal or not, unless the user wants quiet: what waits
    /// for long should say for what.
    #[cfg(feature = "controller")]
    pub(crate) fn tell_progress(&self) {
        self.tells.store(true, Ordering::Relaxed);
    }

    /// The cluster in memory; none for a live one.
    #[cfg_attr(
        not(feature = "network"),
        expect(clippy::unnecessary_wraps, reason = "as with a network")
    )]
    pub(crate) fn as_stage(&self) -> Option<&Arc<Stage>> {
        match &self.place {
            #[cfg(feature = "network")]
            Place::Live { .. } => None,
            Place::Stage(stage) => Some(stage),
        }
    }

    /// [`Self::run`] for what only reads: the first signal ends the program. What waits does not only
    /// read: it has something to say when it is ended.
    ///
    /// # Errors
    /// The end was asked for before, while something else was under way.
    pub(crate) fn look<T>(
        &self,
        context: &mut Context<'_>,
        engine: &Engine,
        action: impl AsyncFnOnce(&Session<'_>) -> T,
    ) -> Result<(T, Heard), CommandError> {
        self.go_on()?;
        self.looks.store(true, Ordering::Relaxed);
        let result = self.run(context, engine, action);
        self.looks.store(false, Ordering::Relaxed);
        result
    }

    /// Whether the next step may begin: not once a signal asked for the end.
    ///
    /// # Errors
    /// The end was asked for.
    pub(crate) fn go_on(&self) -> Result<(), CommandError> {
        if self.cancel.is_cancelled() {
            return Err(CommandError::new("stopped, as was asked").hint("run it again to go on"));
        }
        Ok(())
    }

    /// Hands out a session. Returns what the action returns and what it told.
    #[cfg_attr(
        not(feature = "network"),
        expect(clippy::unnecessary_wraps, reason = "as with a network")
    )]
    pub(crate) fn run<T>(
        &self,
        context: &mut Context<'_>,
        engine: &Engine,
        action: impl AsyncFnOnce(&Session<'_>) -> T,
    ) -> Result<(T, Heard), CommandError> {
        match &self.place {
            #[cfg(feature = "network")]
            Place::Live { runtime, cluster } => {
                let Some(runtime) = runtime else {
                    return Err(CommandError::new("the connection is closed"));
                };
                runtime.block_on(async {
                    // Its waits need the runtime.
                    let clock = SystemClock::new();
                    Ok(self.act(context, engine, (cluster, &clock), action).await)
                })
            }
            Place::Stage(stage) => {
                Ok(block_on(self.act(context, engine, (&stage.cluster(), &*stage.clock), action)))
            }
        }
    }

    async fn act<T>(
        &self,
        context: &mut Context<'_>,
        engine: &Engine,
        (cluster, clock): (&Arc<dyn Cluster>, &dyn Clock),
        action: impl AsyncFnOnce(&Session<'_>) -> T,
    ) -> (T, Heard) {
        let environment = context.environment;
        let progress = !context.global.quiet
            && (context.global.verbose
                || environment.is_terminal()
                || self.tells.load(Ordering::Relaxed));
        let mut driver = ObjectDriver::new(&**cluster, clock, self.kind, &self.namespace);
        FIELD_MANAGER.clone_into(&mut driver.field_manager);
        let teller = Teller { ui: Mutex::new(context.ui), heard: Mutex::default(), progress };
        let session = Session {
            cluster: Arc::clone(cluster),
            driver: &driver,
            clock,
            zone: environment.zone(),
            observer: &teller,
            cancel: &self.cancel,
            engine,
            method: Method::default(),
        };
        let result = action(&session).await;
        let mut heard = teller.heard.into_inner().unwrap_or_else(PoisonError::into_inner);
        heard.cancelled = self.cancel.is_cancelled();
        let mut told = Vec::new();
        for warning in self.warnings.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if !told.contains(&warning) {
                context.ui.warning(format!("Warning: {warning}"));
                told.push(warning);
            }
        }
        (result, heard)
    }
}

#[cfg(feature = "network")]
impl Drop for Place {
    fn drop(&mut self) {
        // Requests that nobody waits for any more need not end.
        if let Self::Live { runtime, .. } = self
            && let Some(runtime) = runtime.take()
        {
            runtime.shutdown_background();
        }
    }
}

/// The first SIGINT or SIGTERM asks for the end, the second one makes it; so does the first where
/// nothing but reading is under way.
#[cfg(feature = "network")]
fn watch_signals(cancel: &Arc<Cancel>, looks: &Arc<AtomicBool>) -> Result<(), CommandError> {
    let failed = |error| CommandError::new(format_args!("cannot watch for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let (cancel, looks) = (Arc::clone(cancel), Arc::clone(looks));
    tokio::spawn(async move {
        loop {
            let code = tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            };
            if cancel.is_cancelled() || looks.load(Ordering::Relaxed) {
                #[expect(
                    clippy::exit,
                    reason = "nothing is under way that could be ended in order"
                )]
                std::process::exit(code);
            }
            cancel.cancel();
        }
    });
    Ok(())
}
