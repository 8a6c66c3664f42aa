//! A snapshot as a cluster on which everything can be tried.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use helm_rs::cluster::memory::{LoadError, MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::{About, End, Limits, Secrets, SnapshotError, Writer, read};
use helm_rs::cluster::{CallRecord, Clock, Cluster, Fault, Faults, ManualClock};
use jiff::Timestamp;
use serde_json::Value;

use super::digests::Digests;
use crate::plan::{Key, RehearsalAbout};

/// In the names of what says who may do what.
const RBAC: &str = ".rbac.authorization.k8s.io";

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
    /// The cluster itself: what is done on it is in no timeline.
    pub memory: Arc<MemoryCluster>,
    /// Those of the program that runs on it now.
    faults: Mutex<Arc<Faults<'static>>>,
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
    pub fn of(
        about: About,
        mut end: End,
        objects: Vec<(String, Value)>,
    ) -> Result<Self, StageError> {
        let taken = about.taken.parse::<Timestamp>();
        let taken = taken.map_err(|_| StageError::Time(about.taken.clone()))?;
        let clock = Arc::new(ManualClock::new(taken));
        // Half of the RBAC objects would deny what is granted.
        let has_rights = !end.unread.iter().any(|what| what.contains(RBAC));
        let identity = if has_rights {
            about.subject()
        } else {
            end.notes.push("rights are not checked: RBAC could not be read whole".to_owned());
            MemoryOptions::default().identity
        };
        let options = MemoryOptions {
            identity,
            version: about.server.clone(),
            controllers: true,
            served: Some(about.discovery()).filter(|served| !served.resources().is_empty()),
            ..MemoryOptions::default()
        };
        let memory = MemoryCluster::new(Arc::clone(&clock) as Arc<dyn Clock>, options);
        memory.load(objects)?;
        let memory = Arc::new(memory);
        let faults = Faults::shared(Arc::clone(&memory) as _, Arc::clone(&clock) as _);
        Ok(Self { about, end, clock, memory, faults: Mutex::new(Arc::new(faults)) })
    }

    fn faults(&self) -> Arc<Faults<'static>> {
        Arc::clone(&self.faults.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cluster, as programs see it.
    pub fn cluster(&self) -> Arc<dyn Cluster> {
        self.faults()
    }

    /// Fails a call to come.
    pub fn plan_fault(&self, fault: Fault) {
        self.faults().plan(fault);
    }

    /// The cluster as a program sees it that is started now: what was killed is over, and calls are
    /// counted anew.
    pub fn restart(&self) {
        let memory: Arc<dyn Cluster> = Arc::clone(&self.memory) as _;
        let faults = Arc::new(Faults::shared(memory, Arc::clone(&self.clock) as _));
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// Every call since the beginning, or the last restart.
    pub fn timeline(&self) -> Vec<CallRecord> {
        self.faults().timeline()
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

    /// What is said of a rehearsal on it; `snapshot` is what the user calls the file.
    pub fn rehearsal(&self, snapshot: &str) -> RehearsalAbout {
        let mut notes = vec![
            "answered in memory: rights are what the snapshot's RBAC objects give, admission \
             (webhooks, policies, quotas) is not asked, and workloads become ready at once"
                .to_owned(),
        ];
        if self.about.secrets == Secrets::Digests {
            notes.push("the snapshot holds the data of Secrets as keyed digests".to_owned());
        }
        let unread = self.end.unread.iter().map(|what| format!("not in the snapshot: {what}"));
        let notes_of = self.end.notes.iter().map(|what| format!("not as in the cluster: {what}"));
        notes.extend(unread.chain(notes_of));
        let (snapshot, taken) = (snapshot.to_owned(), self.about.taken.clone());
        RehearsalAbout { snapshot, taken, notes, ..RehearsalAbout::default() }
    }

    /// Writes a snapshot of what it is now: one that says that it comes of a rehearsal.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write<W: Write>(&self, program: &str, out: W) -> io::Result<W> {
        let mut about = self.about.clone();
        about.taken_by = format!("{program}, by a rehearsal");
        about.taken = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut writer = Writer::new(out, &about)?;
        let is_digested = about.secrets == Secrets::Digests;
        let mut digests = is_digested.then(|| Digests::new(Key(about.cluster.clone())));
        for mut object in self.objects() {
            if let Some(digests) = &mut digests {
                digests.object(Arc::make_mut(&mut object));
            }
            writer.object(&object)?;
        }
        let mut notes = self.end.notes.clone();
        notes.extend(digests.into_iter().flat_map(|digests| digests.notes));
        notes.push(format!(
            "this is what a rehearsal left of a snapshot of {}: no cluster was touched",
            self.about.taken
        ));
        notes.dedup();
        writer.finish(self.end.unread.clone(), notes)
    }
}
