//! Errors with their place.

use std::sync::Arc;

use super::{Machine, Result, Scope};
use crate::error::{Details, Error, ErrorKind, Place};
use crate::fmt;
use crate::strconv;
use crate::value::{Str, Value};

impl Scope<'_> {
    /// What `ExecuteTemplate` says about an unknown name.
    pub(super) fn no_template(&self, name: &[u8]) -> Error {
        let args = [Value::string(name), self.set.root_name().clone().into()];
        let text = fmt::sprintf(b"template: no template %q associated with template %q", &args);
        Self::without_place(ErrorKind::NoTemplate, name, text)
    }

    /// What `execute` says about a template without a text.
    pub(super) fn incomplete(name: &[u8]) -> Error {
        let args = [Value::string(name), Value::string(name)];
        let text = fmt::sprintf(b"template: %s: %q is an incomplete or empty template", &args);
        Self::without_place(ErrorKind::Exec, name, text)
    }

    fn without_place(kind: ErrorKind, name: &[u8], text: Vec<u8>) -> Error {
        Error::new(Details { kind, text: text.into(), template: Str::from(name), place: None })
    }
}

impl Machine<'_, '_, '_> {
    /// `errorf`: an error at the current node.
    pub(super) fn fail<T>(&self, format: &str, args: &[Value]) -> Result<T> {
        Err(self.error(ErrorKind::Exec, format, args))
    }

    /// An error at the current node. Go builds a format out of place, names and node and
    /// formats that, with `%` doubled everywhere but in the place.
    #[cold]
    pub(super) fn error(&self, kind: ErrorKind, format: &str, args: &[Value]) -> Error {
        let program = self.program;
        let (line, column) = program.place(self.at);
        let context = program.describe(self.at);
        let mut whole = b"template: ".to_vec();
        whole.extend_from_slice(program.name.as_bytes());
        whole.extend_from_slice(format!(":{line}:{column}: executing ").as_bytes());
        strconv::append_quote(&mut whole, &double_percent(self.tree.name.as_bytes()));
        whole.extend_from_slice(b" at <");
        whole.extend_from_slice(&double_percent(&context));
        whole.extend_from_slice(b">: ");
        whole.extend_from_slice(format.as_bytes());
        Error::new(Details {
            kind,
            text: fmt::sprintf(&whole, args).into(),
            template: self.tree.name.clone(),
            place: Some(Place {
                source_name: program.name.clone(),
                source: Arc::clone(&program.text),
                line,
                column: Some(column),
                length: context.len() as u32,
            }),
        })
    }
}

fn double_percent(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        out.push(byte);
        if byte == b'%' {
            out.push(byte);
        }
    }
    out
}
