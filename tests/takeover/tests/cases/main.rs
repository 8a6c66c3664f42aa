//! The cases of the takeover rules, section 8, on a real control plane.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::large_futures,
    clippy::missing_errors_doc,
    clippy::indexing_slicing,
    reason = "test code: a panic is how a test says that something is wrong, and figures are printed"
)]

mod a1;
mod a10;
mod a2;
mod a5;
mod a6;
mod a9;
mod begun;
mod changed;
mod commands;
mod credentials;
mod damaged;
mod gate;
mod grants;
mod guarded;
mod half_states;
mod image;
mod install;
mod inventory;
mod job;
mod kill;
mod on_delete;
mod processes;
mod recovered;
mod refusals;
mod rehearsed;
mod releases;
mod restore;
mod room;
mod silence;
mod status;
mod talos;
mod terminal;
mod undone;
