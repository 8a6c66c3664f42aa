//! What tests call first: skip when something is missing, share a plane, wait.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::json;
use test_support::Missing;

use crate::error::{Error, Result};
use crate::plane::{Plane, PlaneOptions, SavedState};
use crate::{peers, servers};

/// Kubeconfig of a cluster to run on instead of a plane, for the tests that allow it.
pub const TEST_KUBECONFIG: &str = "ICHOR_TEST_KUBECONFIG";

/// Hands a value on, or tells why the test is skipped.
///
/// # Panics
///
/// On an error that is no reason to skip, and on any when `ICHOR_REQUIRE_PEERS` is `1`.
#[expect(clippy::panic, reason = "a test ends by panic; this is called by tests only")]
#[expect(
    clippy::print_stderr,
    reason = "the reason of a skip is for whoever reads the test's output"
)]
pub fn or_skip<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.is_skip() && !test_support::peers_required() => {
            eprintln!("skipped: {}", error.chain());
            None
        }
        Err(error) => panic!("{}", error.chain()),
    }
}

/// A cluster that a test runs on.
#[derive(Debug)]
pub enum TestCluster {
    /// A plane of this process.
    Plane(Box<Plane>),
    /// Somebody else's cluster, by its kubeconfig.
    External(PathBuf),
}

/// The plane that all tests of one test program share, or the external cluster.
///
/// It is started by the first test that asks and stopped when the last one that holds it is done.
///
/// # Errors
///
/// As [`Plane::start`].
pub async fn shared() -> Result<Arc<TestCluster>> {
    static SHARED: tokio::sync::Mutex<Weak<TestCluster>> =
        tokio::sync::Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(cluster) = shared.upgrade() {
        return Ok(cluster);
    }
    let cluster = Arc::new(match std::env::var_os(TEST_KUBECONFIG) {
        Some(path) => TestCluster::External(path.into()),
        None => TestCluster::Plane(Box::new(Plane::start(PlaneOptions::default()).await?)),
    });
    *shared = Arc::downgrade(&cluster);
    Ok(cluster)
}

impl TestCluster {
    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Plane(plane) => plane.kubeconfig(),
            Self::External(path) => path.clone(),
        }
    }

    /// The plane, for tests that need more than an API server.
    ///
    /// # Errors
    ///
    /// [`Error::NotPossible`] on an external cluster.
    pub fn plane(&self) -> Result<&Plane> {
        match self {
            Self::Plane(plane) => Ok(plane),
            Self::External(_) => Err(Error::NotPossible {
                reason: format!("this test needs a plane of its own, not {TEST_KUBECONFIG}"),
            }),
        }
    }

    /// A client for the runtime this is called in.
    ///
    /// # Errors
    ///
    /// When the kubeconfig is not usable.
    pub async fn client(&self) -> Result<Client> {
        match self {
            Self::Plane(plane) => plane.client(),
            Self::External(path) => external_client(path, None).await,
        }
    }

    /// A client that shows this token and no other credential.
    ///
    /// # Errors
    ///
    /// When the kubeconfig is not usable.
    pub async fn client_with_token(&self, token: &str) -> Result<Client> {
        match self {
            Self::Plane(plane) => plane.client_with_token(token),
            Self::External(path) => external_client(path, Some(token)).await,
        }
    }

    /// `kubectl` on this cluster.
    ///
    /// # Errors
    ///
    /// When it is not built.
    pub fn kubectl(&self) -> Result<Command> {
        let path = match self {
            Self::Plane(plane) => return plane.kubectl(),
            Self::External(path) => path,
        };
        let mut command = Command::new(peers::find("kubectl")?.path);
        command.env("KUBECONFIG", path);
        Ok(command)
    }

    /// A namespace for one test, named after it; on an external cluster it is deleted by
    /// [`TestNamespace::delete`].
    ///
    /// # Errors
    ///
    /// When it cannot be created.
    pub async fn namespace(&self, name: &str) -> Result<TestNamespace> {
        let client = self.client().await?;
        let metadata = match self {
            Self::Plane(_) => json!({"name": name}),
            Self::External(_) => json!({"generateName": format!("{name}-")}),
        };
        let metadata = serde_json::from_value(metadata)
            .map_err(|source| Error::Document { what: "a namespace".to_owned(), source })?;
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespace = Api::<Namespace>::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .map_err(Error::api(format!("create namespace {name}")))?;
        let name = namespace.metadata.name.unwrap_or_default();
        // Pods are refused until the controller manager has made the default ServiceAccount, and
        // their token volume waits for the CA.
        let accounts = Api::<ServiceAccount>::namespaced(client.clone(), &name);
        let maps = Api::<ConfigMap>::namespaced(client.clone(), &name);
        eventually("the namespace is filled", 30, || async {
            let account = accounts.get_opt("default").await.ok().flatten();
            let map = maps.get_opt("kube-root-ca.crt").await.ok().flatten();
            Ok(account.and(map).map(drop))
        })
        .await?;
        Ok(TestNamespace { name, client })
    }
}

/// A client from a kubeconfig, with the token in place of its credentials.
async fn external_client(path: &Path, token: Option<&str>) -> Result<Client> {
    let bad = |error: &dyn std::fmt::Display| Error::NotPossible {
        reason: format!("kubeconfig {}: {error}", path.display()),
    };
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| bad(&error))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| bad(&error))?;
    if let Some(token) = token {
        config.auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    }
    config.default_retry = false;
    Client::try_from(config).map_err(Error::api("make a client"))
}

/// A namespace of one test.
#[derive(Clone)]
pub struct TestNamespace {
    /// Its name.
    pub name: String,
    /// A client of the cluster.
    pub client: Client,
}

impl std::fmt::Debug for TestNamespace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestNamespace").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TestNamespace {
    /// Deletes the namespace with everything in it.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn delete(self) -> Result<()> {
        Api::<Namespace>::all(self.client)
            .delete(&self.name, &DeleteParams::default())
            .await
            .map(drop)
            .map_err(Error::api(format!("delete namespace {}", self.name)))
    }
}

/// Asks again and again until there is an answer.
///
/// # Errors
///
/// [`Error::Timeout`] after the given seconds; any error of `ask` at once.
pub async fn eventually<T, F, A>(what: &str, seconds: u64, mut ask: A) -> Result<T>
where
    A: FnMut() -> F,
    F: Future<Output = Result<Option<T>>>,
{
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(answer) = ask().await? {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            let last = "no answer".to_owned();
            return Err(Error::Timeout { what: what.to_owned(), seconds, last });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
///
/// [`Error::Command`] with both streams when it fails.
pub fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|source| Error::Start { program, source })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Error::Command {
        command: format!("{command:?}"),
        status: output.status.to_string(),
        output: format!("{text}{errors}"),
    })
}

/// A saved state from the cache, prepared once per name and key.
///
/// The cache is `ICHOR_STATES_DIR`, else `states` beside the peers' folders. `key` names everything
/// that the state depends on beside the servers' version, such as a chart's digest.
///
/// # Errors
///
/// When the plane cannot be started, prepared or saved.
pub async fn prepared_state<F, P>(
    name: &str,
    key: &str,
    options: PlaneOptions,
    prepare: P,
) -> Result<SavedState>
where
    P: FnOnce(Arc<Plane>) -> F,
    F: Future<Output = Result<()>>,
{
    let folder = states_folder()?;
    std::fs::create_dir_all(&folder).map_err(Error::file("cannot make the folder", &folder))?;
    let version = servers::Programs::find("etcd")?.kubernetes_version;
    let place = folder.join(format!("{name}-{version}-{key}"));
    if let Ok(state) = SavedState::open(&place) {
        return Ok(state);
    }
    let plane = Arc::new(Plane::start(options).await?);
    prepare(Arc::clone(&plane)).await?;
    let Some(plane) = Arc::into_inner(plane) else {
        return Err(Error::NotPossible { reason: "the preparation kept the plane".to_owned() });
    };
    match plane.save(&place) {
        Ok(state) => Ok(state),
        // Somebody else was faster; theirs is as good.
        Err(error) => SavedState::open(&place).map_err(|_| error),
    }
}

fn states_folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("ICHOR_STATES_DIR") {
        return Ok(folder.into());
    }
    let etcd = peers::find("etcd")?.path;
    let tools = etcd.ancestors().nth(2).unwrap_or(Path::new("/tmp"));
    Ok(tools.join("states"))
}

impl From<Missing> for Error {
    fn from(missing: Missing) -> Self {
        Self::NotPossible { reason: missing.to_string() }
    }
}
