//! `.helmignore` rules, as Helm's `pkg/ignore/rules.go`.

use crate::gopath::{self, BadPattern};

/// Name of the file in a chart directory that holds the rules.
pub(super) const FILE_NAME: &str = ".helmignore";

/// Longest line that Go's `bufio.Scanner` accepts, in bytes; a longer one is an error.
const MAX_LINE: usize = 64 * 1024;

/// An ignore file that Helm refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    /// A rule uses `**`.
    #[error("double-star (**) syntax is not supported")]
    DoubleStar,
    /// A rule is not a valid shell pattern.
    #[error(transparent)]
    Pattern(#[from] BadPattern),
    /// A line has 64 KiB or more.
    #[error("bufio.Scanner: token too long")]
    LongLine,
}

/// The rules of one chart directory, in file order.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    patterns: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: String,
    negated: bool,
    directories_only: bool,
    scope: Scope,
}

/// What part of a path a rule is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The whole path from the chart root: the rule holds a slash.
    Path,
    /// The last element alone.
    FileName,
}

impl Rules {
    /// Reads an ignore file. The default rule is not added: see [`Rules::add_defaults`].
    ///
    /// # Errors
    ///
    /// [`IgnoreError`] for the first rule that Helm refuses.
    pub fn parse(text: &[u8]) -> Result<Self, IgnoreError> {
        let mut rules = Self::default();
        for (number, line) in lines(text).enumerate() {
            let mut line = line?;
            if number == 0 {
                line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
            }
            rules.add(&String::from_utf8_lossy(line))?;
        }
        Ok(rules)
    }

    /// Adds the rule that every chart has: dot files under `templates/` are ignored.
    pub fn add_defaults(&mut self) {
        self.patterns.push(Rule {
            pattern: "templates/.?*".to_owned(),
            negated: false,
            directories_only: false,
            scope: Scope::Path,
        });
    }

    fn add(&mut self, line: &str) -> Result<(), IgnoreError> {
        let mut rule = trim_space(line);
        if rule.is_empty() || rule.starts_with('#') {
            return Ok(());
        }
        if rule.contains("**") {
            return Err(IgnoreError::DoubleStar);
        }
        gopath::matches(rule, "abc")?;
        let negated = rule.starts_with('!');
        if negated {
            rule = rule.get(1..).unwrap_or_default();
        }
        let directories_only = rule.ends_with('/');
        if directories_only {
            rule = rule.strip_suffix('/').unwrap_or(rule);
        }
        // Helm strips one leading slash at every call of its matcher, so that "//a" changes its
        // meaning from call to call; what the first call sees is good enough.
        let scope = if rule.contains('/') { Scope::Path } else { Scope::FileName };
        let pattern = rule.strip_prefix('/').unwrap_or(rule).to_owned();
        self.patterns.push(Rule { pattern, negated, directories_only, scope });
        Ok(())
    }

    /// Whether the file or directory at a slash-separated path below the chart root is ignored.
    /// Rules are tried in order and the first that decides wins; a negated rule ignores everything
    /// that it does not match, as in Helm.
    pub fn ignores(&self, path: &str, is_directory: bool) -> bool {
        if matches!(path, "" | "." | "./") {
            return false;
        }
        for rule in &self.patterns {
            let wrong_type = rule.directories_only && !is_directory;
            if rule.negated {
                if wrong_type || !rule.matches(path) {
                    return true;
                }
            } else if !wrong_type && rule.matches(path) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    /// A pattern that turns out bad only here counts as no match, as Helm logs and goes on.
    fn matches(&self, path: &str) -> bool {
        let subject = match self.scope {
            Scope::Path => path,
            Scope::FileName => gopath::base(path),
        };
        gopath::matches(&self.pattern, subject).unwrap_or(false)
    }
}

/// `strings.TrimSpace`.
fn trim_space(text: &str) -> &str {
    text.trim_matches(char::is_whitespace)
}

/// The lines as `bufio.Scanner` yields them: a trailing `\r` dropped, no line after the last `\n`.
fn lines(text: &[u8]) -> impl Iterator<Item = Result<&[u8], IgnoreError>> {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let empty = text.is_empty();
    body.split(|&b| b == b'\n').filter(move |_| !empty).map(|line| {
        if line.len() >= MAX_LINE {
            return Err(IgnoreError::LongLine);
        }
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    })
}
