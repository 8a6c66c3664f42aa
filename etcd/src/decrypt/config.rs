//! An API server's `EncryptionConfiguration` (`apiserver/pkg/apis/apiserver/v1`).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Limits, Value};

use super::Encryption;
use super::providers::Key;

/// The groups in which the kind was published.
const GROUP: &str = "apiserver.config.k8s.io/";

/// A file that is no encryption configuration, or has a key that is none.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no YAML.
    #[error("does not read")]
    Syntax(#[from] goyaml::Error),
    /// It is another kind of object.
    #[error("is no EncryptionConfiguration of {GROUP}v1")]
    Kind,
    /// A key's secret is no base64.
    #[error("provider {provider}, key {key:?}: the secret is no base64")]
    Base64 {
        /// The provider.
        provider: &'static str,
        /// The key's name.
        key: String,
    },
    /// A key's secret has a size that its cipher does not take.
    #[error("provider {provider}, key {key:?}: the secret has {size} bytes, not {wanted}")]
    Size {
        /// The provider.
        provider: &'static str,
        /// The key's name.
        key: String,
        /// Its bytes.
        size: usize,
        /// What the cipher takes.
        wanted: &'static str,
    },
}

/// The keys of a configuration.
#[derive(Clone, Default)]
pub struct Keys(Vec<Named>);

#[derive(Clone)]
struct Named {
    provider: &'static str,
    name: String,
    key: Key,
}

/// Names alone: secrets are not for logs.
impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.iter().map(|key| (key.provider, &key.name))).finish()
    }
}

impl Keys {
    /// Reads a configuration, YAML or JSON.
    ///
    /// # Errors
    /// [`ConfigError`] names provider and key, never a secret.
    pub fn read(text: &[u8]) -> Result<Self, ConfigError> {
        let config = goyaml::from_yaml(text, &Limits::default())?;
        let is = |field: &str, test: &dyn Fn(&str) -> bool| {
            config.get(field).and_then(Value::as_str).is_some_and(|text| test(&text.to_string()))
        };
        let is_kind =
            is("kind", &|kind| matches!(kind, "EncryptionConfiguration" | "EncryptionConfig"))
                && is("apiVersion", &|version| version.starts_with(GROUP) || version == "v1");
        if !is_kind {
            return Err(ConfigError::Kind);
        }
        let mut keys = Self::default();
        for resources in list(config.get("resources")) {
            for provider in list(resources.get("providers")) {
                for name in ["aescbc", "aesgcm", "secretbox"] {
                    let named = list(provider.get(name).and_then(|it| it.get("keys")));
                    for key in named {
                        keys.push(name, key)?;
                    }
                }
            }
        }
        Ok(keys)
    }

    fn push(&mut self, provider: &'static str, key: &Value) -> Result<(), ConfigError> {
        let text = |field| key.get(field).and_then(Value::as_str).map(ToString::to_string);
        let name = text("name").unwrap_or_default();
        let secret = text("secret").unwrap_or_default();
        let Ok(secret) = STANDARD.decode(secret.trim()) else {
            return Err(ConfigError::Base64 { provider, key: name });
        };
        let key = match Key::new(provider, &secret) {
            Ok(key) => key,
            Err(wanted) => {
                let size = secret.len();
                return Err(ConfigError::Size { provider, key: name, size, wanted });
            }
        };
        self.0.push(Named { provider, name, key });
        Ok(())
    }

    /// The keys that may open a value. Several when resources have keys of one name.
    pub(super) fn of(&self, encryption: &Encryption) -> impl Iterator<Item = &Key> {
        let fits = |key: &&Named| key.provider == encryption.provider && key.name == encryption.key;
        self.0.iter().filter(fits).map(|named| &named.key)
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_seq).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Keys;

    const HEAD: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";

    fn read(rest: &str) -> Result<String, String> {
        let keys = Keys::read(format!("{HEAD}{rest}").as_bytes());
        keys.map(|keys| format!("{keys:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn configurations() {
        let keys = "resources:\n- resources: [secrets]\n  providers:\n  - identity: {}\n  - aescbc:\n      \
            keys:\n      - {name: a, secret: AAAAAAAAAAAAAAAAAAAAAA==}\n";
        assert_eq!(read(keys), Ok("[(\"aescbc\", \"a\")]".to_owned()));
        assert_eq!(
            read(&keys.replace("aescbc", "secretbox")),
            Err("provider secretbox, key \"a\": the secret has 16 bytes, not 32".to_owned())
        );
        assert_eq!(
            read(&keys.replace("AAAA", ".")),
            Err("provider aescbc, key \"a\": the secret is no base64".to_owned())
        );
        assert_eq!(read(""), Ok("[]".to_owned()));
        assert!(Keys::read(b"kind: Secret").is_err());
    }
}
