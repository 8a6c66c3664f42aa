//! Helm's own packages behind a long-lived process: `tests/tools/helm-driver`.
//!
//! One line of JSON each way. The processes are kept in a pool, so that threads do not wait for
//! each other; one that dies or does not answer in time is dropped and a new one is started.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::Missing;

/// Why the driver gave no answer. Helm's own errors are answers, see [`Answer::error`].
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The process cannot be started or its pipe broke.
    #[error("the driver does not run")]
    Process(#[source] std::io::Error),
    /// No answer in time; the process was ended.
    #[error("no answer to operation {operation} within {limit:?}")]
    Timeout {
        /// The operation asked for.
        operation: String,
        /// The time given.
        limit: Duration,
    },
    /// The process ended instead of answering.
    #[error("the driver died in operation {operation}")]
    Died {
        /// The operation asked for.
        operation: String,
    },
    /// The request was wrong, or the answer was not JSON.
    #[error("operation {operation} is at fault: {fault}")]
    Fault {
        /// The operation asked for.
        operation: String,
        /// What the driver said.
        fault: String,
    },
}

/// One answer. Fields that hold bytes are decoded on access.
#[derive(Debug, Clone)]
pub struct Answer(pub Value);

impl Answer {
    /// A field of bytes.
    pub fn bytes(&self, field: &str) -> Option<Vec<u8>> {
        STANDARD.decode(self.0.get(field)?.as_str()?).ok()
    }

    /// The rendered or encoded text.
    pub fn output(&self) -> Vec<u8> {
        self.bytes("output").unwrap_or_default()
    }

    /// Helm's error text; a panic inside Helm reads `panic: …`.
    pub fn error(&self) -> Option<String> {
        if let Some(panic) = self.0.get("panic").and_then(Value::as_str) {
            return Some(format!("panic: {panic}"));
        }
        self.bytes("error").map(|text| String::from_utf8_lossy(&text).into_owned())
    }

    /// Output or error, whichever the operation gave.
    ///
    /// # Errors
    /// Helm's error text.
    pub fn result(&self) -> Result<Vec<u8>, String> {
        self.error().map_or_else(|| Ok(self.output()), Err)
    }
}

/// Base64 for a request's field of bytes.
pub fn encode(bytes: impl AsRef<[u8]>) -> Value {
    Value::String(STANDARD.encode(bytes))
}

struct Process {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A pool of driver processes, safe to use from many threads.
pub struct Driver {
    program: PathBuf,
    limit: Duration,
    idle: Mutex<Vec<Process>>,
}

impl Driver {
    /// The driver of this test process.
    ///
    /// # Errors
    /// [`Missing`] when it cannot be built.
    pub fn shared() -> Result<&'static Self, Missing> {
        static SHARED: OnceLock<Result<Driver, Missing>> = OnceLock::new();
        SHARED
            .get_or_init(|| crate::peer::program("helm-driver").map(Self::new))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// A pool over one program; nothing is started yet.
    pub fn new(program: PathBuf) -> Self {
        Self { program, limit: Duration::from_mins(1), idle: Mutex::new(Vec::new()) }
    }

    /// Asks one question. `request` is an object; `op` and `id` are added to it.
    ///
    /// # Errors
    /// [`DriverError`] when there is no answer; the next call starts a new process.
    pub fn call(&self, operation: &str, mut request: Value) -> Result<Answer, DriverError> {
        let fault = |fault: String| DriverError::Fault { operation: operation.to_owned(), fault };
        if let Value::Object(fields) = &mut request {
            fields.insert("op".into(), json!(operation));
            fields.insert("id".into(), json!(1));
        } else {
            return Err(fault("the request is not an object".into()));
        }
        let taken = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut process = match taken {
            Some(process) => process,
            None => self.start()?,
        };
        let mut line = request.to_string();
        line.push('\n');
        process.input.write_all(line.as_bytes()).map_err(DriverError::Process)?;
        let line = process.lines.recv_timeout(self.limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                DriverError::Timeout { operation: operation.to_owned(), limit: self.limit }
            }
            RecvTimeoutError::Disconnected => DriverError::Died { operation: operation.to_owned() },
        })?;
        let value: Value = serde_json::from_str(&line).map_err(|error| fault(error.to_string()))?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        match value.get("fault").and_then(Value::as_str) {
            Some(text) => Err(fault(text.to_owned())),
            None => Ok(Answer(value)),
        }
    }

    fn start(&self) -> Result<Process, DriverError> {
        let mut child = Command::new(&self.program)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(DriverError::Process)?;
        let closed = || DriverError::Process(std::io::ErrorKind::BrokenPipe.into());
        let input = child.stdin.take().ok_or_else(closed)?;
        let output = child.stdout.take().ok_or_else(closed)?;
        let (sender, lines) = channel();
        // The thread ends with the process, or when nobody listens any more.
        drop(thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        }));
        Ok(Process { child, input, lines })
    }
}
