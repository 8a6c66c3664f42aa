//! The file that pins charts.

use goyaml::Value;

use super::digest::{Digest, DigestError};

/// A chart that is known by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The chart's name.
    pub name: String,
    /// The chart's version.
    pub version: String,
    /// Where its archive is, an HTTP or HTTPS address.
    pub url: String,
    /// The digest of the archive.
    pub digest: Digest,
}

impl Pin {
    /// The archive's usual file name, `NAME-VERSION.tgz`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.tgz", self.name, self.version)
    }
}

/// All pins of a file, in its order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pins(Vec<Pin>);

/// Why a file of pins cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PinError {
    /// It is not YAML.
    #[error("the file of pins is not YAML")]
    Yaml {
        /// What is wrong.
        #[source]
        source: goyaml::Error,
    },
    /// An entry lacks something, or has the wrong kind of it.
    #[error("pin {index}: {field} is missing or not a plain file name or text")]
    Field {
        /// The entry, counted from 0.
        index: usize,
        /// The field.
        field: &'static str,
    },
    /// An entry's digest is none.
    #[error("pin {index}: wrong digest")]
    Digest {
        /// The entry, counted from 0.
        index: usize,
        /// What is wrong.
        #[source]
        source: DigestError,
    },
}

impl Pins {
    /// Reads a file of pins: YAML with a list `charts` of `name`, `version`, `url`, `digest`.
    ///
    /// # Errors
    /// [`PinError`] with the entry that is wrong.
    pub fn parse(text: &[u8]) -> Result<Self, PinError> {
        let file = goyaml::from_yaml(text, &goyaml::Limits::default())
            .map_err(|source| PinError::Yaml { source })?;
        let entries = file.get("charts").and_then(Value::as_seq).unwrap_or_default();
        entries
            .iter()
            .enumerate()
            .map(|(index, entry)| pin(index, entry))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The pin of a chart: the one of the given version, or the first under the name.
    pub fn find(&self, name: &str, version: Option<&str>) -> Option<&Pin> {
        self.0
            .iter()
            .find(|pin| pin.name == name && version.is_none_or(|version| pin.version == version))
    }

    /// All pins.
    pub fn iter(&self) -> impl Iterator<Item = &Pin> {
        self.0.iter()
    }
}

fn pin(index: usize, entry: &Value) -> Result<Pin, PinError> {
    let text = |field| {
        let text = entry.get(field).and_then(Value::as_str).map(ToString::to_string);
        text.filter(|text| !text.is_empty()).ok_or(PinError::Field { index, field })
    };
    // Name and version become a file name.
    let plain = |field| {
        let text = text(field)?;
        if text.contains(['/', '\\', '\0']) || text.starts_with('.') {
            return Err(PinError::Field { index, field });
        }
        Ok(text)
    };
    Ok(Pin {
        name: plain("name")?,
        version: plain("version")?,
        url: text("url")?,
        digest: text("digest")?.parse().map_err(|source| PinError::Digest { index, source })?,
    })
}
