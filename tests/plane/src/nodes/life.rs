//! What is known of a pod's containers.

use std::collections::BTreeMap;
use std::time::Instant;

use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::execute::Process;
use super::status::{format_time, now};

/// State of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Not started, or waiting to be started again.
    Waiting {
        /// CamelCase reason, as a kubelet gives it.
        reason: &'static str,
        message: String,
    },
    Running {
        since: String,
    },
    Terminated(Ended),
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) started: String,
    pub(super) finished: String,
}

/// One container.
#[derive(Debug)]
pub(super) struct ContainerLife {
    pub(super) state: State,
    pub(super) last: Option<Ended>,
    pub(super) restarts: i32,
    pub(super) process: Option<Process>,
    /// Not before this moment is it started again.
    pub(super) retry_at: Option<Instant>,
}

/// One pod.
#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) containers: BTreeMap<String, ContainerLife>,
    pub(super) address: Option<String>,
    pub(super) start_time: Option<String>,
    /// Everything that the volumes need was there.
    pub(super) volumes_ready: bool,
}

impl ContainerLife {
    pub(super) fn new() -> Self {
        Self {
            state: State::Waiting { reason: "ContainerCreating", message: String::new() },
            last: None,
            restarts: 0,
            process: None,
            retry_at: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// The exit code when the container has ended and is not to be started again.
    pub(super) fn exit_code(&self) -> Option<i32> {
        match &self.state {
            State::Terminated(ended) => Some(ended.code),
            _ => None,
        }
    }

    /// Marks the container as ended now.
    pub(super) fn end(&mut self, code: i32, reason: &str, message: String) {
        let started = match &self.state {
            State::Running { since } => since.clone(),
            _ => now(),
        };
        let reason = reason.to_owned();
        self.process = None;
        self.state = State::Terminated(Ended { code, reason, message, started, finished: now() });
    }
}

impl Life {
    /// Takes over a pod as its status tells, so that a restored pod goes on and does not restart.
    ///
    /// Processes of executed pods are gone with the plane they ran in; a kubelet that finds that
    /// after its own restart says the same as here.
    pub(super) fn adopt(pod: &Pod, executes: bool) -> Self {
        let mut life = Self::default();
        let Some(status) = &pod.status else { return life };
        life.address.clone_from(&status.pod_ip);
        life.start_time = status.start_time.as_ref().map(time_text);
        let statuses = status.init_container_statuses.iter().flatten();
        for status in statuses.chain(status.container_statuses.iter().flatten()) {
            let mut container = adopt_container(status);
            if executes && container.is_running() {
                let message = "the process ended with the plane that ran it".to_owned();
                container.end(137, "ContainerStatusUnknown", message);
            }
            life.volumes_ready |= !matches!(container.state, State::Waiting { .. });
            life.containers.insert(status.name.clone(), container);
        }
        if executes {
            // Its folder has to be made anew.
            life.volumes_ready = false;
        }
        life
    }

    /// A container by its name, made on first use.
    pub(super) fn container(&mut self, name: &str) -> &mut ContainerLife {
        self.containers.entry(name.to_owned()).or_insert_with(ContainerLife::new)
    }
}

fn adopt_container(status: &ContainerStatus) -> ContainerLife {
    let mut container = ContainerLife::new();
    container.restarts = status.restart_count;
    container.last = status.last_state.as_ref().and_then(ended);
    if let Some(state) = &status.state {
        if let Some(running) = &state.running {
            let since = running.started_at.as_ref().map_or_else(now, time_text);
            container.state = State::Running { since };
        } else if let Some(ended) = ended(state) {
            container.state = State::Terminated(ended);
        }
    }
    container
}

fn ended(state: &ContainerState) -> Option<Ended> {
    let terminated = state.terminated.as_ref()?;
    Some(Ended {
        code: terminated.exit_code,
        reason: terminated.reason.clone().unwrap_or_default(),
        message: terminated.message.clone().unwrap_or_default(),
        started: terminated.started_at.as_ref().map_or_else(now, time_text),
        finished: terminated.finished_at.as_ref().map_or_else(now, time_text),
    })
}

fn time_text(time: &Time) -> String {
    format_time(time.0)
}

/// True for an init container that goes on running beside the main ones.
pub(super) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
