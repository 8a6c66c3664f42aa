//! One control plane: started, saved, restored, stopped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use kube::Client;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::audit::AuditLog;
use crate::client;
use crate::copy::copy_folder;
use crate::error::{Error, Result};
use crate::footprint::{Footprint, Meter};
use crate::identity::{Identities, write_kubeconfig};
use crate::nodes::{NodeSpec, Nodes, NodesSetup};
use crate::peers;
use crate::pki::Pki;
use crate::process::{Folder, Server};
use crate::proxy::FaultProxy;
use crate::servers::{self, ApiServerSetup, Programs};

/// How a plane is to be.
#[derive(Debug, Clone)]
pub struct PlaneOptions {
    /// The nodes to register; a restored plane has those of the saved state.
    pub nodes: Vec<NodeSpec>,
    /// Local programs that pods with these images execute: image without tag or digest, program.
    pub images: BTreeMap<String, PathBuf>,
    /// Further flags for the API server.
    pub api_server_flags: Vec<String>,
    /// The peer that etcd is: `etcd`, or another version of it.
    pub etcd: String,
}

impl Default for PlaneOptions {
    /// Five nodes that run no Talos.
    fn default() -> Self {
        Self {
            nodes: NodeSpec::several(5),
            images: BTreeMap::new(),
            api_server_flags: Vec::new(),
            etcd: "etcd".to_owned(),
        }
    }
}

/// How long the parts of a start took.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartTimes {
    /// Copying a saved state, or making certificates.
    pub prepare: Duration,
    /// From starting etcd until it is healthy.
    pub etcd: Duration,
    /// From starting the API server until `/readyz` is ok.
    pub api_server: Duration,
    /// Node Leases and statuses written, controllers started.
    pub nodes: Duration,
}

impl StartTimes {
    /// The sum.
    pub fn total(&self) -> Duration {
        self.prepare + self.etcd + self.api_server + self.nodes
    }
}

/// A running control plane with nodes.
///
/// Everything ends when it is dropped; [`Plane::stop`] does the same in an orderly way.
#[derive(Debug)]
pub struct Plane {
    // In the order in which they are to end.
    nodes: Option<Nodes>,
    scheduler: Option<Server>,
    controller_manager: Option<Server>,
    api_server: Option<Server>,
    etcd: Option<Server>,
    runtime: Option<Runtime>,
    folder: Folder,
    pki: Pki,
    identities: Identities,
    programs: Programs,
    options: PlaneOptions,
    etcd_port: u16,
    port: u16,
    times: StartTimes,
}

/// A stopped plane's data: what [`Plane::save`] writes and [`Plane::restore`] copies.
#[derive(Debug, Clone)]
pub struct SavedState {
    folder: PathBuf,
    meta: Meta,
}

/// What a restored plane must agree with, beside etcd's data and the keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    kubernetes_version: String,
    service_range: String,
    issuer: String,
    nodes: Vec<NodeSpec>,
}

impl Plane {
    /// Starts a fresh control plane and registers its nodes.
    ///
    /// Ready means: `/readyz` is ok, the nodes are Ready and the controllers run.
    ///
    /// # Errors
    ///
    /// [`Error::MissingPeer`] when the servers are not built; [`Error::Server`] with the end of the
    /// log when one does not come up.
    pub async fn start(options: PlaneOptions) -> Result<Self> {
        let began = Instant::now();
        let programs = Programs::find(&options.etcd)?;
        let folder = Folder::create()?;
        let pki = Pki::create(&folder.path().join("pki"))?;
        let identities = Identities::create(&pki)?;
        Self::bring_up(folder, pki, identities, programs, options, began).await
    }

    /// Starts a control plane from a copy of a saved state.
    ///
    /// `options.nodes` is ignored: the saved state knows its nodes.
    ///
    /// # Errors
    ///
    /// As [`Plane::start`], and when the state was saved by other versions.
    pub async fn restore(state: &SavedState, options: PlaneOptions) -> Result<Self> {
        let began = Instant::now();
        let programs = Programs::find(&options.etcd)?;
        state.check(&programs)?;
        let folder = Folder::create()?;
        copy_folder(&state.folder.join("etcd"), &folder.path().join("etcd"))?;
        copy_folder(&state.folder.join("pki"), &folder.path().join("pki"))?;
        let pki = Pki::open(&folder.path().join("pki"));
        let identities = Identities::open(&pki)?;
        let options = PlaneOptions { nodes: state.meta.nodes.clone(), ..options };
        Self::bring_up(folder, pki, identities, programs, options, began).await
    }

    async fn bring_up(
        folder: Folder,
        pki: Pki,
        identities: Identities,
        programs: Programs,
        options: PlaneOptions,
        began: Instant,
    ) -> Result<Self> {
        let mut times = StartTimes { prepare: began.elapsed(), ..StartTimes::default() };
        // Tests have a runtime each and end at different times; the plane needs one that stays.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("plane")
            .enable_all()
            .build()
            .map_err(|source| Error::Start { program: "the plane's runtime".to_owned(), source })?;

        let began = Instant::now();
        let (etcd, etcd_port) = servers::start_etcd(&folder, &programs.etcd).await?;
        times.etcd = began.elapsed();

        let began = Instant::now();
        let setup = ApiServerSetup {
            program: &programs.api_server,
            pki: &pki,
            identities: &identities,
            etcd_port,
            port: None,
            extra: &options.api_server_flags,
        };
        let (api_server, port) = servers::start_api_server(&folder, &setup).await?;
        times.api_server = began.elapsed();

        let mut plane = Self {
            nodes: None,
            scheduler: None,
            controller_manager: None,
            api_server: Some(api_server),
            etcd: Some(etcd),
            runtime: Some(runtime),
            folder,
            pki,
            identities,
            programs,
            options,
            etcd_port,
            port,
            times,
        };
        let began = Instant::now();
        plane.write_kubeconfig(&plane.kubeconfig(), &plane.url(), &plane.identities.admin.token)?;
        plane.start_nodes().await?;
        plane.start_controllers()?;
        plane.times.nodes = began.elapsed();
        Ok(plane)
    }

    /// Registers the nodes, or renews their Leases and statuses, before a controller can judge them.
    async fn start_nodes(&mut self) -> Result<()> {
        let Some(runtime) = &self.runtime else { return Ok(()) };
        let setup = NodesSetup {
            server: self.url(),
            ca: self.pki.ca_certificate()?,
            token: self.identities.nodes.token.clone(),
            kubernetes_version: self.programs.kubernetes_version.clone(),
            certificate: self.pki.path("server.crt"),
            key: self.pki.path("server.key"),
            folder: self.folder.path().to_path_buf(),
            nodes: self.options.nodes.clone(),
            images: self.options.images.clone(),
            pod_api_server: ([127, 0, 0, 1], self.port).into(),
        };
        self.nodes = Some(Nodes::start(runtime.handle(), setup).await?);
        Ok(())
    }

    fn start_controllers(&mut self) -> Result<()> {
        let url = self.url();
        self.controller_manager = Some(servers::start_controller_manager(
            &self.folder,
            &self.programs.controller_manager,
            &self.pki,
            &self.identities,
            &url,
        )?);
        self.scheduler = Some(servers::start_scheduler(
            &self.folder,
            &self.programs.scheduler,
            &self.pki,
            &self.identities,
            &url,
        )?);
        Ok(())
    }

    /// Address of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Address of etcd.
    pub fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port)
    }

    /// The plane's temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Version of the servers, such as `v1.36.4`.
    pub fn kubernetes_version(&self) -> &str {
        &self.programs.kubernetes_version
    }

    /// Kubeconfig of the admin.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Writes a kubeconfig for another server address (a fault proxy) or token.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path, server: &str, token: &str) -> Result<()> {
        write_kubeconfig(path, server, &self.pki.path("ca.crt"), token)
    }

    /// The plane's identities and their tokens.
    pub fn identities(&self) -> &Identities {
        &self.identities
    }

    /// Keys and certificates; [`Pki::client`] makes a user of any name.
    pub fn pki(&self) -> &Pki {
        &self.pki
    }

    /// A client of the admin, for the runtime this is called in.
    ///
    /// # Errors
    ///
    /// When the CA cannot be read.
    pub fn client(&self) -> Result<Client> {
        self.client_with_token(&self.identities.admin.token)
    }

    /// A client that shows another token.
    ///
    /// # Errors
    ///
    /// When the CA cannot be read.
    pub fn client_with_token(&self, token: &str) -> Result<Client> {
        client::client(&self.url(), &self.pki.ca_certificate()?, token)
    }

    /// The nodes, to make one sick.
    pub fn nodes(&self) -> Option<&Nodes> {
        self.nodes.as_ref()
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::new(self.folder.path().join("audit.log"))
    }

    /// Starts a fault proxy in front of the API server.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn fault_proxy(&self) -> Result<FaultProxy> {
        let Some(runtime) = &self.runtime else {
            return Err(Error::NotPossible { reason: "the plane is stopped".to_owned() });
        };
        FaultProxy::start(runtime.handle(), &self.url(), &self.pki).await
    }

    /// `kubectl` as the admin.
    ///
    /// # Errors
    ///
    /// When it is not built.
    pub fn kubectl(&self) -> Result<Command> {
        self.tool("kubectl")
    }

    /// Real Helm as the admin, with a home of its own.
    ///
    /// # Errors
    ///
    /// When it is not built.
    pub fn helm(&self) -> Result<Command> {
        self.tool("helm")
    }

    /// A built tool with this plane's kubeconfig and nothing else of the caller's environment.
    ///
    /// # Errors
    ///
    /// When it is not built.
    pub fn tool(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(peers::find(name)?.path);
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("KUBECONFIG", self.kubeconfig());
        Ok(command)
    }

    /// How long the parts of the start took.
    pub fn start_times(&self) -> StartTimes {
        self.times
    }

    /// Kills the API server, as a crash does, and starts it again on the same port.
    ///
    /// # Errors
    ///
    /// When it does not come back.
    pub async fn restart_api_server(&mut self) -> Result<()> {
        drop(self.api_server.take());
        let setup = ApiServerSetup {
            program: &self.programs.api_server,
            pki: &self.pki,
            identities: &self.identities,
            etcd_port: self.etcd_port,
            port: Some(self.port),
            extra: &self.options.api_server_flags,
        };
        let (server, _) = servers::start_api_server(&self.folder, &setup).await?;
        self.api_server = Some(server);
        Ok(())
    }

    /// Memory of the whole plane now, by process. The node helper is this process.
    pub fn footprint(&self) -> Footprint {
        Meter::new(&self.processes()).footprint()
    }

    /// A meter of the CPU time of the plane's processes.
    pub fn meter(&self) -> Meter {
        Meter::new(&self.processes())
    }

    /// The processes of the plane, this one (for the node helper) included.
    pub fn processes(&self) -> Vec<(String, u32)> {
        let servers = [&self.etcd, &self.api_server, &self.controller_manager, &self.scheduler];
        let mut processes: Vec<(String, u32)> = servers
            .into_iter()
            .flatten()
            .map(|server| (server.name().to_owned(), server.pid()))
            .collect();
        processes.push(("node helper".to_owned(), std::process::id()));
        processes
    }

    /// Stops the plane and keeps its state in a folder, from which any number can be restored.
    ///
    /// # Errors
    ///
    /// When the folder exists already or cannot be written.
    pub fn save(mut self, to: &Path) -> Result<SavedState> {
        let meta = Meta {
            kubernetes_version: self.programs.kubernetes_version.clone(),
            service_range: servers::SERVICE_RANGE.to_owned(),
            issuer: servers::ISSUER.to_owned(),
            nodes: self.options.nodes.clone(),
        };
        self.stop_servers();
        // Written beside its place and moved, so that a state is whole or not there.
        let name = to.file_name().map(|name| name.to_string_lossy().into_owned());
        let part =
            to.with_file_name(format!(".{}.{}", name.unwrap_or_default(), std::process::id()));
        copy_folder(&self.folder.path().join("etcd"), &part.join("etcd"))?;
        copy_folder(&self.folder.path().join("pki"), &part.join("pki"))?;
        let text = serde_json::to_string_pretty(&meta)
            .map_err(|source| Error::Document { what: "the saved state".to_owned(), source })?;
        let path = part.join("meta.json");
        fs::write(&path, text).map_err(Error::file("cannot write", path))?;
        fs::rename(&part, to).map_err(|error| {
            // What cannot be removed either is a hidden folder beside the place.
            drop(fs::remove_dir_all(&part));
            Error::file("cannot make the folder", to)(error)
        })?;
        Ok(SavedState { folder: to.to_path_buf(), meta })
    }

    /// Stops all processes and removes the folder.
    pub fn stop(mut self) {
        self.stop_servers();
    }

    /// Only etcd holds state, so only it is asked politely.
    fn stop_servers(&mut self) {
        self.scheduler = None;
        self.controller_manager = None;
        self.api_server = None;
        // After the API server, so that the end of executed pods is not in a saved state.
        self.nodes = None;
        if let Some(etcd) = self.etcd.take() {
            etcd.stop(Duration::from_secs(10));
        }
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // Nodes first: they end the pods that they execute.
        self.nodes = None;
        if let Some(runtime) = self.runtime.take() {
            // A plain drop would block, which an async test must not.
            runtime.shutdown_background();
        }
    }
}

impl SavedState {
    /// Opens the folder that [`Plane::save`] wrote.
    ///
    /// # Errors
    ///
    /// When it is not there or not readable.
    pub fn open(folder: &Path) -> Result<Self> {
        let path = folder.join("meta.json");
        let text = fs::read_to_string(&path).map_err(Error::file("cannot read", &path))?;
        let meta = serde_json::from_str(&text)
            .map_err(|source| Error::Document { what: path.display().to_string(), source })?;
        Ok(Self { folder: folder.to_path_buf(), meta })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn check(&self, programs: &Programs) -> Result<()> {
        let same = self.meta.kubernetes_version == programs.kubernetes_version
            && self.meta.service_range == servers::SERVICE_RANGE
            && self.meta.issuer == servers::ISSUER;
        if same {
            return Ok(());
        }
        Err(Error::NotPossible {
            reason: format!(
                "{} was saved by Kubernetes {} with other settings",
                self.folder.display(),
                self.meta.kubernetes_version
            ),
        })
    }
}
