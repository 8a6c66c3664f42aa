//! Keeps the facts current: one watch for each kind of object, what is not needed left out.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::facts::{Facts, Objects};
use crate::policies;

/// How long more changes are gathered after one.
const GATHERED: Duration = Duration::from_millis(100);

/// How often it is looked whether a kind is served.
const LOOK: Duration = Duration::from_secs(30);

/// How long a watch that failed waits; doubled each time it fails again, up to [`LAST`].
const FIRST: Duration = Duration::from_millis(800);
/// The longest such wait.
const LAST: Duration = Duration::from_secs(30);
/// So many failures in a row are no interruption any more.
const LASTING: u32 = 4;

/// The stores behind the facts.
struct Stores {
    nodes: Store<Node>,
    daemon_sets: Store<DaemonSet>,
    configs: Store<ConfigMap>,
    operators: Store<Deployment>,
    jobs: Store<Job>,
    pods: Store<Pod>,
    policies: watch::Receiver<Option<Seen>>,
}

/// Ichor's own network policies; none where their kind is not served.
type Seen = Option<Vec<Value>>;

/// The kinds that cannot be watched, each with the server's answer.
pub(crate) type Unseen = BTreeMap<String, String>;

/// Who hears of watches that fail again and again.
#[derive(Clone)]
struct Troubles(watch::Sender<Unseen>);

impl Troubles {
    fn began(&self, kind: &str, error: String) {
        self.0.send_if_modified(|all| all.insert(kind.to_owned(), error.clone()) != Some(error));
    }

    fn ended(&self, kind: &str) {
        self.0.send_if_modified(|all| all.remove(kind).is_some());
    }
}

/// What the watches tell.
#[derive(Clone)]
pub(crate) struct Watched {
    /// The facts; none until every watch has its first list.
    pub(crate) facts: watch::Receiver<Option<Arc<Facts>>>,
    /// What cannot be watched.
    pub(crate) unseen: watch::Receiver<Unseen>,
}

/// Begins to watch.
pub(crate) fn facts(client: &Client) -> Watched {
    let (sender, receiver) = watch::channel(None);
    let (troubles, unseen) = watch::channel(Unseen::new());
    let troubles = Troubles(troubles);
    let notified = Arc::new(Notify::new());
    let changed = (&notified, &troubles);
    let system = cilium::pinned::NAMESPACE;
    let named = |name: &str| watcher::Config::default().fields(&format!("metadata.name={name}"));
    let of_job = watcher::Config::default().labels(&format!("job-name={}", takeover::job::NAME));
    let stores = Stores {
        nodes: keep(Api::all(client.clone()), watcher::Config::default(), changed, slim_node),
        daemon_sets: keep(Api::all(client.clone()), watcher::Config::default(), changed, slim),
        configs: keep(
            Api::namespaced(client.clone(), system),
            named(cilium::pinned::CONFIG_MAP),
            changed,
            slim,
        ),
        operators: keep(
            Api::namespaced(client.clone(), system),
            named("cilium-operator"),
            changed,
            slim,
        ),
        jobs: keep(
            Api::namespaced(client.clone(), system),
            named(takeover::job::NAME),
            changed,
            slim,
        ),
        pods: keep(Api::namespaced(client.clone(), system), of_job, changed, slim),
        policies: policies(client, &notified),
    };
    let changed = Arc::clone(&notified);
    tokio::spawn(async move {
        stores.wait().await;
        loop {
            match Facts::read(&stores.objects()) {
                Ok(facts) => publish(&sender, facts),
                Err(error) => tracing::error!(%error, "the cluster's objects cannot be read"),
            }
            if sender.is_closed() {
                return;
            }
            changed.notified().await;
            tokio::time::sleep(GATHERED).await;
        }
    });
    Watched { facts: receiver, unseen }
}

fn publish(sender: &watch::Sender<Option<Arc<Facts>>>, facts: Facts) {
    sender.send_if_modified(|current| {
        let is_new = current.as_deref() != Some(&facts);
        if is_new {
            *current = Some(Arc::new(facts));
        }
        is_new
    });
}

/// Watches a kind, and notifies of every change.
fn keep<K>(
    api: Api<K>,
    config: watcher::Config,
    (changed, troubles): (&Arc<Notify>, &Troubles),
    slim: fn(&mut K),
) -> Store<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let changed = Arc::clone(changed);
    let events = watcher(api, config).modify(slim).reflect(writer);
    let troubles = troubles.clone();
    tokio::spawn(async move {
        let mut events = std::pin::pin!(events);
        let kind = K::plural(&());
        let mut failures = 0_u32;
        while let Some(event) = events.next().await {
            match event {
                // A list begins with an event of its own, which tells of no success yet.
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => {
                    failures = 0;
                    troubles.ended(&kind);
                    changed.notify_one();
                }
                Err(error) => {
                    let wait = FIRST.saturating_mul(1 << failures.min(16)).min(LAST);
                    failures = failures.saturating_add(1);
                    let (error, again) = (causes(&error), wait.as_secs_f32());
                    tracing::warn!(kind = %kind, error, again, "a watch ended, it begins anew");
                    if failures >= LASTING {
                        troubles.began(&kind, error);
                    }
                    // The next event is that of the next request.
                    tokio::time::sleep(wait).await;
                }
            }
        }
    });
    store
}

/// Watches ichor's own network policies for as long as their kind is served, and looks whether it is
/// while it is not. An error that has another reason leaves what was seen last.
fn policies(client: &Client, changed: &Arc<Notify>) -> watch::Receiver<Option<Seen>> {
    let (sender, receiver) = watch::channel(None);
    let (client, changed) = (client.clone(), Arc::clone(changed));
    let tell = move |seen: Seen| {
        if sender.send_if_modified(|current| current.replace(seen.clone()) != Some(seen)) {
            changed.notify_one();
        }
    };
    tokio::spawn(async move {
        loop {
            let served = client.list_api_group_resources(policies::API).await;
            match served {
                Ok(list) if list.resources.iter().any(|one| one.name == policies::PLURAL) => {
                    watch_policies(&client, &tell).await;
                }
                Ok(_) => tell(None),
                Err(kube::Error::Api(status)) if status.code == 404 => tell(None),
                Err(error) => {
                    tracing::warn!(error = %causes(&error), "what the API server serves");
                    // Nothing else waits for it.
                    tell(None);
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    receiver
}

/// Until the watch ends.
async fn watch_policies(client: &Client, tell: &impl Fn(Seen)) {
    let (group, version) = policies::API.split_once('/').unwrap_or_default();
    let kind = GroupVersionKind::gvk(group, version, policies::KIND);
    let resource = ApiResource::from_gvk_with_plural(&kind, policies::PLURAL);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), cilium::pinned::RECORD_NAMESPACE, &resource);
    let config = watcher::Config::default().fields(&format!("metadata.name={}", policies::POLICY));
    let mut seen = BTreeMap::new();
    let mut events = std::pin::pin!(watcher(api, config));
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => seen.clear(),
            Ok(watcher::Event::InitApply(mut object)) => {
                slim_dynamic(&mut object);
                seen.insert(object.metadata.name.clone(), object);
            }
            Ok(watcher::Event::Apply(mut object)) => {
                slim_dynamic(&mut object);
                seen.insert(object.metadata.name.clone(), object);
                tell(Some(all(&seen)));
            }
            Ok(watcher::Event::Delete(object)) => {
                seen.remove(&object.metadata.name);
                tell(Some(all(&seen)));
            }
            Ok(watcher::Event::InitDone) => tell(Some(all(&seen))),
            Err(error) => {
                tracing::warn!(error = %causes(&error), "the watch of network policies ended");
                return;
            }
        }
    }
}

fn slim_dynamic(object: &mut DynamicObject) {
    object.metadata.managed_fields = None;
}

fn all<K>(seen: &BTreeMap<K, DynamicObject>) -> Vec<Value> {
    seen.values().filter_map(|object| serde_json::to_value(object).ok()).collect()
}

/// An error with what it comes of.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        // Some errors repeat what they come of.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

fn slim<K: Resource>(object: &mut K) {
    object.meta_mut().managed_fields = None;
}

/// A node's status has the names of all images on it, and is written every few minutes.
fn slim_node(node: &mut Node) {
    slim(node);
    if let Some(status) = &mut node.status {
        status.images = None;
        status.addresses = None;
        status.volumes_attached = None;
        status.volumes_in_use = None;
        for condition in status.conditions.iter_mut().flatten() {
            condition.last_heartbeat_time = None;
        }
    }
}

impl Stores {
    /// Waits for the first list of each. A writer that is gone is a process that ends.
    async fn wait(&self) {
        drop(self.nodes.wait_until_ready().await);
        drop(self.daemon_sets.wait_until_ready().await);
        drop(self.configs.wait_until_ready().await);
        drop(self.operators.wait_until_ready().await);
        drop(self.jobs.wait_until_ready().await);
        drop(self.pods.wait_until_ready().await);
        drop(self.policies.clone().wait_for(Option::is_some).await);
    }

    fn objects(&self) -> Objects {
        Objects {
            nodes: values(&self.nodes),
            daemon_sets: values(&self.daemon_sets),
            config: values(&self.configs).pop(),
            operator: values(&self.operators).pop(),
            job: values(&self.jobs).pop(),
            pods: values(&self.pods),
            policies: self.policies.borrow().clone().flatten(),
        }
    }
}

/// The objects by their names, so that the same objects give the same facts.
fn values<K>(store: &Store<K>) -> Vec<Value>
where
    K: Resource<DynamicType = ()> + Clone + Serialize + 'static,
{
    let mut objects = store.state();
    objects
        .sort_by_cached_key(|object| (object.meta().namespace.clone(), object.meta().name.clone()));
    objects.iter().filter_map(|object| serde_json::to_value(&**object).ok()).collect()
}

/// One item each time that the facts change, or what cannot be seen.
pub(crate) fn changes(watched: Watched) -> impl Stream<Item = ()> + Send + 'static {
    futures::stream::unfold(watched, |mut watched| async move {
        tokio::select! {
            changed = watched.facts.changed() => changed.ok()?,
            changed = watched.unseen.changed() => changed.ok()?,
        }
        Some(((), watched))
    })
}
