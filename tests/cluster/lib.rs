//! Nothing but tests: see `tests/cluster`.
