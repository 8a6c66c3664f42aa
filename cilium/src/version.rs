//! Which Cilium runs, and whether ichor's pinned one may follow it.
//!
//! The rule: the live version is the agent image's tag, else the record's app version; if both
//! are there and disagree, refused. The live minor equals the pinned chart's, or is exactly one
//! lower, which is an upgrade. The cluster's Kubernetes minor must be one that the pinned Cilium
//! is tested with. (Takeover rules, section 2, point 1.)

use std::fmt;
use std::str::FromStr;

/// A version of Cilium: three numbers and what a build appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number, which the rules are about.
    pub minor: u64,
    /// The third number; 0 when it is not said.
    pub patch: u64,
    /// What follows the numbers, with its `-` or `+`; often empty.
    pub suffix: String,
}

/// Why no version can be told, or why the live one is not for ichor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// A text is no version.
    #[error("{text:?} is not a version")]
    NoVersion {
        /// The text.
        text: String,
    },
    /// Neither the image nor a record tells.
    #[error(
        "the version of the running Cilium cannot be told: its image {image:?} has no version as \
         tag, and there is no release record that names one; run an image with a version tag \
         (quay.io/cilium/cilium:v1.x.y), then try again"
    )]
    Unknown {
        /// The agent's image, empty when there is none.
        image: String,
    },
    /// Image and record disagree.
    #[error(
        "the agent's image {image} is version {live}, but the release record says {recorded}: \
         bring both together with the tool that installed Cilium (an upgrade to one version), \
         then try again"
    )]
    Disagree {
        /// The agent's image.
        image: String,
        /// The version in its tag.
        live: Version,
        /// The record's app version.
        recorded: Version,
    },
    /// The live one is newer.
    #[error(
        "the running Cilium {live} is newer than {pinned}, which this ichor operates; taking it \
         over would be a downgrade: use a newer ichor, or go on with the tool that installed it"
    )]
    Newer {
        /// The live version.
        live: Version,
        /// The pinned version.
        pinned: Version,
    },
    /// The live one is too old.
    #[error(
        "the running Cilium {live} is more than one minor version older than {pinned}, which this \
         ichor operates: first upgrade it, one minor version at a time, to {} with the tool that \
         installed it",
        previous(pinned)
    )]
    TooOld {
        /// The live version.
        live: Version,
        /// The pinned version.
        pinned: Version,
    },
    /// Kubernetes is not one that the pinned Cilium is tested with.
    #[error(
        "Kubernetes {kubernetes} is not among those that Cilium {pinned} is tested with \
         (1.{first} to 1.{last})"
    )]
    Kubernetes {
        /// The server's version, as it says it.
        kubernetes: String,
        /// The pinned version.
        pinned: Version,
        /// The lowest tested minor.
        first: u64,
        /// The highest tested minor.
        last: u64,
    },
    /// No table for the pinned Cilium.
    #[error("it is not known which Kubernetes versions Cilium {pinned} is tested with")]
    NoTable {
        /// The pinned version.
        pinned: Version,
    },
}

/// Which Kubernetes minors (of major 1) a minor of Cilium 1 is tested with, both ends included.
const TESTED: [(u64, u64, u64); 3] = [(18, 30, 33), (19, 32, 35), (20, 33, 36)];

/// What follows a live version when the pinned one is taken over to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The versions are equal.
    Same,
    /// The minors are equal, something below differs.
    Patch {
        /// The live version.
        from: Version,
        /// The pinned version.
        to: Version,
    },
    /// The live minor is exactly one lower.
    Upgrade {
        /// The live version.
        from: Version,
        /// The pinned version.
        to: Version,
    },
}

fn previous(version: &Version) -> String {
    format!("{}.{}", version.major, version.minor.saturating_sub(1))
}

impl FromStr for Version {
    type Err = VersionError;

    /// Reads `v1.19.6`, `1.20.0-rc.1`, `v1.20` and the like.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let none = || VersionError::NoVersion { text: text.to_owned() };
        let bare = text.strip_prefix('v').unwrap_or(text);
        let end = bare.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(bare.len());
        let (numbers, suffix) = bare.split_at(end);
        if !suffix.is_empty() && !suffix.starts_with(['-', '+']) {
            return Err(none());
        }
        let mut parts = numbers.split('.').map(|part| part.parse::<u64>().map_err(|_| none()));
        let major = parts.next().ok_or_else(none)??;
        let minor = parts.next().ok_or_else(none)??;
        let patch = parts.next().transpose()?.unwrap_or_default();
        if parts.next().is_some() {
            return Err(none());
        }
        Ok(Self { major, minor, patch, suffix: suffix.to_owned() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}{}", self.major, self.minor, self.patch, self.suffix)
    }
}

impl Version {
    const fn numbers(&self) -> (u64, u64, u64) {
        (self.major, self.minor, self.patch)
    }
}

/// The tag of an image reference, without its digest: `v1.20.0` of
/// `registry:5000/cilium/cilium:v1.20.0@sha256:…`.
pub fn image_tag(image: &str) -> Option<&str> {
    let (reference, _) = image.split_once('@').unwrap_or((image, ""));
    let name = reference.rsplit('/').next()?;
    name.split_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
}

/// The image reference without tag and digest.
pub fn image_repository(image: &str) -> &str {
    let (reference, _) = image.split_once('@').unwrap_or((image, ""));
    match image_tag(image) {
        Some(tag) => reference.strip_suffix(tag).and_then(|r| r.strip_suffix(':')),
        None => None,
    }
    .unwrap_or(reference)
}

/// The version that runs: the agent image's tag, else what the record says.
///
/// The suffix is not compared: vendors append their own to an image of the same version.
///
/// # Errors
/// [`VersionError::Disagree`], [`VersionError::Unknown`]
pub fn live(image: Option<&str>, recorded: Option<&str>) -> Result<Version, VersionError> {
    let tagged = image.and_then(image_tag).and_then(|tag| tag.parse::<Version>().ok());
    let recorded = recorded.and_then(|text| text.parse::<Version>().ok());
    match (tagged, recorded) {
        (Some(live), Some(recorded)) if live.numbers() != recorded.numbers() => {
            let image = image.unwrap_or_default().to_owned();
            Err(VersionError::Disagree { image, live, recorded })
        }
        (Some(version), _) | (None, Some(version)) => Ok(version),
        (None, None) => Err(VersionError::Unknown { image: image.unwrap_or_default().to_owned() }),
    }
}

/// What taking the live version over to the pinned one is.
///
/// # Errors
/// [`VersionError::Newer`], [`VersionError::TooOld`]
pub fn step(live: &Version, pinned: &Version) -> Result<Step, VersionError> {
    let (from, to) = (live.clone(), pinned.clone());
    let minors = |version: &Version| (version.major, version.minor);
    if minors(live) > minors(pinned) {
        return Err(VersionError::Newer { live: from, pinned: to });
    }
    if live.major != pinned.major || live.minor + 1 < pinned.minor {
        return Err(VersionError::TooOld { live: from, pinned: to });
    }
    Ok(match () {
        () if live.minor < pinned.minor => Step::Upgrade { from, to },
        () if live == pinned => Step::Same,
        () => Step::Patch { from, to },
    })
}

/// Whether the pinned Cilium is tested with the cluster's Kubernetes, whose version is the
/// server's `gitVersion` (`v1.33.4-gke.100`).
///
/// # Errors
/// [`VersionError::Kubernetes`], [`VersionError::NoTable`], [`VersionError::NoVersion`]
pub fn check_kubernetes(kubernetes: &str, pinned: &Version) -> Result<(), VersionError> {
    let server: Version = kubernetes.parse()?;
    let (_, first, last) = TESTED
        .into_iter()
        .find(|(minor, ..)| pinned.major == 1 && *minor == pinned.minor)
        .ok_or_else(|| VersionError::NoTable { pinned: pinned.clone() })?;
    if server.major == 1 && (first..=last).contains(&server.minor) {
        return Ok(());
    }
    let (kubernetes, pinned) = (kubernetes.to_owned(), pinned.clone());
    Err(VersionError::Kubernetes { kubernetes, pinned, first, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn tags_of_images() {
        for (image, tag, repository) in [
            ("quay.io/cilium/cilium:v1.20.0@sha256:ab", Some("v1.20.0"), "quay.io/cilium/cilium"),
            ("localhost:5000/cilium/cilium", None, "localhost:5000/cilium/cilium"),
            ("localhost:5000/c:1.19.6-eks.1", Some("1.19.6-eks.1"), "localhost:5000/c"),
            ("cilium@sha256:ab", None, "cilium"),
            ("cilium:", None, "cilium:"),
            ("", None, ""),
        ] {
            assert_eq!((image_tag(image), image_repository(image)), (tag, repository), "{image}");
        }
    }

    #[test]
    fn versions_and_what_is_none() {
        assert_eq!(version("v1.20.0-rc.1").to_string(), "1.20.0-rc.1");
        assert_eq!(version("1.20").numbers(), (1, 20, 0));
        for text in ["latest", "", "v", "1", "1.", "1.x", "1.2.3.4", "1.2.3foo", "-1.2", "1..2"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
        assert!("99999999999999999999.1".parse::<Version>().is_err());
    }

    #[test]
    fn image_and_record_must_agree() {
        let image = Some("quay.io/cilium/cilium:v1.19.6");
        assert_eq!(live(image, Some("1.19.6")), Ok(version("1.19.6")));
        assert_eq!(live(image, None), Ok(version("1.19.6")));
        assert_eq!(live(Some("cilium@sha256:ab"), Some("1.19.5")), Ok(version("1.19.5")));
        assert!(matches!(live(image, Some("1.19.5")), Err(VersionError::Disagree { .. })));
        assert!(matches!(live(Some("c:latest"), None), Err(VersionError::Unknown { .. })));
        let vendor = live(Some("c:v1.19.6-vendor.2"), Some("1.19.6"));
        assert_eq!(vendor.unwrap().suffix, "-vendor.2");
    }

    #[test]
    fn one_minor_is_an_upgrade_and_two_are_too_many() {
        let pinned = version("1.20.0");
        let step = |live: &str| step(&version(live), &pinned);
        assert_eq!(step("1.20.0"), Ok(Step::Same));
        assert!(matches!(step("1.20.3"), Ok(Step::Patch { .. })));
        assert!(matches!(step("1.19.6"), Ok(Step::Upgrade { .. })));
        for old in ["1.18.0", "1.17.18", "1.16.19", "0.20.0"] {
            let error = step(old).unwrap_err().to_string();
            assert!(error.contains("to 1.19 with the tool that installed it"), "{error}");
        }
        assert!(matches!(step("1.21.0-pre.1"), Err(VersionError::Newer { .. })));
        assert!(matches!(step("2.0.0"), Err(VersionError::Newer { .. })));
    }

    #[test]
    fn kubernetes_is_judged_by_its_minor() {
        let check = |kubernetes: &str, cilium: &str| {
            check_kubernetes(kubernetes, &version(cilium)).map_err(|error| error.to_string())
        };
        for (cilium, first, last) in [("1.18.0", 30, 33), ("1.19.6", 32, 35), ("1.20.0", 33, 36)] {
            for minor in 28..40 {
                let result = check(&format!("v1.{minor}.1-gke.2+x"), cilium);
                assert_eq!(result.is_ok(), (first..=last).contains(&minor), "{cilium} {minor}");
            }
        }
        assert_eq!(
            check("v1.32.1", "1.20.0").unwrap_err(),
            "Kubernetes v1.32.1 is not among those that Cilium 1.20.0 is tested with (1.33 to 1.36)"
        );
        assert!(check("v2.34.0", "1.20.0").is_err());
        assert!(check("v1.33.0", "1.30.0").is_err());
    }
}
