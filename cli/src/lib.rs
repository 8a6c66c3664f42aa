//! The `ichor` command line as a library: [`run`] takes arguments, an [`Environment`] and a
//! [`Ui`], and returns the [`Exit`] status.
//!
//! ```text
//! args ── clap ─► commands::… ─► helm_rs::action::… ─► Ui (stdout: the result)
//!                     │                                (stderr: warnings, errors, hints)
//!                     └─ Environment (variables, directories, clock, standard input)
//! ```

mod cache;
mod changes;
mod commands;
#[cfg(feature = "network")]
mod connection;
mod environment;
mod error;
mod exit;
mod file;
mod flags;
#[cfg(feature = "network")]
mod leftovers;
mod output;
#[cfg(feature = "offline")]
mod session;
mod ui;
mod usage;

pub use commands::{command, run};
pub use environment::Environment;
pub use exit::Exit;
pub use ui::{Buffer, Colour, Ui};
