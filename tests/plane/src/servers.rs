//! The four servers: their flags, starting them, and knowing when they are ready.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::audit;
use crate::error::{Error, Result};
use crate::identity::{Identities, write_kubeconfig};
use crate::peers;
use crate::pki::Pki;
use crate::process::{Folder, Server};

/// Issuer of service-account tokens; a restored plane must have the same or every token is void.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// Addresses of Services; in a saved state, since allocated addresses are in etcd.
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/16";
/// Addresses of pods, cut into one /24 a node by the controller manager.
pub(crate) const POD_RANGE: &str = "10.244.0.0/16";

/// How often another port is tried when a picked one was taken in between.
const PORT_ATTEMPTS: usize = 6;

/// Between two questions whether a server is there.
const POLL: Duration = Duration::from_millis(20);

/// Where the servers' programs are.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) etcd: PathBuf,
    pub(crate) api_server: PathBuf,
    pub(crate) controller_manager: PathBuf,
    pub(crate) scheduler: PathBuf,
    pub(crate) kubernetes_version: String,
}

impl Programs {
    pub(crate) fn find(etcd: &str) -> Result<Self> {
        let api_server = peers::find("kube-apiserver")?;
        Ok(Self {
            etcd: peers::find(etcd)?.path,
            controller_manager: peers::find("kube-controller-manager")?.path,
            scheduler: peers::find("kube-scheduler")?.path,
            kubernetes_version: api_server.version,
            api_server: api_server.path,
        })
    }
}

/// Starts a server on a port that is free, another one if the first was taken meanwhile.
async fn on_free_port(mut start: impl AsyncFnMut(u16) -> Result<Server>) -> Result<(Server, u16)> {
    let mut last = None;
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port()?;
        match start(port).await {
            Ok(server) => return Ok((server, port)),
            Err(error) if is_port_taken(&error) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    let no_port = || Error::NotPossible {
        reason: format!("every picked port was taken, {PORT_ATTEMPTS} times"),
    };
    Err(last.unwrap_or_else(no_port))
}

/// Asks until the server is what it should become, or has ended, or `limit` is over.
async fn wait_until(
    server: &mut Server,
    state: &str,
    limit: Duration,
    mut is_reached: impl AsyncFnMut() -> bool,
) -> Result<()> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if server.ended().is_some() {
            return Err(server.problem("ended while starting"));
        }
        if is_reached().await {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    Err(server.problem(format!("did not become {state} within {} s", limit.as_secs())))
}

/// Starts etcd on the data folder `etcd` and waits until it serves.
pub(crate) async fn start_etcd(folder: &Folder, program: &Path) -> Result<(Server, u16)> {
    on_free_port(async |port| {
        let client = format!("http://127.0.0.1:{port}");
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let arguments = [
            "--name=default".to_owned(),
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            // A power cut in the middle of a test is not a case.
            "--unsafe-no-fsync".to_owned(),
            // A member that is alone need not wait for others before it leads.
            "--heartbeat-interval=50".to_owned(),
            "--election-timeout=250".to_owned(),
            "--log-level=warn".to_owned(),
            "--quota-backend-bytes=4294967296".to_owned(),
        ];
        let mut server = Server::start(folder, "etcd", program, &arguments)?;
        let limit = Duration::from_secs(30);
        wait_until(&mut server, "healthy", limit, async || etcd_is_healthy(port).await).await?;
        Ok(server)
    })
    .await
}

/// One plain HTTP request; etcd answers `{"health":"true",…}`.
async fn etcd_is_healthy(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let request = "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer.contains(r#""health":"true""#))
    };
    let limit = Duration::from_secs(2);
    tokio::time::timeout(limit, ask).await.is_ok_and(|answer| answer.unwrap_or(false))
}

/// What the API server is started with.
pub(crate) struct ApiServerSetup<'a> {
    pub(crate) program: &'a Path,
    pub(crate) pki: &'a Pki,
    pub(crate) identities: &'a Identities,
    pub(crate) etcd_port: u16,
    /// The port to take; another is tried only when none is given.
    pub(crate) port: Option<u16>,
    pub(crate) extra: &'a [String],
}

/// Starts the API server and waits for `/readyz`.
pub(crate) async fn start_api_server(
    folder: &Folder,
    setup: &ApiServerSetup<'_>,
) -> Result<(Server, u16)> {
    audit::write_policy(&folder.path().join("audit-policy.json"))?;
    let start = async |port| {
        let arguments = api_server_arguments(folder, setup, port);
        let mut server = Server::start(folder, "kube-apiserver", setup.program, &arguments)?;
        let url = format!("https://127.0.0.1:{port}");
        let token = &setup.identities.admin.token;
        let client = crate::client::client(&url, &setup.pki.ca_certificate()?, token)?;
        let is_ready = async || crate::client::is_ready(&client).await;
        wait_until(&mut server, "ready", Duration::from_mins(2), is_ready).await?;
        Ok(server)
    };
    match setup.port {
        Some(port) => Ok((start(port).await?, port)),
        None => on_free_port(start).await,
    }
}

fn api_server_arguments(folder: &Folder, setup: &ApiServerSetup<'_>, port: u16) -> Vec<String> {
    let pki = |name: &str| setup.pki.path(name).display().to_string();
    let here = |name: &str| folder.path().join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", setup.etcd_port),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={}", pki("server.crt")),
        format!("--tls-private-key-file={}", pki("server.key")),
        format!("--client-ca-file={}", pki("ca.crt")),
        format!("--token-auth-file={}", Identities::file(setup.pki).display()),
        "--authorization-mode=Node,RBAC".to_owned(),
        // Cilium's agent is a privileged pod.
        "--allow-privileged=true".to_owned(),
        format!("--service-account-issuer={ISSUER}"),
        format!("--service-account-key-file={}", pki("sa.pub")),
        format!("--service-account-signing-key-file={}", pki("sa.key")),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        // The Service `kubernetes` then has no endpoint that a loopback address would spoil.
        "--endpoint-reconciler-type=none".to_owned(),
        // Where the node helper serves logs.
        "--kubelet-preferred-address-types=InternalDNS".to_owned(),
        format!("--audit-policy-file={}", here("audit-policy.json")),
        format!("--audit-log-path={}", here("audit.log")),
        // One file, never rotated: the "nothing written" proof reads all of it.
        "--audit-log-maxsize=100000".to_owned(),
        "--profiling=false".to_owned(),
    ];
    arguments.extend_from_slice(setup.extra);
    arguments
}

/// A server that works through the API server.
struct ApiClient<'a> {
    name: &'static str,
    program: &'a Path,
    token: &'a str,
}

impl ApiClient<'_> {
    /// Starts it with its own kubeconfig and flags beside those that all have.
    fn start(&self, folder: &Folder, pki: &Pki, url: &str, own: &[String]) -> Result<Server> {
        let kubeconfig =
            folder.path().join(format!("{}.kubeconfig", self.name.trim_start_matches("kube-")));
        write_kubeconfig(&kubeconfig, url, &pki.path("ca.crt"), self.token)?;
        let mut arguments = vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            "--secure-port=0".to_owned(),
            // One instance only: waiting for a dead one's lease would cost a restored plane 15 s.
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=200".to_owned(),
            "--kube-api-burst=400".to_owned(),
            "--profiling=false".to_owned(),
        ];
        arguments.extend_from_slice(own);
        Server::start(folder, self.name, self.program, &arguments)
    }
}

/// Starts the controller manager; it is ready when its controllers act.
pub(crate) fn start_controller_manager(
    folder: &Folder,
    program: &Path,
    pki: &Pki,
    identities: &Identities,
    url: &str,
) -> Result<Server> {
    let own = [
        format!("--root-ca-file={}", pki.path("ca.crt").display()),
        format!("--service-account-private-key-file={}", pki.path("sa.key").display()),
        "--use-service-account-credentials=true".to_owned(),
        format!("--cluster-signing-cert-file={}", pki.path("ca.crt").display()),
        format!("--cluster-signing-key-file={}", pki.path("ca.key").display()),
        "--allocate-node-cidrs=true".to_owned(),
        format!("--cluster-cidr={POD_RANGE}"),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
    ];
    let token = &identities.controller_manager.token;
    ApiClient { name: "kube-controller-manager", program, token }.start(folder, pki, url, &own)
}

/// Starts the scheduler.
pub(crate) fn start_scheduler(
    folder: &Folder,
    program: &Path,
    pki: &Pki,
    identities: &Identities,
    url: &str,
) -> Result<Server> {
    let token = &identities.scheduler.token;
    ApiClient { name: "kube-scheduler", program, token }.start(folder, pki, url, &[])
}

/// A loopback port that nothing listens on at this moment.
pub(crate) fn free_port() -> Result<u16> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Error::NotPossible { reason: format!("no free loopback port: {error}") })
}

/// The servers tell a taken port only in their log.
fn is_port_taken(error: &Error) -> bool {
    matches!(error, Error::Server { log, .. } if log.contains("address already in use"))
}
