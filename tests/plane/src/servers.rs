//! The four servers: their flags, starting them, and knowing when they are ready.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
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
    pub(crate) fn find() -> Result<Self> {
        let api_server = peers::find("kube-apiserver")?;
        Ok(Self {
            etcd: peers::find("etcd")?.path,
            controller_manager: peers::find("kube-controller-manager")?.path,
            scheduler: peers::find("kube-scheduler")?.path,
            kubernetes_version: api_server.version,
            api_server: api_server.path,
        })
    }
}

/// Starts etcd on the data folder `etcd` and waits until it serves.
pub(crate) async fn start_etcd(folder: &Folder, program: &Path) -> Result<(Server, u16)> {
    let mut last = None;
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port()?;
        let peer_port = free_port()?;
        let client = format!("http://127.0.0.1:{port}");
        let peer = format!("http://127.0.0.1:{peer_port}");
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
        match wait_for_etcd(&mut server, port).await {
            Ok(()) => return Ok((server, port)),
            Err(error) if is_port_taken(&error) => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(no_port))
}

async fn wait_for_etcd(server: &mut Server, port: u16) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while Instant::now() < deadline {
        if server.ended().is_some() {
            return Err(server.problem("ended while starting"));
        }
        if etcd_is_healthy(port).await {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    Err(server.problem("did not become healthy within 30 s"))
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
    let mut last = None;
    for _ in 0..PORT_ATTEMPTS {
        let port = match setup.port {
            Some(port) => port,
            None => free_port()?,
        };
        let arguments = api_server_arguments(folder, setup, port);
        let mut server = Server::start(folder, "kube-apiserver", setup.program, &arguments)?;
        match wait_for_api_server(&mut server, setup, port).await {
            Ok(()) => return Ok((server, port)),
            Err(error) if is_port_taken(&error) && setup.port.is_none() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(no_port))
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

async fn wait_for_api_server(
    server: &mut Server,
    setup: &ApiServerSetup<'_>,
    port: u16,
) -> Result<()> {
    let url = format!("https://127.0.0.1:{port}");
    let token = &setup.identities.admin.token;
    let client = crate::client::client(&url, &setup.pki.ca_certificate()?, token)?;
    let deadline = Instant::now() + Duration::from_mins(2);
    while Instant::now() < deadline {
        if server.ended().is_some() {
            return Err(server.problem("ended while starting"));
        }
        if crate::client::is_ready(&client).await {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Err(server.problem("did not become ready within 120 s"))
}

/// Starts the controller manager; it is ready when its controllers act.
pub(crate) fn start_controller_manager(
    folder: &Folder,
    program: &Path,
    pki: &Pki,
    identities: &Identities,
    url: &str,
) -> Result<Server> {
    let kubeconfig = folder.path().join("controller-manager.kubeconfig");
    let token = &identities.controller_manager.token;
    write_kubeconfig(&kubeconfig, url, &pki.path("ca.crt"), token)?;
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--secure-port=0".to_owned(),
        // One instance only: waiting for a dead one's lease would cost a restored plane 15 s.
        "--leader-elect=false".to_owned(),
        format!("--root-ca-file={}", pki.path("ca.crt").display()),
        format!("--service-account-private-key-file={}", pki.path("sa.key").display()),
        "--use-service-account-credentials=true".to_owned(),
        format!("--cluster-signing-cert-file={}", pki.path("ca.crt").display()),
        format!("--cluster-signing-key-file={}", pki.path("ca.key").display()),
        "--allocate-node-cidrs=true".to_owned(),
        format!("--cluster-cidr={POD_RANGE}"),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        "--profiling=false".to_owned(),
    ];
    Server::start(folder, "kube-controller-manager", program, &arguments)
}

/// Starts the scheduler.
pub(crate) fn start_scheduler(
    folder: &Folder,
    program: &Path,
    pki: &Pki,
    identities: &Identities,
    url: &str,
) -> Result<Server> {
    let kubeconfig = folder.path().join("scheduler.kubeconfig");
    write_kubeconfig(&kubeconfig, url, &pki.path("ca.crt"), &identities.scheduler.token)?;
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        "--secure-port=0".to_owned(),
        "--leader-elect=false".to_owned(),
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
        "--profiling=false".to_owned(),
    ];
    Server::start(folder, "kube-scheduler", program, &arguments)
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

fn no_port() -> Error {
    Error::NotPossible { reason: format!("every picked port was taken, {PORT_ATTEMPTS} times") }
}

/// Copies a folder with everything in it, holes for zeros: etcd keeps 64 MiB of log ahead.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Error::file("cannot make the folder", to))?;
    for entry in fs::read_dir(from).map_err(Error::file("cannot read", from))? {
        let entry = entry.map_err(Error::file("cannot read", from))?;
        let source = entry.path();
        let target = to.join(entry.file_name());
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            copy_sparse(&source, &target).map_err(Error::file("cannot copy", &source))?;
        }
    }
    Ok(())
}

fn copy_sparse(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    target.set_permissions(source.metadata()?.permissions())?;
    let mut block = vec![0_u8; 64 * 1024];
    let zeros = block.clone();
    let mut length = 0;
    loop {
        let count = source.read(&mut block)?;
        let Some(bytes) = block.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        length += count as u64;
        // Compared as slices: byte by byte is a hundred times slower in a debug build.
        if Some(bytes) == zeros.get(..count) {
            target.seek(SeekFrom::Start(length))?;
        } else {
            target.write_all(bytes)?;
        }
    }
    // A hole at the end is part of the file, too.
    target.set_len(length)
}
