//! Exit status.

use std::process::ExitCode;

/// How the program ends. `--help` of every command prints [`Exit::HELP`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// An error, as in Helm; wrong usage too.
    Error,
    /// The answer is no: refused, differences or findings. Nothing was written.
    No,
}

impl Exit {
    /// What help texts say about exit codes.
    pub(crate) const HELP: &'static str = "\
Exit codes:
  0  done
  1  an error, as in Helm
  2  the answer is no: refused, differences or findings; nothing was written";

    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::No => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
