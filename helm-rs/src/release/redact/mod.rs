//! Hiding what may be a credential: values by the names of their keys, the data of Secrets, private
//! keys and the user part of URLs anywhere, and all of it again in error texts.
//!
//! A key names a credential when, in lower case and without `-`, `_` and `.`, it ends in one of
//! [`KEY_ENDINGS`] or is one of [`KEYS`], unless it names an object: it begins with `existing` or
//! ends in `pullsecret` or `pullsecrets`; or a bypass. So does the `name` beside a `value`, as in a
//! list of environment variables. Texts and numbers at or below such a key are hidden; booleans and
//! nulls are not, nor is what a key below says to be something else ([`PLAIN_KEYS`]), a number at a
//! key that limits or counts (`maxTokens`), and the `key` of a toleration, of a selector or of a
//! reference into a Secret.
//!
//! In free text, what is assigned to such a key (`password=x`) and what follows `Bearer` is hidden;
//! in a text of lines, what stands after such a key at the beginning of one (`password: x`,
//! `password = x`), and so is what such a key of a JSON object holds. What a release hides under a
//! key is hidden in its notes and in the texts of its objects too, where it is a word ([`Words`]).

mod forms;
mod manifest;
mod sensitive;
mod words;

use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use forms::Form;
use goyaml::{Map, Value};

pub use manifest::{LAST_APPLIED, document, manifest, object};
pub use sensitive::{Sensitive, description, description_of};
pub use words::Words;

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

/// Keys that, below a credential's, say that what they hold is none. So do those that begin with
/// `existing` or end in `secretname`, `secretnames` or `secretref`.
pub const PLAIN_KEYS: [&str; 37] = [
    "accessmodes",
    "affinity",
    "algorithm",
    "annotations",
    "apigroup",
    "apiversion",
    "create",
    "digest",
    "enabled",
    "host",
    "hostname",
    "image",
    "kind",
    "labels",
    "matchexpressions",
    "matchlabels",
    "method",
    "mode",
    "mountpath",
    "name",
    "namespace",
    "nodeselector",
    "port",
    "provider",
    "pullpolicy",
    "registry",
    "replicacount",
    "replicas",
    "repository",
    "resources",
    "schedule",
    "serviceaccountname",
    "size",
    "storageclass",
    "tag",
    "tolerations",
    "type",
];

/// A key in lower case, without what joins words.
fn plain(key: &[u8]) -> Vec<u8> {
    let is_letter = |byte: &&u8| !matches!(byte, b'-' | b'_' | b'.');
    key.iter().filter(is_letter).map(u8::to_ascii_lowercase).collect()
}

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
    let key = plain(key);
    let is_none = key.starts_with(b"existing")
        || key.ends_with(b"pullsecret")
        || key.ends_with(b"pullsecrets")
        || key.ends_with(b"bypass");
    !is_none
        && (KEYS.iter().any(|known| key == known.as_bytes())
            || KEY_ENDINGS.iter().any(|ending| key.ends_with(ending.as_bytes())))
}

/// Hides credentials in values.
pub fn values(map: &mut Map) {
    hide_map(map, false);
}

fn hide_map(map: &mut Map, named: bool) {
    if manifest::is_secret(map) {
        return manifest::hide_secret(map);
    }
    let around = Around::of(map, named);
    for (key, value) in map.iter_mut() {
        hide(value, around.names(key, value));
    }
}

/// What a map and what is above it say of the values in it.
struct Around {
    /// Below a credential's key.
    named: bool,
    /// A name with a value, and the name is a credential's.
    is_pair: bool,
    /// `key` names something that is looked for.
    is_selector: bool,
}

impl Around {
    fn of(map: &Map, named: bool) -> Self {
        const SELECTORS: [&str; 7] =
            ["operator", "effect", "values", "topologyKey", "name", "optional", "value"];
        let is_selector = SELECTORS.iter().any(|key| map.contains_key(*key));
        Self { named, is_pair: names_its_value(map), is_selector }
    }

    /// Whether what a key holds is a credential, or has one in it.
    fn names(&self, key: &[u8], value: &Value) -> bool {
        let is_number = matches!(value, Value::Int(_) | Value::Uint(_) | Value::Float(_));
        if (self.is_selector && key == b"key") || (is_number && is_count(key)) {
            return false;
        }
        (self.is_pair && key == b"value")
            || names_credential(key)
            || (self.named && !is_plain(&plain(key)))
    }
}

fn is_plain(key: &[u8]) -> bool {
    PLAIN_KEYS.iter().any(|known| key == known.as_bytes())
        || key.starts_with(b"existing")
        || [&b"secretname"[..], b"secretnames", b"secretref", b"pullsecret", b"pullsecrets"]
            .iter()
            .any(|ending| key.ends_with(ending))
}

/// Whether a key limits or counts: `maxTokens` does, `minioPassword` does not.
fn is_count(key: &[u8]) -> bool {
    let begins = ["max", "min", "num"].iter().any(|start| {
        let rest = key.strip_prefix(start.as_bytes());
        rest.and_then(<[u8]>::first).is_some_and(|byte| !byte.is_ascii_lowercase())
    });
    let key = plain(key);
    begins
        || ["count", "ttl", "seconds", "length", "limit"]
            .iter()
            .any(|ending| key.ends_with(ending.as_bytes()))
}

/// Whether a map is a name with a value, and the name is a credential's.
fn names_its_value(map: &Map) -> bool {
    let name = |field: &str| map.get(field).and_then(Value::as_str);
    // A name that says both is the name.
    name("name").or_else(|| name("key")).is_some_and(|name| names_credential(name))
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
/// key in PEM form; the user part of URLs, what is assigned to credentials' keys, what follows
/// `Bearer`, and what Secrets hold that are written in it are hidden. `None` when there is nothing
/// to hide.
fn text_without(text: &BStr) -> Option<BString> {
    text_at(text, 0, Form::Data)
}

/// As [`text_without`], for a text that is in so many other texts.
fn text_at(text: &BStr, depth: usize, form: Form) -> Option<BString> {
    if PRIVATE_KEYS.iter().any(|mark| text.contains_str(mark)) {
        return Some(BString::from(HIDDEN));
    }
    let embedded = manifest::embedded(text, depth);
    let text = embedded.as_ref().map_or(text, |shown| shown.as_bstr());
    let parts = parts_of(text, form);
    if parts.is_empty() {
        return embedded;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if part.start < from {
            continue;
        }
        out.extend_from_slice(text.get(from..part.start).unwrap_or_default());
        out.extend_from_slice(HIDDEN.as_bytes());
        from = part.end;
    }
    out.extend_from_slice(text.get(from..).unwrap_or_default());
    Some(out.into())
}

/// Where credentials stand in a text, in order; the longer of two that begin together first.
fn parts(text: &[u8]) -> Vec<Range<usize>> {
    parts_of(text, Form::Data)
}

fn parts_of(text: &[u8], form: Form) -> Vec<Range<usize>> {
    let mut parts = url_users(text);
    parts.extend(forms::find(text, form));
    parts.sort_by_key(|part| (part.start, usize::MAX - part.end));
    parts
}

/// A file's or message's text without what is a credential in any text.
pub fn text(text: &str) -> String {
    match text_at(text.into(), 0, Form::Prose) {
        Some(shown) => shown.to_str_lossy().into_owned(),
        None => text.to_owned(),
    }
}

const PRIVATE_KEYS: [&str; 2] = ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"];
/// User parts of URLs without a password are hidden from this length: a token stands there.
const TOKEN_LENGTH: usize = 16;

/// Where the user parts of the URLs in a text are, if they may hold a credential.
fn url_users(text: &[u8]) -> Vec<Range<usize>> {
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
            "a: {dbPassword: REDACTED, port: 1, token: REDACTED, on: true}\nsecret: {name: some, create: true}\nca: REDACTED\nenv: [{name: DB_PASSWORD, value: REDACTED}, {name: HOST, value: x}]\ndb: postgres://REDACTED@host/x\npullSecrets: [{name: a}]\n",
        );
        assert_eq!(values, expected);
    }

    #[test]
    fn what_is_none() {
        let same = map(
            "tolerations: [{key: a, operator: Exists}, {key: b, effect: NoSchedule}]\nenv: [{name: X, valueFrom: {secretKeyRef: {name: a, key: b}}}]\nauth: {enabled: true, existingSecret: a, image: {tag: b, repository: c}, replicas: 2, resources: {limits: {cpu: 1}}, secretName: x}\nmaxTokens: 5\ntokenTTL: 7\nbypass: x\nsecret: {name: a, port: 80}\n",
        );
        let mut values = same.clone();
        super::values(&mut values);
        assert_eq!(values, same);
        let mut values = map(
            "minioPassword: 12345678\nmaxPassword: abc\ntls: {key: x, cert: yes-1}\nauth: {users: [{m: x}], user: u1, root: {password: z}}\nvars: [{key: A_TOKEN, value: x}]\nobjects: [{apiVersion: v1, kind: Secret, stringData: {x: y}}]\nmore: \"kind: Secret\\nstringData: {x: y}\\n\"\nargs: [--token=x]\n",
        );
        super::values(&mut values);
        let expected = map(
            "minioPassword: REDACTED\nmaxPassword: REDACTED\ntls: {key: REDACTED, cert: yes-1}\nauth: {users: [{m: REDACTED}], user: REDACTED, root: {password: REDACTED}}\nvars: [{key: A_TOKEN, value: REDACTED}]\nobjects: [{apiVersion: v1, kind: Secret, stringData: {x: REDACTED}}]\nmore: \"kind: Secret\\nstringData:\\n  x: REDACTED\\n\"\nargs: [--token=REDACTED]\n",
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
