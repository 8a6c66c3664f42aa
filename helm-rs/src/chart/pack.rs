//! Writing a chart archive.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::model::File;

/// Packs files into a `.tgz` that Helm loads, below a folder of the chart's name.
///
/// The bytes depend on names and contents alone: no time of day, no owner.
///
/// # Errors
/// When a name does not fit into an archive.
pub fn pack(chart: &str, files: &[File]) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.data.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, format!("{chart}/{}", file.name), &*file.data)?;
    }
    let mut gzip = archive.into_inner()?;
    gzip.flush()?;
    gzip.finish()
}
