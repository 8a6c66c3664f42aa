//! A controller that may have lost its Lease changes nothing more.
//!
//! Losing it ends the controller, at the next renewal. A process that was stopped, or a machine that
//! slept, goes on in the middle of something, and that may come first: so each request that changes
//! something is sent only when the last renewal is young enough for the Lease to be held still. What
//! is on the wire by then names what it is based on: the UID of the Job that it deletes, the version
//! of the object whose status it writes, and a Job's one name.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use helm_rs::cluster::Clock;
use hyper::{Method, Request, Response};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use takeover::run::lock::GIVE_UP;
use tower_service::Service;

/// When the Lease was renewed last, by both clocks: whichever says that it is long ago is believed.
#[derive(Clone)]
pub(crate) struct Held {
    clock: Arc<dyn Clock>,
    renewed: Arc<Mutex<Option<(Duration, Timestamp)>>>,
}

impl Held {
    /// Not yet.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, renewed: Arc::default() }
    }

    /// Now, for [`Self::renewed`].
    pub(crate) fn moment(&self) -> (Duration, Timestamp) {
        (self.clock.elapsed(), self.clock.now())
    }

    /// A renewal that was sent at that moment is confirmed.
    pub(crate) fn renewed(&self, moment: (Duration, Timestamp)) {
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(moment);
    }

    /// Whether nobody else can have it.
    fn is_sure(&self) -> bool {
        let renewed = *self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((elapsed, at)) = renewed else { return false };
        let (now_elapsed, now) = self.moment();
        // A wall clock that was set back says nothing that can be trusted.
        let wall = Duration::try_from(now.duration_since(at)).unwrap_or(Duration::MAX);
        now_elapsed.saturating_sub(elapsed).max(wall) < GIVE_UP
    }
}

/// Why a request was not sent.
#[derive(Debug, thiserror::Error)]
#[error("the Lease was not renewed in time, so that another controller may act: nothing is sent")]
struct NotHeld;

/// The client, for what is done as the one that acts.
pub(crate) fn fenced(client: Client, held: Held) -> Client {
    let namespace = client.default_namespace().to_owned();
    Client::new(Fence { client, held }, namespace)
}

struct Fence {
    client: Client,
    held: Held,
}

impl Service<Request<Body>> for Fence {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = kube::Result<Response<Body>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        // The client waits in `send`.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, held) = (self.client.clone(), self.held.clone());
        Box::pin(async move {
            if request.method() != Method::GET && !held.is_sure() {
                return Err(kube::Error::Service(Box::new(NotHeld)));
            }
            client.send(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use helm_rs::cluster::ManualClock;

    #[test]
    fn a_lease_is_sure_for_as_long_as_nobody_may_take_it() {
        let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
        let held = Held::new(Arc::clone(&clock) as Arc<dyn Clock>);
        assert!(!held.is_sure(), "never held");
        let sent = held.moment();
        clock.advance(Duration::from_secs(2));
        held.renewed(sent);
        assert!(held.is_sure());
        clock.advance(Duration::from_secs(7));
        assert!(held.is_sure(), "9 s after the renewal was sent");
        clock.advance(Duration::from_secs(1));
        assert!(!held.is_sure(), "10 s after it was sent, whenever it was confirmed");
        held.renewed(held.moment());
        assert!(held.is_sure());
    }
}
