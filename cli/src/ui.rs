//! The one object that writes: results to standard output, everything else to standard error.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use crate::environment::Environment;
use crate::error::CommandError;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The form of what is told while a program runs unwatched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines that begin with the time
    #[default]
    Text,
    /// A JSON object a line: `time`, `level`, `message`
    Json,
}

/// Both output streams, and how much to say.
pub struct Ui {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    colour: bool,
    result_colour: bool,
    verbose: bool,
    quiet: bool,
    outlives: bool,
    log: Option<(LogFormat, Environment)>,
}

/// A growing text that several owners share; what tests give a [`Ui`] to write to.
#[derive(Clone, Debug, Default)]
pub struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Ui {
    /// The process's own streams.
    pub fn of_process(environment: &Environment) -> Self {
        let wanted = environment.variable("NO_COLOR").is_none();
        let colour = environment.is_terminal() && wanted;
        // Locking per write is fine: results arrive in one piece.
        let ui = Self::new(Box::new(io::stdout()), Box::new(io::stderr()), colour);
        // A result that goes into a file has none, wherever messages go.
        Self { result_colour: environment.output_is_terminal() && wanted, ..ui }
    }

    /// Any streams.
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, colour: bool) -> Self {
        let (verbose, quiet, outlives) = (false, false, false);
        Self { out, err, colour, result_colour: colour, verbose, quiet, outlives, log: None }
    }

    /// Applies the flags that every command has.
    pub(crate) const fn configure(&mut self, colour: Colour, verbose: bool, quiet: bool) {
        match colour {
            Colour::Auto => {}
            Colour::Always => (self.colour, self.result_colour) = (true, true),
            Colour::Never => (self.colour, self.result_colour) = (false, false),
        }
        self.verbose = verbose;
        self.quiet = quiet;
    }

    /// Lines of a difference, coloured by the signs that begin them, when colour is wanted. Where
    /// `indented`, the signs may stand behind blanks; else it is the form of `diff -u`.
    pub(crate) fn painted_diff(&self, text: &str, indented: bool) -> String {
        if !self.result_colour {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len() + text.len() / 8);
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            let signs = if indented { content.trim_start() } else { content };
            let style = match signs.as_bytes() {
                [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => BOLD,
                [b'+', ..] => GREEN,
                [b'-', ..] => MINUS,
                [b'@' | b'~', ..] => CYAN,
                _ => "",
            };
            if style.is_empty() {
                out.push_str(line);
            } else {
                out.extend([style, content, RESET]);
                out.push_str(line.get(content.len()..).unwrap_or_default());
            }
        }
        out
    }

    /// Whether results may be coloured.
    pub(crate) const fn has_colour(&self) -> bool {
        self.result_colour
    }

    #[cfg(feature = "network")]
    /// From here on, everything that is no result is a line of a log, progress included.
    pub(crate) fn log_as(&mut self, format: LogFormat, environment: &Environment) {
        self.verbose = true;
        self.colour = false;
        self.log = Some((format, environment.clone()));
    }

    /// From here on a reader that closed the pipe ends nothing: the command does more than print,
    /// and its exit code tells more than that it printed.
    pub(crate) const fn outlive_reader(&mut self) {
        self.outlives = true;
    }

    /// Writes a piece of the command's result.
    pub(crate) fn result(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), CommandError> {
        let written = self.out.write_all(bytes.as_ref());
        self.written(written)
    }

    /// As [`Self::result`], after something was changed: where it cannot be written, the error says
    /// what is done all the same.
    #[cfg(feature = "network")]
    pub(crate) fn result_of(
        &mut self,
        bytes: impl AsRef<[u8]>,
        done: impl std::fmt::Display,
    ) -> Result<(), CommandError> {
        self.result(bytes).and_then(|()| self.finish()).map_err(|error| match error.message {
            Some(_) => error.hint(format!("{done}; only the output could not be written")),
            None => error,
        })
    }

    /// Pushes out what was written; results are complete only then.
    pub(crate) fn finish(&mut self) -> Result<(), CommandError> {
        let written = self.out.flush();
        self.written(written)
    }

    fn written(&self, written: io::Result<()>) -> Result<(), CommandError> {
        match written {
            Err(error) if self.outlives && error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| CommandError::output(&error)),
        }
    }

    /// A line that the user should see even when quiet, in Helm's words where Helm has them.
    pub(crate) fn warning(&mut self, text: impl AsRef<str>) {
        self.line("", "", text.as_ref().as_bytes());
    }

    /// What the user may want to know, unless quiet.
    pub(crate) fn note(&mut self, text: impl AsRef<str>) {
        if !self.quiet {
            self.line("", "", text.as_ref().as_bytes());
        }
    }

    /// For whoever debugs; only when verbose.
    pub(crate) fn debug(&mut self, text: impl AsRef<str>) {
        if self.verbose {
            self.line(DIM, "debug: ", text.as_ref().as_bytes());
        }
    }

    /// Somebody else's log, as it is. It is lost where standard error is.
    pub(crate) fn log(&mut self, bytes: &[u8]) {
        drop(self.err.write_all(bytes));
        drop(self.err.flush());
    }

    /// What waits for an answer on the same line, quiet or not. It is lost where standard error is.
    pub(crate) fn question(&mut self, text: &str) {
        drop(self.err.write_all(text.as_bytes()));
        drop(self.err.flush());
    }

    /// The command's error, with what to do next.
    pub(crate) fn error(&mut self, error: &CommandError) {
        if let Some(message) = &error.message {
            self.line(RED, "Error: ", message);
        }
        if let Some(hint) = &error.hint {
            self.line(CYAN, "hint: ", hint.as_bytes());
        }
    }

    /// Standard error has no fallback: when it is closed, the line is lost.
    fn line(&mut self, style: &str, label: &str, text: &[u8]) {
        if let Some((format, environment)) = &self.log {
            let line = log_line(*format, environment, label, text);
            drop(self.err.write_all(line.as_bytes()));
            return;
        }
        let mut line = Vec::with_capacity(text.len() + 32);
        if self.colour && !label.is_empty() {
            line.extend_from_slice(style.as_bytes());
            line.extend_from_slice(label.as_bytes());
            line.extend_from_slice(RESET.as_bytes());
        } else {
            line.extend_from_slice(label.as_bytes());
        }
        line.extend_from_slice(text);
        line.push(b'\n');
        drop(self.err.write_all(&line));
    }
}

fn log_line(format: LogFormat, environment: &Environment, label: &str, text: &[u8]) -> String {
    let level = if label == "Error: " { "error" } else { "info" };
    let text = String::from_utf8_lossy(text);
    let now = jiff::Timestamp::try_from(environment.now()).unwrap_or_default();
    match format {
        LogFormat::Text => format!("{now:.3} {level} {}\n", text.replace('\n', " ")),
        LogFormat::Json => {
            let time = format!("{now:.3}");
            let line = serde_json::json!({ "time": time, "level": level, "message": text });
            format!("{line}\n")
        }
    }
}

const RED: &str = "\x1b[1;31m";
const MINUS: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const CYAN: &str = "\x1b[36m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

impl Buffer {
    /// What was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Buffer, Ui};

    #[test]
    fn differences_are_coloured_by_their_signs() {
        let ui = |colour| Ui::new(Box::new(Buffer::default()), Box::new(Buffer::default()), colour);
        let text = "a -> b\n--- x\n+++ x\n@@ -1 +1 @@\n - item\n-old\n+new";
        assert_eq!(ui(false).painted_diff(text, false), text);
        let painted = ui(true).painted_diff(text, false);
        assert!(painted.contains("\n - item\n\u{1b}[31m-old\u{1b}[0m\n"), "{painted:?}");
        assert!(painted.ends_with("\u{1b}[32m+new\u{1b}[0m"), "{painted:?}");
        let leaves = ui(true).painted_diff("values:\n  + a: 1\n", true);
        assert_eq!(leaves, "values:\n\u{1b}[32m  + a: 1\u{1b}[0m\n");
    }
}
