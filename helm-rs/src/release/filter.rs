//! Names by regular expression (`List.Filter` in `pkg/action/list.go`).

use crate::render::functions::regex::Pattern;

/// A regular expression on names, with Go's syntax.
pub struct NameFilter(Pattern);

impl NameFilter {
    /// Compiles the expression.
    ///
    /// # Errors
    /// Go's text about what is wrong with it.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        Pattern::parse(pattern.as_bytes()).map(Self)
    }

    /// Whether the expression fits anywhere in a name.
    pub fn matches(&self, name: &str) -> bool {
        self.0.matches(name.as_bytes())
    }
}
