//! What a template is told about the cluster and about Helm, as Helm's
//! `pkg/chartutil/capabilities.go`.

use crate::gotext::quote;

/// `.Capabilities`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Version of the cluster.
    pub kube_version: KubeVersion,
    /// API versions (`apps/v1`) and, from a live cluster, kinds (`apps/v1/Deployment`).
    pub api_versions: Vec<String>,
    /// Which Helm we are.
    pub helm_version: HelmVersion,
}

/// Version of a Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// The whole version with its `v`, such as `v1.36.0`.
    pub version: String,
    /// The major number as text.
    pub major: String,
    /// The minor number as text; some clusters append a `+`.
    pub minor: String,
}

/// Build information of Helm, as the real binary reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmVersion {
    /// Version with its `v`.
    pub version: String,
    /// Commit that it was built from.
    pub git_commit: String,
    /// `clean` for a release.
    pub git_tree_state: String,
    /// Go release that built it.
    pub go_version: String,
}

/// A text that is no Kubernetes version (`k8s.io/apimachinery/pkg/util/version`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeVersionError {
    /// It does not start with a number.
    #[error("could not parse {} as version", quote(text))]
    NoVersion {
        /// What was given.
        text: String,
    },
    /// It has fewer than two numbers.
    #[error("illegal version string {}", quote(text))]
    TooShort {
        /// What was given.
        text: String,
    },
    /// Its first number starts with a zero.
    #[error("illegal zero-prefixed version component {} in {}", quote(component), quote(text))]
    LeadingZero {
        /// The number.
        component: String,
        /// What was given.
        text: String,
    },
    /// One of its numbers does not fit into 64 bits.
    #[error(
        "illegal non-numeric version component {0} in {1}: \
         strconv.ParseUint: parsing {0}: value out of range",
        quote(component),
        quote(text)
    )]
    OutOfRange {
        /// The number.
        component: String,
        /// What was given.
        text: String,
    },
}

impl Default for Capabilities {
    /// What Helm 3.21.4 assumes without a cluster.
    fn default() -> Self {
        Self {
            kube_version: KubeVersion::default(),
            api_versions: DEFAULT_API_VERSIONS.iter().map(|&version| version.to_owned()).collect(),
            helm_version: HelmVersion::default(),
        }
    }
}

impl Default for KubeVersion {
    /// The version of the Kubernetes client that Helm 3.21.4 is built with.
    fn default() -> Self {
        Self { version: "v1.36.0".to_owned(), major: "1".to_owned(), minor: "36".to_owned() }
    }
}

impl Default for HelmVersion {
    /// Helm 3.21.4 as released.
    fn default() -> Self {
        Self {
            version: "v3.21.4".to_owned(),
            git_commit: "813176c51bb5c181dbbd7901298ddcc104cd3417".to_owned(),
            git_tree_state: "clean".to_owned(),
            go_version: "go1.26.8".to_owned(),
        }
    }
}

impl Capabilities {
    /// `.Capabilities.APIVersions.Has`
    pub fn has_api(&self, version: &str) -> bool {
        self.api_versions.iter().any(|known| known == version)
    }
}

impl KubeVersion {
    /// Reads a version as `--kube-version` does (`ParseKubeVersion`): two or more numbers joined
    /// by dots, a leading `v` and anything behind the numbers allowed.
    ///
    /// ```
    /// use helm_rs::capabilities::KubeVersion;
    ///
    /// let version = KubeVersion::parse("1.33.4-gke.100")?;
    /// assert_eq!(version.version, "v1.33.4");
    /// assert_eq!(version.minor, "33");
    /// # Ok::<(), helm_rs::capabilities::KubeVersionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`KubeVersionError`] with the text of Kubernetes.
    pub fn parse(text: &str) -> Result<Self, KubeVersionError> {
        let none = || KubeVersionError::NoVersion { text: text.to_owned() };
        let start = text.trim_start_matches(['\t', '\n', '\x0C', '\r', ' ']);
        let start = start.strip_prefix('v').unwrap_or(start);
        let (components, rest) = leading_numbers(start);
        if components.is_empty() || rest.contains('\n') {
            return Err(none());
        }
        if components.len() < 2 {
            return Err(KubeVersionError::TooShort { text: text.to_owned() });
        }
        let mut numbers: Vec<String> = Vec::with_capacity(components.len());
        for (index, &component) in components.iter().enumerate() {
            let fields = || (component.to_owned(), text.to_owned());
            if index == 0 && component.starts_with('0') && component != "0" {
                let (component, text) = fields();
                return Err(KubeVersionError::LeadingZero { component, text });
            }
            let Ok(number) = component.parse::<u64>() else {
                let (component, text) = fields();
                return Err(KubeVersionError::OutOfRange { component, text });
            };
            numbers.push(number.to_string());
        }
        let part = |index: usize| numbers.get(index).cloned().unwrap_or_default();
        Ok(Self { version: format!("v{}", numbers.join(".")), major: part(0), minor: part(1) })
    }
}

/// Splits digits joined by dots off the start.
fn leading_numbers(text: &str) -> (Vec<&str>, &str) {
    let mut numbers = Vec::new();
    let mut rest = text;
    loop {
        let start = if numbers.is_empty() { Some(rest) } else { rest.strip_prefix('.') };
        let Some(start) = start else { break };
        let length = start.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            break;
        }
        let (number, after) = start.split_at(length);
        numbers.push(number);
        rest = after;
    }
    (numbers, rest)
}

/// The API versions that Helm 3.21.4 knows without a cluster, in its order: what the scheme of
/// client-go 0.36 and the two versions of apiextensions register (`allKnownVersions`).
const DEFAULT_API_VERSIONS: [&str; 55] = [
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];
