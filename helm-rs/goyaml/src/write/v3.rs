//! `toYamlPretty`: go-yaml v3 on the value itself, after `encode.go`.

use super::Dialect;
use super::emitter::{Emitter, Leaves, Place, Scalar, Style};
use crate::base64;
use crate::json::{MAX_DEPTH, MAX_OUTPUT};
use crate::scalar::number;
use crate::scalar::resolve::{Resolved, Schema, is_base60, old_bool, resolve};
use crate::{Error, LimitError, Node, Source};

/// Writes `value` as go-yaml v3 does.
pub(crate) fn to_yaml_pretty<S: Source>(value: &S) -> Result<String, Error> {
    let out = Emitter::new(Dialect::V3).document(value, &mut Pretty)?;
    // Everything that is no UTF-8 became base64.
    Ok(String::from_utf8(out).unwrap_or_default())
}

struct Pretty;

impl<S: Source> Leaves<S> for Pretty {
    type Error = Error;

    fn scalar(&mut self, out: &mut Emitter, node: Node<S>, place: Place) -> Result<(), Error> {
        match node {
            Node::Null | Node::Seq(_) | Node::Map(_) | Node::Struct(_) => out.word(b"null"),
            Node::NilSeq => out.word(b"[]"),
            Node::NilMap => out.word(b"{}"),
            Node::Bool(true) => out.word(b"true"),
            Node::Bool(false) => out.word(b"false"),
            Node::Int(value) => out.word(value.to_string().as_bytes()),
            Node::Uint(value) => out.word(value.to_string().as_bytes()),
            Node::Float(value) => out.word(match number::format_g64(value).as_str() {
                "NaN" => b".nan",
                "+Inf" => b".inf",
                "-Inf" => b"-.inf",
                text => text.as_bytes(),
            }),
            Node::String(text) => {
                with_scalar(text.as_ref(), |scalar| out.scalar(scalar, place));
            }
        }
        Ok(())
    }

    fn key(&mut self, out: &mut Emitter, key: &[u8]) -> Result<bool, Error> {
        Ok(with_scalar(key, |scalar| out.key(scalar)))
    }

    fn check(&mut self, depth: usize, written: usize) -> Result<(), Error> {
        // Go would go on until its stack or memory is full.
        if depth > MAX_DEPTH {
            Err(Error::Limit(LimitError::Depth { limit: MAX_DEPTH }))
        } else if written > MAX_OUTPUT {
            Err(Error::Limit(LimitError::Output { limit: MAX_OUTPUT }))
        } else {
            Ok(())
        }
    }
}

/// `stringv`
fn with_scalar<R>(text: &[u8], write: impl FnOnce(Scalar<'_>) -> R) -> R {
    let encoded;
    let is_binary = std::str::from_utf8(text).is_err();
    let (text, is_text) = if is_binary {
        encoded = base64::encode_lines(text);
        (encoded.as_bytes(), true)
    } else {
        let is_text = matches!(resolve(text, Schema::V3), Resolved::Str)
            && !is_base60(text)
            && old_bool(text).is_none();
        (text, is_text)
    };
    let style = if text.contains(&b'\n') {
        Style::Literal
    } else if is_text {
        Style::Plain
    } else {
        Style::DoubleQuoted
    };
    write(Scalar { text, is_binary, style })
}
