//! What a lint finds.

use std::fmt;

/// How bad a finding is (`pkg/lint/support`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Does not follow a convention, but will probably work.
    Warning,
    /// Will probably not work.
    Error,
}

impl Severity {
    /// The word that Helm prints.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How bad it is.
    pub severity: Severity,
    /// The file or folder of the chart; sometimes empty.
    pub path: String,
    /// What was found.
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.severity.name(), self.path, self.text)
    }
}

/// Collects findings.
#[derive(Debug, Default)]
pub(super) struct Linter {
    pub(super) messages: Vec<Message>,
}

impl Linter {
    /// Notes what a rule found, if anything; true when it found nothing (`RunLinterRule`).
    pub(super) fn rule(&mut self, severity: Severity, path: &str, found: Option<String>) -> bool {
        let Some(text) = found else { return true };
        self.messages.push(Message { severity, path: path.to_owned(), text });
        false
    }
}
