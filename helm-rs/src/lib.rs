//! A native Helm engine: charts, values, templates, release records.

pub mod action;
mod address;
pub mod apply;
mod bytes;
pub mod capabilities;
pub mod chart;
pub mod cluster;
pub mod compatible;
pub mod diff;
pub mod gojson;
pub mod gopath;
pub mod gotext;
pub mod gourl;
pub mod manifest;
pub mod name;
pub mod printer;
mod protobuf;
pub mod release;
pub mod render;
pub mod repo;
pub mod semver;
pub mod values;

pub use gotext::error_chain;
