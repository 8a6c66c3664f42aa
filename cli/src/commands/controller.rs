//! `ichor controller`: the controller, as its Deployment runs it.

use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use controller::Options;
use controller::policies::Policies;
use helm_rs::cluster::live::SystemClock;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

mod traces;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::ui::LogFormat;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Watches the TalosCluster objects of the cluster that it runs in (or that KUBECONFIG names), hands\n",
    "their CNI over by the Job kube-system/ichor-cni, and says in their status where that stands. Of\n",
    "several, one acts: the holder of the Lease ichor-system/ichor-controller. SIGTERM ends it after\n",
    "what is under way. The chart charts/ichor installs it with the rights that it takes.\n",
    "Traces are sent, by OTLP over HTTP as JSON, to where OTEL_EXPORTER_OTLP_ENDPOINT says.\n\n",
    "Examples:\n",
    "  ichor controller --image=example.org/ichor:0.1.0 --identity=$(POD_NAME)\n\n",
    "Exit codes:\n",
    "  0  it was asked to stop\n",
    "  1  an error, or another controller took the Lease; it is to be started again"
))]
pub(crate) struct Arguments {
    /// The image with this program, for the Job
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Its name among the controllers: the pod's
    #[arg(long, value_name = "NAME")]
    identity: String,
    /// Where /healthz, /readyz and /metrics are; `:PORT` on all addresses
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ":8080", value_parser = address)]
    listen: SocketAddr,
    /// Apply ichor's own CiliumNetworkPolicy objects in namespace ichor-system, where Cilium runs
    #[arg(long)]
    network_policies: bool,
    /// Form of what is told on standard error
    #[arg(long, value_enum, value_name = "FORM", default_value = "json")]
    log_format: LogFormat,
    /// How much is told
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    log_level: Level,
}

/// `:PORT` is every address, of both families where there are both.
fn address(text: &str) -> Result<SocketAddr, String> {
    let text = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    text.parse().map_err(|error| format!("{error}"))
}

pub(crate) fn run(arguments: Arguments, context: &Context<'_>) -> Result<Exit, CommandError> {
    let level = if context.global.verbose { Level::Debug } else { arguments.log_level };
    log(arguments.log_format, level);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(CommandError::new)?;
    let traces = traces::traces(context.environment)?;
    let policies = Policies {
        port: arguments.listen.port(),
        traces: traces.as_ref().and_then(|traces| traces::port(&traces.url)),
    };
    let options = Options {
        policies: arguments.network_policies.then_some(policies),
        traces,
        image: arguments.image,
        identity: arguments.identity,
        listen: arguments.listen,
        clock: Arc::new(SystemClock::new()),
    };
    let ended = runtime.block_on(async {
        let (mut term, mut interrupt) = (
            signal(SignalKind::terminate()).map_err(CommandError::new)?,
            signal(SignalKind::interrupt()).map_err(CommandError::new)?,
        );
        let stop = async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        let config = kube::Config::infer().await.map_err(|error| failure(&error))?;
        let client = kube::Client::try_from(config).map_err(|error| failure(&error))?;
        controller::run(client, options, stop).await.map_err(|error| failure(&error))
    });
    // Watches that are still open need not be waited for.
    runtime.shutdown_background();
    ended.map(|()| Exit::Done)
}

fn failure(error: &(dyn std::error::Error + 'static)) -> CommandError {
    CommandError::new(helm_rs::error_chain(error))
}

/// The program's own lines as asked for, those of others when they are warnings.
fn log(format: LogFormat, level: Level) {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    };
    // The client warns of answers that it cannot read with the whole answer, values of TalosClusters
    // and all; the error says what is wrong.
    let targets = Targets::new()
        .with_default(level.min(LevelFilter::WARN))
        .with_target("kube_client", LevelFilter::ERROR)
        .with_target("controller", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let registry = tracing_subscriber::registry().with(targets);
    match format {
        LogFormat::Text => registry.with(lines).init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
}
