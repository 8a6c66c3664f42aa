//! The `ichor` program.

fn main() {}
