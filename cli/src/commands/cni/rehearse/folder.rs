//! `--output-dir`: what a rehearsal leaves, whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use goyaml::Limits;
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use serde_json::Value;
use takeover::plan::Plan;
use takeover::report::{Form, render};
use takeover::run::backup::is_backup;
use takeover::snapshot::{Stage, Timeline, is_own_record};

use crate::error::CommandError;
use crate::file;

/// What this program calls itself in a snapshot.
const PROGRAM: &str = concat!("ichor ", env!("CARGO_PKG_VERSION"));
/// Files that hold Secrets are the user's alone.
const PRIVATE: u32 = 0o600;
/// The umask decides.
const PUBLIC: u32 = 0o666;

fn fail(directory: &Path, why: impl std::fmt::Display) -> CommandError {
    CommandError::new(format_args!("--output-dir {}: {why}", directory.display()))
}

/// Whether a folder is new or empty, and can be made.
///
/// # Errors
/// It is not, or it cannot.
pub(super) fn check(directory: &Path) -> Result<(), CommandError> {
    match fs::read_dir(directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(fail(directory, "this folder is not empty"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail(directory, io_text(&error))),
    }
    let beside = file::directory(&file::real(directory));
    file::temporary(0o700)
        .tempdir_in(&beside)
        .map(drop)
        .map_err(|error| fail(directory, format_args!("{}: {}", beside.display(), io_text(&error))))
}

/// Writes the folder: beside its place, then moved there. Gives the files that are worth naming,
/// each with what it is.
///
/// # Errors
/// Something cannot be written; nothing is left then.
pub(super) fn write(
    directory: &Path,
    stage: &Stage,
    timeline: &Timeline,
    plan: &Plan,
) -> Result<Vec<(PathBuf, &'static str)>, CommandError> {
    let place = file::real(directory);
    let io = |error: io::Error| fail(directory, io_text(&error));
    let text = |error: &dyn std::error::Error| fail(directory, error_chain(&error));
    let half = file::temporary(0o777).tempdir_in(file::directory(&place)).map_err(io)?;
    let create = |name: &str, mode: u32| new_file(&half.path().join(name), mode).map_err(io);
    let put = |name: &str, mode: u32, text: &str| {
        create(name, mode)?.write_all(text.as_bytes()).map_err(io)
    };
    let after = BufWriter::new(create("after.ndjson", PRIVATE)?);
    drop(stage.write(PROGRAM, after).map_err(io)?);
    for folder in ["records", "backup"] {
        fs::create_dir(half.path().join(folder)).map_err(io)?;
    }
    for object in stage.objects() {
        let folder = match &*object {
            object if is_own_record(object) => "records",
            object if is_backup(object) => "backup",
            _ => continue,
        };
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        // The server takes no name with a slash in it; a snapshot may say what it likes.
        if name.is_empty() || name.contains(['/', '\\', '\0']) {
            return Err(fail(directory, format_args!("{name:?} is no name of an object")));
        }
        put(&format!("{folder}/{name}.yaml"), PRIVATE, &yaml(&object)?)?;
    }
    put("timeline.json", PUBLIC, &format!("{:#}\n", timeline.to_json()))?;
    put("timeline.txt", PUBLIC, &timeline.to_text())?;
    for (name, form) in
        [("plan.json", Form::Json), ("report.html", Form::Html), ("report.md", Form::Markdown)]
    {
        put(name, PUBLIC, &render(plan, form).map_err(|error| text(&error))?)?;
    }
    fs::rename(half.path(), &place).map_err(io)?;
    // It is no temporary folder any more.
    drop(half.keep());
    let files = [
        ("after.ndjson", "the cluster afterwards, a snapshot itself"),
        ("records/", "ichor's records: ichor release list --from"),
        ("backup/", "the backups of the records before"),
        ("timeline.txt", "every call; timeline.json too"),
        ("plan.json", "the plan"),
        ("report.html", "the plan to look at; report.md too"),
    ];
    Ok(files.map(|(name, what)| (directory.join(name), what)).to_vec())
}

fn new_file(path: &Path, mode: u32) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

fn yaml(object: &Value) -> Result<String, CommandError> {
    let value = goyaml::json::from_json(object.to_string().as_bytes(), &Limits::default())
        .map_err(CommandError::new)?;
    goyaml::to_yaml(&value).map_err(CommandError::new)
}
