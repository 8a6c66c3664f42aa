//! The lock: at most one takeover in a cluster.
//!
//! A Lease that its holder renews. Whoever finds it held watches it by its own clock: renewed, it
//! belongs to a living run; not renewed for [`DURATION`], it is taken. The holder finds out at its
//! next renewal, since that names the version of the Lease that it wrote last.

use std::sync::Arc;
use std::time::Duration;

use cilium::pinned::RECORD_NAMESPACE;
use futures::lock::Mutex;
use helm_rs::apply::FIELD_MANAGER;
use helm_rs::cluster::{Clock, Cluster, ClusterError, ErrorKind, Resource, Target, WriteOptions};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::survey::{builtin, text};

/// The Lease's name.
pub const LEASE: &str = "ichor-cni";
/// How long a lock holds that is not renewed.
pub const DURATION: Duration = Duration::from_secs(15);
/// How old a renewal may be when a write begins.
const RENEWAL: Duration = Duration::from_secs(5);
/// How often a held Lease is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often one may be beaten to the Lease.
const TRIES: usize = 5;

/// Why there is no lock, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it, and lives.
    #[error(
        "another run is at work: Lease {RECORD_NAMESPACE}/{LEASE} is held by {holder}, who \
         renewed it {age} s ago; wait until it is done"
    )]
    Held {
        /// The other run.
        holder: String,
        /// Seconds since it renewed the Lease, by the cluster's account.
        age: i64,
    },
    /// Another run took it, since it was not renewed in time.
    #[error("the lock was lost: Lease {RECORD_NAMESPACE}/{LEASE} was written by somebody else")]
    Lost,
    /// The Lease cannot be read or written.
    #[error("Lease {RECORD_NAMESPACE}/{LEASE}")]
    Cluster(#[from] ClusterError),
}

struct State {
    version: String,
    renewed: Duration,
    lost: bool,
}

/// A lock that is held.
pub struct Lock<'a> {
    cluster: Arc<dyn Cluster>,
    clock: &'a dyn Clock,
    holder: String,
    resource: Arc<Resource>,
    state: Mutex<State>,
}

/// Takes the lock. `holder` names this run, and no other.
///
/// # Errors
/// [`LockError::Held`] when another run is at work.
pub async fn acquire<'a>(
    cluster: &Arc<dyn Cluster>,
    clock: &'a dyn Clock,
    holder: &str,
) -> Result<Lock<'a>, LockError> {
    let lock = Lock {
        cluster: Arc::clone(cluster),
        clock,
        holder: holder.to_owned(),
        resource: builtin("coordination.k8s.io/v1", "Lease", "leases", true),
        state: Mutex::new(State { version: String::new(), renewed: Duration::ZERO, lost: false }),
    };
    for _ in 0..TRIES {
        if lock.attempt().await? {
            return Ok(lock);
        }
    }
    Err(LockError::Lost)
}

impl Lock<'_> {
    fn target(&self) -> Target {
        Target::new(&self.resource, RECORD_NAMESPACE, LEASE)
    }

    fn options() -> WriteOptions {
        WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
    }

    /// One try; false when somebody else was faster.
    async fn attempt(&self) -> Result<bool, LockError> {
        let found = match self.cluster.get(&self.target()).await {
            Ok(lease) => lease,
            Err(error) if error.is_not_found() => {
                let lease = self.lease(None);
                let created =
                    self.cluster.create(&self.target(), &lease, &Self::options()).await;
                return match created {
                    Ok(lease) => {
                        self.hold(&lease).await;
                        Ok(true)
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                    Err(error) => Err(error.into()),
                };
            }
            Err(error) => return Err(error.into()),
        };
        let found = if text(&found, "/spec/holderIdentity").is_empty() {
            found
        } else {
            match self.outlast(found).await? {
                Some(found) => found,
                None => return Ok(false),
            }
        };
        let lease = self.lease(Some(&found));
        match self.cluster.update(&self.target(), &lease, &Self::options()).await {
            Ok(lease) => {
                self.hold(&lease).await;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Conflict || error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Watches a held Lease until it is not renewed for [`DURATION`] by this run's own clock.
    async fn outlast(&self, found: Value) -> Result<Option<Value>, LockError> {
        let version = text(&found, "/metadata/resourceVersion").to_owned();
        let start = self.clock.elapsed();
        loop {
            self.clock.sleep(LOOK).await;
            let now = match self.cluster.get(&self.target()).await {
                Ok(lease) => lease,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let holder = text(&now, "/spec/holderIdentity");
            if holder.is_empty() {
                return Ok(Some(now));
            }
            if text(&now, "/metadata/resourceVersion") != version {
                let renewed = text(&now, "/spec/renewTime").parse::<Timestamp>().ok();
                let age = renewed
                    .map_or(0, |time| self.clock.now().as_second() - time.as_second())
                    .max(0);
                return Err(LockError::Held { holder: holder.to_owned(), age });
            }
            if self.clock.elapsed().saturating_sub(start) >= DURATION {
                return Ok(Some(now));
            }
        }
    }

    /// The Lease as this run writes it.
    fn lease(&self, before: Option<&Value>) -> Value {
        let now = format!("{:.6}", self.clock.now());
        let transitions = before
            .and_then(|lease| lease.pointer("/spec/leaseTransitions")?.as_i64())
            .map_or(0, |count| count.saturating_add(1));
        let mut metadata = json!({ "name": LEASE, "namespace": RECORD_NAMESPACE });
        if let Some(lease) = before {
            metadata["resourceVersion"] = text(lease, "/metadata/resourceVersion").into();
        }
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                "holderIdentity": self.holder,
                "leaseDurationSeconds": DURATION.as_secs(),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        })
    }

    async fn hold(&self, lease: &Value) {
        let mut state = self.state.lock().await;
        text(lease, "/metadata/resourceVersion").clone_into(&mut state.version);
        state.renewed = self.clock.elapsed();
    }

    /// Makes sure that the lock is still held: renews it when the last renewal is old.
    ///
    /// # Errors
    /// [`LockError::Lost`]
    pub async fn check(&self) -> Result<(), LockError> {
        let mut state = self.state.lock().await;
        if state.lost {
            return Err(LockError::Lost);
        }
        if self.clock.elapsed().saturating_sub(state.renewed) < RENEWAL {
            return Ok(());
        }
        let before = self.clock.elapsed();
        match self.write(&state.version, &self.holder).await {
            Ok(version) => {
                state.version = version;
                // The answer may have been long on its way.
                state.renewed = before;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Conflict || error.is_not_found() => {
                state.lost = true;
                Err(LockError::Lost)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn write(&self, version: &str, holder: &str) -> Result<String, ClusterError> {
        let now = format!("{:.6}", self.clock.now());
        let patch = helm_rs::cluster::Patch {
            kind: helm_rs::cluster::PatchKind::Merge,
            body: json!({
                "metadata": { "resourceVersion": version },
                "spec": { "holderIdentity": holder, "renewTime": now },
            }),
        };
        let lease = self.cluster.patch(&self.target(), &patch, &Self::options()).await?;
        Ok(text(&lease, "/metadata/resourceVersion").to_owned())
    }

    /// Gives the lock back, so that the next run need not wait. What goes wrong is of no account:
    /// the Lease runs out.
    pub async fn release(&self) {
        let mut state = self.state.lock().await;
        if !state.lost {
            state.lost = true;
            drop(self.write(&state.version, "").await);
        }
    }

    /// Whether somebody else took it.
    pub async fn is_lost(&self) -> bool {
        self.state.lock().await.lost
    }
}
