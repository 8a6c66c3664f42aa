//! Records as files of a folder: each is the Secret that a cluster would hold, as JSON, so that
//! `kubectl apply` and the offline commands take the folder as it is.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::{
    DecodeError, Driver, Entry, Labels, StorageError, StorageReply, Write, decode_record,
    encode_record, has_labels,
};
use crate::cluster::Clock;
use crate::release::Record;

/// Records in a folder, one file each.
pub struct FilesDriver {
    folder: PathBuf,
    namespace: String,
    clock: Arc<dyn Clock>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stub {
    api_version: String,
    kind: String,
    metadata: Metadata,
    #[serde(rename = "type")]
    secret_type: String,
    data: Data,
}

#[derive(Serialize, Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: Labels,
}

#[derive(Serialize, Deserialize)]
struct Data {
    release: String,
}

impl FilesDriver {
    /// Records in `folder`, which is made when the first one is written. `namespace` is what the
    /// Secrets say.
    pub fn new(folder: impl Into<PathBuf>, namespace: &str, clock: Arc<dyn Clock>) -> Self {
        Self { folder: folder.into(), namespace: namespace.to_owned(), clock }
    }

    fn path(&self, key: &str) -> Result<PathBuf, StorageError> {
        if key.is_empty() || key.starts_with('.') || key.contains(['/', '\\', '\0']) {
            return Err(StorageError::InvalidKey);
        }
        Ok(self.folder.join(format!("{key}.json")))
    }

    fn write_file(
        &self,
        key: &str,
        record: &Record,
        labels: Labels,
        write: Write,
    ) -> Result<(), StorageError> {
        let path = self.path(key)?;
        let stub = Stub {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            metadata: Metadata { name: key.to_owned(), namespace: self.namespace.clone(), labels },
            secret_type: "helm.sh/release.v1".to_owned(),
            data: Data { release: encode_record(record, true)? },
        };
        let fail = |source| StorageError::File { doing: "write", path: path.clone(), source };
        let text = serde_json::to_vec(&stub).map_err(|error| fail(error.into()))?;
        fs::create_dir_all(&self.folder).map_err(fail)?;
        if write == Write::Replace && !path.exists() {
            return Err(StorageError::NotFound);
        }
        // A crash leaves the old file or the new one, never half of one.
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(fail)?;
        file.write_all(&text).map_err(fail)?;
        if write == Write::Replace {
            file.persist(&path).map(drop).map_err(|error| fail(error.error))
        } else {
            match file.persist_noclobber(&path) {
                Ok(_) => Ok(()),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(StorageError::Exists)
                }
                Err(error) => Err(fail(error.error)),
            }
        }
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StorageError::File { doing: "read", path: path.to_owned(), source }),
    }
}

fn decode(text: &[u8]) -> Result<(Labels, Result<Record, DecodeError>), DecodeError> {
    let stub: Stub = serde_json::from_slice(text)?;
    let release = STANDARD.decode(&stub.data.release).map_err(DecodeError::from);
    Ok((stub.metadata.labels, release.and_then(decode_record)))
}

impl Driver for FilesDriver {
    fn name(&self) -> &'static str {
        "File"
    }

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn entry<'a>(&'a self, key: &'a str) -> StorageReply<'a, Option<Entry>> {
        Box::pin(async move {
            let Some(text) = read(&self.path(key)?)? else { return Ok(None) };
            let (labels, record) = match decode(&text) {
                Ok(read) => read,
                Err(error) => (Labels::new(), Err(error)),
            };
            Ok(Some(Entry { key: key.to_owned(), labels, record }))
        })
    }

    fn each<'a>(
        &'a self,
        wanted: &'a Labels,
        visit: &'a mut (dyn FnMut(Entry) + Send),
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let fail =
                |source| StorageError::File { doing: "read", path: self.folder.clone(), source };
            let folder = match fs::read_dir(&self.folder) {
                Ok(folder) => folder,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(fail(error)),
            };
            let mut keys = Vec::new();
            for entry in folder {
                let name = entry.map_err(fail)?.file_name();
                keys.extend(
                    name.to_str().and_then(|name| name.strip_suffix(".json")).map(String::from),
                );
            }
            keys.sort_unstable();
            for key in keys {
                let Some(entry) = self.entry(&key).await? else { continue };
                // Without labels it cannot be told whose it is: it is everyone's problem.
                let is_lost = entry.labels.is_empty() && entry.record.is_err();
                if is_lost || has_labels(&entry.labels, wanted) {
                    visit(entry);
                }
            }
            Ok(())
        })
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: Labels,
        write: Write,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move { self.write_file(key, record, labels, write) })
    }

    fn delete<'a>(&'a self, key: &'a str) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let path = self.path(key)?;
            match fs::remove_file(&path) {
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    Err(StorageError::NotFound)
                }
                Err(source) => Err(StorageError::File { doing: "delete", path, source }),
            }
        })
    }
}
