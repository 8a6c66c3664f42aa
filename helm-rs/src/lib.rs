//! A native Helm engine: charts, values, templates, release records.

pub mod render;
pub mod semver;
mod text;
