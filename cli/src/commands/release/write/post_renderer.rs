//! `--post-renderer`: a program that changes the manifest (`pkg/postrender/exec.go`).

use std::env::split_paths;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;

use clap::Args;
use helm_rs::action::PostRenderer;
use helm_rs::gotext::quote;

use crate::environment::Environment;
use crate::error::CommandError;

/// The program and its arguments.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rendering")]
pub(crate) struct PostRendererFlags {
    /// A program that gets the manifest and gives another one; no shell is involved
    #[arg(long, value_name = "PROGRAM")]
    post_renderer: Option<String>,
    /// An argument for it (repeatable)
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    post_renderer_args: Vec<String>,
}

impl PostRendererFlags {
    /// Finds the program.
    pub(crate) fn find(
        &self,
        environment: &Environment,
    ) -> Result<Option<Arc<dyn PostRenderer>>, CommandError> {
        let Some(wanted) = self.post_renderer.as_deref().filter(|wanted| !wanted.is_empty()) else {
            return Ok(None);
        };
        let program = look_up(wanted, environment).map_err(|why| {
            CommandError::new(format_args!(
                "invalid argument {} for \"--post-renderer\" flag: unable to find binary at \
                 {wanted}: exec: {}: {why}",
                quote(wanted),
                quote(wanted)
            ))
        })?;
        Ok(Some(Arc::new(Program { program, arguments: self.post_renderer_args.clone() })))
    }
}

/// `exec.LookPath`
fn look_up(wanted: &str, environment: &Environment) -> Result<PathBuf, &'static str> {
    let is_program = |path: &Path| {
        path.metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    let found = if wanted.contains('/') {
        let path = PathBuf::from(wanted);
        if !path.exists() {
            return Err("no such file or directory");
        }
        if !is_program(&path) {
            return Err("permission denied");
        }
        Some(path)
    } else {
        let folders = environment.variable("PATH").cloned().unwrap_or_default();
        split_paths(&folders)
            // One that depends on the working folder is not trusted, as in Go.
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(wanted))
            .find(|path| is_program(path))
    };
    let found = found.ok_or("executable file not found in $PATH")?;
    Ok(std::path::absolute(&found).unwrap_or(found))
}

#[derive(Debug)]
struct Program {
    program: PathBuf,
    arguments: Vec<String>,
}

impl PostRenderer for Program {
    fn run(&self, manifest: &[u8]) -> Result<Vec<u8>, String> {
        let failed = |stderr: &[u8], why: &str| {
            format!(
                "error while running command {}. error output:\n{}: {why}",
                self.program.display(),
                String::from_utf8_lossy(stderr)
            )
        };
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(b"", &format!("cannot be started: {error}")))?;
        let input = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // A program that does not read all of it is its own affair.
            scope.spawn(|| input.map(|mut input| drop(input.write_all(manifest))));
            child.wait_with_output()
        });
        let output = output.map_err(|error| failed(b"", &error.to_string()))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(&output.stderr, &status(output.status)))
        }
    }
}

/// `os.ProcessState.String`
fn status(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal: {signal}"),
        (None, None) => status.to_string(),
    }
}
