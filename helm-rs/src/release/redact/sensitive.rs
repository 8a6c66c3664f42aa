//! Error texts without the credentials that they quote.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bstr::ByteSlice;
use goyaml::{Map, Value};

use super::{Around, HIDDEN, manifest, parts, text_without};
use crate::gotext::{self, quote};
use crate::release::record::Record;

/// Shorter texts are not looked for: they stand in many words.
const SHORTEST: usize = 4;
/// Shorter texts of Secrets are not looked for.
const SHORTEST_DATA: usize = 6;
/// Shorter lines of a text, its first one aside, are not looked for.
const SHORTEST_LINE: usize = 8;
/// Words that values often are, and that error texts have for other reasons.
const COMMON: [&str; 6] = ["auto", "false", "helm", "none", "null", "true"];

/// Texts that must not be seen, as they may stand in a message: as they are, quoted as Go quotes,
/// in base64, and line by line.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Sensitive {
    /// The longest first.
    texts: Vec<String>,
}

impl fmt::Debug for Sensitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sensitive({} texts)", self.texts.len())
    }
}

impl Sensitive {
    /// The credentials among values, as [`super::values`] tells them.
    pub fn of<'a>(values: impl IntoIterator<Item = &'a Map>) -> Self {
        let mut texts = Vec::new();
        for map in values {
            collect_map(map, false, &mut texts);
        }
        Self::new(texts)
    }

    fn new(mut texts: Vec<String>) -> Self {
        texts.retain(|text| text.len() >= SHORTEST && !COMMON.contains(&text.as_str()));
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Self { texts }
    }

    /// The credentials among a record's values, the user's and the chart's, and what the Secrets
    /// of its manifest and hooks hold, as far as these read. All of the manifest is read for it.
    pub fn of_record(record: &Record) -> Self {
        let user = record.user_values().ok().flatten();
        let chart = record.chart().ok().and_then(|chart| chart.values);
        let mut texts = Vec::new();
        for map in user.iter().chain(&chart) {
            collect_map(map, false, &mut texts);
        }
        let hooks = record.hooks().unwrap_or_default();
        let manifests = record.manifest().into_iter();
        for manifest in manifests.chain(hooks.into_iter().map(|hook| hook.manifest)) {
            for text in manifest::data_of_secrets(manifest.as_bytes()) {
                // A Secret holds words too: a user's name, a port.
                if text.trim().len() >= SHORTEST_DATA {
                    add(&text, &mut texts);
                }
            }
        }
        Self::new(texts)
    }

    /// A message without credentials.
    pub fn scrub(&self, message: &str) -> String {
        let mut text = message.to_owned();
        for sensitive in &self.texts {
            if text.contains(sensitive.as_str()) {
                text = text.replace(sensitive.as_str(), HIDDEN);
            }
        }
        super::text(&text)
    }
}

/// A record's description without the credentials of its values: Helm writes there the error of a
/// failed operation, which may quote them. What Helm says of every release needs no reading of
/// the record (`json`, its text).
pub fn description(description: &str, json: &str) -> String {
    if is_plain(description) {
        return description.to_owned();
    }
    match Record::from_json(json) {
        Ok(record) => description_of(&record, description),
        Err(_) => Sensitive::default().scrub(description),
    }
}

/// As [`description`], of a record that is read already.
pub fn description_of(record: &Record, description: &str) -> String {
    if is_plain(description) {
        return description.to_owned();
    }
    Sensitive::of_record(record).scrub(description)
}

/// Whether a description is one of the fixed texts of `pkg/action`, which quote nothing.
fn is_plain(description: &str) -> bool {
    const FIXED: [&str; 8] = [
        "",
        "Deletion in progress (or silently failed)",
        "Dry run complete",
        "Initial install underway",
        "Install complete",
        "Preparing upgrade",
        "Uninstallation complete",
        "Upgrade complete",
    ];
    FIXED.contains(&description)
        || description.strip_prefix("Rollback to ").is_some_and(|revision| {
            !revision.is_empty() && revision.bytes().all(|digit| digit.is_ascii_digit())
        })
}

fn collect_map(map: &Map, named: bool, texts: &mut Vec<String>) {
    if manifest::is_secret(map) {
        for text in &manifest::secret_texts(map) {
            add(text, texts);
        }
    }
    let around = Around::of(map, named);
    for (key, value) in map {
        collect(value, around.names(key, value), texts);
    }
}

fn collect(value: &Value, named: bool, texts: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => {
            if named && let Ok(text) = goyaml::json::to_json(value) {
                // Helm reads numbers as floats, which print otherwise.
                texts.extend(text.parse().ok().map(gotext::float64));
                texts.push(text);
            }
        }
        Value::String(text) => {
            for part in parts(text) {
                let part = text.get(part).unwrap_or_default();
                add(part, texts);
                if let Some((_, password)) = part.split_once_str(":") {
                    add(password, texts);
                }
            }
            if named || text_without(text.as_bstr()).is_some() {
                add(text, texts);
            }
        }
        Value::Seq(items) => items.iter().for_each(|item| collect(item, named, texts)),
        Value::Map(map) => collect_map(map, named, texts),
    }
}

fn add(text: &[u8], texts: &mut Vec<String>) {
    let trimmed = text.trim();
    texts.push(STANDARD.encode(text));
    for form in [text, trimmed] {
        add_forms(form, texts);
    }
    if trimmed.contains(&b'\n') {
        for (index, line) in trimmed.lines().map(ByteSlice::trim).enumerate() {
            if index == 0 || line.len() >= SHORTEST_LINE {
                add_forms(line, texts);
            }
        }
    }
}

/// A text as it is, and as Go and JSON quote it.
fn add_forms(text: &[u8], texts: &mut Vec<String>) {
    let plain = text.to_str_lossy().into_owned();
    let within =
        |quoted: &str| quoted.get(1..quoted.len().saturating_sub(1)).map(ToOwned::to_owned);
    texts.extend(within(&quote(text)));
    // Go's encoder escapes `&`, `<` and `>`, others do not.
    let go = goyaml::json::to_json(&Value::String(text.into()));
    texts.extend(go.ok().and_then(|quoted| within(&quoted)));
    texts.extend(serde_json::to_string(&plain).ok().and_then(|quoted| within(&quoted)));
    texts.push(plain);
}

#[cfg(test)]
mod tests {
    use goyaml::Limits;

    use super::Sensitive;

    #[test]
    fn messages_in_every_form() {
        let values = goyaml::from_yaml_map(
            b"db: {password: \"LEAK\\\"pw\", token: 123456, user: shop}\nurl: http://u:LEAKurl@h/\ntls: {key: \"LEAK-one\\nLEAK-two\\n\"}\nauth: true\nsecret: helm\nodd: {token: \"LEAK&<w>\\u2028\", tokens: [123456789], pw: \"LEAK1\\nx\\n\"}\nargs: [--password=LEAKarg]\n",
            "map",
            &Limits::default(),
        )
        .unwrap();
        let sensitive = Sensitive::of([&values]);
        for message in [
            "bad LEAK\"pw",
            "bad \"LEAK\\\"pw\" at",
            "bad TEVBSyJwdw==",
            "token 123456",
            "no host in http://u:LEAKurl@h/",
            "user LEAKurl",
            "line: LEAK-two",
            "x LEAK-one\\nLEAK-two\\n",
            "first: LEAK1",
            "{\"x\":\"LEAK\\u0026\\u003cw\\u003e\\u2028\"}",
            "{\"x\":\"LEAK&<w>\\u2028\"}",
            "number 1.23456789e+08 or 123456789",
            "arg LEAKarg of --password=LEAKarg",
        ] {
            let shown = sensitive.scrub(message);
            assert!(!shown.contains("LEAK") && shown.contains("REDACTED"), "{message} => {shown}");
            assert!(!shown.contains("TEVB") && !shown.contains("1234"), "{shown}");
        }
        let message = "the user of shop is helm's, and true";
        assert_eq!(sensitive.scrub(message), message);
        assert_eq!(format!("{sensitive:?}").find("LEAK"), None);
    }
}
