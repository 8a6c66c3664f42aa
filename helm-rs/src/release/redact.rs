//! Hiding what may be a credential: values by the names of their keys, the data of Secrets.
//!
//! A key names a credential when, in lower case and without `-` and `_`, it ends in one of
//! [`KEY_ENDINGS`] or is one of [`KEYS`], unless it begins with `existing`: that names an object.
//! A private key in PEM form is hidden under any key. Texts and numbers below such a key are
//! hidden; booleans and nulls are not.

use goyaml::{Limits, Map, Value};

use crate::manifest::split_manifests;

/// What stands in place of what is hidden.
pub const HIDDEN: &str = "REDACTED";

/// Endings of keys that name credentials.
pub const KEY_ENDINGS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "secretkey",
    "accesskey",
    "credential",
    "credentials",
    "connectionstring",
    "psk",
];

/// Keys that name credentials as a whole.
pub const KEYS: [&str; 4] = ["key", "auth", "dsn", "htpasswd"];

/// Whether a key names a credential.
///
/// ```
/// use helm_rs::release::redact::names_credential;
///
/// assert!(names_credential(b"adminPassword"));
/// assert!(names_credential(b"api-key"));
/// assert!(!names_credential(b"existingSecret"));
/// assert!(!names_credential(b"secretsBackend"));
/// ```
pub fn names_credential(key: &[u8]) -> bool {
    let key: Vec<u8> = key
        .iter()
        .filter(|byte| !matches!(byte, b'-' | b'_' | b'.'))
        .map(u8::to_ascii_lowercase)
        .collect();
    !key.starts_with(b"existing")
        && (KEYS.iter().any(|known| key == known.as_bytes())
            || KEY_ENDINGS.iter().any(|ending| key.ends_with(ending.as_bytes())))
}

/// Hides credentials in values.
pub fn values(map: &mut Map) {
    for (key, value) in map.iter_mut() {
        let named = names_credential(key);
        hide(value, named);
    }
}

/// Whether a text holds a private key.
fn is_private_key(text: &[u8]) -> bool {
    text.windows(PRIVATE_KEY.len()).any(|window| window == PRIVATE_KEY)
}

const PRIVATE_KEY: &[u8] = b"PRIVATE KEY-----";

fn hide(value: &mut Value, named: bool) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            if named {
                *value = Value::from(HIDDEN);
            }
        }
        Value::String(text) => {
            if (named && !text.is_empty()) || is_private_key(text) {
                *value = Value::from(HIDDEN);
            }
        }
        Value::Seq(items) => items.iter_mut().for_each(|item| hide(item, named)),
        Value::Map(map) => {
            for (key, value) in map.iter_mut() {
                let named = named || names_credential(key);
                hide(value, named);
            }
        }
    }
}

/// Hides the data of Secrets in a manifest. Other objects keep their text; a Secret is written
/// anew, and one that does not parse is left out.
pub fn manifest(text: &str) -> String {
    if !text.contains("Secret") {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for document in split_manifests(text.as_bytes()) {
        out.push_str("---\n");
        out.push_str(&self::document(&String::from_utf8_lossy(&document)));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Hides the data of Secrets in one document.
pub fn document(text: &str) -> String {
    if !text.contains("Secret") {
        return text.to_owned();
    }
    let Ok(mut value) = goyaml::from_yaml_exact(text.as_bytes(), &Limits::default()) else {
        return format!("# {HIDDEN}: this document does not parse\n");
    };
    if !hide_secrets(&mut value) {
        return text.to_owned();
    }
    let comments = text.lines().take_while(|line| line.starts_with('#'));
    let mut out: String = comments.flat_map(|line| [line, "\n"]).collect();
    out.push_str(&goyaml::to_yaml(&value).unwrap_or_default());
    out
}

/// Hides the data of an object that is a Secret.
pub fn object(value: &mut Value) {
    hide_secrets(value);
}

/// Hides the data of a Secret, or of the Secrets in a list. Says whether there was one.
fn hide_secrets(value: &mut Value) -> bool {
    let Some(object) = value.as_map_mut() else { return false };
    let is_secret = object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "Secret");
    if is_secret {
        for field in ["data", "stringData"] {
            for (_, value) in object
                .get_mut(field)
                .and_then(Value::as_map_mut)
                .into_iter()
                .flat_map(|data| data.iter_mut())
            {
                *value = Value::from(HIDDEN);
            }
        }
        // The whole object once more, as kubectl leaves it in an annotation.
        if let Some(annotations) = object
            .get_mut("metadata")
            .and_then(Value::as_map_mut)
            .and_then(|metadata| metadata.get_mut("annotations"))
            .and_then(Value::as_map_mut)
        {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let items = object.get_mut("items").and_then(Value::as_seq_mut);
    items.into_iter().flatten().fold(is_secret, |found, item| hide_secrets(item) || found)
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
            "a: {dbPassword: x, port: 1, token: 7, on: true}\nsecret: {name: some, create: true}\nca: |\n  -----BEGIN PRIVATE KEY-----\n",
        );
        super::values(&mut values);
        let expected = map(
            "a: {dbPassword: REDACTED, port: 1, token: REDACTED, on: true}\nsecret: {name: REDACTED, create: true}\nca: REDACTED\n",
        );
        assert_eq!(values, expected);
    }

    #[test]
    fn a_manifest_without_secrets_is_untouched() {
        let text = "---\n# Source: a\nkind: ConfigMap\ndata:\n  a:   b\n";
        assert_eq!(super::manifest(text), text);
        let text = format!("{text}---\n# Source: s\nkind: Secret\ndata:\n  a: c2VjcmV0\n");
        let hidden = super::manifest(&text);
        assert!(hidden.contains("a: REDACTED") && !hidden.contains("c2VjcmV0"), "{hidden}");
        assert!(hidden.contains("  a:   b\n") && hidden.contains("# Source: s\n"));
    }
}
