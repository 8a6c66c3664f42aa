//! Hiding what may be a credential: values by the names of their keys, the data of Secrets, private
//! keys and the user part of URLs anywhere, and all of it again in error texts.
//!
//! A key names a credential when, in lower case and without `-`, `_` and `.`, it ends in one of
//! [`KEY_ENDINGS`] or is one of [`KEYS`], unless it names an object: it begins with `existing` or
//! ends in `pullsecret` or `pullsecrets`. So does the `name` beside a `value`, as in a list of
//! environment variables. Texts and numbers at or below such a key are hidden; booleans and nulls
//! are not.

mod manifest;
mod sensitive;

use bstr::{BStr, BString, ByteSlice};
use goyaml::{Map, Value};

pub use manifest::{document, manifest, object};
pub use sensitive::{Sensitive, description};

/// What stands in place of what is hidden.
pub const HIDDEN: &str = "REDACTED";

/// Endings of keys that name credentials.
pub const KEY_ENDINGS: [&str; 41] = [
    "password",
    "passwords",
    "passwordhash",
    "passwd",
    "passphrase",
    "passphrases",
    "pass",
    "pwd",
    "secret",
    "secrets",
    "token",
    "tokens",
    "apikey",
    "apikeys",
    "privatekey",
    "privatekeys",
    "privatekeypem",
    "secretkey",
    "secretkeys",
    "secretaccesskey",
    "accesskey",
    "accesskeys",
    "accesskeyid",
    "encryptionkey",
    "encryptionkeys",
    "signingkey",
    "signingkeys",
    "masterkey",
    "sharedkey",
    "authkey",
    "tlskey",
    "sshkey",
    "sessionkey",
    "hmackey",
    "credential",
    "credentials",
    "credentialsjson",
    "connectionstring",
    "psk",
    "kubeconfig",
    "authheader",
];

/// Keys that name credentials as a whole.
pub const KEYS: [&str; 12] = [
    "key",
    "auth",
    "auths",
    "authorization",
    "bearer",
    "dockercfg",
    "dockerconfigjson",
    "dsn",
    "htpasswd",
    "idrsa",
    "jwt",
    "pw",
];

/// Whether a key names a credential.
///
/// ```
/// use helm_rs::release::redact::names_credential;
///
/// assert!(names_credential(b"adminPassword"));
/// assert!(names_credential(b"api-key"));
/// assert!(names_credential(b".dockerconfigjson"));
/// assert!(!names_credential(b"existingSecret"));
/// assert!(!names_credential(b"imagePullSecrets"));
/// assert!(!names_credential(b"secretsBackend"));
/// ```
pub fn names_credential(key: &[u8]) -> bool {
    let key: Vec<u8> = key
        .iter()
        .filter(|byte| !matches!(byte, b'-' | b'_' | b'.'))
        .map(u8::to_ascii_lowercase)
        .collect();
    let names_object = key.starts_with(b"existing")
        || key.ends_with(b"pullsecret")
        || key.ends_with(b"pullsecrets");
    !names_object
        && (KEYS.iter().any(|known| key == known.as_bytes())
            || KEY_ENDINGS.iter().any(|ending| key.ends_with(ending.as_bytes())))
}

/// Hides credentials in values.
pub fn values(map: &mut Map) {
    hide_map(map, false);
}

fn hide_map(map: &mut Map, named: bool) {
    let is_pair = names_its_value(map);
    for (key, value) in map.iter_mut() {
        hide(value, named || names_credential(key) || (is_pair && key == "value"));
    }
}

/// Whether a map is a name with a value, and the name is a credential's.
fn names_its_value(map: &Map) -> bool {
    map.get("name").and_then(Value::as_str).is_some_and(|name| names_credential(name))
}

fn hide(value: &mut Value, named: bool) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            if named {
                *value = Value::from(HIDDEN);
            }
        }
        Value::String(text) if named => {
            if !text.is_empty() {
                *value = Value::from(HIDDEN);
            }
        }
        Value::String(text) => {
            if let Some(shown) = text_without(text.as_bstr()) {
                *value = Value::String(shown);
            }
        }
        Value::Seq(items) => items.iter_mut().for_each(|item| hide(item, named)),
        Value::Map(map) => hide_map(map, named),
    }
}

/// A text without what is a credential under any key: hidden as a whole when it holds a private
/// key in PEM form, the user part of URLs hidden. `None` when there is nothing to hide.
fn text_without(text: &BStr) -> Option<BString> {
    if text.contains_str(PRIVATE_KEY) {
        return Some(BString::from(HIDDEN));
    }
    let parts = url_users(text);
    if parts.is_empty() {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for part in parts {
        out.extend_from_slice(text.get(from..part.start).unwrap_or_default());
        out.extend_from_slice(HIDDEN.as_bytes());
        from = part.end;
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    Some(out.into())
}

/// A file's or message's text without what is a credential in any text.
pub fn text(text: &str) -> String {
    match text_without(text.into()) {
        Some(shown) => shown.to_str_lossy().into_owned(),
        None => text.to_owned(),
    }
}

const PRIVATE_KEY: &str = "PRIVATE KEY-----";
/// User parts of URLs without a password are hidden from this length: a token stands there.
const TOKEN_LENGTH: usize = 16;

/// Where the user parts of the URLs in a text are, if they may hold a credential.
fn url_users(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("://")) {
        let start = from + at + 3;
        from = start;
        let rest = text.get(start..).unwrap_or_default();
        let end = rest
            .iter()
            .position(|byte| byte.is_ascii_whitespace() || b"\"'`<>,;".contains(byte))
            .unwrap_or(rest.len());
        let span = rest.get(..end).unwrap_or_default();
        let path = span.find_byteset(b"/?#").unwrap_or(span.len());
        let authority = span.get(..path).unwrap_or_default();
        // A password with a slash that nobody escaped: what looks like a port is no number.
        let port = authority.rsplit_once_str(":").map_or(&b""[..], |(_, port)| port);
        let is_odd = !port.iter().all(u8::is_ascii_digit) && !authority.contains(&b']');
        let within = if is_odd && !authority.contains(&b'@') { span } else { authority };
        let Some(user_end) = within.rfind_byte(b'@') else { continue };
        let user = within.get(..user_end).unwrap_or_default();
        let has_password = user.split_once_str(":").is_some_and(|(_, word)| !word.is_empty());
        if user != HIDDEN.as_bytes() && (has_password || user.len() >= TOKEN_LENGTH) {
            found.push(start..start + user_end);
            from = start + user_end;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use goyaml::{Limits, Map};

    fn map(yaml: &str) -> Map {
        goyaml::from_yaml_map(yaml.as_bytes(), "map", &Limits::default()).unwrap()
    }

    #[test]
    fn values_by_key_and_by_form() {
        let mut values = map(
            "a: {dbPassword: x, port: 1, token: 7, on: true}\nsecret: {name: some, create: true}\nca: |\n  -----BEGIN PRIVATE KEY-----\nenv: [{name: DB_PASSWORD, value: x}, {name: HOST, value: x}]\ndb: postgres://u:pw@host/x\npullSecrets: [{name: a}]\n",
        );
        super::values(&mut values);
        let expected = map(
            "a: {dbPassword: REDACTED, port: 1, token: REDACTED, on: true}\nsecret: {name: REDACTED, create: true}\nca: REDACTED\nenv: [{name: DB_PASSWORD, value: REDACTED}, {name: HOST, value: x}]\ndb: postgres://REDACTED@host/x\npullSecrets: [{name: a}]\n",
        );
        assert_eq!(values, expected);
    }

    #[test]
    fn keys() {
        for key in [
            "secrets",
            "tokens",
            "passwords",
            "encryptionKey",
            "signingKey",
            "tlsKey",
            "sshKey",
            "pass",
            "adminPass",
            "pw",
            "apiKeys",
            "bearer",
            "jwt",
            ".dockerconfigjson",
            "auths",
            "DB_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
            "private_key_pem",
            "id_rsa",
            "credentialsJson",
        ] {
            assert!(super::names_credential(key.as_bytes()), "{key}");
        }
        for key in ["secretName", "existingSecretPassword", "keys", "keyFile", "tokenizer", "url"] {
            assert!(!super::names_credential(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn users_of_urls() {
        for (text, shown) in [
            ("postgres://u:pw@h:5/x", "postgres://REDACTED@h:5/x"),
            ("a http://u:p@h, https://u:p@i", "a http://REDACTED@h, https://REDACTED@i"),
            ("amqp://u:p/w@h/v", "amqp://REDACTED@h/v"),
            ("redis://:p@h", "redis://REDACTED@h"),
            ("https://ghp_0123456789abcdef@github.com/x", "https://REDACTED@github.com/x"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("http://h:80/a@b http://[::1]:80/@x", "http://h:80/a@b http://[::1]:80/@x"),
            ("u:p@h ://", "u:p@h ://"),
        ] {
            assert_eq!(super::text(text), shown);
            assert_eq!(super::text(shown), shown);
        }
    }
}
