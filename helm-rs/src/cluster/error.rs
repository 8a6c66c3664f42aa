//! What can go wrong at a cluster.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::Status;

/// Why a call failed.
///
/// `Display` is what client-go's errors print for the same answer, so Helm's messages can quote it.
/// Decide on [`Self::kind`], never on the text.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClusterError {
    /// The server answered, and refused.
    #[error("{}", status.message)]
    Status {
        /// What it said.
        status: Box<Status>,
        /// How long it asks to wait (`Retry-After`, `details.retryAfterSeconds`).
        retry_after: Option<Duration>,
    },
    /// No answer came, so the request may or may not have taken effect.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// An answer came that is not what the API promises.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The client cannot be set up: kubeconfig, certificates, credential plugins.
    #[error("{reason}")]
    Configuration {
        /// What is wrong.
        reason: String,
    },
    /// The request would address something else than one object: nothing is sent.
    #[error("{reason}")]
    Address {
        /// What is wrong, in client-go's words.
        reason: String,
    },
    /// The cluster behind the trait cannot do this, and says so rather than guess.
    #[error("not simulated: {what}")]
    Unsupported {
        /// What it cannot do.
        what: String,
    },
    /// A rehearsal was killed at an earlier call; nothing works any more.
    #[error("killed at API call {call}")]
    Killed {
        /// The call, counted from 1.
        call: usize,
    },
}

/// An answer that is not what the API promises.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct ReadError {
    /// What does not fit.
    pub reason: String,
}

/// A request that got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportError {
    /// The HTTP method, such as `GET`.
    pub method: String,
    /// The URL.
    pub url: String,
    /// What happened.
    pub problem: TransportProblem,
}

/// What kept an answer from coming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportProblem {
    /// Nobody listens at `address` (`IP:PORT`).
    Refused {
        /// Who was called.
        address: String,
    },
    /// The name does not resolve.
    Lookup {
        /// The host.
        host: String,
        /// The resolver's words.
        reason: String,
    },
    /// The connection could not be made for another reason.
    Connect {
        /// `dial tcp …`, or what TLS says.
        reason: String,
    },
    /// The connection was closed before an answer came.
    Closed,
    /// The connection was reset.
    Reset {
        /// Both ends, `IP:PORT->IP:PORT`, where known.
        ends: String,
    },
    /// The server's certificate is not good.
    Certificate {
        /// Why, in Go's words where they are known.
        reason: String,
    },
    /// No answer within the given time.
    Timeout,
    /// Anything else.
    Other {
        /// What the HTTP client says.
        reason: String,
    },
}

impl std::error::Error for TransportError {}

impl TransportError {
    /// Whether it failed before the request was sent, so that it took no effect.
    pub const fn before_sending(&self) -> bool {
        matches!(
            self.problem,
            TransportProblem::Refused { .. }
                | TransportProblem::Lookup { .. }
                | TransportProblem::Connect { .. }
                | TransportProblem::Certificate { .. }
        )
    }
}

impl fmt::Display for TransportError {
    /// As Go's `url.Error` prints it: `Get "https://…": dial tcp …: connect: connection refused`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut method = self.method.to_ascii_lowercase();
        if let Some(first) = method.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        write!(f, "{method} {}: {}", crate::gotext::quote(&self.url), self.problem)
    }
}

impl fmt::Display for TransportProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { address } => {
                write!(f, "dial tcp {address}: connect: connection refused")
            }
            Self::Lookup { host, reason } => write!(f, "dial tcp: lookup {host}: {reason}"),
            Self::Connect { reason } | Self::Other { reason } => f.write_str(reason),
            Self::Closed => f.write_str("EOF"),
            Self::Reset { ends } if ends.is_empty() => {
                f.write_str("read: connection reset by peer")
            }
            Self::Reset { ends } => write!(f, "read tcp {ends}: read: connection reset by peer"),
            Self::Certificate { reason } => {
                write!(f, "tls: failed to verify certificate: {reason}")
            }
            Self::Timeout => f.write_str(
                "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
            ),
        }
    }
}

/// What to decide on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// 404: the object, or the resource itself, is not there.
    NotFound,
    /// 409 on a create.
    AlreadyExists,
    /// 409: another version of the object is there, or another manager owns a field.
    Conflict,
    /// 422: the object does not pass validation.
    Invalid,
    /// 400.
    BadRequest,
    /// 403: the identity may not, or admission refuses.
    Forbidden,
    /// 401: the server does not know the identity; an expired token ends here.
    Unauthorized,
    /// 410: a version or page that the server no longer has.
    Expired,
    /// 429, still so after the retries.
    TooManyRequests,
    /// 408, 504 or a server-side time limit: it may have taken effect.
    Timeout,
    /// 503: the server, or the one behind an API group, is down.
    Unavailable,
    /// 500 and other 5xx.
    Internal,
    /// Another answer that is not a success.
    OtherStatus,
    /// No answer; see [`ClusterError::Transport`].
    Transport,
    /// An answer that is not what the API promises.
    Read,
    /// The client cannot be set up.
    Configuration,
    /// The cluster cannot do this.
    Unsupported,
    /// Killed by the test or rehearsal.
    Killed,
}

impl ErrorKind {
    /// A word for reports: `not found`, `conflict`, ….
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::AlreadyExists => "already exists",
            Self::Conflict => "conflict",
            Self::Invalid => "invalid",
            Self::BadRequest => "bad request",
            Self::Forbidden => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::Expired => "expired",
            Self::TooManyRequests => "too many requests",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Internal => "server error",
            Self::OtherStatus => "refused",
            Self::Transport => "no answer",
            Self::Read => "unreadable answer",
            Self::Configuration => "configuration",
            Self::Unsupported => "not simulated",
            Self::Killed => "killed",
        }
    }
}

impl From<Status> for ClusterError {
    fn from(status: Status) -> Self {
        let retry_after = status.retry_after_seconds().map(Duration::from_secs);
        Self::Status { status: Box::new(status), retry_after }
    }
}

impl ClusterError {
    /// The error for a `Status` object.
    pub fn from_status_object(object: &Value) -> Self {
        Self::from(Status::from_object(object))
    }

    /// What the server said; `None` when it did not answer.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status { status, .. } => Some(status),
            _ => None,
        }
    }

    /// What to decide on. The reason counts where it is known, else the code, as in client-go
    /// (`IsNotFound` and its siblings).
    pub fn kind(&self) -> ErrorKind {
        let status = match self {
            Self::Status { status, .. } => status,
            Self::Transport(_) => return ErrorKind::Transport,
            Self::Read(_) => return ErrorKind::Read,
            Self::Configuration { .. } => return ErrorKind::Configuration,
            Self::Address { .. } => return ErrorKind::Invalid,
            Self::Unsupported { .. } => return ErrorKind::Unsupported,
            Self::Killed { .. } => return ErrorKind::Killed,
        };
        match status.reason.as_str() {
            "NotFound" => return ErrorKind::NotFound,
            "AlreadyExists" => return ErrorKind::AlreadyExists,
            "Conflict" => return ErrorKind::Conflict,
            "Invalid" => return ErrorKind::Invalid,
            "BadRequest" => return ErrorKind::BadRequest,
            "Forbidden" => return ErrorKind::Forbidden,
            "Unauthorized" => return ErrorKind::Unauthorized,
            "Expired" | "Gone" => return ErrorKind::Expired,
            "TooManyRequests" => return ErrorKind::TooManyRequests,
            "Timeout" | "ServerTimeout" => return ErrorKind::Timeout,
            "ServiceUnavailable" => return ErrorKind::Unavailable,
            "InternalError" => return ErrorKind::Internal,
            _ => {}
        }
        match status.code {
            400 => ErrorKind::BadRequest,
            401 => ErrorKind::Unauthorized,
            403 => ErrorKind::Forbidden,
            404 => ErrorKind::NotFound,
            409 => ErrorKind::Conflict,
            410 => ErrorKind::Expired,
            422 => ErrorKind::Invalid,
            408 | 504 => ErrorKind::Timeout,
            429 => ErrorKind::TooManyRequests,
            503 => ErrorKind::Unavailable,
            500.. => ErrorKind::Internal,
            _ => ErrorKind::OtherStatus,
        }
    }

    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// Whether the request may have taken effect although it failed: a write must be read back.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Transport(error) => !error.before_sending(),
            _ => matches!(
                self.kind(),
                ErrorKind::Timeout | ErrorKind::Internal | ErrorKind::Unavailable | ErrorKind::Read
            ),
        }
    }

    /// `the server could not find the requested resource`: what a path gets that nothing serves.
    pub fn no_such_resource() -> Self {
        Self::from(Status::generic(404, "GET", "", "", ""))
    }
}
