//! Rendering: the functions that Helm gives to templates, and what they convert between.

mod convert;
pub mod functions;
pub mod host;
pub mod time;
