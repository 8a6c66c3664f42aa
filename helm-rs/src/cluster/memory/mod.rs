//! A cluster in memory, made of objects: for rehearsals over files and for tests.
//!
//! It does what an API server does to objects: names, versions, UIDs, generations, conflicts,
//! patches, finalizers, selectors, watches, discovery with CRDs, RBAC; with the server's words. What
//! it does not do is in [`MemoryCluster::limits`]; where that matters for an answer, the answer
//! is [`ClusterError::Unsupported`](super::ClusterError::Unsupported) and not a guess.

mod defaults;
mod load;
mod owners;
mod rights;
mod rollout;
mod select;
mod state;
mod status;
mod table;
mod validate;
mod watch;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{
    AccessQuestion, Clock, Cluster, ClusterError, Decision, DeleteOptions, Discovery, ListQuery,
    Page, Patch, PatchKind, Reply, Resource, Rules, ServerVersion, Subject, Target, Watch,
    WatchQuery, WriteOptions,
};

pub use load::{LoadError, read_objects};

use state::{Key, State};

/// What the in-memory cluster does not simulate.
const LIMITS: &[&str] = &[
    "admission: webhooks, policies, quotas, limit ranges and the built-in admission plugins",
    "validation beyond metadata, and fields that cannot be changed",
    "unknown fields, which a server drops or refuses",
    "defaults beyond a table of the kinds that charts hold most",
    "conversion between the versions of a group",
    "server-side apply",
    "controllers and kubelets, other than garbage collection, the emptying of deleted namespaces and \
     the acceptance of CRDs, all done at once; with simulated controllers, workloads become ready \
     at once",
    "aggregated API servers",
    "subresources other than status, and logs",
];

/// A cluster in memory.
pub struct MemoryCluster {
    state: Mutex<State>,
    clock: Arc<dyn Clock>,
    options: MemoryOptions,
}

/// What a cluster in memory says of itself.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// Random bits for UIDs and generated names: the same seed gives the same ones.
    pub seed: u64,
    /// The field manager of writes that name none.
    pub agent: String,
    /// Who calls. `system:masters` may do everything; others what roles and bindings say.
    pub identity: Subject,
    /// What `/version` answers.
    pub version: ServerVersion,
    /// Whether controllers are simulated: workloads become ready as soon as they are written.
    pub controllers: bool,
    /// What is served before any CRD is added; none: what Kubernetes 1.36 serves.
    pub served: Option<Discovery>,
    /// OpenAPI v3 documents by group version, such as `apps/v1`.
    pub openapi: BTreeMap<String, Arc<Value>>,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            agent: "ichor".to_owned(),
            identity: Subject {
                user: "system:admin".to_owned(),
                groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
                ..Subject::default()
            },
            version: ServerVersion {
                major: "1".to_owned(),
                minor: "36".to_owned(),
                git_version: "v1.36.0".to_owned(),
                platform: "linux/amd64".to_owned(),
            },
            controllers: false,
            served: None,
            openapi: BTreeMap::new(),
        }
    }
}

impl MemoryCluster {
    /// An empty cluster: no objects, not even namespaces.
    pub fn new(clock: Arc<dyn Clock>, options: MemoryOptions) -> Self {
        let state = State::new(options.seed, options.served.as_ref());
        Self { state: Mutex::new(state), clock, options }
    }

    /// What is not simulated, for reports.
    pub const fn limits() -> &'static [&'static str] {
        LIMITS
    }

    /// Every object as it is now, in a stable order: by group, resource, namespace and name.
    pub fn objects(&self) -> Vec<Arc<Value>> {
        self.state().objects.values().map(Arc::clone).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> write::Context<'_> {
        write::Context {
            now: self.clock.now(),
            agent: &self.options.agent,
            controllers: self.options.controllers,
        }
    }

    /// Checks that a resource is served and that the identity may use it.
    fn admit(
        &self,
        state: &State,
        resource: &Resource,
        (namespace, name, subresource): (&str, &str, &str),
        verb: &str,
    ) -> Result<(), ClusterError> {
        let question = AccessQuestion {
            verb: verb.to_owned(),
            group: resource.kind.group.clone(),
            resource: resource.plural.clone(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        if !rights::decide(state, &self.options.identity, &question).allowed {
            let user = &self.options.identity.user;
            return Err(status::forbidden(resource, (namespace, name), user, verb).into());
        }
        let kind = &resource.kind;
        match state.table.resource(&kind.group, &kind.version, &resource.plural) {
            Some(_) => Ok(()),
            None if state.table.has_group(&kind.group) => Err(status::no_resource().into()),
            None => Err(status::no_group(resource, name, verb).into()),
        }
    }

    fn admit_target(&self, state: &State, target: &Target, verb: &str) -> Result<(), ClusterError> {
        target.check()?;
        let place = (target.namespace.as_str(), target.name.as_str(), target.subresource.as_str());
        self.admit(state, &target.resource, place, verb)
    }

    fn list_now(&self, resource: &Resource, query: &ListQuery) -> Result<Page, ClusterError> {
        let state = self.state();
        self.admit(&state, resource, (&query.namespace, "", ""), "list")?;
        let labels = select::Labels::parse(&query.labels)?;
        let fields = select::Fields::parse(&query.fields, resource)?;
        let after = match query.next.split_once('\n') {
            Some((namespace, name)) => Some(Key::new(resource, namespace, name)),
            None if query.next.is_empty() => None,
            None => {
                return Err(status::bad_request(
                    "invalid continue token: continue key is not valid",
                )
                .into());
            }
        };
        let mut page = Page { resource_version: state.version.to_string(), ..Page::default() };
        let mut last: Option<&Key> = None;
        for (key, object) in state.of_resource(resource, &query.namespace, after) {
            if !labels.matches(object) || !fields.matches(object) {
                continue;
            }
            if query.limit > 0 && page.items.len() == query.limit {
                if let Some(last) = last {
                    page.next = format!("{}\n{}", last.namespace, last.name);
                }
                break;
            }
            let mut item = write::shown(resource, object);
            if query.metadata_only {
                item = metadata_of(item);
            }
            page.items.push(item);
            last = Some(key);
        }
        Ok(page)
    }
}

/// An object without all but its metadata.
fn metadata_of(mut object: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata"));
    }
    object
}

/// What a write is answered with. Unlike the items of a list, an object without all but its metadata
/// does not keep its kind.
fn answer<'a>(written: Result<Value, ClusterError>, options: &WriteOptions) -> Reply<'a, Value> {
    let partial = |written| {
        let mut object = metadata_of(written);
        object["apiVersion"] = "meta.k8s.io/v1".into();
        object["kind"] = "PartialObjectMetadata".into();
        object
    };
    now(if options.metadata_only { written.map(partial) } else { written })
}

/// An answer that is there at once.
fn now<'a, T: Send + 'a>(answer: Result<T, ClusterError>) -> Reply<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Cluster for MemoryCluster {
    fn get<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        let state = self.state();
        let answer = self.admit_target(&state, target, "get").and_then(|()| {
            let object = state.get(&Key::of(target));
            object.map(|object| write::shown(&target.resource, object)).ok_or_else(|| {
                ClusterError::from(status::not_found(&target.resource, &target.name))
            })
        });
        now(answer)
    }

    fn list<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Page> {
        now(self.list_now(resource, query))
    }

    fn create<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let mut state = self.state();
        let place = (target.namespace.as_str(), "", target.subresource.as_str());
        let written = self
            .admit(&state, &target.resource, place, "create")
            .and_then(|()| write::create(&mut state, &self.context(), target, object, options));
        answer(written, options)
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let mut state = self.state();
        let written = self
            .admit_target(&state, target, "update")
            .and_then(|()| write::update(&mut state, &self.context(), target, object, options));
        answer(written, options)
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a Patch,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let mut state = self.state();
        debug_assert!(patch.kind != PatchKind::Apply || !options.field_manager.is_empty());
        let written = self
            .admit_target(&state, target, "patch")
            .and_then(|()| write::patch(&mut state, &self.context(), target, patch, options));
        answer(written, options)
    }

    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Reply<'a, Value> {
        let mut state = self.state();
        let answer = self
            .admit_target(&state, target, "delete")
            .and_then(|()| write::delete(&mut state, &self.context(), target, options));
        now(answer)
    }

    fn watch<'a>(
        &'a self,
        resource: &'a Resource,
        query: &'a WatchQuery,
    ) -> Reply<'a, Box<dyn Watch + 'a>> {
        let admitted = self.admit(&self.state(), resource, (&query.namespace, "", ""), "watch");
        now(admitted.and_then(|()| watch::start(self, resource, query)))
    }

    fn logs<'a>(&'a self, pod: &'a Target, _container: &'a str) -> Reply<'a, Vec<u8>> {
        now(Err(ClusterError::Unsupported { what: format!("the log of {pod}") }))
    }

    fn discovery(&self, refresh: bool) -> Reply<'_, Arc<Discovery>> {
        let mut state = self.state();
        if refresh || state.discovery.is_none() {
            state.discovery = Some(Arc::new(state.table.clone().discovery()));
        }
        now(state.discovery.clone().ok_or_else(|| status::no_resource().into()))
    }

    fn server_version(&self) -> Reply<'_, ServerVersion> {
        now(Ok(self.options.version.clone()))
    }

    fn openapi<'a>(&'a self, group_version: &'a str) -> Reply<'a, Option<Arc<Value>>> {
        now(Ok(self.options.openapi.get(group_version).cloned()))
    }

    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Reply<'a, Decision> {
        now(Ok(rights::decide(&self.state(), &self.options.identity, question)))
    }

    fn subject_may<'a>(
        &'a self,
        subject: &'a Subject,
        question: &'a AccessQuestion,
    ) -> Reply<'a, Decision> {
        now(Ok(rights::decide(&self.state(), subject, question)))
    }

    fn rules<'a>(&'a self, namespace: &'a str) -> Reply<'a, Rules> {
        now(Ok(rights::rules(&self.state(), &self.options.identity, namespace)))
    }

    fn identity(&self) -> Reply<'_, Subject> {
        now(Ok(self.options.identity.clone()))
    }
}
