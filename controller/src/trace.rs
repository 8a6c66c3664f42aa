//! Traces: one span for each look at a TalosCluster, and one for each Job that is made.
//!
//! They are sent by OTLP over HTTP, as JSON (`opentelemetry.proto.collector.trace.v1`, the form that
//! every collector takes beside protobuf). It is written here, on `serde_json` and the HTTP client
//! that charts are fetched with: two kinds of span are less than the crates that would carry them.
//!
//! A collector that does not answer holds nothing up: spans wait in a queue of bounded length, and
//! those that find it full are dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::NAME;
use crate::watch::causes;

/// Spans that wait.
const QUEUE: usize = 2048;
/// Spans that are sent at once.
const BATCH: usize = 512;
/// How long spans are gathered.
const GATHERED: Duration = Duration::from_secs(5);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// `SPAN_KIND_INTERNAL`
const INTERNAL: u8 = 1;
/// `SPAN_KIND_CLIENT`
const CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR`
const ERROR: u8 = 2;

/// Where traces go.
#[derive(Clone)]
pub struct Traces {
    /// The collector's address for traces, its path included.
    pub url: String,
    /// Headers that it asks for; they may hold credentials.
    pub headers: Vec<(String, String)>,
    /// What this program is called there.
    pub service: String,
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traces").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A span.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: &'static str,
    kind: u8,
    start: Timestamp,
    attributes: Vec<(&'static str, Value)>,
}

impl Span {
    /// A span that begins now.
    pub(crate) fn begin(name: &'static str, now: Timestamp) -> Self {
        let (trace, id) = (random(), random());
        Self { trace, id, parent: None, name, kind: INTERNAL, start: now, attributes: Vec::new() }
    }

    /// A span of a request within this one.
    pub(crate) fn within(&self, name: &'static str, now: Timestamp) -> Self {
        let mut span = Self::begin(name, now);
        (span.trace, span.parent, span.kind) = (self.trace, Some(self.id), CLIENT);
        span
    }

    /// Says something of it: a text or a number.
    pub(crate) fn attribute(&mut self, key: &'static str, value: impl Into<Value>) {
        self.attributes.push((key, value.into()));
    }

    fn json(&self, end: Timestamp, error: Option<&str>) -> Value {
        let attributes: Vec<Value> =
            self.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        let mut span = json!({
            "traceId": hex(&self.trace),
            "spanId": hex(&self.id),
            "name": self.name,
            "kind": self.kind,
            "startTimeUnixNano": self.start.as_nanosecond().to_string(),
            "endTimeUnixNano": end.max(self.start).as_nanosecond().to_string(),
            "attributes": attributes,
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = hex(parent).into();
        }
        if let Some(error) = error {
            span["status"] = json!({ "code": ERROR, "message": error });
        }
        span
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    let value = match value {
        // 64-bit numbers are texts in protobuf's JSON.
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::String(text) => json!({ "stringValue": text }),
        other => json!({ "stringValue": other.to_string() }),
    };
    json!({ "key": key, "value": value })
}

fn hex(bytes: &[u8]) -> String {
    let digits = |byte: &u8| [byte >> 4, byte & 15];
    bytes.iter().flat_map(digits).filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Random bytes; without any, zeros, which a collector refuses and nothing else depends on.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = [0; N];
    }
    bytes
}

/// Takes spans and sends them.
pub(crate) struct Tracer {
    queue: Option<mpsc::Sender<Value>>,
    dropped: Arc<AtomicU64>,
}

impl Tracer {
    /// A tracer, with the task that sends, which ends when the tracer is dropped and all is sent.
    pub(crate) fn new(traces: Option<Traces>, identity: &str) -> (Self, Option<JoinHandle<()>>) {
        let dropped = Arc::new(AtomicU64::new(0));
        let Some(traces) = traces else { return (Self { queue: None, dropped }, None) };
        // Done once in a process; a second time changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = match reqwest::Client::builder().timeout(PATIENCE).build() {
            Ok(client) => client,
            Err(error) => {
                tracing::error!(error = causes(&error), "no traces are sent");
                return (Self { queue: None, dropped }, None);
            }
        };
        let (queue, spans) = mpsc::channel(QUEUE);
        let resource = json!({ "attributes": [
            attribute("service.name", &traces.service.clone().into()),
            attribute("service.version", &env!("CARGO_PKG_VERSION").into()),
            attribute("service.instance.id", &identity.into()),
        ] });
        let task = tokio::spawn(send(spans, client, traces, resource));
        (Self { queue: Some(queue), dropped }, Some(task))
    }

    /// Ends a span; with an error when what it is of failed.
    pub(crate) fn end(&self, span: &Span, now: Timestamp, error: Option<&str>) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(span.json(now, error)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spans that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn send(
    mut spans: mpsc::Receiver<Value>,
    client: reqwest::Client,
    traces: Traces,
    resource: Value,
) {
    while let Some(first) = spans.recv().await {
        let mut batch = vec![first];
        let gathered = tokio::time::sleep(GATHERED);
        let mut gathered = std::pin::pin!(gathered);
        while batch.len() < BATCH {
            tokio::select! {
                () = &mut gathered => break,
                span = spans.recv() => match span {
                    Some(span) => batch.push(span),
                    None => break,
                },
            }
        }
        let count = batch.len();
        let body = json!({ "resourceSpans": [{
            "resource": resource,
            "scopeSpans": [{ "scope": { "name": NAME }, "spans": batch }],
        }] });
        if let Err(error) = post(&client, &traces, &body).await {
            tracing::warn!(error, count, "spans could not be sent");
        }
    }
}

async fn post(client: &reqwest::Client, traces: &Traces, body: &Value) -> Result<(), String> {
    let mut request =
        client.post(&traces.url).header("content-type", "application/json").body(body.to_string());
    for (name, value) in &traces.headers {
        request = request.header(name, value);
    }
    let answer = request.send().await.map_err(|error| causes(&error.without_url()))?;
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(format!("the collector answers {status}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_as_a_collector_reads_it() {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let end = start.saturating_add(jiff::SignedDuration::from_millis(5)).unwrap();
        let outer = Span::begin("reconcile", start);
        let mut span = outer.within("create Job", start);
        span.attribute("k8s.job.name", "ichor-cni");
        span.attribute("ichor.attempt", 2);
        let json = span.json(end, Some("no"));
        assert_eq!(json["traceId"], hex(&outer.trace));
        assert_eq!(json["parentSpanId"], hex(&outer.id));
        assert_eq!(json["traceId"].as_str().map(str::len), Some(32));
        assert_eq!(json["spanId"].as_str().map(str::len), Some(16));
        assert_eq!(json["startTimeUnixNano"], "1767225600000000000");
        assert_eq!(json["endTimeUnixNano"], "1767225600005000000");
        assert_eq!(json["kind"], 3);
        assert_eq!(json["status"], json!({ "code": 2, "message": "no" }));
        assert_eq!(
            json["attributes"],
            json!([
                { "key": "k8s.job.name", "value": { "stringValue": "ichor-cni" } },
                { "key": "ichor.attempt", "value": { "intValue": "2" } },
            ])
        );
        assert!(outer.json(end, None).get("status").is_none());
    }

    /// A collector that takes what it is sent: the spans arrive, in one request, with its headers.
    #[tokio::test]
    async fn spans_reach_a_collector() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let headers = vec![("x-key".to_owned(), "secret".to_owned())];
        let traces = Traces { url, headers, service: "ichor".to_owned() };
        assert!(!format!("{traces:?}").contains("secret"));
        let (tracer, task) = Tracer::new(Some(traces), "pod-1");
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let outer = Span::begin("reconcile", now);
        tracer.end(&outer.within("create Job", now), now, None);
        tracer.end(&outer, now, Some("failed"));
        assert_eq!(tracer.dropped(), 0);
        drop(tracer);
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut text = Vec::new();
        let body = loop {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).await.unwrap();
            assert!(count > 0, "the request is cut short");
            text.extend_from_slice(&part[..count]);
            let whole = String::from_utf8_lossy(&text).into_owned();
            if let Some((head, body)) = whole.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str::<Value>(body)
            {
                assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
                assert!(head.to_lowercase().contains("x-key: secret"), "{head}");
                break body;
            }
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        let spans = &body["resourceSpans"][0];
        assert_eq!(spans["resource"]["attributes"][2]["value"]["stringValue"], "pod-1");
        let spans = &spans["scopeSpans"][0]["spans"];
        assert_eq!(
            (&spans[0]["name"], &spans[1]["name"]),
            (&json!("create Job"), &json!("reconcile"))
        );
        assert_eq!(spans[0]["parentSpanId"], spans[1]["spanId"]);
        task.unwrap().await.unwrap();
    }

    /// No collector at all: spans are dropped when the queue is full, and nothing waits.
    #[tokio::test]
    async fn a_full_queue_drops() {
        let (queue, _spans) = mpsc::channel(1);
        let tracer = Tracer { queue: Some(queue), dropped: Arc::default() };
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for _ in 0..3 {
            tracer.end(&Span::begin("reconcile", now), now, None);
        }
        assert_eq!(tracer.dropped(), 2);
    }
}
