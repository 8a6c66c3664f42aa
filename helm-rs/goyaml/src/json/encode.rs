//! Writing JSON, after `encoding/json`'s `encode.go` and `indent.go`.

use super::Error;
use crate::scalar::number;
use crate::{LimitError, Node, Source};

/// How deep values may nest. Go has no such bound and finds values that contain themselves.
pub(crate) const MAX_DEPTH: usize = 10_000;

/// How long the output may become. Values that share parts can be small and yet without end.
pub(crate) const MAX_OUTPUT: usize = 512 << 20;

/// The form of the output.
#[derive(Clone, Copy)]
pub(super) struct Style<'s> {
    /// Whether `<`, `>` and `&` are escaped.
    pub(super) escape_html: bool,
    /// Prefix and indentation of `MarshalIndent`.
    pub(super) indent: Option<(&'s str, &'s str)>,
}

/// What is left of a collection.
enum Open<S: Source> {
    Seq(std::vec::IntoIter<S>),
    Map(std::vec::IntoIter<(S::Text, S)>),
}

pub(super) fn encode<S: Source>(value: &S, style: Style<'_>) -> Result<String, Error> {
    let mut out = Vec::with_capacity(128);
    let mut open: Vec<Open<S>> = Vec::new();
    write_node(&mut out, &mut open, value.node(), style)?;
    while let Some(around) = open.last_mut() {
        let (key, value) = match around {
            Open::Seq(items) => (None, items.next()),
            Open::Map(entries) => match entries.next() {
                Some((key, value)) => (Some(key), Some(value)),
                None => (None, None),
            },
        };
        let Some(value) = value else {
            let bracket = if matches!(around, Open::Seq(_)) { b']' } else { b'}' };
            open.pop();
            break_line(&mut out, open.len(), style);
            out.push(bracket);
            continue;
        };
        if !matches!(out.last(), Some(b'[' | b'{')) {
            out.push(b',');
        }
        break_line(&mut out, open.len(), style);
        if let Some(key) = key {
            write_string(&mut out, key.as_ref(), style.escape_html);
            out.push(b':');
            if style.indent.is_some() {
                out.push(b' ');
            }
        }
        write_node(&mut out, &mut open, value.node(), style)?;
    }
    // Only valid UTF-8 was written.
    Ok(String::from_utf8(out).unwrap_or_default())
}

fn write_node<S: Source>(
    out: &mut Vec<u8>,
    open: &mut Vec<Open<S>>,
    node: Node<S>,
    style: Style<'_>,
) -> Result<(), Error> {
    match node {
        Node::Null | Node::NilSeq | Node::NilMap => out.extend_from_slice(b"null"),
        Node::Bool(true) => out.extend_from_slice(b"true"),
        Node::Bool(false) => out.extend_from_slice(b"false"),
        Node::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Node::Uint(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Node::Float(value) => {
            let text = number::format_json(value)
                .ok_or_else(|| Error::UnsupportedValue { text: number::format_g64(value) })?;
            out.extend_from_slice(text.as_bytes());
        }
        Node::String(text) => write_string(out, text.as_ref(), style.escape_html),
        Node::Seq(items) if items.is_empty() => out.extend_from_slice(b"[]"),
        Node::Map(entries) | Node::Struct(entries) if entries.is_empty() => {
            out.extend_from_slice(b"{}");
        }
        Node::Seq(items) => {
            check_size(open.len(), out.len())?;
            out.push(b'[');
            open.push(Open::Seq(items.into_iter()));
        }
        Node::Map(mut entries) => {
            check_size(open.len(), out.len())?;
            if !entries.is_sorted_by(|a, b| a.0.as_ref() <= b.0.as_ref()) {
                entries.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
            }
            out.push(b'{');
            open.push(Open::Map(entries.into_iter()));
        }
        Node::Struct(fields) => {
            check_size(open.len(), out.len())?;
            out.push(b'{');
            open.push(Open::Map(fields.into_iter()));
        }
    }
    Ok(())
}

const fn check_size(depth: usize, written: usize) -> Result<(), Error> {
    if depth >= MAX_DEPTH {
        Err(Error::Limit(LimitError::Depth { limit: MAX_DEPTH }))
    } else if written > MAX_OUTPUT {
        Err(Error::Limit(LimitError::Output { limit: MAX_OUTPUT }))
    } else {
        Ok(())
    }
}

fn break_line(out: &mut Vec<u8>, depth: usize, style: Style<'_>) {
    let Some((prefix, indent)) = style.indent else { return };
    out.push(b'\n');
    out.extend_from_slice(prefix.as_bytes());
    for _ in 0..depth {
        out.extend_from_slice(indent.as_bytes());
    }
}

/// `appendString`
pub(super) fn write_string(out: &mut Vec<u8>, text: &[u8], escape_html: bool) {
    out.push(b'"');
    let is_plain = |&byte: &u8| {
        matches!(byte, b' '..=b'~' | 0x7f)
            && !matches!(byte, b'"' | b'\\')
            && !(escape_html && matches!(byte, b'<' | b'>' | b'&'))
    };
    let mut rest = text;
    loop {
        let plain = rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len());
        let (run, tail) = rest.split_at_checked(plain).unwrap_or((rest, b""));
        out.extend_from_slice(run);
        let Some(&byte) = tail.first() else { break };
        if byte.is_ascii() {
            write_escape(out, byte);
            rest = tail.get(1..).unwrap_or_default();
            continue;
        }
        let (c, width) = bstr::decode_utf8(tail);
        let width = match c {
            // Go replaces every byte of what is no UTF-8.
            None => {
                out.extend_from_slice(b"\\ufffd");
                1
            }
            Some('\u{2028}') => {
                out.extend_from_slice(b"\\u2028");
                width
            }
            Some('\u{2029}') => {
                out.extend_from_slice(b"\\u2029");
                width
            }
            Some(_) => {
                out.extend_from_slice(tail.get(..width).unwrap_or_default());
                width
            }
        };
        rest = tail.get(width..).unwrap_or_default();
    }
    out.push(b'"');
}

fn write_escape(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' => b'"',
        b'\\' => b'\\',
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => {
            out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            return;
        }
    };
    out.push(b'\\');
    out.push(short);
}

/// The text with each byte that is no UTF-8 replaced by U+FFFD.
pub(crate) fn replace_invalid(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    for chunk in text.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        for _ in chunk.invalid() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out
}
