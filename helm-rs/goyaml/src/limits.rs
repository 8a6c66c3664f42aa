//! Bounds on what a decoder accepts.

use crate::LimitError;

/// Bounds on what a decoder accepts; all of them are checked before memory is spent.
///
/// Go bounds depth at 10,000 and alias expansion by a ratio, and sets no bound on size. The
/// default keeps Go's rules except for depth: values nested deeper than 1,000 are refused, because
/// everything that handles a value afterwards recurses over it. What Go itself refuses (flow
/// collections or indentation deeper than 10,000) is refused with Go's own error text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How deep maps and sequences may nest. Values above 10,000 have no effect: Go's decoder
    /// stops there.
    pub max_depth: usize,
    /// The length of the input in bytes.
    pub max_bytes: usize,
    /// How many bytes of text aliases may repeat. Go repeats as much as memory holds.
    pub max_alias_bytes: usize,
    /// How many nodes a document may hold once its aliases are expanded. Go's rule about the
    /// ratio between expanded and written nodes holds besides.
    pub max_nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_depth: 1_000,
            max_bytes: 256 << 20,
            max_alias_bytes: 64 << 20,
            max_nodes: 20_000_000,
        }
    }
}

impl Limits {
    pub(crate) const fn check_bytes(&self, input: &[u8]) -> Result<(), LimitError> {
        let (size, limit) = (input.len(), self.max_bytes);
        if size > limit { Err(LimitError::Bytes { size, limit }) } else { Ok(()) }
    }

    /// Go's own bounds and no others. A caller must be able to handle (and drop) values that are
    /// 10,000 levels deep.
    pub const fn go() -> Self {
        Self {
            max_depth: 10_000,
            max_bytes: usize::MAX,
            max_alias_bytes: usize::MAX,
            max_nodes: usize::MAX,
        }
    }
}
