//! Our side of every comparison, in one place.

use crate::cases::{Case, Outcome};

/// Why our engine cannot be asked yet; `None` once it can.
pub fn unavailable() -> Option<&'static str> {
    Some("helm-rs does not render yet")
}

/// Renders a case with helm-rs, as [`crate::theirs::render_expression`] does with Helm.
pub fn render_expression(_case: &Case) -> Outcome {
    Outcome::Error("helm-rs does not render yet".into())
}

/// The names of the functions that helm-rs gives to templates, sorted, without text/template's own.
pub fn function_names() -> Vec<String> {
    Vec::new()
}
