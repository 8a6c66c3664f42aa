//! What is half made when a signal ends the program is taken away.

use helm_repo::unfinished::abandon;
use tokio::signal::unix::{SignalKind, signal};

use crate::error::CommandError;

/// From here on SIGINT and SIGTERM end the program with the shell's status for it, and nothing half
/// made is left.
pub(crate) fn taken_away_on_signals() -> Result<(), CommandError> {
    let failed = |error| CommandError::new(format_args!("cannot watch for signals: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _here = runtime.enter();
        let of = |kind| signal(kind).map_err(failed);
        (of(SignalKind::interrupt())?, of(SignalKind::terminate())?)
    };
    // It lives as long as the process.
    drop(std::thread::spawn(move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            }
        });
        abandon();
        #[expect(clippy::exit, reason = "nothing is under way that could be ended in order")]
        std::process::exit(code);
    }));
    Ok(())
}
