//! Watches: the server's stream of events.

use std::time::Duration;

use bytes::BytesMut;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;

use super::path::{self, Query};
use super::retry::Call;
use super::send::Sender;
use crate::cluster::{
    ClusterError, ReadError, Reply, Resource, TransportError, TransportProblem, Watch, WatchEvent,
    WatchQuery,
};

/// Bytes of one event: more than an object may have in etcd, by far.
const EVENT_SIZE: usize = 64 << 20;

/// How long a watch runs when the caller does not say; servers choose 30 to 60 minutes, in which
/// a dead connection would not be noticed.
const SECONDS: u32 = 290;

struct LiveWatch {
    body: Body,
    buffer: BytesMut,
    /// Bytes of `buffer` that hold no line end.
    searched: usize,
    /// How long to wait for the next bytes: the server ends the watch before.
    patience: Duration,
    method: &'static str,
    url: String,
}

/// Opens a watch; opening is tried again as any read is.
pub(super) async fn start(
    sender: &Sender,
    resource: &Resource,
    query: &WatchQuery,
) -> Result<Box<dyn Watch>, ClusterError> {
    let seconds = if query.timeout_seconds == 0 { SECONDS } else { query.timeout_seconds };
    let mut parameters = Query::default();
    parameters.add("watch", "true");
    parameters.add("allowWatchBookmarks", "true");
    parameters.add("timeoutSeconds", &seconds.to_string());
    parameters.add_some("labelSelector", &query.labels);
    parameters.add_some("fieldSelector", &query.fields);
    parameters.add_some("resourceVersion", &query.resource_version);
    let path = parameters.on(&path::collection(resource, &query.namespace));
    let call = Call::get(path).on_resource(resource);
    let response = sender.send_open(&call).await?;
    Ok(Box::new(LiveWatch {
        body: response.into_body(),
        buffer: BytesMut::new(),
        searched: 0,
        patience: Duration::from_secs(u64::from(seconds) + 30),
        method: call.method,
        url: format!("{}{}", sender.url(), call.path),
    }))
}

impl LiveWatch {
    fn line(&mut self) -> Option<BytesMut> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        if let Some(at) = unsearched.iter().position(|byte| *byte == b'\n') {
            let line = self.buffer.split_to(self.searched + at + 1);
            self.searched = 0;
            return Some(line);
        }
        self.searched = self.buffer.len();
        None
    }

    fn transport(&self, problem: TransportProblem) -> ClusterError {
        TransportError { method: self.method.to_owned(), url: self.url.clone(), problem }.into()
    }
}

impl Watch for LiveWatch {
    fn next(&mut self) -> Reply<'_, Option<WatchEvent>> {
        Box::pin(async move {
            loop {
                if let Some(line) = self.line() {
                    if line.trim_ascii().is_empty() {
                        continue;
                    }
                    return event(&line).map(Some);
                }
                if self.buffer.len() > EVENT_SIZE {
                    let reason = format!("an event of the watch has more than {EVENT_SIZE} bytes");
                    return Err(ReadError { reason }.into());
                }
                match tokio::time::timeout(self.patience, self.body.frame()).await {
                    Err(_) => return Err(self.transport(TransportProblem::Timeout)),
                    Ok(None) if self.buffer.is_empty() => return Ok(None),
                    Ok(None) => return Err(self.transport(TransportProblem::Closed)),
                    Ok(Some(Ok(frame))) => {
                        if let Ok(data) = frame.into_data() {
                            self.buffer.extend_from_slice(&data);
                        }
                    }
                    Ok(Some(Err(error))) => {
                        let problem =
                            super::problem::problem(&error).unwrap_or(TransportProblem::Closed);
                        return Err(self.transport(problem));
                    }
                }
            }
        })
    }
}

fn event(line: &[u8]) -> Result<WatchEvent, ClusterError> {
    #[derive(Deserialize)]
    struct Event {
        #[serde(rename = "type")]
        kind: String,
        object: Value,
    }
    let event: Event = serde_json::from_slice(line)
        .map_err(|error| ReadError { reason: format!("an event of the watch: {error}") })?;
    WatchEvent::from_parts(&event.kind, event.object)
}
