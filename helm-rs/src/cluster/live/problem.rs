//! What the HTTP client's errors mean.

use std::io;

use crate::cluster::TransportProblem;

/// The text of the last error of a chain.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

/// What an HTTP client's error means, when it is one of the known ones.
pub(super) fn problem(error: &(dyn std::error::Error + 'static)) -> Option<TransportProblem> {
    let mut next = Some(error);
    let mut connecting = false;
    while let Some(error) = next {
        if error.to_string() == "dns error" {
            return Some(TransportProblem::Lookup {
                host: String::new(),
                reason: "no such host".to_owned(),
            });
        }
        connecting |= error.to_string() == "client error (Connect)";
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Some(tls(error));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            if let Some(inner) = error.get_ref()
                && let Some(problem) = problem(inner)
            {
                return Some(problem);
            }
            if let Some(problem) = from_io(error, connecting) {
                return Some(problem);
            }
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_canceled() || error.is_closed())
        {
            return Some(TransportProblem::Closed);
        }
        next = error.source();
    }
    None
}

fn from_io(error: &io::Error, connecting: bool) -> Option<TransportProblem> {
    let connect = |reason: &str| Some(TransportProblem::Connect { reason: reason.to_owned() });
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            Some(TransportProblem::Refused { address: String::new() })
        }
        io::ErrorKind::ConnectionReset if connecting => {
            connect("connect: connection reset by peer")
        }
        io::ErrorKind::ConnectionReset => Some(TransportProblem::Reset { ends: String::new() }),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionAborted => Some(TransportProblem::Closed),
        io::ErrorKind::TimedOut if connecting => connect("i/o timeout"),
        io::ErrorKind::HostUnreachable => connect("connect: no route to host"),
        io::ErrorKind::NetworkUnreachable => connect("connect: network is unreachable"),
        io::ErrorKind::TimedOut => Some(TransportProblem::Timeout),
        _ => None,
    }
}

fn tls(error: &rustls::Error) -> TransportProblem {
    use rustls::CertificateError;
    let reason = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::UnknownIssuer => {
                "x509: certificate signed by unknown authority".to_owned()
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "x509: certificate has expired or is not yet valid".to_owned()
            }
            CertificateError::NotValidForNameContext { expected, presented } => {
                other_name(&expected.to_str(), presented)
            }
            other => format!("x509: {other}"),
        },
        other => return TransportProblem::Other { reason: format!("tls: {other}") },
    };
    TransportProblem::Certificate { reason }
}

/// `HostnameError.Error` of Go's `crypto/x509`.
fn other_name(expected: &str, presented: &[String]) -> String {
    let is_address = expected.parse::<std::net::IpAddr>().is_ok();
    let prefix = if is_address { "IpAddress(" } else { "DnsName(" };
    let names: Vec<_> = presented
        .iter()
        .filter_map(|name| name.strip_prefix(prefix)?.strip_suffix(')'))
        .map(|name| name.trim_matches('"'))
        .collect();
    if names.is_empty() && is_address {
        return format!(
            "x509: cannot validate certificate for {expected} because it doesn't contain any IP \
             SANs"
        );
    }
    if names.is_empty() {
        return format!(
            "x509: certificate is not valid for any names, but wanted to match {expected}"
        );
    }
    format!("x509: certificate is valid for {}, not {expected}", names.join(", "))
}
