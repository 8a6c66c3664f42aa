//! The order of kinds, as Helm's `pkg/releaseutil/kind_sorter.go`.

/// Kinds in the order in which they are to be handled.
pub type KindOrder = [&'static str; 36];

/// The order in which objects are created.
pub const INSTALL_ORDER: KindOrder = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// The order in which objects are deleted: not quite the other way round.
pub const UNINSTALL_ORDER: KindOrder = [
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

/// Sorts by kind and keeps the order of equal kinds; unknown kinds come last, by name.
pub(super) fn sort_by_kind<T>(items: &mut [T], order: &KindOrder, kind: impl Fn(&T) -> &str) {
    let rank = |kind: &str| order.iter().position(|known| *known == kind);
    items.sort_by(|a, b| {
        let (a, b) = (kind(a), kind(b));
        match (rank(a), rank(b)) {
            (None, None) => a.cmp(b),
            (a, b) => a.unwrap_or(order.len()).cmp(&b.unwrap_or(order.len())),
        }
    });
}
