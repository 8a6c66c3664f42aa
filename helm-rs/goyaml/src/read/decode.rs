//! From nodes to the values that go-yaml decodes into an `interface{}`, after `decode.go`.

use std::borrow::Cow;
use std::collections::HashSet;

use super::compose::{Document, Node, NodeId, NodeKind};
use super::tape::{self, Item};
use crate::base64;
use crate::json::MAX_DEPTH;
use crate::scalar::number::Integer;
use crate::scalar::resolve::{self, LONG_PREFIX, Resolved, Schema};
use crate::{Conversion, Error, LimitError, Limits, YamlError};

/// What a document came to.
#[derive(Debug, Default)]
pub(super) struct Decoded<'t> {
    /// The value and everything in it; empty if there was no document.
    pub(super) tape: Vec<Item<'t>>,
    /// Whether a collection nests deeper than is allowed.
    pub(super) too_deep: bool,
}

/// Decodes the document. `strict` forbids keys that occur twice.
pub(super) fn decode<'t>(
    document: &Document<'t>,
    strict: bool,
    limits: &Limits,
) -> Result<Decoded<'t>, Error> {
    if document.is_empty() {
        return Ok(Decoded::default());
    }
    let mut decoder = Decoder {
        document,
        strict,
        max_nodes: limits.max_nodes,
        max_alias_bytes: limits.max_alias_bytes,
        alias_bytes: 0,
        max_depth: limits.max_depth.min(MAX_DEPTH),
        tape: Vec::new(),
        frames: Vec::new(),
        open_aliases: HashSet::new(),
        parts: Vec::new(),
        depth: 0,
        alias_depth: 0,
        decode_count: 0,
        alias_count: 0,
        too_deep: false,
        seen: Vec::new(),
    };
    // go-yaml counts the document itself.
    decoder.count()?;
    decoder.visit(0)?;
    decoder.run()?;
    if !decoder.parts.is_empty() {
        return Err(Error::Converting(Conversion::Parts(decoder.parts)));
    }
    Ok(Decoded { tape: decoder.tape, too_deep: decoder.too_deep })
}

/// An entry of a mapping that is being read.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// The next node is a key.
    Key,
    /// The key on the tape from here is complete.
    KeyDone { key: usize },
    /// The value of that key is complete, and stood on this line.
    ValueDone { key: usize, line: usize },
}

#[derive(Debug)]
enum Frame {
    /// The items of a sequence.
    Sequence { start: usize, next: NodeId, end: NodeId },
    /// The entries of a mapping. A merged one has no `start`: its entries go to the map around.
    Mapping { start: Option<usize>, next: NodeId, end: NodeId, entry: Entry },
    /// The mappings of a merged sequence, last one first.
    MergeSequence { rest: Vec<NodeId> },
    /// The end of what an alias stands for.
    Alias { node: NodeId },
}

struct Decoder<'d, 't> {
    document: &'d Document<'t>,
    strict: bool,
    max_nodes: usize,
    max_alias_bytes: usize,
    alias_bytes: usize,
    max_depth: usize,
    tape: Vec<Item<'t>>,
    frames: Vec<Frame>,
    open_aliases: HashSet<NodeId>,
    /// What does not fit, one line each (go-yaml's `terrors`).
    parts: Vec<String>,
    depth: usize,
    alias_depth: usize,
    decode_count: usize,
    alias_count: usize,
    too_deep: bool,
    /// With `strict`, the keys of each open map.
    seen: Vec<HashSet<Vec<u8>>>,
}

fn fail(problem: impl Into<String>) -> Error {
    Error::Converting(Conversion::Yaml(YamlError::new(problem)))
}

impl<'t> Decoder<'_, 't> {
    fn run(&mut self) -> Result<(), Error> {
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Sequence { start, next, end } => {
                    if next >= end {
                        self.close(start);
                        continue;
                    }
                    let following = self.node(next)?.end;
                    self.frames.push(Frame::Sequence { start, next: following, end });
                    self.visit(next)?;
                }
                Frame::Mapping { start, next, end, entry } => {
                    self.step_mapping(start, next, end, entry)?;
                }
                Frame::MergeSequence { mut rest } => {
                    if let Some(node) = rest.pop() {
                        self.frames.push(Frame::MergeSequence { rest });
                        self.check_mergeable(node)?;
                        self.merge_mapping(node)?;
                    }
                }
                Frame::Alias { node } => {
                    self.alias_depth -= 1;
                    self.open_aliases.remove(&node);
                }
            }
        }
        Ok(())
    }

    fn node(&self, id: NodeId) -> Result<&Node<'t>, Error> {
        self.document.node(id).ok_or_else(|| fail("unknown problem parsing YAML content"))
    }

    /// Counts one decoding step and applies go-yaml's rule against alias bombs.
    fn count(&mut self) -> Result<(), Error> {
        self.decode_count += 1;
        if self.alias_depth > 0 {
            self.alias_count += 1;
        }
        let ratio = self.alias_count as f64 / self.decode_count as f64;
        if self.alias_count > 100
            && self.decode_count > 1000
            && ratio > allowed_alias_ratio(self.decode_count)
        {
            return Err(fail("document contains excessive aliasing"));
        }
        if self.decode_count > self.max_nodes {
            return Err(Error::Limit(LimitError::Nodes { limit: self.max_nodes }));
        }
        Ok(())
    }

    /// Begins the value of a node.
    fn visit(&mut self, id: NodeId) -> Result<(), Error> {
        self.count()?;
        let node = self.node(id)?;
        let (end, first) = (node.end, id + 1);
        match &node.kind {
            NodeKind::Alias { target, .. } => {
                let target = *target;
                self.open_alias(id)?;
                self.visit(target)
            }
            NodeKind::Scalar { value, tag, implicit } => {
                let item = scalar(value, tag.as_deref(), *implicit)?;
                if self.alias_depth > 0 {
                    self.alias_bytes = self.alias_bytes.saturating_add(value.len());
                    if self.alias_bytes > self.max_alias_bytes {
                        let limit = self.max_alias_bytes;
                        return Err(Error::Limit(LimitError::AliasBytes { limit }));
                    }
                }
                self.tape.push(item);
                Ok(())
            }
            NodeKind::Sequence => {
                let start = self.open(false);
                self.frames.push(Frame::Sequence { start, next: first, end });
                Ok(())
            }
            NodeKind::Mapping => {
                let start = Some(self.open(true));
                self.frames.push(Frame::Mapping { start, next: first, end, entry: Entry::Key });
                Ok(())
            }
        }
    }

    /// Begins a collection on the tape.
    fn open(&mut self, is_map: bool) -> usize {
        let start = self.tape.len();
        self.tape.push(if is_map { Item::Map { end: 0 } } else { Item::Seq { end: 0 } });
        if is_map && self.strict {
            self.seen.push(HashSet::new());
        }
        self.depth += 1;
        self.too_deep |= self.depth > self.max_depth;
        start
    }

    /// Ends the collection that begins at `start`.
    fn close(&mut self, start: usize) {
        self.depth -= 1;
        let behind = self.tape.len();
        match self.tape.get_mut(start) {
            Some(Item::Seq { end }) => *end = behind,
            Some(Item::Map { end }) => {
                *end = behind;
                if self.strict {
                    self.seen.pop();
                }
            }
            _ => {}
        }
    }

    fn step_mapping(
        &mut self,
        start: Option<usize>,
        next: NodeId,
        end: NodeId,
        entry: Entry,
    ) -> Result<(), Error> {
        match entry {
            Entry::Key if next >= end => {
                if let Some(start) = start {
                    self.close(start);
                }
                Ok(())
            }
            Entry::Key => {
                let node = self.node(next)?;
                let value = node.end;
                if is_merge(node) {
                    let next = self.node(value)?.end;
                    self.frames.push(Frame::Mapping { start, next, end, entry: Entry::Key });
                    return self.merge(value);
                }
                let entry = Entry::KeyDone { key: self.tape.len() };
                self.frames.push(Frame::Mapping { start, next: value, end, entry });
                self.visit(next)
            }
            Entry::KeyDone { key } => {
                if matches!(self.tape.get(key), Some(Item::Seq { .. } | Item::Map { .. })) {
                    let key = tape::go_syntax(&self.tape, key);
                    return Err(fail(format!("invalid map key: {key}")));
                }
                let value = self.node(next)?;
                let entry = Entry::ValueDone { key, line: value.line };
                let following = value.end;
                self.frames.push(Frame::Mapping { start, next: following, end, entry });
                self.visit(next)
            }
            Entry::ValueDone { key, line } => {
                if self.strict {
                    self.check_unique(key, line);
                }
                self.step_mapping(start, next, end, Entry::Key)
            }
        }
    }

    /// Notes an entry at `start` whose key the innermost map has already.
    fn check_unique(&mut self, start: usize, line: usize) {
        let Some(identity) = self.tape.get(start).and_then(Item::identity) else { return };
        if self.seen.last_mut().is_some_and(|keys| !keys.insert(identity)) {
            let key = tape::go_syntax(&self.tape, start);
            self.parts.push(format!("line {}: key {key} already set in map", line + 1));
            // The first value stays, which errors that show the map tell.
            self.tape.truncate(start);
        }
    }

    /// The value of a merge key: a mapping, or a sequence of them.
    fn merge(&mut self, id: NodeId) -> Result<(), Error> {
        let node = self.node(id)?;
        if !matches!(node.kind, NodeKind::Sequence) {
            self.check_mergeable(id)?;
            return self.merge_mapping(id);
        }
        let mut rest = Vec::new();
        let (mut item, end) = (id + 1, node.end);
        while item < end {
            rest.push(item);
            item = self.node(item)?.end;
        }
        self.frames.push(Frame::MergeSequence { rest });
        Ok(())
    }

    fn check_mergeable(&self, id: NodeId) -> Result<(), Error> {
        let node = match self.node(id)?.kind {
            NodeKind::Alias { target, .. } => self.node(target)?,
            _ => self.node(id)?,
        };
        match node.kind {
            NodeKind::Mapping => Ok(()),
            _ => Err(fail("map merge requires map or sequence of maps as the value")),
        }
    }

    /// Reads the entries of a mapping into the map around.
    fn merge_mapping(&mut self, id: NodeId) -> Result<(), Error> {
        self.count()?;
        let mapping = match self.node(id)?.kind {
            NodeKind::Alias { target, .. } => {
                self.open_alias(id)?;
                self.count()?;
                target
            }
            _ => id,
        };
        let end = self.node(mapping)?.end;
        self.frames.push(Frame::Mapping { start: None, next: mapping + 1, end, entry: Entry::Key });
        Ok(())
    }

    fn open_alias(&mut self, id: NodeId) -> Result<(), Error> {
        if !self.open_aliases.insert(id) {
            let NodeKind::Alias { name, .. } = &self.node(id)?.kind else { return Ok(()) };
            let name = String::from_utf8_lossy(name);
            return Err(fail(format!("anchor '{name}' value contains itself")));
        }
        self.alias_depth += 1;
        self.frames.push(Frame::Alias { node: id });
        Ok(())
    }
}

/// go-yaml's `allowedAliasRatio`
fn allowed_alias_ratio(decode_count: usize) -> f64 {
    const LOW: usize = 400_000;
    const HIGH: usize = 4_000_000;
    if decode_count <= LOW {
        0.99
    } else if decode_count >= HIGH {
        0.10
    } else {
        0.99 - 0.89 * ((decode_count - LOW) as f64 / (HIGH - LOW) as f64)
    }
}

/// go-yaml's `isMerge`
fn is_merge(node: &Node<'_>) -> bool {
    let NodeKind::Scalar { value, tag, implicit } = &node.kind else { return false };
    value.as_ref() == b"<<"
        && (*implicit || standard_tag(tag.as_deref()).is_some_and(|name| name == b"merge"))
}

/// The name of a tag of the YAML type repository.
fn standard_tag(tag: Option<&[u8]>) -> Option<&[u8]> {
    tag?.strip_prefix(LONG_PREFIX)
}

fn scalar<'t>(
    value: &Cow<'t, [u8]>,
    tag: Option<&[u8]>,
    implicit: bool,
) -> Result<Item<'t>, Error> {
    let resolved = match tag {
        None if !implicit => Resolved::Str,
        None => resolve::resolve(value, Schema::V2),
        Some(_) if standard_tag(tag) == Some(b"binary") => {
            let data = base64::decode(value)
                .ok_or_else(|| fail("!!binary value contains invalid base64 data"))?;
            return Ok(Item::Str(Cow::Owned(data)));
        }
        Some(tag) => resolve::resolve_tagged(tag, value)
            .map_err(|error| Error::Converting(Conversion::Yaml(error)))?,
    };
    Ok(match resolved {
        Resolved::Null => Item::Null,
        Resolved::Bool(value) => Item::Bool(value),
        Resolved::Int(Integer::Signed(value)) => Item::Int(value),
        Resolved::Int(Integer::Unsigned(value)) => Item::Uint(value),
        Resolved::Float(value) => Item::Float(value),
        Resolved::Timestamp | Resolved::Str => Item::Str(value.clone()),
    })
}
