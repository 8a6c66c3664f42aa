//! From events to the nodes of the first document, after go-yaml's `decode.go` (`parser`).
//!
//! Nodes lie in document order, and each knows where its subtree ends:
//!
//! ```text
//! {a: [x, y], b: z}     0 map(end 6)  1 "a"  2 seq(end 5)  3 "x"  4 "y"  5 "b"  6 "z"
//! ```
//!
//! so that a document takes one allocation however many collections it has.

use std::borrow::Cow;
use std::collections::HashMap;

use super::parser::{Event, EventKind, Parser};
use super::reader::Input;
use crate::YamlError;

/// Index of a node in its [`Document`].
pub(super) type NodeId = usize;

#[derive(Debug)]
pub(super) struct Node<'t> {
    pub(super) kind: NodeKind<'t>,
    /// The line it starts on, from 0.
    pub(super) line: usize,
    /// The first node behind its subtree.
    pub(super) end: NodeId,
}

#[derive(Debug)]
pub(super) enum NodeKind<'t> {
    Scalar { value: Cow<'t, [u8]>, tag: Option<Box<[u8]>>, implicit: bool },
    Sequence,
    Mapping,
    Alias { name: &'t [u8], target: NodeId },
}

/// The nodes of one document; none if the stream is empty.
#[derive(Debug, Default)]
pub(super) struct Document<'t> {
    nodes: Vec<Node<'t>>,
}

impl<'t> Document<'t> {
    /// Reads the first document of `input`.
    pub(super) fn first(input: &'t Input<'_>) -> Result<Self, YamlError> {
        Self::next(&mut Parser::new(input))
    }

    /// Reads the only document of `input`.
    pub(super) fn only(input: &'t Input<'_>) -> Result<Self, YamlError> {
        let mut parser = Parser::new(input);
        let document = Self::next(&mut parser)?;
        if document.is_empty() {
            return Ok(document);
        }
        match parser.next()?.kind {
            EventKind::StreamEnd => Ok(document),
            _ => Err(YamlError::new("a second document follows")),
        }
    }

    fn next(parser: &mut Parser<'t>) -> Result<Self, YamlError> {
        let mut nodes: Vec<Node<'t>> = Vec::new();
        let mut anchors: HashMap<&'t [u8], NodeId> = HashMap::new();
        let mut open: Vec<NodeId> = Vec::new();
        loop {
            let Event { kind, line } = parser.next()?;
            let id = nodes.len();
            let (kind, anchor, opens) = match kind {
                EventKind::StreamStart | EventKind::DocumentStart => continue,
                EventKind::StreamEnd | EventKind::DocumentEnd => return Ok(Self { nodes }),
                EventKind::SequenceEnd | EventKind::MappingEnd => {
                    if let Some(node) = open.pop().and_then(|start| nodes.get_mut(start)) {
                        node.end = id;
                    }
                    continue;
                }
                EventKind::Alias(name) => {
                    let Some(&target) = anchors.get(name) else {
                        let name = String::from_utf8_lossy(name);
                        return Err(YamlError::new(format!("unknown anchor '{name}' referenced")));
                    };
                    (NodeKind::Alias { name, target }, None, false)
                }
                EventKind::Scalar { anchor, tag, value, implicit } => {
                    let tag = (!tag.is_empty()).then(|| tag.into_boxed_slice());
                    (NodeKind::Scalar { value, tag, implicit }, anchor, false)
                }
                EventKind::SequenceStart { anchor } => (NodeKind::Sequence, anchor, true),
                EventKind::MappingStart { anchor } => (NodeKind::Mapping, anchor, true),
            };
            if let Some(name) = anchor {
                anchors.insert(name, id);
            }
            if opens {
                open.push(id);
            }
            nodes.push(Node { kind, line, end: id + 1 });
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn node(&self, id: NodeId) -> Option<&Node<'t>> {
        self.nodes.get(id)
    }
}
