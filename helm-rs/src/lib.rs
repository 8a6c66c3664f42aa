//! A native Helm engine: charts, values, templates, release records.

mod address;
pub mod render;
pub mod semver;
mod text;
