//! On what a command works: a live cluster, or a snapshot's in memory.

use std::path::Path;

use cilium::pinned::{CHART, Pinned, pin};
use clap::Args;
use helm_rs::chart::{Limits, load_archive, load_files, read_directory};
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use helm_rs::repo::Digest;
use takeover::plan::RehearsalAbout;

use crate::cache;
use crate::commands::etcd::EtcdFlags;
use crate::commands::{Context, snapshot};
#[cfg(feature = "network")]
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::session::Host;

/// Bytes that a chart's archive may have.
const MAX_ARCHIVE: u64 = 100 * 1024 * 1024;
/// The flags of a live cluster.
#[cfg(feature = "network")]
const LIVE: [&str; 10] = [
    "kubeconfig",
    "kube_context",
    "kube_apiserver",
    "kube_ca_file",
    "kube_tls_server_name",
    "kube_insecure_skip_tls_verify",
    "kube_token",
    "kube_as_user",
    "kube_as_group",
    "request_timeout",
];
#[cfg(not(feature = "network"))]
const LIVE: [&str; 0] = [];

/// The cluster that is meant.
#[derive(Debug, Default, Args)]
pub(crate) struct PlaceFlags {
    /// Rehearse: work in memory on a snapshot of a cluster, and touch no cluster (ichor snapshot
    /// take; output of kubectl get and etcd snapshots too)
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Rehearsal",
        required = cfg!(not(feature = "network")),
        conflicts_with_all = LIVE
    )]
    pub(super) snapshot: Option<String>,
    /// Rehearse with this chart, an archive or a folder [default: the pinned one]
    #[arg(long, value_name = "PATH", help_heading = "Rehearsal", requires = "snapshot")]
    pub(super) chart: Option<String>,
    #[command(flatten, next_help_heading = "Rehearsal")]
    etcd: EtcdFlags,
    #[cfg(feature = "network")]
    #[command(flatten)]
    cluster: ClusterFlags,
}

impl PlaceFlags {
    /// The cluster, whose CNI is ichor's to look after.
    ///
    /// # Errors
    /// There is none, or a TalosCluster says that its CNI is not ichor's.
    pub(super) fn open(&self, context: &mut Context<'_>) -> Result<Host, CommandError> {
        let host = self.open_any(context)?;
        #[cfg(feature = "controller")]
        crate::commands::managed::check_managed(&host, context)?;
        Ok(host)
    }

    /// The cluster, whoever looks after its CNI.
    pub(crate) fn open_any(&self, context: &mut Context<'_>) -> Result<Host, CommandError> {
        if let Some(file) = &self.snapshot {
            return snapshot::open(file, &self.etcd, context).map(Host::stage);
        }
        self.etcd.check_unused()?;
        #[cfg(feature = "network")]
        return Host::open(&self.cluster, context);
        #[cfg(not(feature = "network"))]
        Err(CommandError::new("this build reaches no cluster: name a file with --snapshot"))
    }

    /// Whether a file stands for the cluster.
    #[cfg(feature = "controller")]
    pub(crate) const fn is_rehearsal(&self) -> bool {
        self.snapshot.is_some()
    }

    /// What is said of a rehearsal; none on a live cluster.
    pub(super) fn about(&self, host: &Host) -> Option<RehearsalAbout> {
        let (stage, file) = (host.as_stage()?, self.snapshot.as_ref()?);
        let mut about = stage.rehearsal(file);
        if let Some(chart) = &self.chart {
            chart.clone_into(&mut about.chart);
        }
        Some(about)
    }

    /// What is said of a rehearsal with a chart.
    pub(super) fn with_chart(&self, host: &Host, pinned: &Pinned) -> Option<RehearsalAbout> {
        let mut about = self.about(host)?;
        let is_pinned = pin(cilium::pinned::LOCK).is_ok_and(|pin| pin.digest == pinned.digest);
        if !is_pinned {
            about.notes.push(format!(
                "not the pinned chart: a rehearsal only ({} {}, {}); ichor takes no cluster over \
                 with it",
                pinned.chart.name(),
                pinned.chart.metadata.version,
                pinned.digest
            ));
        }
        Some(about)
    }

    /// The chart: the pinned one, or that of `--chart`.
    pub(super) fn pinned(&self, context: &mut Context<'_>) -> Result<Pinned, CommandError> {
        let fail = |error: &dyn std::error::Error| CommandError::new(error_chain(&error));
        if let Some(path) = &self.chart {
            return other_chart(Path::new(path))
                .map_err(|why| CommandError::new(format_args!("--chart {path}: {why}")));
        }
        let pin = pin(cilium::pinned::LOCK).map_err(|error| fail(&error))?;
        let archive = cache::resolve(&pin, MAX_ARCHIVE, context);
        let archive = archive.map_err(|error| match self.snapshot {
            None => error,
            Some(_) => error.hint(format!(
                "name a chart with --chart PATH, or put {} into a folder and name it in \
                 ICHOR_CHART_DIR",
                pin.file_name()
            )),
        })?;
        Pinned::load(&pin, &archive.bytes, &Limits::default(), &mut Vec::new())
            .map_err(|error| fail(&error))
    }
}

/// Takes away what a command does not rehearse.
pub(super) fn no_rehearsal(command: clap::Command) -> clap::Command {
    let not_there: &[&str] = match command.get_name() {
        "run" | "set" | "upgrade" => &["snapshot", "chart"],
        "manifest" | "restore" | "get" => &["chart"],
        _ => &[],
    };
    command.mut_subcommands(no_rehearsal).mut_args(|flag| match flag.get_id().as_str() {
        id if not_there.contains(&id) => flag.hide(true).value_parser(not_rehearsed),
        _ => flag,
    })
}

fn not_rehearsed(_: &str) -> Result<String, String> {
    Err("not for this command, but for ichor adopt --cilium-only --snapshot FILE".to_owned())
}

/// A chart that no pin vouches for. The digest is that of its archive's bytes; of a folder, that of
/// its files by path, each with its length.
fn other_chart(path: &Path) -> Result<Pinned, String> {
    let (limits, mut warnings) = (Limits::default(), Vec::new());
    let text = |error: &dyn std::error::Error| error_chain(&error);
    let (chart, digest) = if path.is_dir() {
        let files = read_directory(path, &limits, &mut warnings).map_err(|error| text(&error))?;
        let mut bytes = Vec::new();
        for file in &files {
            bytes.extend_from_slice(format!("{}\0{}\0", file.name, file.data.len()).as_bytes());
            bytes.extend_from_slice(&file.data);
        }
        let chart = load_files(files, &limits, &mut warnings).map_err(|error| text(&error))?;
        (chart, Digest::of(&bytes))
    } else {
        let about = std::fs::metadata(path).map_err(|error| io_text(&error))?;
        if !about.is_file() || about.len() > MAX_ARCHIVE {
            return Err(format!("no folder, and no file of at most {MAX_ARCHIVE} bytes"));
        }
        let bytes = std::fs::read(path).map_err(|error| io_text(&error))?;
        let chart = load_archive(&bytes, &limits, &mut warnings).map_err(|error| text(&error))?;
        (chart, Digest::of(&bytes))
    };
    if chart.name() != CHART {
        return Err(format!("this is chart {}, and a takeover is of {CHART}", chart.name()));
    }
    Pinned::unpinned(chart, digest).map_err(|error| text(&error))
}
