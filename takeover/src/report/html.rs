//! The page.

use handlebars::Handlebars;

use super::ReportError;
use super::view::View;

const TEMPLATE: &str = include_str!("page.html.hbs");
const STYLE: &str = include_str!("page.css");

/// The view as a page. Everything that comes from it is escaped: the template has no raw output
/// but the style.
pub(super) fn page(view: &View) -> Result<String, ReportError> {
    let mut engine = Handlebars::new();
    engine.set_strict_mode(true);
    engine.set_prevent_indent(true);
    engine.register_escape_fn(escape);
    engine.register_partial("style", STYLE)?;
    engine.register_template_string("page", TEMPLATE)?;
    Ok(engine.render("page", view)?)
}

/// For text and for attribute values in double or single quotes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '`' => out.push_str("&#96;"),
            c => out.push(c),
        }
    }
    out
}
