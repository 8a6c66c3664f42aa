//! Where things are: the repository, the shared inputs, the built program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::Missing;

/// The repository's root folder.
///
/// # Panics
/// Never: this crate lies two folders below it.
pub fn repository() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        here.ancestors().nth(2).expect("tests/support is two folders down").to_path_buf()
    })
}

/// The shared inputs (charts, values): `ICHOR_SHARED_DIR`, else `../shared` beside the repository.
///
/// # Errors
/// [`Missing`] when there is no such folder.
pub fn shared() -> Result<PathBuf, Missing> {
    let folder = std::env::var_os("ICHOR_SHARED_DIR")
        .map_or_else(|| repository().join("../shared"), PathBuf::from);
    folder.canonicalize().map_err(|_| Missing {
        what: "shared inputs".into(),
        why: format!("no folder {} (ICHOR_SHARED_DIR names another)", folder.display()),
    })
}

/// The files of one folder of the shared inputs whose name ends in `suffix`, sorted by name.
///
/// # Errors
/// [`Missing`] when the folder is absent or holds no such file.
pub fn shared_files(folder: &str, suffix: &str) -> Result<Vec<PathBuf>, Missing> {
    let folder = shared()?.join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    files.retain(|path| path.to_string_lossy().ends_with(suffix));
    files.sort();
    if files.is_empty() {
        return Err(Missing {
            what: format!("shared {suffix} files"),
            why: format!("none in {}", folder.display()),
        });
    }
    Ok(files)
}

/// The `ichor` program of this build: `ICHOR_BIN`, else the one in the target folder that the
/// running test belongs to, built first so that it is never stale.
///
/// # Panics
/// When it cannot be built: the tests would compare nothing.
pub fn ichor() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(given) = std::env::var_os("ICHOR_BIN") {
            return given.into();
        }
        let test = std::env::current_exe().expect("the path of the running test");
        // target/PROFILE/deps/TEST for tests, target/PROFILE/PROGRAM for programs.
        let folder = test
            .ancestors()
            .skip(1)
            .find(|folder| folder.file_name().is_some_and(|name| name != "deps"))
            .expect("the test lies in a target folder");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        // The features of the whole workspace, as its tests are built with: those of one package alone
        // would compile all dependencies once more.
        let arguments = ["build", "--quiet", "--workspace", "--bin", "ichor"];
        build.current_dir(repository()).args(arguments);
        // What cargo tells this test about its own package would be news to build scripts, and all
        // that depends on them compiled again, once for each package whose tests come here.
        for (name, _) in std::env::vars_os() {
            let is_of_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_"]
                .iter()
                .any(|start| name.to_string_lossy().starts_with(start));
            if is_of_package {
                build.env_remove(name);
            }
        }
        if folder.file_name().is_some_and(|name| name == "release") {
            build.arg("--release");
        }
        if let Some(target) = folder.parent() {
            build.arg("--target-dir").arg(target);
        }
        let status = build.status().expect("cargo runs");
        assert!(status.success(), "building the ichor program failed");
        folder.join("ichor")
    })
}
