//! API versions that Kubernetes has deprecated, as the client library of Kubernetes 1.36 knows
//! them (`k8s.io/client-go/kubernetes/scheme`, lifecycle methods of its types).

use std::fmt::Write as _;

use crate::capabilities::KubeVersion;

/// API version, kind, minor release of Kubernetes 1 that deprecates it, minor release that
/// removes it, replacement.
type Row = (&'static str, &'static str, u32, Option<u32>, Option<&'static str>);

/// What Kubernetes says about an API version and kind that is deprecated in `kube_version`
/// (`k8s.io/apiserver/pkg/endpoints/deprecation`).
pub(super) fn warning(api_version: &str, kind: &str, kube_version: &KubeVersion) -> Option<String> {
    let row = DEPRECATIONS.iter().find(|row| row.0 == api_version && row.1 == kind)?;
    let (_, _, deprecated, removed, replacement) = *row;
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let current = (number(&kube_version.major), number(&kube_version.minor));
    if current != (0, 0) && (1, deprecated) > current {
        return None;
    }
    let mut text = format!("{api_version} {kind} is deprecated in v1.{deprecated}+");
    if let Some(removed) = removed {
        let _ = write!(text, ", unavailable in v1.{removed}+");
    }
    if let Some(replacement) = replacement {
        text.push_str("; use ");
        text.push_str(replacement);
    }
    Some(text)
}

/// What to use instead of an API version and kind that `kube_version` no longer has: `None` when
/// it still has it, an empty text when nothing replaces it.
pub fn removed(api_version: &str, kind: &str, kube_version: &KubeVersion) -> Option<&'static str> {
    let (.., removed, replacement) =
        DEPRECATIONS.iter().find(|row| row.0 == api_version && row.1 == kind)?;
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let current = (number(&kube_version.major), number(&kube_version.minor));
    let removed = (1, (*removed)?);
    (current >= removed).then_some(replacement.unwrap_or_default())
}

/// The minor release of Kubernetes 1 that removes an API which `kube_version` deprecates and still
/// has, and what to use instead.
pub(crate) fn ends(
    api_version: &str,
    kind: &str,
    kube_version: &KubeVersion,
) -> Option<(u32, &'static str)> {
    let (_, _, deprecated, removed, replacement) =
        DEPRECATIONS.iter().find(|row| row.0 == api_version && row.1 == kind)?;
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let current = (number(&kube_version.major), number(&kube_version.minor));
    let removed = (*removed)?;
    let is_ending = current >= (1, *deprecated) && current < (1, removed);
    is_ending.then_some((removed, replacement.unwrap_or_default()))
}

#[rustfmt::skip]
const DEPRECATIONS: &[Row] = &[
    ("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicy", 35, Some(38), None),
    ("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyBinding", 35, Some(38), None),
    ("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyBindingList", 35, Some(38), None),
    ("admissionregistration.k8s.io/v1alpha1", "MutatingAdmissionPolicyList", 35, Some(38), None),
    ("admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicy", 29, Some(32), None),
    ("admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicyBinding", 29, Some(32), None),
    ("admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicyBindingList", 29, Some(32), None),
    ("admissionregistration.k8s.io/v1alpha1", "ValidatingAdmissionPolicyList", 29, Some(32), None),
    ("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicy", 37, Some(40), Some("admissionregistration.k8s.io/v1 MutatingAdmissionPolicy")),
    ("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBinding", 37, Some(40), Some("admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding")),
    ("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyBindingList", 37, Some(40), Some("admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBindingList")),
    ("admissionregistration.k8s.io/v1beta1", "MutatingAdmissionPolicyList", 37, Some(40), Some("admissionregistration.k8s.io/v1 MutatingAdmissionPolicyList")),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", 16, Some(22), Some("admissionregistration.k8s.io/v1 MutatingWebhookConfiguration")),
    ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfigurationList", 16, Some(22), Some("admissionregistration.k8s.io/v1 MutatingWebhookConfigurationList")),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicy", 31, Some(34), None),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicyBinding", 31, Some(34), None),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicyBindingList", 31, Some(34), None),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingAdmissionPolicyList", 31, Some(34), None),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", 16, Some(22), Some("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration")),
    ("admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfigurationList", 16, Some(22), Some("admissionregistration.k8s.io/v1 ValidatingWebhookConfigurationList")),
    ("apps/v1beta1", "ControllerRevision", 8, Some(16), Some("apps/v1 ControllerRevision")),
    ("apps/v1beta1", "ControllerRevisionList", 8, Some(16), Some("apps/v1 ControllerRevisionList")),
    ("apps/v1beta1", "Deployment", 8, Some(16), Some("apps/v1 Deployment")),
    ("apps/v1beta1", "DeploymentList", 8, Some(16), Some("apps/v1 DeploymentList")),
    ("apps/v1beta1", "DeploymentRollback", 8, Some(16), Some("apps/v1 DeploymentRollback")),
    ("apps/v1beta1", "Scale", 8, Some(16), Some("autoscaling/v1 Scale")),
    ("apps/v1beta1", "StatefulSet", 8, Some(16), Some("apps/v1 StatefulSet")),
    ("apps/v1beta1", "StatefulSetList", 8, Some(16), Some("apps/v1 StatefulSetList")),
    ("apps/v1beta2", "ControllerRevision", 9, Some(16), Some("apps/v1 ControllerRevision")),
    ("apps/v1beta2", "ControllerRevisionList", 9, Some(16), Some("apps/v1 ControllerRevisionList")),
    ("apps/v1beta2", "DaemonSet", 9, Some(16), Some("apps/v1 DaemonSet")),
    ("apps/v1beta2", "DaemonSetList", 9, Some(16), Some("apps/v1 DaemonSetList")),
    ("apps/v1beta2", "Deployment", 9, Some(16), Some("apps/v1 Deployment")),
    ("apps/v1beta2", "DeploymentList", 9, Some(16), Some("apps/v1 DeploymentList")),
    ("apps/v1beta2", "ReplicaSet", 9, Some(16), Some("apps/v1 ReplicaSet")),
    ("apps/v1beta2", "ReplicaSetList", 9, Some(16), Some("apps/v1 ReplicaSetList")),
    ("apps/v1beta2", "Scale", 9, Some(16), Some("autoscaling/v1 Scale")),
    ("apps/v1beta2", "StatefulSet", 9, Some(16), Some("apps/v1 StatefulSet")),
    ("apps/v1beta2", "StatefulSetList", 9, Some(16), Some("apps/v1 StatefulSetList")),
    ("authentication.k8s.io/v1alpha1", "SelfSubjectReview", 29, Some(32), None),
    ("authentication.k8s.io/v1beta1", "SelfSubjectReview", 30, Some(33), None),
    ("authentication.k8s.io/v1beta1", "TokenReview", 19, Some(22), Some("authentication.k8s.io/v1 TokenReview")),
    ("authorization.k8s.io/v1beta1", "LocalSubjectAccessReview", 19, Some(22), Some("authorization.k8s.io/v1 LocalSubjectAccessReview")),
    ("authorization.k8s.io/v1beta1", "SelfSubjectAccessReview", 19, Some(22), Some("authorization.k8s.io/v1 SelfSubjectAccessReview")),
    ("authorization.k8s.io/v1beta1", "SelfSubjectRulesReview", 19, Some(22), Some("authorization.k8s.io/v1 SelfSubjectRulesReview")),
    ("authorization.k8s.io/v1beta1", "SubjectAccessReview", 19, Some(22), Some("authorization.k8s.io/v1 SubjectAccessReview")),
    ("batch/v1beta1", "CronJob", 21, Some(25), Some("batch/v1 CronJob")),
    ("batch/v1beta1", "CronJobList", 21, Some(25), Some("batch/v1 CronJobList")),
    ("certificates.k8s.io/v1alpha1", "ClusterTrustBundle", 34, Some(37), None),
    ("certificates.k8s.io/v1alpha1", "ClusterTrustBundleList", 34, Some(37), None),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest", 19, Some(22), Some("certificates.k8s.io/v1 CertificateSigningRequest")),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequestList", 19, Some(22), Some("certificates.k8s.io/v1 CertificateSigningRequestList")),
    ("certificates.k8s.io/v1beta1", "ClusterTrustBundle", 37, Some(40), None),
    ("certificates.k8s.io/v1beta1", "ClusterTrustBundleList", 37, Some(40), None),
    ("certificates.k8s.io/v1beta1", "PodCertificateRequest", 38, Some(41), None),
    ("certificates.k8s.io/v1beta1", "PodCertificateRequestList", 38, Some(41), None),
    ("coordination.k8s.io/v1alpha2", "LeaseCandidate", 35, Some(38), None),
    ("coordination.k8s.io/v1alpha2", "LeaseCandidateList", 35, Some(38), None),
    ("coordination.k8s.io/v1beta1", "Lease", 19, Some(22), Some("coordination.k8s.io/v1 Lease")),
    ("coordination.k8s.io/v1beta1", "LeaseCandidate", 36, Some(39), None),
    ("coordination.k8s.io/v1beta1", "LeaseCandidateList", 36, Some(39), None),
    ("coordination.k8s.io/v1beta1", "LeaseList", 19, Some(22), Some("coordination.k8s.io/v1 LeaseList")),
    ("discovery.k8s.io/v1beta1", "EndpointSlice", 21, Some(25), Some("discovery.k8s.io/v1 EndpointSlice")),
    ("discovery.k8s.io/v1beta1", "EndpointSliceList", 21, Some(25), Some("discovery.k8s.io/v1 EndpointSlice")),
    ("events.k8s.io/v1beta1", "Event", 22, Some(25), None),
    ("events.k8s.io/v1beta1", "EventList", 22, Some(25), None),
    ("extensions/v1beta1", "DaemonSet", 8, Some(16), Some("apps/v1 DaemonSet")),
    ("extensions/v1beta1", "DaemonSetList", 8, Some(16), Some("apps/v1 DaemonSetList")),
    ("extensions/v1beta1", "Deployment", 8, Some(16), Some("apps/v1 Deployment")),
    ("extensions/v1beta1", "DeploymentList", 8, Some(16), Some("apps/v1 DeploymentList")),
    ("extensions/v1beta1", "DeploymentRollback", 8, Some(16), None),
    ("extensions/v1beta1", "Ingress", 14, Some(22), Some("networking.k8s.io/v1 Ingress")),
    ("extensions/v1beta1", "IngressList", 14, Some(22), Some("networking.k8s.io/v1 IngressList")),
    ("extensions/v1beta1", "NetworkPolicy", 9, Some(16), Some("networking.k8s.io/v1 NetworkPolicy")),
    ("extensions/v1beta1", "NetworkPolicyList", 9, Some(16), Some("networking.k8s.io/v1 NetworkPolicyList")),
    ("extensions/v1beta1", "ReplicaSet", 8, Some(16), Some("apps/v1 ReplicaSet")),
    ("extensions/v1beta1", "ReplicaSetList", 8, Some(16), Some("apps/v1 ReplicaSetList")),
    ("extensions/v1beta1", "Scale", 2, Some(16), None),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchema", 23, Some(26), Some("flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema")),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "FlowSchemaList", 23, Some(26), Some("flowcontrol.apiserver.k8s.io/v1beta3 FlowSchemaList")),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfiguration", 23, Some(26), Some("flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfiguration")),
    ("flowcontrol.apiserver.k8s.io/v1beta1", "PriorityLevelConfigurationList", 23, Some(26), Some("flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfigurationList")),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchema", 26, Some(29), Some("flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema")),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "FlowSchemaList", 26, Some(29), Some("flowcontrol.apiserver.k8s.io/v1beta3 FlowSchemaList")),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "PriorityLevelConfiguration", 26, Some(29), Some("flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfiguration")),
    ("flowcontrol.apiserver.k8s.io/v1beta2", "PriorityLevelConfigurationList", 26, Some(29), Some("flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfigurationList")),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema", 29, Some(32), Some("flowcontrol.apiserver.k8s.io/v1 FlowSchema")),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchemaList", 29, Some(32), Some("flowcontrol.apiserver.k8s.io/v1 FlowSchemaList")),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfiguration", 29, Some(32), Some("flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration")),
    ("flowcontrol.apiserver.k8s.io/v1beta3", "PriorityLevelConfigurationList", 29, Some(32), Some("flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfigurationList")),
    ("networking.k8s.io/v1beta1", "IPAddress", 34, Some(37), None),
    ("networking.k8s.io/v1beta1", "IPAddressList", 34, Some(37), None),
    ("networking.k8s.io/v1beta1", "Ingress", 19, Some(22), Some("networking.k8s.io/v1 Ingress")),
    ("networking.k8s.io/v1beta1", "IngressClass", 19, Some(22), Some("networking.k8s.io/v1 IngressClassList")),
    ("networking.k8s.io/v1beta1", "IngressClassList", 19, Some(22), Some("networking.k8s.io/v1 IngressClassList")),
    ("networking.k8s.io/v1beta1", "IngressList", 19, Some(22), Some("networking.k8s.io/v1 IngressList")),
    ("networking.k8s.io/v1beta1", "ServiceCIDR", 34, Some(37), None),
    ("networking.k8s.io/v1beta1", "ServiceCIDRList", 34, Some(37), None),
    ("node.k8s.io/v1beta1", "RuntimeClass", 22, Some(25), None),
    ("node.k8s.io/v1beta1", "RuntimeClassList", 22, Some(25), None),
    ("policy/v1beta1", "Eviction", 22, Some(25), None),
    ("policy/v1beta1", "PodDisruptionBudget", 21, Some(25), Some("policy/v1 PodDisruptionBudget")),
    ("policy/v1beta1", "PodDisruptionBudgetList", 21, Some(25), Some("policy/v1 PodDisruptionBudgetList")),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRole", 17, Some(22), Some("rbac.authorization.k8s.io/v1 ClusterRole")),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", 17, Some(22), Some("rbac.authorization.k8s.io/v1 ClusterRoleBinding")),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBindingList", 17, Some(22), Some("rbac.authorization.k8s.io/v1 ClusterRoleBindingList")),
    ("rbac.authorization.k8s.io/v1beta1", "ClusterRoleList", 17, Some(22), Some("rbac.authorization.k8s.io/v1 ClusterRoleList")),
    ("rbac.authorization.k8s.io/v1beta1", "Role", 17, Some(22), Some("rbac.authorization.k8s.io/v1 Role")),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBinding", 17, Some(22), Some("rbac.authorization.k8s.io/v1 RoleBinding")),
    ("rbac.authorization.k8s.io/v1beta1", "RoleBindingList", 17, Some(22), Some("rbac.authorization.k8s.io/v1 RoleBindingList")),
    ("rbac.authorization.k8s.io/v1beta1", "RoleList", 17, Some(22), Some("rbac.authorization.k8s.io/v1 RoleList")),
    ("resource.k8s.io/v1alpha3", "DeviceTaintRule", 36, Some(39), None),
    ("resource.k8s.io/v1alpha3", "DeviceTaintRuleList", 36, Some(39), None),
    ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest", 39, Some(42), None),
    ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequestList", 39, Some(42), None),
    ("resource.k8s.io/v1beta1", "DeviceClass", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "DeviceClassList", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "ResourceClaim", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "ResourceClaimList", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplate", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplateList", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "ResourceSlice", 35, Some(38), None),
    ("resource.k8s.io/v1beta1", "ResourceSliceList", 35, Some(38), None),
    ("resource.k8s.io/v1beta2", "DeviceClass", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "DeviceClassList", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule", 39, Some(42), None),
    ("resource.k8s.io/v1beta2", "DeviceTaintRuleList", 39, Some(42), None),
    ("resource.k8s.io/v1beta2", "ResourceClaim", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "ResourceClaimList", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "ResourceClaimTemplate", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "ResourceClaimTemplateList", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "ResourceSlice", 36, Some(39), None),
    ("resource.k8s.io/v1beta2", "ResourceSliceList", 36, Some(39), None),
    ("scheduling.k8s.io/v1beta1", "PriorityClass", 14, Some(22), Some("scheduling.k8s.io/v1 PriorityClass")),
    ("scheduling.k8s.io/v1beta1", "PriorityClassList", 14, Some(22), Some("scheduling.k8s.io/v1 PriorityClassList")),
    ("storage.k8s.io/v1alpha1", "CSIStorageCapacity", 21, Some(24), Some("storage.k8s.io/v1beta1 CSIStorageCapacity")),
    ("storage.k8s.io/v1alpha1", "CSIStorageCapacityList", 21, Some(24), Some("storage.k8s.io/v1beta1 CSIStorageCapacityList")),
    ("storage.k8s.io/v1alpha1", "VolumeAttachment", 21, Some(24), Some("storage.k8s.io/v1 VolumeAttachment")),
    ("storage.k8s.io/v1alpha1", "VolumeAttachmentList", 21, Some(24), Some("storage.k8s.io/v1 VolumeAttachmentList")),
    ("storage.k8s.io/v1alpha1", "VolumeAttributesClass", 32, Some(35), Some("storage.k8s.io/v1 VolumeAttributesClass")),
    ("storage.k8s.io/v1alpha1", "VolumeAttributesClassList", 32, Some(35), Some("storage.k8s.io/v1 VolumeAttributesClassList")),
    ("storage.k8s.io/v1beta1", "CSIDriver", 19, Some(22), Some("storage.k8s.io/v1 CSIDriver")),
    ("storage.k8s.io/v1beta1", "CSIDriverList", 19, Some(22), Some("storage.k8s.io/v1 CSIDriverList")),
    ("storage.k8s.io/v1beta1", "CSINode", 17, Some(22), Some("storage.k8s.io/v1 CSINode")),
    ("storage.k8s.io/v1beta1", "CSINodeList", 17, Some(22), Some("storage.k8s.io/v1 CSINode")),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity", 24, Some(27), Some("storage.k8s.io/v1 CSIStorageCapacity")),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacityList", 24, Some(27), Some("storage.k8s.io/v1 CSIStorageCapacityList")),
    ("storage.k8s.io/v1beta1", "StorageClass", 19, Some(22), Some("storage.k8s.io/v1 StorageClass")),
    ("storage.k8s.io/v1beta1", "StorageClassList", 19, Some(22), Some("storage.k8s.io/v1 StorageClassList")),
    ("storage.k8s.io/v1beta1", "VolumeAttachment", 19, Some(22), Some("storage.k8s.io/v1 VolumeAttachment")),
    ("storage.k8s.io/v1beta1", "VolumeAttachmentList", 19, Some(22), Some("storage.k8s.io/v1 VolumeAttachmentList")),
    ("storage.k8s.io/v1beta1", "VolumeAttributesClass", 34, Some(37), Some("storage.k8s.io/v1 VolumeAttributesClass")),
    ("storage.k8s.io/v1beta1", "VolumeAttributesClassList", 34, Some(37), Some("storage.k8s.io/v1 VolumeAttributesClassList")),
    ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration", 38, Some(41), None),
    ("storagemigration.k8s.io/v1beta1", "StorageVersionMigrationList", 38, Some(41), None),
    ("v1", "ComponentStatus", 19, None, None),
    ("v1", "ComponentStatusList", 19, None, None),
    ("v1", "Endpoints", 33, None, Some("discovery.k8s.io/v1 EndpointSlice")),
    ("v1", "EndpointsList", 33, None, Some("discovery.k8s.io/v1 EndpointSliceList")),
];
