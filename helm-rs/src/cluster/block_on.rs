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
///
/// That may be a thread on which a task of tokio is being polled, as templates look things up in the
/// middle of an action. Tokio's resources then answer for so many times at most before the task
/// should yield (`tokio::task::coop`), which it cannot do from here: they are asked without limit.
pub fn block_on<F: Future>(future: F) -> F::Output {
    #[cfg(feature = "network")]
    let future = tokio::task::unconstrained(future);
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

    /// Tokio counts what is ready at once, also in one task's poll, and then says that it is not.
    #[cfg(feature = "network")]
    #[test]
    fn within_a_task_there_is_no_limit() {
        let (done, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let sum = runtime.block_on(async {
                let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
                (0..1000).for_each(|number| sender.send(number).unwrap());
                block_on(async {
                    let mut sum = 0;
                    for _ in 0..1000 {
                        sum += receiver.recv().await.unwrap_or_default();
                    }
                    sum
                })
            });
            done.send(sum).unwrap();
        });
        assert_eq!(end.recv_timeout(Duration::from_secs(30)), Ok(499_500));
    }

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
