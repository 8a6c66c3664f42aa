//! The Cilium that this version of ichor operates.

use helm_rs::chart::{Chart, Limits, LoadError, Warning, load_archive};
use helm_rs::repo::{Digest, Pin, PinError, Pins};

use crate::version::{Version, VersionError};

/// The file of pins, as it is in the repository.
pub static LOCK: &[u8] = include_bytes!("../../charts/cilium.lock");

/// The chart's name, and that of ichor's own release.
pub const CHART: &str = "cilium";
/// The name of ichor's release.
pub const RELEASE: &str = "cilium";
/// The namespace that the chart is rendered for, and the release's own.
pub const NAMESPACE: &str = "kube-system";
/// The namespace in which ichor keeps its records, lock, plan and backups.
pub const RECORD_NAMESPACE: &str = "ichor-system";
/// The name of the agent's DaemonSet, which the chart does not let anybody change.
pub const DAEMON_SET: &str = "cilium";
/// The agent's configuration.
pub const CONFIG_MAP: &str = "cilium-config";
/// The name of the agent's container.
pub const AGENT: &str = "cilium-agent";

/// Why there is no pinned chart.
#[derive(Debug, thiserror::Error)]
pub enum PinnedError {
    /// The file of pins cannot be read.
    #[error("the file of pinned charts")]
    Pins(#[from] PinError),
    /// The file of pins has no Cilium.
    #[error("the file of pinned charts names no chart {CHART}")]
    Missing,
    /// The archive's bytes are not the pinned ones.
    #[error("chart {CHART} {version}: digest mismatch: expected {expected}, got {actual}")]
    Digest {
        /// The pinned version.
        version: String,
        /// The digest in the pin.
        expected: Digest,
        /// The digest of the bytes.
        actual: Digest,
    },
    /// The archive does not load.
    #[error("chart {CHART} {version}")]
    Load {
        /// The pinned version.
        version: String,
        /// What is wrong with it.
        #[source]
        source: LoadError,
    },
    /// The chart installs no version that can be read.
    #[error("chart {CHART}: appVersion")]
    Version(#[from] VersionError),
}

/// The pinned chart, loaded.
#[derive(Clone, Debug)]
pub struct Pinned {
    /// The chart.
    pub chart: Chart,
    /// What it installs.
    pub version: Version,
    /// The digest of its archive.
    pub digest: Digest,
}

/// The pin of Cilium in a file of pins, [`LOCK`] usually.
///
/// # Errors
/// [`PinnedError::Pins`], [`PinnedError::Missing`]
pub fn pin(lock: &[u8]) -> Result<Pin, PinnedError> {
    Pins::parse(lock)?.find(CHART, None).cloned().ok_or(PinnedError::Missing)
}

impl Pinned {
    /// Loads the archive of a pin, from wherever its bytes came ([`helm_rs::repo::resolve`]).
    ///
    /// # Errors
    /// [`PinnedError`]; other bytes than the pinned ones are never loaded.
    pub fn load(
        pin: &Pin,
        archive: &[u8],
        limits: &Limits,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, PinnedError> {
        let actual = Digest::of(archive);
        if actual != pin.digest {
            let (version, expected) = (pin.version.clone(), pin.digest);
            return Err(PinnedError::Digest { version, expected, actual });
        }
        let chart = load_archive(archive, limits, warnings)
            .map_err(|source| PinnedError::Load { version: pin.version.clone(), source })?;
        Self::unpinned(chart, actual)
    }

    /// A chart that no pin vouches for, with a digest of it: for rehearsals.
    ///
    /// # Errors
    /// [`PinnedError::Version`]
    pub fn unpinned(chart: Chart, digest: Digest) -> Result<Self, PinnedError> {
        let version = chart.metadata.app_version.parse()?;
        Ok(Self { chart, version, digest })
    }
}
