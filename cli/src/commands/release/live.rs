//! Records from a live server, as a stream that is read like a dump.
//!
//! ```text
//! one list request ─ protobuf ─ task of the runtime ─ pieces ─► Input::Stream ─► all cores
//! ```

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use helm_rs::cluster::live::BodyStream;
use helm_rs::cluster::{Cluster as _, ClusterError, ErrorKind, ListQuery, Resource, Target};
use helm_rs::release::input::{Input, Storage};
use helm_rs::release::storage::{StorageError, record_key};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};

use super::source::Ask;
use crate::connection::ClusterFlags;
use crate::environment::Environment;
use crate::error::CommandError;

/// Pieces of the answer that wait to be read; one is what a TLS record holds, 16 KiB.
const WAITING: usize = 64;

/// An open answer and the runtime that reads it.
pub(super) struct LiveInput {
    input: Option<Input>,
    runtime: Option<Runtime>,
}

/// What the server answers.
enum Answer {
    /// A list that comes piece by piece.
    Open(BodyStream),
    /// One object.
    Whole(serde_json::Value),
}

impl LiveInput {
    /// Asks the server for records.
    ///
    /// # Errors
    /// With Helm's texts: the cluster is unreachable, or refuses.
    pub(super) fn open(
        flags: &ClusterFlags,
        environment: &Environment,
        storage: Storage,
        namespace: &str,
        ask: &Ask<'_>,
    ) -> Result<Self, CommandError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| CommandError::new(format_args!("cannot start: {error}")))?;
        let resource = match storage {
            Storage::ConfigMap => Resource::builtin("v1", "ConfigMap", "configmaps", true),
            Storage::Secret | Storage::Bare => Resource::builtin("v1", "Secret", "secrets", true),
        };
        let mut query = ListQuery { namespace: namespace.to_owned(), ..ListQuery::default() };
        // What Helm's drivers put before the server's words.
        let prefix = match (ask.name, ask.revision) {
            (None, _) => {
                "owner=helm".clone_into(&mut query.labels);
                "list: failed to list".to_owned()
            }
            (Some(name), revision) if revision > 0 => {
                let key = record_key(name, revision);
                query.fields = format!("metadata.name={key}");
                format!("get: failed to get \"{key}\"")
            }
            (Some(name), _) => {
                query.labels = format!("name={name},owner=helm");
                "query: failed to query with labels".to_owned()
            }
        };
        let named = match (ask.name, ask.revision) {
            (Some(name), revision) if revision > 0 => Some(record_key(name, revision)),
            _ => None,
        };
        let (answer, place) = runtime.block_on(async {
            let live = flags.connect(environment, Arc::new(|_| ())).await?;
            // Helm's first question, whose failure has a text of its own (`IsReachable`).
            live.server_version().await.map_err(|error| {
                CommandError::new(format_args!("Kubernetes cluster unreachable: {error}"))
            })?;
            let mut answer = live.list_stream(&resource, &query).await.map(Answer::Open);
            // Whoever may not list may have the right that Helm needs.
            if let (Some(key), Err(error)) = (&named, &answer)
                && error.kind() == ErrorKind::Forbidden
            {
                let target = Target::new(&Arc::new(resource.clone()), namespace, key);
                answer = live.get(&target).await.map(Answer::Whole);
            }
            let answer = answer.map_err(|error| match storage {
                _ if named.is_some() && error.is_not_found() => {
                    CommandError::new(StorageError::NotFound)
                }
                // Helm's driver for ConfigMaps only logs what it was doing.
                Storage::ConfigMap => CommandError::new(error),
                _ => CommandError::new(format_args!("{prefix}: {error}")),
            })?;
            Ok::<_, CommandError>((answer, format!("{} of {}", resource.plural, live.url())))
        })?;
        let mut body = match answer {
            Answer::Open(body) => body,
            Answer::Whole(object) => {
                let text = std::io::Cursor::new(object.to_string());
                let input = Some(Input::Stream(place, Box::new(text)));
                return Ok(Self { input, runtime: Some(runtime) });
            }
        };
        let (sender, receiver) = channel(WAITING);
        drop(runtime.spawn(async move {
            loop {
                let piece = match body.next().await {
                    Ok(Some(piece)) => Ok(piece),
                    Ok(None) => return,
                    Err(error) => Err(error),
                };
                let is_last = piece.is_err();
                if sender.send(piece).await.is_err() || is_last {
                    return;
                }
            }
        }));
        let pieces = Pieces { receiver, current: Bytes::new() };
        Ok(Self { input: Some(Input::Stream(place, Box::new(pieces))), runtime: Some(runtime) })
    }

    /// The stream; once.
    pub(super) fn take(&mut self) -> Vec<Input> {
        self.input.take().into_iter().collect()
    }
}

impl Drop for LiveInput {
    fn drop(&mut self) {
        // Nobody waits for the connection to close.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Pieces {
    receiver: Receiver<Result<Bytes, ClusterError>>,
    current: Bytes,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                None => return Ok(0),
                Some(Ok(piece)) => self.current = piece,
                Some(Err(error)) => return Err(io::Error::other(error)),
            }
        }
        let size = buffer.len().min(self.current.len());
        let taken = self.current.split_to(size);
        if let Some(place) = buffer.get_mut(..size) {
            place.copy_from_slice(&taken);
        }
        Ok(size)
    }
}
