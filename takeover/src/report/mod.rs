//! A plan as a report: one HTML page, Markdown for a merge request, or the plan's JSON.
//!
//! ```text
//! Plan ─► View (words, safe to look at) ─┬─► HTML      (handlebars, everything escaped)
//!                                        ├─► Markdown
//!                                        └─► terminal  (plan::to_text)
//! ```
//!
//! The HTML page stands alone: no script, nothing from elsewhere. A plan holds no credential, and
//! what lies inside documents and lists is hidden here by its inner names. The same plan gives the
//! same bytes.

pub(crate) mod change;
mod html;
mod markdown;
pub(crate) mod view;
pub(crate) mod visible;

use std::path::Path;

use crate::plan::Plan;
use change::Room;
use view::View;

/// What a page has room for.
const PAGE: Room = Room { width: 600, lines: 120 };

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One self-contained page.
    Html,
    /// For a merge request.
    Markdown,
    /// The plan's own.
    Json,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The file's extension names no form.
    #[error("{file}: a report ends in .html, .md or .json")]
    Extension {
        /// The file.
        file: String,
    },
    /// The page's template does not go through.
    #[error("the page")]
    Template(#[from] handlebars::TemplateError),
    /// The page's template asks for what is not there.
    #[error("the page")]
    Page(#[from] handlebars::RenderError),
    /// The plan is no JSON.
    #[error("the plan as JSON")]
    Json(#[from] serde_json::Error),
}

impl Form {
    /// The form that a file's extension names, in any case.
    ///
    /// # Errors
    /// [`ReportError::Extension`]
    ///
    /// ```
    /// use takeover::report::Form;
    /// assert_eq!(Form::of_file("out/plan.html".as_ref()).unwrap(), Form::Html);
    /// assert!(Form::of_file("plan.pdf".as_ref()).is_err());
    /// ```
    pub fn of_file(file: &Path) -> Result<Self, ReportError> {
        let extension = file.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("html" | "htm") => Ok(Self::Html),
            Some("md" | "markdown") => Ok(Self::Markdown),
            Some("json") => Ok(Self::Json),
            _ => Err(ReportError::Extension { file: file.display().to_string() }),
        }
    }
}

/// The report of a plan.
///
/// # Errors
/// [`ReportError`]: never in practice, since the template is built in and a plan is plain data.
pub fn render(plan: &Plan, form: Form) -> Result<String, ReportError> {
    match form {
        Form::Html => html::page(&View::new(plan, PAGE)),
        Form::Markdown => Ok(markdown::text(&View::new(plan, PAGE))),
        Form::Json => Ok(plan.to_json()? + "\n"),
    }
}
