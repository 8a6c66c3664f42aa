//! Every Job and pod of a hand-over, watched all the time: never two at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use tokio::task::JoinSet;

/// What was seen of the Jobs `ichor-cni` and their pods.
pub struct Observed {
    seen: Arc<Mutex<Seen>>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Seen {
    /// Jobs in the order in which they came, and when.
    jobs: Vec<(String, Instant)>,
    /// When the first of them was seen to have failed.
    failed: BTreeMap<String, Instant>,
    /// Jobs that are there now.
    live: Vec<String>,
    /// Pods that are at work now, by UID, with their names.
    at_work: BTreeMap<String, String>,
    /// Pods that ever were.
    pods: Vec<String>,
    /// Whether those of now are given up.
    given_up: bool,
    /// Where there were two.
    two: Vec<String>,
}

impl Seen {
    fn job(&mut self, job: &Job) {
        let uid = job.uid().unwrap_or_default();
        if !self.live.contains(&uid) {
            self.live.push(uid.clone());
            if self.live.len() > 1 {
                self.two.push(format!("Jobs {:?}", self.live));
            }
        }
        if !self.jobs.iter().any(|(known, _)| *known == uid) {
            self.jobs.push((uid.clone(), Instant::now()));
        }
        let conditions = job.status.iter().flat_map(|s| s.conditions.iter().flatten());
        for condition in conditions {
            if condition.type_ == "Failed" && condition.status == "True" {
                self.failed.entry(uid.clone()).or_insert_with(Instant::now);
            }
        }
    }

    fn pod(&mut self, pod: &Pod) {
        let uid = pod.uid().unwrap_or_default();
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Failed" | "Succeeded")) {
            self.at_work.remove(&uid);
            return;
        }
        let is_known = self.pods.contains(&uid);
        if !is_known && self.at_work.insert(uid.clone(), pod.name_any()).is_none() {
            self.pods.push(uid.clone());
            if std::mem::take(&mut self.given_up) {
                self.at_work.retain(|other, _| *other == uid);
            }
            if self.at_work.len() > 1 {
                self.two.push(format!("pods {:?}", self.at_work));
            }
        }
    }
}

impl Observed {
    /// Begins to watch.
    pub fn new(client: &Client) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut tasks = JoinSet::new();
        let namespace = cilium::pinned::NAMESPACE;
        let named = watcher::Config::default().fields("metadata.name=ichor-cni");
        let (jobs, state) = (Api::<Job>::namespaced(client.clone(), namespace), Arc::clone(&seen));
        tasks.spawn(async move {
            let mut events = std::pin::pin!(watcher(jobs, named).default_backoff());
            while let Some(event) = events.next().await {
                let mut seen = lock(&state);
                match event {
                    Ok(Event::Apply(job) | Event::InitApply(job)) => seen.job(&job),
                    Ok(Event::Delete(job)) => {
                        let uid = job.uid().unwrap_or_default();
                        seen.live.retain(|live| *live != uid);
                    }
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
            }
        });
        let labelled = watcher::Config::default().labels("job-name=ichor-cni");
        let (pods, state) = (Api::<Pod>::namespaced(client.clone(), namespace), Arc::clone(&seen));
        tasks.spawn(async move {
            let mut events = std::pin::pin!(watcher(pods, labelled).default_backoff());
            while let Some(event) = events.next().await {
                let mut seen = lock(&state);
                match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) => seen.pod(&pod),
                    Ok(Event::Delete(pod)) => {
                        seen.at_work.remove(&pod.uid().unwrap_or_default());
                    }
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
            }
        });
        Self { seen, _tasks: tasks }
    }

    /// How many Jobs there have been.
    pub fn jobs(&self) -> usize {
        lock(&self.seen).jobs.len()
    }

    /// Waits for Job number `count`, counted from 1; how long after the one before it had failed it
    /// came.
    pub async fn until_job(&self, count: usize, seconds: u64) -> Duration {
        let began = Instant::now();
        loop {
            {
                let seen = lock(&self.seen);
                if let Some((_, came)) = seen.jobs.get(count - 1) {
                    let before = count.checked_sub(2).and_then(|at| seen.jobs.get(at));
                    let failed = before.and_then(|(uid, _)| seen.failed.get(uid));
                    return failed.map_or(Duration::ZERO, |failed| came.duration_since(*failed));
                }
            }
            assert!(began.elapsed() < Duration::from_secs(seconds), "Job {count} does not come");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Pods that are at work now do not count any more: their node died, and nobody will say that they
    /// went.
    pub fn give_up_pods(&self) {
        lock(&self.seen).given_up = true;
    }

    /// Asserts that there never were two at once, and how many there were, of Jobs and of pods.
    pub fn assert_one_at_a_time(&self, jobs: usize) {
        let seen = lock(&self.seen);
        assert_eq!(seen.two, [""; 0], "two at once");
        assert_eq!((seen.jobs.len(), seen.pods.len()), (jobs, jobs), "Jobs and their pods");
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
