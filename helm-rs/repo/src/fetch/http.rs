//! Requests over HTTP and HTTPS.

use std::error::Error as _;
use std::fs;
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::ext::ReasonPhrase;
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Identity, Method};

use rustls::InvalidMessage;

use super::{FetchError, PLAIN_HTTP, Request, Response, Tls, Transport};
use crate::url::{self, Url};

/// The network: one client for each way of telling servers apart, made on first use.
#[derive(Debug)]
pub struct Http {
    clients: Mutex<Vec<(Tls, Client)>>,
    started: Instant,
}

impl Default for Http {
    fn default() -> Self {
        Self { clients: Mutex::default(), started: Instant::now() }
    }
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
        let began = Instant::now();
        let failed = |reason: String| {
            let (first, rest) = request.method.split_at(1);
            let operation = format!("{first}{}", rest.to_lowercase());
            let (url, limit) = (shown.clone(), request.timeout);
            // Whichever of the client's clocks it was that rang first.
            if began.elapsed() >= limit {
                return FetchError::TooLong { operation, url, limit };
            }
            FetchError::Transport { operation, url, reason }
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
        builder = builder.timeout(request.timeout);
        let response = builder.send().map_err(|error| failed(go_reason(&error, &request.url)))?;
        let status = response.status().as_u16();
        let reason = response.extensions().get::<ReasonPhrase>();
        let reason = reason.map(|said| said_plainly(said.as_bytes())).unwrap_or_default();
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
        Ok(Response { status, reason, headers, body })
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A server's words without what a terminal would act on, and not more of them than a line.
fn said_plainly(words: &[u8]) -> String {
    String::from_utf8_lossy(words).chars().filter(|c| !c.is_control()).take(200).collect()
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
        if tls_error(next).is_some_and(speaks_plain_http) {
            return PLAIN_HTTP.to_owned();
        }
        cause = next.source();
    }
    deepest(error)
}

/// What TLS says: an error of the system may carry it, or carry another one that does.
fn tls_error<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut error = error;
    loop {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        error = error.downcast_ref::<io::Error>()?.get_ref()?;
    }
}

fn speaks_plain_http(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType))
}
