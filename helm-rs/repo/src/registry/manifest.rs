//! A chart's manifest in a registry, and the errors that registries send
//! (`pkg/registry/util.go`, `oras-go` `registry/remote/errcode/errors.go`).

use std::collections::BTreeMap;

use helm_rs::chart::Metadata;
use helm_rs::gojson::{Fields, string};
use serde_json::Value;

use crate::digest;
use crate::reference::is_digest;

/// Layers that a manifest may have.
const MAX_LAYERS: usize = 100;

/// A part of a chart in a registry.
#[derive(Clone, Debug)]
pub(super) struct Blob {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    /// The content, where it is to be sent.
    pub(super) bytes: Vec<u8>,
}

impl Blob {
    pub(super) fn of(media_type: &str, bytes: Vec<u8>) -> Self {
        let digest = format!("sha256:{}", digest(&bytes));
        Self { media_type: media_type.to_owned(), digest, size: bytes.len() as u64, bytes }
    }

    fn read(value: &Value) -> Result<Self, String> {
        let text = |name| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let digest = text("digest");
        if !is_digest(&digest) {
            return Err(format!(
                "invalid checksum digest format: {}",
                helm_rs::gotext::quote(&digest)
            ));
        }
        let size = value.get("size").and_then(Value::as_u64).ok_or("a part has no size")?;
        Ok(Self { media_type: text("mediaType"), digest, size, bytes: Vec::new() })
    }

    fn to_json(&self) -> String {
        let mut fields = Fields::default();
        fields.raw("mediaType", &string(&self.media_type));
        fields.raw("digest", &string(&self.digest));
        fields.raw("size", &self.size.to_string());
        fields.end()
    }
}

/// A manifest that was read.
#[derive(Debug)]
pub(super) struct Manifest {
    config: Blob,
    layers: Vec<Blob>,
}

impl Manifest {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let layers = value.get("layers").and_then(Value::as_array);
        let (Some(config), Some(layers)) = (value.get("config"), layers) else {
            return Err("not the manifest of one artifact".to_owned());
        };
        if layers.len() > MAX_LAYERS {
            return Err(format!("more than the limit of {MAX_LAYERS} layers"));
        }
        let layers: Result<Vec<Blob>, String> = layers.iter().map(Blob::read).collect();
        Ok(Self { config: Blob::read(config)?, layers: layers? })
    }

    pub(super) const fn config(&self) -> &Blob {
        &self.config
    }

    /// The last layer of one of these kinds: the one that Helm takes.
    pub(super) fn layer(&self, kinds: &[&str]) -> Option<&Blob> {
        self.layers.iter().rfind(|layer| kinds.contains(&layer.media_type.as_str()))
    }

    /// Whether it is a chart's, with the layers that are wanted; the error is Helm's.
    pub(super) fn check(
        &self,
        config: &str,
        kinds: &[&str],
        with_chart: bool,
        with_provenance: bool,
    ) -> Result<(), String> {
        let is_config = self.config.media_type == config;
        let layers = self.layers.iter().filter(|layer| kinds.contains(&layer.media_type.as_str()));
        let found = 1 + usize::from(is_config) + layers.count();
        let wanted = 1 + usize::from(with_chart) + usize::from(with_provenance);
        if found < wanted {
            return Err(format!(
                "manifest does not contain minimum number of descriptors ({wanted}), descriptors found: {found}"
            ));
        }
        if !is_config {
            return Err(format!("could not load config with mediatype {config}"));
        }
        let missing = |kind| format!("manifest does not contain a layer with mediatype {kind}");
        if with_chart && self.layer(&[super::CHART, super::FORMER_CHART]).is_none() {
            return Err(missing(super::CHART));
        }
        if with_provenance && self.layer(&[super::PROVENANCE]).is_none() {
            return Err(missing(super::PROVENANCE));
        }
        Ok(())
    }
}

/// A manifest as `encoding/json` writes it.
pub(super) fn text(
    config: &Blob,
    layers: &[Blob],
    annotations: &BTreeMap<String, String>,
) -> String {
    let mut fields = Fields::default();
    fields.raw("schemaVersion", "2");
    fields.raw("config", &config.to_json());
    let layers: Vec<String> = layers.iter().map(Blob::to_json).collect();
    fields.raw("layers", &format!("[{}]", layers.join(",")));
    let mut inner = Fields::default();
    for (name, value) in annotations {
        inner.raw_key(name.as_bytes(), &string(value));
    }
    fields.raw("annotations", &inner.end());
    fields.end()
}

/// What a manifest tells of its chart (`generateOCIAnnotations`).
pub(super) fn annotations(metadata: &Metadata, created: &str) -> BTreeMap<String, String> {
    let authors: Vec<String> = metadata
        .maintainers
        .iter()
        .map(|maintainer| {
            let mail = &maintainer.email;
            let mail = if mail.is_empty() { String::new() } else { format!(" ({mail})") };
            format!("{}{mail}", maintainer.name)
        })
        .collect();
    let own = [
        ("description", metadata.description.as_str()),
        ("title", &metadata.name),
        ("version", &metadata.version),
        ("url", &metadata.home),
        ("created", created),
        ("source", metadata.sources.first().map_or("", String::as_str)),
        ("authors", &authors.join(", ")),
    ];
    let mut all: BTreeMap<String, String> = own
        .iter()
        .filter(|(_, value)| !value.trim().is_empty())
        .map(|(name, value)| (format!("org.opencontainers.image.{name}"), (*value).to_owned()))
        .collect();
    for (name, value) in &metadata.annotations {
        let fixed = ["org.opencontainers.image.version", "org.opencontainers.image.title"];
        if !fixed.contains(&name.as_str()) {
            all.insert(name.clone(), value.clone());
        }
    }
    all
}

/// The errors in a registry's answer, as oras joins them.
pub(super) fn error_text(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let errors = value.get("errors")?.as_array()?;
    let texts: Vec<String> = errors
        .iter()
        .map(|error| {
            let text = |name| error.get(name).and_then(Value::as_str).unwrap_or_default();
            let code = text("code").replace('_', " ").to_lowercase();
            let detail = error.get("detail").filter(|detail| !detail.is_null());
            match (text("message"), detail) {
                ("", _) => code,
                (message, None) => format!("{code}: {message}"),
                (message, Some(detail)) => format!("{code}: {message}: {}", go_value(detail)),
            }
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// A JSON value as Go's `%v` prints it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let items: BTreeMap<&String, String> =
                map.iter().map(|(name, value)| (name, go_value(value))).collect();
            let items: Vec<String> =
                items.iter().map(|(name, value)| format!("{name}:{value}")).collect();
            format!("map[{}]", items.join(" "))
        }
        other => other.to_string(),
    }
}
