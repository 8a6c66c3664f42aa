//! What the scanner hands to the parser.

use std::borrow::Cow;

/// A token and the line it starts on.
#[derive(Clone, Debug)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind<'t>,
    pub(super) line: usize,
}

/// libyaml's tokens.
#[derive(Clone, Debug)]
pub(super) enum Kind<'t> {
    StreamStart,
    StreamEnd,
    VersionDirective { major: u8, minor: u8 },
    TagDirective { handle: &'t [u8], prefix: Vec<u8> },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'t [u8]),
    Anchor(&'t [u8]),
    Tag { handle: &'t [u8], suffix: Vec<u8> },
    Scalar { value: Cow<'t, [u8]>, plain: bool },
}
