//! Everything together: connect, wait for the Lease, look at every TalosCluster, stop when asked.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::TalosCluster;
use futures::StreamExt as _;
use helm_rs::cluster::Clock;
use kube::runtime::events::{Recorder, Reporter};
use kube::runtime::{Controller, controller, watcher};
use kube::{Api, Client};
use tokio_util::sync::CancellationToken;

use crate::NAME;
use crate::fence::fenced;
use crate::leader::Candidate;
use crate::metrics::Metrics;
use crate::policies::Policies;
use crate::reconcile::{Context, after_error, reconcile};
use crate::serve::{self, Told};
use crate::trace::{Tracer, Traces};
use crate::watch::{self, causes};

/// TalosClusters that are looked at side by side.
const CONCURRENCY: u16 = 8;
/// How long changes of one TalosCluster are gathered.
const GATHERED: Duration = Duration::from_millis(100);

/// How long the last spans may take to be sent.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// How a controller is to be.
#[derive(Clone)]
pub struct Options {
    /// The image of the Job.
    pub image: String,
    /// Its name among the controllers: the pod's.
    pub identity: String,
    /// Where `/healthz`, `/readyz` and `/metrics` are.
    pub listen: SocketAddr,
    /// Ichor's own network policies; none to have none.
    pub policies: Option<Policies>,
    /// Where traces go; none to make none.
    pub traces: Option<Traces>,
    /// The machine's clock.
    pub clock: Arc<dyn Clock>,
}

/// Why a controller ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The address for probes and metrics.
    #[error("listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Another controller leads.
    #[error("the Lease {NAME} was lost, so that another controller acts; this one begins anew")]
    Lost,
}

/// Runs until `stop` is done.
///
/// # Errors
/// [`RunError`]; whoever started it starts it again, as a kubelet does.
pub async fn run(
    client: Client,
    options: Options,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), RunError> {
    let told = Arc::new(Told { ready: AtomicBool::new(false), metrics: Metrics::new() });
    let listener = serve::listen(options.listen)
        .await
        .map_err(|source| RunError::Listen { address: options.listen, source })?;
    tokio::spawn(serve::serve(listener, Arc::clone(&told)));
    let mut stop = std::pin::pin!(stop);
    let mut candidate = Candidate::new(&client, Arc::clone(&options.clock), &options.identity);
    let ready = || told.ready.store(true, Ordering::Relaxed);
    tracing::info!(identity = options.identity, "waiting for the Lease {NAME}");
    tokio::select! {
        () = candidate.acquire(ready) => ready(),
        () = &mut stop => return Ok(()),
    }
    told.metrics.leads();
    tracing::info!("this controller leads");
    let ending = CancellationToken::new();
    let client = fenced(client, candidate.held());
    let working = tokio::spawn(work(client, options, Arc::clone(&told), ending.clone()));
    let is_lost = tokio::select! {
        () = candidate.hold() => true,
        () = &mut stop => false,
    };
    if is_lost {
        // What is under way is dropped: it may not be sent any more.
        working.abort();
        return Err(RunError::Lost);
    }
    // What is under way is finished, and the Lease held for as long.
    ending.cancel();
    tokio::select! {
        result = working => drop(result),
        () = candidate.hold() => return Err(RunError::Lost),
    }
    candidate.release().await;
    tracing::info!("stopped, as was asked");
    Ok(())
}

async fn work(client: Client, options: Options, told: Arc<Told>, ending: CancellationToken) {
    let watched = watch::facts(&client);
    let (tracer, sending) = Tracer::new(options.traces, &options.identity);
    let reporter = Reporter { controller: NAME.to_owned(), instance: Some(options.identity) };
    let context = Arc::new(Context {
        client: client.clone(),
        clock: options.clock,
        watched: watched.clone(),
        image: options.image,
        recorder: Recorder::new(client.clone(), reporter),
        told,
        policies: options.policies,
        tracer,
        failures: Mutex::default(),
    });
    let clusters: Api<TalosCluster> = Api::all(client);
    Controller::new(clusters, watcher::Config::default())
        .with_config(controller::Config::default().concurrency(CONCURRENCY).debounce(GATHERED))
        .reconcile_all_on(watch::changes(watched))
        .graceful_shutdown_on(async move { ending.cancelled().await })
        .run(reconcile, after_error, context)
        .for_each(|looked| async move {
            match looked {
                // What failed is told where it did.
                Ok(_) | Err(controller::Error::ReconcilerFailed(..)) => {}
                Err(error) => tracing::warn!(error = %causes(&error), "the queue"),
            }
        })
        .await;
    // The tracer is gone with the last look, so that what is sent ends.
    if let Some(sending) = sending {
        drop(tokio::time::timeout(LAST_SPANS, sending).await);
    }
}
