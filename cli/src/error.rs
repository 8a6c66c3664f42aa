//! Errors at the edge of the program.

use std::fmt::Display;
use std::io;

use crate::exit::Exit;

/// Why a command ends early. Its text is what follows `Error: `; where Helm has the same error,
/// it is Helm's text.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// The text after `Error: `; none when there is nothing to say.
    pub(crate) message: Option<Vec<u8>>,
    /// What to do next, where that is known.
    pub(crate) hint: Option<String>,
    /// The exit status.
    pub(crate) exit: Exit,
}

impl CommandError {
    /// An error with exit status 1.
    pub(crate) fn new(message: impl Display) -> Self {
        Self::from_bytes(message.to_string())
    }

    /// An error whose text may quote data that is not UTF-8.
    pub(crate) fn from_bytes(message: impl Into<Vec<u8>>) -> Self {
        Self { message: Some(message.into()), hint: None, exit: Exit::Error }
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Standard output could not be written. A reader that closed the pipe has seen enough, so
    /// that case is no error.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { message: None, hint: None, exit: Exit::Done };
        }
        Self::new(format_args!("write to standard output: {error}"))
    }
}
