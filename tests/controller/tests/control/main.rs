//! Custom resources, chart and controller.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "test code"
)]

mod cases;
mod change;
mod changed;
mod chart;
mod cli;
mod handover;
mod kill;
mod leader;
mod load;
mod permissions;
mod refusal;
mod resource;
mod rights;
mod standing;
mod upgrade;
