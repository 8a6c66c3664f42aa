//! The one error type of this crate.

use std::path::PathBuf;

/// Why a control plane, or something that stands on it, could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that the plane is made of is not built; tests skip on this.
    #[error("the test peer {name} is not built (run `hack/tools {name}`): {reason}")]
    MissingPeer {
        /// Name of the binary.
        name: String,
        /// What `hack/tools` said, or where was looked.
        reason: String,
    },
    /// Something asked of the plane is not possible on this machine or cluster; tests skip on this.
    #[error("not possible here: {reason}")]
    NotPossible {
        /// What is missing.
        reason: String,
    },
    /// A file or folder could not be read or written.
    #[error("{what} {}", path.display())]
    File {
        /// What was tried, such as `cannot write`.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A server ended or did not become ready in time.
    #[error("{server} {problem}; the end of its log:\n{log}")]
    Server {
        /// Name of the server.
        server: String,
        /// What is wrong.
        problem: String,
        /// The last lines of its log.
        log: String,
    },
    /// A certificate or key could not be made or read.
    #[error("cannot make the certificate for {subject}")]
    Certificate {
        /// Common name of the certificate.
        subject: String,
        /// What the certificate library says.
        source: rcgen::Error,
    },
    /// A TLS configuration could not be made.
    #[error("cannot set up TLS: {reason}")]
    Tls {
        /// What the TLS library says.
        reason: String,
    },
    /// The API server refused a request or could not be reached.
    #[error("{what}")]
    Api {
        /// What was asked for.
        what: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// A document that this crate or the API server wrote is not what it should be.
    #[error("{what} is not valid")]
    Document {
        /// Which document.
        what: String,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// Something did not come true in time.
    #[error("{what} did not happen within {seconds} s; last seen: {last}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long, in seconds.
        seconds: u64,
        /// The last state seen.
        last: String,
    },
    /// A command that a test runs ended with an error.
    #[error("{command} ended with {status}:\n{output}")]
    Command {
        /// Program and arguments.
        command: String,
        /// Exit status.
        status: String,
        /// What it wrote on both streams.
        output: String,
    },
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// True when a test should be skipped rather than fail: the machine lacks something.
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::MissingPeer { .. } | Self::NotPossible { .. })
    }

    /// Says what was asked of the API server.
    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source: Box::new(source) }
    }

    /// Says what was done with which file.
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }

    /// The error with its causes, one after the other, as a person reads it.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
