//! `--name-template`: a release name from a template (`pkg/action/install.go`, `TemplateName`).
//!
//! It runs with sprig's own functions and no data: what Helm's engine adds or takes away for
//! charts does not hold here.

use std::sync::Arc;

use bstr::BString;
use gotemplate::{CallError, Function, Set, Str, Value};
use goyaml::Limits;

use super::convert::from_tree;
use super::engine::RenderError;
use super::functions::builtin_functions;
use super::host::Host;

const NAME: &str = "name-template";

/// What Helm's engine adds to sprig.
const ADDED: [&str; 7] =
    ["fromJsonArray", "fromToml", "fromYaml", "fromYamlArray", "toToml", "toYaml", "toYamlPretty"];

/// The name that a template gives. `variable` gives the value of an environment variable, empty
/// for one that is not set, to `env` and `expandenv`.
///
/// # Errors
/// Go's error, unchanged.
pub fn name_from_template(
    template: &str,
    host: &mut Host,
    variable: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static,
) -> Result<BString, RenderError> {
    let fail = |error: gotemplate::Error| RenderError {
        template: NAME.to_owned(),
        message: error.text().to_vec().into(),
        excerpt: None,
        is_limit: false,
    };
    let mut functions = builtin_functions();
    functions.retain(|name, _| !ADDED.contains(name));
    functions.insert("fail", Function::new(|text: Str| Err::<Value, _>(CallError::new(text))));
    functions.insert(
        "fromJson",
        Function::new(|text: Str| {
            goyaml::json::from_json(&text, &Limits::default()).map_or(Value::Nil, from_tree)
        }),
    );
    let variable = Arc::new(variable);
    let get = Arc::clone(&variable);
    functions.insert("env", Function::new(move |name: Str| get(name.as_bytes())));
    functions
        .insert("expandenv", Function::new(move |text: Str| expand(text.as_bytes(), &*variable)));
    let mut set = Set::new(NAME, functions);
    set.parse(NAME, template.as_bytes()).map_err(fail)?;
    let mut out = Vec::new();
    set.execute(NAME, &Value::Nil, host, &mut out).map_err(fail)?;
    Ok(out.into())
}

/// Replaces `$name` and `${name}` (`os.Expand`).
fn expand(text: &[u8], variable: &dyn Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'$' || after.is_empty() {
            out.push(byte);
            continue;
        }
        let (name, length) = shell_name(after);
        match name {
            Some(name) => out.extend_from_slice(&variable(name)),
            // Broken braces are eaten, a lone dollar stays.
            None if length > 0 => {}
            None => out.push(byte),
        }
        rest = after.get(length..).unwrap_or_default();
    }
    out
}

/// The name behind a dollar and how much of the text it takes (`getShellName`).
fn shell_name(text: &[u8]) -> (Option<&[u8]>, usize) {
    let is_special = |byte: &u8| b"*#$@!?-0123456789".contains(byte);
    if let [b'{', inside @ ..] = text {
        if let [special, b'}', ..] = inside
            && is_special(special)
        {
            return (inside.get(..1), 3);
        }
        return match inside.iter().position(|&byte| byte == b'}') {
            Some(0) => (None, 2),
            Some(end) => (inside.get(..end), end + 2),
            None => (None, 1),
        };
    }
    if text.first().is_some_and(is_special) {
        return (text.get(..1), 1);
    }
    let is_name = |byte: &&u8| **byte == b'_' || byte.is_ascii_alphanumeric();
    let length = text.iter().take_while(is_name).count();
    (text.get(..length).filter(|name| !name.is_empty()), length)
}
