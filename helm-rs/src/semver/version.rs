//! Versions: parsing, printing and precedence (`version.go`).

use std::cmp::Ordering;
use std::fmt;

use super::{Error, MAX_VERSION_LENGTH, NumberError};

/// One semantic version.
///
/// Equality, as [`Version::same`] and [`Version::compare`] see it, ignores build metadata;
/// the type has no `PartialEq` so that nobody compares the original text by accident.
#[derive(Clone, Debug, Default)]
pub struct Version {
    pub(super) major: u64,
    pub(super) minor: u64,
    pub(super) patch: u64,
    pub(super) prerelease: String,
    metadata: String,
    original: String,
}

impl Version {
    /// A version from its parts, which are not validated (`New`).
    pub fn new(major: u64, minor: u64, patch: u64, prerelease: &str, metadata: &str) -> Self {
        let mut version = Self {
            major,
            minor,
            patch,
            prerelease: prerelease.to_owned(),
            metadata: metadata.to_owned(),
            original: String::new(),
        };
        version.original = version.to_string();
        version
    }

    /// Reads a version leniently: a leading `v`, missing minor and patch, and leading zeros
    /// are accepted (`NewVersion` with its default coercion).
    ///
    /// ```
    /// use helm_rs::semver::Version;
    ///
    /// assert_eq!(Version::parse("v1.02")?.to_string(), "1.2.0");
    /// assert!(Version::parse(" 1.2.3").is_err());
    /// # Ok::<(), helm_rs::semver::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the text is no version even so, is too long, or a number exceeds 64 bits.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let bytes = text.as_ref();
        if bytes.len() > MAX_VERSION_LENGTH {
            return Err(Error::VersionTooLong);
        }
        // Everything that the grammar accepts is ASCII.
        let text = std::str::from_utf8(bytes).map_err(|_| Error::InvalidVersion)?;
        let rest = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = digits(rest).ok_or(Error::InvalidVersion)?;
        let (minor, rest) = dotted(rest);
        let (patch, rest) = dotted(rest);
        let (prerelease, rest) = suffix(rest, '-');
        let (metadata, rest) = suffix(rest, '+');
        if !rest.is_empty() {
            return Err(Error::InvalidVersion);
        }
        let segment = |digits: Option<&str>| match digits {
            None => Ok(0),
            Some(digits) => number(digits).map_err(Error::Segment),
        };
        let version = Self {
            major: segment(Some(major))?,
            minor: segment(minor)?,
            patch: segment(patch)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        };
        if !version.prerelease.is_empty() {
            validate_prerelease(&version.prerelease)?;
        }
        if !version.metadata.is_empty() {
            validate_metadata(&version.metadata)?;
        }
        Ok(version)
    }

    /// Reads a version by the letter of the specification (`StrictNewVersion`).
    ///
    /// # Errors
    /// For everything that [`Version::parse`] would coerce.
    pub fn parse_strict(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let bytes = text.as_ref();
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if bytes.len() > MAX_VERSION_LENGTH {
            return Err(Error::VersionTooLong);
        }
        // Lossy text fails in the same places as the bytes would: U+FFFD is in no class.
        let text = String::from_utf8_lossy(bytes);
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::InvalidVersion);
        };
        let (rest, metadata) = rest.split_once('+').map_or((rest, None), |(a, b)| (a, Some(b)));
        if let Some(metadata) = metadata {
            validate_metadata(metadata)?;
        }
        let (patch, prerelease) = rest.split_once('-').map_or((rest, None), |(a, b)| (a, Some(b)));
        if let Some(prerelease) = prerelease {
            validate_prerelease(prerelease)?;
        }
        for part in [major, minor, patch] {
            if !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(Error::InvalidCharacters);
            }
            if part.len() > 1 && part.starts_with('0') {
                return Err(Error::SegmentStartsZero);
            }
        }
        Ok(Self {
            major: number(major).map_err(Error::Number)?,
            minor: number(minor).map_err(Error::Number)?,
            patch: number(patch).map_err(Error::Number)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.clone().into_owned(),
        })
    }

    /// The major number.
    pub const fn major(&self) -> u64 {
        self.major
    }

    /// The minor number.
    pub const fn minor(&self) -> u64 {
        self.minor
    }

    /// The patch number.
    pub const fn patch(&self) -> u64 {
        self.patch
    }

    /// The prerelease without its `-`; empty for a release.
    pub fn prerelease(&self) -> &str {
        &self.prerelease
    }

    /// The build metadata without its `+`.
    pub fn metadata(&self) -> &str {
        &self.metadata
    }

    /// The text that was parsed, a leading `v` included.
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Precedence: numbers, then prerelease; metadata does not count (`Compare`).
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |v: &Self| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.prerelease.is_empty(), other.prerelease.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_prerelease(&self.prerelease, &other.prerelease),
            }
        })
    }

    /// Whether both have the same precedence (`Equal`).
    pub fn same(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }

    /// The next patch version, or the release of a prerelease; `None` beyond 64 bits, where
    /// Go panics (`IncPatch`).
    #[must_use]
    pub fn next_patch(&self) -> Option<Self> {
        let patch =
            if self.prerelease.is_empty() { self.patch.checked_add(1)? } else { self.patch };
        Some(self.release(self.major, self.minor, patch))
    }

    /// The next minor version; `None` beyond 64 bits (`IncMinor`).
    #[must_use]
    pub fn next_minor(&self) -> Option<Self> {
        Some(self.release(self.major, self.minor.checked_add(1)?, 0))
    }

    /// The next major version; `None` beyond 64 bits (`IncMajor`).
    #[must_use]
    pub fn next_major(&self) -> Option<Self> {
        Some(self.release(self.major.checked_add(1)?, 0, 0))
    }

    fn release(&self, major: u64, minor: u64, patch: u64) -> Self {
        self.rewritten(Self { major, minor, patch, ..Self::default() })
    }

    /// `changed` with the original text that Go gives it: its own, with our leading `v`.
    fn rewritten(&self, mut changed: Self) -> Self {
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        changed.original = format!("{prefix}{changed}");
        changed
    }

    /// The version with another prerelease, given without its `-` (`SetPrerelease`).
    ///
    /// # Errors
    /// When the prerelease is malformed.
    pub fn with_prerelease(&self, prerelease: &str) -> Result<Self, Error> {
        if !prerelease.is_empty() {
            validate_prerelease(prerelease)?;
        }
        Ok(self.rewritten(Self { prerelease: prerelease.to_owned(), ..self.clone() }))
    }

    /// The version with other build metadata, given without its `+` (`SetMetadata`).
    ///
    /// # Errors
    /// When the metadata is malformed.
    pub fn with_metadata(&self, metadata: &str) -> Result<Self, Error> {
        if !metadata.is_empty() {
            validate_metadata(metadata)?;
        }
        Ok(self.rewritten(Self { metadata: metadata.to_owned(), ..self.clone() }))
    }
}

impl fmt::Display for Version {
    /// The normal form: no leading `v`, always three numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Splits leading digits off; `None` when there are none.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

/// An optional `.` with digits.
fn dotted(text: &str) -> (Option<&str>, &str) {
    text.strip_prefix('.').and_then(digits).map_or((None, text), |(n, rest)| (Some(n), rest))
}

/// An optional mark with dot-separated identifiers, as far as they go.
pub(super) fn suffix(text: &str, mark: char) -> (Option<&str>, &str) {
    let Some(body) = text.strip_prefix(mark) else { return (None, text) };
    let mut end = 0;
    let mut rest = body;
    loop {
        let length = rest.bytes().position(|b| !is_identifier(b)).unwrap_or(rest.len());
        if length == 0 {
            break;
        }
        end = body.len() - rest.len() + length;
        match body.get(end..).and_then(|tail| tail.strip_prefix('.')) {
            Some(tail) => rest = tail,
            None => break,
        }
    }
    match body.split_at_checked(end) {
        Some((identifiers, rest)) if end > 0 => (Some(identifiers), rest),
        _ => (None, text),
    }
}

const fn is_identifier(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

/// Go's `strconv.ParseUint(digits, 10, 64)` for text that is only digits.
fn number(digits: &str) -> Result<u64, NumberError> {
    if digits.is_empty() {
        return Err(NumberError::Syntax(String::new()));
    }
    digits.parse().map_err(|_| NumberError::Range(digits.to_owned()))
}

fn validate_prerelease(prerelease: &str) -> Result<(), Error> {
    for part in prerelease.split('.') {
        if part.is_empty() || !part.bytes().all(is_identifier) {
            return Err(Error::InvalidPrerelease);
        }
        if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Error::SegmentStartsZero);
        }
    }
    Ok(())
}

fn validate_metadata(metadata: &str) -> Result<(), Error> {
    if metadata.split('.').all(|part| !part.is_empty() && part.bytes().all(is_identifier)) {
        Ok(())
    } else {
        Err(Error::InvalidMetadata)
    }
}

/// Go's `comparePrerelease`, which also sees an empty side.
pub(super) fn compare_prerelease(left: &str, right: &str) -> Ordering {
    let mut left = left.split('.');
    let mut right = right.split('.');
    loop {
        let (a, b) = (left.next(), right.next());
        if a.is_none() && b.is_none() {
            return Ordering::Equal;
        }
        let order = compare_part(a.unwrap_or(""), b.unwrap_or(""));
        if order.is_ne() {
            return order;
        }
    }
}

fn compare_part(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    if left.is_empty() {
        return Ordering::Less;
    }
    if right.is_empty() {
        return Ordering::Greater;
    }
    // Rust's parse would take a leading `+`, which no identifier contains.
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Err(_), Err(_)) => left.cmp(right),
        // A number precedes words; and what overflows 64 bits counts as a word.
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Ok(a), Ok(b)) => {
            // Go answers -1 for equal numbers written differently (`01` and `1`).
            if a > b { Ordering::Greater } else { Ordering::Less }
        }
    }
}
