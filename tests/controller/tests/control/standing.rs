//! The Job's standing Roles, rule by rule: which plan needs it, and that the takeover refuses without
//! it, before it writes anything, and names it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::{Duration, Instant};

use controller_tests::handed::Seeded;
use controller_tests::{chart, kubectl};
use goyaml::Map;
use helm_rs::action::rights::Right;
use helm_rs::render::{Engine, EngineOptions};
use plane::{NodeHealth, Nodes};
use serde_json::{Value, json};
use takeover::job::{NAME, subject};
use takeover::plan::Needs;
use takeover_tests::job::{Permission, permissions, without};
use takeover_tests::{Bed, kube_proxy, values_of};

const STANDING: &str = "ichor-cni-standing";
/// Permissions that are taken away in CI; all with `ICHOR_RIGHTS_PROOF`.
const SAMPLE: usize = 3;

/// What is there of Cilium when a plan is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum There {
    /// What one set of values renders.
    One,
    /// What any set renders.
    Every,
    /// The same but what it may do, and the namespaces of its own.
    NoRoles,
    /// Nothing: the nodes wait for a network.
    Nothing,
}

/// A plan: what is there, and the set of values.
type Which = (There, usize);

async fn bed() -> Option<Bed> {
    let bed = Bed::with_cilium("1.20.0", "03").await?;
    kube_proxy(&bed);
    let chart = chart().display().to_string();
    let mut ichor = Command::new(test_support::place::ichor());
    ichor.env("KUBECONFIG", bed.plane.kubeconfig());
    ichor.args(["release", "install", "ichor", &chart, "-n", "ichor-system", "--create-namespace"]);
    plane::support::run(ichor.args(["--set", "replicas=0"])).unwrap();
    // The values are those of each set.
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    Some(bed)
}

/// Makes a state of the one before.
async fn reach(bed: &Bed, there: There, sets: &[Map]) {
    let cilium = "app.kubernetes.io/part-of=cilium";
    match there {
        There::One => {}
        There::Every => {
            let discovery = bed.cluster.discovery(false).await.unwrap();
            let engine = Engine::new(EngineOptions::default());
            let items =
                sets.iter().filter_map(|set| crate::rights::objects(&engine, &discovery, set));
            let objects: Vec<Value> = items.flatten().map(|item| item.value).collect();
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
            // What is there already is refused, and stays.
            let output = kubectl(&bed.plane, &["create"], &list);
            let told = String::from_utf8_lossy(&output.stderr);
            let strange = told.lines().find(|line| !line.contains("already exists"));
            assert_eq!(strange, None);
            // Each is to be written: another release owns it. Provenance goes by the DaemonSet.
            let owner = ["annotate", "--overwrite", "meta.helm.sh/release-name=other"];
            let output = kubectl(&bed.plane, &owner, &list);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let owner =
                ["annotate", "--overwrite", "ds/cilium", "meta.helm.sh/release-name=cilium"];
            bed.kubectl(&[["-n", "kube-system"].as_slice(), &owner].concat());
        }
        There::NoRoles => {
            let kinds = "role,rolebinding,clusterrole,clusterrolebinding";
            bed.kubectl(&["delete", kinds, "-A", "-l", cilium]);
            bed.kubectl(&["delete", "namespace", "cilium-secrets"]);
        }
        There::Nothing => {
            let kinds = "ds,deploy,cj,jobs,svc,cm,secret,sa,servicemonitors";
            bed.kubectl(&["delete", kinds, "-n", "kube-system", "-l", cilium]);
            let more = ["cm/cilium-config", "secret/cilium-ca", "--ignore-not-found"];
            bed.kubectl(&[["-n", "kube-system", "delete"].as_slice(), &more].concat());
            let client = bed.plane.client().unwrap();
            for number in 1..=5 {
                let node = format!("node-{number}");
                Nodes::set_node(&client, &node, NodeHealth::NotReady).await.unwrap();
            }
            bed.kubectl(&["wait", "--for=condition=Ready=false", "nodes", "--all"]);
        }
    }
}

/// The standing Roles as they are.
fn standing(bed: &Bed) -> Vec<Value> {
    let list = bed.kubectl(&["get", "clusterroles,roles", "-A", "-o", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let is_it = |role: &&Value| role["metadata"]["name"] == STANDING;
    let mut roles: Vec<Value> =
        list["items"].as_array().unwrap().iter().filter(is_it).cloned().collect();
    for role in &mut roles {
        role["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    }
    roles
}

/// Every permission of theirs, in the Role whose place the takeover names.
fn all_of(roles: &[Value]) -> Vec<Permission> {
    let mut roles = roles.to_vec();
    for role in &mut roles {
        role["metadata"]["name"] = NAME.into();
    }
    permissions(&roles)
}

fn covers(wide: &Right, right: &Right) -> bool {
    (&wide.verb, &wide.group, &wide.resource, &wide.url)
        == (&right.verb, &right.group, &right.resource, &right.url)
        && (wide.namespace.is_empty() || wide.namespace == right.namespace)
        && (wide.name.is_empty() || wide.name == right.name)
}

/// For each permission the first plan that fails without it (`critical`), or that it serves in one of
/// several ways (`used`).
#[derive(Default)]
struct Uses {
    critical: BTreeMap<usize, Which>,
    used: BTreeSet<usize>,
}

impl Uses {
    fn add(&mut self, which: Which, needs: &Needs, all: &[Permission]) {
        for need in &needs.list {
            let mut common: Option<BTreeSet<usize>> = None;
            for rights in &need.alternatives {
                let mut sole = BTreeSet::new();
                let mut is_met = true;
                for right in rights {
                    let mut by = all.iter().enumerate().filter(|(_, p)| covers(&p.right, right));
                    match (by.next(), by.next()) {
                        (None, _) => is_met = false,
                        (Some((only, _)), None) => drop(sole.insert(only)),
                        _ => {}
                    }
                }
                if is_met {
                    self.used.extend(&sole);
                    common = Some(match common {
                        None => sole,
                        Some(common) => common.intersection(&sole).copied().collect(),
                    });
                }
            }
            for permission in common.into_iter().flatten() {
                self.critical.entry(permission).or_insert(which);
            }
        }
    }
}

/// What the plan of a set of values lacks.
async fn missing(bed: &Bed, values: &Map) -> Vec<String> {
    let plan = bed.plan_for(Some(values)).await.plan;
    plan.rights.missing.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_any_single_permission_of_the_job_a_plan_is_refused() {
    let files = match test_support::place::shared_files("values", ".yaml") {
        Ok(files) => files,
        Err(missing) => test_support::skip!(missing),
    };
    let sets: Vec<Map> = [String::new()]
        .into_iter()
        .chain(files.iter().map(|file| std::fs::read_to_string(file).unwrap()))
        .map(|text| values_of(&text))
        .collect();
    let Some(bed) = bed().await else { return };
    let began = Instant::now();
    let roles = standing(&bed);
    assert_eq!(roles.len(), 3, "a ClusterRole and two Roles");
    let all = all_of(&roles);
    let whole = std::env::var_os("ICHOR_RIGHTS_PROOF").is_some();
    let mut uses = Uses::default();
    let (mut plans, mut tried, mut named) = (0, 0, 0);
    let mut seeded = Seeded::new();
    for there in [There::One, There::Every, There::NoRoles, There::Nothing] {
        reach(&bed, there, &sets).await;
        let known: BTreeSet<usize> = uses.critical.keys().copied().collect();
        let mut before: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (number, values) in sets.iter().enumerate() {
            // Some sets are there to be refused.
            let mut request = bed.request(Some(values));
            request.who_writes = takeover::plan::WhoWrites::Other(subject());
            let Ok(prepared) = takeover::plan::prepare(&request).await else { continue };
            plans += 1;
            // Rights in namespaces that the chart makes come with a plan.
            let lacks: Vec<String> =
                prepared.plan.rights.missing.iter().map(ToString::to_string).collect();
            let here = |text: &&String| !text.contains(" in namespace cilium-secrets (");
            let strange: Vec<&String> = lacks.iter().filter(here).collect();
            assert_eq!(strange, [""; 0], "{there:?}, set {number}");
            before.insert(number, lacks);
            uses.add((there, number), &prepared.needs, &all);
        }
        // With the state at hand: taken away for real.
        let new: Vec<(usize, Which)> = uses
            .critical
            .iter()
            .filter(|(number, _)| !known.contains(number))
            .map(|(number, which)| (*number, *which))
            .collect();
        let step = if whole { 1 } else { new.len().div_ceil(SAMPLE).max(1) };
        let start = if whole { 0 } else { seeded.below(step) };
        for (number, (_, set)) in new.into_iter().skip(start).step_by(step) {
            let gone = &all[number];
            let fewer = without(&roles, gone);
            bed.put_roles(&fewer).await;
            bed.until_allowed(&gone.right, false).await;
            let lacks = missing(&bed, &sets[set]).await;
            let right = gone.right.to_string();
            let is_named = lacks.iter().any(|text| text.starts_with(&format!("{right} (")));
            named += usize::from(is_named);
            // Where there are several ways, the first one is told.
            let more: Vec<_> = lacks.iter().filter(|text| !before[&set].contains(text)).collect();
            assert!(!more.is_empty(), "{there:?}, set {set}, without {right}: {lacks:?}");
            bed.put_roles(&roles).await;
            bed.until_allowed(&gone.right, true).await;
            tried += 1;
        }
    }
    // A takeover deletes nothing of the chart's: changes of values do (`change.rs`).
    let discovery = bed.cluster.discovery(false).await.unwrap();
    let engine = Engine::new(EngineOptions::default());
    let items: Vec<_> =
        sets.iter().filter_map(|set| crate::rights::objects(&engine, &discovery, set)).collect();
    let deletions = Needs::taking_away(&crate::rights::passing(&items));
    uses.add((There::Every, 0), &deletions, &all);
    // One on a name stands beside the same one on all names, so that without the wide one the Job
    // still sees enough to name it.
    let is_beside = |permission: &Permission| {
        all.iter().any(|wide| *wide != *permission && covers(&wide.right, &permission.right))
    };
    let needless: Vec<String> = all
        .iter()
        .enumerate()
        .filter(|(number, permission)| !uses.used.contains(number) && !is_beside(permission))
        .map(|(_, permission)| format!("{}: {}", permission.role, permission.right))
        .collect();
    println!(
        "{} permissions in {} Roles, {plans} plans: {} that a plan fails without, {} one of \
         several ways, {} beside a wider one; {tried} taken away, \
         {named} of them named themselves, {:.0} s",
        all.len(),
        roles.len(),
        uses.critical.len(),
        uses.used.len() - uses.critical.len(),
        all.iter().filter(|permission| is_beside(permission)).count(),
        Duration::as_secs_f64(&began.elapsed())
    );
    assert_eq!(needless, [""; 0], "no plan needs these");
}
