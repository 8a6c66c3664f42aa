//! Copying folders of large files that are mostly zeros.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::{Error, Result};

/// Copies a folder with everything in it, holes for zeros: etcd keeps 64 MiB of log ahead.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(Error::file("cannot make the folder", to))?;
    for entry in fs::read_dir(from).map_err(Error::file("cannot read", from))? {
        let entry = entry.map_err(Error::file("cannot read", from))?;
        let source = entry.path();
        let target = to.join(entry.file_name());
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            copy_sparse(&source, &target).map_err(Error::file("cannot copy", &source))?;
        }
    }
    Ok(())
}

fn copy_sparse(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = File::open(from)?;
    let mut target = File::create(to)?;
    target.set_permissions(source.metadata()?.permissions())?;
    let mut block = vec![0_u8; 64 * 1024];
    let zeros = block.clone();
    let mut length = 0;
    loop {
        let count = source.read(&mut block)?;
        let Some(bytes) = block.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        length += count as u64;
        // Compared as slices: byte by byte is a hundred times slower in a debug build.
        if Some(bytes) == zeros.get(..count) {
            target.seek(SeekFrom::Start(length))?;
        } else {
            target.write_all(bytes)?;
        }
    }
    // A hole at the end is part of the file, too.
    target.set_len(length)
}
