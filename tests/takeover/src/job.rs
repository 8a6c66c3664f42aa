//! The Job's identity on a plane: its Roles applied, changed right by right, and a client of its
//! own whose requests are kept.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use goyaml::Map;
use helm_rs::action::rights::{Right, granted};
use helm_rs::apply::{Cancel, Silent};
use helm_rs::cluster::live::{Connection, Live, LiveOptions};
use helm_rs::cluster::{Cluster, Kind, Target, WriteOptions};
use plane::FaultProxy;
use serde_json::{Value, json};
use takeover::job;
use takeover::plan::{Needs, PlanError, Prepared, WhoWrites, prepare};
use takeover::run::{Done, Run, RunError, take_over};

use crate::Bed;

/// The Job as a client.
pub struct Worker {
    /// Its connection.
    pub cluster: Arc<dyn Cluster>,
    /// A kubeconfig for programs.
    pub kubeconfig: PathBuf,
    /// What keeps its requests.
    pub proxy: FaultProxy,
}

/// A right in the place where a Role of the Job grants it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The Role or ClusterRole.
    pub role: job::Place,
    /// What it grants; its namespace is that of the Role.
    pub right: Right,
}

impl Permission {
    /// Whether it only serves to grant something, and is never used by a request.
    pub fn is_for_granting(&self) -> bool {
        matches!(self.right.verb.as_str(), "escalate" | "bind")
    }
}

/// Everything that Roles of the Job grant.
pub fn permissions(roles: &[Value]) -> Vec<Permission> {
    let mut permissions = BTreeSet::new();
    for object in roles.iter().filter(|object| is_role(object)) {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = namespace.unwrap_or_default();
        let name = [job::NAME, job::RECORDS_ROLE, job::NEW_NAMESPACES_ROLE]
            .into_iter()
            .find(|name| object.pointer("/metadata/name").and_then(Value::as_str) == Some(*name))
            .expect("a known Role");
        let role = job::Place { namespace: namespace.to_owned(), name };
        for right in granted(object, namespace) {
            permissions.insert(Permission { role: role.clone(), right });
        }
    }
    permissions.into_iter().collect()
}

fn is_role(object: &Value) -> bool {
    matches!(object["kind"].as_str(), Some("Role" | "ClusterRole"))
}

/// The same Roles without a permission, in whichever rule it is granted; those that changed.
pub fn without(roles: &[Value], gone: &Permission) -> Vec<Value> {
    let mut changed = Vec::new();
    for role in roles.iter().filter(|object| is_role(object)) {
        let place = role.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        // A ClusterRole grants it everywhere; another namespace's Role is no matter.
        if !place.is_empty() && place != gone.right.namespace {
            continue;
        }
        let mut role = role.clone();
        let before = role.clone();
        let mut rules = Vec::new();
        for rule in role["rules"].as_array().into_iter().flatten() {
            rules.extend(rule_without(rule, &gone.right));
        }
        role["rules"] = rules.into();
        if role != before {
            changed.push(role);
        }
    }
    changed
}

fn rule_without(rule: &Value, gone: &Right) -> Vec<Value> {
    let has = |field: &str, wanted: &str| {
        rule[field].as_array().is_some_and(|list| list.iter().any(|one| one == wanted))
    };
    let names = rule["resourceNames"].as_array().cloned().unwrap_or_default();
    let grants = has("apiGroups", &gone.group)
        && has("resources", &gone.resource)
        && has("verbs", &gone.verb)
        && (names.is_empty() || names.iter().any(|name| name == &gone.name));
    if !grants {
        return vec![rule.clone()];
    }
    let less = |field: &str, value: &str| -> Vec<Value> {
        let list = rule[field].as_array().cloned().unwrap_or_default();
        list.into_iter().filter(|one| one != value).collect()
    };
    // The same rule without the verb, and, for the verb alone, without the name.
    let mut rules = Vec::new();
    let verbs = less("verbs", &gone.verb);
    if !verbs.is_empty() {
        let mut rule = rule.clone();
        rule["verbs"] = verbs.into();
        rules.push(rule);
    }
    let others = less("resourceNames", &gone.name);
    if !names.is_empty() && !others.is_empty() {
        let mut rule = rule.clone();
        rule["verbs"] = json!([gone.verb]);
        rule["resourceNames"] = others.into();
        rules.push(rule);
    }
    rules
}

impl Bed {
    /// Applies the Roles of a plan (and what they need), and logs in as the Job.
    pub async fn worker(&self, needs: &Needs) -> Worker {
        let mut objects = job::objects(needs, &job::JobOptions::default());
        objects.retain(|object| object["kind"] != "Job");
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        let file = self.plane.folder().join("job.json");
        std::fs::write(&file, list.to_string()).expect("a file");
        self.kubectl_with(&["apply", "-f"], &file);
        self.login().await
    }

    /// Logs in as the Job, whose ServiceAccount is there.
    pub async fn login(&self) -> Worker {
        let arguments = ["-n", "kube-system", "create", "token", job::NAME, "--duration=2h"];
        let token = self.kubectl(&arguments);
        let proxy = self.plane.fault_proxy().await.expect("a proxy");
        let kubeconfig = self.plane.folder().join("job.kubeconfig");
        self.plane.write_kubeconfig(&kubeconfig, &proxy.url(), token.trim()).expect("a file");
        let connection = Connection::kubeconfig(&kubeconfig);
        let live = Live::connect(&connection, LiveOptions::new("ichor/job", 1)).await;
        Worker { cluster: Arc::new(live.expect("a client")), kubeconfig, proxy }
    }

    /// A plan as the Job makes it.
    ///
    /// # Errors
    /// [`PlanError`]
    pub async fn plan_of(
        &self,
        worker: &Worker,
        values: Option<&Map>,
    ) -> Result<Prepared, PlanError> {
        let mut request = self.request(values);
        request.cluster = Arc::clone(&worker.cluster);
        prepare(&request).await
    }

    /// A plan of the administrator's for the Job.
    pub async fn plan_for(&self, values: Option<&Map>) -> Prepared {
        let mut request = self.request(values);
        request.who_writes = WhoWrites::Other(job::subject());
        prepare(&request).await.expect("a plan")
    }

    /// The takeover as the Job makes it.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn run_of(
        &self,
        worker: &Worker,
        values: Option<&Map>,
        digest: &str,
    ) -> Result<Done, RunError> {
        let cancel = Cancel::default();
        let mut request = self.request(values);
        request.cluster = Arc::clone(&worker.cluster);
        let run = Run {
            request,
            digest: Some(digest.to_owned()),
            accept_changes: true,
            accept_diff: true,
            holder: format!("job-{}", std::process::id()),
            observer: &Silent,
            cancel: &cancel,
            timeout: Duration::from_mins(2),
        };
        take_over(&run).await
    }

    /// Writes Roles over what is there.
    pub async fn put_roles(&self, roles: &[Value]) {
        for role in roles.iter().filter(|object| is_role(object)) {
            let kind = Kind::of(role);
            let discovery = self.cluster.discovery(false).await.expect("discovery");
            let resource = discovery.resource(&kind).expect("RBAC");
            let target = Target::of(resource, role, "");
            let options = WriteOptions::default();
            self.cluster.update(&target, role, &options).await.expect("a role");
        }
    }

    /// Waits until the authorizer answers for the Job as it should.
    pub async fn until_allowed(&self, right: &Right, allowed: bool) {
        let began = Instant::now();
        let subject = job::subject();
        loop {
            let decision = self.cluster.subject_may(&subject, &right.question()).await;
            if decision.expect("a decision").allowed == allowed {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{right}: not {allowed}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
