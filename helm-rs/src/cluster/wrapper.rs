//! Clusters around a cluster: whatever is to happen at every call is written once.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::{
    AccessQuestion, Cluster, Decision, DeleteOptions, Discovery, ListQuery, Page, Patch, Reply,
    Resource, Rules, ServerVersion, Subject, Target, Watch, WatchQuery, WriteOptions,
};

/// One call of a cluster, as what stands around it sees it.
#[derive(Clone, Copy, Debug)]
pub enum Call<'a> {
    /// [`Cluster::get`].
    Get(&'a Target),
    /// [`Cluster::list`].
    List(&'a Resource, &'a ListQuery),
    /// [`Cluster::create`].
    Create(&'a Target, &'a WriteOptions),
    /// [`Cluster::update`].
    Update(&'a Target, &'a WriteOptions),
    /// [`Cluster::patch`].
    Patch(&'a Target, &'a Patch, &'a WriteOptions),
    /// [`Cluster::delete`].
    Delete(&'a Target, &'a DeleteOptions),
    /// [`Cluster::watch`].
    Watch(&'a Resource, &'a WatchQuery),
    /// [`Cluster::logs`], of a pod.
    Logs(&'a Target),
    /// [`Cluster::discovery`].
    Discovery,
    /// [`Cluster::server_version`].
    ServerVersion,
    /// [`Cluster::openapi`], of a group version.
    OpenApi(&'a str),
    /// [`Cluster::may`] and [`Cluster::subject_may`].
    May(&'a AccessQuestion),
    /// [`Cluster::rules`], in a namespace.
    Rules(&'a str),
    /// [`Cluster::identity`].
    Identity,
}

impl Call<'_> {
    /// Whether it asks for a change, be it a dry run.
    pub const fn is_write(&self) -> bool {
        matches!(self, Self::Create(..) | Self::Update(..) | Self::Patch(..) | Self::Delete(..))
    }

    /// Whether the server is only to try it.
    pub const fn is_dry_run(&self) -> bool {
        match self {
            Self::Create(_, options) | Self::Update(_, options) | Self::Patch(_, _, options) => {
                options.dry_run
            }
            Self::Delete(_, options) => options.dry_run,
            _ => false,
        }
    }
}

/// What a call answers.
pub trait Answer: Send {
    /// The objects in it, as the server holds them.
    fn objects(&self) -> &[Value] {
        &[]
    }
}

impl Answer for Value {
    fn objects(&self) -> &[Value] {
        std::slice::from_ref(self)
    }
}

impl Answer for Page {
    fn objects(&self) -> &[Value] {
        &self.items
    }
}

impl Answer for Vec<u8> {}
impl Answer for Box<dyn Watch + '_> {}
impl Answer for Arc<Discovery> {}
impl Answer for ServerVersion {}
impl Answer for Option<Arc<Value>> {}
impl Answer for Decision {}
impl Answer for Rules {}
impl Answer for Subject {}

/// A cluster whose calls go to another one. It is a [`Cluster`] by what it does around each.
pub trait Wrapper: Send + Sync {
    /// The cluster inside.
    fn inner(&self) -> &dyn Cluster;

    /// Answers a call. `answer` makes it at the cluster inside, once it is awaited and not
    /// before; to drop it is not to make the call.
    fn around<'a, T: Answer + 'a>(&'a self, call: Call<'a>, answer: Reply<'a, T>) -> Reply<'a, T>;

    /// What an update is to write instead of `object`.
    fn updated<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        Cow::Borrowed(object)
    }
}

impl<W: Wrapper> Cluster for W {
    fn get<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        let answer = Box::pin(async move { self.inner().get(target).await });
        self.around(Call::Get(target), answer)
    }

    fn list<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Page> {
        let answer = Box::pin(async move { self.inner().list(resource, query).await });
        self.around(Call::List(resource, query), answer)
    }

    fn get_table<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        let answer = Box::pin(async move { self.inner().get_table(target).await });
        self.around(Call::Get(target), answer)
    }

    fn list_table<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Value> {
        let answer = Box::pin(async move { self.inner().list_table(resource, query).await });
        self.around(Call::List(resource, query), answer)
    }

    fn create<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let answer = Box::pin(async move { self.inner().create(target, object, options).await });
        self.around(Call::Create(target, options), answer)
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let answer = Box::pin(async move {
            let object = self.updated(object);
            self.inner().update(target, &object, options).await
        });
        self.around(Call::Update(target, options), answer)
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a Patch,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        let answer = Box::pin(async move { self.inner().patch(target, patch, options).await });
        self.around(Call::Patch(target, patch, options), answer)
    }

    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Reply<'a, Value> {
        let answer = Box::pin(async move { self.inner().delete(target, options).await });
        self.around(Call::Delete(target, options), answer)
    }

    fn watch<'a>(
        &'a self,
        resource: &'a Resource,
        query: &'a WatchQuery,
    ) -> Reply<'a, Box<dyn Watch + 'a>> {
        let answer = Box::pin(async move { self.inner().watch(resource, query).await });
        self.around(Call::Watch(resource, query), answer)
    }

    fn logs<'a>(&'a self, pod: &'a Target, container: &'a str) -> Reply<'a, Vec<u8>> {
        let answer = Box::pin(async move { self.inner().logs(pod, container).await });
        self.around(Call::Logs(pod), answer)
    }

    fn discovery(&self, refresh: bool) -> Reply<'_, Arc<Discovery>> {
        let answer = Box::pin(async move { self.inner().discovery(refresh).await });
        self.around(Call::Discovery, answer)
    }

    fn server_version(&self) -> Reply<'_, ServerVersion> {
        let answer = Box::pin(async move { self.inner().server_version().await });
        self.around(Call::ServerVersion, answer)
    }

    fn openapi<'a>(&'a self, group_version: &'a str) -> Reply<'a, Option<Arc<Value>>> {
        let answer = Box::pin(async move { self.inner().openapi(group_version).await });
        self.around(Call::OpenApi(group_version), answer)
    }

    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Reply<'a, Decision> {
        let answer = Box::pin(async move { self.inner().may(question).await });
        self.around(Call::May(question), answer)
    }

    fn subject_may<'a>(
        &'a self,
        subject: &'a Subject,
        question: &'a AccessQuestion,
    ) -> Reply<'a, Decision> {
        let answer = Box::pin(async move { self.inner().subject_may(subject, question).await });
        self.around(Call::May(question), answer)
    }

    fn rules<'a>(&'a self, namespace: &'a str) -> Reply<'a, Rules> {
        let answer = Box::pin(async move { self.inner().rules(namespace).await });
        self.around(Call::Rules(namespace), answer)
    }

    fn identity(&self) -> Reply<'_, Subject> {
        let answer = Box::pin(async move { self.inner().identity().await });
        self.around(Call::Identity, answer)
    }
}
