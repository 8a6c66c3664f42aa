//! Writing a snapshot.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{About, End, hexadecimal};

/// A snapshot that is being written.
///
/// It is whole only when [`Writer::finish`] came back without an error.
pub struct Writer<W> {
    out: W,
    digest: Sha256,
    objects: usize,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins with what the cluster is.
    ///
    /// # Errors
    /// Those of the output.
    pub fn new(out: W, about: &About) -> io::Result<Self> {
        let mut writer = Self { out, digest: Sha256::new(), objects: 0, line: Vec::new() };
        writer.line(about)?;
        Ok(writer)
    }

    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value)?;
        self.line.push(b'\n');
        self.digest.update(&self.line);
        self.out.write_all(&self.line)
    }

    /// Adds an object.
    ///
    /// # Errors
    /// Those of the output.
    pub fn object(&mut self, object: &Value) -> io::Result<()> {
        self.objects += 1;
        self.line(object)
    }

    /// The number of objects so far.
    pub const fn objects(&self) -> usize {
        self.objects
    }

    /// Ends it: `unread` is what could not be read, `notes` what is not as it was. Returns the
    /// output, which the caller may have to end too.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, unread: Vec<String>, notes: Vec<String>) -> io::Result<W> {
        let sha256 = hexadecimal(&std::mem::take(&mut self.digest).finalize());
        let end = End::new(self.objects, sha256, unread, notes);
        self.line(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
