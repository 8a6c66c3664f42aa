//! Exit status.

use std::process::ExitCode;

/// How the program ends. The root's `--help` lists the codes, and each command's the ones it
/// uses.
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
