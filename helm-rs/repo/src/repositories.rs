//! The repositories that are known by name: `repositories.yaml` (`pkg/repo/repo.go`).

use std::fmt;
use std::fs::{File as Handle, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::ByteSlice as _;
use goyaml::{Map, Value};
use helm_rs::chart::{DecodeError, Struct, Target, decode_target};
use helm_rs::gojson::{Fields, string};
use helm_rs::gotext::ZERO_TIME;

use crate::files::{self, FileError};
use crate::package;

/// Bytes that the file may have.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// A repository, and how it is spoken to.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The name that it goes by.
    pub name: String,
    /// Its address: `index.yaml` is below it.
    pub url: String,
    /// Who asks.
    pub username: String,
    /// The user's password.
    pub password: String,
    /// A file with the client's certificate.
    pub cert_file: String,
    /// A file with the certificate's key.
    pub key_file: String,
    /// A file with the authorities that the server's certificate may be of.
    pub ca_file: String,
    /// Whether any certificate will do.
    pub insecure_skip_tls_verify: bool,
    /// Whether other servers get the password too.
    pub pass_credentials_all: bool,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The password stays out of logs.
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The file of known repositories.
#[derive(Clone, Debug)]
pub struct Repositories {
    api_version: String,
    generated: String,
    /// In the order of the file.
    pub entries: Vec<Entry>,
}

/// Why the file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RepositoriesError {
    /// It is not there, or cannot be read.
    #[error("couldn't load repositories file ({})", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: FileError,
    },
    /// It has not the form of such a file.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be written.
    #[error(transparent)]
    Yaml(#[from] goyaml::Error),
    /// Another program holds the file for half a minute already.
    #[error("context deadline exceeded")]
    Locked,
}

impl RepositoriesError {
    /// Whether the file is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Load { source, .. } if source.is_not_found())
    }
}

static ENTRY: Struct = Struct {
    name: "Entry",
    go_type: "repo.Entry",
    fields: &[
        ("name", Target::Text),
        ("url", Target::Text),
        ("username", Target::Text),
        ("password", Target::Text),
        ("certFile", Target::Text),
        ("keyFile", Target::Text),
        ("caFile", Target::Text),
        ("insecure_skip_tls_verify", Target::Bool),
        ("pass_credentials_all", Target::Bool),
    ],
};

static FILE: Struct = Struct {
    name: "File",
    go_type: "repo.File",
    fields: &[
        ("apiVersion", Target::Text),
        ("generated", Target::Time),
        ("repositories", Target::Seq(&Target::Struct(&ENTRY), "*repo.Entry")),
    ],
};

impl Default for Repositories {
    /// Nothing, as Go's zero value: Helm writes it so.
    fn default() -> Self {
        Self { api_version: String::new(), generated: ZERO_TIME.to_owned(), entries: Vec::new() }
    }
}

impl Repositories {
    /// Reads the file (`LoadFile`).
    ///
    /// # Errors
    /// [`RepositoriesError`].
    pub fn read(path: &Path) -> Result<Self, RepositoriesError> {
        let text = files::read(path, MAX_FILE)
            .map_err(|source| RepositoriesError::Load { path: path.to_owned(), source })?;
        let mut fields = decode_target(&text, &FILE)?.unwrap_or_default();
        let generated = take(&mut fields, "generated");
        let mut all = Self {
            api_version: take(&mut fields, "apiVersion"),
            generated: if generated.is_empty() { ZERO_TIME.to_owned() } else { generated },
            entries: Vec::new(),
        };
        if let Some(Value::Seq(items)) = fields.remove("repositories") {
            all.entries = items.into_iter().filter_map(Value::into_map).map(entry).collect();
        }
        Ok(all)
    }

    /// Reads the file; none is an empty one (`loadRepoConfig`).
    ///
    /// # Errors
    /// [`RepositoriesError`].
    pub fn read_or_none(path: &Path) -> Result<Self, RepositoriesError> {
        match Self::read(path) {
            Err(error) if error.is_not_found() => Ok(Self::default()),
            result => result,
        }
    }

    /// The repository of a name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Puts a repository in the place of the one of its name, or at the end.
    pub fn update(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.name == entry.name) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// Takes a repository out; whether it was there.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.name != name);
        self.entries.len() < before
    }

    /// Writes the file, which only its owner may read, and its folder.
    ///
    /// # Errors
    /// [`RepositoriesError`]; a file that is there stays then.
    pub fn write(&self, path: &Path) -> Result<(), RepositoriesError> {
        let mut fields = Fields::default();
        fields.raw("apiVersion", &string(&self.api_version));
        fields.raw("generated", &string(&self.generated));
        let entries: Vec<String> = self.entries.iter().map(Entry::to_json).collect();
        fields.raw("repositories", &format!("[{}]", entries.join(",")));
        if let Some(folder) = path.parent() {
            files::make_folder(folder)?;
        }
        // Helm writes in place: a link to the file stays one.
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Ok(files::write(&place, package::yaml(&fields.end())?.as_bytes(), 0o600)?)
    }
}

impl Entry {
    fn to_json(&self) -> String {
        let mut fields = Fields::default();
        for (name, text) in [
            ("name", &self.name),
            ("url", &self.url),
            ("username", &self.username),
            ("password", &self.password),
            ("certFile", &self.cert_file),
            ("keyFile", &self.key_file),
            ("caFile", &self.ca_file),
        ] {
            fields.raw(name, &string(text));
        }
        fields.raw("insecure_skip_tls_verify", &self.insecure_skip_tls_verify.to_string());
        fields.raw("pass_credentials_all", &self.pass_credentials_all.to_string());
        fields.end()
    }
}

fn entry(mut fields: Map) -> Entry {
    Entry {
        name: take(&mut fields, "name"),
        url: take(&mut fields, "url"),
        username: take(&mut fields, "username"),
        password: take(&mut fields, "password"),
        cert_file: take(&mut fields, "certFile"),
        key_file: take(&mut fields, "keyFile"),
        ca_file: take(&mut fields, "caFile"),
        insecure_skip_tls_verify: fields.get("insecure_skip_tls_verify")
            == Some(&Value::Bool(true)),
        pass_credentials_all: fields.get("pass_credentials_all") == Some(&Value::Bool(true)),
    }
}

fn take(fields: &mut Map, name: &str) -> String {
    match fields.remove(name) {
        Some(Value::String(text)) => text.to_str_lossy().into_owned(),
        _ => String::new(),
    }
}

/// Holds the lock that Helm takes while it changes the file, until the value is dropped. It waits
/// half a minute for another program.
///
/// # Errors
/// [`RepositoriesError`].
pub fn lock(path: &Path) -> Result<Handle, RepositoriesError> {
    if let Some(folder) = path.parent() {
        files::make_folder(folder)?;
    }
    let lock = path.with_extension("lock");
    let fail = |error| FileError::new("open", &lock, error);
    let handle = Handle::options().create(true).append(true).open(&lock).map_err(fail)?;
    for _ in 0..30 {
        match handle.try_lock() {
            Ok(()) => return Ok(handle),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_secs(1)),
            Err(TryLockError::Error(error)) => return Err(fail(error).into()),
        }
    }
    Err(RepositoriesError::Locked)
}

/// The name of a repository's index in the cache (`helmpath.CacheIndexFile`).
pub fn index_file(name: &str) -> String {
    cached(name, "index.yaml")
}

/// The name of the list of a repository's charts in the cache (`helmpath.CacheChartsFile`).
pub fn charts_file(name: &str) -> String {
    cached(name, "charts.txt")
}

fn cached(name: &str, what: &str) -> String {
    if name.is_empty() { what.to_owned() } else { format!("{name}-{what}") }
}
