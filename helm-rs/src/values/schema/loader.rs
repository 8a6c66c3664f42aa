//! What a schema may refer to.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::chart::Warning;
use crate::gotext::{io_text, quote};

/// Largest schema file that is read (16 MiB).
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// Resolves `file:` addresses from disk and `urn:` addresses to a schema that accepts all, as
/// Helm does, and refuses the network.
pub(super) struct Loader {
    pub(super) notes: Rc<RefCell<Vec<Warning>>>,
}

impl boon::UrlLoader for Loader {
    fn load(&self, url: &str) -> Result<Json, Box<dyn Error>> {
        let scheme = url.split(':').next().unwrap_or_default();
        match scheme {
            "file" => load_file(url),
            "http" | "https" => Err(format!(
                "references to the network are not followed: put the schema at {url} into the \
                 chart's own values.schema.json"
            )
            .into()),
            "urn" => {
                self.notes.borrow_mut().push(Warning::new(
                    "jsonschema.go:192",
                    format!(
                        "WARNING: unresolved URN reference ignored; using permissive schema: {url}"
                    ),
                ));
                Ok(Json::Bool(true))
            }
            _ => Err(format!("no URLLoader registered for {}", quote(url)).into()),
        }
    }
}

fn load_file(url: &str) -> Result<Json, Box<dyn Error>> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    let path = percent_decode(path);
    let failed = |error: std::io::Error| format!("open {path}: {}", io_text(&error));
    let size = std::fs::metadata(Path::new(&path)).map_err(failed)?.len();
    if size > MAX_FILE {
        return Err(format!("schema file {path} exceeds the limit of {MAX_FILE} bytes").into());
    }
    let text = std::fs::read(Path::new(&path)).map_err(failed)?;
    Ok(super::parse(&text)?)
}

pub(super) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after
            .get(..2)
            .filter(|_| byte == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
