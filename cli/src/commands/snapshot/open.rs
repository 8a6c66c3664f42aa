//! A cluster to rehearse on, out of any of the files that hold one.

use std::io::Read as _;
use std::path::Path;

use helm_rs::cluster::memory::read_objects;
use helm_rs::cluster::snapshot::Limits;
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use takeover::snapshot::{Dump, Stage, StageError};

use super::file::{fail, input, unreadable};
use crate::commands::Context;
use crate::commands::etcd::{self, EtcdFlags};
use crate::error::CommandError;

/// Where the first page of etcd's database has its magic number, which is little-endian.
const MAGIC: (usize, [u8; 4]) = (16, [0xed, 0xda, 0x0c, 0xed]);
/// What gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What a snapshot begins with; one that something was put before is a broken one.
const HEAD: &[u8] = b"{\"kind\":\"ClusterSnapshot\"";
/// Bytes of a file by which its form is told.
const BEGINNING: u64 = 4096;

/// What a file is, as its content tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// What `ichor snapshot take` writes, be it broken.
    Snapshot,
    /// etcd's database.
    Etcd,
    /// YAML or JSON, or a folder of that.
    Kubectl,
}

impl Form {
    pub(super) fn of(path: &str, context: &Context<'_>) -> Result<Self, CommandError> {
        if path == "-" {
            return Ok(Self::Snapshot);
        }
        if Path::new(path).is_dir() {
            return Ok(Self::Kubectl);
        }
        let mut beginning = Vec::new();
        let read = input(path, context)?.take(BEGINNING).read_to_end(&mut beginning);
        read.map_err(|error| fail(path, io_text(&error)))?;
        let (at, magic) = MAGIC;
        Ok(if beginning.get(at..at + magic.len()) == Some(&magic[..]) {
            Self::Etcd
        } else if beginning.starts_with(&GZIP)
            || beginning.windows(HEAD.len()).any(|part| part == HEAD)
        {
            Self::Snapshot
        } else {
            Self::Kubectl
        })
    }
}

/// Opens a snapshot, a folder or a file of `kubectl get` output, or an etcd snapshot.
pub(crate) fn open(
    path: &str,
    etcd: &EtcdFlags,
    context: &mut Context<'_>,
) -> Result<Stage, CommandError> {
    let form = Form::of(path, context)?;
    if form != Form::Etcd {
        etcd.check_unused()?;
    }
    let dump = match form {
        Form::Snapshot => {
            let input = input(path, context)?;
            return Stage::open(input, &Limits::default()).map_err(|error| match &error {
                StageError::Snapshot(error) => unreadable(path, error),
                _ => fail(path, error_chain(&error)),
            });
        }
        Form::Etcd => {
            let (objects, unread) = etcd::objects(path, etcd, context)?;
            Dump { what: "etcd".to_owned(), objects, unread, ..Dump::default() }
        }
        Form::Kubectl => {
            let objects = read_objects(Path::new(path));
            let objects = objects.map_err(|error| CommandError::new(error_chain(&error)))?;
            Dump { what: "kubectl".to_owned(), objects, ..Dump::default() }
        }
    };
    if dump.objects.is_empty() {
        return Err(fail(path, "there is no object in it that a takeover looks at"));
    }
    let now = jiff::Timestamp::try_from(context.environment.now()).unwrap_or_default();
    let made = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut dump = Dump { made, ..dump };
    dump.notes.push("when it was made: a moment ago is assumed".to_owned());
    Stage::of_dump(dump).map_err(|error| fail(path, error_chain(&error)))
}
