//! `Chart.yaml`, dependencies and the lock, as Helm's `pkg/chart/{metadata,dependency,errors}.go`.

use std::collections::{BTreeMap, BTreeSet};

use gotemplate::strconv::is_print;
use goyaml::Value;

use crate::{gopath, gotext};

/// The `apiVersion` of charts from Helm 2's days, which list dependencies in `requirements.yaml`.
pub(super) const API_VERSION_V1: &str = "v1";

/// A chart that says something impossible about itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("validation: {0}")]
pub struct ValidationError(pub String);

/// `Chart.yaml`. An absent text field is the empty string, as in Helm.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metadata {
    /// Chart name; a chart as dependency goes by its alias once dependencies are processed.
    pub name: String,
    /// Home page.
    pub home: String,
    /// Places of the sources.
    pub sources: Vec<String>,
    /// Chart version.
    pub version: String,
    /// One line about the chart.
    pub description: String,
    /// Search words.
    pub keywords: Vec<String>,
    /// Who looks after the chart.
    pub maintainers: Vec<Maintainer>,
    /// Icon address.
    pub icon: String,
    /// `v1` or `v2`; `v1` when the file says nothing.
    pub api_version: String,
    /// Unused by Helm 3, kept for the record.
    pub condition: String,
    /// Unused by Helm 3, kept for the record.
    pub tags: String,
    /// Version of what the chart installs.
    pub app_version: String,
    /// Whether the chart should no longer be used.
    pub deprecated: bool,
    /// Free text by key.
    pub annotations: BTreeMap<String, String>,
    /// Constraint on the cluster's version.
    pub kube_version: String,
    /// Charts that this one asks for. `None` (the field is absent) and an empty list differ: only
    /// with a list are the subcharts' own dependencies processed.
    pub dependencies: Option<Vec<Dependency>>,
    /// `application`, `library` or empty.
    pub chart_type: String,
}

/// A person in `maintainers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// Name of a person or an organisation.
    pub name: String,
    /// Mail address.
    pub email: String,
    /// Address of a page.
    pub url: String,
    pub(crate) null: bool,
}

/// An entry in `dependencies`: a chart that is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dependency {
    /// The chart's name; its alias once dependencies are processed.
    pub name: String,
    /// Version or constraint.
    pub version: String,
    /// Where to fetch it from.
    pub repository: String,
    /// Comma-separated value paths; the first that holds a boolean switches the chart.
    pub condition: String,
    /// Tags that switch groups of charts through the value `tags`.
    pub tags: Vec<String>,
    /// Result of conditions and tags.
    pub enabled: bool,
    /// Values to copy from the subchart to this chart.
    pub import_values: Vec<ImportValues>,
    /// Another name for this use of the chart.
    pub alias: String,
    pub(crate) null: bool,
}

/// An entry in `import-values`.
#[derive(Debug, Clone, PartialEq)]
pub enum ImportValues {
    /// As written: a text names a key below `exports`, a map has `child` and `parent`.
    Written(Value),
    /// As Helm rewrites it when it processes the entry. A second pass leaves it out.
    Resolved {
        /// Path in the subchart's values.
        child: String,
        /// Path in this chart's values; `.` for the top.
        parent: String,
    },
}

/// `Chart.lock` or `requirements.lock`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    /// When the lock was written, in RFC 3339 form as Go prints it back: the year 1 if not said.
    pub generated: String,
    /// Digest of the dependencies in `Chart.yaml`.
    pub digest: String,
    /// Exact versions; `None` when the field is absent.
    pub dependencies: Option<Vec<Dependency>>,
}

impl Metadata {
    /// Cleans control characters out of the texts and checks the rules of `Metadata.Validate`.
    ///
    /// # Errors
    ///
    /// [`ValidationError`] for the first rule that is broken, in Helm's order.
    pub fn validate(&mut self) -> Result<(), ValidationError> {
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            sanitize(text);
        }
        self.sources.iter_mut().for_each(sanitize);
        self.keywords.iter_mut().for_each(sanitize);
        self.check_fields()?;
        for maintainer in &mut self.maintainers {
            maintainer.validate()?;
        }
        let mut names = BTreeSet::new();
        for dependency in self.dependencies.iter_mut().flatten() {
            dependency.validate()?;
            let key =
                if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if !names.insert(key.clone()) {
                return fail(format!(
                    "more than one dependency with name or alias {}",
                    gotext::quote(key)
                ));
            }
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<(), ValidationError> {
        if self.api_version.is_empty() {
            return fail("chart.metadata.apiVersion is required");
        }
        if self.name.is_empty() {
            return fail("chart.metadata.name is required");
        }
        let quoted = || gotext::quote(&self.name);
        if matches!(self.name.as_str(), "." | "..") {
            return fail(format!("chart.metadata.name {} is not allowed", quoted()));
        }
        if self.name != gopath::base(&self.name) {
            return fail(format!("chart.metadata.name {} is invalid", quoted()));
        }
        if self.version.is_empty() {
            return fail("chart.metadata.version is required");
        }
        if !crate::compatible::is_version(&self.version) {
            let version = gotext::quote(&self.version);
            return fail(format!("chart.metadata.version {version} is invalid"));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            return fail("chart.metadata.type must be application or library");
        }
        Ok(())
    }
}

impl Maintainer {
    /// Cleans its texts.
    ///
    /// # Errors
    /// [`ValidationError`].
    pub(crate) fn validate(&mut self) -> Result<(), ValidationError> {
        if self.null {
            return fail("maintainers must not contain empty or null nodes");
        }
        for text in [&mut self.name, &mut self.email, &mut self.url] {
            sanitize(text);
        }
        Ok(())
    }
}

impl Dependency {
    /// Cleans its texts and looks at its alias.
    ///
    /// # Errors
    /// [`ValidationError`].
    pub(crate) fn validate(&mut self) -> Result<(), ValidationError> {
        if self.null {
            return fail("dependencies must not contain empty or null nodes");
        }
        for text in [&mut self.name, &mut self.version, &mut self.repository, &mut self.condition] {
            sanitize(text);
        }
        self.tags.iter_mut().for_each(sanitize);
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !self.alias.chars().all(allowed) {
            let name = gotext::quote(&self.name);
            return fail(format!("dependency {name} has disallowed characters in the alias"));
        }
        Ok(())
    }
}

fn fail<T>(text: impl Into<String>) -> Result<T, ValidationError> {
    Err(ValidationError(text.into()))
}

/// Turns every kind of white space into a plain space and drops what cannot be printed, as
/// `sanitizeString`.
fn sanitize(text: &mut String) {
    if text.bytes().all(|b| (0x20..0x7F).contains(&b)) {
        return;
    }
    *text = text
        .chars()
        .filter_map(|c| match c {
            c if c.is_whitespace() => Some(' '),
            c if is_print(c.into()) => Some(c),
            _ => None,
        })
        .collect();
}
