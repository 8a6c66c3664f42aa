//! Server-side apply: beside Helm 4 on a plane of its own, after Helm 3, and in turns with both.

#![expect(clippy::print_stdout, reason = "what was compared is told to whoever reads the output")]
#![expect(clippy::expect_used, clippy::panic, reason = "test code: a panic is how a test fails")]

mod bed;
mod lifecycles;
mod past;
