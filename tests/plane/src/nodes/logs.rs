//! The part of a kubelet's server that `kubectl logs` needs:
//! `GET /containerLogs/NAMESPACE/POD/CONTAINER`, with `follow`, `previous`, `tailLines` and
//! `limitBytes`.
//!
//! An executed container's log is what its program wrote. A simulated one wrote nothing, and its log
//! says so.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Request, Response, StatusCode};
use tokio::task::JoinSet;

use super::NodesSetup;
use crate::error::Result;
use crate::https::{self, Body, BoxError};

/// Starts the server; returns its port.
pub(super) async fn serve(tasks: &mut JoinSet<()>, setup: &NodesSetup) -> Result<u16> {
    let pods = setup.folder.join("pods");
    https::serve(tasks, &setup.certificate, &setup.key, move |request| {
        let pods = pods.clone();
        async move { answer(&pods, &request) }
    })
    .await
}

fn answer(
    pods: &Path,
    request: &Request<Incoming>,
) -> std::result::Result<Response<Body>, BoxError> {
    let path = request.uri().path().to_owned();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let ["containerLogs", namespace, pod, container] = parts.as_slice() else {
        return text(StatusCode::NOT_FOUND, format!("the node helper does not serve {path}\n"));
    };
    let options = Options::parse(request.uri().query().unwrap_or_default());
    let folder = pods.join(namespace).join(pod).join("containers").join(container);
    let logs = newest_logs(&folder);
    let wanted = if options.previous { logs.get(1) } else { logs.first() };
    match wanted {
        None if options.previous => {
            text(StatusCode::BAD_REQUEST, "previous terminated container not found\n".to_owned())
        }
        None => text(StatusCode::OK, format!("container {container} of pod {pod} is simulated\n")),
        Some(log) => {
            let bytes = options.cut(fs::read(log).unwrap_or_default());
            if options.follow {
                Ok(Response::new(follow(log.clone(), bytes)))
            } else {
                Ok(Response::new(whole(bytes)))
            }
        }
    }
}

/// The log files of a container, the last start first.
fn newest_logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs: Vec<(u32, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let path = entry.path();
            let number = path.file_name()?.to_str()?.strip_suffix(".log")?.parse().ok()?;
            Some((number, path))
        })
        .collect();
    logs.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    logs.into_iter().map(|(_, path)| path).collect()
}

/// What was written, then what is written until the program ends.
///
/// The file stays open, so that the last lines of a pod that is being removed are not lost.
fn follow(log: PathBuf, first: Vec<u8>) -> Body {
    let position = fs::metadata(&log).map_or(0, |metadata| metadata.len());
    let file = fs::File::open(&log).and_then(|mut file| {
        file.seek(SeekFrom::Start(position))?;
        Ok(file)
    });
    let Ok(file) = file else { return whole(first) };
    let frames = stream::unfold((log, file, Some(first)), |(log, mut file, first)| async move {
        if let Some(first) = first {
            return Some((Ok(Frame::data(first.into())), (log, file, None)));
        }
        loop {
            // Looked at before reading: what is written after the look is read in the next round.
            let ended = log.with_extension("done").exists() || !log.exists();
            let mut new = Vec::new();
            if file.read_to_end(&mut new).ok()? > 0 {
                return Some((Ok(Frame::data(new.into())), (log, file, None)));
            }
            if ended {
                return None;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// Query parameters of a log request.
#[derive(Debug, Default)]
struct Options {
    follow: bool,
    previous: bool,
    tail_lines: Option<usize>,
    limit_bytes: Option<usize>,
}

impl Options {
    fn parse(query: &str) -> Self {
        let mut options = Self::default();
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "follow" => options.follow = value == "true",
                "previous" => options.previous = value == "true",
                "tailLines" => options.tail_lines = value.parse().ok(),
                "limitBytes" => options.limit_bytes = value.parse().ok(),
                _ => {}
            }
        }
        options
    }

    fn cut(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some(count) = self.tail_lines {
            let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            bytes = lines
                .iter()
                .skip(lines.len().saturating_sub(count))
                .copied()
                .flatten()
                .copied()
                .collect();
        }
        if let Some(limit) = self.limit_bytes {
            bytes.truncate(limit);
        }
        bytes
    }
}

fn text(status: StatusCode, text: String) -> std::result::Result<Response<Body>, BoxError> {
    Response::builder().status(status).body(whole(text.into_bytes())).map_err(Into::into)
}

fn whole(bytes: Vec<u8>) -> Body {
    Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed_unsync()
}
