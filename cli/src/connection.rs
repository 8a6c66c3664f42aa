//! Flags that say which cluster is meant, and the client for it.

use std::ffi::OsString;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use clap::Args;
use helm_rs::cluster::live::{Connection, Live, LiveOptions};
use helm_rs::gotext::quote;
use helm_rs::release::storage::ObjectKind;

use crate::commands::chart::options::NamespaceFlags;
use crate::environment::Environment;
use crate::error::CommandError;
use crate::flags;

/// What this program calls itself at the server.
const USER_AGENT: &str = concat!("ichor/", env!("CARGO_PKG_VERSION"));

/// Where client-go looks for a server that no kubeconfig names.
const DEFAULT_SERVER: &str = "http://localhost:8080";

/// How long it may take to see that nobody listens there.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a request may take that may take as long as it likes.
const NO_LIMIT: Duration = Duration::from_hours(365 * 24);

/// What `HELM_DRIVER` says that records are kept in (`Configuration.Init` in `pkg/action/action.go`).
pub(crate) fn record_kind(environment: &Environment) -> Result<ObjectKind, CommandError> {
    match environment.bytes(b"HELM_DRIVER").as_deref() {
        None | Some(b"secret" | b"secrets") => Ok(ObjectKind::Secret),
        Some(b"configmap" | b"configmaps") => Ok(ObjectKind::ConfigMap),
        Some(other @ (b"memory" | b"sql")) => Err(CommandError::new(format_args!(
            "HELM_DRIVER={}: records are kept in Secrets or ConfigMaps only",
            String::from_utf8_lossy(other)
        ))),
        Some(other) => Err(CommandError::new(format_args!("unknown driver {}", quote(other)))),
    }
}

/// Helm's flags for the cluster.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterFlags {
    #[command(flatten)]
    pub(crate) namespace: NamespaceFlags,
    /// Address of the API server
    #[arg(long, value_name = "URL", hide_short_help = true)]
    kube_apiserver: Option<String>,
    /// File with the server's CA
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    kube_ca_file: Option<String>,
    /// Name that the server's certificate must have
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    kube_tls_server_name: Option<String>,
    /// Do not check the server's certificate
    #[arg(long, hide_short_help = true)]
    kube_insecure_skip_tls_verify: bool,
    /// Bearer token
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    kube_token: Option<String>,
    /// User to impersonate
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    kube_as_user: Option<String>,
    /// Group to impersonate (repeatable)
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    kube_as_group: Vec<String>,
    /// How long one request may take [default: 1m0s]
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    request_timeout: Option<String>,
}

impl ClusterFlags {
    /// The release's namespace.
    pub(crate) fn namespace(&self, environment: &Environment) -> String {
        self.namespace.namespace(environment)
    }

    /// The release's namespace, which is part of what is written there.
    ///
    /// # Errors
    ///
    /// No namespace can have that name.
    pub(crate) fn checked_namespace(
        &self,
        environment: &Environment,
    ) -> Result<String, CommandError> {
        let namespace = self.namespace(environment);
        flags::namespace(&namespace).map_err(|error| {
            let text = helm_rs::gotext::quote(&namespace);
            CommandError::new(format_args!(
                "invalid argument {text} for \"-n, --namespace\" flag: {error}"
            ))
        })
    }

    /// What decides on server and identity: flags, then Helm's environment variables.
    fn connection(&self, environment: &Environment) -> Result<Connection, CommandError> {
        let text = |flag: &Option<String>, name: &str| {
            flag.clone()
                .filter(|value| !value.is_empty())
                .or_else(|| environment.text(name).map(str::to_owned))
        };
        let search: Vec<PathBuf> = match environment.variable("KUBECONFIG") {
            Some(list) => {
                std::env::split_paths(list).filter(|path| path.as_path() != Path::new("")).collect()
            }
            None => environment
                .variable("HOME")
                .map(|home: &OsString| Path::new(home).join(".kube/config"))
                .into_iter()
                .collect(),
        };
        let mut as_groups = flags::string_slice("--kube-as-group", &self.kube_as_group)?;
        if as_groups.is_empty()
            && let Some(groups) = environment.text("HELM_KUBEASGROUPS")
        {
            as_groups = groups.split(',').map(str::to_owned).collect();
        }
        Ok(Connection {
            kubeconfig: self
                .namespace
                .kubeconfig
                .clone()
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            search,
            context: text(&self.namespace.kube_context, "HELM_KUBECONTEXT"),
            server: text(&self.kube_apiserver, "HELM_KUBEAPISERVER"),
            ca_file: text(&self.kube_ca_file, "HELM_KUBECAFILE").map(PathBuf::from),
            tls_server_name: text(&self.kube_tls_server_name, "HELM_KUBETLS_SERVER_NAME"),
            insecure_skip_tls_verify: self.kube_insecure_skip_tls_verify
                || environment.flag("HELM_KUBEINSECURE_SKIP_TLS_VERIFY"),
            token: text(&self.kube_token, "HELM_KUBETOKEN"),
            as_user: text(&self.kube_as_user, "HELM_KUBEASUSER"),
            as_groups,
            ..Connection::default()
        })
    }

    /// A client for the cluster. To be called inside a runtime.
    pub(crate) async fn connect(
        &self,
        environment: &Environment,
        warnings: Arc<dyn Fn(&str) + Send + Sync>,
    ) -> Result<Arc<Live>, CommandError> {
        let mut seed = [0; 8];
        // Only the jitter of waits depends on it.
        let _ = getrandom::fill(&mut seed);
        let mut options = LiveOptions::new(USER_AGENT, u64::from_le_bytes(seed));
        options.warnings = Some(warnings);
        if let Some(text) = &self.request_timeout {
            let timeout = flags::duration("request-timeout", text)?;
            // As in kubectl, zero is no limit.
            options.timeout = if timeout.is_zero() { NO_LIMIT } else { timeout };
        }
        let connection = self.connection(environment)?;
        let live = Live::connect(&connection, options).await.map_err(|error| {
            CommandError::new(format_args!("Kubernetes cluster unreachable: {error}"))
        })?;
        if let Some(why) = no_cluster(&connection, live.url()) {
            environment.know_no_cluster(why);
        }
        Ok(Arc::new(live))
    }
}

/// Why no cluster is known: no kubeconfig says anything, so that the server is client-go's default,
/// where nobody listens. None else: `kubectl proxy --port=8080` is a server.
fn no_cluster(connection: &Connection, url: &str) -> Option<String> {
    if connection.server.is_some() || url.trim_end_matches('/') != DEFAULT_SERVER {
        return None;
    }
    let files = connection.kubeconfig.as_ref().map_or(&*connection.search, std::slice::from_ref);
    let mut why = Vec::new();
    for file in files {
        let path = file.display();
        match fs::read(file) {
            Ok(text) if text.trim_ascii().is_empty() => why.push(format!("{path} is empty")),
            Ok(_) => return None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                why.push(format!("{path} does not exist"));
            }
            Err(error) => why.push(format!("{path}: {}", helm_rs::gotext::io_text(&error))),
        }
    }
    let mut addresses = ("localhost", 8080).to_socket_addrs().ok()?;
    let answers = |address| TcpStream::connect_timeout(&address, PATIENCE).is_ok();
    if addresses.any(answers) {
        return None;
    }
    let why = if why.is_empty() {
        "neither KUBECONFIG nor HOME is set".to_owned()
    } else {
        why.join(", ")
    };
    Some(format!(
        "no kubeconfig says which cluster is meant: {why}; name one with --kubeconfig FILE or KUBECONFIG"
    ))
}
