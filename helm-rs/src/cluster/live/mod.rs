//! A real API server, over `kube`'s client.
//!
//! ```text
//! Connection (kubeconfig, flags) ─► Live ─ send: slots, timeout, retries ─► kube::Client ─► server
//! ```
//!
//! `kube` brings TLS, kubeconfig, credentials and impersonation. Retrying, its limits and the
//! errors are our own, so that a request is never sent twice without knowing what became of the
//! first, and errors read as client-go's.

mod answer;
mod clock;
mod connection;
mod credentials;
mod discover;
mod path;
mod problem;
mod retry;
mod reviews;
mod send;
mod stream;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    AccessQuestion, Clock, Cluster, ClusterError, Decision, DeleteOptions, Discovery, ListQuery,
    Page, Patch, PatchKind, Reply, Resource, Rules, ServerVersion, Subject, Target, Watch,
    WatchQuery, WriteOptions,
};

pub use clock::SystemClock;
pub use connection::{Connection, InCluster};
pub use retry::RetryPolicy;
pub use stream::BodyStream;

use path::Query;
use retry::{Call, Repeat};
use send::Sender;

/// Who gets the warnings that the server sends.
pub type Warnings = Arc<dyn Fn(&str) + Send + Sync>;

/// How requests are sent.
#[derive(Clone)]
pub struct LiveOptions {
    /// `User-Agent`; its part before the slash is the server's default field manager.
    pub user_agent: String,
    /// Requests at a time, watches aside (32). There is no other limit on their rate.
    pub concurrency: usize,
    /// How long one request may take, watches aside (60 s).
    pub timeout: Duration,
    /// Bytes of one answer (1 GiB).
    pub answer_size: usize,
    /// What is tried again, and when.
    pub retry: RetryPolicy,
    /// For waiting between tries.
    pub clock: Arc<dyn Clock>,
    /// Random bits for the jitter of waits.
    pub seed: u64,
    /// Gets each warning that the server sends with an answer.
    pub warnings: Option<Warnings>,
}

impl LiveOptions {
    /// The defaults, for a program (`ichor/0.1.0`) and 64 random bits.
    pub fn new(user_agent: &str, seed: u64) -> Self {
        Self {
            user_agent: user_agent.to_owned(),
            concurrency: 32,
            timeout: Duration::from_mins(1),
            answer_size: 1 << 30,
            retry: RetryPolicy::default(),
            clock: Arc::new(SystemClock::new()),
            seed,
            warnings: None,
        }
    }
}

/// An API server.
pub struct Live {
    sender: Sender,
    discovery: tokio::sync::Mutex<Option<Arc<Discovery>>>,
    openapi: tokio::sync::Mutex<OpenApi>,
}

#[derive(Default)]
struct OpenApi {
    /// Where the document of each group version is; `None` before the index was read.
    index: Option<BTreeMap<String, String>>,
    documents: BTreeMap<String, Arc<Value>>,
}

impl Live {
    /// Prepares a client; nothing is sent yet, and no credential plugin runs.
    ///
    /// # Errors
    /// [`ClusterError::Configuration`] when kubeconfig, certificates or credentials are not good.
    pub async fn connect(
        connection: &Connection,
        options: LiveOptions,
    ) -> Result<Self, ClusterError> {
        let config = connection.config(&options).await?;
        Ok(Self {
            sender: Sender::new(config, options),
            discovery: tokio::sync::Mutex::new(None),
            openapi: tokio::sync::Mutex::new(OpenApi::default()),
        })
    }

    /// The namespace that kubeconfig's context or the pod's service account names.
    pub fn default_namespace(&self) -> &str {
        self.sender.default_namespace()
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        self.sender.url()
    }

    /// A call about one object, whose address is looked at first.
    async fn object(&self, target: &Target, call: Call) -> Result<Value, ClusterError> {
        target.check()?;
        self.value(call).await
    }

    async fn value(&self, call: Call) -> Result<Value, ClusterError> {
        self.sender.send(&call).await?.value()
    }
}

/// What `Accept` says to get an object's metadata only.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What `Accept` says to get a table where the server makes one.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

fn list_query(query: &ListQuery) -> Query {
    let mut parameters = Query::default();
    parameters.add_some("labelSelector", &query.labels);
    parameters.add_some("fieldSelector", &query.fields);
    parameters.add_some("continue", &query.next);
    if query.limit > 0 {
        parameters.add("limit", &query.limit.to_string());
    }
    parameters
}

fn write_query(options: &WriteOptions) -> Query {
    let mut query = Query::default();
    if options.dry_run {
        query.add("dryRun", "All");
    }
    query.add_some("fieldManager", &options.field_manager);
    if let Some(validation) = options.field_validation {
        query.add("fieldValidation", validation.as_str());
    }
    query
}

impl Cluster for Live {
    fn get<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        Box::pin(self.object(target, Call::get(path::object(target)).about(target)))
    }

    fn list<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Page> {
        Box::pin(async move {
            let path = list_query(query).on(&path::collection(resource, &query.namespace));
            let mut call = Call::get(path).on_resource(resource);
            if query.metadata_only {
                call.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
            }
            self.sender.send(&call).await?.page(&resource.kind)
        })
    }

    fn get_table<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        let mut query = Query::default();
        query.add("includeObject", "None");
        let mut call = Call::get(query.on(&path::object(target))).about(target);
        call.accept = TABLE;
        Box::pin(self.object(target, call))
    }

    fn list_table<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Value> {
        let mut parameters = list_query(query);
        parameters.add("includeObject", "None");
        let path = parameters.on(&path::collection(resource, &query.namespace));
        let mut call = Call::get(path).on_resource(resource);
        call.accept = TABLE;
        Box::pin(self.value(call))
    }

    fn create<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let path = if target.subresource.is_empty() {
            path::collection(&target.resource, &target.namespace)
        } else {
            path::object(target)
        };
        let repeat = if options.dry_run {
            Repeat::Always
        } else if target.name.is_empty() || !target.subresource.is_empty() {
            Repeat::Never
        } else {
            Repeat::Create
        };
        let call = Call::new("POST", write_query(options).on(&path))
            .about(target)
            .body("application/json", object.to_string())
            .repeat(repeat)
            .answering(options);
        Box::pin(async move {
            if target.subresource.is_empty() { target.check_namespace() } else { target.check() }?;
            let call = call.owned_by(options, &self.sender.options().user_agent);
            self.sender.send(&call).await?.value()
        })
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let versioned = object
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str)
            .is_some_and(|version| !version.is_empty());
        let call = Call::new("PUT", write_query(options).on(&path::object(target)))
            .about(target)
            .body("application/json", object.to_string())
            .repeat(if versioned { Repeat::Versioned } else { Repeat::Always })
            .answering(options);
        Box::pin(self.object(target, call))
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a Patch,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let mut query = write_query(options);
        if options.force && patch.kind == PatchKind::Apply {
            query.add("force", "true");
        }
        let versioned = patch.body.pointer("/metadata/resourceVersion").is_some();
        let repeat = match patch.kind {
            // A list of operations need not give the same when it is done twice.
            PatchKind::Json => Repeat::UnlessDone,
            _ if versioned => Repeat::Versioned,
            PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply => Repeat::Always,
        };
        let call = Call::new("PATCH", query.on(&path::object(target)))
            .about(target)
            .body(patch.kind.content_type(), patch.body.to_string())
            .repeat(repeat)
            .answering(options);
        Box::pin(self.object(target, call))
    }

    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Reply<'a, Value> {
        let mut body = json!({ "apiVersion": "v1", "kind": "DeleteOptions" });
        if let Some(propagation) = options.propagation {
            body["propagationPolicy"] = propagation.as_str().into();
        }
        if let Some(seconds) = options.grace_period_seconds {
            body["gracePeriodSeconds"] = seconds.into();
        }
        if !options.uid.is_empty() {
            body["preconditions"]["uid"] = options.uid.as_str().into();
        }
        if !options.resource_version.is_empty() {
            body["preconditions"]["resourceVersion"] = options.resource_version.as_str().into();
        }
        if options.dry_run {
            body["dryRun"] = json!(["All"]);
        }
        let this = !options.uid.is_empty() || !options.resource_version.is_empty();
        let repeat = if this { Repeat::DeleteThis } else { Repeat::Delete };
        // The body counts, but an audit log that knows none of it shows that nothing is deleted.
        let query = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
        let call = Call::new("DELETE", write_query(&query).on(&path::object(target)))
            .about(target)
            .body("application/json", body.to_string())
            .repeat(repeat);
        Box::pin(self.object(target, call))
    }

    fn watch<'a>(
        &'a self,
        resource: &'a Resource,
        query: &'a WatchQuery,
    ) -> Reply<'a, Box<dyn Watch + 'a>> {
        Box::pin(async move {
            let watch: Box<dyn Watch + 'a> = watch::start(&self.sender, resource, query).await?;
            Ok(watch)
        })
    }

    fn logs<'a>(&'a self, pod: &'a Target, container: &'a str) -> Reply<'a, Vec<u8>> {
        let mut query = Query::default();
        query.add_some("container", container);
        let path = query.on(&format!("{}/log", path::object(pod)));
        Box::pin(async move {
            pod.check()?;
            let mut call = Call::get(path).about(pod);
            call.accept = "*/*";
            Ok(self.sender.send(&call).await?.body.to_vec())
        })
    }

    fn discovery(&self, refresh: bool) -> Reply<'_, Arc<Discovery>> {
        Box::pin(async move {
            // Held while asking, so that many callers at once ask once.
            let mut known = self.discovery.lock().await;
            if let Some(discovery) = known.as_ref().filter(|_| !refresh) {
                return Ok(Arc::clone(discovery));
            }
            let discovery = Arc::new(discover::discover(&self.sender).await?);
            *known = Some(Arc::clone(&discovery));
            Ok(discovery)
        })
    }

    fn server_version(&self) -> Reply<'_, ServerVersion> {
        Box::pin(
            async move { self.sender.send(&Call::get("/version".to_owned()).raw()).await?.parse() },
        )
    }

    fn openapi<'a>(&'a self, group_version: &'a str) -> Reply<'a, Option<Arc<Value>>> {
        Box::pin(async move {
            let mut known = self.openapi.lock().await;
            if let Some(document) = known.documents.get(group_version) {
                return Ok(Some(Arc::clone(document)));
            }
            if known.index.is_none() {
                known.index = Some(discover::openapi_index(&self.sender).await?);
            }
            let url = known.index.as_ref().and_then(|index| index.get(group_version)).cloned();
            let Some(url) = url else { return Ok(None) };
            let document = Arc::new(self.value(Call::get(url)).await?);
            known.documents.insert(group_version.to_owned(), Arc::clone(&document));
            Ok(Some(document))
        })
    }

    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Reply<'a, Decision> {
        Box::pin(reviews::may(&self.sender, None, question))
    }

    fn subject_may<'a>(
        &'a self,
        subject: &'a Subject,
        question: &'a AccessQuestion,
    ) -> Reply<'a, Decision> {
        Box::pin(reviews::may(&self.sender, Some(subject), question))
    }

    fn rules<'a>(&'a self, namespace: &'a str) -> Reply<'a, Rules> {
        Box::pin(reviews::rules(&self.sender, namespace))
    }

    fn identity(&self) -> Reply<'_, Subject> {
        Box::pin(reviews::identity(&self.sender))
    }
}
