//! What of a cluster's objects a takeover looks at, wherever they come from.

use cilium::pinned::{CHART, NAMESPACE, RECORD_NAMESPACE, RELEASE};
use helm_rs::cluster::Kind;
use helm_rs::release::{CodecLimits, Summary, decode};
use serde_json::Value;

use crate::place::CILIUM;
use crate::survey::{claimed_release, text};

/// Kinds of which there are many, that controllers write all the time, and that no chart has.
const PASSING: [(&str, &str); 9] = [
    ("", "pods"),
    ("", "events"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("apps", "controllerrevisions"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
    ("metrics.k8s.io", "*"),
];
/// What Cilium's agents write about nodes, pods and identities.
const AGENTS: [&str; 5] = [
    "ciliumendpoints",
    "ciliumendpointslices",
    "ciliumidentities",
    "ciliumnodes",
    "ciliumexternalworkloads",
];
/// Namespaced kinds that are read in every namespace: they tell which network plugin runs, and what
/// somebody may do.
const EVERYWHERE: [(&str, &str); 3] = [
    ("apps", "daemonsets"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];

/// The label of release records, as a selector.
const OWNER: &str = "owner=helm";

/// Whether a kind is left out. The lock of takeovers, a Lease, is looked at all the same.
pub fn is_passing(group: &str, plural: &str) -> bool {
    let named = |(of, name): &(&str, &str)| *of == group && (*name == "*" || *name == plural);
    PASSING.iter().any(named) || (group == "cilium.io" && AGENTS.contains(&plural))
}

/// Whether a kind is read in every namespace.
pub fn is_everywhere(group: &str, plural: &str) -> bool {
    EVERYWHERE.contains(&(group, plural))
}

/// The namespaces whose objects are read: those of a takeover, that of the release that the running
/// Cilium names, and what else is asked for.
pub fn namespaces(claim: &(String, String), more: &[String]) -> Vec<String> {
    let mut places =
        vec![NAMESPACE.to_owned(), RECORD_NAMESPACE.to_owned(), "cilium-secrets".to_owned()];
    places.extend((!claim.1.is_empty()).then(|| claim.1.clone()));
    places.extend(more.iter().cloned());
    places.sort();
    places.dedup();
    places
}

/// Whether an object is a release record.
pub fn is_record(object: &Value) -> bool {
    matches!(text(object, "/kind"), "Secret" | "ConfigMap")
        && text(object, "/metadata/name").starts_with("sh.helm.release.v1.")
        && text(object, "/metadata/labels/owner") == "helm"
}

/// What is kept of objects that are all at hand.
pub struct Selection {
    places: Vec<String>,
    records: Records,
}

impl Selection {
    /// By the agents' DaemonSet, and by whether a takeover was begun ([`is_begun`]).
    pub fn of(agent: Option<&Value>, is_begun: bool, more: &[String]) -> Self {
        let claim = agent.map(claimed_release).unwrap_or_default();
        let records = Records::of(&claim.0, is_begun);
        Self { places: namespaces(&claim, more), records }
    }

    /// Whether an object is kept; `plural` is its resource's name, where that is known.
    pub fn keeps(&mut self, object: &Value, plural: &str) -> bool {
        let kind = Kind::of(object);
        let namespace = text(object, "/metadata/namespace");
        if is_record(object) {
            return self.records.keeps(object);
        }
        let is_lock = kind.kind == "Lease"
            && (namespace, text(object, "/metadata/name")) == (RECORD_NAMESPACE, &*CILIUM.lease);
        is_lock
            || !is_passing(&kind.group, plural)
                && (namespace.is_empty()
                    || is_everywhere(&kind.group, plural)
                    || self.places.iter().any(|place| place == namespace))
    }

    /// What was left out of records, for people.
    pub fn note(&self) -> Option<String> {
        self.records.note()
    }
}

/// Whether an object says that a takeover was begun: the plan that is stored then.
pub fn is_begun(object: &Value) -> bool {
    let name = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    text(object, "/kind") == "Secret" && name == (RECORD_NAMESPACE, &*CILIUM.plan)
}

/// Which records are kept.
#[derive(Debug, Default)]
pub struct Records {
    /// The release that the running Cilium names; empty where it names none.
    claim: String,
    /// Records of any release of Cilium's chart count too.
    by_chart: bool,
    /// Records that were left out, and their bytes.
    left_out: (usize, usize),
}

impl Records {
    /// Those of the release that the running Cilium names, and ichor's own. Where it names none, or
    /// a takeover was begun, so that it may name ichor's already: of any release of its chart.
    pub fn of(claim: &str, is_begun: bool) -> Self {
        let by_chart = is_begun || claim.is_empty();
        Self { claim: claim.to_owned(), by_chart, left_out: (0, 0) }
    }

    /// What to ask a server for.
    pub fn labels(&self) -> String {
        if self.by_chart {
            return OWNER.to_owned();
        }
        format!("{OWNER},name in ({RELEASE},{})", self.claim)
    }

    /// Whether a record is kept. Where provenance goes by the chart, one that cannot be read is.
    pub fn keeps(&mut self, record: &Value) -> bool {
        let release = text(record, "/metadata/labels/name");
        let kept = release == RELEASE
            || release == self.claim
            || self.by_chart && chart_of(record).is_none_or(|chart| chart == CHART);
        if !kept {
            self.left_out.0 += 1;
            self.left_out.1 += text(record, "/data/release").len();
        }
        kept
    }

    /// What was left out, for people.
    pub fn note(&self) -> Option<String> {
        let (count, bytes) = self.left_out;
        (count > 0).then(|| {
            format!(
                "{count} release record(s) of other charts are left out ({} MiB): a takeover passes \
                 them over",
                bytes.div_ceil(1 << 20)
            )
        })
    }
}

/// The chart that a record is of; none when it cannot be read.
fn chart_of(record: &Value) -> Option<String> {
    use base64::Engine as _;
    let stored = text(record, "/data/release");
    let plain = if text(record, "/kind") == "Secret" {
        base64::engine::general_purpose::STANDARD.decode(stored).ok()?
    } else {
        stored.as_bytes().to_vec()
    };
    let json = decode(&plain, CodecLimits::default()).ok()?;
    Some(Summary::from_json(&json).ok()?.chart)
}
