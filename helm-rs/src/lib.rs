//! A native Helm engine: charts, values, templates, release records.

pub mod render;
pub mod repo;
pub mod semver;
mod text;
