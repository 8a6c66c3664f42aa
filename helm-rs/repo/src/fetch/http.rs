//! Requests over HTTP and HTTPS.

use std::error::Error as _;
use std::fs;
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::blocking::{Client, ClientBuilder};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Identity, Method};

use super::{FetchError, Request, Response, Tls, Transport};
use crate::url::{self, Url};

/// The network: one client for each way of telling servers apart, made on first use.
#[derive(Debug, Default)]
pub struct Http {
    clients: Mutex<Vec<(Tls, Client)>>,
}

impl Http {
    fn client(&self, tls: &Tls) -> Result<Client, FetchError> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.iter().find(|(known, _)| known == tls) {
            return Ok(client.clone());
        }
        let client = build(tls)?;
        clients.push((tls.clone(), client.clone()));
        Ok(client)
    }
}

/// A client as `internal/tlsutil/tls.go` sets one up.
fn build(tls: &Tls) -> Result<Client, FetchError> {
    // Another part of the program may have chosen already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder: ClientBuilder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .danger_accept_invalid_certs(tls.insecure);
    let read = |path: &str| {
        fs::read(path).map_err(|error| FetchError::Tls {
            reason: format!("can't read file: open {path}: {}", helm_rs::gotext::io_text(&error)),
        })
    };
    let wrong = |path: &str| {
        let path = path.to_owned();
        move |error: reqwest::Error| FetchError::Tls {
            reason: format!("{path}: {}", deepest(&error)),
        }
    };
    if !tls.cert_file.is_empty() && !tls.key_file.is_empty() {
        let mut pem = read(&tls.key_file)?;
        pem.push(b'\n');
        pem.extend(read(&tls.cert_file)?);
        builder = builder.identity(Identity::from_pem(&pem).map_err(wrong(&tls.cert_file))?);
    }
    if !tls.ca_file.is_empty() {
        let pem = read(&tls.ca_file)?;
        let authorities = Certificate::from_pem_bundle(&pem).map_err(wrong(&tls.ca_file))?;
        if authorities.is_empty() {
            let reason = format!("failed to append certificates from file: {}", tls.ca_file);
            return Err(FetchError::Tls { reason });
        }
        builder = builder.tls_certs_only(authorities);
    }
    builder.build().map_err(|error| FetchError::Tls { reason: deepest(&error) })
}

impl Transport for Http {
    fn send(&self, tls: &Tls, request: &Request) -> Result<Response, FetchError> {
        let client = self.client(tls)?;
        let shown = url::shown(&request.url);
        let failed = |reason: String| {
            let (first, rest) = request.method.split_at(1);
            let operation = format!("{first}{}", rest.to_lowercase());
            FetchError::Transport { operation, url: shown.clone(), reason }
        };
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|error| failed(error.to_string()))?;
        let mut builder = client.request(method, &request.url);
        for (name, value) in &request.headers {
            builder = builder.header(*name, value);
        }
        if !request.body.is_empty() {
            builder = builder.body(request.body.clone());
        } else if request.method == "POST" {
            builder = builder.header("content-length", "0");
        }
        // Without a limit of its own, a request has reqwest's.
        builder = builder.timeout(request.timeout.unwrap_or(Duration::from_mins(60)));
        let response = builder.send().map_err(|error| failed(go_reason(&error, &request.url)))?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let mut body = Vec::new();
        response
            .take(request.limit.saturating_add(1))
            .read_to_end(&mut body)
            .map_err(|error| failed(deepest(&error)))?;
        if body.len() as u64 > request.limit {
            return Err(FetchError::TooLarge { url: shown, limit: request.limit });
        }
        Ok(Response { status, headers, body })
    }
}

/// The words of the cause that has no other cause.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// What Go says of the commonest failure, and what the cause says of others.
fn go_reason(error: &reqwest::Error, address: &str) -> String {
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(io) = next.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::ConnectionRefused
        {
            let host = Url::parse(address.as_bytes()).map(|url| url::part(&url.host));
            let host = host.unwrap_or_default();
            return format!("dial tcp {host}: connect: connection refused");
        }
        cause = next.source();
    }
    deepest(error)
}
