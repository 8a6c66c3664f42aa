//! Forwarding one request, with its fault.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::record::RequestRecord;
use super::rule::{Decision, Fault, Paused};
use super::{State, WatchOrder};
use crate::client::pem_certificates;
use crate::error::{Error, Result};
use crate::https::{Body, BoxError};

/// The API server behind the proxy.
#[derive(Debug)]
pub(super) struct Upstream {
    address: String,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// A connection that is cut on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the connection is cut on purpose")]
struct Cut;

impl Upstream {
    pub(super) fn new(address: &str, ca: &str) -> Result<Self> {
        let failed = |error: &dyn std::fmt::Display| Error::Tls { reason: error.to_string() };
        let mut roots = RootCertStore::empty();
        for certificate in pem_certificates(ca)? {
            roots.add(CertificateDer::from(certificate)).map_err(|error| failed(&error))?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_only()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { address: address.to_owned(), client })
    }
}

/// Answers one request of a client.
pub(super) async fn handle(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let path = parts.uri.path().to_owned();
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let (place, decision) = state.arrive(RequestRecord::new(&parts.method, &path, &query, &body));
    let is_watch = state.record(place).is_some_and(|record| record.verb == "watch");

    let mut stale_group = None;
    let mut cut_after = false;
    let mut pause_after = None;
    match decision {
        Decision::Pass => {}
        Decision::PauseBefore(sender) => pause(&state, place, &sender).await?,
        Decision::PauseAfter(sender) => pause_after = Some(sender),
        Decision::Fault(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Decision::Fault(Fault::CutBefore) => return Err(Cut.into()),
        Decision::Fault(Fault::CutAfter) => cut_after = true,
        Decision::Fault(Fault::GroupDown { group }) => {
            let prefix = format!("/apis/{group}");
            if path == prefix || path.starts_with(&format!("{prefix}/")) {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return Ok(refuse(&state, place, status, is_watch, None));
            }
            stale_group = (path == "/apis").then_some(group);
        }
        Decision::Fault(fault) => {
            let (status, retry_after) = match fault {
                Fault::TooManyRequests { retry_after } => {
                    (StatusCode::TOO_MANY_REQUESTS, Some(retry_after))
                }
                Fault::Busy => (StatusCode::TOO_MANY_REQUESTS, None),
                Fault::Conflict => (StatusCode::CONFLICT, None),
                Fault::InternalError => (StatusCode::INTERNAL_SERVER_ERROR, None),
                Fault::ExpiredToken => (StatusCode::UNAUTHORIZED, None),
                Fault::Expired => (StatusCode::GONE, None),
                _ => (StatusCode::SERVICE_UNAVAILABLE, None),
            };
            return Ok(refuse(&state, place, status, is_watch, retry_after));
        }
    }

    let mut forwarded = Request::from_parts(parts, Full::new(body));
    let target = format!("{}{}", state.upstream.address, path_and_query(&path, &query));
    *forwarded.uri_mut() = target.parse::<Uri>()?;
    forwarded.headers_mut().remove(HOST);
    // Bodies are looked into here.
    forwarded.headers_mut().remove(ACCEPT_ENCODING);
    let answer = state.upstream.client.request(forwarded).await?;
    let status = answer.status().as_u16();
    if cut_after {
        // The whole answer, so that the request has surely taken effect.
        answer.into_body().collect().await?;
        state.answered(place, status);
        return Err(Cut.into());
    }
    state.answered(place, status);
    if let Some(sender) = pause_after {
        pause(&state, place, &sender).await?;
    }
    let (parts, body) = answer.into_parts();
    if let Some(group) = stale_group {
        let body = body.collect().await?.to_bytes();
        let mut answer = Response::from_parts(parts, full(mark_stale(&body, &group)));
        answer.headers_mut().remove("content-length");
        answer.headers_mut().remove("etag");
        return Ok(answer);
    }
    let body =
        if is_watch { watch_body(&state, body) } else { body.map_err(Into::into).boxed_unsync() };
    Ok(Response::from_parts(parts, body))
}

fn path_and_query(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Waits until the test releases the request.
async fn pause(
    state: &State,
    place: usize,
    sender: &mpsc::UnboundedSender<Paused>,
) -> Result<(), BoxError> {
    let Some(request) = state.record(place) else { return Ok(()) };
    let (release, released) = oneshot::channel();
    // A test that has dropped its receiver wants no more pauses.
    drop(sender.send(Paused { request, release: Some(release) }));
    match released.await {
        Ok(true) => Err(Cut.into()),
        _ => Ok(()),
    }
}

/// Answers with a Status; a watch that is to expire gets it as an event of a good answer.
fn refuse(
    state: &State,
    place: usize,
    code: StatusCode,
    is_watch: bool,
    retry_after: Option<u32>,
) -> Response<Body> {
    let status = status_object(code, retry_after);
    let as_event = is_watch && code == StatusCode::GONE;
    let (code, body) = if as_event {
        (StatusCode::OK, format!("{}\n", json!({"type": "ERROR", "object": status})))
    } else {
        (code, status.to_string())
    };
    state.answered(place, code.as_u16());
    let mut response = Response::new(full(body.into_bytes()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The Status object of an error, with the reasons of `apimachinery/pkg/api/errors/errors.go`.
fn status_object(code: StatusCode, retry_after: Option<u32>) -> Value {
    let (reason, message) = match code {
        StatusCode::TOO_MANY_REQUESTS => ("TooManyRequests", "too many requests"),
        StatusCode::CONFLICT => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        StatusCode::INTERNAL_SERVER_ERROR => ("InternalError", "an error on the server"),
        StatusCode::UNAUTHORIZED => ("Unauthorized", "Unauthorized"),
        StatusCode::GONE => ("Expired", "too old resource version"),
        _ => ("ServiceUnavailable", "the server is currently unable to handle the request"),
    };
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if let Some(seconds) = retry_after {
        status["details"] = json!({"retryAfterSeconds": seconds});
    }
    status
}

/// A watch's events until an order ends it.
fn watch_body(state: &State, body: Incoming) -> Body {
    let mut orders = state.watches.subscribe();
    orders.mark_unchanged();
    let frames = stream::unfold(Some((body, orders)), |running| async move {
        let (mut body, mut orders) = running?;
        tokio::select! {
            frame = body.frame() => {
                let frame = frame?.map_err(BoxError::from);
                Some((frame, Some((body, orders))))
            }
            changed = orders.changed() => {
                // The sender lives as long as the proxy; without it the watch is over as well.
                changed.ok()?;
                let order = orders.borrow().1;
                match order {
                    WatchOrder::Cut => Some((Err(Cut.into()), None)),
                    WatchOrder::Expire => {
                        let status = status_object(StatusCode::GONE, None);
                        let event = format!("{}\n", json!({"type": "ERROR", "object": status}));
                        Some((Ok(Frame::data(event.into())), None))
                    }
                    WatchOrder::GoOn => Some((Ok(Frame::data(Bytes::new())), Some((body, orders)))),
                }
            }
        }
    });
    StreamBody::new(frames.boxed()).boxed_unsync()
}

/// Marks a group in aggregated discovery as the server does when its backend is away
/// (`kube-aggregator/pkg/apiserver/handler_discovery.go`): versions known, resources not.
fn mark_stale(document: &[u8], group: &str) -> Vec<u8> {
    let Ok(mut discovery) = serde_json::from_slice::<Value>(document) else {
        return document.to_vec();
    };
    let items = discovery.get_mut("items").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter(|item| item["metadata"]["name"] == group) {
        let versions = item.get_mut("versions").and_then(Value::as_array_mut);
        for version in versions.into_iter().flatten() {
            version["freshness"] = json!("Stale");
            if let Some(version) = version.as_object_mut() {
                version.remove("resources");
            }
        }
    }
    discovery.to_string().into_bytes()
}

fn full(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed_unsync()
}
