//! Lists that are too large to be held: the answer's body as it comes.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::Live;
use super::path::{self, Query};
use super::retry::Call;
use crate::cluster::{ClusterError, ListQuery, Resource, TransportError, TransportProblem};

/// What `Accept` says to get a list in Kubernetes' protobuf, which servers write several times as
/// fast as JSON.
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The body of an answer, piece by piece.
pub struct BodyStream {
    body: Body,
    patience: std::time::Duration,
    method: &'static str,
    url: String,
}

impl Live {
    /// Asks for a list in one answer, in Kubernetes' protobuf form: the bytes `k8s\0`, then a
    /// `runtime.Unknown`. The server may answer with JSON where it has no other form.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub async fn list_stream(
        &self,
        resource: &Resource,
        query: &ListQuery,
    ) -> Result<BodyStream, ClusterError> {
        let mut parameters = Query::default();
        parameters.add_some("labelSelector", &query.labels);
        parameters.add_some("fieldSelector", &query.fields);
        let path = parameters.on(&path::collection(resource, &query.namespace));
        let mut call = Call::get(path).on_resource(resource);
        call.accept = PROTOBUF;
        let response = self.sender.send_open(&call).await?;
        Ok(BodyStream {
            body: response.into_body(),
            patience: self.sender.options().timeout,
            method: call.method,
            url: format!("{}{}", self.sender.url(), call.path),
        })
    }
}

impl BodyStream {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// When the connection breaks, or nothing comes for as long as a request may take.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClusterError> {
        let broken = |problem| {
            TransportError { method: self.method.to_owned(), url: self.url.clone(), problem }.into()
        };
        loop {
            match tokio::time::timeout(self.patience, self.body.frame()).await {
                Err(_) => return Err(broken(TransportProblem::Timeout)),
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Ok(Some(Err(error))) => {
                    return Err(broken(
                        super::problem::problem(&error).unwrap_or(TransportProblem::Closed),
                    ));
                }
            }
        }
    }
}
