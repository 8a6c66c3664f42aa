//! Taking a running installation over.

pub mod gate;
