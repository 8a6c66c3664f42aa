//! Where the server is and who asks: kubeconfig, in-cluster credentials, overrides.

use std::path::{Path, PathBuf};

use kube::Config;
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
    NamedCluster, NamedContext,
};

use super::LiveOptions;
use crate::cluster::ClusterError;
use crate::gotext::quote;

/// What decides on the server and the identity, as Helm's flags and environment variables do.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// The one file of `--kubeconfig`, which must exist; it keeps the others from being read.
    pub kubeconfig: Option<PathBuf>,
    /// The files of `KUBECONFIG`, or the one in the home directory: those that exist are merged,
    /// the first one to say something wins.
    pub search: Vec<PathBuf>,
    /// When the pod's service account is used.
    pub in_cluster: InCluster,
    /// The context (`--kube-context`); else the current one.
    pub context: Option<String>,
    /// The server's address (`--kube-apiserver`).
    pub server: Option<String>,
    /// A file with the server's CA in PEM (`--kube-ca-file`).
    pub ca_file: Option<PathBuf>,
    /// The name that the server's certificate must have (`--kube-tls-server-name`).
    pub tls_server_name: Option<String>,
    /// Whether any certificate will do (`--kube-insecure-skip-tls-verify`).
    pub insecure_skip_tls_verify: bool,
    /// A bearer token (`--kube-token`).
    pub token: Option<String>,
    /// Whom to impersonate (`--kube-as-user`).
    pub as_user: Option<String>,
    /// The groups of whom to impersonate (`--kube-as-group`).
    pub as_groups: Vec<String>,
}

/// When the pod's service account is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InCluster {
    /// When no kubeconfig says anything and the program runs in a pod, as client-go does.
    #[default]
    Fallback,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Connection {
    /// Uses one kubeconfig file.
    pub fn kubeconfig(path: impl Into<PathBuf>) -> Self {
        Self { kubeconfig: Some(path.into()), ..Self::default() }
    }

    pub(super) async fn config(&self, options: &LiveOptions) -> Result<Config, ClusterError> {
        let mut config = self.found().await?;
        // Requests are tried again here, where it is known what they do.
        config.default_retry = false;
        config.connect_timeout = Some(options.timeout.min(std::time::Duration::from_secs(30)));
        config.write_timeout = Some(options.timeout);
        Ok(config)
    }

    async fn found(&self) -> Result<Config, ClusterError> {
        if self.in_cluster == InCluster::Always {
            return self.pod();
        }
        let mut kubeconfig = self.read()?;
        let says_nothing = kubeconfig.clusters.is_empty()
            && kubeconfig.contexts.is_empty()
            && self.context.is_none()
            && self.server.is_none();
        if says_nothing && self.in_cluster == InCluster::Fallback && in_pod() {
            return self.pod();
        }
        let (mut context, mut cluster, mut user) = self.choose(&mut kubeconfig)?;
        if let Some(server) = &self.server {
            cluster.server = Some(server.clone());
        }
        // client-go's default; its refusal is what Helm prints where there is no kubeconfig.
        let server = cluster.server.get_or_insert_with(|| "http://localhost:8080".to_owned());
        if !server.contains("://") {
            *server = format!("http://{server}");
        }
        if let Some(name) = &self.tls_server_name {
            cluster.tls_server_name = Some(name.clone());
        }
        if let Some(file) = &self.ca_file {
            cluster.certificate_authority = Some(file.to_string_lossy().into_owned());
            cluster.certificate_authority_data = None;
        }
        if self.insecure_skip_tls_verify {
            cluster.insecure_skip_tls_verify = Some(true);
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = None;
        }
        if let Some(token) = &self.token {
            user.token = Some(token.clone().into());
            user.token_file = None;
            user.exec = None;
            user.auth_provider = None;
        }
        self.impersonate(&mut user);
        "c".clone_into(&mut context.cluster);
        context.user = Some("u".to_owned());
        let chosen = Kubeconfig {
            clusters: vec![NamedCluster {
                name: "c".to_owned(),
                cluster: Some(cluster),
                ..NamedCluster::default()
            }],
            auth_infos: vec![NamedAuthInfo {
                name: "u".to_owned(),
                auth_info: Some(user),
                ..NamedAuthInfo::default()
            }],
            contexts: vec![NamedContext {
                name: "x".to_owned(),
                context: Some(context),
                ..NamedContext::default()
            }],
            current_context: Some("x".to_owned()),
            ..Kubeconfig::default()
        };
        Config::from_custom_kubeconfig(chosen, &KubeConfigOptions::default())
            .await
            .map_err(|error| configuration(text_of(&error)))
    }

    fn impersonate(&self, user: &mut AuthInfo) {
        if let Some(name) = &self.as_user {
            user.impersonate = Some(name.clone());
        }
        if !self.as_groups.is_empty() {
            user.impersonate_groups = Some(self.as_groups.clone());
        }
    }

    fn pod(&self) -> Result<Config, ClusterError> {
        let mut config = Config::incluster().map_err(|error| configuration(error.to_string()))?;
        self.impersonate(&mut config.auth_info);
        if let Some(token) = &self.token {
            config.auth_info.token = Some(token.clone().into());
        }
        Ok(config)
    }

    fn read(&self) -> Result<Kubeconfig, ClusterError> {
        let files = self.kubeconfig.as_ref().map_or(self.search.as_slice(), std::slice::from_ref);
        let mut merged = Kubeconfig::default();
        for file in files {
            // Broken YAML is told in Go's words.
            if let Ok(text) = std::fs::read(file)
                && let Err(error) = goyaml::from_yaml(&text, &goyaml::Limits::default())
            {
                let error = error.to_string();
                let error = error.trim_start_matches("error converting YAML to JSON: ");
                let reason = format!("error loading config file \"{}\": {error}", file.display());
                return Err(configuration(reason));
            }
            let read = match Kubeconfig::read_from(file) {
                Ok(read) => read,
                Err(KubeconfigError::ReadConfig(error, _)) => {
                    let gone = error.kind() == std::io::ErrorKind::NotFound;
                    if gone && self.kubeconfig.is_none() {
                        continue;
                    }
                    return Err(unreadable(file, gone, &error));
                }
                Err(error) => {
                    // The lines of the file that follow may hold credentials.
                    let text = text_of(&error);
                    let text = text.lines().next().unwrap_or_default();
                    let reason =
                        format!("error loading config file \"{}\": {text}", file.display());
                    return Err(configuration(reason));
                }
            };
            merged = merged.merge(read).map_err(|error| configuration(text_of(&error)))?;
        }
        Ok(merged)
    }

    /// Takes the parts that count out of a kubeconfig. A context that does not exist is an error;
    /// a cluster or a user that does not is the default one, as in client-go.
    fn choose(
        &self,
        kubeconfig: &mut Kubeconfig,
    ) -> Result<(Context, Cluster, AuthInfo), ClusterError> {
        let wanted = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        let Some(wanted) = wanted.filter(|name| !name.is_empty()) else {
            return Ok(<(Context, Cluster, AuthInfo)>::default());
        };
        let context = kubeconfig
            .contexts
            .iter_mut()
            .find(|context| context.name == wanted)
            .and_then(|context| context.context.take())
            .ok_or_else(|| configuration(format!("context {} does not exist", quote(&wanted))))?;
        let cluster = kubeconfig
            .clusters
            .iter_mut()
            .find(|cluster| cluster.name == context.cluster)
            .and_then(|cluster| cluster.cluster.take())
            .unwrap_or_default();
        let user_name = context.user.clone().unwrap_or_default();
        let mut user = kubeconfig
            .auth_infos
            .iter_mut()
            .find(|user| user.name == user_name)
            .and_then(|user| user.auth_info.take())
            .unwrap_or_default();
        if let Some(exec) = user.exec.as_mut()
            && exec.provide_cluster_info
        {
            exec.cluster = (&cluster).try_into().ok();
        }
        Ok((context, cluster, user))
    }
}

/// Whether the program runs in a pod that has a service account.
fn in_pod() -> bool {
    Config::incluster().is_ok()
}

fn unreadable(file: &Path, gone: bool, error: &std::io::Error) -> ClusterError {
    let call = if gone { "stat" } else { "open" };
    configuration(format!("{call} {}: {}", file.display(), crate::gotext::io_text(error)))
}

const fn configuration(reason: String) -> ClusterError {
    ClusterError::Configuration { reason }
}

/// An error's text; `kube`'s own texts hold those of their sources.
fn text_of(error: &dyn std::error::Error) -> String {
    error.to_string()
}
