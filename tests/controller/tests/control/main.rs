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

mod change;
mod chart;
mod cli;
mod handover;
mod resource;
mod rights;
