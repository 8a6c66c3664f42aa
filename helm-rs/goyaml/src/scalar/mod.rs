//! What a scalar is: numbers, timestamps and the words that go-yaml knows.

pub(crate) mod number;
pub(crate) mod resolve;
mod timestamp;
