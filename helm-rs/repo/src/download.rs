//! From what a user names to a chart's bytes: `repo/chart`, an address, `oci://…`
//! (`pkg/downloader/chart_downloader.go`, `pkg/repo/chartrepo.go`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use helm_rs::chart::Warning;
use helm_rs::gopath;
use helm_rs::gotext::quote;

use crate::fetch::{Credentials, FetchError, Get, Tls, Transport, get};
use crate::files::{self, FileError};
use crate::index::{Index, IndexError, MAX_INDEX};
use crate::provenance::{self, Keyring, ProvenanceError, Verification};
use crate::reference::{Reference, ReferenceError};
use crate::registry::{Client, RegistryError};
use crate::repositories::{Entry, Repositories, RepositoriesError, charts_file, index_file};
use crate::url::{self, Url, UrlError};
use crate::{Settings, digest};

pub use crate::fetch::TIMEOUT;

/// Bytes that a provenance file may have.
const MAX_PROVENANCE: u64 = 4 * 1024 * 1024;

/// What is done about a chart's signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing.
    #[default]
    Never,
    /// A wrong one is an error, and none is a warning.
    IfPossible,
    /// None is an error too.
    Always,
    /// The provenance file is fetched for later.
    Later,
}

/// Why a chart was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// What was named is no address.
    #[error("invalid chart URL format: {reference}")]
    Address {
        /// What was named.
        reference: String,
    },
    /// A repository's address has a scheme that is not spoken.
    #[error("could not find protocol handler for: {scheme}")]
    Protocol {
        /// The scheme.
        scheme: String,
    },
    /// What was named has one part only.
    #[error("non-absolute URLs should be in form of repo_name/path_to_chart, got: {reference}")]
    NoRepository {
        /// What was named.
        reference: String,
    },
    /// The repository is not known.
    #[error("repo {name} not found")]
    UnknownRepository {
        /// Its name.
        name: String,
    },
    /// The repository has no address.
    #[error("no URL found for repository {name}")]
    NoUrl {
        /// Its name.
        name: String,
    },
    /// The repository's index is not in the cache, or is wrong.
    #[error("no cached repo found. (try 'helm repo update')")]
    NoIndex(#[source] IndexError),
    /// The index has no such chart.
    #[error(
        "chart {} matching {version} not found in {repository} index. (try 'helm repo update')",
        quote(chart)
    )]
    NotInIndex {
        /// The chart.
        chart: String,
        /// The version or range.
        version: String,
        /// The repository.
        repository: String,
        /// What is missing.
        #[source]
        source: Box<IndexError>,
    },
    /// The index says of no place where the chart is.
    #[error("{named} has no downloadable URLs")]
    NoAddress {
        /// What was named, as Helm names it.
        named: String,
    },
    /// The repository has no such chart.
    #[error("{chart} not found in {repository} repository")]
    NotInRepository {
        /// The chart, and its version if one was asked for.
        chart: String,
        /// The repository's address.
        repository: String,
    },
    /// The address of a repository leads nowhere.
    #[error("looks like {} is not a valid chart repository or cannot be reached", quote(url))]
    Unreachable {
        /// The address, without a password.
        url: String,
        /// What went wrong.
        #[source]
        source: Box<Self>,
    },
    /// The address ends in no file name.
    #[error("{url}: the address ends in no file name")]
    NoName {
        /// The address, without a password.
        url: String,
    },
    /// The archive is not the one that the index lists.
    #[error("{url}: sha256 sum does not match the index: expected {expected}, got {actual}")]
    Digest {
        /// The address, without a password.
        url: String,
        /// The digest in the index.
        expected: String,
        /// The archive's.
        actual: String,
    },
    /// There is no provenance file.
    #[error("failed to fetch provenance {}", quote(url))]
    NoProvenance {
        /// Where it should be.
        url: String,
    },
    /// The signature is not accepted.
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    /// Nothing was fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// An address is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// An index is wrong.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A registry gave nothing.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The file of repositories is wrong.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl From<ReferenceError> for DownloadError {
    fn from(error: ReferenceError) -> Self {
        Self::Registry(error.into())
    }
}

/// A chart that was downloaded.
#[derive(Debug)]
pub struct Downloaded {
    /// Its archive.
    pub path: PathBuf,
    /// Who signed it, when that was checked.
    pub verification: Option<Verification>,
    /// What Helm says on standard output.
    pub notes: String,
}

/// How the servers of one download are spoken to; what a known repository says of itself comes over
/// it.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Who asks.
    pub credentials: Credentials,
    /// Certificates.
    pub tls: Tls,
}

impl Access {
    /// The access that a repository's entry describes.
    pub fn of(entry: &Entry) -> Self {
        Self {
            credentials: Credentials {
                username: entry.username.clone(),
                password: entry.password.clone(),
                everywhere: entry.pass_credentials_all,
                repository: entry.url.clone(),
            },
            tls: Tls {
                cert_file: entry.cert_file.clone(),
                key_file: entry.key_file.clone(),
                ca_file: entry.ca_file.clone(),
                insecure: entry.insecure_skip_tls_verify,
            },
        }
    }

    /// Takes over what an entry has to say of certificates and credentials.
    fn take(&mut self, entry: &Entry) {
        let known = Self::of(entry);
        self.credentials.repository.clone_from(&entry.url);
        if !(entry.cert_file.is_empty() && entry.key_file.is_empty() && entry.ca_file.is_empty()) {
            self.tls = Tls { insecure: self.tls.insecure, ..known.tls };
        }
        if !entry.username.is_empty() && !entry.password.is_empty() {
            self.credentials = known.credentials;
        }
    }
}

/// A chart by the name that a user or an index gives it.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// `REPOSITORY/CHART`, or an address.
    pub reference: String,
    /// The version, or a range of versions; empty for the newest.
    pub version: String,
    /// SHA-256 that an index has for the archive, with or without `sha256:`; empty for none.
    pub digest: String,
}

/// A place where a chart is.
struct Found {
    url: String,
    /// What the index says of the archive's bytes.
    digest: String,
    /// The version, as the index has it.
    version: String,
}

/// Where the provenance of a chart is.
enum Beside {
    Registry(Reference),
    Address(String, Access),
}

/// What downloads charts.
pub struct Downloader<'a> {
    /// What sends requests.
    pub transport: &'a dyn Transport,
    /// Where repositories and their indexes are known.
    pub settings: &'a Settings,
    /// What speaks to registries.
    pub registry: &'a Client<'a>,
    /// What is done about signatures.
    pub verify: Verify,
    /// The keys that may sign.
    pub keyring: &'a Path,
    /// The time of day, in seconds since 1970.
    pub now: i64,
    /// Bytes that an archive may have.
    pub limit: u64,
}

impl Downloader<'_> {
    /// Downloads a chart into a folder (`DownloadTo`). A chart whose signature is asked for and not
    /// accepted is not written. What registries and indexes have to say is added to `messages` and
    /// `warnings`.
    ///
    /// # Errors
    /// [`DownloadError`]; nothing is written then.
    pub fn download(
        &self,
        wanted: &Wanted,
        mut access: Access,
        folder: &Path,
        messages: &mut String,
        warnings: &mut Vec<Warning>,
    ) -> Result<Downloaded, DownloadError> {
        let Wanted { reference, version, digest } = wanted;
        let (name, bytes, beside);
        let mut found = if url::is_oci(reference) {
            if Url::parse(reference.as_bytes()).is_err() {
                return Err(DownloadError::Address { reference: reference.clone() });
            }
            let (url, version) = (reference.clone(), version.clone());
            Found { url, digest: String::new(), version }
        } else {
            self.find(reference, version, &mut access, warnings)?
        };
        if url::is_oci(&found.url) {
            let resolved = self.resolve(&found, reference)?;
            name = registry_file_name(&resolved.repository, resolved.target());
            let pulled = self.registry.pull(&resolved, true, false, self.limit)?;
            *messages += &pulled.messages;
            bytes = pulled.chart;
            found.url = format!("oci://{resolved}");
            beside = Beside::Registry(resolved);
        } else {
            name = file_name(&found.url)?;
            bytes = self.fetch(&found.url, &access, self.limit)?;
            beside = Beside::Address(format!("{}.prov", found.url), access);
        }
        if !digest.is_empty() {
            found.digest.clone_from(digest);
        }
        check_digest(&found, &bytes)?;
        let path = folder.join(&name);
        let mut done = Downloaded { path, verification: None, notes: String::new() };
        let mut signature = None;
        if self.verify != Verify::Never {
            match self.provenance(&beside, messages) {
                Ok(text) => signature = Some(text),
                Err(_) if self.verify == Verify::Always => {
                    let url = format!("{}.prov", url::shown(&found.url));
                    return Err(DownloadError::NoProvenance { url });
                }
                Err(error) => {
                    let why = helm_rs::error_chain(&error);
                    done.notes =
                        format!("WARNING: Verification not found for {reference}: {why}\n");
                }
            }
        }
        if let Some(text) = &signature
            && self.verify != Verify::Later
        {
            let keyring = Keyring::read(self.keyring)
                .map_err(|error| ProvenanceError::Keyring(Box::new(error)))?;
            let checked = provenance::verify(&bytes, &name, text, &keyring, self.now)?;
            done.verification = Some(checked);
        }
        files::write(&done.path, &bytes, 0o644)?;
        if let Some(text) = signature {
            files::write(&provenance::provenance_path(&done.path), &text, 0o644)?;
        }
        Ok(done)
    }

    /// The chart of a registry that a user names, or an index: the tag that the index gives counts,
    /// else its version does.
    fn resolve(&self, found: &Found, reference: &str) -> Result<Reference, DownloadError> {
        let is_of_index = !url::is_oci(reference);
        let has_tag = || Reference::parse(&found.url).is_ok_and(|it| !it.tag.is_empty());
        let version = if is_of_index && has_tag() { "" } else { &found.version };
        Ok(self.registry.resolve(&found.url, version)?)
    }

    fn provenance(&self, beside: &Beside, messages: &mut String) -> Result<Vec<u8>, DownloadError> {
        match beside {
            Beside::Registry(reference) => {
                let pulled = self.registry.pull(reference, false, true, self.limit)?;
                *messages += &pulled.messages;
                Ok(pulled.provenance)
            }
            Beside::Address(address, access) => self.fetch(address, access, MAX_PROVENANCE),
        }
    }

    fn fetch(&self, address: &str, access: &Access, limit: u64) -> Result<Vec<u8>, DownloadError> {
        Ok(get(
            self.transport,
            &Get {
                url: address,
                accept: "application/gzip,application/octet-stream",
                credentials: &access.credentials,
                tls: &access.tls,
                limit,
                user_agent: &self.settings.user_agent,
                timeout: TIMEOUT,
            },
        )?)
    }

    /// Where the chart is that a user names (`ResolveChartVersion`), and who may ask there.
    fn find(
        &self,
        reference: &str,
        version: &str,
        access: &mut Access,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found, DownloadError> {
        let address = || DownloadError::Address { reference: reference.to_owned() };
        let parsed = Url::parse(reference.as_bytes()).map_err(|_| address())?;
        let known = Repositories::read_or_none(&self.settings.repository_config)?;
        if parsed.is_absolute() && !parsed.host.is_empty() && !parsed.path.is_empty() {
            let url = reference.to_owned();
            let mut found = Found { url, digest: String::new(), version: String::new() };
            let (owner, digest) = self.owner(reference, &known, warnings)?;
            found.digest = digest;
            if let Some(entry) = owner {
                access.take(&entry);
            } else if access.credentials.repository.is_empty() {
                access.credentials.repository.clone_from(&found.url);
            }
            return Ok(found);
        }
        let path = url::part(&parsed.path);
        let (repository, chart) = path
            .split_once('/')
            .ok_or_else(|| DownloadError::NoRepository { reference: reference.to_owned() })?;
        let entry = known
            .get(repository)
            .ok_or_else(|| DownloadError::UnknownRepository { name: repository.to_owned() })?;
        if entry.url.is_empty() {
            return Err(DownloadError::NoUrl { name: repository.to_owned() });
        }
        check_repository(&entry.url)?;
        access.take(entry);
        let file = self.settings.repository_cache.join(index_file(&entry.name));
        let index = Index::read(&file, warnings).map_err(DownloadError::NoIndex)?;
        let found = index.get(chart, version).map_err(|source| DownloadError::NotInIndex {
            chart: chart.to_owned(),
            version: version.to_owned(),
            repository: entry.name.clone(),
            source: Box::new(source),
        })?;
        let first = found.urls.as_ref().and_then(|urls| urls.first());
        let first = first.ok_or_else(|| DownloadError::NoAddress {
            named: format!("chart {}", quote(reference)),
        })?;
        let url = url::resolve(&entry.url, first).map_err(|_| address())?;
        let version = found.metadata.version.clone();
        Ok(Found { url, digest: found.digest.clone(), version })
    }

    /// The known repository whose index lists an address as it is (`scanReposForURL`), and what an
    /// index has for its digest, also where it lists the address by its path alone.
    fn owner(
        &self,
        address: &str,
        known: &Repositories,
        warnings: &mut Vec<Warning>,
    ) -> Result<(Option<Entry>, String), DownloadError> {
        let mut digest = String::new();
        for entry in &known.entries {
            check_repository(&entry.url)?;
            let file = self.settings.repository_cache.join(index_file(&entry.name));
            let index = Index::read(&file, warnings).map_err(DownloadError::NoIndex)?;
            for version in index.entries.values().flatten() {
                for listed in version.urls.iter().flatten() {
                    if url::equal(address, listed) {
                        return Ok((Some(entry.clone()), version.digest.clone()));
                    }
                    let is_meant = url::resolve(&entry.url, listed)
                        .is_ok_and(|resolved| url::equal(address, &resolved));
                    if is_meant && digest.is_empty() {
                        digest.clone_from(&version.digest);
                    }
                }
            }
        }
        Ok((None, digest))
    }
}

/// The address of a chart in a repository that is not known by name
/// (`FindChartInAuthAndTLSRepoURL`), and the digest that the index has for it.
///
/// # Errors
/// [`DownloadError`].
pub fn find_in_repository(
    transport: &dyn Transport,
    settings: &Settings,
    repository: &str,
    access: &Access,
    chart: &str,
    version: &str,
    warnings: &mut Vec<Warning>,
) -> Result<Wanted, DownloadError> {
    let (_, index) = download_index(transport, settings, repository, access, TIMEOUT, warnings)
        .map_err(unreachable(repository))?;
    let named = if version.is_empty() {
        format!("chart {}", quote(chart))
    } else {
        format!("chart {} version {}", quote(chart), quote(version))
    };
    let found = index.get(chart, version).map_err(|_| DownloadError::NotInRepository {
        chart: named.clone(),
        repository: url::shown(repository),
    })?;
    let first = found.urls.as_ref().and_then(|urls| urls.first());
    let first = first.ok_or(DownloadError::NoAddress { named })?;
    Ok(Wanted {
        reference: url::resolve(repository, first)?,
        version: version.to_owned(),
        digest: found.digest.clone(),
    })
}

/// Says that an address is no repository's, with the cause; other errors stay as they are.
pub fn unreachable(repository: &str) -> impl Fn(DownloadError) -> DownloadError + '_ {
    move |error| match error {
        DownloadError::Address { .. } | DownloadError::Protocol { .. } => error,
        error => {
            DownloadError::Unreachable { url: url::shown(repository), source: Box::new(error) }
        }
    }
}

/// What Helm checks of a repository's address (`NewChartRepository`).
fn check_repository(address: &str) -> Result<(), DownloadError> {
    let parsed = Url::parse(address.as_bytes())
        .map_err(|_| DownloadError::Address { reference: address.to_owned() })?;
    match parsed.scheme.as_slice() {
        b"http" | b"https" | b"oci" => Ok(()),
        scheme => Err(DownloadError::Protocol { scheme: url::part(scheme) }),
    }
}

/// Fetches and reads a repository's index (`DownloadIndexFile`).
///
/// # Errors
/// [`DownloadError`].
pub fn download_index(
    transport: &dyn Transport,
    settings: &Settings,
    repository: &str,
    access: &Access,
    timeout: Duration,
    warnings: &mut Vec<Warning>,
) -> Result<(Vec<u8>, Index), DownloadError> {
    check_repository(repository)?;
    let mut credentials = access.credentials.clone();
    repository.clone_into(&mut credentials.repository);
    let bytes = get(
        transport,
        &Get {
            url: &url::resolve(repository, "index.yaml")?,
            accept: "",
            credentials: &credentials,
            tls: &access.tls,
            limit: MAX_INDEX,
            user_agent: &settings.user_agent,
            timeout,
        },
    )?;
    let index = Index::parse(&bytes, &url::shown(repository), warnings)?;
    Ok((bytes, index))
}

/// Fetches the index of a known repository into the cache.
///
/// # Errors
/// [`DownloadError`]; the cache is as it was then.
pub fn update_index(
    transport: &dyn Transport,
    settings: &Settings,
    entry: &Entry,
    timeout: Duration,
    warnings: &mut Vec<Warning>,
) -> Result<(), DownloadError> {
    let access = Access::of(entry);
    let (bytes, index) =
        download_index(transport, settings, &entry.url, &access, timeout, warnings)?;
    let names: String = index.entries.keys().flat_map(|name| [name, "\n"]).collect();
    let cache = &settings.repository_cache;
    files::make_folder(cache)?;
    files::write(&cache.join(charts_file(&entry.name)), names.as_bytes(), 0o644)?;
    files::write(&cache.join(index_file(&entry.name)), &bytes, 0o644)?;
    Ok(())
}

/// The file name that an address ends in.
fn file_name(address: &str) -> Result<String, DownloadError> {
    let parsed = Url::parse(address.as_bytes())?;
    let path = url::part(&parsed.path);
    let name = gopath::base(&path);
    if matches!(name, "." | ".." | "/" | "") || name.chars().any(char::is_control) {
        return Err(DownloadError::NoName { url: url::shown(address) });
    }
    Ok(name.to_owned())
}

/// The file name of a chart out of a registry.
fn registry_file_name(repository: &str, target: &str) -> String {
    let name = gopath::base(repository);
    match target.strip_prefix("sha256:") {
        Some(digest) => format!("{name}@sha256-{digest}.tgz"),
        None => format!("{name}-{target}.tgz"),
    }
}

/// Compares an archive with what the index says of it; Helm does not.
fn check_digest(found: &Found, bytes: &[u8]) -> Result<(), DownloadError> {
    let expected = found.digest.strip_prefix("sha256:").unwrap_or(&found.digest);
    let actual = digest(bytes);
    if expected.is_empty() || expected.eq_ignore_ascii_case(&actual) {
        return Ok(());
    }
    Err(DownloadError::Digest {
        url: url::shown(&found.url),
        expected: expected.to_owned(),
        actual,
    })
}
