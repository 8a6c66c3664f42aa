//! Charts in OCI registries (`pkg/registry/client.go`).
//!
//! ```text
//! manifest ─► config: what the chart says about itself, JSON
//!         ├─► layer:  the archive
//!         └─► layer:  the provenance file, if there is one
//! ```

mod access;
mod manifest;

use std::cell::Cell;
use std::time::Duration;

use helm_rs::chart::{LoadError, Metadata, encode, load_archive};
use helm_rs::gotext::quote;
use helm_rs::semver::{self, Constraint, Version};

use crate::credentials::{CredentialsError, Login};
use crate::fetch::{FetchError, Request, Response, TIMEOUT, Tls, Transport, seconds};
use crate::reference::{Reference, ReferenceError};
use crate::{Settings, credentials, digest};

use manifest::{Blob, Manifest};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const FORMER_CHART: &str = "application/tar+gzip";
const PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Bytes that a manifest, a config, a list of tags or a provenance file may have.
const MAX_SMALL: u64 = 4 * 1024 * 1024;

/// Pages of tags that are read.
const MAX_PAGES: usize = 1000;

/// How long a registry may take for all requests of one task, large parts aside.
const TASK: Duration = Duration::from_mins(5);

/// Bytes a second that a large part comes or goes with at least.
const SLOWEST: u64 = 32 * 1024;

/// What Helm tells whoever meets an underscore in a tag.
const UNDERSCORE: &str = "
OCI artifact references (e.g. tags) do not support the plus sign (+). To support
storing semantic versions, Helm adopts the convention of changing plus (+) to
an underscore (_) in chart version tags when pushing to a registry and back to
a plus (+) when pulling from a registry.
";

/// Why a registry gave or took nothing.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The address is none.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// There was no answer, or too much of one.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A step of a longer work went wrong.
    #[error("failed to perform {} on {side}", quote(step))]
    Step {
        /// The step, as oras names it.
        step: &'static str,
        /// `source` or `destination`.
        side: &'static str,
        /// What went wrong.
        #[source]
        source: Box<Self>,
    },
    /// The registry took too long for a task, though each of its answers came in time.
    #[error("{what}: not done within the limit of {}", seconds(*limit))]
    TooLong {
        /// The address.
        what: String,
        /// The limit.
        limit: Duration,
    },
    /// The list of tags goes on and on.
    #[error("{what}: more than the limit of {MAX_PAGES} pages of tags")]
    TooManyPages {
        /// The address.
        what: String,
    },
    /// The registry refused.
    #[error("{method} {}: response status code {status}: {text}", quote(url))]
    Status {
        /// The method.
        method: &'static str,
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// The registry's errors, or the status in words.
        text: String,
    },
    /// The registry asks who is there, and nobody knows.
    #[error("{method} {}: {text}", quote(url))]
    Access {
        /// The method.
        method: &'static str,
        /// The address.
        url: String,
        /// What is missing.
        text: String,
    },
    /// The registry does not know it.
    #[error("{what}: not found")]
    NotFound {
        /// The address or digest.
        what: String,
    },
    /// What came is not what was asked for.
    #[error("{what}: {problem}")]
    Wrong {
        /// The address or digest.
        what: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The manifest is not a chart's.
    #[error("{0}")]
    NoChart(String),
    /// The version is none, or no range.
    #[error(transparent)]
    Version(#[from] semver::Error),
    /// No tag fits.
    #[error("{0}")]
    NoTag(String),
    /// The chart that is to be pushed is none.
    #[error(transparent)]
    Chart(#[from] LoadError),
    /// The chart cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
    /// The name under which a chart is pushed has to be its own.
    #[error("strict mode enabled, ref basename and tag must match the chart name and version")]
    OtherName,
    /// Credentials cannot be read or kept.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// A login was refused.
    #[error("authenticating to {}", quote(host))]
    Login {
        /// The registry.
        host: String,
        /// What the registry says.
        #[source]
        source: Box<Self>,
    },
}

/// How registries are spoken to.
pub struct Client<'a> {
    transport: &'a dyn Transport,
    settings: &'a Settings,
    tls: Tls,
    plain_http: bool,
    login: Option<Login>,
    access: access::Known,
    /// When the transport began this task, and how long it may take.
    task: Cell<(Duration, Duration)>,
}

/// A chart out of a registry, and what Helm says of it.
#[derive(Debug, Default)]
pub struct Pulled {
    /// The archive, if it was asked for.
    pub chart: Vec<u8>,
    /// The provenance file, if it was asked for.
    pub provenance: Vec<u8>,
    /// What is told on standard error.
    pub messages: String,
}

impl<'a> Client<'a> {
    /// A client that asks as `login`, or as whom the credentials' file names.
    pub fn new(
        transport: &'a dyn Transport,
        settings: &'a Settings,
        tls: Tls,
        plain_http: bool,
        login: Option<Login>,
    ) -> Self {
        let access = access::Known::default();
        let task = Cell::new((transport.elapsed(), TASK));
        Self { transport, settings, tls, plain_http, login, access, task }
    }

    /// From here on a task has its time anew.
    fn begin(&self) {
        self.task.set((self.transport.elapsed(), TASK));
    }

    /// How long a part of so many bytes may take; the task gets as much more.
    fn time_for(&self, bytes: u64) -> Duration {
        let more = Duration::from_secs(bytes / SLOWEST);
        let (began, limit) = self.task.get();
        self.task.set((began, limit.saturating_add(more)));
        TIMEOUT.saturating_add(more)
    }

    /// Sends a request once, as long as the task has time for it.
    fn send(&self, mut request: Request) -> Result<Response, RegistryError> {
        let (began, limit) = self.task.get();
        let left = limit.saturating_sub(self.transport.elapsed().saturating_sub(began));
        let what = crate::url::shown(&request.url);
        if left.is_zero() {
            return Err(RegistryError::TooLong { what, limit });
        }
        let is_cut = left < request.timeout;
        request.timeout = left.min(request.timeout);
        match self.transport.send(&self.tls, &request) {
            Err(FetchError::TooLong { .. }) if is_cut => {
                Err(RegistryError::TooLong { what, limit })
            }
            result => Ok(result?),
        }
    }

    /// Keeps only what files say of registries: the login that was given is for another server.
    pub fn forget_login(&mut self) {
        self.login = None;
    }

    fn base(&self, registry: &str) -> String {
        let scheme = if self.plain_http { "http" } else { "https" };
        // Docker's own registry is elsewhere than its name says.
        let host = if registry == "docker.io" { "registry-1.docker.io" } else { registry };
        format!("{scheme}://{host}/v2/")
    }

    fn address(&self, to: &Reference, what: &str) -> String {
        format!("{}{}/{what}", self.base(&to.registry), to.repository)
    }

    fn login_of(&self, registry: &str) -> Result<Option<Login>, RegistryError> {
        if let Some(login) = &self.login {
            return Ok(Some(login.clone()));
        }
        let own = credentials::find(&self.settings.registry_config, registry)?;
        // Docker's may be kept by its helpers, which is nothing to fail for.
        let dockers = || credentials::find(&self.settings.docker_config, registry).ok();
        Ok(own.or_else(|| dockers().flatten()))
    }

    /// The versions among a repository's tags, the newest first (`Tags`).
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn tags(&self, reference: &Reference) -> Result<Vec<String>, RegistryError> {
        let mut versions: Vec<Version> = Vec::new();
        self.begin();
        let first = self.address(reference, "tags/list");
        let mut next = Some(first.clone());
        let mut pages = 0;
        while let Some(url) = next.take() {
            pages += 1;
            if pages > MAX_PAGES {
                return Err(RegistryError::TooManyPages { what: first });
            }
            let response = self.ask(reference, &Request::new("GET", url.clone(), MAX_SMALL))?;
            if response.status != 200 {
                return Err(refused("GET", &url, &response));
            }
            let page: serde_json::Value =
                serde_json::from_slice(&response.body).map_err(|error| RegistryError::Wrong {
                    what: url.clone(),
                    problem: format!("failed to decode response: {error}"),
                })?;
            let tags = page.get("tags").and_then(serde_json::Value::as_array);
            let tags = tags.into_iter().flatten().filter_map(serde_json::Value::as_str);
            versions
                .extend(tags.filter_map(|tag| Version::parse_strict(tag.replace('_', "+")).ok()));
            next = access::next_page(&url, &response);
        }
        versions.sort_by(|a, b| b.compare(a));
        Ok(versions.iter().map(ToString::to_string).collect())
    }

    /// The address with the tag that fits a version or range (`ValidateReference`): the path of the
    /// answer is `REPOSITORY:TAG` or `REPOSITORY@DIGEST`.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn resolve(&self, address: &str, version: &str) -> Result<Reference, RegistryError> {
        let reference = Reference::parse(address)?;
        let mut wanted = version.to_owned();
        if version.is_empty() {
            wanted.clone_from(&reference.tag);
        } else if !reference.tag.is_empty() && reference.tag != version {
            let tag = &reference.tag;
            return Err(RegistryError::NoTag(format!(
                "chart reference and version mismatch: {version} is not {tag}"
            )));
        }
        if !reference.digest.is_empty() {
            if !wanted.is_empty() {
                let tagged = Reference {
                    tag: wanted.replace('+', "_"),
                    digest: String::new(),
                    ..reference.clone()
                };
                let digest = &reference.digest;
                if let Ok(found) = self.digest_of(&tagged)
                    && found != *digest
                {
                    return Err(RegistryError::NoTag(format!(
                        "chart reference digest mismatch: {found} is not {digest}"
                    )));
                }
            }
            return Ok(Reference { tag: String::new(), ..reference });
        }
        if Version::parse(&wanted).is_err() {
            let tags = self.tags(&reference)?;
            if tags.is_empty() {
                return Err(RegistryError::NoTag(format!(
                    "Unable to locate any tags in provided repository: {address}"
                )));
            }
            wanted = matching(&tags, &wanted)?;
        }
        Ok(Reference { tag: wanted, ..reference })
    }

    /// The digest of the manifest behind a tag.
    fn digest_of(&self, reference: &Reference) -> Result<String, RegistryError> {
        let (_, digest) = self.manifest(reference)?;
        Ok(digest)
    }

    fn manifest(&self, reference: &Reference) -> Result<(Vec<u8>, String), RegistryError> {
        let target = reference.target();
        let url = self.address(reference, &format!("manifests/{target}"));
        let mut request = Request::new("GET", url.clone(), MAX_SMALL);
        let accept = [
            "application/vnd.docker.distribution.manifest.v2+json",
            "application/vnd.docker.distribution.manifest.list.v2+json",
            MANIFEST,
            "application/vnd.oci.image.index.v1+json",
            "application/vnd.oci.artifact.manifest.v1+json",
        ];
        request.headers.push(("accept", accept.join(", ")));
        let response = self.ask(reference, &request)?;
        match response.status {
            200 => {}
            404 => return Err(RegistryError::NotFound { what: reference.to_string() }),
            _ => return Err(refused("GET", &url, &response)),
        }
        let actual = format!("sha256:{}", digest(&response.body));
        let said = [
            Some(reference.digest.as_str()).filter(|_| reference.tag.is_empty()),
            response.header("docker-content-digest"),
        ];
        for expected in said.into_iter().flatten().filter(|text| text.starts_with("sha256:")) {
            if expected != actual {
                let problem = format!("mismatch digest: expected {expected}, got {actual}");
                return Err(RegistryError::Wrong { what: url, problem });
            }
        }
        Ok((response.body, actual))
    }

    /// Gets a chart, its provenance, or both (`Pull`). Every part's size and digest are checked.
    /// `limit` is what the archive may have.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn pull(
        &self,
        reference: &Reference,
        with_chart: bool,
        with_provenance: bool,
        limit: u64,
    ) -> Result<Pulled, RegistryError> {
        self.begin();
        let reference = Reference { tag: reference.tag.replace('+', "_"), ..reference.clone() };
        let (bytes, digest) = self.manifest(&reference).map_err(|source| RegistryError::Step {
            step: "FetchReference",
            side: "source",
            source: Box::new(source),
        })?;
        let manifest = Manifest::parse(&bytes)
            .map_err(|problem| RegistryError::Wrong { what: reference.to_string(), problem })?;
        let mut kinds = vec![];
        if with_chart {
            kinds.extend([CHART, FORMER_CHART]);
        }
        if with_provenance {
            kinds.push(PROVENANCE);
        }
        manifest
            .check(CONFIG, &kinds, with_chart, with_provenance)
            .map_err(RegistryError::NoChart)?;
        let mut pulled = Pulled::default();
        let config = self.blob(&reference, manifest.config(), MAX_SMALL)?;
        if serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&config).is_err() {
            let what = manifest.config().digest.clone();
            return Err(RegistryError::Wrong {
                what,
                problem: "the config is no JSON object".to_owned(),
            });
        }
        if with_chart && let Some(layer) = manifest.layer(&[CHART, FORMER_CHART]) {
            if layer.media_type == FORMER_CHART {
                pulled.messages =
                    format!("Warning: chart media type {FORMER_CHART} is deprecated\n");
            }
            pulled.chart = self.blob(&reference, layer, limit)?;
        }
        if with_provenance && let Some(layer) = manifest.layer(&[PROVENANCE]) {
            pulled.provenance = self.blob(&reference, layer, MAX_SMALL)?;
        }
        pulled.messages +=
            &told("Pulled", &reference, &digest, reference.to_string().contains('_'));
        Ok(pulled)
    }

    fn blob(&self, from: &Reference, blob: &Blob, limit: u64) -> Result<Vec<u8>, RegistryError> {
        let wrong = |problem: String| RegistryError::Wrong { what: blob.digest.clone(), problem };
        if blob.size > limit {
            return Err(wrong(format!("{} bytes are more than the limit of {limit}", blob.size)));
        }
        let url = self.address(from, &format!("blobs/{}", blob.digest));
        let mut request = Request::new("GET", url.clone(), blob.size.max(64 * 1024));
        request.timeout = self.time_for(blob.size);
        let response = self.ask(from, &request)?;
        match response.status {
            200 => {}
            404 => return Err(RegistryError::NotFound { what: blob.digest.clone() }),
            _ => return Err(refused("GET", &url, &response)),
        }
        if response.body.len() as u64 != blob.size {
            return Err(wrong(format!(
                "mismatch size: expected {}, got {}",
                blob.size,
                response.body.len()
            )));
        }
        let actual = format!("sha256:{}", digest(&response.body));
        if actual != blob.digest {
            return Err(wrong(format!("mismatch digest: got {actual}")));
        }
        Ok(response.body)
    }

    /// Puts a packed chart, and its provenance file if there is one, under its own name and version
    /// below `remote` (`oci://HOST/PATH`); what is told on standard error is the answer
    /// (`OCIPusher.push`, `Client.Push`). `created` is when the archive was made, RFC 3339.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn push(
        &self,
        archive: &[u8],
        provenance: Option<&[u8]>,
        remote: &str,
        created: &str,
    ) -> Result<String, RegistryError> {
        self.begin();
        let limits = helm_rs::chart::Limits::default();
        let metadata = load_archive(archive, &limits, &mut Vec::new())?.metadata;
        let reference = target(remote, &metadata)?;
        let config = Blob::of(CONFIG, encode::metadata(&metadata)?.into_bytes());
        let mut layers = vec![Blob::of(CHART, archive.to_vec())];
        layers.extend(provenance.map(|bytes| Blob::of(PROVENANCE, bytes.to_vec())));
        layers.sort_by(|a, b| a.digest.cmp(&b.digest));
        let text = manifest::text(&config, &layers, &manifest::annotations(&metadata, created));
        let digest = format!("sha256:{}", digest(text.as_bytes()));
        // Its parts are sent whether it is there or not: what is there is not sent again.
        self.exists(&reference, &format!("manifests/{digest}"))?;
        for blob in layers.iter().chain([&config]) {
            self.upload(&reference, blob)?;
        }
        let url = self.address(&reference, &format!("manifests/{}", reference.tag));
        let mut request = Request::new("PUT", url.clone(), MAX_SMALL);
        request.headers.push(("content-type", MANIFEST.to_owned()));
        request.body = text.into_bytes();
        let response = self.ask(&reference, &request)?;
        if response.status != 201 {
            return Err(refused("PUT", &url, &response));
        }
        Ok(told("Pushed", &reference, &digest, reference.tag.contains('_')))
    }

    /// Whether a registry has a part already; it asks for credentials where it wants any.
    fn exists(&self, to: &Reference, what: &str) -> Result<bool, RegistryError> {
        let url = self.address(to, what);
        let fail = |source| RegistryError::Step {
            step: "Exists",
            side: "destination",
            source: Box::new(source),
        };
        let request = Request::new("HEAD", url.clone(), 0);
        let response = self.ask(to, &request).map_err(fail)?;
        match response.status {
            200 => Ok(true),
            404 => Ok(false),
            _ => Err(fail(refused("HEAD", &url, &response))),
        }
    }

    fn upload(&self, to: &Reference, blob: &Blob) -> Result<(), RegistryError> {
        if self.exists(to, &format!("blobs/{}", blob.digest))? {
            return Ok(());
        }
        let url = self.address(to, "blobs/uploads/");
        let response = self.ask(to, &Request::new("POST", url.clone(), MAX_SMALL))?;
        if response.status != 202 {
            return Err(refused("POST", &url, &response));
        }
        let place = access::upload_place(&url, &response, &blob.digest)?;
        let mut request = Request::new("PUT", place.clone(), MAX_SMALL);
        request.headers.push(("content-type", "application/octet-stream".to_owned()));
        request.body.clone_from(&blob.bytes);
        request.timeout = self.time_for(blob.bytes.len() as u64);
        let response = self.ask(to, &request)?;
        if response.status == 201 { Ok(()) } else { Err(refused("PUT", &place, &response)) }
    }

    /// Checks credentials with a registry and keeps them (`Login`). The host may have a scheme or a
    /// path, which do not count.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub fn login(&self, host: &str, login: &Login) -> Result<(), RegistryError> {
        self.begin();
        let host = bare_host(host);
        Reference::parse(&format!("{host}/a"))
            .map_err(|_| ReferenceError::Registry(host.to_owned()))?;
        let reference = Reference {
            registry: host.to_owned(),
            repository: String::new(),
            tag: String::new(),
            digest: String::new(),
        };
        let fail =
            |source| RegistryError::Login { host: host.to_owned(), source: Box::new(source) };
        let url = self.base(host);
        let response =
            self.ask(&reference, &Request::new("GET", url.clone(), MAX_SMALL)).map_err(fail)?;
        match response.status {
            200 => {}
            404 => return Err(fail(RegistryError::NoChart("not found".to_owned()))),
            _ => return Err(fail(refused("GET", &url, &response))),
        }
        Ok(credentials::keep(&self.settings.registry_config, host, login)?)
    }
}

/// A registry's host without scheme and path (`stripURL`).
fn bare_host(host: &str) -> &str {
    let schemes = ["oci://", "http://", "https://"];
    let host = schemes.iter().find_map(|scheme| host.strip_prefix(scheme)).unwrap_or(host);
    host.split('/').next().unwrap_or_default()
}

/// Where a chart goes below an address.
fn target(remote: &str, metadata: &Metadata) -> Result<Reference, RegistryError> {
    let base = remote.strip_prefix("oci://").unwrap_or(remote);
    let path = helm_rs::gopath::join(base, &metadata.name);
    let reference = Reference::parse(&format!("{path}:{}", metadata.version))?;
    if reference.repository.rsplit('/').next() != Some(metadata.name.as_str()) {
        return Err(RegistryError::OtherName);
    }
    Ok(reference)
}

/// What Helm tells after a transfer.
fn told(what: &str, reference: &Reference, digest: &str, has_underscore: bool) -> String {
    let mut text = format!("{what}: {reference}\nDigest: {digest}\n");
    if has_underscore {
        text += &format!("{reference} contains an underscore.\n{UNDERSCORE}");
    }
    text
}

/// The first of the tags that a version or range fits (`GetTagMatchingVersionOrConstraint`).
fn matching(tags: &[String], wanted: &str) -> Result<String, RegistryError> {
    if let Some(exact) = tags.iter().find(|tag| *tag == wanted) {
        return Ok(exact.clone());
    }
    let constraint = Constraint::parse(if wanted.is_empty() { "*" } else { wanted })?;
    let fits = |tag: &&String| Version::parse(tag).is_ok_and(|version| constraint.check(&version));
    tags.iter().find(fits).cloned().ok_or_else(|| {
        RegistryError::NoTag(format!(
            "Could not locate a version matching provided version string {wanted}"
        ))
    })
}

/// A registry's answer as an error (`errcode.ErrorResponse`).
fn refused(method: &'static str, url: &str, response: &Response) -> RegistryError {
    let text = manifest::error_text(&response.body);
    let text = text.unwrap_or_else(|| crate::fetch::reason(response.status).to_owned());
    RegistryError::Status { method, url: url.to_owned(), status: response.status, text }
}
