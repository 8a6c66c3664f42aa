//! The keys that ichor decides, whatever the user's values say.
//!
//! One table, [`KEYS`], has for each key what ichor wants, given the [`Facts`], and what runs.
//! (Takeover rules, section 2, point 2.)

use goyaml::{Map, Value};
use serde_json::Value as Json;

use crate::kube_proxy::{KubeProxyError, Replacement};
use crate::object::{Field, FieldError};
use crate::pinned::AGENT;

/// The IPAM mode of every Cilium that ichor operates.
pub const IPAM_MODE: &str = "kubernetes";

/// What a Talos node's agent may do. Talos grants no SYS_MODULE.
const TALOS_AGENT: [&str; 11] = [
    "CHOWN",
    "KILL",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "SYS_ADMIN",
    "SYS_RESOURCE",
    "DAC_OVERRIDE",
    "FOWNER",
    "SETGID",
    "SETUID",
];
/// What the init container that cleans old state may do under Talos.
const TALOS_CLEAN: [&str; 3] = ["NET_ADMIN", "SYS_ADMIN", "SYS_RESOURCE"];
/// Where KubePrism answers on each Talos node.
const KUBE_PRISM: (&str, f64) = ("localhost", 7445.0);

/// The settings of a running Cilium that decide owned keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// `ipam`
    pub ipam_mode: Option<String>,
    /// `routing-mode`
    pub routing_mode: Option<String>,
    /// `tunnel-protocol`
    pub tunnel_protocol: Option<String>,
    /// `kube-proxy-replacement`
    pub replacement: Replacement,
    /// The agent's `KUBERNETES_SERVICE_HOST`, when the pod template sets it to a text.
    pub api_host: Option<String>,
    /// The agent's `KUBERNETES_SERVICE_PORT`, likewise.
    pub api_port: Option<String>,
    /// Capabilities that the agent adds; none when it adds none or is privileged.
    pub agent_capabilities: Option<Vec<String>>,
    /// Capabilities of the init container `clean-cilium-state`, likewise.
    pub clean_capabilities: Option<Vec<String>>,
    /// Whether an init container mounts the cgroup file system.
    pub mounts_cgroup: bool,
    /// `cgroup-root`
    pub cgroup_root: Option<String>,
}

/// Why the live settings cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    /// A field is of a wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The replacement of kube-proxy is in no clear state.
    #[error(transparent)]
    KubeProxy(#[from] KubeProxyError),
}

impl Live {
    /// Reads the agent's DaemonSet and the ConfigMap `cilium-config`.
    ///
    /// # Errors
    /// [`LiveError`]
    pub fn read(daemon_set: &Json, config_map: &Json) -> Result<Self, LiveError> {
        let data = Field::root(config_map).get("data")?;
        let config = |key| Ok::<_, FieldError>(data.get(key)?.text()?.map(str::to_owned));
        let pod = Field::root(daemon_set).at(&["spec", "template", "spec"])?;
        let init = pod.get("initContainers")?;
        let agent = pod.get("containers")?.named(AGENT)?;
        let clean = init.named("clean-cilium-state")?;
        let env = |name| match &agent {
            Some(agent) => variable(agent, name),
            None => Ok(None),
        };
        Ok(Self {
            ipam_mode: config("ipam")?,
            routing_mode: config("routing-mode")?,
            tunnel_protocol: config("tunnel-protocol")?,
            replacement: Replacement::parse(data.get("kube-proxy-replacement")?.text()?)?,
            api_host: env("KUBERNETES_SERVICE_HOST")?,
            api_port: env("KUBERNETES_SERVICE_PORT")?,
            agent_capabilities: agent.map_or(Ok(None), |agent| capabilities(&agent))?,
            clean_capabilities: clean.map_or(Ok(None), |clean| capabilities(&clean))?,
            mounts_cgroup: init.named("mount-cgroup")?.is_some(),
            cgroup_root: config("cgroup-root")?,
        })
    }
}

fn variable(container: &Field<'_>, name: &str) -> Result<Option<String>, FieldError> {
    let variable = container.get("env")?.named(name)?;
    let value = variable.map(|variable| variable.get("value")?.text()).transpose()?;
    Ok(value.flatten().map(str::to_owned))
}

fn capabilities(container: &Field<'_>) -> Result<Option<Vec<String>>, FieldError> {
    let added = container.at(&["securityContext", "capabilities", "add"])?;
    if added.value().is_none() {
        return Ok(None);
    }
    let name =
        |item: Field<'_>| Ok(item.text()?.ok_or_else(|| item.unexpected("a string"))?.to_owned());
    added.items()?.into_iter().map(name).collect::<Result<_, _>>().map(Some)
}

/// What decides the owned keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The running Cilium; none at a bootstrap.
    pub live: Option<Live>,
    /// Cilium's replacement of kube-proxy: the live one, or what the cluster's kube-proxy asks
    /// for at a bootstrap. None: the user's values say.
    pub replacement: Option<Replacement>,
    /// Every node runs Talos. In a cluster of both kinds the live settings are those that work
    /// on all nodes, so that they are kept.
    pub talos: bool,
}

impl Facts {
    /// The facts about a running Cilium.
    pub const fn running(live: Live, talos: bool) -> Self {
        let replacement = Some(live.replacement);
        Self { live: Some(live), replacement, talos }
    }

    /// The facts where no Cilium runs.
    pub const fn bootstrap(replacement: Option<Replacement>, talos: bool) -> Self {
        Self { live: None, replacement, talos }
    }

    /// Whether agents reach the API through KubePrism.
    fn uses_kube_prism(&self) -> bool {
        self.talos && self.replacement == Some(Replacement::On)
    }
}

/// What ichor wants under an owned key.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// This value.
    Value(Value),
    /// No value, so that the chart's default holds: nothing that runs says otherwise.
    Default,
    /// The user's value: nothing runs that it could break.
    User,
}

impl Wanted {
    /// A live setting is kept; where nothing runs, the user decides.
    fn kept(facts: &Facts, live: impl FnOnce(&Live) -> Option<Value>) -> Self {
        match &facts.live {
            None => Self::User,
            Some(running) => live(running).map_or(Self::Default, Self::Value),
        }
    }
}

/// A key that ichor decides.
pub struct OwnedKey {
    /// The tables and the key in the chart's values.
    pub path: &'static [&'static str],
    /// Whether a change of it on a running data plane needs consent.
    pub needs_consent: bool,
    /// What ichor wants.
    pub wanted: fn(&Facts) -> Wanted,
    /// What runs.
    pub live: fn(&Live) -> Option<Value>,
}

impl OwnedKey {
    /// The path, joined by dots.
    pub fn name(&self) -> String {
        self.path.join(".")
    }
}

impl std::fmt::Debug for OwnedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OwnedKey({})", self.name())
    }
}

fn text(text: Option<&String>) -> Option<Value> {
    text.map(|text| Value::from(text.as_str()))
}

fn list<S: AsRef<str>>(items: &[S]) -> Value {
    Value::Seq(items.iter().map(|item| Value::from(item.as_ref())).collect())
}

/// A live setting, but under Talos a fixed one. What runs keeps its form where it says the same:
/// capabilities in another order are the same capabilities, and a new order would restart pods.
fn talos(facts: &Facts, fixed: Value, live: fn(&Live) -> Option<Value>) -> Wanted {
    if !facts.talos {
        return Wanted::kept(facts, live);
    }
    let running = facts.live.as_ref().and_then(live);
    Wanted::Value(running.filter(|running| is_same_setting(running, &fixed)).unwrap_or(fixed))
}

fn kube_prism(facts: &Facts, fixed: Value, live: fn(&Live) -> Option<Value>) -> Wanted {
    if facts.uses_kube_prism() { Wanted::Value(fixed) } else { Wanted::kept(facts, live) }
}

fn live_ipam(live: &Live) -> Option<Value> {
    text(live.ipam_mode.as_ref())
}
fn live_tunnel(live: &Live) -> Option<Value> {
    text(live.tunnel_protocol.as_ref())
}
fn live_routing(live: &Live) -> Option<Value> {
    text(live.routing_mode.as_ref())
}
#[expect(clippy::unnecessary_wraps, reason = "all rows of the table have one type")]
fn live_replacement(live: &Live) -> Option<Value> {
    Some(Value::Bool(live.replacement.is_on()))
}
fn live_host(live: &Live) -> Option<Value> {
    text(live.api_host.as_ref())
}
/// A number, as people write ports: the chart puts it into Envoy's configuration unquoted, where a
/// text gets quotes.
fn live_port(live: &Live) -> Option<Value> {
    let text = live.api_port.as_deref()?;
    let number = text.parse::<u16>().ok().filter(|number| number.to_string() == text);
    Some(number.map_or_else(|| text.into(), |number| Value::from(f64::from(number))))
}
fn live_agent(live: &Live) -> Option<Value> {
    live.agent_capabilities.as_deref().map(list)
}
fn live_clean(live: &Live) -> Option<Value> {
    live.clean_capabilities.as_deref().map(list)
}
#[expect(clippy::unnecessary_wraps, reason = "all rows of the table have one type")]
fn live_mount(live: &Live) -> Option<Value> {
    Some(Value::Bool(live.mounts_cgroup))
}
fn live_root(live: &Live) -> Option<Value> {
    text(live.cgroup_root.as_ref())
}

/// The owned keys, in the order in which they are shown.
pub static KEYS: [OwnedKey; 10] = [
    OwnedKey {
        path: &["ipam", "mode"],
        needs_consent: true,
        wanted: |_| Wanted::Value(IPAM_MODE.into()),
        live: live_ipam,
    },
    OwnedKey {
        path: &["tunnelProtocol"],
        needs_consent: true,
        wanted: |facts| Wanted::kept(facts, live_tunnel),
        live: live_tunnel,
    },
    OwnedKey {
        path: &["routingMode"],
        needs_consent: true,
        wanted: |facts| Wanted::kept(facts, live_routing),
        live: live_routing,
    },
    OwnedKey {
        path: &["kubeProxyReplacement"],
        needs_consent: true,
        wanted: |facts| {
            facts.replacement.map_or(Wanted::User, |r| Wanted::Value(Value::Bool(r.is_on())))
        },
        live: live_replacement,
    },
    OwnedKey {
        path: &["k8sServiceHost"],
        needs_consent: true,
        wanted: |facts| kube_prism(facts, KUBE_PRISM.0.into(), live_host),
        live: live_host,
    },
    OwnedKey {
        path: &["k8sServicePort"],
        needs_consent: true,
        wanted: |facts| kube_prism(facts, KUBE_PRISM.1.into(), live_port),
        live: live_port,
    },
    OwnedKey {
        path: &["securityContext", "capabilities", "ciliumAgent"],
        needs_consent: false,
        wanted: |facts| talos(facts, list(&TALOS_AGENT), live_agent),
        live: live_agent,
    },
    OwnedKey {
        path: &["securityContext", "capabilities", "cleanCiliumState"],
        needs_consent: false,
        wanted: |facts| talos(facts, list(&TALOS_CLEAN), live_clean),
        live: live_clean,
    },
    OwnedKey {
        path: &["cgroup", "autoMount", "enabled"],
        needs_consent: false,
        wanted: |facts| talos(facts, Value::Bool(false), live_mount),
        live: live_mount,
    },
    OwnedKey {
        path: &["cgroup", "hostRoot"],
        needs_consent: false,
        wanted: |facts| talos(facts, "/sys/fs/cgroup".into(), live_root),
        live: live_root,
    },
];

/// An owned key that comes out differently from what runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The key.
    pub key: String,
    /// What runs; none when nothing is set.
    pub live: Option<Value>,
    /// What ichor wants.
    pub wanted: Value,
    /// Whether it needs `--accept-cilium-changes`.
    pub needs_consent: bool,
}

/// The running Cilium gives pods their addresses in another way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "ipam is {mode:?} in the ConfigMap cilium-config, and ichor operates Cilium with \
     ipam.mode {IPAM_MODE} only: changing it would give every pod another address, so that this \
     is refused and cannot be accepted; go on with the tool that installed Cilium, or move the \
     workloads to a cluster that was made with ipam.mode {IPAM_MODE}"
)]
pub struct IpamError {
    /// The live mode; empty when `cilium-config` does not say.
    pub mode: String,
}

/// Refuses a running Cilium of another IPAM mode.
///
/// # Errors
/// [`IpamError`]
pub fn check_ipam(live: &Live) -> Result<(), IpamError> {
    match live.ipam_mode.as_deref() {
        Some(IPAM_MODE) => Ok(()),
        other => Err(IpamError { mode: other.unwrap_or_default().to_owned() }),
    }
}

/// The owned keys that change on a running data plane, in the table's order.
pub fn changes(facts: &Facts) -> Vec<Change> {
    let Some(running) = &facts.live else { return Vec::new() };
    let changed = |key: &OwnedKey| {
        let Wanted::Value(wanted) = (key.wanted)(facts) else { return None };
        let live = (key.live)(running);
        if live.as_ref().is_some_and(|live| is_same_setting(live, &wanted)) {
            return None;
        }
        Some(Change { key: key.name(), live, wanted, needs_consent: key.needs_consent })
    };
    KEYS.iter().filter_map(changed).collect()
}

/// Whether two values of an owned key mean the same: a number, a boolean and their texts do, and
/// lists in another order, which are sets under every owned key.
pub(crate) fn is_same_setting(a: &Value, b: &Value) -> bool {
    if let (Value::Seq(a), Value::Seq(b)) = (a, b) {
        let within = |of: &[Value], other: &[Value]| {
            of.iter().all(|item| other.iter().any(|other| is_same_setting(item, other)))
        };
        return within(a, b) && within(b, a);
    }
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(is) => Some(is.to_string()),
        _ => value.as_f64().map(|number| number.to_string()),
    };
    a == b || text(a).is_some_and(|a| Some(a) == text(b))
}

/// What the user's values said under an owned key.
#[derive(Clone, Debug, PartialEq)]
pub struct Stripped {
    /// The key.
    pub key: String,
    /// The user's value.
    pub value: Value,
}

/// Takes the owned keys out of user values and returns what was there. Tables that become empty
/// go too.
pub fn strip(values: &mut Map) -> Vec<Stripped> {
    let mut stripped = Vec::new();
    for key in &KEYS {
        if let Some(value) = take(values, key.path) {
            stripped.push(Stripped { key: key.name(), value });
        }
    }
    stripped
}

pub(crate) fn take(values: &mut Map, path: &[&str]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return values.remove(first);
    }
    let below = values.get_mut(first)?.as_map_mut()?;
    let value = take(below, rest);
    if value.is_some() && below.is_empty() {
        values.remove(first);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn live() -> (Json, Json) {
        let daemon_set = json!({
            "kind": "DaemonSet",
            "metadata": {"name": "cilium", "namespace": "kube-system"},
            "spec": {"template": {"spec": {
                "containers": [{
                    "name": "cilium-agent",
                    "env": [
                        {"name": "KUBERNETES_SERVICE_HOST", "value": "10.0.0.1"},
                        {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
                    ],
                    "securityContext": {"capabilities": {"add": ["CHOWN", "SYS_MODULE"]}},
                }],
                "initContainers": [{"name": "mount-cgroup"}, {"name": "clean-cilium-state"}],
            }}},
        });
        let config_map = json!({
            "kind": "ConfigMap",
            "metadata": {"name": "cilium-config", "namespace": "kube-system"},
            "data": {
                "ipam": "kubernetes", "routing-mode": "native", "tunnel-protocol": "geneve",
                "kube-proxy-replacement": "true", "cgroup-root": "/run/cilium/cgroupv2",
            },
        });
        (daemon_set, config_map)
    }

    fn read() -> Live {
        let (daemon_set, config_map) = live();
        Live::read(&daemon_set, &config_map).unwrap()
    }

    #[test]
    fn live_settings_are_kept_where_nodes_do_not_run_talos() {
        let facts = Facts::running(read(), false);
        assert_eq!(changes(&facts), []);
        let wanted: Vec<_> = KEYS.iter().map(|key| (key.wanted)(&facts)).collect();
        let text = |text: &str| Wanted::Value(text.into());
        assert_eq!(
            wanted,
            [
                text("kubernetes"),
                text("geneve"),
                text("native"),
                Wanted::Value(true.into()),
                text("10.0.0.1"),
                Wanted::Value(Value::from(6443.0)),
                Wanted::Value(list(&["CHOWN", "SYS_MODULE"])),
                Wanted::Default,
                Wanted::Value(true.into()),
                text("/run/cilium/cgroupv2"),
            ]
        );
    }

    #[test]
    fn talos_has_its_own_and_what_needs_consent_is_said() {
        let facts = Facts::running(read(), true);
        let changes: Vec<_> =
            changes(&facts).into_iter().map(|change| (change.key, change.needs_consent)).collect();
        let expected = [
            ("k8sServiceHost", true),
            ("k8sServicePort", true),
            ("securityContext.capabilities.ciliumAgent", false),
            ("securityContext.capabilities.cleanCiliumState", false),
            ("cgroup.autoMount.enabled", false),
            ("cgroup.hostRoot", false),
        ];
        assert_eq!(changes, expected.map(|(key, consent)| (key.to_owned(), consent)));
    }

    #[test]
    fn talos_without_replacement_keeps_the_live_address() {
        let (daemon_set, mut config_map) = live();
        config_map["data"]["kube-proxy-replacement"] = "false".into();
        let facts = Facts::running(Live::read(&daemon_set, &config_map).unwrap(), true);
        assert!(changes(&facts).iter().all(|change| !change.needs_consent));
    }

    #[test]
    fn a_number_and_its_text_are_one_setting() {
        let mut running = read();
        running.api_host = Some("localhost".into());
        running.api_port = Some("7445".into());
        let facts = Facts::running(running, true);
        assert!(changes(&facts).iter().all(|change| !change.needs_consent));
    }

    #[test]
    fn other_ipam_modes_are_refused() {
        let mut running = read();
        assert_eq!(check_ipam(&running), Ok(()));
        for mode in [Some("cluster-pool"), Some("eni"), None] {
            running.ipam_mode = mode.map(str::to_owned);
            assert!(check_ipam(&running).is_err());
        }
    }

    #[test]
    fn wrong_types_name_object_and_field() {
        let (mut daemon_set, config_map) = live();
        daemon_set["spec"]["template"]["spec"]["containers"][0]["env"][1]["value"] = json!(6443);
        let error = Live::read(&daemon_set, &config_map).unwrap_err().to_string();
        assert_eq!(
            error,
            "DaemonSet kube-system/cilium: field spec.template.spec.containers[0].env[1].value is \
             a number and not a string"
        );
        for wrong in [json!(null), json!([]), json!("x"), json!({"data": {"ipam": {}}})] {
            let result = Live::read(&daemon_set, &wrong);
            assert!(result.is_err());
        }
    }

    #[test]
    fn stripping_takes_emptied_tables_along() {
        let text = b"ipam: {mode: eni, operator: {x: 1}}\ncgroup: {autoMount: {enabled: true}}\n\
                     routingMode: native\nsecurityContext: text\n";
        let mut values =
            goyaml::from_yaml(text, &goyaml::Limits::default()).unwrap().into_map().unwrap();
        let keys: Vec<_> = strip(&mut values).into_iter().map(|stripped| stripped.key).collect();
        assert_eq!(keys, ["ipam.mode", "routingMode", "cgroup.autoMount.enabled"]);
        let left = goyaml::to_yaml(&Value::Map(values)).unwrap();
        assert_eq!(left, "ipam:\n  operator:\n    x: 1\nsecurityContext: text\n");
    }
}
