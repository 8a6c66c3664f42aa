//! The lock: at most one takeover of a release, and of the release that it comes from.
//!
//! A Lease that its holder renews. Whoever finds it held watches it by its own clock: renewed, it
//! belongs to a living run; not renewed for [`DURATION`], it is taken. The holder finds out at its
//! next renewal, since that names the version of the Lease that it wrote last.
//!
//! # Why a run that lost the lock writes nothing more
//!
//! Let `r` be the moment at which the last confirmed renewal was sent. Nobody else takes the Lease
//! before `r` + 15 s ([`DURATION`]), since a watcher's own 15 s begin when it sees that renewal.
//!
//! - A write begins only when `r` is less than 5 s ago ([`RENEWAL`]); else the Lease is renewed
//!   first, and a renewal that is refused (another version) ends the run ([`Lock::check`]).
//! - While a write is under way the Lease is renewed every 5 s. When that is not confirmed 10 s
//!   ([`GIVE_UP`]) after `r`, the write is given up and its connection dropped ([`Lock::keep`]):
//!   nothing of this run is sent later than `r` + 10 s, and 5 s are left for what is on the wire.
//! - Both clocks count, the one that never goes back and the wall clock: whichever says that the
//!   renewal is old is believed, so that a machine that slept or whose clock was set renews first.
//! - What is left is a process that is stopped between the check and the socket. Its one write
//!   names what it is based on: a patch, update or delete the version that was read (which the
//!   server compares), a create that nothing is there ([`Fenced`](super::Fenced)). So it fails, or
//!   does to an object that nobody wrote since what the consented plan says; the next check fails.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::lock::Mutex;
use futures::poll;
use helm_rs::apply::{FIELD_MANAGER, Observer};
use helm_rs::cluster::{Clock, Cluster, ClusterError, ErrorKind, Resource, Target, WriteOptions};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::survey::{builtin, text};

/// How long a lock holds that is not renewed.
pub const DURATION: Duration = Duration::from_secs(15);
/// How old a renewal may be when a write begins.
pub const RENEWAL: Duration = Duration::from_secs(5);
/// How old it may be while a write is under way.
pub const GIVE_UP: Duration = Duration::from_secs(10);
/// How often a held Lease is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often one may be beaten to the Lease.
const TRIES: usize = 5;

/// Why there is no lock, or none any more.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another run holds it, and lives.
    #[error(
        "another run is at work: Lease {lease} is held by {holder}, who \
         renewed it {age} s ago; wait until it is done"
    )]
    Held {
        /// The Lease, as namespace and name.
        lease: String,
        /// The other run.
        holder: String,
        /// Seconds since it renewed the Lease, by the cluster's account.
        age: i64,
    },
    /// Another run took it, since it was not renewed in time.
    #[error("the lock was lost: Lease {lease} was written by somebody else")]
    Lost {
        /// The Lease, as namespace and name.
        lease: String,
    },
    /// The Lease could not be renewed in time.
    #[error(
        "Lease {lease} could not be renewed for {} s, so that what was under \
         way was given up", GIVE_UP.as_secs()
    )]
    Late {
        /// The Lease, as namespace and name.
        lease: String,
    },
    /// The Lease cannot be read or written.
    #[error("Lease {lease}")]
    Cluster {
        /// The Lease, as namespace and name.
        lease: String,
        /// What the cluster says.
        source: ClusterError,
    },
}

/// How long a renewal may take, by the age of the one before.
type Patience = fn(Duration) -> Duration;

/// For what writes nothing: a late renewal is tried as well.
fn patient(age: Duration) -> Duration {
    GIVE_UP.saturating_sub(age).max(RENEWAL)
}

struct State {
    version: String,
    /// When the last confirmed renewal was sent, by either clock.
    renewed: Duration,
    renewed_at: Timestamp,
    lost: bool,
}

/// Which Lease is a lock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A lock that is held.
pub struct Lock<'a> {
    cluster: Arc<dyn Cluster>,
    clock: &'a dyn Clock,
    holder: String,
    namespace: String,
    name: String,
    /// The lock of the other release, where two are at stake.
    other: Option<Box<Self>>,
    resource: Arc<Resource>,
    state: Mutex<State>,
}

/// Takes the lock: one Lease, or those of two releases, always in the same order. `holder` names
/// this run, and no other. The observer hears that it is waited for.
///
/// # Errors
/// [`LockError::Held`] when another run is at work.
pub async fn acquire<'a>(
    cluster: &Arc<dyn Cluster>,
    clock: &'a dyn Clock,
    leases: BTreeSet<LeaseName>,
    holder: &str,
    observer: &dyn Observer,
) -> Result<Lock<'a>, LockError> {
    let mut held: Option<Lock<'a>> = None;
    for lease in leases {
        let result = one(cluster, clock, lease, holder, observer).await;
        match (result, held) {
            (Ok(mut lock), before) => {
                lock.other = before.map(Box::new);
                held = Some(lock);
            }
            (Err(error), before) => {
                if let Some(before) = before {
                    before.release().await;
                }
                return Err(error);
            }
        }
    }
    held.ok_or(LockError::Lost { lease: String::new() })
}

async fn one<'a>(
    cluster: &Arc<dyn Cluster>,
    clock: &'a dyn Clock,
    lease: LeaseName,
    holder: &str,
    observer: &dyn Observer,
) -> Result<Lock<'a>, LockError> {
    let lock = Lock {
        cluster: Arc::clone(cluster),
        clock,
        holder: holder.to_owned(),
        namespace: lease.namespace,
        name: lease.name,
        other: None,
        resource: builtin("coordination.k8s.io/v1", "Lease", "leases", true),
        state: Mutex::new(State {
            version: String::new(),
            renewed: Duration::ZERO,
            renewed_at: Timestamp::UNIX_EPOCH,
            lost: false,
        }),
    };
    for _ in 0..TRIES {
        if lock.attempt(observer).await? {
            return Ok(lock);
        }
    }
    Err(lock.lost())
}

impl Lock<'_> {
    /// The Lease, as namespace and name.
    fn title(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn lost(&self) -> LockError {
        LockError::Lost { lease: self.title() }
    }

    fn failed(&self, source: ClusterError) -> LockError {
        LockError::Cluster { lease: self.title(), source }
    }

    fn target(&self) -> Target {
        Target::new(&self.resource, &self.namespace, &self.name)
    }

    fn options() -> WriteOptions {
        WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
    }

    /// One try; false when somebody else was faster.
    async fn attempt(&self, observer: &dyn Observer) -> Result<bool, LockError> {
        let found = match self.cluster.get(&self.target()).await {
            Ok(lease) => lease,
            Err(error) if error.is_not_found() => {
                let lease = self.lease(None);
                let moment = self.moment();
                let created = self.cluster.create(&self.target(), &lease, &Self::options()).await;
                return match created {
                    Ok(lease) => {
                        self.hold(&lease, moment).await;
                        Ok(true)
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                    Err(source) => Err(self.failed(source)),
                };
            }
            Err(source) => return Err(self.failed(source)),
        };
        let found = if text(&found, "/spec/holderIdentity").is_empty() {
            found
        } else {
            let (other, patience) = (text(&found, "/spec/holderIdentity"), DURATION.as_secs());
            observer.log(&format!(
                "WARNING: Lease {} is held by {other}: looking for up to {patience} s whether that \
                 run is at work",
                self.title()
            ));
            match self.outlast(found).await? {
                Some(found) => found,
                None => return Ok(false),
            }
        };
        let lease = self.lease(Some(&found));
        let moment = self.moment();
        match self.cluster.update(&self.target(), &lease, &Self::options()).await {
            Ok(lease) => {
                self.hold(&lease, moment).await;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Conflict || error.is_not_found() => Ok(false),
            Err(source) => Err(self.failed(source)),
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
                Err(source) => return Err(self.failed(source)),
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
                return Err(LockError::Held {
                    lease: self.title(),
                    holder: holder.to_owned(),
                    age,
                });
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
        let mut metadata = json!({ "name": self.name, "namespace": self.namespace });
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

    /// Now, by both clocks.
    fn moment(&self) -> (Duration, Timestamp) {
        (self.clock.elapsed(), self.clock.now())
    }

    /// The Lease was written by a request that was sent at `moment`.
    async fn hold(&self, lease: &Value, moment: (Duration, Timestamp)) {
        let mut state = self.state.lock().await;
        text(lease, "/metadata/resourceVersion").clone_into(&mut state.version);
        (state.renewed, state.renewed_at) = moment;
    }

    /// How old the last renewal is, by the clock that says more. A wall clock that was set back
    /// says nothing that can be trusted.
    fn age(&self, state: &State) -> Duration {
        let (elapsed, now) = self.moment();
        let wall = Duration::try_from(now.duration_since(state.renewed_at));
        elapsed.saturating_sub(state.renewed).max(wall.unwrap_or(Duration::MAX))
    }

    /// Makes sure that the lock is still held: renews it when the last renewal is old.
    ///
    /// # Errors
    /// [`LockError::Lost`], or that it cannot be told: then nothing may be written either.
    pub async fn check(&self) -> Result<(), LockError> {
        // A late renewal is tried as well: it names the version, so that it hurts nobody.
        self.renew(patient).await
    }

    async fn renew(&self, patience: Patience) -> Result<(), LockError> {
        if let Some(other) = &self.other {
            Box::pin(other.renew(patience)).await?;
        }
        let mut state = self.state.lock().await;
        if state.lost {
            return Err(self.lost());
        }
        let age = self.age(&state);
        if age < RENEWAL {
            return Ok(());
        }
        let moment = self.moment();
        let version = state.version.clone();
        let renewed = self.within(patience(age), self.write(&version, &self.holder)).await?;
        match renewed {
            Ok(version) => {
                state.version = version;
                // The answer may have been long on its way.
                (state.renewed, state.renewed_at) = moment;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Conflict || error.is_not_found() => {
                state.lost = true;
                Err(self.lost())
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Waits for something for so long at most. The clock is asked only for what takes time.
    async fn within<T>(
        &self,
        patience: Duration,
        work: impl Future<Output = T>,
    ) -> Result<T, LockError> {
        let mut work = std::pin::pin!(work);
        if let std::task::Poll::Ready(done) = poll!(work.as_mut()) {
            return Ok(done);
        }
        match select(work, self.clock.sleep(patience)).await {
            Either::Left((done, _)) => Ok(done),
            Either::Right(_) => Err(LockError::Late { lease: self.title() }),
        }
    }

    /// Makes a write, which may take longer than a renewal lasts, and renews meanwhile. It is
    /// dropped when the lock can no longer be told to be held.
    ///
    /// # Errors
    /// [`Self::check`]'s.
    pub async fn keep<T>(&self, write: impl Future<Output = T>) -> Result<T, LockError> {
        self.renewing(write, |age| GIVE_UP.saturating_sub(age)).await
    }

    /// The same for what writes nothing, such as making a plan: that may be late, as long as
    /// nobody else took the lock meanwhile.
    ///
    /// # Errors
    /// [`Self::check`]'s.
    pub async fn keep_reading<T>(&self, work: impl Future<Output = T>) -> Result<T, LockError> {
        self.renewing(work, patient).await
    }

    async fn renewing<T>(
        &self,
        work: impl Future<Output = T>,
        patience: Patience,
    ) -> Result<T, LockError> {
        self.check().await?;
        let mut work = std::pin::pin!(work);
        loop {
            if let std::task::Poll::Ready(done) = poll!(work.as_mut()) {
                return Ok(done);
            }
            match select(work.as_mut(), self.clock.sleep(RENEWAL)).await {
                Either::Left((done, _)) => return Ok(done),
                Either::Right(_) => self.renew(patience).await?,
            }
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
        if let Some(other) = &self.other {
            Box::pin(other.release()).await;
        }
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
