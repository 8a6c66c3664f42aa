//! Helm and ichor side by side: each file of `scenarios/` is played by both.
#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test program")]

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use artefacts::keys;
use artefacts::registry::Registry;
use artefacts::scenario::{Stage, play};
use artefacts::server::Server;
use libtest_mimic::{Arguments, Failed, Trial};
use test_support::peer;

/// `user:secret`, as htpasswd has it.
const PASSWORD: &str = "user:$2a$05$VuCoLxD1OPRn9uy2cG5sYO85YcK5rmuvDwdCPLSkUpToDhf1OL4Xm";

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    if let Err(missing) = peer::helm().and_then(|_| peer::program("registry")) {
        missing.excuse();
        return ExitCode::SUCCESS;
    }
    // They share one server, whose folder is that of the one that plays.
    arguments.test_threads = Some(1);
    let folder = tempfile::tempdir().expect("a folder");
    keys::write(folder.path());
    let stage = Arc::new(Stage {
        server: Server::start(folder.path()),
        registry: Some(Registry::start(None).expect("a registry")),
        locked: Some(Registry::start(Some(PASSWORD)).expect("a registry")),
        keys: folder.path().to_owned(),
    });
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<_> =
        fs::read_dir(scenarios).expect("a folder").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let stage = Arc::clone(&stage);
        Trial::test(name, move || {
            let text = fs::read_to_string(&file)?;
            play(&text, &stage).map_err(Failed::from)
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    drop(stage);
    if conclusion.has_failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
