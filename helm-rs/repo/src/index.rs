//! The index of a repository: which charts it has, and where (`pkg/repo/index.go`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use goyaml::{Limits, Map, Value};
use helm_rs::chart::{
    self, DecodeError, Metadata, Struct, Target, ValidationError, Warning, encode,
};
use helm_rs::gojson::{Fields, string};
use helm_rs::gopath;
use helm_rs::gotext::quote;
use helm_rs::semver::{self, Constraint, Version};

use crate::files::{self, FileError};
use crate::{digest, package, url};

/// Bytes that an index may have.
pub const MAX_INDEX: u64 = 256 * 1024 * 1024;

/// Why an index cannot be read, written or asked.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Nothing is in it.
    #[error("empty index.yaml file")]
    Empty,
    /// It does not say which version of the form it has.
    #[error("no API version specified")]
    NoApiVersion,
    /// It has not the form of an index.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It is neither JSON nor YAML, or too much of it.
    #[error(transparent)]
    Yaml(#[from] goyaml::Error),
    /// A file of an index is wrong.
    #[error("error loading {}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: Box<Self>,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no such chart in it.
    #[error("no chart name found")]
    NoChart,
    /// The chart has no versions.
    #[error("no chart version found")]
    NoVersions,
    /// No version fits.
    #[error("no chart version found for {name}-{version}")]
    NoVersion {
        /// The chart.
        name: String,
        /// The version or range that was asked for.
        version: String,
    },
    /// The range is none.
    #[error(transparent)]
    Range(#[from] semver::Error),
    /// A chart that is to be added breaks a rule.
    #[error("failed adding to {file} to index: validate failed for {file}")]
    Invalid {
        /// The archive's name.
        file: String,
        /// The rule.
        #[source]
        source: ValidationError,
    },
    /// A chart cannot be written.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
}

/// A chart in one version, as an index lists it.
#[derive(Clone, Debug, Default)]
pub struct ChartVersion {
    /// What the chart says about itself.
    pub metadata: Metadata,
    /// Where its archive is, absolute or seen from the repository; `None` when the field is absent.
    pub urls: Option<Vec<String>>,
    /// When it was added, RFC 3339.
    pub created: String,
    /// Whether it is no longer there.
    pub removed: bool,
    /// SHA-256 of the archive in hexadecimal.
    pub digest: String,
    /// What Helm 2 wrote and Helm 3 keeps: `checksum`, `engine`, `tillerVersion`, `url`.
    former: Map,
}

/// An index.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// When it was made, RFC 3339.
    pub generated: String,
    /// The charts' versions by the charts' names, the newest first once sorted.
    pub entries: BTreeMap<String, Vec<ChartVersion>>,
}

const FORMER: [&str; 4] = ["checksum", "engine", "tillerVersion", "url"];

const CHART_VERSION_FIELDS: [(&str, Target); METADATA_COUNT + 8] = {
    let mut all = [("", Target::Any); METADATA_COUNT + 8];
    let own = [
        ("urls", Target::Seq(&Target::Text, "string")),
        ("created", Target::Time),
        ("removed", Target::Bool),
        ("digest", Target::Text),
        (FORMER[0], Target::Text),
        (FORMER[1], Target::Text),
        (FORMER[2], Target::Text),
        (FORMER[3], Target::Text),
    ];
    let mut at = 0;
    while at < METADATA_COUNT {
        let (name, _) = chart::METADATA.fields[at];
        all[at] = (name, Target::Embedded("Metadata", &chart::METADATA.fields[at].1));
        at += 1;
    }
    while at < METADATA_COUNT + 8 {
        all[at] = own[at - METADATA_COUNT];
        at += 1;
    }
    all
};

const METADATA_COUNT: usize = chart::METADATA_FIELDS.len();

static CHART_VERSION: Struct =
    Struct { name: "ChartVersion", go_type: "repo.ChartVersion", fields: &CHART_VERSION_FIELDS };

static INDEX: Struct = Struct {
    name: "IndexFile",
    go_type: "repo.IndexFile",
    fields: &[
        ("serverInfo", Target::Map(&Target::Any, "interface {}")),
        ("apiVersion", Target::Text),
        ("generated", Target::Time),
        (
            "entries",
            Target::Map(
                &Target::Seq(&Target::Struct(&CHART_VERSION), "*repo.ChartVersion"),
                "repo.ChartVersions",
            ),
        ),
        ("publicKeys", Target::Seq(&Target::Text, "string")),
        ("annotations", Target::Map(&Target::Text, "string")),
    ],
};

impl Index {
    /// Reads an index: JSON, or YAML in which no field may be unknown (`loadIndex`). Entries that
    /// break a rule are left out, each with a warning. `source` names the index in warnings.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn parse(
        data: &[u8],
        source: &str,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, IndexError> {
        if data.is_empty() {
            return Err(IndexError::Empty);
        }
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok();
        let fields = if is_json {
            chart::decode_json_target(data, &INDEX)?
        } else {
            chart::decode_target_strict(data, &INDEX, &Limits::default())?
        };
        let mut fields = fields.unwrap_or_default();
        let mut index = Self { generated: text(&mut fields, "generated"), ..Self::default() };
        if let Some(Value::Map(entries)) = fields.remove("entries") {
            for (name, versions) in entries {
                let name = name.to_str_lossy().into_owned();
                let Value::Seq(versions) = versions else { continue };
                let versions = read_versions(&name, versions, source, warnings);
                index.entries.insert(name, versions);
            }
        }
        index.sort();
        if text(&mut fields, "apiVersion").is_empty() {
            return Err(IndexError::NoApiVersion);
        }
        Ok(index)
    }

    /// Reads an index file (`LoadIndexFile`).
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn read(path: &Path, warnings: &mut Vec<Warning>) -> Result<Self, IndexError> {
        let data = files::read(path, MAX_INDEX)?;
        Self::parse(&data, &path.to_string_lossy(), warnings)
            .map_err(|source| IndexError::In { path: path.to_owned(), source: Box::new(source) })
    }

    /// The packed charts of a folder and of the folders in it (`IndexDirectory`), with addresses
    /// below `base`. `now` is the time of day, RFC 3339. What is no chart is left out.
    ///
    /// # Errors
    /// [`IndexError`].
    pub fn of_directory(folder: &Path, base: &str, now: &str) -> Result<Self, IndexError> {
        let mut index = Self { generated: now.to_owned(), ..Self::default() };
        let mut archives = archives(folder, "");
        for inner in names(folder).iter().filter(|name| folder.join(name).is_dir()) {
            archives.extend(self::archives(&folder.join(inner), inner));
        }
        for (parent, file) in archives {
            let path = folder.join(&parent).join(&file);
            let limits = chart::Limits::default();
            let Ok(loaded) = chart::load(&path, &limits, &mut Vec::new()) else { continue };
            let mut metadata = loaded.metadata;
            metadata
                .validate()
                .map_err(|source| IndexError::Invalid { file: file.clone(), source })?;
            let parent =
                url::join(base, &[&parent]).unwrap_or_else(|_| gopath::join(base, &parent));
            let address = if parent.is_empty() {
                file
            } else {
                url::join(&parent, &[&file]).unwrap_or_else(|_| gopath::join(&parent, &file))
            };
            index.entries.entry(metadata.name.clone()).or_default().push(ChartVersion {
                metadata,
                urls: Some(vec![address]),
                created: now.to_owned(),
                digest: digest(&files::read(&path, u64::MAX - 1)?),
                ..ChartVersion::default()
            });
        }
        Ok(index)
    }

    /// Adds what another index has and this one has not, by name and version (`Merge`).
    pub fn merge(&mut self, other: Self) {
        for version in other.entries.into_values().flatten() {
            let metadata = &version.metadata;
            if self.get(&metadata.name, &metadata.version).is_err() {
                self.entries.entry(metadata.name.clone()).or_default().push(version);
            }
        }
    }

    /// Puts the newest version of each chart first (`SortEntries`).
    pub fn sort(&mut self) {
        for versions in self.entries.values_mut() {
            versions.sort_by_cached_key(|version| {
                std::cmp::Reverse(Version::parse(&version.metadata.version).ok().map(Newest))
            });
        }
    }

    /// The newest version of a chart that fits a version or range; of an empty one, the newest that
    /// is no prerelease (`Get`).
    ///
    /// # Errors
    /// [`IndexError::NoChart`], [`IndexError::NoVersions`], [`IndexError::NoVersion`],
    /// [`IndexError::Range`].
    pub fn get(&self, name: &str, version: &str) -> Result<&ChartVersion, IndexError> {
        let versions = self.entries.get(name).ok_or(IndexError::NoChart)?;
        if versions.is_empty() {
            return Err(IndexError::NoVersions);
        }
        let constraint = Constraint::parse(if version.is_empty() { "*" } else { version })?;
        let exact = versions.iter().find(|v| !version.is_empty() && v.metadata.version == version);
        let fits = |candidate: &&ChartVersion| {
            Version::parse(&candidate.metadata.version).is_ok_and(|v| constraint.check(&v))
        };
        exact.or_else(|| versions.iter().find(fits)).ok_or_else(|| IndexError::NoVersion {
            name: name.to_owned(),
            version: version.to_owned(),
        })
    }

    /// The index as JSON of Go's struct.
    ///
    /// # Errors
    /// [`IndexError::Json`].
    pub fn to_json(&self) -> Result<String, IndexError> {
        let mut fields = Fields::default();
        fields.text("apiVersion", "v1");
        fields.raw("generated", &string(&self.generated));
        let mut entries = Fields::default();
        for (name, versions) in &self.entries {
            let versions: Result<Vec<String>, _> = versions.iter().map(version_json).collect();
            entries.raw_key(name.as_bytes(), &format!("[{}]", versions?.join(",")));
        }
        fields.raw("entries", &entries.end());
        Ok(fields.end())
    }

    /// Writes an index file, as YAML or as indented JSON.
    ///
    /// # Errors
    /// [`IndexError`]; a file that is there stays then.
    pub fn write(&self, path: &Path, as_json: bool) -> Result<(), IndexError> {
        let json = self.to_json()?;
        let text = if as_json { crate::text::indent(&json, "  ") } else { package::yaml(&json)? };
        Ok(files::write(path, text.as_bytes(), 0o644)?)
    }
}

/// Versions in the order of `semver.Version.Compare`.
struct Newest(Version);

impl PartialEq for Newest {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Newest {}

impl PartialOrd for Newest {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Newest {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.compare(&other.0)
    }
}

/// The names in a folder, in order; none of a folder that cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The archives of a folder: the folder's name from the root, and theirs.
fn archives(folder: &Path, parent: &str) -> Vec<(String, String)> {
    let archives = names(folder).into_iter().filter(|name| name.ends_with(".tgz"));
    archives.map(|name| (parent.to_owned(), name)).collect()
}

fn text(fields: &mut Map, name: &str) -> String {
    match fields.remove(name) {
        Some(Value::String(text)) => text.to_str_lossy().into_owned(),
        _ => String::new(),
    }
}

fn read_versions(
    name: &str,
    versions: Vec<Value>,
    source: &str,
    warnings: &mut Vec<Warning>,
) -> Vec<ChartVersion> {
    let mut kept = Vec::new();
    // From the last to the first, which is the order of Helm's warnings.
    for version in versions.into_iter().rev() {
        let Value::Map(mut fields) = version else {
            let message = format!(
                "skipping loading invalid entry for chart {} from {source}: empty entry",
                quote(name)
            );
            warnings.push(Warning { origin: "index.go:359", message });
            continue;
        };
        let mut version = read_version(&mut fields);
        if version.metadata.api_version.is_empty() {
            "v1".clone_into(&mut version.metadata.api_version);
        }
        match version.metadata.validate() {
            Err(error) if !error.0.starts_with("more than one dependency with name or alias") => {
                let message = format!(
                    "skipping loading invalid entry for chart {} {} from {source}: {error}",
                    quote(name),
                    quote(&version.metadata.version)
                );
                warnings.push(Warning { origin: "index.go:371", message });
            }
            _ => kept.push(version),
        }
    }
    kept.reverse();
    kept
}

fn read_version(fields: &mut Map) -> ChartVersion {
    let mut version = ChartVersion {
        created: text(fields, "created"),
        removed: fields.remove("removed") == Some(Value::Bool(true)),
        digest: text(fields, "digest"),
        ..ChartVersion::default()
    };
    if let Some(Value::Seq(urls)) = fields.remove("urls") {
        let urls = urls.iter().map(|url| url.as_str().map(ToString::to_string).unwrap_or_default());
        version.urls = Some(urls.collect());
    }
    for name in FORMER {
        let text = text(fields, name);
        if !text.is_empty() {
            version.former.insert(name, text);
        }
    }
    chart::metadata_fields(fields, &mut version.metadata);
    version
}

/// `ChartVersion` as JSON: the chart's own fields first, as Go writes an embedded struct.
fn version_json(version: &ChartVersion) -> Result<String, goyaml::json::Error> {
    let mut fields = Fields::default();
    let urls: Option<Vec<String>> =
        version.urls.as_ref().map(|urls| urls.iter().map(|url| string(url)).collect());
    fields.raw("urls", &urls.map_or("null".to_owned(), |urls| format!("[{}]", urls.join(","))));
    let created = Some(version.created.as_str()).filter(|text| !text.is_empty());
    fields.raw("created", &string(created.unwrap_or(helm_rs::gotext::ZERO_TIME)));
    if version.removed {
        fields.raw("removed", "true");
    }
    fields.text("digest", &version.digest);
    for name in FORMER {
        let text = version.former.get(name).and_then(Value::as_str).map(ToString::to_string);
        fields.text(name, &text.unwrap_or_default());
    }
    let (mut own, rest) = (encode::metadata(&version.metadata)?, fields.end());
    own.pop();
    let comma = if own.len() > 1 { "," } else { "" };
    Ok(format!("{own}{comma}{}", rest.get(1..).unwrap_or_default()))
}
