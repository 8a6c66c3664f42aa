//! Manifests and objects without credentials.

use std::collections::BTreeSet;

use base64::Engine as _;
use bstr::{BStr, BString, ByteSlice};
use goyaml::{Limits, Map, Value};

use super::forms::Form;
use super::{HIDDEN, names_its_value, text_at};
use crate::manifest::{has_more_values, split_manifests};
use crate::release::codec::GO;

/// Values that a manifest may have; more than that is not looked through, but hidden.
const MAX_VALUES: usize = 2_000_000;

/// Hides the data of Secrets in a manifest, and in other objects private keys, the user part of
/// URLs and environment variables with a credential's name.
///
/// What needs no hiding keeps its text. An object with something hidden is written anew, and a
/// document that does not read as one object is hidden as a whole, which a comment says.
pub fn manifest(text: &str) -> String {
    if has_more_values(text.as_bytes(), MAX_VALUES) {
        return format!("# {HIDDEN}: more than {MAX_VALUES} values\n");
    }
    let documents = split_manifests(text.as_bytes());
    let shown: Vec<Option<String>> = documents.iter().map(without_credentials).collect();
    if shown.iter().all(Option::is_none) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for (document, shown) in documents.iter().zip(shown) {
        out.push_str("---\n");
        out.push_str(&shown.unwrap_or_else(|| document.to_str_lossy().into_owned()));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// As [`manifest`], for the text of one object: without a line of dashes before it.
pub fn document(text: &str) -> String {
    let shown = manifest(text);
    if shown == text || text.trim_start().starts_with("---") {
        return shown;
    }
    shown.strip_prefix("---\n").map(ToOwned::to_owned).unwrap_or(shown)
}

/// A document without its credentials; `None` when it has none.
fn without_credentials(text: &BString) -> Option<String> {
    let source = text.lines().take_while(|line| line.starts_with(b"#"));
    let source = source.filter(|line| line.starts_with(b"# Source: "));
    let head: Vec<&[u8]> = source.flat_map(|line| [line, b"\n"]).collect();
    let head = head.concat().to_str_lossy().into_owned();
    let hidden = |why: &str| Some(format!("{head}# {HIDDEN}: this document {why}\n"));
    if has_more_documents(text) {
        return hidden("is several, in a form that cannot be told apart");
    }
    let limits = Limits { max_nodes: MAX_VALUES, ..Limits::default() };
    match goyaml::from_yaml_exact(text, &limits) {
        Err(_) => hidden("does not read"),
        Ok(Value::Null) => None,
        Ok(mut value @ Value::Map(_)) => {
            if !hide_object(&mut value, false, 0) {
                return None;
            }
            match goyaml::to_yaml(&value) {
                Ok(yaml) => Some(format!("{head}{yaml}")),
                Err(_) => hidden("cannot be written anew"),
            }
        }
        Ok(_) => hidden("is no object"),
    }
}

/// Whether a document of a manifest is several for a YAML reader, which knows other line ends and
/// an end of documents.
fn has_more_documents(text: &[u8]) -> bool {
    let mut ended = false;
    let lines = text.split_str("\n").flat_map(|line| line.split_str("\r"));
    let lines = lines.flat_map(|line| line.split_str("\u{85}"));
    let lines = lines.flat_map(|line| line.split_str("\u{2028}"));
    for (index, line) in lines.flat_map(|line| line.split_str("\u{2029}")).enumerate() {
        let goes_on = !line.trim().is_empty() && !line.starts_with(b"#");
        if (ended && goes_on) || (index > 0 && line.starts_with(b"---")) {
            return true;
        }
        ended |= line.starts_with(b"...");
    }
    false
}

/// Hides credentials in an object. What is no object, because it does not read, is hidden whole.
pub fn object(value: &mut Value) {
    if value.as_map().is_some() {
        hide_object(value, false, 0);
    } else if !value.is_null() {
        *value = Value::from(HIDDEN);
    }
}

/// The annotation in which `kubectl apply` keeps the object that it was given.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Hides credentials in what `kubectl apply` wrote down of an object, in the same way. Says whether
/// there were any.
fn hide_last_applied(object: &mut Map, depth: usize) -> bool {
    let annotations = object.get_mut("metadata").and_then(Value::as_map_mut);
    let annotations =
        annotations.and_then(|metadata| metadata.get_mut("annotations")?.as_map_mut());
    let Some(applied) = annotations.and_then(|annotations| annotations.get_mut(LAST_APPLIED))
    else {
        return false;
    };
    let text = applied.as_str().map(ToOwned::to_owned).unwrap_or_default();
    let limits = Limits { max_nodes: MAX_VALUES, ..Limits::default() };
    let parsed = goyaml::json::from_json_exact(text.trim(), &limits);
    let Ok(mut inner @ Value::Map(_)) = parsed else {
        *applied = Value::from(HIDDEN);
        return true;
    };
    let found = depth >= MAX_EMBEDDED || hide_object(&mut inner, false, depth + 1);
    if found {
        let shown = goyaml::json::to_json(&inner).ok().filter(|_| depth < MAX_EMBEDDED);
        *applied = shown.map_or_else(|| Value::from(HIDDEN), Value::from);
    }
    found
}

/// Hides the release in a `ConfigMap` that is a record, which a Secret's would be as well.
fn hide_record(object: &mut Map) -> bool {
    let name = object.get("metadata").and_then(Value::as_map).and_then(|it| it.get("name"));
    let is_record =
        name.and_then(Value::as_str).is_some_and(|name| name.starts_with(b"sh.helm.release.v1."));
    let data = object.get_mut("data").and_then(Value::as_map_mut);
    match data.and_then(|data| data.get_mut("release")) {
        Some(release) if is_record => {
            *release = Value::from(HIDDEN);
            true
        }
        _ => false,
    }
}

/// Hides credentials in an object or a list of objects. Says whether there were any.
fn hide_object(value: &mut Value, is_secret: bool, depth: usize) -> bool {
    let Some(object) = value.as_map_mut() else { return hide_leaves(value, depth) };
    let is_hidden = hide_record(object) | hide_last_applied(object, depth);
    hide_kinds(value, is_secret, depth) | is_hidden
}

fn hide_kinds(value: &mut Value, is_secret: bool, depth: usize) -> bool {
    let Some(object) = value.as_map_mut() else { return false };
    let kind: String =
        object.get("kind").and_then(Value::as_str).map(ToString::to_string).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    if kind == "secret" || object.contains_key("stringData") || (is_secret && kind.is_empty()) {
        hide_secret(object);
        return true;
    }
    let of_secrets = kind == "secretlist";
    let Some(Value::Seq(items)) = object.get_mut("items").filter(|_| kind.ends_with("list")) else {
        if of_secrets {
            hide_secret(object);
        }
        return of_secrets || hide_leaves(value, depth);
    };
    let mut found = of_secrets;
    for item in items {
        found |= hide_object(item, of_secrets, depth);
    }
    if found {
        // What stands beside the items may be what they are made of.
        for (key, value) in object.iter_mut() {
            if !matches!(key.as_slice(), b"apiVersion" | b"kind" | b"metadata" | b"items") {
                *value = Value::from(HIDDEN);
            }
        }
    }
    found
}

/// Hides what a Secret holds, and whatever else stands in it: a merged or repeated part may be what
/// its data is made of.
pub(super) fn hide_secret(object: &mut Map) {
    let mut data = secret_texts(object);
    data.retain(|text| text.len() >= 4);
    for (key, value) in object.iter_mut() {
        match value {
            Value::Null => {}
            value if is_head(key) => {
                if let Some(metadata) = value.as_map_mut() {
                    hide_metadata(metadata, &data);
                }
            }
            Value::Map(map) if matches!(key.as_slice(), b"data" | b"stringData") => {
                map.values_mut().for_each(|value| *value = Value::from(HIDDEN));
            }
            value => *value = Value::from(HIDDEN),
        }
    }
}

/// What a Secret holds, as it is written and decoded.
pub(super) fn secret_texts(object: &Map) -> BTreeSet<BString> {
    let mut data = BTreeSet::new();
    for (field, value) in object {
        if !is_head(field) {
            texts(value, &mut data);
        }
    }
    let decoded: Vec<BString> =
        data.iter().filter_map(|text| GO.decode(text).ok()).map(BString::from).collect();
    data.extend(decoded);
    data
}

/// Whether a map within something else is a Secret, and not only a reference to one.
pub(super) fn is_secret(map: &Map) -> bool {
    const REFERENCE: [&str; 9] = [
        "apiVersion",
        "apiGroup",
        "kind",
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "fieldPath",
        "metadata",
    ];
    let kind = map.get("kind").and_then(Value::as_str);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"secret"))
        && ["apiVersion", "data", "stringData"].iter().any(|field| map.contains_key(*field))
        && map.keys().any(|key| !REFERENCE.iter().any(|known| key == known))
}

/// What the Secrets of a manifest hold, those within other objects too, as far as it reads.
pub(super) fn data_of_secrets(manifest: &[u8]) -> BTreeSet<BString> {
    let mut data = BTreeSet::new();
    if has_more_values(manifest, MAX_VALUES) {
        return data;
    }
    let limits = Limits { max_nodes: MAX_VALUES, ..Limits::default() };
    for document in split_manifests(manifest) {
        if document.contains_str("ecret")
            && let Ok(value) = goyaml::from_yaml_exact(&document, &limits)
        {
            collect_secrets(&value, false, &mut data);
        }
    }
    data
}

fn collect_secrets(value: &Value, is_item: bool, data: &mut BTreeSet<BString>) {
    match value {
        Value::Seq(items) => {
            for item in items {
                collect_secrets(item, is_item, data);
            }
        }
        Value::Map(map) => {
            let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
            if is_secret(map) || map.contains_key("stringData") || (is_item && kind.is_empty()) {
                return data.extend(secret_texts(map));
            }
            let of_secrets = kind.eq_ignore_ascii_case(b"secretlist");
            for (key, value) in map {
                collect_secrets(value, of_secrets && key == "items", data);
            }
        }
        _ => {}
    }
}

/// Texts within texts are looked through this deep; what is deeper is hidden.
const MAX_EMBEDDED: usize = 3;

/// A text in which Secrets are written down, without what they hold; `None` when there are none.
pub(super) fn embedded(text: &BStr, depth: usize) -> Option<BString> {
    if !says_secret(text) {
        return None;
    }
    if depth >= MAX_EMBEDDED || has_more_values(text, MAX_VALUES) {
        return Some(BString::from(HIDDEN));
    }
    let documents = split_manifests(text);
    let limits = Limits { max_nodes: MAX_VALUES, ..Limits::default() };
    let shown: Vec<Option<BString>> = documents
        .iter()
        .map(|document| {
            if !says_secret(document) {
                return None;
            }
            match goyaml::from_yaml_exact(document, &limits) {
                Ok(mut value @ (Value::Map(_) | Value::Seq(_))) => {
                    let found = match &mut value {
                        Value::Seq(items) => {
                            let mut found = false;
                            for item in items {
                                found |= hide_object(item, false, depth + 1);
                            }
                            found
                        }
                        value => hide_object(value, false, depth + 1),
                    };
                    let yaml = || goyaml::to_yaml(&value).unwrap_or_else(|_| HIDDEN.to_owned());
                    found.then(|| yaml().into())
                }
                // A text that is quoted once more; prose is its own text.
                Ok(Value::String(inner)) if inner != document.trim() => {
                    embedded(inner.as_bstr(), depth + 1).map(|_| BString::from(HIDDEN))
                }
                // In a script or a log.
                _ if says_data(document) => Some(BString::from(HIDDEN)),
                // A template of a Secret, or a broken one; prose may name the kind in a line.
                _ => document
                    .lines()
                    .any(|line| is_kind_line(line.trim()))
                    .then(|| BString::from(format!("# {HIDDEN}: this document does not read\n"))),
            }
        })
        .collect();
    if shown.iter().all(Option::is_none) {
        return None;
    }
    let parts: Vec<BString> = documents
        .into_iter()
        .zip(shown)
        .map(|(document, shown)| shown.unwrap_or(document))
        .collect();
    Some(bstr::join("---\n", parts).into())
}

/// Whether a text has the kind of a Secret in it.
fn says_secret(text: &[u8]) -> bool {
    text.find_iter("kind").any(|at| {
        let rest = text.get(at + 4..).unwrap_or_default();
        let rest = rest.trim_start_with(|c| matches!(c, '"' | '\'' | '\\' | ' '));
        let Some(rest) = rest.strip_prefix(b":") else { return false };
        let rest = rest.trim_start_with(|c| matches!(c, '"' | '\'' | '\\' | ' '));
        let word = rest.get(..6).unwrap_or_default();
        word.eq_ignore_ascii_case(b"secret")
    })
}

/// Whether a text has the data of a Secret in it, in YAML or JSON, quoted or not.
fn says_data(text: &[u8]) -> bool {
    ["data", "stringData"].iter().any(|word| {
        text.find_iter(word).any(|at| {
            let rest = text.get(at + word.len()..).unwrap_or_default();
            let rest = rest.trim_start_with(|c| matches!(c, '\\' | '"' | '\'' | ' '));
            rest.starts_with(b":")
        })
    })
}

fn is_kind_line(line: &[u8]) -> bool {
    let line = line.strip_prefix(b"- ").unwrap_or(line);
    let kind = line.strip_prefix(b"kind:").map(<[u8]>::trim_ascii).unwrap_or_default();
    kind.trim_with(|c| matches!(c, '"' | '\'')).eq_ignore_ascii_case(b"secret")
}

fn is_head(field: &BString) -> bool {
    matches!(field.as_slice(), b"apiVersion" | b"kind" | b"type" | b"immutable" | b"metadata")
}

fn texts(value: &Value, found: &mut BTreeSet<BString>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Seq(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Map(map) => map.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

fn hide_metadata(metadata: &mut Map, data: &BTreeSet<BString>) {
    for field in ["annotations", "labels"] {
        let Some(map) = metadata.get_mut(field).and_then(Value::as_map_mut) else { continue };
        // The whole object once more, as kubectl leaves it.
        map.remove(LAST_APPLIED);
        for value in map.values_mut() {
            let is_data = value.as_str().is_some_and(|text| {
                data.iter().any(|data| text == data || (data.len() >= 8 && text.contains_str(data)))
            });
            if is_data {
                *value = Value::from(HIDDEN);
            } else {
                hide_leaves(value, 0);
            }
        }
    }
}

/// Hides what is a credential in any object. Says whether there was one.
fn hide_leaves(value: &mut Value, depth: usize) -> bool {
    match value {
        Value::String(text) => match text_at(text.as_bstr(), depth, Form::Data) {
            Some(shown) => {
                *value = Value::String(shown);
                true
            }
            None => false,
        },
        Value::Seq(items) => {
            let mut found = false;
            for item in items {
                found |= hide_leaves(item, depth);
            }
            found
        }
        Value::Map(map) if is_secret(map) => {
            hide_secret(map);
            true
        }
        Value::Map(map) => {
            let is_pair = names_its_value(map);
            map.iter_mut().fold(false, |found, (key, value)| {
                let is_named = is_pair
                    && key == "value"
                    && value.as_str().is_some_and(|text| !text.is_empty() && text != HIDDEN);
                if is_named {
                    *value = Value::from(HIDDEN);
                    return true;
                }
                hide_leaves(value, depth) || found
            })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{document, manifest};

    #[test]
    fn a_manifest_without_secrets_is_untouched() {
        let text = "---\n# Source: a\nkind: ConfigMap\ndata:\n  a:   b\n";
        assert_eq!(manifest(text), text);
        let text = format!("{text}---\n# Source: s\nkind: Secret\ndata:\n  a: c2VjcmV0\n");
        let hidden = manifest(&text);
        assert!(hidden.contains("a: REDACTED") && !hidden.contains("c2VjcmV0"), "{hidden}");
        assert!(hidden.contains("  a:   b\n") && hidden.contains("# Source: s\n"));
    }

    /// Each has what must not be seen in a text with LEAK.
    #[test]
    fn secrets_in_every_form() {
        for text in [
            "apiVersion: v1\nkind: \"\\u0053ecret\"\nstringData: {x: LEAK}\n",
            "{\"kind\":\"Secret\",\"stringData\":{\"x\":\"LEAK\"}}",
            "kind: SecretList\nitems:\n- metadata: {name: a}\n  stringData: {x: LEAK}\n",
            "kind: SecretList\nitems:\n- metadata: {name: a}\n  data: {x: LEAK}\n",
            "kind: SecretList\nx: &p {x: LEAK}\nitems: LEAK\n",
            "kind: List\nx: &p {x: LEAK}\nitems:\n- kind: Secret\n  data: *p\n",
            "kind: List\nitems:\n- kind: List\n  items:\n  - kind: Secret\n    data: [LEAK]\n",
            "kind: Secret\nx-common: &p {x: LEAK}\nmetadata: {name: a}\nstringData: *p\n",
            "kind: Secret\nx-common: &p\n  stringData: {x: LEAK}\n<<: *p\n",
            "kind: Secret\nmetadata: {annotations: {a: &p LEAK}}\nstringData: {x: *p}\n",
            "kind: Secret\nmetadata: {annotations: {a: LEAK}}\ndata: {x: TEVBSw==}\n",
            "kind: Secret\ndata: [LEAK]\n",
            "kind: Secret\ndata: LEAK\n",
            "kind: Secret\nkind: ConfigMap\nstringData: {x: LEAK}\n",
            "kind: secret\ndata: {x: LEAK}\n",
            "kind: Secret\nmetadata: {name: a\nstringData:\n  x: LEAK\n",
            "kind: S\"ecret\nstringData:\n\tx: LEAK\n",
            "kind: ConfigMap\n...\nkind: Secret\ndata: {x: LEAK}\n",
            "kind: ConfigMap\r---\rkind: Secret\rdata: {x: LEAK}\r",
            "kind: ConfigMap\r--- {kind: Secret, data: {x: LEAK}}\r",
            "kind: Secret\nstringData:\n  x: |\n    a\n---\n    LEAK\n",
            "# pw: LEAK\nkind: Secret\n# LEAK\ndata: {x: LEAK} # LEAK\n",
            "kind: ConfigMap\ndata:\n  x: |\n    -----BEGIN PRIVATE KEY-----\n    LEAK\n",
            "kind: ConfigMap\ndata: {x: 'a postgres://u:LEAK@h/x'}\n",
            // JSON in a text, quoted once and twice, and in a script.
            "kind: ConfigMap\ndata:\n  x: \"\\\"{\\\\\\\"kind\\\\\\\": \\\\\\\"Secret\\\\\\\", \\\\\\\"stringData\\\\\\\": {\\\\\\\"x\\\\\\\": \\\\\\\"LEAK\\\\\\\"}}\\\"\"\n",
            "kind: ConfigMap\ndata:\n  x: \"\\\"\\\\\\\"{\\\\\\\\\\\\\\\"kind\\\\\\\\\\\\\\\": \\\\\\\\\\\\\\\"Secret\\\\\\\\\\\\\\\", \\\\\\\\\\\\\\\"stringData\\\\\\\\\\\\\\\": {\\\\\\\\\\\\\\\"x\\\\\\\\\\\\\\\": \\\\\\\\\\\\\\\"LEAK\\\\\\\\\\\\\\\"}}\\\\\\\"\\\"\"\n",
            "kind: ConfigMap\ndata:\n  x: \"curl -d '{\\\"kind\\\": \\\"Secret\\\", \\\"stringData\\\": {\\\"x\\\": \\\"LEAK\\\"}}' http://x\\n\"\n",
            "kind: ConfigMap\ndata: {x: 'printf \"kind: Secret\\nstringData:\\n  x: LEAK\"'}\n",
            "kind: ConfigMap\ndata: {x: \"a: b\\n  c\\nf '{kind: Secret, data: {x: LEAK}}'\"}\n",
            "kind: Pod\nspec: {containers: [{env: [{name: DB_PASSWORD, value: LEAK}]}]}\n",
            "kind: Pod\nspec: {args: [--token=LEAK, 'Authorization: Bearer LEAK']}\n",
            "kind: Object\nspec: {manifest: {apiVersion: v1, kind: Secret, stringData: {x: LEAK}}}\n",
            "kind: ConfigMap\ndata: {x: \"apiVersion: v1\\nkind: Secret\\ndata: {x: LEAK}\\n\"}\n",
            "kind: ConfigMap\ndata: {x: '{\"kind\":\"Secret\",\"stringData\":{\"x\":\"LEAK\"}}'}\n",
            "kind: ConfigMap\ndata: {x: \"kind: Secret\\nstringData: {x: {{ LEAK }}}\\n\"}\n",
            "kind: ConfigMap\ndata: {x: \"- kind: Secret\\n  stringData: {x: LEAK}\\n\"}\n",
            "kind: ConfigMap\ndata:\n  x: |\n    -----BEGIN PGP PRIVATE KEY BLOCK-----\n    LEAK\n",
        ] {
            for hidden in [manifest(text), document(text), manifest(&format!("---\n{text}"))] {
                assert!(!hidden.contains("LEAK"), "{text}\n=>\n{hidden}");
                assert!(hidden.contains("REDACTED"), "{text}\n=>\n{hidden}");
                assert!(!manifest(&hidden).contains("LEAK"));
            }
        }
        for text in [
            "kind: Pod\nspec:\n  volumes: [{secret: {secretName: a}}]\n# c\n",
            "kind: Pod\nspec: {env: [{name: A_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}]}\n",
            "# nothing\n",
            "kind: X\nspec: {targetRef: {apiVersion: v1, kind: Secret, name: a}}\n",
            "kind: ConfigMap\ndata: {a: 'the kind: Secrets are kept elsewhere'}\n",
            "kind: ConfigMap\ndata: {a: b}\n...\n# end\n",
        ] {
            assert_eq!(manifest(text), text);
            assert_eq!(document(text), text);
        }
    }
}
