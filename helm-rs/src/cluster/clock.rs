//! Time as an input.

use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

/// Where time comes from, and how to wait.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, which never goes backwards: for timeouts.
    fn elapsed(&self) -> Duration;

    /// Waits.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// A clock that moves only when it is told to or waited on: sleeping takes no time and moves it.
#[derive(Debug)]
pub struct ManualClock {
    start: Timestamp,
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    /// A clock that stands at `start`.
    pub const fn new(start: Timestamp) -> Self {
        Self { start, elapsed: Mutex::new(Duration::ZERO) }
    }

    /// Moves the clock.
    pub fn advance(&self, by: Duration) {
        let mut elapsed = self.elapsed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *elapsed = elapsed.saturating_add(by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.start.checked_add(self.elapsed()).unwrap_or(Timestamp::MAX)
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.advance(duration);
        Box::pin(std::future::ready(()))
    }
}
