//! URLs taken apart and put together (`sprig/url.go`).

use gotemplate::{CallError, Function, FunctionMap, Kind, Map, Str, Value};

use crate::gourl::{Url, User};

fn url_parse(text: Str) -> Result<Value, CallError> {
    let url = Url::parse(text.as_bytes())
        .map_err(|error| CallError::new(format!("unable to parse url: {error}")))?;
    let user = url.user.as_ref().map(User::to_text).unwrap_or_default();
    let hostname = url.hostname().to_vec();
    let fields = [
        ("fragment", url.fragment),
        ("host", url.host),
        ("hostname", hostname),
        ("opaque", url.opaque),
        ("path", url.path),
        ("query", url.query),
        ("scheme", url.scheme),
        ("userinfo", user),
    ];
    Ok(Value::map(fields.map(|(name, text)| (name, Value::string(text)))))
}

/// A field of the dict, empty when it is not there (`dictGetOrEmpty`).
fn field(parts: &Map, key: &str) -> Result<Vec<u8>, CallError> {
    match parts.get(key.as_bytes()) {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(Value::Nil) => {
            Err(CallError::from("runtime error: invalid memory address or nil pointer dereference"))
        }
        Some(other) => {
            let text = match &other {
                Value::Object(object) if other.kind() == Kind::String => object.underlying(),
                _ => None,
            };
            match text {
                Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
                _ => Err(CallError::new(format!(
                    "unable to parse {key} key, must be of type string, but {} found",
                    other.kind().name()
                ))),
            }
        }
    }
}

fn url_join(parts: Map) -> Result<Vec<u8>, CallError> {
    let mut url = Url {
        scheme: field(&parts, "scheme")?,
        host: field(&parts, "host")?,
        path: field(&parts, "path")?,
        query: field(&parts, "query")?,
        opaque: field(&parts, "opaque")?,
        fragment: field(&parts, "fragment")?,
        user: None,
        raw_path: Vec::new(),
    };
    let user = field(&parts, "userinfo")?;
    if !user.is_empty() {
        let probe = [b"proto://", user.as_slice(), b"@host"].concat();
        let parsed = Url::parse(&probe).map_err(|error| {
            CallError::new(format!("unable to parse userinfo in dict: {error}"))
        })?;
        url.user = parsed.user;
    }
    Ok(url.to_text())
}

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("urlJoin", Function::new(url_join));
    functions.insert("urlParse", Function::new(url_parse));
}
