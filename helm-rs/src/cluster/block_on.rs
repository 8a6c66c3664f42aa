//! Running a future without a runtime: for the in-memory cluster, which never waits for a network.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::block_on;
    use crate::cluster::memory::{MemoryCluster, MemoryOptions};
    use crate::cluster::{Cluster, Kind, ManualClock, WatchQuery};

    #[test]
    fn a_watch_runs_out_without_a_runtime() {
        let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
        let cluster = MemoryCluster::new(clock.clone(), MemoryOptions::default());
        let ended = block_on(async {
            let discovery = cluster.discovery(false).await?;
            let pods = discovery.resource(&Kind::new("v1", "Pod")).cloned().unwrap_or_default();
            let query = WatchQuery { timeout_seconds: 3, ..WatchQuery::default() };
            cluster.watch(&pods, &query).await?.next().await
        });
        assert_eq!(ended.unwrap(), None);
        assert_eq!(crate::cluster::Clock::elapsed(&*clock), Duration::from_secs(3));
    }
}
