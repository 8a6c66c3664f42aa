//! SHA-256 digests in their usual spelling.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
///
/// ```
/// use helm_rs::repo::Digest;
///
/// let digest = Digest::of(b"");
/// assert!(digest.to_string().starts_with("sha256:e3b0c442"));
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a digest: expected sha256: and 64 hexadecimal digits")]
pub struct DigestError {
    /// The text.
    pub text: String,
}

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let fail = || DigestError { text: text.to_owned() };
        let hex = text.strip_prefix("sha256:").ok_or_else(fail)?.as_bytes();
        if hex.len() != 64 {
            return Err(fail());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let digits = std::str::from_utf8(pair).ok().filter(|p| !p.starts_with('+'));
            *byte = digits.and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or_else(fail)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
