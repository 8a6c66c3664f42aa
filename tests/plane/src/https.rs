//! A small HTTPS server on a loopback port, for the fault proxy and the log server.

use std::future::Future;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, Result};

/// A body that may stream.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
/// Any error; a handler that returns one cuts the connection without an answer.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Serves until the task is aborted; returns the port.
pub(crate) async fn serve<H, F>(
    tasks: &mut JoinSet<()>,
    certificate: &Path,
    key: &Path,
    handler: H,
) -> Result<u16>
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = std::result::Result<Response<Body>, BoxError>> + Send + 'static,
{
    let acceptor = acceptor(certificate, key)?;
    let no_port =
        |error: std::io::Error| Error::NotPossible { reason: format!("no port: {error}") };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(no_port)?;
    let port = listener.local_addr().map_err(no_port)?.port();
    tasks.spawn(async move {
        // Connections end with the server.
        let mut connections = JoinSet::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else { continue };
            while connections.try_join_next().is_some() {}
            let (acceptor, handler) = (acceptor.clone(), handler.clone());
            connections.spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(handler);
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                // A cut connection is an error here and wanted there.
                drop(serving.await);
            });
        }
    });
    Ok(port)
}

fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let failed = |error: &dyn std::fmt::Display| Error::Tls { reason: error.to_string() };
    let certificates = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| failed(&error))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| failed(&error))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|error| failed(&error))?;
    // HTTP/1.1 only: one request at a time on a connection, so that cutting one cuts no other.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
