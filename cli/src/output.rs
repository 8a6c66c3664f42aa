//! Structured results in the form that the user wants.

use goyaml::Value;

use crate::error::CommandError;
use crate::ui::Ui;

/// Form of a structured result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Table,
    /// JSON on one line.
    Json,
    /// YAML.
    Yaml,
}

impl Output {
    /// Says something. Whoever reads the result as data gets nothing else on standard output.
    pub(crate) fn tell(
        self,
        text: &str,
        context: &mut crate::commands::Context<'_>,
    ) -> Result<(), CommandError> {
        if self == Self::Table {
            return context.ui.result(text);
        }
        context.ui.warning(text.trim_end());
        Ok(())
    }
}

/// Writes one result: as data, or as the text for people.
pub(crate) fn write_structured(
    ui: &mut Ui,
    output: Output,
    value: &Value,
    text: &[u8],
) -> Result<(), CommandError> {
    match output {
        Output::Table => ui.result(text),
        Output::Json => {
            let json = goyaml::json::to_json(value).map_err(CommandError::new)?;
            ui.result(json)?;
            ui.result("\n")
        }
        Output::Yaml => ui.result(goyaml::to_yaml(value).map_err(CommandError::new)?),
    }
}

/// A text without control characters: what broken files hold must not reach a terminal as commands.
/// Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    escaped(text, |c| c != '\n' && c != '\t')
}

/// [`printable`] on one line: a table's cell.
pub(crate) fn printable_cell(text: &str) -> String {
    escaped(text, |_| true)
}

/// A text with those control characters escaped that `is_escaped` names.
fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && is_escaped(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Bytes for people: three digits and a unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {}", UNITS.get(unit).unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (20_000, "20 KiB"),
            (1_048_576, "1.0 MiB"),
            (2_147_483_648, "2.0 GiB"),
        ] {
            assert_eq!(super::size(bytes), text);
        }
    }
}
