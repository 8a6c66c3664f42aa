//! Where traces go, by the variables that OpenTelemetry gives every program.
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>)

use controller::Traces;

use crate::environment::Environment;
use crate::error::CommandError;

/// Where the path of an endpoint for all signals ends.
const PATH: &str = "v1/traces";

/// Where traces go; none where no endpoint is set.
///
/// # Errors
/// The endpoint is no address of HTTP, a header has no value, or a protocol is asked for that is not
/// spoken.
pub(super) fn traces(environment: &Environment) -> Result<Option<Traces>, CommandError> {
    let text = |name: &str| environment.text(name).filter(|text| !text.trim().is_empty());
    let (name, base, path) = if let Some(url) = text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url, "")
    } else if let Some(base) = text("OTEL_EXPORTER_OTLP_ENDPOINT") {
        ("OTEL_EXPORTER_OTLP_ENDPOINT", base, PATH)
    } else {
        return Ok(None);
    };
    // What is given, before anything of ours could pass for its host.
    if port(base).is_none() {
        let message = format!("{name}: it begins with http:// or https:// and names a host");
        return Err(CommandError::new(message));
    }
    let slash = if path.is_empty() || base.ends_with('/') { "" } else { "/" };
    let url = format!("{base}{slash}{path}");
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        if let Some(protocol) = text(name).filter(|protocol| *protocol != "http/json") {
            return Err(CommandError::new(format_args!(
                "{name} is {protocol}, and traces are sent by http/json alone, which collectors take \
                 on the same port as http/protobuf (4318)"
            )));
        }
    }
    let mut headers = Vec::new();
    let given = text("OTEL_EXPORTER_OTLP_TRACES_HEADERS");
    let (name, given) = if let Some(given) = given {
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", given)
    } else {
        let name = "OTEL_EXPORTER_OTLP_HEADERS";
        (name, text(name).unwrap_or_default())
    };
    // What stands there may be a credential, so that it is not shown.
    for (at, pair) in given.split(',').enumerate().filter(|(_, pair)| !pair.trim().is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            CommandError::new(format_args!("{name}: header {} has the form NAME=VALUE", at + 1))
        })?;
        headers.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    let service = text("OTEL_SERVICE_NAME").unwrap_or("ichor-controller").to_owned();
    Ok(Some(Traces { url, headers, service }))
}

/// The port of an address; none when it is none of HTTP.
pub(super) fn port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let default = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(address) => address.split_once(']')?.1.strip_prefix(':'),
        None => host.split_once(':').map(|(_, port)| port),
    };
    if host.is_empty() || host.starts_with(':') {
        return None;
    }
    port.map_or(Some(default), |port| port.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_for_all_signals_gets_a_path_and_that_for_traces_none() {
        for (name, given, expected) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318", "http://otel:4318/v1/traces"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318/a/", "http://otel:4318/a/v1/traces"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://otel/x", "https://otel/x"),
        ] {
            let environment =
                Environment::sealed([(name, given), ("OTEL_EXPORTER_OTLP_HEADERS", "a=b, c=d=e,")]);
            let traces = traces(&environment).unwrap().unwrap();
            assert_eq!(traces.url, expected);
            let headers = [("a", "b"), ("c", "d=e")].map(|(a, b)| (a.to_owned(), b.to_owned()));
            assert_eq!(traces.headers, headers);
        }
        assert!(traces(&Environment::sealed([])).unwrap().is_none());
        assert!(
            traces(&Environment::sealed([("OTEL_EXPORTER_OTLP_ENDPOINT", "")])).unwrap().is_none()
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_no_credential_shown() {
        for (name, given) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "otel:4317"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:port"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,credential"),
        ] {
            let mut variables = vec![(name, given)];
            if name != "OTEL_EXPORTER_OTLP_ENDPOINT" {
                variables.push(("OTEL_EXPORTER_OTLP_ENDPOINT", "http://otel:4318"));
            }
            let error = traces(&Environment::sealed(variables)).unwrap_err();
            let message = String::from_utf8(error.message.unwrap_or_default()).unwrap();
            assert!(message.starts_with(name), "{message}");
            assert!(!message.contains("credential"), "{message}");
        }
    }

    #[test]
    fn ports() {
        for (url, expected) in [
            ("http://otel", Some(80)),
            ("https://otel/v1", Some(443)),
            ("http://user:key@otel:4318/x", Some(4318)),
            ("http://[fd00::1]:4318/", Some(4318)),
            ("http://[fd00::1]", Some(80)),
            ("http://:4318", None),
            ("ftp://otel", None),
        ] {
            assert_eq!(port(url), expected, "{url}");
        }
    }
}
