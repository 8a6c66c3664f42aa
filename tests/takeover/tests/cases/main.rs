//! The cases of the takeover rules, section 8, on a real control plane.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a panic is how a test says that something is wrong"
)]

mod a1;
mod a10;
mod a2;
mod a5;
mod a6;
mod gate;
mod grants;
mod image;
mod inventory;
mod job;
mod kill;
mod processes;
mod recovered;
mod silence;
