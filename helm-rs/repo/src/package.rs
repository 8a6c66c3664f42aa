//! Charts as archives (`pkg/chartutil/save.go`, `pkg/action/package.go`).

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use helm_rs::chart::{Chart, ValidationError, encode};
use helm_rs::gotext::quote;
use helm_rs::{gopath, semver};

use crate::files::{self, FileError};

/// What Helm puts into the extra field of each archive's gzip header.
const GZIP_EXTRA: &[u8] = b"+aHR0cHM6Ly95b3V0dS5iZS96OVV6MWljandyTQo=";

/// Bytes of a name that fit into a tar header without an extension.
const MAX_NAME: usize = 100;

/// Why a chart cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The chart breaks a rule.
    #[error("chart validation")]
    Invalid(#[source] ValidationError),
    /// The version is none.
    #[error(transparent)]
    Version(#[from] semver::Error),
    /// The name would leave the archive's folder.
    #[error("\"{name}\" is not a valid name for a chart")]
    Name {
        /// The chart's name.
        name: String,
    },
    /// The values' schema is no JSON.
    #[error("Invalid JSON in values.schema.json")]
    Schema,
    /// What the chart says of itself cannot be written.
    #[error("{}: cannot be written", quote(chart))]
    Text {
        /// The chart's name.
        chart: String,
        /// What is wrong.
        #[source]
        source: goyaml::Error,
    },
    /// A list entry of the chart is no JSON.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
    /// Where the folder should be is something else.
    #[error("is not a directory: {}", path.display())]
    NotFolder {
        /// The place.
        path: PathBuf,
    },
    /// A name or content does not fit into an archive.
    #[error("pack")]
    Archive(#[from] io::Error),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Puts another version, or the version of another application, into a chart that is to be packed,
/// as `helm package --version --app-version`.
///
/// # Errors
/// [`PackageError::Version`] when the chart's version, given or its own, is none.
pub fn set_versions(
    chart: &mut Chart,
    version: Option<&str>,
    app_version: Option<&str>,
) -> Result<(), PackageError> {
    if let Some(version) = version.filter(|text| !text.is_empty()) {
        version.clone_into(&mut chart.metadata.version);
    }
    semver::Version::parse(&chart.metadata.version)?;
    if let Some(version) = app_version.filter(|text| !text.is_empty()) {
        version.clone_into(&mut chart.metadata.app_version);
    }
    Ok(())
}

/// Packs a chart into `folder`, which is made if need be, under Helm's file name; the file's path
/// is the answer. `modified` is what the archive says when its files were changed, in seconds since
/// 1970: the bytes depend on it and on the chart alone.
///
/// # Errors
/// [`PackageError`]; no file is left then.
pub fn save(chart: &Chart, folder: &Path, modified: i64) -> Result<PathBuf, PackageError> {
    chart.metadata.clone().validate().map_err(PackageError::Invalid)?;
    match fs::metadata(folder) {
        Ok(about) if about.is_dir() => {}
        Ok(_) => return Err(PackageError::NotFolder { path: folder.to_owned() }),
        Err(_) => files::make_folder(folder)?,
    }
    let path = folder.join(file_name(chart.name(), &chart.metadata.version));
    files::write(&path, &pack(chart, modified)?, 0o644)?;
    Ok(path)
}

/// The name of a packed chart's file.
pub fn file_name(name: &str, version: &str) -> String {
    format!("{name}-{version}.tgz")
}

/// A chart as the bytes of an archive, with the files in Helm's order (`writeTarContents`).
///
/// # Errors
/// [`PackageError`].
pub fn pack(chart: &Chart, modified: i64) -> Result<Vec<u8>, PackageError> {
    let gzip = GzBuilder::new()
        .extra(GZIP_EXTRA)
        .comment("Helm")
        .operating_system(255)
        .write(Vec::new(), Compression::default());
    let mut archive = Archive { tar: tar::Builder::new(gzip), modified };
    archive.chart(chart, "")?;
    let mut gzip = archive.tar.into_inner()?;
    gzip.flush()?;
    Ok(gzip.finish()?)
}

struct Archive<W: io::Write> {
    tar: tar::Builder<W>,
    modified: i64,
}

impl<W: io::Write> Archive<W> {
    fn chart(&mut self, chart: &Chart, prefix: &str) -> Result<(), PackageError> {
        if gopath::base(chart.name()) != chart.name() {
            return Err(PackageError::Name { name: chart.name().to_owned() });
        }
        let base = gopath::join(prefix, chart.name());
        let mut metadata = chart.metadata.clone();
        let is_v1 = metadata.api_version == "v1";
        if is_v1 {
            // They stand in requirements.yaml.
            metadata.dependencies = None;
        }
        let text = |json: &str| {
            yaml(json).map_err(|source| PackageError::Text { chart: base.clone(), source })
        };
        self.file(&base, "Chart.yaml", text(&encode::metadata(&metadata)?)?.as_bytes())?;
        if let Some(lock) = chart.lock.as_ref().filter(|_| metadata.api_version == "v2") {
            self.file(&base, "Chart.lock", text(&encode::lock(lock)?)?.as_bytes())?;
        }
        for file in chart.raw.iter().filter(|file| file.name == "values.yaml") {
            self.file(&base, "values.yaml", &file.data)?;
        }
        if let Some(schema) = &chart.schema {
            if serde_json::from_slice::<serde::de::IgnoredAny>(schema).is_err() {
                return Err(PackageError::Schema);
            }
            self.file(&base, "values.schema.json", schema)?;
        }
        for file in chart.templates.iter().chain(&chart.files) {
            self.file(&base, &file.name, &file.data)?;
        }
        let charts = gopath::join(&base, "charts");
        chart.dependencies.iter().try_for_each(|dependency| self.chart(dependency, &charts))
    }

    fn file(&mut self, base: &str, name: &str, data: &[u8]) -> io::Result<()> {
        let name = gopath::join(base, name);
        let mut header = header(data, 0o644, u64::try_from(self.modified).unwrap_or_default());
        header.set_device_major(0)?;
        header.set_device_minor(0)?;
        let plain = name.is_ascii() && (name.len() <= MAX_NAME || header.set_path(&name).is_ok());
        if plain {
            return self.tar.append_data(&mut header, name, data);
        }
        // As Go: the true name stands in an entry before the file.
        let ascii: String = name.chars().filter(char::is_ascii).collect();
        let (folder, file) = ascii.rsplit_once('/').unwrap_or(("", &ascii));
        let record = extension("path", &name);
        let mut before = self::header(record.as_bytes(), 0, 0);
        before.set_entry_type(tar::EntryType::XHeader);
        let place = gopath::join(&gopath::join(folder, "PaxHeaders.0"), file);
        self.tar.append_data(&mut before, cut(&place), record.as_bytes())?;
        self.tar.append_data(&mut header, cut(&ascii), data)
    }
}

/// A header as Go's `archive/tar` writes it for a file.
fn header(data: &[u8], mode: u32, modified: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(data.len() as u64);
    header.set_mode(mode);
    header.set_mtime(modified);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// The beginning of a name that fits into a header; the text is ASCII.
fn cut(name: &str) -> &str {
    name.get(..MAX_NAME).unwrap_or(name)
}

/// A record of an extended header: its own length comes first (`formatPAXRecord`).
fn extension(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len() + 1;
    while length.to_string().len() + rest.len() != length {
        length = length.to_string().len() + rest.len();
    }
    format!("{length}{rest}")
}

/// JSON of Go's structs as `sigs.k8s.io/yaml` writes it.
pub(crate) fn yaml(json: &str) -> Result<String, goyaml::Error> {
    let value = goyaml::from_yaml_exact(json.as_bytes(), &goyaml::Limits::default())?;
    goyaml::to_yaml(&value)
}
