//! Keyrings of a build without signatures: there are none.

use std::path::Path;

use super::ProvenanceError;

/// Nothing: this build knows no signatures.
#[derive(Debug)]
pub struct Keyring(());

/// A key that cannot be.
#[derive(Debug)]
pub(super) struct Secret(());

impl Keyring {
    /// Reads a keyring.
    ///
    /// # Errors
    /// Always [`ProvenanceError::NoSupport`].
    pub fn read(_: &Path) -> Result<Self, ProvenanceError> {
        Err(ProvenanceError::NoSupport)
    }

    pub(super) fn find(&self, _: &str) -> Result<usize, ProvenanceError> {
        let Self(()) = self;
        Err(ProvenanceError::NoSupport)
    }

    pub(super) fn unlock(
        &self,
        _: usize,
        _: &mut dyn FnMut(&str) -> Result<Vec<u8>, ProvenanceError>,
    ) -> Result<Secret, ProvenanceError> {
        let Self(()) = self;
        Err(ProvenanceError::NoSupport)
    }

    pub(super) fn verify(
        &self,
        _: &[u8],
        _: &[u8],
        _: i64,
    ) -> Result<(Vec<String>, String), ProvenanceError> {
        let Self(()) = self;
        Err(ProvenanceError::NoSupport)
    }
}

impl Secret {
    pub(super) fn sign(&self, _: &[u8], _: i64) -> Result<Vec<u8>, ProvenanceError> {
        let Self(()) = self;
        Err(ProvenanceError::NoSupport)
    }
}
