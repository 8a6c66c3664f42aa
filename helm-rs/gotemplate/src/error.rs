//! What parsing and running templates can report.

use std::fmt;
use std::sync::Arc;

use bstr::ByteSlice;

use crate::value::Str;

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text does not parse.
    Parse,
    /// It failed while running; in Go a `template.ExecError`.
    Exec,
    /// There is no template of the name that was asked for. Not an `ExecError` in Go.
    NoTemplate,
    /// A limit of the execution was reached.
    Limit,
}

/// A template error. [`fmt::Display`] gives Go's text, to the byte when that is UTF-8; see
/// [`Error::text`] for the bytes.
#[derive(Clone)]
pub struct Error(Box<Details>);

/// The parts of an [`Error`].
#[derive(Clone)]
pub(crate) struct Details {
    pub(crate) kind: ErrorKind,
    pub(crate) text: Str,
    /// The template that was parsed or ran.
    pub(crate) template: Str,
    pub(crate) place: Option<Place>,
}

/// Where in a source text something went wrong.
#[derive(Clone)]
pub(crate) struct Place {
    /// The name that the text was parsed under.
    pub(crate) source_name: Str,
    pub(crate) source: Arc<[u8]>,
    pub(crate) line: u32,
    /// Bytes from the start of the line; none for parse errors, as in Go.
    pub(crate) column: Option<u32>,
    /// The length of the expression there.
    pub(crate) length: u32,
}

impl Error {
    pub(crate) fn new(details: Details) -> Self {
        Self(Box::new(details))
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Go's text.
    pub fn text(&self) -> &Str {
        &self.0.text
    }

    /// Whether Go's error is a `template.ExecError`, which Helm asks for
    /// (`pkg/engine/engine.go`, `cleanupExecError`).
    pub fn is_exec_error(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Exec | ErrorKind::Limit)
    }

    /// The name of the template that failed; with `define`, not the name of its file.
    pub fn template(&self) -> &Str {
        &self.0.template
    }

    /// The name that the text with the place was parsed under.
    pub fn source_name(&self) -> Option<&Str> {
        self.0.place.as_ref().map(|place| &place.source_name)
    }

    /// The line, from 1.
    pub fn line(&self) -> Option<u32> {
        self.0.place.as_ref().map(|place| place.line)
    }

    /// The column in bytes, from 0. Parse errors have none.
    pub fn column(&self) -> Option<u32> {
        self.0.place.as_ref().and_then(|place| place.column)
    }

    /// The bytes of the expression in the source text: start and end.
    pub fn span(&self) -> Option<(usize, usize)> {
        let place = self.0.place.as_ref()?;
        let line_start = place.line_start();
        let start = line_start + place.column? as usize;
        let end = (start + place.length as usize).min(place.source.len());
        Some((start, end))
    }

    /// The source line with the expression marked below it, for a terminal. Nothing when
    /// there is no place.
    pub fn excerpt(&self) -> Option<String> {
        let place = self.0.place.as_ref()?;
        let rest = place.source.get(place.line_start()..)?;
        let line = rest.lines().next().unwrap_or_default().to_str_lossy();
        let number = place.line.to_string();
        let mut out = format!("{number} | {line}\n");
        if let Some(column) = place.column {
            let before: String = rest
                .get(..column as usize)
                .unwrap_or_default()
                .to_str_lossy()
                .chars()
                .map(|c| if c == '\t' { c } else { ' ' })
                .collect();
            let width = line.chars().count().saturating_sub(before.chars().count());
            let length = (place.length as usize).clamp(1, width.max(1));
            let gutter = " ".repeat(number.len());
            let marks = "^".repeat(length);
            out.extend([&gutter, " | ", &before, &marks, "\n"]);
        }
        Some(out)
    }
}

impl Place {
    fn line_start(&self) -> usize {
        let mut starts = self.source.find_iter(b"\n").map(|at| at + 1);
        match self.line {
            0 | 1 => 0,
            line => starts.nth(line as usize - 2).unwrap_or(self.source.len()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.text, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.0.text)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {}
