//! Who a registry is asked as: Helm's `registry/config.json`, which has Docker's form
//! (`oras-go` `registry/remote/credentials`).

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Limits, Map, Value};

use crate::files::{self, FileError};
use crate::text;

/// Bytes that the file may have.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// The field with the credentials.
const AUTHS: &str = "auths";

/// A user and a password; or a token, with an empty user.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user.
    pub username: String,
    /// The password, or a token.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

/// Why credentials cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// The file is no such file.
    #[error("invalid config format: {}", path.display())]
    Format {
        /// The file.
        path: std::path::PathBuf,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A program keeps the credentials, and no such program is run.
    #[error(
        "credentials of {registry} are kept by a helper (docker-credential-{helper}), and helpers are not run"
    )]
    Helper {
        /// The registry.
        registry: String,
        /// The helper's name.
        helper: String,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
}

/// The name under which a registry's credentials are kept.
fn key(registry: &str) -> &str {
    match registry {
        "docker.io" | "registry-1.docker.io" => "https://index.docker.io/v1/",
        registry => registry,
    }
}

fn read(path: &Path) -> Result<Map, CredentialsError> {
    let text = match files::read(path, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(Map::new()),
        Err(error) => return Err(error.into()),
    };
    if text.is_empty() {
        return Ok(Map::new());
    }
    goyaml::json::from_json(&text, &Limits::default())
        .ok()
        .and_then(Value::into_map)
        .ok_or_else(|| CredentialsError::Format { path: path.to_owned() })
}

/// The credentials of a registry out of a file; `None` when the file or the registry is not there.
///
/// # Errors
/// [`CredentialsError`].
pub fn find(path: &Path, registry: &str) -> Result<Option<Login>, CredentialsError> {
    let config = read(path)?;
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).map(ToString::to_string).filter(|text| !text.is_empty())
    };
    let helpers = config.get("credHelpers").and_then(|helpers| helpers.get(registry));
    if let Some(helper) = text(helpers).or_else(|| text(config.get("credsStore"))) {
        return Err(CredentialsError::Helper { registry: registry.to_owned(), helper });
    }
    let Some(Value::Map(all)) = config.get(AUTHS) else { return Ok(None) };
    let host = |address: &str| {
        let address = address
            .strip_prefix("https://")
            .or_else(|| address.strip_prefix("http://"))
            .unwrap_or(address);
        address.split('/').next().unwrap_or_default().to_owned()
    };
    let entry = all.get(key(registry)).or_else(|| {
        let near =
            all.iter().find(|(address, _)| host(&String::from_utf8_lossy(address)) == registry);
        near.map(|(_, entry)| entry)
    });
    let Some(entry) = entry else { return Ok(None) };
    let format = || CredentialsError::Format { path: path.to_owned() };
    if let Some(token) = text(entry.get("identitytoken")) {
        return Ok(Some(Login { username: String::new(), password: token }));
    }
    if let Some(auth) = text(entry.get("auth")) {
        let auth = STANDARD.decode(auth).ok().and_then(|auth| String::from_utf8(auth).ok());
        let auth = auth.ok_or_else(format)?;
        let (username, password) = auth.split_once(':').ok_or_else(format)?;
        return Ok(Some(Login { username: username.to_owned(), password: password.to_owned() }));
    }
    let (username, password) = (text(entry.get("username")), text(entry.get("password")));
    Ok(username.zip(password).map(|(username, password)| Login { username, password }))
}

/// Keeps a registry's credentials in a file that only its owner may read.
///
/// # Errors
/// [`CredentialsError`]; a file that is there stays then.
pub fn keep(path: &Path, registry: &str, login: &Login) -> Result<(), CredentialsError> {
    let mut entry = Map::new();
    if login.username.is_empty() {
        entry.insert("identitytoken", login.password.as_str());
    } else {
        entry.insert("auth", STANDARD.encode(format!("{}:{}", login.username, login.password)));
    }
    change(path, |all| {
        all.insert(key(registry), Value::Map(entry));
    })
}

/// Forgets a registry's credentials.
///
/// # Errors
/// [`CredentialsError`].
pub fn forget(path: &Path, registry: &str) -> Result<(), CredentialsError> {
    let is_known = read(path)?.get(AUTHS).is_some_and(|all| all.get(key(registry)).is_some());
    if is_known { change(path, |all| drop(all.remove(key(registry)))) } else { Ok(()) }
}

fn change(path: &Path, edit: impl FnOnce(&mut Map)) -> Result<(), CredentialsError> {
    let mut config = read(path)?;
    let mut all = config.remove(AUTHS).and_then(Value::into_map).unwrap_or_default();
    edit(&mut all);
    config.insert(AUTHS, Value::Map(all));
    let json = text::indent(&goyaml::json::to_json(&Value::Map(config))?, "\t");
    if let Some(folder) = path.parent() {
        files::make_folder(folder)?;
        #[cfg(unix)]
        if fs::read_dir(folder).is_ok_and(|mut inner| inner.next().is_none()) {
            use std::os::unix::fs::PermissionsExt as _;
            // Helm makes the folder for its owner alone.
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
                .map_err(|error| FileError::new("chmod", folder, error))?;
        }
    }
    Ok(files::write(path, json.as_bytes(), 0o600)?)
}
