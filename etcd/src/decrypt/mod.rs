//! Encryption at rest: values that an API server encrypted before etcd got them.
//!
//! ```text
//! k8s:enc:PROVIDER:v1:KEY NAME:│ encrypted value
//! ```
//!
//! `aescbc`, `aesgcm` and `secretbox` are opened with the keys of an `EncryptionConfiguration`;
//! a value of `kms` cannot be opened without the service that holds its key, and is named.

mod config;
mod providers;

use std::borrow::Cow;

use crate::storage::{ENCRYPTED, Envelope, EnvelopeError};
pub use config::{ConfigError, Keys};
use providers::Wrong;

/// How a value is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Encryption {
    /// `aescbc`, `aesgcm`, `secretbox`, `kms` or one that is not known.
    pub provider: String,
    /// The version of the provider's form: `v1`, `v2`.
    pub version: String,
    /// The key's name; with `kms` the plugin's.
    pub key: String,
}

impl std::fmt::Display for Encryption {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { provider, version, key } = self;
        match (provider.as_str(), version.as_str()) {
            ("kms", _) => write!(out, "provider kms {version}, plugin {key:?}"),
            _ => write!(out, "provider {provider}, key {key:?}"),
        }
    }
}

/// A value that cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum DecryptError {
    /// No configuration was given.
    #[error("is encrypted ({encryption}), and no encryption configuration is given")]
    NoKeys {
        /// How.
        encryption: Encryption,
    },
    /// The configuration has no such key.
    #[error("is encrypted ({encryption}), and the encryption configuration has no such key")]
    NoKey {
        /// How.
        encryption: Encryption,
    },
    /// The key does not open it.
    #[error(
        "is encrypted ({encryption}), and the key of that name in the encryption configuration is \
         another one, or the value is damaged"
    )]
    WrongKey {
        /// How.
        encryption: Encryption,
    },
    /// A service holds the key.
    #[error("is encrypted ({encryption}): only that service can decrypt it")]
    Kms {
        /// How.
        encryption: Encryption,
    },
    /// A provider that is not known.
    #[error("is encrypted ({encryption}), in a way that is not known")]
    Unknown {
        /// How.
        encryption: Encryption,
    },
    /// The value is shorter than its form allows.
    #[error("is encrypted ({encryption}), and is cut")]
    Cut {
        /// How.
        encryption: Encryption,
    },
    /// It begins as an encrypted value and does not say how.
    #[error("is encrypted, and does not say how")]
    Form,
}

impl DecryptError {
    /// How the value is encrypted, as far as it says so.
    pub const fn encryption(&self) -> Option<&Encryption> {
        match self {
            Self::NoKeys { encryption }
            | Self::NoKey { encryption }
            | Self::WrongKey { encryption }
            | Self::Kms { encryption }
            | Self::Unknown { encryption }
            | Self::Cut { encryption } => Some(encryption),
            Self::Form => None,
        }
    }
}

/// Whether and how a value is encrypted, and what of it is.
///
/// # Errors
/// When it begins as an encrypted value and does not go on as one.
pub fn encryption(value: &[u8]) -> Result<Option<(Encryption, &[u8])>, DecryptError> {
    let Some(rest) = value.strip_prefix(ENCRYPTED) else { return Ok(None) };
    // Names have no colon (`validation.go` of the configuration refuses them).
    let mut parts = rest.splitn(4, |byte| *byte == b':');
    let mut text = || {
        let part = parts.next()?;
        let fits = part.len() <= 256 && part.iter().all(|byte| (0x20..0x7f).contains(byte));
        fits.then(|| String::from_utf8_lossy(part).into_owned())
    };
    let (Some(provider), Some(version), Some(key)) = (text(), text(), text()) else {
        return Err(DecryptError::Form);
    };
    let Some(content) = parts.next() else { return Err(DecryptError::Form) };
    Ok(Some((Encryption { provider, version, key }, content)))
}

/// Opens a value; one that is not encrypted is given back. `etcd_key` is the whole key that the
/// value is stored under: `aesgcm` seals it in.
///
/// # Errors
/// [`DecryptError`] names provider and key.
pub fn open<'a>(
    value: &'a [u8],
    etcd_key: &[u8],
    keys: Option<&Keys>,
) -> Result<Cow<'a, [u8]>, DecryptError> {
    let Some((encryption, content)) = encryption(value)? else { return Ok(Cow::Borrowed(value)) };
    match (encryption.provider.as_str(), encryption.version.as_str()) {
        ("kms", _) => return Err(DecryptError::Kms { encryption }),
        ("aescbc" | "aesgcm" | "secretbox", "v1") => {}
        _ => return Err(DecryptError::Unknown { encryption }),
    }
    let Some(keys) = keys else { return Err(DecryptError::NoKeys { encryption }) };
    let mut wrong = None;
    for key in keys.of(&encryption) {
        match providers::open(key, content, etcd_key) {
            // A wrong key of aescbc may leave something that looks padded.
            Ok(plain) if is_object(&plain) => return Ok(Cow::Owned(plain)),
            Ok(_) => wrong = Some(Wrong::Key),
            Err(error) => wrong = Some(error),
        }
    }
    Err(match wrong {
        None => DecryptError::NoKey { encryption },
        Some(Wrong::Key) => DecryptError::WrongKey { encryption },
        Some(Wrong::Size) => DecryptError::Cut { encryption },
    })
}

fn is_object(plain: &[u8]) -> bool {
    matches!(Envelope::read(plain), Ok(_) | Err(EnvelopeError::Cbor))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::{DecryptError, Keys, encryption, open};

    const PLAIN: &str = r#"{"kind":"Secret","apiVersion":"v1"}"#;
    const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

    /// Values that Go's crypto libraries made of [`PLAIN`] with the first bytes of [`SECRET`].
    const VALUES: [(&str, usize, &str); 7] = [
        (
            "aescbc",
            16,
            "BwcHBwcHBwcHBwcHBwcHByPEqW9+BZlAuyBzwtxpNsrWNFr75tr6H3bodW2oGBARy9fKoq+L519yExqrxJIOxQ==",
        ),
        (
            "aesgcm",
            16,
            "CQkJCQkJCQkJCQkJVRexSKRO7mbmDCvHf6wmINN/zRvIzKRP9im+i/2SCE0eoXnEjxEN8rXF02X7LaZqqvoD",
        ),
        (
            "aescbc",
            24,
            "BwcHBwcHBwcHBwcHBwcHB1MtZKlOdo4xuEP+yUiIvyhwTF98ri/nc6LihSAc/FWqZcji+7p9zbe23Y8mBfxAzw==",
        ),
        (
            "aesgcm",
            24,
            "CQkJCQkJCQkJCQkJDXbXt7XRryul005lQSFW1Pa+fTV1jcTHzGSTBec62RakJshQIm2QuxGkK4gcc9E5/fLo",
        ),
        (
            "aescbc",
            32,
            "BwcHBwcHBwcHBwcHBwcHB5O0hTrd3DgnbmcsqVlr4ajG3LWzzURxqRGrwX92AhCyAJe0diUxSctRZEAFf7/tGw==",
        ),
        (
            "aesgcm",
            32,
            "CQkJCQkJCQkJCQkJK5d5lLGm0EvEELtL0lZWCX6yOo7OUfluofPy6MBvXnBhxS1qR9DOL88TQSsyGP2ZXWbu",
        ),
        (
            "secretbox",
            32,
            "AAAABQAAAAAAAAAAAAAAAAAAAAAAAAAAUGofgQsI54VpTbjjmEKciBo/OTOUoayiS7GS3h6o/Vesi7P2QE5S0KakQ1Tpa20OOTHk",
        ),
    ];

    fn keys(provider: &str, secret: &[u8]) -> Keys {
        let secret = STANDARD.encode(secret);
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
             - providers: [{{{provider}: {{keys: [{{name: k, secret: {secret}}}]}}}}]\n"
        );
        Keys::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn every_provider_opens_what_go_closed() {
        for (provider, size, value) in VALUES {
            let mut stored = format!("k8s:enc:{provider}:v1:k:").into_bytes();
            stored.extend(STANDARD.decode(value).unwrap());
            let key = b"/registry/secrets/a/b";
            let right = keys(provider, &SECRET[..size]);
            let plain = open(&stored, key, Some(&right)).unwrap();
            assert_eq!(plain, PLAIN.as_bytes(), "{provider} {size}");
            let wrong = keys(provider, &[b'x'; 32][..size]);
            let error = open(&stored, key, Some(&wrong)).unwrap_err();
            assert!(matches!(error, DecryptError::WrongKey { .. }), "{provider} {size}: {error}");
            assert!(error.to_string().contains(&format!("provider {provider}, key \"k\"")));
            // Only aesgcm seals the place in.
            let moved = open(&stored, b"/registry/secrets/a/c", Some(&right));
            assert_eq!(moved.is_ok(), provider != "aesgcm", "{provider} {size}");
            for cut in 0..stored.len() {
                assert!(open(&stored[..cut], key, Some(&right)).is_err() || cut < 8, "{cut}");
            }
        }
    }

    #[test]
    fn how_a_value_is_encrypted() {
        let (how, content) = encryption(b"k8s:enc:aescbc:v1:key1:\x01:\x02").unwrap().unwrap();
        assert_eq!(how.to_string(), "provider aescbc, key \"key1\"");
        assert_eq!(content, b"\x01:\x02");
        assert_eq!(encryption(b"{}"), Ok(None));
        assert_eq!(encryption(b"k8s:enc:aescbc"), Err(DecryptError::Form));
        let error = open(b"k8s:enc:kms:v2:vault:xx", b"/a", None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "is encrypted (provider kms v2, plugin \"vault\"): only that service can decrypt it"
        );
        let keys = Keys::default();
        let error = open(b"k8s:enc:aesgcm:v1:k:xx", b"/a", Some(&keys)).unwrap_err();
        assert!(matches!(error, DecryptError::NoKey { .. }));
    }
}
