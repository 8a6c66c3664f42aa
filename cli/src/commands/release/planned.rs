//! The words of `ichor release adopt`, `move` and `restore` for an answer that is no.

use helm_rs::error_chain;

use crate::error::CommandError;
use crate::exit::Exit;

/// An error whose answer is no: nothing was written.
pub(super) fn refused(error: &(dyn std::error::Error + 'static)) -> CommandError {
    let mut result = CommandError::new(error_chain(error)).hint("nothing was written");
    result.exit = Exit::No;
    result
}
