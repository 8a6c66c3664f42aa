//! Provenance: the signed file beside a packed chart (`pkg/provenance/sign.go`).
//!
//! A provenance file is a clear-signed text of two YAML documents: what the chart says of itself,
//! and the digest of its archive by the archive's name.

mod clear;
#[cfg(feature = "provenance")]
mod keyring;
#[cfg(not(feature = "provenance"))]
#[path = "none.rs"]
mod keyring;

use std::fs;
use std::path::{Path, PathBuf};

use goyaml::{Limits, Value};
use helm_rs::chart::{LoadError, encode, load_archive};
use helm_rs::gopath;
use helm_rs::gotext::quote;

use crate::files::{self, FileError};
use crate::{digest, package};

pub use keyring::Keyring;

/// Bytes that a provenance file or a keyring may have.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// What divides the two documents of a provenance file.
const DIVIDER: &str = "\n...\n";

/// Who signed a chart, and which one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The key's identities: `NAME (COMMENT) <MAIL>`.
    pub identities: Vec<String>,
    /// The primary key's fingerprint, in hexadecimal capitals.
    pub fingerprint: String,
    /// The archive's digest: `sha256:…`.
    pub digest: String,
    /// The archive's file name.
    pub file_name: String,
}

impl Verification {
    /// What `helm verify` and `helm pull --verify` print of it.
    pub fn text(&self) -> String {
        let signers: String =
            self.identities.iter().map(|name| format!("Signed by: {name}\n")).collect();
        let (fingerprint, digest) = (&self.fingerprint, &self.digest);
        format!(
            "{signers}Using Key With Fingerprint: {fingerprint}\nChart Hash Verified: {digest}\n"
        )
    }
}

/// Why a chart was not signed, or its signature is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// A folder has no signature.
    #[error("unpacked charts cannot be verified")]
    Folder,
    /// The file's name does not end in `.tgz`.
    #[error("chart must be a tgz file")]
    NotArchive,
    /// There is no provenance file beside the archive.
    #[error("could not load provenance file {}", path.display())]
    NoProvenance {
        /// Where it should be.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: FileError,
    },
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The keyring is none.
    #[error("failed to load keyring")]
    Keyring(#[source] Box<ProvenanceError>),
    /// The provenance file holds no signed text.
    #[error("failed to decode signature: signature block not found")]
    NoSignature,
    /// The text has not both parts.
    #[error("message block must have at least two parts")]
    OnePart,
    /// The text's second part is no YAML.
    #[error(transparent)]
    Yaml(#[from] goyaml::Error),
    /// The signed text is about another file.
    #[error("provenance does not contain a SHA for a file named {}", quote(name))]
    OtherName {
        /// The archive's file name.
        name: String,
    },
    /// The archive is not the one that was signed.
    #[error("sha256 sum does not match for {name}: {} != {}", quote(signed), quote(actual))]
    OtherDigest {
        /// The archive's file name.
        name: String,
        /// The signed digest.
        signed: String,
        /// The archive's digest.
        actual: String,
    },
    /// More keys than one answer to the name.
    #[error("more than one key contain the id {}", quote(id))]
    Vague {
        /// The name.
        id: String,
    },
    /// No key has the name.
    #[error("private key not found")]
    NoKey,
    /// The key's secret part is not in the keyring.
    #[error("provided key is not a private key. Try providing a keyring with secret keys")]
    PublicKey,
    /// The passphrase cannot be had.
    #[error(transparent)]
    Passphrase(Box<dyn std::error::Error + Send + Sync>),
    /// The chart in the archive is none.
    #[error(transparent)]
    Chart(#[from] LoadError),
    /// What the chart says of itself cannot be written.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
    /// Go's OpenPGP library says the same in these words.
    #[error("openpgp: {0}")]
    OpenPgp(String),
    /// This build knows no signatures.
    #[error("this program was built without signatures (feature provenance)")]
    NoSupport,
}

/// Checks the signature of a packed chart against a keyring; its provenance file stands beside it
/// (`downloader.VerifyChart`). `now` is the time of day in seconds since 1970: keys expire.
///
/// # Errors
/// [`ProvenanceError`], with Helm's texts.
pub fn verify_chart(
    path: &Path,
    keyring: &Path,
    now: i64,
) -> Result<Verification, ProvenanceError> {
    let about = fs::metadata(path).map_err(|error| FileError::new("stat", path, error))?;
    if about.is_dir() {
        return Err(ProvenanceError::Folder);
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !gopath::ext(&name).eq_ignore_ascii_case(".tgz") {
        return Err(ProvenanceError::NotArchive);
    }
    let beside = provenance_path(path);
    if let Err(error) = fs::metadata(&beside) {
        let source = FileError::new("stat", &beside, error);
        return Err(ProvenanceError::NoProvenance { path: beside, source });
    }
    let keyring =
        Keyring::read(keyring).map_err(|error| ProvenanceError::Keyring(Box::new(error)))?;
    let archive = files::read(path, u64::MAX - 1)?;
    verify(&archive, &name, &files::read(&beside, MAX_FILE)?, &keyring, now)
}

/// Where the provenance of a packed chart is.
pub fn provenance_path(archive: &Path) -> PathBuf {
    let mut name = archive.as_os_str().to_owned();
    name.push(".prov");
    PathBuf::from(name)
}

/// Checks a provenance file against an archive's bytes and the name of its file
/// (`Signatory.Verify`).
///
/// # Errors
/// As [`verify_chart`].
pub fn verify(
    archive: &[u8],
    name: &str,
    provenance: &[u8],
    keyring: &Keyring,
    now: i64,
) -> Result<Verification, ProvenanceError> {
    let signed = clear::decode(provenance).ok_or(ProvenanceError::NoSignature)?;
    let (identities, fingerprint) = keyring.verify(&signed.hashed, &signed.signature, now)?;
    let actual = format!("sha256:{}", digest(archive));
    let text = String::from_utf8_lossy(&signed.text).into_owned();
    let mut parts = text.split(DIVIDER).skip(1);
    let sums = parts.next().ok_or(ProvenanceError::OnePart)?;
    let sums = goyaml::from_yaml(sums.as_bytes(), &Limits::default())?;
    let sum = sums.get("files").and_then(|files| files.get(name)).and_then(Value::as_str);
    let Some(sum) = sum.map(ToString::to_string) else {
        return Err(ProvenanceError::OtherName { name: name.to_owned() });
    };
    if sum != actual {
        return Err(ProvenanceError::OtherDigest { name: name.to_owned(), signed: sum, actual });
    }
    Ok(Verification { identities, fingerprint, digest: actual, file_name: name.to_owned() })
}

/// Signs a packed chart with the key of a keyring whose identity is `id`, or contains it; the
/// text of the provenance file is the answer. `passphrase` is asked, with the identity, for the
/// passphrase of an encrypted key.
///
/// # Errors
/// [`ProvenanceError`], with Helm's texts.
pub fn sign(
    archive: &Path,
    keyring: &Keyring,
    id: &str,
    passphrase: &mut dyn FnMut(&str) -> Result<Vec<u8>, ProvenanceError>,
    now: i64,
) -> Result<String, ProvenanceError> {
    let key = keyring.find(id)?;
    let secret = keyring.unlock(key, passphrase)?;
    let bytes = files::read(archive, u64::MAX - 1)?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = message(&bytes, &name)?;
    let signature = secret.sign(clear::hashed(&text).as_bytes(), now)?;
    Ok(clear::encode(&text, &signature))
}

/// The text that is signed (`messageBlock`).
fn message(archive: &[u8], name: &str) -> Result<String, ProvenanceError> {
    let mut warnings = Vec::new();
    let limits = helm_rs::chart::Limits::default();
    let chart = load_archive(archive, &limits, &mut warnings)?;
    let metadata = package::yaml(&encode::metadata(&chart.metadata)?)?;
    let mut files = goyaml::Map::new();
    files.insert(name, format!("sha256:{}", digest(archive)));
    let mut sums = goyaml::Map::new();
    sums.insert("files", Value::Map(files));
    Ok(format!("{metadata}{DIVIDER}{}", goyaml::to_yaml(&Value::Map(sums))?))
}
