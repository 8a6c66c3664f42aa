//! How other commands read etcd snapshots.

use clap::Args;
use helm_rs::release::input::EtcdOptions;

use super::{encryption_keys, revision};
use crate::error::CommandError;

/// Flags that are about etcd snapshots among the files that are read.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct EtcdFlags {
    /// The API server's EncryptionConfiguration, for an etcd snapshot with encrypted objects
    #[arg(long, value_name = "FILE")]
    encryption_config: Option<String>,
    /// Read an etcd snapshot as etcd was at this revision
    #[arg(long, value_name = "REVISION", value_parser = revision())]
    at_revision: Option<i64>,
}

impl EtcdFlags {
    /// Refuses the flags where no file is read.
    pub(crate) fn check_unused(&self) -> Result<(), CommandError> {
        let flag = match self {
            Self { at_revision: Some(_), .. } => "--at-revision",
            Self { encryption_config: Some(_), .. } => "--encryption-config",
            _ => return Ok(()),
        };
        Err(CommandError::new(format_args!("{flag} is for an etcd snapshot, and none is read")))
    }

    /// What the reader of inputs is told.
    pub(crate) fn options(&self) -> Result<EtcdOptions, CommandError> {
        let keys = encryption_keys(self.encryption_config.as_deref())?;
        Ok(EtcdOptions { keys, at_revision: self.at_revision })
    }
}
