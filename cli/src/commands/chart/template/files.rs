//! `--output-dir`: one file per template (`writeToFile` in `pkg/action/install.go` and
//! `cmd/helm/template.go`).

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use helm_rs::chart::Crd;
use helm_rs::gopath;
use helm_rs::gotext::io_text;
use helm_rs::manifest::Manifest;

use crate::error::CommandError;
use crate::ui::Ui;

/// A folder that manifests are written to.
pub(super) struct Folder {
    /// As the user gave it: where CRDs go.
    base: String,
    /// Where everything else goes.
    path: String,
    written: BTreeSet<String>,
}

impl Folder {
    pub(super) fn new(base: &str, release_name: Option<&str>) -> Self {
        let path = match release_name {
            Some(name) => gopath::join(base, name),
            None => base.to_owned(),
        };
        Self { base: base.to_owned(), path, written: BTreeSet::new() }
    }

    /// Hooks are appended to a file that is there already, whoever wrote it.
    pub(super) fn write_hook(
        &mut self,
        name: &str,
        text: &[u8],
        ui: &mut Ui,
    ) -> Result<(), CommandError> {
        let append = Path::new(&self.path).join(name).exists() || self.written.contains(name);
        if append {
            self.written.insert(name.to_owned());
        }
        write(&self.path, name, text, append, ui)
    }
}

/// Writes CRDs and manifests. The first of a file makes the file anew, the others are appended.
pub(super) fn write_rendering(
    folder: &Folder,
    crds: &[Crd<'_>],
    manifests: &[Manifest],
    ui: &mut Ui,
) -> Result<(), CommandError> {
    let mut written = BTreeSet::new();
    for crd in crds {
        let name = crd.filename();
        let append = written.contains(&name);
        write(&folder.base, &name, &crd.file.data, append, ui)?;
        written.insert(name);
    }
    for manifest in manifests {
        let append = !written.insert(manifest.name.clone());
        write(&folder.path, &manifest.name, &manifest.content, append, ui)?;
    }
    Ok(())
}

fn write(
    directory: &str,
    name: &str,
    text: &[u8],
    append: bool,
    ui: &mut Ui,
) -> Result<(), CommandError> {
    let path = format!("{directory}/{name}");
    let fail = |operation: &str, path: &str, error: &io::Error| {
        CommandError::new(format_args!("{operation} {path}: {}", io_text(error)))
    };
    let parent = PathBuf::from(&path).parent().map(Path::to_owned).unwrap_or_default();
    fs::create_dir_all(&parent)
        .map_err(|error| fail("mkdir", &parent.display().to_string(), &error))?;
    let mut options = OpenOptions::new();
    if append {
        options.append(true);
    } else {
        options.write(true).create(true).truncate(true);
    }
    let content = [b"---\n# Source: ", name.as_bytes(), b"\n", text, b"\n"].concat();
    let mut file = options.open(&path).map_err(|error| fail("open", &path, &error))?;
    file.write_all(&content).map_err(|error| fail("write", &path, &error))?;
    ui.result(format!("wrote {path}\n"))
}
