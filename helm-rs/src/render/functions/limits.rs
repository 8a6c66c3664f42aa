//! Bounds that keep one call from using up memory or stack. Go has none of them: it would be
//! killed, so no working chart meets them.

use gotemplate::CallError;

/// How many items a function may make.
const ITEMS: usize = 10_000_000;
/// How many bytes of text a function may make.
const BYTES: usize = 256 << 20;
/// How deep a value may be nested where it is walked recursively.
pub(super) const DEPTH: usize = 1_000;

/// Refuses to make a list of that many items.
pub(super) fn check_items(count: usize) -> Result<(), CallError> {
    if count > ITEMS {
        return Err(CallError::from(format!("list of {count} items exceeds the limit of {ITEMS}")));
    }
    Ok(())
}

/// Refuses to make a text of that many bytes; `None` is a number that does not fit.
pub(super) fn check_bytes(count: Option<usize>) -> Result<(), CallError> {
    match count {
        Some(count) if count <= BYTES => Ok(()),
        _ => Err(CallError::from(format!("text exceeds the limit of {BYTES} bytes"))),
    }
}

/// Refuses values nested deeper than [`DEPTH`].
pub(super) fn check_depth(depth: usize) -> Result<(), CallError> {
    if depth > DEPTH {
        return Err(CallError::from(format!("value is nested deeper than {DEPTH} levels")));
    }
    Ok(())
}

/// How many values one call may visit. Values that share parts can be exponentially larger
/// than their storage.
#[derive(Default)]
pub(super) struct Budget {
    spent: usize,
}

impl Budget {
    /// Takes note of one more value.
    pub(super) fn spend(&mut self) -> Result<(), CallError> {
        self.spent += 1;
        check_items(self.spent)
    }
}
