//! Sending a request until it is answered or there is no hope.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::{Client, Config};
use tokio::sync::{RwLock, Semaphore};

use super::LiveOptions;
use super::answer::{Answer, refusal};
use super::credentials::{NoClient, can_renew, client, refused};
use super::problem::{innermost, problem};
use super::retry::{Call, Repeat};
use crate::cluster::{ClusterError, ErrorKind, ReadError, TransportError, TransportProblem};

/// A client with its limits.
pub(super) struct Sender {
    config: Config,
    /// Made when the first request is sent.
    client: RwLock<Option<Client>>,
    /// The server's URL without a slash at its end.
    url: String,
    slots: Semaphore,
    options: LiveOptions,
    random: AtomicU64,
    /// Whether the server ever answered.
    reached: AtomicBool,
}

/// A good answer, read to its end or not yet.
enum Outcome {
    Whole(Answer),
    Open(Response<Body>),
}

impl Sender {
    pub(super) fn new(config: Config, options: LiveOptions) -> Self {
        Self {
            url: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            client: RwLock::new(None),
            config,
            slots: Semaphore::new(options.concurrency.max(1)),
            random: AtomicU64::new(options.seed),
            options,
            reached: AtomicBool::new(false),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn default_namespace(&self) -> &str {
        &self.config.default_namespace
    }

    pub(super) const fn options(&self) -> &LiveOptions {
        &self.options
    }

    /// Sends a request, again where that is right, until it has an answer.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, ClusterError> {
        match self.persist(call, false).await? {
            Outcome::Whole(answer) => Ok(answer),
            Outcome::Open(response) => self.whole(call, response).await,
        }
    }

    /// Sends a read as [`Self::send`] does, and leaves the answer's body to be read.
    pub(super) async fn send_open(&self, call: &Call) -> Result<Response<Body>, ClusterError> {
        match self.persist(call, true).await? {
            Outcome::Open(response) => Ok(response),
            // Only writes find their answer elsewhere.
            Outcome::Whole(answer) => Ok(Response::new(Body::from(answer.body))),
        }
    }

    async fn persist(&self, call: &Call, open: bool) -> Result<Outcome, ClusterError> {
        let clock = &self.options.clock;
        let started = clock.elapsed();
        let (mut tries, mut waited) = (0, Duration::ZERO);
        // Whether an earlier try may have taken effect; whether credentials were made anew.
        let (mut unsure, mut renewed) = (false, false);
        loop {
            let error = match self.once(call, open).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            tries += 1;
            match error.kind() {
                // As client-go does: a plugin or a file may have new credentials by now.
                ErrorKind::Unauthorized if !renewed && can_renew(&self.config) => {
                    renewed = true;
                    *self.client.write().await = None;
                    continue;
                }
                ErrorKind::NotFound
                    if unsure && matches!(call.repeat, Repeat::Delete | Repeat::DeleteThis) =>
                {
                    return Ok(Outcome::Whole(Answer::deleted()));
                }
                ErrorKind::AlreadyExists | ErrorKind::Conflict if unsure => {
                    let lasted = clock.elapsed().saturating_sub(started);
                    if let Some(answer) = self.own_success(call, &error, lasted).await {
                        return Ok(Outcome::Whole(answer));
                    }
                }
                _ => {}
            }
            let reached = self.reached.load(Ordering::Relaxed);
            let policy = &self.options.retry;
            let random = self.random();
            let Some(wait) = policy.wait(call, &error, tries, waited, reached, random) else {
                return Err(error);
            };
            unsure |= error.may_have_taken_effect();
            clock.sleep(wait).await;
            waited = waited.saturating_add(wait);
        }
    }

    /// Whether a refusal comes from the success of an earlier try of the same call, whose answer
    /// was lost: then that is the answer.
    async fn own_success(
        &self,
        call: &Call,
        error: &ClusterError,
        lasted: Duration,
    ) -> Option<Answer> {
        let path = match (call.repeat, error.kind()) {
            (Repeat::Create, ErrorKind::AlreadyExists) => {
                format!("{}/{}", call.bare_path(), call.about.1)
            }
            (Repeat::Versioned, ErrorKind::Conflict) => call.bare_path().to_owned(),
            _ => return None,
        };
        let Outcome::Whole(answer) = self.once(&Call::get(path), false).await.ok()? else {
            return None;
        };
        let live = answer.value().ok()?;
        let own = if call.repeat == Repeat::Create {
            // Both times are the server's. Object times are cut to seconds.
            let slack = lasted.saturating_add(Duration::from_secs(2));
            answer.date?.checked_sub(slack).is_ok_and(|earliest| call.created(&live, earliest))
        } else {
            call.written(&live)
        };
        own.then_some(answer)
    }

    /// Sends a request once.
    async fn once(&self, call: &Call, open: bool) -> Result<Outcome, ClusterError> {
        // The semaphore is never closed.
        let _slot = self.slots.acquire().await.ok();
        let answer = async {
            let response = self.open(call).await?;
            if open {
                return Ok(Outcome::Open(response));
            }
            self.whole(call, response).await.map(Outcome::Whole)
        };
        match tokio::time::timeout(self.options.timeout, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(self.transport(call, TransportProblem::Timeout)),
        }
    }

    /// Reads an answer to its end.
    async fn whole(&self, call: &Call, response: Response<Body>) -> Result<Answer, ClusterError> {
        let date = header(&response, "date")
            .and_then(|date| jiff::fmt::rfc2822::parse(date).ok())
            .map(|date| date.timestamp());
        let body = Limited::new(response.into_body(), self.options.answer_size);
        match body.collect().await {
            Ok(body) => Ok(Answer { body: body.to_bytes(), date }),
            Err(error) => Err(self.broken(call, &*error)),
        }
    }

    /// Sends a request and reads the answer's head; a refusal's body as well.
    async fn open(&self, call: &Call) -> Result<Response<Body>, ClusterError> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(&call.path)
            .header("accept", call.accept)
            .header("user-agent", &self.options.user_agent);
        let body = match &call.body {
            Some((content_type, body)) => {
                request = request.header("content-type", *content_type);
                Body::from(body.clone())
            }
            None => Body::empty(),
        };
        let request = request
            .body(body)
            .map_err(|error| ReadError { reason: format!("the request's URL: {error}") })?;
        let client = self.client(call).await?;
        let response = match client.send(request).await {
            Ok(response) => response,
            Err(error) => return Err(self.unanswered(call, &error).await),
        };
        self.reached.store(true, Ordering::Relaxed);
        self.warn(&response);
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        let content_type = header(&response, "content-type").unwrap_or_default().to_owned();
        let retry_after = header(&response, "retry-after")
            .and_then(|seconds| seconds.parse().ok())
            .map(Duration::from_secs);
        let body = Limited::new(response.into_body(), self.options.answer_size).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let about = (call.about.0.as_str(), call.about.1.as_str());
        let unread = call.raw && !content_type.starts_with("text/");
        let body = if unread { &[][..] } else { &body };
        let status = refusal(code, call.method, about, &content_type, body);
        let retry_after =
            retry_after.or_else(|| status.retry_after_seconds().map(Duration::from_secs));
        Err(ClusterError::Status { status: Box::new(status), retry_after })
    }

    /// The client, made when there is none.
    async fn client(&self, call: &Call) -> Result<Client, ClusterError> {
        if let Some(client) = &*self.client.read().await {
            return Ok(client.clone());
        }
        let mut slot = self.client.write().await;
        if let Some(client) = &*slot {
            return Ok(client.clone());
        }
        match client(&self.config).await {
            Ok(client) => Ok(slot.insert(client).clone()),
            Err(NoClient::Configuration(error)) => Err(error),
            Err(NoClient::Credentials(problem)) => Err(self.transport(call, problem)),
        }
    }

    fn warn(&self, response: &Response<Body>) {
        let Some(warnings) = &self.options.warnings else { return };
        for warning in response.headers().get_all("warning") {
            if let Some(text) = warning.to_str().ok().and_then(warning_text) {
                warnings(&text);
            }
        }
    }

    fn transport(&self, call: &Call, problem: TransportProblem) -> ClusterError {
        TransportError {
            method: call.method.to_owned(),
            url: format!("{}{}", self.url, call.path),
            problem,
        }
        .into()
    }

    /// The error for an answer whose body breaks off.
    fn broken(&self, call: &Call, error: &(dyn std::error::Error + 'static)) -> ClusterError {
        if let Some(problem) = problem(error) {
            return self.transport(call, problem);
        }
        if error.to_string().contains("length limit") {
            let limit = self.options.answer_size;
            let reason = format!("the server's answer has more than {limit} bytes");
            return ReadError { reason }.into();
        }
        self.transport(call, TransportProblem::Other { reason: "unexpected EOF".to_owned() })
    }

    async fn unanswered(&self, call: &Call, error: &kube::Error) -> ClusterError {
        let problem = match error {
            kube::Error::Auth(error) => Some(refused(error, &self.config)),
            kube::Error::Service(error) => match error.downcast_ref::<kube::client::AuthError>() {
                Some(error) => Some(refused(error, &self.config)),
                None => problem(&**error),
            },
            error => error.source().and_then(problem),
        };
        let problem = match problem {
            Some(TransportProblem::Refused { .. }) => {
                TransportProblem::Refused { address: self.address().await }
            }
            Some(TransportProblem::Lookup { reason, .. }) => TransportProblem::Lookup {
                host: self.config.cluster_url.host().unwrap_or_default().to_owned(),
                reason,
            },
            Some(TransportProblem::Connect { reason }) => TransportProblem::Connect {
                reason: format!("dial tcp {}: {reason}", self.address().await),
            },
            Some(problem) => problem,
            None => TransportProblem::Other { reason: innermost(error) },
        };
        self.transport(call, problem)
    }

    /// The address that was dialled.
    async fn address(&self) -> String {
        let url = &self.config.cluster_url;
        let host = url.host().unwrap_or_default();
        let default = if url.scheme_str() == Some("http") { 80 } else { 443 };
        let port = url.port_u16().unwrap_or(default);
        let named = format!("{host}:{port}");
        match tokio::net::lookup_host(&named).await.map(|mut addresses| addresses.next()) {
            Ok(Some(address)) => address.to_string(),
            _ => named,
        }
    }

    /// A number in 0..1 (SplitMix64).
    fn random(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut bits = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Answer {
    /// What a delete answers whose first answer was lost.
    fn deleted() -> Self {
        let status = r#"{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success"}"#;
        Self { body: Bytes::from_static(status.as_bytes()), date: None }
    }
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// The text of a warning header: `299 - "text"`.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.strip_prefix("299 ")?.split_once('"')?.1;
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => return Some(text),
            '\\' => text.extend(characters.next()),
            character => text.push(character),
        }
    }
    None
}
