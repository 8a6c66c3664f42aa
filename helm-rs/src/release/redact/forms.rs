//! Credentials in free text, told by what stands before them: `password=x` and `--token=x`, query
//! parameters of URLs, headers of HTTP.

use std::ops::Range;

use base64::Engine as _;
use bstr::ByteSlice;

use super::{HIDDEN, names_credential};
use crate::release::codec::GO;

/// Longer runs of letters before a `=` are no keys.
const LONGEST_KEY: usize = 64;
/// Shorter words after `Bearer` are words.
const SHORTEST_TOKEN: usize = 8;

/// Where credentials stand in a text, in order.
pub(super) fn find(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = assigned(text);
    found.extend(after_schemes(text));
    found
}

/// What is assigned to a credential's key.
fn assigned(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find_byte(b'=')) {
        let sign = from + at;
        from = sign + 1;
        let before = text.get(sign.saturating_sub(LONGEST_KEY)..sign).unwrap_or_default();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let size = before.iter().rev().take_while(|byte| is_part(byte)).count();
        let (before, key) = before.split_at(before.len() - size);
        if !names_assigned(key, before.last().copied()) {
            continue;
        }
        let rest = text.get(from..).unwrap_or_default();
        let (open, end): (usize, &[u8]) = match rest {
            [b'\\', quote @ (b'"' | b'\''), ..] | [quote @ (b'"' | b'\''), ..] => {
                (1 + usize::from(rest.first() == Some(&b'\\')), std::slice::from_ref(quote))
            }
            _ => (0, b" \t\r\n&;,\"'`()[]<>\\"),
        };
        let value = rest.get(open..).unwrap_or_default();
        let mut size = value.find_byteset(end).unwrap_or(value.len());
        if open == 2 && value.get(..size).is_some_and(|value| value.ends_with(b"\\")) {
            size -= 1;
        }
        let (whole, value) = (value, value.get(..size).unwrap_or_default());
        if is_credential(value) && !is_reference(whole) {
            found.push(from + open..from + open + size);
            from += open + size;
        }
    }
    found
}

/// Whether a key that a value is assigned to names a credential: `key` does in URLs only.
fn names_assigned(key: &[u8], before: Option<u8>) -> bool {
    match key.trim_start_with(|c| c == '-').to_ascii_lowercase().as_slice() {
        b"key" => matches!(before, Some(b'?' | b'&')),
        b"auth" | b"kubeconfig" => false,
        key => names_credential(key),
    }
}

/// Whether an assigned value may be a credential: neither a reference nor a switch.
fn is_credential(value: &[u8]) -> bool {
    const SWITCHES: [&[u8]; 6] = [b"true", b"false", b"null", b"nil", b"none", b"<nil>"];
    // What follows a comparison's second sign is none either.
    !value.is_empty()
        && !value.starts_with(b"=")
        && !value.starts_with(HIDDEN.as_bytes())
        && !is_reference(value)
        && !SWITCHES.contains(&value)
}

/// Whether a variable or a template stands for the value.
fn is_reference(value: &[u8]) -> bool {
    [&b"$("[..], b"${", b"{{"].iter().any(|start| value.starts_with(start))
}

/// What follows `Bearer` or `Basic`, or another scheme in a header `Authorization`.
fn after_schemes(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for at in text.find_iter(" ") {
        let head = text.get(at.saturating_sub(40)..at).unwrap_or_default();
        let size = head.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (before, word) = head.split_at(head.len() - size);
        let is_one = |scheme: &str| word.eq_ignore_ascii_case(scheme.as_bytes());
        let (is_bearer, is_basic) = (is_one("bearer"), is_one("basic"));
        if !(is_bearer || is_basic || is_one("token") || is_one("apikey")) {
            continue;
        }
        let before = before.trim_end_with(|c| matches!(c, ' ' | ':' | '=' | '"' | '\'' | '\\'));
        let is_header = before.to_ascii_lowercase().ends_with(b"authorization");
        let rest = text.get(at + 1..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        let token = rest.get(blanks..).unwrap_or_default();
        let size = token.find_byteset(b" \t\r\n\"'`,;<>\\").unwrap_or(token.len());
        let token = token.get(..size).unwrap_or_default();
        let is_token = is_header
            || (is_bearer
                && size >= SHORTEST_TOKEN
                && !token.iter().all(|byte| byte.is_ascii_lowercase() || b".:".contains(byte)))
            || (is_basic && GO.decode(token).is_ok_and(|pair| pair.contains(&b':')));
        if is_token && is_credential(token) {
            found.push(at + 1 + blanks..at + 1 + blanks + size);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::release::redact::text;

    #[test]
    fn credentials_in_free_text() {
        for (from, to) in [
            ("exec: --password=x1 -v", "exec: --password=REDACTED -v"),
            ("password=x1", "password=REDACTED"),
            ("a?access_token=x1&b=2", "a?access_token=REDACTED&b=2"),
            ("a?key=x1&b=2 key=3", "a?key=REDACTED&b=2 key=3"),
            ("jdbc:pg://h/db?user=u&password=x1", "jdbc:pg://h/db?user=u&password=REDACTED"),
            ("a password=\"x 1\" b", "a password=\"REDACTED\" b"),
            ("\"a password=\\\"x 1\\\" b\"", "\"a password=\\\"REDACTED\\\" b\""),
            ("Bearer eyJhbGciOi.x.y", "Bearer REDACTED"),
            ("Authorization: Basic x", "Authorization: Basic REDACTED"),
            ("\"authorization\": \"token x\"", "\"authorization\": \"token REDACTED\""),
            ("basic dXNlcjpwdw== z", "basic REDACTED z"),
            ("DB_PASSWORD=x1,TOKEN=y", "DB_PASSWORD=REDACTED,TOKEN=REDACTED"),
        ] {
            assert_eq!(text(from), to);
            assert_eq!(text(to), to);
        }
        for same in [
            "--password=$(DB_PASSWORD) --token=${T} --password-file=/x --auth=true",
            "enable-secret=false token== a.key=b bypass=1",
            "bearer authentication, basic authentication, the token expired",
            "secret=",
        ] {
            assert_eq!(text(same), same);
        }
    }
}
