//! Programs run in a sealed environment: cleared variables, a home of their own, a time limit.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a run left behind.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The exit status; `None` when the run was ended by a signal or the time limit.
    pub code: Option<i32>,
    /// Whether the time limit ended it.
    pub timed_out: bool,
}

impl Outcome {
    /// The text after `Error: ` on standard error, up to its end, without the last newline; `None`
    /// when there is no such line.
    pub fn error_text(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.stderr).into_owned();
        let start = if text.starts_with("Error: ") {
            "Error: ".len()
        } else {
            text.find("\nError: ")? + "\nError: ".len()
        };
        let tail = &text[start..];
        Some(tail.strip_suffix('\n').unwrap_or(tail).to_owned())
    }
}

/// A program to run, with nothing of the caller's environment but `PATH`.
#[derive(Debug)]
pub struct Sealed {
    program: PathBuf,
    folder: Option<PathBuf>,
    variables: Vec<(String, String)>,
    limit: Duration,
}

impl Sealed {
    /// Prepares to run `program`; the time limit is two minutes.
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_path_buf(),
            folder: None,
            variables: Vec::new(),
            limit: Duration::from_mins(2),
        }
    }

    /// The `ichor` program of this build.
    pub fn ichor() -> Self {
        Self::new(crate::place::ichor())
    }

    /// Runs in this folder instead of an empty one.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_path_buf());
        self
    }

    /// Sets one more variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Ends the run after this time.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Runs with these arguments and no standard input.
    ///
    /// # Panics
    /// When the program cannot be started or a temporary folder cannot be made.
    pub fn run<I, S>(&self, arguments: I) -> Outcome
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let home = tempfile::tempdir().expect("a temporary home");
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", home.path())
            .env("XDG_CACHE_HOME", home.path().join("cache"))
            .env("TMPDIR", home.path())
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            // No cluster may answer, whatever the machine has.
            .env("KUBECONFIG", home.path().join("none"))
            .env("HELM_NAMESPACE", "default")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.as_deref().unwrap_or(home.path()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{} does not start: {error}", self.program.display());
        });
        let stdout = child.stdout.take().map(drain);
        let stderr = child.stderr.take().map(drain);
        let began = Instant::now();
        let mut timed_out = false;
        let mut pause = Duration::from_micros(200);
        let status: Option<ExitStatus> = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if began.elapsed() > self.limit => {
                    timed_out = true;
                    drop(child.kill());
                    break child.wait().ok();
                }
                Ok(None) => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
                Err(_) => break None,
            }
        };
        let join = |handle: Option<thread::JoinHandle<Vec<u8>>>| {
            handle.and_then(|handle| handle.join().ok()).unwrap_or_default()
        };
        Outcome {
            stdout: join(stdout),
            stderr: join(stderr),
            code: status.and_then(|status| status.code()),
            timed_out,
        }
    }
}

fn drain(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        drop(from.read_to_end(&mut all));
        all
    })
}
