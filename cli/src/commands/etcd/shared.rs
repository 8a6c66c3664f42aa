//! Opening a file and saying what is wrong with it.

use std::fs::File;

use clap::Args;
use etcd_snapshot::decrypt::{self, DecryptError, Keys};
use etcd_snapshot::storage::{self, Layout, ObjectKey, StorageError, Stored};
use etcd_snapshot::{Entry, Fault, Faults, FileSource, Index, Snapshot, Source as _};
use helm_rs::error_chain;

use super::encryption_keys;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::printable;

/// Which file, and which time of it.
#[derive(Debug, Args)]
pub(super) struct FileFlags {
    /// An etcd snapshot, or a copy of etcd's database
    #[arg(value_name = "FILE")]
    pub(super) file: String,
    /// Read it as etcd was at this revision
    #[arg(long, value_name = "REVISION", value_parser = super::revision())]
    at_revision: Option<i64>,
}

/// An open file, each key's last change, and how many things were wrong.
pub(super) struct Open {
    pub(super) snapshot: Snapshot,
    pub(super) index: Index,
    pub(super) layout: Layout,
    name: String,
    wrong: usize,
}

/// Why a value is no object.
pub(super) enum Unreadable {
    Damage(Fault),
    Closed(DecryptError),
    Storage(StorageError),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match self {
            Self::Damage(fault) => error_chain(fault),
            Self::Closed(error) => error_chain(error),
            Self::Storage(error) => error_chain(error),
        })
    }
}

impl FileFlags {
    /// Opens the file, compares its digest and goes through all of its keys. What is wrong is told
    /// on the way.
    pub(super) fn open(&self, context: &mut Context<'_>) -> Result<Open, CommandError> {
        Open::file(&self.file, self.at_revision, context)
    }
}

impl Open {
    /// Opens a file; see [`FileFlags::open`].
    pub(super) fn file(
        file: &str,
        at_revision: Option<i64>,
        context: &mut Context<'_>,
    ) -> Result<Self, CommandError> {
        let fail = |error: &(dyn std::error::Error + 'static)| {
            CommandError::new(format_args!("{file}: {}", error_chain(error)))
        };
        // Opening a pipe would wait for its writer, and nothing in it could be read at a place.
        let about = std::fs::metadata(file).map_err(|error| fail(&error))?;
        if !about.is_file() {
            let what = if about.is_dir() { "is a folder" } else { "is no regular file" };
            return Err(CommandError::new(format_args!("{file}: {what}")));
        }
        let source = File::open(file).and_then(FileSource::new).map_err(|e| fail(&e))?;
        let mut magic = [0; 2];
        let is_gzip = source.read_at(0, &mut magic).is_ok() && magic == [0x1f, 0x8b];
        let mut snapshot =
            Snapshot::open(Box::new(source)).map_err(|error| match fail(&error) {
                error if is_gzip => error.hint("it is compressed: unpack it with gunzip"),
                error => error,
            })?;
        let mut faults = Faults::default();
        snapshot.check(&mut |fault| faults.push(fault));
        let index = snapshot.index(at_revision, &mut |fault| faults.push(fault));
        let layout = index.as_ref().map(Layout::of).unwrap_or_default();
        let mut wrong = 0;
        for fault in faults.into_told() {
            wrong += 1;
            let text = printable(&error_chain(&fault));
            context.ui.warning(format!("warning: {file}: {text}"));
        }
        let index = index.map_err(|error| fail(&error))?;
        Ok(Self { snapshot, index, layout, name: file.to_owned(), wrong })
    }

    /// What a key says; for keys that are not Kubernetes' the key alone.
    pub(super) fn key<'a>(&self, key: &'a [u8]) -> ObjectKey<'a> {
        let other = |name| ObjectKey { resource: "", namespace: "", name };
        let text = std::str::from_utf8(key).unwrap_or("(no text)");
        self.layout.read(key).unwrap_or_else(|| other(text))
    }

    /// The object that an entry is about.
    pub(super) fn object(
        &self,
        key: &[u8],
        entry: &Entry,
        keys: Option<&Keys>,
    ) -> Result<Stored, Unreadable> {
        let stored = self.snapshot.value(entry).map_err(Unreadable::Damage)?;
        let plain = decrypt::open(&stored.value, key, keys).map_err(Unreadable::Closed)?;
        storage::object(&plain, entry.revision.main).map_err(Unreadable::Storage)
    }

    /// Says that something cannot be read.
    pub(super) fn warn(&mut self, context: &mut Context<'_>, what: &str, error: &Unreadable) {
        self.warn_of(context, what, &error.to_string());
    }

    /// Says that something is wrong with the file.
    pub(super) fn warn_of(&mut self, context: &mut Context<'_>, what: &str, text: &str) {
        self.wrong += 1;
        let text = printable(&format!("{what}: {text}"));
        context.ui.warning(format!("warning: {}: {text}", self.name));
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The end of a command that printed all that there is.
    ///
    /// # Errors
    /// When something could not be read: what was printed is not the whole.
    pub(super) fn finish(&self) -> Result<Exit, CommandError> {
        let what = match self.wrong {
            0 => return Ok(Exit::Done),
            1 => "a part",
            _ => "parts",
        };
        Err(CommandError::new(format_args!("{what} of {} could not be read", self.name)))
    }
}

/// Flags of commands that print values.
#[derive(Debug, Args)]
pub(super) struct KeyFlags {
    /// The API server's EncryptionConfiguration, for objects that are encrypted
    #[arg(long, value_name = "FILE")]
    encryption_config: Option<String>,
}

impl KeyFlags {
    /// The keys, if any.
    pub(super) fn keys(&self) -> Result<Option<Keys>, CommandError> {
        encryption_keys(self.encryption_config.as_deref())
    }
}
