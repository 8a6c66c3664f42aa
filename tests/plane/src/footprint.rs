//! Memory and CPU time of a plane's processes, from `/proc`.

use std::fs;
use std::time::{Duration, Instant};

/// Memory of some processes at one moment.
#[derive(Debug, Clone)]
pub struct Footprint {
    /// Name and resident memory in bytes.
    pub processes: Vec<(String, u64)>,
}

impl Footprint {
    /// Resident memory of all, in bytes.
    pub fn total(&self) -> u64 {
        self.processes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// Measures CPU time between two moments.
#[derive(Debug, Clone)]
pub struct Meter {
    processes: Vec<(String, u32)>,
    began: Instant,
    ticks: Vec<u64>,
}

/// `USER_HZ`, in which `/proc` tells CPU time; 100 on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

impl Meter {
    /// Starts measuring.
    pub fn new(processes: &[(String, u32)]) -> Self {
        Self {
            processes: processes.to_vec(),
            began: Instant::now(),
            ticks: processes.iter().map(|(_, pid)| cpu_ticks(*pid)).collect(),
        }
    }

    /// CPU used since the start as a share of one core, by process.
    pub fn cpu_shares(&self) -> Vec<(String, f64)> {
        let seconds = self.began.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        self.processes
            .iter()
            .zip(&self.ticks)
            .map(|((name, pid), before)| {
                let used = cpu_ticks(*pid).saturating_sub(*before) as f64 / TICKS_PER_SECOND;
                (name.clone(), used / seconds)
            })
            .collect()
    }

    /// Memory now.
    pub fn footprint(&self) -> Footprint {
        let memory = |(name, pid): &(String, u32)| (name.clone(), resident_bytes(*pid));
        Footprint { processes: self.processes.iter().map(memory).collect() }
    }
}

/// `VmRSS` of `/proc/PID/status`; 0 when the process is gone.
fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

/// User and system time, fields 14 and 15 of `/proc/PID/stat`.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(") ") else { return 0 };
    rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
