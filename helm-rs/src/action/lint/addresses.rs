//! Mail and web addresses as `github.com/asaskevich/govalidator` judges them, which Helm asks.

use std::sync::LazyLock;

use regex_automata::meta::Regex;

use crate::gourl::Url;

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
    let Ok(address) = Url::parse(parsed.as_bytes()) else { return false };
    // Without a host, a path must look like one.
    let is_word = |path: &[u8]| !path.is_empty() && !path.contains(&b'.');
    if address.host.starts_with(b".") || address.host.is_empty() && is_word(&address.path) {
        return false;
    }
    URL.as_ref().is_some_and(|url| url.is_match(text))
}

/// `govalidator.IsRequestURL`
pub(super) fn is_request_url(text: &str) -> bool {
    Url::is_request(text.as_bytes())
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
        assert!(is_request_url("mailto:x"));
    }
}
