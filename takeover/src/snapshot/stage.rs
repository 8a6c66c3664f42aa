//! A snapshot as a cluster on which everything can be tried.

use std::io::Read;
use std::sync::Arc;

use helm_rs::cluster::memory::{LoadError, MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::{About, End, Limits, SnapshotError, read};
use helm_rs::cluster::{CallRecord, Clock, Cluster, Fault, Faults, ManualClock};
use jiff::Timestamp;
use serde_json::Value;

/// Why there is no stage.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The file.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// An object.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The time at which it was taken.
    #[error("its time is none: {0:?}")]
    Time(String),
}

/// A cluster in memory, as it was when its snapshot was taken. Its clock stands still but for what
/// is waited for.
pub struct Stage {
    /// What the snapshot says of itself.
    pub about: About,
    /// How it ends.
    pub end: End,
    /// The clock.
    pub clock: Arc<ManualClock>,
    memory: Arc<MemoryCluster>,
    faults: Arc<Faults<'static>>,
}

impl Stage {
    /// The cluster of a snapshot.
    ///
    /// # Errors
    /// [`StageError`]
    pub fn open(input: impl Read, limits: &Limits) -> Result<Self, StageError> {
        let mut objects = Vec::new();
        let (about, end) = read(input, limits, |_| {}, |object| objects.push(object))?;
        let place = |(index, object)| (format!("line {}", index + 2), object);
        let objects = objects.into_iter().enumerate().map(place).collect();
        Self::of(about, end, objects)
    }

    /// The cluster of objects, each with the place that it was found at. Where
    /// `about` does not say what was served, it is what Kubernetes 1.36 serves, and the CRDs.
    ///
    /// # Errors
    /// [`StageError`]
    pub fn of(about: About, end: End, objects: Vec<(String, Value)>) -> Result<Self, StageError> {
        let taken = about.taken.parse::<Timestamp>();
        let taken = taken.map_err(|_| StageError::Time(about.taken.clone()))?;
        let clock = Arc::new(ManualClock::new(taken));
        let options = MemoryOptions {
            identity: about.subject(),
            version: about.server.clone(),
            controllers: true,
            served: Some(about.discovery()).filter(|served| !served.resources().is_empty()),
            ..MemoryOptions::default()
        };
        let memory = MemoryCluster::new(Arc::clone(&clock) as Arc<dyn Clock>, options);
        memory.load(objects)?;
        let memory = Arc::new(memory);
        let faults = Faults::shared(Arc::clone(&memory) as _, Arc::clone(&clock) as _);
        Ok(Self { about, end, clock, memory, faults: Arc::new(faults) })
    }

    /// The cluster, as programs see it.
    pub fn cluster(&self) -> Arc<dyn Cluster> {
        Arc::clone(&self.faults) as _
    }

    /// Fails a call to come.
    pub fn plan_fault(&self, fault: Fault) {
        self.faults.plan(fault);
    }

    /// The cluster as a program sees it that is started now: what was killed is over, and calls are
    /// counted anew.
    pub fn restart(&mut self) {
        let memory: Arc<dyn Cluster> = Arc::clone(&self.memory) as _;
        self.faults = Arc::new(Faults::shared(memory, Arc::clone(&self.clock) as _));
    }

    /// Every call since the beginning, or the last restart.
    pub fn timeline(&self) -> Vec<CallRecord> {
        self.faults.timeline()
    }

    /// What a rehearsal on it cannot know, for people: what could not be read, and what is not as
    /// it was.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.end.unread.iter().chain(&self.end.notes).map(String::as_str)
    }

    /// Every object as it is now.
    pub fn objects(&self) -> Vec<Arc<Value>> {
        self.memory.objects()
    }
}
