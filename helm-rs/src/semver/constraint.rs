//! Constraints: grammar and evaluation (`constraints.go`).

use std::fmt;

use super::version::{compare_prerelease, suffix};
use super::{Error, MAX_CONSTRAINT_GROUPS, MAX_CONSTRAINT_LENGTH, Version};
use crate::gotext::quote;

/// A version range: alternatives (`||`), each a list of comparisons that must all hold.
#[derive(Clone, Debug)]
pub struct Constraint {
    groups: Vec<Group>,
    include_prerelease: bool,
}

#[derive(Clone, Debug)]
struct Group {
    comparisons: Vec<Comparison>,
    /// Whether one of them names a prerelease, which lets prereleases in.
    prerelease: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    /// None or `=`: equal, or `~` for a wildcard.
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// One comparison, such as `>= 1.2.x`.
#[derive(Clone, Debug)]
struct Comparison {
    operator: Operator,
    /// The operator as written.
    sign: String,
    /// The version as written.
    text: String,
    /// The version with 0 for what is missing or a wildcard.
    version: Version,
    /// The wildcard is in the minor place (and so in the patch).
    minor_open: bool,
    /// The wildcard is in the patch place only.
    patch_open: bool,
    /// There is a wildcard anywhere.
    open: bool,
}

/// Why a version does not satisfy one comparison, in the words of `Validate`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{version}\" {verdict}")]
pub struct Mismatch {
    version: String,
    verdict: String,
}

impl Constraint {
    /// Reads a constraint (`NewConstraint`).
    ///
    /// # Errors
    /// When it is too long, has too many alternatives or does not follow the grammar. An
    /// empty text is no constraint.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let text = text.as_ref();
        if text.len() > MAX_CONSTRAINT_LENGTH {
            return Err(Error::ConstraintTooLong);
        }
        let text = rewrite_ranges(text);
        let alternatives: Vec<&[u8]> = split_alternatives(&text);
        if alternatives.len() > MAX_CONSTRAINT_GROUPS {
            return Err(Error::TooManyGroups);
        }
        let groups = alternatives.into_iter().map(parse_group).collect::<Result<_, _>>()?;
        Ok(Self { groups, include_prerelease: false })
    }

    /// The same constraint that lets prereleases in everywhere, as `helm search --devel`
    /// wants it (`IncludePrerelease`).
    #[must_use]
    pub fn including_prereleases(mut self) -> Self {
        self.include_prerelease = true;
        self
    }

    /// Whether the version satisfies the constraint (`Check`).
    pub fn check(&self, version: &Version) -> bool {
        self.groups.iter().any(|group| {
            let prerelease = self.include_prerelease || group.prerelease;
            group.comparisons.iter().all(|c| c.evaluate(version, prerelease).is_ok())
        })
    }

    /// Like [`Constraint::check`], with every reason against (`Validate`).
    ///
    /// # Errors
    /// When no alternative holds: what failed in each of them, in order.
    pub fn validate(&self, version: &Version) -> Result<(), Vec<Mismatch>> {
        let mut reasons = Vec::new();
        let mut told_prerelease = false;
        for group in &self.groups {
            let prerelease = self.include_prerelease || group.prerelease;
            let mut satisfied = true;
            for comparison in &group.comparisons {
                if !prerelease && !version.prerelease.is_empty() {
                    if !told_prerelease {
                        reasons.push(mismatch(version, Verdict::Prerelease, ""));
                        told_prerelease = true;
                    }
                    satisfied = false;
                } else if let Err(verdict) = comparison.evaluate(version, prerelease) {
                    reasons.push(mismatch(version, verdict, &comparison.text));
                    satisfied = false;
                }
            }
            if satisfied {
                return Ok(());
            }
        }
        Err(reasons)
    }
}

impl fmt::Display for Constraint {
    /// The comparisons as they were read, ranges rewritten (`String`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, group) in self.groups.iter().enumerate() {
            if i > 0 {
                f.write_str(" || ")?;
            }
            for (k, comparison) in group.comparisons.iter().enumerate() {
                if k > 0 {
                    f.write_str(" ")?;
                }
                write!(f, "{}{}", comparison.sign, comparison.text)?;
            }
        }
        Ok(())
    }
}

/// The words for a failed comparison; the text of the comparison follows where they end
/// in a verb.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Prerelease,
    EqualTo,
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
    OtherMajor,
    OtherMajorMinor,
    OtherMinorInZero,
    OtherMinor,
    OtherPatchInZero,
}

fn mismatch(version: &Version, verdict: Verdict, text: &str) -> Mismatch {
    let text = quote(text.as_bytes());
    let verdict = match verdict {
        Verdict::Prerelease => {
            "is a prerelease version and the constraint is only looking for release versions".into()
        }
        Verdict::EqualTo => format!("is equal to {text}"),
        Verdict::NotEqual => format!("is not equal to {text}"),
        Verdict::LessOrEqual => format!("is less than or equal to {text}"),
        Verdict::GreaterOrEqual => format!("is greater than or equal to {text}"),
        Verdict::Less => format!("is less than {text}"),
        Verdict::Greater => format!("is greater than {text}"),
        Verdict::OtherMajor => format!("does not have same major version as {text}"),
        Verdict::OtherMajorMinor => {
            format!("does not have same major and minor version as {text}")
        }
        Verdict::OtherMinorInZero => format!(
            "does not have same minor version as {text}. Expected minor versions to match when \
             constraint major version is 0"
        ),
        Verdict::OtherMinor => format!("does not have same minor version as {text}"),
        Verdict::OtherPatchInZero => format!(
            "does not equal {text}. Expect version and constraint to equal when major and minor \
             versions are 0"
        ),
    };
    Mismatch { version: version.to_string(), verdict }
}

const fn hold(condition: bool, otherwise: Verdict) -> Result<(), Verdict> {
    if condition { Ok(()) } else { Err(otherwise) }
}

impl Comparison {
    fn evaluate(&self, version: &Version, prerelease: bool) -> Result<(), Verdict> {
        if !version.prerelease.is_empty() && !prerelease {
            return Err(Verdict::Prerelease);
        }
        let order = version.compare(&self.version);
        match self.operator {
            Operator::Equal if self.open => self.tilde(version),
            Operator::Equal => hold(order.is_eq(), Verdict::NotEqual),
            Operator::NotEqual => self.not_equal(version),
            Operator::Greater => self.greater(version),
            Operator::Less => hold(order.is_lt(), Verdict::GreaterOrEqual),
            Operator::GreaterEqual => hold(order.is_ge(), Verdict::Less),
            Operator::LessEqual => self.less_equal(version),
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version),
        }
    }

    fn not_equal(&self, version: &Version) -> Result<(), Verdict> {
        let bound = &self.version;
        if self.open {
            if bound.major != version.major {
                return Ok(());
            }
            if self.minor_open {
                return Err(Verdict::EqualTo);
            }
            if bound.minor != version.minor {
                return Ok(());
            }
            if self.patch_open {
                let different = (!version.prerelease.is_empty() || !bound.prerelease.is_empty())
                    && compare_prerelease(&version.prerelease, &bound.prerelease).is_ne();
                return hold(different, Verdict::EqualTo);
            }
            if bound.patch != version.patch {
                return Ok(());
            }
        }
        hold(!version.same(bound), Verdict::EqualTo)
    }

    fn greater(&self, version: &Version) -> Result<(), Verdict> {
        let bound = &self.version;
        let greater = if !self.open || version.major == bound.major && !self.minor_open {
            if self.patch_open {
                version.minor > bound.minor
            } else {
                version.compare(bound).is_gt()
            }
        } else {
            version.major > bound.major
        };
        hold(greater, Verdict::LessOrEqual)
    }

    fn less_equal(&self, version: &Version) -> Result<(), Verdict> {
        let bound = &self.version;
        let less = if self.open {
            version.major < bound.major
                || version.major == bound.major && (version.minor <= bound.minor || self.minor_open)
        } else {
            version.compare(bound).is_le()
        };
        hold(less, Verdict::Greater)
    }

    fn tilde(&self, version: &Version) -> Result<(), Verdict> {
        let bound = &self.version;
        hold(version.compare(bound).is_ge(), Verdict::Less)?;
        let zero = (bound.major, bound.minor, bound.patch) == (0, 0, 0);
        if zero && !self.minor_open && !self.patch_open {
            return Ok(());
        }
        hold(version.major == bound.major, Verdict::OtherMajor)?;
        hold(version.minor == bound.minor || self.minor_open, Verdict::OtherMajorMinor)
    }

    fn caret(&self, version: &Version) -> Result<(), Verdict> {
        let bound = &self.version;
        hold(version.compare(bound).is_ge(), Verdict::Less)?;
        if bound.major > 0 || self.minor_open {
            return hold(version.major == bound.major, Verdict::OtherMajor);
        }
        hold(version.major == 0, Verdict::OtherMajor)?;
        if bound.minor > 0 || self.patch_open {
            return hold(version.minor == bound.minor, Verdict::OtherMinorInZero);
        }
        hold(version.minor == 0, Verdict::OtherMinor)?;
        hold(version.patch == bound.patch, Verdict::OtherPatchInZero)
    }
}

fn split_alternatives(text: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"||") {
        parts.push(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    parts.push(rest);
    parts
}

/// Reads one alternative: comparisons separated by blanks or one comma
/// (`validConstraintRegex`, `findConstraintRegex` and `parseConstraint` in one pass, which
/// is possible since the expressions leave no choice where a comparison ends).
fn parse_group(text: &[u8]) -> Result<Group, Error> {
    let improper = || Error::ImproperConstraint { group: quote(text) };
    let mut comparisons = Vec::new();
    let mut rest = skip_blanks(text);
    let mut unreadable = false;
    loop {
        let (sign, operator, after) = operator(rest);
        let (pattern, after) = version_pattern(skip_blanks(after)).ok_or_else(improper)?;
        match comparison(sign, operator, &pattern) {
            Some(comparison) => comparisons.push(comparison),
            None => unreadable = true,
        }
        rest = skip_blanks(after);
        if rest.is_empty() {
            break;
        }
        if let Some(next) = rest.strip_prefix(b",") {
            rest = skip_blanks(next);
        } else if rest.len() == after.len() {
            return Err(improper());
        }
    }
    // The grammar is checked before any version is read.
    if unreadable {
        return Err(Error::ConstraintVersion);
    }
    let prerelease = comparisons.iter().any(|c| !c.version.prerelease.is_empty());
    Ok(Group { comparisons, prerelease })
}

/// Go's `\s`.
const fn is_blank(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&b| is_blank(b)).count();
    text.get(blanks..).unwrap_or_default()
}

fn operator(text: &[u8]) -> (&'static str, Operator, &[u8]) {
    // Longer signs first; nothing that can follow a sign continues one.
    const SIGNS: [(&str, Operator); 11] = [
        ("!=", Operator::NotEqual),
        (">=", Operator::GreaterEqual),
        ("=>", Operator::GreaterEqual),
        ("<=", Operator::LessEqual),
        ("=<", Operator::LessEqual),
        ("~>", Operator::Tilde),
        ("=", Operator::Equal),
        (">", Operator::Greater),
        ("<", Operator::Less),
        ("~", Operator::Tilde),
        ("^", Operator::Caret),
    ];
    for (sign, operator) in SIGNS {
        if let Some(rest) = text.strip_prefix(sign.as_bytes()) {
            return (sign, operator, rest);
        }
    }
    ("", Operator::Equal, text)
}

/// What `cvRegex` matches: a version whose numbers may be wildcards.
struct Pattern<'a> {
    whole: &'a str,
    major: &'a str,
    /// Minor and patch, each with its dot; empty when absent.
    minor: &'a str,
    patch: &'a str,
    /// With its `-`.
    prerelease: &'a str,
}

fn version_pattern(text: &[u8]) -> Option<(Pattern<'_>, &[u8])> {
    // The pattern is ASCII: what follows the first other byte does not matter.
    let ascii = text.iter().take_while(|b| b.is_ascii()).count();
    let start = std::str::from_utf8(text.get(..ascii)?).ok()?;
    let body = start.strip_prefix('v').unwrap_or(start);
    let (major, rest) = wildcards(body)?;
    let (minor, rest) = dotted_wildcards(rest);
    let (patch, rest) = dotted_wildcards(rest);
    let (prerelease, after) = suffix(rest, '-');
    let prerelease = if prerelease.is_some() { rest.get(..rest.len() - after.len())? } else { "" };
    let (_, rest) = suffix(after, '+');
    let length = start.len() - rest.len();
    let pattern = Pattern { whole: start.get(..length)?, major, minor, patch, prerelease };
    Some((pattern, text.get(length..)?))
}

/// The character class of `cvRegex`, in which `|` stands for itself too.
fn wildcards(text: &str) -> Option<(&str, &str)> {
    let end = text
        .bytes()
        .position(|b| !(b.is_ascii_digit() || matches!(b, b'x' | b'X' | b'*' | b'|')))
        .unwrap_or(text.len());
    if end == 0 { None } else { text.split_at_checked(end) }
}

fn dotted_wildcards(text: &str) -> (&str, &str) {
    text.strip_prefix('.')
        .and_then(wildcards)
        .and_then(|(_, rest)| Some((text.get(..text.len() - rest.len())?, rest)))
        .unwrap_or(("", text))
}

fn is_wildcard(text: &str) -> bool {
    matches!(text.strip_prefix('.').unwrap_or(text), "" | "x" | "X" | "*")
}

/// `None` when the version does not parse, such as `1x.2`.
fn comparison(sign: &str, operator: Operator, pattern: &Pattern<'_>) -> Option<Comparison> {
    let Pattern { whole, major, minor, patch, prerelease } = pattern;
    let (mut minor_open, mut patch_open, mut open) = (false, false, true);
    let version = if is_wildcard(major) {
        format!("0.0.0{prerelease}")
    } else if is_wildcard(minor) {
        minor_open = true;
        format!("{major}.0.0{prerelease}")
    } else if is_wildcard(patch) {
        patch_open = true;
        format!("{major}{minor}.0{prerelease}")
    } else {
        open = false;
        (*whole).to_owned()
    };
    Some(Comparison {
        operator,
        sign: sign.to_owned(),
        text: (*whole).to_owned(),
        version: Version::parse(version).ok()?,
        minor_open,
        patch_open,
        open,
    })
}

/// Rewrites `A - B` to `>= A, <= B` (`rewriteRange`), with its habit of replacing the
/// first occurrence of each range's text.
fn rewrite_ranges(text: &[u8]) -> Vec<u8> {
    let mut result = text.to_vec();
    let mut at = 0;
    while at < text.len() {
        let Some((low, high, length)) = text.get(at..).and_then(range) else {
            at += 1;
            continue;
        };
        let found = text.get(at..at + length).unwrap_or_default();
        if let Some(place) = result.windows(length).position(|window| window == found) {
            result.splice(place..place + length, format!(">= {low}, <= {high} ").into_bytes());
        }
        at += length;
    }
    result
}

/// A hyphen range at the start of `text`: its ends and its length with blanks around it.
fn range(text: &[u8]) -> Option<(&str, &str, usize)> {
    let (low, rest) = version_pattern(skip_blanks(text))?;
    let dash = skip_blanks(rest);
    let after = dash.strip_prefix(b"-")?;
    let start = skip_blanks(after);
    if dash.len() == rest.len() || start.len() == after.len() {
        return None;
    }
    let (high, rest) = version_pattern(start)?;
    Some((low.whole, high.whole, text.len() - skip_blanks(rest).len()))
}
