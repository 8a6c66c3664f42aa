//! Mail and web addresses as `github.com/asaskevich/govalidator` judges them, which Helm asks.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// Letters beyond ASCII that mail addresses may have.
const WIDE: &str = r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}";

static EMAIL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let atom = format!(r"[a-zA-Z0-9!#$%&'*+\-/=?^_`{{|}}~{WIDE}]+");
    let space = r"(?:(?:[ \t]*\r\n)?[ \t]+)?";
    let quoted = format!(
        r"(?:[\x01-\x08\x0b\x0c\x0e-\x1f\x7f\x21\x23-\x5b\x5d-\x7e{WIDE}]|\([\x01-\x09\x0b\x0c\x0d-\x7f{WIDE}])"
    );
    let local = format!(r#"(?:{atom}(?:\.{atom})*|"(?:{space}{quoted})*{space}")"#);
    let edge = format!("[a-zA-Z0-9{WIDE}]");
    let label = format!(r"{edge}(?:[a-zA-Z0-9\-._~{WIDE}]*{edge})?");
    let last_edge = format!("[a-zA-Z{WIDE}]");
    let last = format!(r"{last_edge}(?:[a-zA-Z0-9\-_~{WIDE}]*{last_edge})?");
    Regex::new(&format!(r"^{local}@(?:{label}\.)+{last}\.?$")).ok()
});

static URL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let octet = r"(?:1\d\d|2[0-4]\d|25[0-5]|\d{1,2})";
    let first = r"(?:[1-9]\d?|1\d\d|2[01]\d|22[0-3]|24\d|25[0-5])";
    let last = r"(?:1\d\d|2[0-4]\d|25[0-5]|[0-9]\d?)";
    let ip4 = format!(r"{first}(?:\.{octet}){{2}}\.{last}");
    // The judge's own rule for addresses in brackets lists every place of `::`.
    let ip6 = r"\[[0-9a-fA-F:.]+(?:%[0-9a-zA-Z]+)?\]";
    let wide = r"a-zA-Z\u{a1}-\u{ffff}";
    let before = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9\-_]+)?[a-zA-Z0-9](?:[-.][a-zA-Z0-9]+)*|(?:www\.|[a-zA-Z0-9]+(?:[-_.]?[a-zA-Z0-9])*[a-zA-Z0-9]\.[a-zA-Z0-9]+)?)?";
    let name = format!(r"{before}(?:(?:[{wide}0-9]+-?-?)*[{wide}0-9]+)(?:\.[{wide}]+)?");
    Regex::new(&format!(
        r"^(?:(?:ftp|tcp|udp|wss?|https?)://)?(?:\S+(?::\S*)?@)?(?:{ip4}|{ip6}|{name})\.?(?::\d{{1,5}})?(?:[/?#]\S*)?$"
    ))
    .ok()
});

/// `govalidator.IsEmail`
pub(super) fn is_email(text: &str) -> bool {
    EMAIL.as_ref().is_some_and(|email| email.is_match(text))
}

/// `govalidator.IsURL`
pub(super) fn is_url(text: &str) -> bool {
    if text.chars().count() >= 2083 || text.len() <= 3 || text.starts_with('.') {
        return false;
    }
    let with_scheme;
    let parsed = if text.contains(':') && !text.contains("://") {
        with_scheme = format!("http://{text}");
        &with_scheme
    } else {
        text
    };
    let rest = parsed.split_once("://").map_or("", |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if host.starts_with('.') || has_bad_escape(parsed) {
        return false;
    }
    // Without a host, a path must look like one.
    if host.is_empty() {
        let path = parsed.split(['?', '#']).next().unwrap_or_default();
        if !path.is_empty() && !path.contains('.') {
            return false;
        }
    }
    URL.as_ref().is_some_and(|url| url.is_match(text))
}

/// `govalidator.IsRequestURL`: an address with a scheme that `url.ParseRequestURI` accepts.
pub(super) fn is_request_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let scheme_fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if !scheme_fits || text.chars().any(|c| c.is_ascii_control()) || has_bad_escape(text) {
        return false;
    }
    // Opaque addresses (`mailto:x`) are no request.
    let Some(rest) = rest.strip_prefix('/') else { return false };
    let Some(authority) = rest.strip_prefix('/') else { return true };
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    is_host(host)
}

/// Whether Go's `net/url` takes the text as host and port.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    };
    let bracketed = name.starts_with('[');
    if bracketed != name.ends_with(']') && !name.is_empty() {
        return false;
    }
    let fits = |c: char| !matches!(c, ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    port.chars().all(|c| c.is_ascii_digit())
        && name.chars().all(fits)
        && (bracketed || !name.contains(':'))
}

/// Whether a `%` is not followed by two hexadecimal digits.
fn has_bad_escape(text: &str) -> bool {
    let bytes = text.as_bytes();
    (0..bytes.len()).any(|at| {
        bytes.get(at) == Some(&b'%')
            && !bytes.get(at + 1..at + 3).is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    })
}

#[cfg(test)]
mod tests {
    use super::{is_email, is_request_url, is_url};

    #[test]
    fn addresses() {
        assert!(is_email("a.b+c@example.org"));
        assert!(!is_email("a@b"));
        assert!(is_url("https://example.org/a?b=c"));
        assert!(is_url("example.org"));
        assert!(!is_url("https://"));
        assert!(is_request_url("https://example.org/icon.svg"));
        assert!(!is_request_url("example.org/icon.svg"));
        assert!(!is_request_url("mailto:x"));
    }
}
