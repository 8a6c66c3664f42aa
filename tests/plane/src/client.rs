//! Clients of a plane's API server.

use kube::{Client, Config};

use crate::error::{Error, Result};

/// A client for an API server, a CA in PEM and a bearer token.
///
/// A client belongs to the runtime it is made in: make one per test.
///
/// # Errors
///
/// When the address or the certificate is not valid.
pub fn client(server: &str, ca: &str, token: &str) -> Result<Client> {
    let url = server.parse().map_err(|_| Error::Tls { reason: format!("bad address {server}") })?;
    let mut config = Config::new(url);
    let certificates = pem_certificates(ca)?;
    config.root_cert = Some(certificates);
    config.auth_info.token = Some(token.to_owned().into());
    // Tests count requests and inject faults: nothing is to be sent twice behind their back.
    config.default_retry = false;
    Client::try_from(config).map_err(Error::api("cannot make a client"))
}

/// True when `/readyz` says ok.
pub(crate) async fn is_ready(client: &Client) -> bool {
    let Ok(request) = http_get("/readyz") else { return false };
    client.request_text(request).await.is_ok_and(|text| text == "ok")
}

/// A GET request for a path.
pub(crate) fn http_get(path: &str) -> Result<hyper::Request<Vec<u8>>> {
    hyper::Request::get(path)
        .body(Vec::new())
        .map_err(|error| Error::Tls { reason: format!("bad path {path}: {error}") })
}

/// The certificates of a PEM text in DER.
pub(crate) fn pem_certificates(pem: &str) -> Result<Vec<Vec<u8>>> {
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::Tls { reason: format!("bad certificate: {error}") })
}
