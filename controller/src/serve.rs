//! `/healthz`, `/readyz` and `/metrics`, for the kubelet and for Prometheus.

use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// What is told about this controller.
#[derive(Debug)]
pub(crate) struct Told {
    /// The API server answered, for the Lease or for the watches: as one of several, this
    /// controller stands by.
    pub(crate) ready: AtomicBool,
    pub(crate) metrics: Metrics,
}

/// Listens. All addresses of IPv6 are those of IPv4 too, unless the host has none of the former.
pub(crate) async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        listener => listener,
    }
}

/// Answers until the process ends.
pub(crate) async fn serve(listener: TcpListener, told: Arc<Told>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Too many open files pass.
                tracing::warn!(%error, "a probe could not be answered");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        let told = Arc::clone(&told);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(&request, &told);
                async move { Ok::<_, Infallible>(answer) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            // A client that sends no request is not waited for.
            server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10));
            // A connection that breaks is the client's business.
            drop(server.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

fn answer(request: &Request<Incoming>, told: &Told) -> Response<Full<Bytes>> {
    let (status, kind, text) = match request.uri().path() {
        "/healthz" => (StatusCode::OK, "text/plain", "ok\n".to_owned()),
        "/readyz" if told.ready.load(Ordering::Relaxed) => {
            (StatusCode::OK, "text/plain", "ok\n".to_owned())
        }
        "/readyz" => {
            let text = "the API server has not answered yet\n".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, "text/plain", text)
        }
        "/metrics" => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            (StatusCode::OK, kind, told.metrics.text())
        }
        _ => (StatusCode::NOT_FOUND, "text/plain", "not found\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}
