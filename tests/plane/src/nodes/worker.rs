//! One worker per pod: looks at the pod, does what is next, writes the status.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::context::{Context, NodeState};
use super::environment::{self, Facts};
use super::life::{Ended, Life, State, is_sidecar};
use super::objects::{Missing, Objects};
use super::status::{covers, initialized, now, status};
use super::{API_SERVER, EXIT_CODE, NodeHealth, PodHealth, execute, volumes};

/// How often something that is not watched (a missing Secret, a silent node) is looked at again.
const AGAIN: Duration = Duration::from_millis(400);
/// A crashed container's first wait; doubled at every crash up to [`LONGEST_BACKOFF`]. A kubelet
/// begins with ten times as much, which no test would wait for.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

/// Gives every pod on a node of ours a worker, for ever.
pub(super) async fn watch_pods(context: Arc<Context>) {
    let api = Api::<Pod>::all(context.client.clone());
    let bound = watcher::Config::default().fields("spec.nodeName!=");
    let mut events = std::pin::pin!(watcher(api, bound).default_backoff());
    let mut workers: BTreeMap<String, watch::Sender<Arc<Pod>>> = BTreeMap::new();
    let mut seen: Vec<String> = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitApply(pod)) => {
                seen.push(pod.uid().unwrap_or_default());
                route(&context, &mut workers, pod);
            }
            Ok(Event::InitDone) => workers.retain(|uid, _| seen.contains(uid)),
            Ok(Event::Apply(pod)) => route(&context, &mut workers, pod),
            // A worker whose sender is gone ends its pod's processes.
            Ok(Event::Delete(pod)) => drop(workers.remove(&pod.uid().unwrap_or_default())),
            Err(_) => {}
        }
    }
}

fn route(
    context: &Arc<Context>,
    workers: &mut BTreeMap<String, watch::Sender<Arc<Pod>>>,
    pod: Pod,
) {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    if context.node(node).is_none() {
        return;
    }
    let uid = pod.uid().unwrap_or_default();
    let pod = Arc::new(pod);
    if let Some(worker) = workers.get(&uid) {
        worker.send_replace(pod);
        return;
    }
    let (sender, receiver) = watch::channel(Arc::clone(&pod));
    workers.insert(uid, sender);
    tokio::spawn(Worker::new(context, &pod).run(receiver));
}

/// What a worker does after a step.
enum Next {
    /// Waits for a change of the pod or the end of a process.
    Wait,
    /// The same, but not longer than this.
    WaitAtMost(Duration),
    /// The pod is gone.
    End,
}

struct Worker {
    context: Arc<Context>,
    life: Life,
    namespace: String,
    name: String,
    uid: String,
    node: String,
    folder: PathBuf,
    executes: bool,
    host_network: bool,
    /// Rung when a process ends.
    wake: Arc<Notify>,
    /// The last status written, to write none twice while the watch lags behind.
    written: Value,
}

impl Worker {
    fn new(context: &Arc<Context>, pod: &Pod) -> Self {
        let executes = execute::executes(context, pod);
        let namespace = pod.namespace().unwrap_or_default();
        let name = pod.name_any();
        let spec = pod.spec.as_ref();
        let worker = Self {
            life: Life::adopt(pod, executes),
            folder: context.pod_folder(&namespace, &name),
            node: spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            host_network: spec.and_then(|spec| spec.host_network).unwrap_or(false),
            uid: pod.uid().unwrap_or_default(),
            context: Arc::clone(context),
            namespace,
            name,
            executes,
            wake: Arc::default(),
            written: Value::Null,
        };
        if let Some(address) = &worker.life.address
            && !worker.host_network
        {
            context.keep_address(&worker.node, address);
        }
        worker
    }

    async fn run(mut self, mut pods: watch::Receiver<Arc<Pod>>) {
        let wake = Arc::clone(&self.wake);
        loop {
            let pod = Arc::clone(&pods.borrow_and_update());
            let limit = match self.step(&pod).await {
                Next::End => break,
                Next::Wait => Duration::from_hours(1),
                Next::WaitAtMost(limit) => limit,
            };
            tokio::select! {
                changed = pods.changed() => if changed.is_err() { break },
                () = wake.notified() => {}
                () = tokio::time::sleep(limit) => {}
            }
        }
        self.forget();
    }

    /// Kills what still runs and gives the address and the folder back.
    fn forget(&mut self) {
        self.life.containers.clear();
        if let Some(address) = self.life.address.take()
            && !self.host_network
        {
            self.context.free_address(&self.node, &address);
        }
        if self.executes {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }

    async fn step(&mut self, pod: &Pod) -> Next {
        let (Some(node), Some(spec)) = (self.context.node(&self.node), &pod.spec) else {
            return Next::Wait;
        };
        let health = PodHealth::of(pod);
        if node.health == NodeHealth::Silent {
            return Next::WaitAtMost(AGAIN);
        }
        if pod.metadata.deletion_timestamp.is_some() {
            if health == PodHealth::Hang {
                return Next::WaitAtMost(AGAIN);
            }
            return self.end(pod, spec, &node).await;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return Next::Wait;
        }
        let next = self.advance(pod, spec, health, &node).await;
        if !self.publish(pod, health, &node).await {
            return Next::WaitAtMost(AGAIN);
        }
        next
    }

    /// Does what is next in the pod's life.
    async fn advance(
        &mut self,
        pod: &Pod,
        spec: &PodSpec,
        health: PodHealth,
        node: &NodeState,
    ) -> Next {
        if self.life.start_time.is_none() {
            self.life.start_time = Some(now());
        }
        if health == PodHealth::Hang {
            return Next::WaitAtMost(AGAIN);
        }
        if health == PodHealth::Image {
            for container in &spec.containers {
                let message = format!("Back-off pulling image {:?}", container.image);
                let life = self.life.container(&container.name);
                if !life.is_running() {
                    life.state = State::Waiting { reason: "ImagePullBackOff", message };
                }
            }
            return Next::Wait;
        }
        if !self.has_address(node) {
            return Next::WaitAtMost(Duration::from_millis(50));
        }
        let mut objects = Objects::new(&self.context.client, &self.namespace);
        let facts = self.facts(pod, node);
        if !self.life.volumes_ready {
            match self.set_up_volumes(&mut objects, pod, spec, &facts).await {
                Ok(()) => self.life.volumes_ready = true,
                Err(Missing(message)) => {
                    for container in &spec.containers {
                        let message = message.clone();
                        let life = self.life.container(&container.name);
                        if !life.is_running() {
                            life.state = State::Waiting { reason: "ContainerCreating", message };
                        }
                    }
                    return Next::WaitAtMost(AGAIN);
                }
            }
        }
        let mut step = Step { objects, facts, health, soonest: None };
        for container in spec.init_containers.iter().flatten() {
            let policy = match (is_sidecar(container), spec.restart_policy.as_deref()) {
                (true, _) => Policy::Always,
                (false, Some("Never")) => Policy::Never,
                (false, _) => Policy::OnFailure,
            };
            self.drive(&mut step, pod, container, policy, true).await;
            let life = self.life.container(&container.name);
            let passed = if is_sidecar(container) {
                life.is_running() || life.last.is_some()
            } else {
                life.exit_code() == Some(0)
            };
            if !passed {
                return step.next();
            }
        }
        if !initialized(spec, &self.life) {
            return step.next();
        }
        let policy = match spec.restart_policy.as_deref() {
            Some("Never") => Policy::Never,
            Some("OnFailure") => Policy::OnFailure,
            _ => Policy::Always,
        };
        for container in &spec.containers {
            self.drive(&mut step, pod, container, policy, false).await;
        }
        self.end_sidecars(spec);
        step.next()
    }

    fn has_address(&mut self, node: &NodeState) -> bool {
        if self.life.address.is_none() {
            self.life.address = if self.host_network {
                Some(node.address())
            } else {
                self.context.take_address(&self.node)
            };
        }
        self.life.address.is_some()
    }

    fn facts(&self, pod: &Pod, node: &NodeState) -> Facts {
        let asked = pod.annotations().get(API_SERVER).and_then(|address| address.parse().ok());
        Facts {
            pod_address: self.life.address.clone().unwrap_or_default(),
            node_address: node.address(),
            api_server: asked.unwrap_or_else(|| self.context.pod_api_server()),
        }
    }

    async fn set_up_volumes(
        &self,
        objects: &mut Objects,
        pod: &Pod,
        spec: &PodSpec,
        facts: &Facts,
    ) -> Result<(), Missing> {
        let mut contents = Vec::new();
        for volume in spec.volumes.iter().flatten() {
            let content = volumes::resolve(objects, pod, volume, facts).await?;
            contents.push((volume.name.clone(), content));
        }
        if self.executes {
            execute::write_volumes(&self.context, &self.folder, pod, contents).await?;
        }
        Ok(())
    }

    /// Takes one container as far as it can go now.
    async fn drive(
        &mut self,
        step: &mut Step,
        pod: &Pod,
        container: &Container,
        policy: Policy,
        init: bool,
    ) {
        let program = execute::program(&self.context, pod, container);
        if let Some((code, message)) =
            self.life.container(&container.name).process.as_ref().and_then(|p| p.ended(container))
        {
            let reason = if code == 0 { "Completed" } else { "Error" };
            self.life.container(&container.name).end(code, reason, message);
        }
        let crash = step.health == PodHealth::Crash && !init;
        let life = self.life.container(&container.name);
        let simulated = life.process.is_none() && program.is_none();
        if life.is_running() && simulated && (policy != Policy::Always || crash) {
            // The running state was written in the step before.
            let code = if crash { 1 } else { wanted_exit_code(pod) };
            let reason = if code == 0 { "Completed" } else { "Error" };
            life.end(code, reason, String::new());
        }
        self.restart_if_due(step, container, policy);
        let life = self.life.container(&container.name);
        let due = life.retry_at.is_none_or(|at| at <= Instant::now());
        if matches!(life.state, State::Waiting { .. }) && due {
            life.retry_at = None;
            self.launch(step, pod, container, program.as_deref()).await;
            let life = self.life.container(&container.name);
            let simulated = life.is_running() && life.process.is_none();
            if simulated && init && policy != Policy::Always {
                let code = wanted_exit_code(pod);
                let reason = if code == 0 { "Completed" } else { "Error" };
                life.end(code, reason, String::new());
                self.restart_if_due(step, container, policy);
            } else if simulated && (policy != Policy::Always || crash) {
                step.soon(Duration::from_millis(30));
            }
        }
        if let Some(at) = self.life.container(&container.name).retry_at {
            step.soon(at.saturating_duration_since(Instant::now()));
        }
    }

    /// An ended container that is to run again waits for its turn.
    fn restart_if_due(&mut self, step: &mut Step, container: &Container, policy: Policy) {
        let life = self.life.container(&container.name);
        let State::Terminated(ended) = &life.state else { return };
        let again = match policy {
            Policy::Always => true,
            Policy::OnFailure => ended.code != 0,
            Policy::Never => false,
        };
        if !again {
            return;
        }
        let ended: Ended = ended.clone();
        let exponent = u32::try_from(life.restarts).unwrap_or(0).min(8);
        let wait =
            FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(exponent)).min(LONGEST_BACKOFF);
        let message = format!("back-off {}s restarting failed container", wait.as_secs());
        life.state = State::Waiting { reason: "CrashLoopBackOff", message };
        life.last = Some(ended);
        life.restarts += 1;
        life.retry_at = Some(Instant::now() + wait);
        step.soon(wait);
    }

    /// Starts a container whose turn it is.
    async fn launch(
        &mut self,
        step: &mut Step,
        pod: &Pod,
        container: &Container,
        program: Option<&std::path::Path>,
    ) {
        let resolved = environment::resolve(&mut step.objects, pod, container, &step.facts).await;
        let environment = match resolved {
            Ok(environment) => environment,
            Err(Missing(message)) => {
                let reason = "CreateContainerConfigError";
                self.life.container(&container.name).state = State::Waiting { reason, message };
                step.soon(AGAIN);
                return;
            }
        };
        let restarts = self.life.container(&container.name).restarts;
        let process = match program {
            None => None,
            Some(program) => {
                let place = execute::Place { folder: &self.folder, restarts, wake: &self.wake };
                match execute::start(&self.context, &place, pod, container, program, &environment) {
                    Ok(process) => Some(process),
                    Err(message) => {
                        let reason = "RunContainerError";
                        let life = self.life.container(&container.name);
                        life.state = State::Waiting { reason, message };
                        step.soon(LONGEST_BACKOFF);
                        return;
                    }
                }
            }
        };
        let life = self.life.container(&container.name);
        life.process = process;
        life.state = State::Running { since: now() };
    }

    /// Sidecars end when the last main container has.
    fn end_sidecars(&mut self, spec: &PodSpec) {
        let all_ended =
            spec.containers.iter().all(|c| self.life.container(&c.name).exit_code().is_some());
        if !all_ended {
            return;
        }
        for container in spec.init_containers.iter().flatten().filter(|c| is_sidecar(c)) {
            let life = self.life.container(&container.name);
            if life.is_running() {
                life.end(0, "Completed", String::new());
            }
        }
    }

    /// Ends a pod that is being deleted and deletes it for good.
    async fn end(&mut self, pod: &Pod, spec: &PodSpec, node: &NodeState) -> Next {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(30);
        self.end_processes(spec, Duration::from_secs(u64::try_from(grace).unwrap_or(0))).await;
        // The Job controller counts a pod only when its phase says how it ended.
        let tracked = pod.metadata.finalizers.as_ref().is_some_and(|list| !list.is_empty());
        if tracked || self.executes {
            for container in &spec.containers {
                let life = self.life.container(&container.name);
                if life.exit_code().is_none() {
                    life.end(137, "Error", String::new());
                }
            }
            self.publish(pod, PodHealth::Ready, node).await;
        }
        let mut params = DeleteParams::default().grace_period(0);
        params.preconditions =
            Some(Preconditions { uid: Some(self.uid.clone()), resource_version: None });
        let api = Api::<Pod>::namespaced(self.context.client.clone(), &self.namespace);
        match api.delete(&self.name, &params).await {
            Ok(_) => Next::End,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Next::End,
            Err(_) => Next::WaitAtMost(AGAIN),
        }
    }

    /// SIGTERM, the grace period, SIGKILL.
    async fn end_processes(&mut self, spec: &PodSpec, grace: Duration) {
        let deadline = Instant::now() + grace;
        for process in self.life.containers.values().filter_map(|life| life.process.as_ref()) {
            process.terminate();
        }
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        for container in containers {
            let life = self.life.container(&container.name);
            while let Some(process) = &life.process {
                if let Some((code, message)) = process.ended(container) {
                    let reason = if code == 0 { "Completed" } else { "Error" };
                    life.end(code, reason, message);
                    break;
                }
                if Instant::now() >= deadline {
                    process.kill();
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// Writes the status when it differs; false when the API server did not take it.
    async fn publish(&mut self, pod: &Pod, health: PodHealth, node: &NodeState) -> bool {
        let wanted = status(pod, &self.life, health, &node.address());
        let current = serde_json::to_value(&pod.status).unwrap_or_default();
        if wanted == self.written || covers(&current, &wanted) {
            return true;
        }
        // The UID makes the write fail on a pod of the same name that came after.
        let patch = json!({"metadata": {"uid": self.uid}, "status": wanted});
        let api = Api::<Pod>::namespaced(self.context.client.clone(), &self.namespace);
        let written =
            api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await;
        match written {
            Ok(_) => {
                self.written = wanted;
                true
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
            Err(_) => false,
        }
    }
}

/// Whether an ended container runs again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Always,
    OnFailure,
    Never,
}

/// What one step needs, and when the next is due.
struct Step {
    objects: Objects,
    facts: Facts,
    health: PodHealth,
    soonest: Option<Duration>,
}

impl Step {
    fn soon(&mut self, wait: Duration) {
        self.soonest = Some(self.soonest.map_or(wait, |soonest| soonest.min(wait)));
    }

    fn next(&self) -> Next {
        self.soonest.map_or(Next::Wait, Next::WaitAtMost)
    }
}

fn wanted_exit_code(pod: &Pod) -> i32 {
    pod.annotations().get(EXIT_CODE).and_then(|code| code.parse().ok()).unwrap_or(0)
}
