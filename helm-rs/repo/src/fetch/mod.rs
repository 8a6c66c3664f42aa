//! Getting bytes from repositories (`pkg/getter/httpgetter.go`).
//!
//! A [`Transport`] sends one request and follows nothing; what follows redirects, and decides who
//! sees a password, is [`get`], here in one place:
//!
//! - a password goes to the server that it was given for, and to no other, unless the user said so;
//! - nobody is led from HTTPS to plain HTTP.

#[cfg(feature = "network")]
mod http;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::url::{self, Url, UrlError};

#[cfg(feature = "network")]
pub use http::Http;

/// How long Helm waits for a repository's answer; a registry gets as long for one that is small.
pub const TIMEOUT: Duration = Duration::from_mins(2);

/// What Go says where a server speaks plain HTTP and was asked in HTTPS.
pub const PLAIN_HTTP: &str = "http: server gave HTTP response to HTTPS client";

/// Redirects that are followed, as by Go's client.
const MAX_REDIRECTS: usize = 10;

/// How servers are told apart from impostors, and clients from strangers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// A file with the client's certificate; counts with a key only.
    pub cert_file: String,
    /// A file with the certificate's key.
    pub key_file: String,
    /// A file with the authorities that count instead of the system's.
    pub ca_file: String,
    /// Whether any certificate will do.
    pub insecure: bool,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `HEAD`, `POST`, `PUT`.
    pub method: &'static str,
    /// Where to; `http` or `https`.
    pub url: String,
    /// Headers by name.
    pub headers: Vec<(&'static str, String)>,
    /// What is sent.
    pub body: Vec<u8>,
    /// Bytes that the answer's body may have.
    pub limit: u64,
    /// How long it may take, its answer read to the end.
    pub timeout: Duration,
}

impl Request {
    /// A request without a body, which may take [`TIMEOUT`].
    pub const fn new(method: &'static str, url: String, limit: u64) -> Self {
        Self { method, url, headers: Vec::new(), body: Vec::new(), limit, timeout: TIMEOUT }
    }
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// What the server says of the status; empty where it says nothing.
    pub reason: String,
    /// Headers by name in small letters.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Response {
    /// A header by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What sends requests, each to one server, and follows no redirect.
pub trait Transport {
    /// Sends a request and reads the answer whole.
    ///
    /// # Errors
    /// [`FetchError`] when there is no answer, or more of it than the request allows.
    fn send(&self, tls: &Tls, request: &Request) -> Result<Response, FetchError>;

    /// How long it has been there: what bounds the time of several requests together. Who cannot
    /// tell bounds each request alone.
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// What is there without a network.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNetwork;

impl Transport for NoNetwork {
    fn send(&self, _: &Tls, request: &Request) -> Result<Response, FetchError> {
        Err(FetchError::NoNetwork { url: url::shown(&request.url) })
    }
}

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The address is of a kind that this program does not speak.
    #[error("scheme {} not supported", helm_rs::gotext::quote(scheme))]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// The server did not answer, or broke off.
    #[error("{operation} {}: {reason}", helm_rs::gotext::quote(url))]
    Transport {
        /// The method as Go's client writes it: `Get`.
        operation: String,
        /// The address, without a password.
        url: String,
        /// What went wrong, in Go's words where they are known.
        reason: String,
    },
    /// The server answered with another status than 200.
    #[error("failed to fetch {url} : {status} {reason}")]
    Status {
        /// The address, without a password.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the server says of it.
        reason: String,
    },
    /// The answer was not whole in time.
    #[error("{operation} {}: no whole answer within the limit of {}", helm_rs::gotext::quote(url), seconds(*limit))]
    TooLong {
        /// The method as Go's client writes it: `Get`.
        operation: String,
        /// The address, without a password.
        url: String,
        /// The limit.
        limit: Duration,
    },
    /// There is more than an answer may have.
    #[error("{url}: more than the limit of {limit} bytes")]
    TooLarge {
        /// The address, without a password.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// The server leads from HTTPS to plain HTTP.
    #[error("{from}: redirected from HTTPS to plain HTTP ({to}): refused")]
    Downgrade {
        /// Where the redirect was.
        from: String,
        /// Where it leads.
        to: String,
    },
    /// The server leads on and on.
    #[error("{url}: stopped after {MAX_REDIRECTS} redirects")]
    Redirects {
        /// Where it began.
        url: String,
    },
    /// A file of certificates or keys is wrong.
    #[error("can't create TLS config for client: {reason}")]
    Tls {
        /// What is wrong.
        reason: String,
    },
    /// This build cannot fetch.
    #[error("{url}: this program was built without network access")]
    NoNetwork {
        /// The address.
        url: String,
    },
}

/// A time limit in words.
pub(crate) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

/// The words of an HTTP status (`http.StatusText`).
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Request Entity Too Large",
        418 => "I'm a teapot",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

/// Who asks, and who may know it.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The user.
    pub username: String,
    /// The password.
    pub password: String,
    /// Whether every server gets them, as with `--pass-credentials`.
    pub everywhere: bool,
    /// The address that they are for.
    pub repository: String,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("repository", &self.repository).finish_non_exhaustive()
    }
}

/// The header that carries a user and a password.
pub(crate) fn basic(username: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{username}:{password}")))
}

/// What is fetched, and how.
#[derive(Clone, Debug)]
pub struct Get<'a> {
    /// The address.
    pub url: &'a str,
    /// The kinds of content that are wanted; empty for any.
    pub accept: &'a str,
    /// Who asks.
    pub credentials: &'a Credentials,
    /// Certificates.
    pub tls: &'a Tls,
    /// Bytes that the answer may have.
    pub limit: u64,
    /// What the program calls itself.
    pub user_agent: &'a str,
    /// How long each request may take.
    pub timeout: Duration,
}

/// Fetches an address, over redirects.
///
/// # Errors
/// [`FetchError`].
pub fn get(transport: &dyn Transport, wanted: &Get<'_>) -> Result<Vec<u8>, FetchError> {
    let mut at = Url::parse(wanted.url.as_bytes())?;
    let for_repository = Url::parse(wanted.credentials.repository.as_bytes())?;
    for _ in 0..=MAX_REDIRECTS {
        if !matches!(at.scheme.as_slice(), b"http" | b"https") {
            return Err(FetchError::Scheme { scheme: url::part(&at.scheme) });
        }
        let (address, own) = without_user(&at);
        let mut request = Request::new("GET", address.clone(), wanted.limit);
        request.timeout = wanted.timeout;
        request.headers.push(("user-agent", wanted.user_agent.to_owned()));
        if !wanted.accept.is_empty() {
            request.headers.push(("accept", wanted.accept.to_owned()));
        }
        let known = wanted.credentials;
        let may_know = known.everywhere || url::same_origin(&for_repository, &at);
        if may_know && !known.username.is_empty() && !known.password.is_empty() {
            request.headers.push(("authorization", basic(&known.username, &known.password)));
        } else if let Some(own) = own {
            request.headers.push(("authorization", own));
        }
        let response = transport.send(wanted.tls, &request)?;
        match (response.status, response.header("location")) {
            (200, _) => return Ok(response.body),
            (301 | 302 | 303 | 307 | 308, Some(location)) => {
                let next = at.resolve(&Url::parse(location.as_bytes())?);
                check_step(&at, &next)?;
                at = next;
            }
            (status, _) => {
                let reason = match response.reason.as_str() {
                    "" => reason(status).to_owned(),
                    said => said.to_owned(),
                };
                return Err(FetchError::Status { url: url::shown(wanted.url), status, reason });
            }
        }
    }
    Err(FetchError::Redirects { url: url::shown(wanted.url) })
}

/// Refuses a step from HTTPS to anything else.
pub(crate) fn check_step(from: &Url, to: &Url) -> Result<(), FetchError> {
    if from.scheme == b"https" && to.scheme != b"https" {
        let shown = |url: &Url| url::shown(&url::part(&url.to_text()));
        return Err(FetchError::Downgrade { from: shown(from), to: shown(to) });
    }
    Ok(())
}

/// An address without the user in it, and the header that stands for the user.
fn without_user(at: &Url) -> (String, Option<String>) {
    let mut plain = at.clone();
    let header = plain.user.take().map(|user| {
        basic(&url::part(user.name()), &url::part(user.password().unwrap_or_default()))
    });
    // What a server is asked for has no fragment.
    plain.fragment.clear();
    (url::part(&plain.to_text()), header)
}
