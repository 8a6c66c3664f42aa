//! APIs of Kubernetes that are going or gone, by the release that does so.

use crate::action::lint::deprecations;
use crate::capabilities::KubeVersion;

/// What a Kubernetes version says about an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// It no longer has it; what to use instead, empty when nothing replaces it.
    Removed(&'static str),
    /// It has it until this minor release; what to use instead.
    Until(u32, &'static str),
    /// Nothing is known against it.
    Yes,
}

/// An API version and kind, the minor releases of Kubernetes 1 that deprecate and remove it, and
/// what to use instead.
type Row = (&'static str, &'static str, u32, u32, &'static str);

/// APIs that today's client library has no types for, so that [`deprecations`] does not know them
/// (Kubernetes' guide to deprecated APIs, release notes before 1.16 and of alpha APIs). A `*`
/// stands for every kind.
#[rustfmt::skip]
const GONE: &[Row] = &[
    ("admissionregistration.k8s.io/v1alpha1", "InitializerConfiguration", 13, 14, "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration"),
    ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition", 16, 22, "apiextensions.k8s.io/v1 CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1beta1", "APIService", 19, 22, "apiregistration.k8s.io/v1 APIService"),
    ("auditregistration.k8s.io/v1alpha1", "AuditSink", 19, 19, ""),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler", 22, 25, "autoscaling/v2 HorizontalPodAutoscaler"),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler", 23, 26, "autoscaling/v2 HorizontalPodAutoscaler"),
    ("batch/v2alpha1", "CronJob", 8, 21, "batch/v1 CronJob"),
    ("coordination.k8s.io/v1alpha1", "LeaseCandidate", 32, 32, "coordination.k8s.io/v1beta1 LeaseCandidate"),
    ("discovery.k8s.io/v1alpha1", "EndpointSlice", 17, 20, "discovery.k8s.io/v1 EndpointSlice"),
    ("extensions/v1beta1", "PodSecurityPolicy", 10, 16, ""),
    ("extensions/v1beta1", "ThirdPartyResource", 7, 8, "apiextensions.k8s.io/v1 CustomResourceDefinition"),
    ("flowcontrol.apiserver.k8s.io/v1alpha1", "*", 20, 21, "flowcontrol.apiserver.k8s.io/v1"),
    ("networking.k8s.io/v1alpha1", "ClusterCIDR", 29, 29, ""),
    ("node.k8s.io/v1alpha1", "RuntimeClass", 20, 22, "node.k8s.io/v1 RuntimeClass"),
    ("policy/v1beta1", "PodSecurityPolicy", 21, 25, ""),
    ("rbac.authorization.k8s.io/v1alpha1", "*", 17, 23, "rbac.authorization.k8s.io/v1"),
    ("resource.k8s.io/v1alpha1", "*", 27, 27, "resource.k8s.io/v1"),
    ("resource.k8s.io/v1alpha2", "*", 31, 31, "resource.k8s.io/v1"),
    ("scheduling.k8s.io/v1alpha1", "PriorityClass", 14, 22, "scheduling.k8s.io/v1 PriorityClass"),
    ("settings.k8s.io/v1alpha1", "PodPreset", 20, 20, ""),
];

/// Whether `version` has an API.
pub(super) fn served(api_version: &str, kind: &str, version: &KubeVersion) -> Served {
    if let Some(instead) = deprecations::removed(api_version, kind, version) {
        return Served::Removed(instead);
    }
    let number = |text: &str| text.trim_end_matches('+').parse::<u32>().unwrap_or_default();
    let current = (number(&version.major), number(&version.minor));
    let row = GONE
        .iter()
        .find(|(known, kinds, ..)| *known == api_version && (*kinds == kind || *kinds == "*"));
    if let Some(&(_, _, deprecated, removed, instead)) = row {
        return match current {
            current if current >= (1, removed) => Served::Removed(instead),
            current if current >= (1, deprecated) => Served::Until(removed, instead),
            _ => Served::Yes,
        };
    }
    match deprecations::ends(api_version, kind, version) {
        Some((removed, instead)) => Served::Until(removed, instead),
        None => Served::Yes,
    }
}

#[cfg(test)]
mod tests {
    use super::{GONE, Served, served};
    use crate::capabilities::KubeVersion;

    fn at(api_version: &str, kind: &str, version: &str) -> Served {
        served(api_version, kind, &KubeVersion::parse(version).unwrap())
    }

    #[test]
    fn apis_go_with_their_release() {
        let crd = ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition");
        assert_eq!(at(crd.0, crd.1, "1.15"), Served::Yes);
        assert!(matches!(at(crd.0, crd.1, "1.21.9"), Served::Until(22, _)));
        assert!(matches!(at(crd.0, crd.1, "1.22.0"), Served::Removed(_)));
        assert!(matches!(
            at("policy/v1beta1", "PodDisruptionBudget", "1.24"),
            Served::Until(25, _)
        ));
        assert!(matches!(at("policy/v1beta1", "PodDisruptionBudget", "1.25"), Served::Removed(_)));
        assert!(matches!(
            at("rbac.authorization.k8s.io/v1alpha1", "Role", "1.36"),
            Served::Removed(_)
        ));
        assert_eq!(at("apps/v1", "Deployment", "1.36"), Served::Yes);
        assert_eq!(at("example.org/v1alpha1", "Role", "1.36"), Served::Yes);
    }

    #[test]
    fn the_table_has_no_row_that_another_one_covers() {
        for (index, (api, kind, deprecated, removed, _)) in GONE.iter().enumerate() {
            assert!(deprecated <= removed, "{api} {kind}");
            let covered =
                |other: &&super::Row| other.0 == *api && (other.1 == *kind || other.1 == "*");
            assert_eq!(GONE.iter().position(|row| covered(&row)), Some(index), "{api} {kind}");
        }
    }
}
