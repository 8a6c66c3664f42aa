//! Addresses in OCI registries (`pkg/registry/reference.go`, `oras-go` `registry/reference.go`).

use helm_rs::gotext::quote;

use crate::url::Url;

/// A text that is no such address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It has one part only.
    #[error("invalid reference: missing registry or repository")]
    Incomplete,
    /// The registry is no host.
    #[error("invalid reference: invalid registry {}", quote(_0))]
    Registry(String),
    /// The repository's name breaks a rule.
    #[error("invalid reference: invalid repository {}", quote(_0))]
    Repository(String),
    /// The tag breaks a rule.
    #[error("invalid reference: invalid tag {}", quote(_0))]
    Tag(String),
    /// The digest is none.
    #[error("invalid reference: invalid digest {}: invalid checksum digest format", quote(_0))]
    Digest(String),
}

/// An address in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Host and port.
    pub registry: String,
    /// The repository's name.
    pub repository: String,
    /// The tag, in which `_` stands for the `+` that tags may not have; empty when there is none.
    pub tag: String,
    /// `sha256:…`; empty when there is none.
    pub digest: String,
}

impl Reference {
    /// Reads an address, with `oci://` before it or not (`newReference`).
    ///
    /// # Errors
    /// [`ReferenceError`].
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let text = text.strip_prefix("oci://").unwrap_or(text);
        let (mut text, digest) = match text.rsplit_once('@') {
            Some((text, digest)) => (text.to_owned(), digest.to_owned()),
            None => (text.to_owned(), String::new()),
        };
        if !digest.is_empty() && !is_digest(&digest) {
            return Err(ReferenceError::Digest(digest));
        }
        if let Some((_, tag)) = text.rsplit_once(':')
            && !tag.contains('/')
            && tag.contains('+')
        {
            let clean = tag.replace('+', "_");
            text = text.replace(&tag.to_owned(), &clean);
        }
        let (registry, path) = text.split_once('/').ok_or(ReferenceError::Incomplete)?;
        let (repository, tag) = path.split_once(':').unwrap_or((path, ""));
        let is_host = Url::parse(format!("dummy://{registry}").as_bytes())
            .is_ok_and(|url| !url.host.is_empty() && url.host == registry.as_bytes());
        if !is_host {
            return Err(ReferenceError::Registry(registry.to_owned()));
        }
        if !is_repository(repository) {
            return Err(ReferenceError::Repository(repository.to_owned()));
        }
        if path.contains(':') && !tag.is_empty() && !is_tag(tag) {
            return Err(ReferenceError::Tag(tag.to_owned()));
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository: repository.to_owned(),
            tag: tag.to_owned(),
            digest,
        })
    }

    /// What a registry is asked for: the tag, else the digest.
    pub fn target(&self) -> &str {
        if self.tag.is_empty() { &self.digest } else { &self.tag }
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        match (self.tag.as_str(), self.digest.as_str()) {
            ("", digest) => write!(f, "@{digest}"),
            (tag, _) => write!(f, ":{tag}"),
        }
    }
}

/// `repositoryRegexp`: parts of small letters and digits, with `.`, `_`, `__` or dashes between
/// them, divided by slashes.
fn is_repository(name: &str) -> bool {
    name.split('/').all(|part| {
        let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.starts_with(alphanumeric)
            && part.ends_with(alphanumeric)
            && part.split(alphanumeric).all(|between| {
                matches!(between, "" | "." | "_" | "__") || between.chars().all(|c| c == '-')
            })
    })
}

/// `tagRegexp`.
fn is_tag(tag: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= 128
        && tag.starts_with(word)
        && tag.chars().all(|c| word(c) || c == '.' || c == '-')
}

/// Whether a text is a SHA-256 digest with its prefix.
pub fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

#[cfg(test)]
mod tests {
    use super::Reference;

    #[test]
    fn addresses() {
        let read = |text| Reference::parse(text).map(|reference| reference.to_string());
        assert_eq!(
            read("oci://localhost:5000/charts/a:1.0.0+b").as_deref(),
            Ok("localhost:5000/charts/a:1.0.0_b")
        );
        assert!(read("localhost").is_err());
        assert!(read("localhost:5000/Charts/a").is_err());
        assert!(read("localhost:5000/charts//a").is_err());
        assert!(read("localhost:5000/../a").is_err());
        assert!(read("localhost:5000/a@sha256:12").is_err());
    }
}
