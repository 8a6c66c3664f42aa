//! `--post-renderer`: a program that the manifests go through (`pkg/postrender/exec.go`).

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use helm_rs::gotext::{io_text, quote};

use crate::environment::Environment;
use crate::error::CommandError;

/// The program's full path: in `PATH` when the name has no slash.
pub(crate) fn find(program: &str, environment: &Environment) -> Result<PathBuf, CommandError> {
    let quoted = quote(program);
    let fail = |cause: &str| {
        CommandError::new(format_args!(
            "invalid argument {quoted} for \"--post-renderer\" flag: unable to find binary at \
             {program}: exec: {quoted}: {cause}"
        ))
    };
    if program.contains('/') {
        let path = Path::new(program);
        return match executable(path) {
            Ok(()) => std::path::absolute(path).map_err(|error| fail(&io_text(&error))),
            Err(cause) => Err(fail(&cause)),
        };
    }
    let path = environment.variable("PATH").cloned().unwrap_or_default();
    std::env::split_paths(&path)
        // One that depends on the working folder is not trusted, as in Go.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|candidate| executable(candidate).is_ok())
        .map_or_else(|| Err(fail("executable file not found in $PATH")), Ok)
}

fn executable(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path)
        .map_err(|error| format!("stat {}: {}", path.display(), io_text(&error)))?;
    if metadata.is_dir() {
        return Err("is a directory".to_owned());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if metadata.permissions().mode() & 0o111 == 0 {
            return Err("permission denied".to_owned());
        }
    }
    Ok(())
}

/// What the program prints when it is given `input`. The error is Helm's text, which begins
/// with what it was for.
pub(crate) fn run(program: &Path, arguments: &[String], input: &[u8]) -> Result<Vec<u8>, Vec<u8>> {
    let fail = |errors: &[u8], cause: &str| {
        let mut text =
            format!("error while running command {}. error output:\n", program.display())
                .into_bytes();
        text.extend_from_slice(errors);
        text.extend_from_slice(b": ");
        text.extend_from_slice(cause.as_bytes());
        text
    };
    let started = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|error| {
        fail(b"", &format!("fork/exec {}: {}", program.display(), io_text(&error)))
    })?;
    let stdin = child.stdin.take();
    let finished = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program may stop reading early; what it prints counts.
            if let Some(mut stdin) = stdin {
                drop(stdin.write_all(input));
            }
        });
        child.wait_with_output()
    });
    let output = finished.map_err(|error| fail(b"", &io_text(&error)))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(fail(&output.stderr, &status_text(output.status)))
}

/// `exec.ExitError`
fn status_text(status: ExitStatus) -> String {
    if let Some(code) = status.code() {
        return format!("exit status {code}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        let name = match status.signal() {
            Some(1) => "hangup",
            Some(2) => "interrupt",
            Some(3) => "quit",
            Some(4) => "illegal instruction",
            Some(5) => "trace/breakpoint trap",
            Some(6) => "aborted",
            Some(7) => "bus error",
            Some(8) => "floating point exception",
            Some(9) => "killed",
            Some(10) => "user defined signal 1",
            Some(11) => "segmentation fault",
            Some(12) => "user defined signal 2",
            Some(13) => "broken pipe",
            Some(14) => "alarm clock",
            Some(15) => "terminated",
            Some(other) => return format!("signal: signal {other}"),
            None => "unknown",
        };
        let dumped = if status.core_dumped() { " (core dumped)" } else { "" };
        format!("signal: {name}{dumped}")
    }
    #[cfg(not(unix))]
    "killed".to_owned()
}
