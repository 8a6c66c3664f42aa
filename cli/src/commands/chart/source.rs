//! Flags that say where charts come from, and what they mean: Helm's files, servers, credentials.

use std::path::PathBuf;
use std::time::SystemTime;

use clap::Args;
use helm_repo::Settings;
use helm_repo::credentials::Login;
use helm_repo::download::{Access, Downloader, Verify};
use helm_repo::fetch::{Credentials, Tls, Transport};
use helm_repo::registry::Client;
use helm_rs::chart::Limits;

use super::options::LimitFlags;
use crate::commands::Context;
use crate::environment::Environment;

/// Where Helm's own files are.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Helm's files")]
pub(crate) struct FileFlags {
    /// File of registries' credentials
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    registry_config: Option<PathBuf>,
    /// File of known repositories
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    repository_config: Option<PathBuf>,
    /// Folder of repositories' indexes
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    repository_cache: Option<PathBuf>,
}

impl FileFlags {
    /// As in Helm: the flag, Helm's variable, the place under the user's folders.
    pub(crate) fn settings(&self, environment: &Environment) -> Settings {
        let place = |flag: &Option<PathBuf>, variable, home: PathBuf| {
            let flag = flag.clone().filter(|path| !path.as_os_str().is_empty());
            flag.or_else(|| environment.variable(variable).map(PathBuf::from)).unwrap_or(home)
        };
        let config = environment.helm_folder("HELM_CONFIG_HOME", "XDG_CONFIG_HOME", ".config");
        let cache = environment.helm_folder("HELM_CACHE_HOME", "XDG_CACHE_HOME", ".cache");
        Settings {
            repository_config: place(
                &self.repository_config,
                "HELM_REPOSITORY_CONFIG",
                config.join("repositories.yaml"),
            ),
            repository_cache: place(
                &self.repository_cache,
                "HELM_REPOSITORY_CACHE",
                cache.join("repository"),
            ),
            registry_config: place(
                &self.registry_config,
                "HELM_REGISTRY_CONFIG",
                config.join("registry/config.json"),
            ),
            docker_config: environment.docker_folder().join("config.json"),
            user_agent: concat!("ichor/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// How a server is spoken to.
#[derive(Clone, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerFlags {
    /// User of the repository or registry
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Password of the user
    #[arg(long, value_name = "TEXT")]
    password: Option<String>,
    /// Take any certificate of the server
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Speak plain HTTP to registries
    #[arg(long)]
    plain_http: bool,
    #[command(flatten)]
    certificates: CertificateFlags,
}

/// What commands have in common that fetch or send charts, whichever chart it is.
#[derive(Debug, Args)]
pub(super) struct RemoteFlags {
    #[command(flatten)]
    pub(super) server: ServerFlags,
    #[command(flatten)]
    pub(super) files: FileFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl RemoteFlags {
    /// What charts may cost.
    pub(super) fn limits(&self) -> Limits {
        self.limits.limits()
    }
}

/// Files of certificates.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct CertificateFlags {
    /// Certificate of the client
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub(super) cert_file: String,
    /// Key of the certificate
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub(super) key_file: String,
    /// Authorities that the server's certificate may be of, instead of the system's
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    pub(super) ca_file: String,
}

impl std::fmt::Debug for ServerFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out of it.
        f.debug_struct("ServerFlags").field("plain_http", &self.plain_http).finish_non_exhaustive()
    }
}

impl ServerFlags {
    fn tls(&self) -> Tls {
        Tls {
            cert_file: self.certificates.cert_file.clone(),
            key_file: self.certificates.key_file.clone(),
            ca_file: self.certificates.ca_file.clone(),
            insecure: self.insecure_skip_tls_verify,
        }
    }

    /// Who asks a registry, when both user and password are given.
    fn login(&self) -> Option<Login> {
        let username = self.username.clone().filter(|text| !text.is_empty())?;
        let password = self.password.clone().filter(|text| !text.is_empty())?;
        Some(Login { username, password })
    }

    /// A registry that is asked as somebody.
    pub(crate) fn of_login(
        login: &Login,
        certificates: CertificateFlags,
        insecure: bool,
        plain_http: bool,
    ) -> Self {
        Self {
            username: Some(login.username.clone()),
            password: Some(login.password.clone()),
            insecure_skip_tls_verify: insecure,
            plain_http,
            certificates,
        }
    }

    /// How a repository is spoken to; `everywhere` is `--pass-credentials`.
    pub(super) fn access(&self, everywhere: bool) -> Access {
        Access {
            credentials: Credentials {
                username: self.username.clone().unwrap_or_default(),
                password: self.password.clone().unwrap_or_default(),
                everywhere,
                repository: String::new(),
            },
            tls: self.tls(),
        }
    }

    /// What speaks to registries.
    pub(crate) fn registry<'a>(
        &self,
        transport: &'a dyn Transport,
        settings: &'a Settings,
    ) -> Client<'a> {
        Client::new(transport, settings, self.tls(), self.plain_http, self.login())
    }
}

/// Which chart of a repository is meant, and whether its signature counts.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Chart")]
pub(crate) struct ChartFlags {
    /// Version, or range of versions, of a chart that is no file; the newest if none is given
    #[arg(long, value_name = "VERSION")]
    pub(super) version: Option<String>,
    /// Take prereleases too, as --version '>0.0.0-0'
    #[arg(long)]
    devel: bool,
    /// Check the chart's signature before it is used
    #[arg(long)]
    pub(super) verify: bool,
    /// Keys that may sign; $GNUPGHOME/pubring.gpg or ~/.gnupg/pubring.gpg if none is given
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
    /// Address of the repository that the chart is in
    #[arg(long, value_name = "URL")]
    pub(super) repo: Option<String>,
    /// Let servers of other names see the password too
    #[arg(long)]
    pub(super) pass_credentials: bool,
    #[command(flatten)]
    pub(super) server: ServerFlags,
    #[command(flatten)]
    pub(super) files: FileFlags,
}

impl ChartFlags {
    /// The version that is asked for; empty for the newest.
    pub(super) fn wanted_version(&self) -> &str {
        match self.version.as_deref().map_or("", str::trim) {
            "" if self.devel => ">0.0.0-0",
            version => version,
        }
    }

    /// The keys that may sign.
    pub(super) fn keyring(&self, environment: &Environment) -> PathBuf {
        keyring(self.keyring.as_ref(), environment)
    }
}

/// The keys that count: the flag's file, else GnuPG's (`defaultKeyring`).
pub(super) fn keyring(flag: Option<&PathBuf>, environment: &Environment) -> PathBuf {
    let default = || {
        let home = || environment.variable("HOME").map(PathBuf::from).unwrap_or_default();
        let folder = environment.variable("GNUPGHOME").map(PathBuf::from);
        folder.unwrap_or_else(|| home().join(".gnupg")).join("pubring.gpg")
    };
    flag.cloned().unwrap_or_else(default)
}

/// What sends requests; nothing in a build without network.
pub(crate) fn transport() -> Box<dyn Transport> {
    #[cfg(feature = "network")]
    return Box::new(helm_repo::fetch::Http::default());
    #[cfg(not(feature = "network"))]
    Box::new(helm_repo::fetch::NoNetwork)
}

/// The time of day in seconds since 1970.
pub(super) fn seconds(environment: &Environment) -> i64 {
    let since = environment.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// The time of day as Go writes it, in UTC.
pub(super) fn now_text(environment: &Environment) -> String {
    jiff::Timestamp::try_from(environment.now()).unwrap_or_default().to_string()
}

/// When the files of an archive are said to be changed: `SOURCE_DATE_EPOCH`, else now.
pub(super) fn modified(environment: &Environment) -> i64 {
    let fixed = environment.text("SOURCE_DATE_EPOCH").and_then(|text| text.parse().ok());
    fixed.unwrap_or_else(|| seconds(environment))
}

/// What downloads charts.
pub(super) fn downloader<'a>(
    transport: &'a dyn Transport,
    settings: &'a Settings,
    registry: &'a Client<'a>,
    keyring: &'a std::path::Path,
    verify: Verify,
    limits: &Limits,
    context: &Context<'_>,
) -> Downloader<'a> {
    let now = modified(context.environment);
    let limit = limits.archive_size;
    Downloader { transport, settings, registry, verify, keyring, now, limit }
}
