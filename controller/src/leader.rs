//! One of several controllers acts: the one that holds the Lease.
//!
//! The times are those of the takeover's lock, for the same reasons ([`takeover::run::lock`]): a
//! Lease that was not renewed for 15 s by the watcher's own clock is taken; its holder renews it
//! every 5 s, and acts no more when that was not confirmed for 10 s.

use std::sync::Arc;
use std::time::Duration;

use cilium::pinned::RECORD_NAMESPACE;
use helm_rs::cluster::Clock;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use takeover::run::lock::{DURATION, GIVE_UP, RENEWAL};

use crate::NAME;
use crate::fence::Held;
use crate::watch::causes;

/// How often a Lease that somebody else holds is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// A candidate, and the holder once it has the Lease.
pub(crate) struct Candidate {
    leases: Api<Lease>,
    clock: Arc<dyn Clock>,
    identity: String,
    /// The Lease as it was written or seen last.
    seen: Option<(Lease, Duration)>,
    held: Held,
}

impl Candidate {
    pub(crate) fn new(client: &Client, clock: Arc<dyn Clock>, identity: &str) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), RECORD_NAMESPACE),
            held: Held::new(Arc::clone(&clock)),
            clock,
            identity: identity.to_owned(),
            seen: None,
        }
    }

    /// Whether and since when this candidate has the Lease.
    pub(crate) fn held(&self) -> Held {
        self.held.clone()
    }

    /// Waits until this candidate holds the Lease. `asked` is called after each answer of the server.
    pub(crate) async fn acquire(&mut self, asked: impl Fn()) {
        loop {
            match self.attempt().await {
                Ok(true) => return,
                Ok(false) => asked(),
                Err(error) => tracing::warn!(error = %causes(&error), "the Lease {NAME}"),
            }
            self.clock.sleep(LOOK).await;
        }
    }

    /// One look; true when the Lease was taken.
    async fn attempt(&mut self) -> kube::Result<bool> {
        let found = self.leases.get_opt(NAME).await?;
        if let Some(lease) = &found
            && !self.may_take(lease)
        {
            return Ok(false);
        }
        let (began, moment) = (self.clock.elapsed(), self.held.moment());
        let lease = lease(found.as_ref(), &self.identity, self.clock.now());
        let written = match &found {
            None => self.leases.create(&PostParams::default(), &lease).await,
            Some(_) => self.leases.replace(NAME, &PostParams::default(), &lease).await,
        };
        match written {
            Ok(lease) => {
                self.seen = Some((lease, began));
                self.held.renewed(moment);
                Ok(true)
            }
            // Somebody else was faster.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a Lease is free: given back, or not renewed for so long while this candidate looked.
    fn may_take(&mut self, lease: &Lease) -> bool {
        let now = self.clock.elapsed();
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        if holder.is_none_or(|holder| holder.is_empty() || holder == self.identity) {
            return true;
        }
        let version = |lease: &Lease| lease.metadata.resource_version.clone();
        match &self.seen {
            Some((seen, since)) if version(seen) == version(lease) => {
                now.saturating_sub(*since) >= DURATION
            }
            _ => {
                self.seen = Some((lease.clone(), now));
                false
            }
        }
    }

    /// Renews the Lease until it is lost.
    pub(crate) async fn hold(&mut self) {
        loop {
            self.clock.sleep(RENEWAL).await;
            if !self.renew().await {
                return;
            }
        }
    }

    async fn renew(&mut self) -> bool {
        loop {
            let Some((seen, since)) = &self.seen else { return false };
            let Some(left) = GIVE_UP.checked_sub(self.clock.elapsed().saturating_sub(*since))
            else {
                tracing::error!("the Lease {NAME} could not be renewed in time");
                return false;
            };
            let (began, moment) = (self.clock.elapsed(), self.held.moment());
            let lease = lease(Some(seen), &self.identity, self.clock.now());
            let parameters = PostParams::default();
            let written = self.leases.replace(NAME, &parameters, &lease);
            match tokio::time::timeout(left, written).await {
                Ok(Ok(lease)) => {
                    self.seen = Some((lease, began));
                    self.held.renewed(moment);
                    return true;
                }
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                    tracing::error!("the Lease {NAME} was written by somebody else");
                    return false;
                }
                Ok(Err(error)) => {
                    tracing::warn!(error = %causes(&error), "the Lease {NAME}");
                    self.clock.sleep(Duration::from_secs(1)).await;
                }
                Err(_) => {}
            }
        }
    }

    /// Gives the Lease back, so that the next one need not wait.
    pub(crate) async fn release(self) {
        let Some((seen, _)) = self.seen else { return };
        let lease = lease(Some(&seen), "", self.clock.now());
        // Whatever goes wrong, the Lease runs out.
        drop(self.leases.replace(NAME, &PostParams::default(), &lease).await);
    }
}

/// The Lease as it is written, over the one before. It names the version of that one, so that only
/// one of two writers succeeds.
fn lease(before: Option<&Lease>, holder: &str, now: Timestamp) -> Lease {
    let spec = before.and_then(|lease| lease.spec.clone()).unwrap_or_default();
    let is_same = spec.holder_identity.as_deref() == Some(holder);
    let transitions = spec.lease_transitions.unwrap_or(0);
    Lease {
        metadata: ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(RECORD_NAMESPACE.to_owned()),
            resource_version: before.and_then(|lease| lease.metadata.resource_version.clone()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: spec.acquire_time.filter(|_| is_same).or(Some(MicroTime(now))),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions + i32::from(before.is_some() && !is_same)),
            ..LeaseSpec::default()
        }),
    }
}
