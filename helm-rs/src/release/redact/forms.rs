//! Credentials in free text, told by what stands before them: `password=x` and `--token=x`, query
//! parameters of URLs, headers of HTTP.

use std::ops::Range;

use base64::Engine as _;
use bstr::ByteSlice;

use super::{HIDDEN, is_count, names_credential};
use crate::release::codec::GO;

/// Longer runs of letters before a `=` are no keys.
const LONGEST_KEY: usize = 64;
/// Shorter words after `Bearer` are words.
const SHORTEST_TOKEN: usize = 8;

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// What a program reads: a file of settings.
    Data,
    /// What people read: after `token:` comes a sentence as well.
    Prose,
}

/// Where credentials stand in a text, in order.
pub(super) fn find(text: &[u8], form: Form) -> Vec<Range<usize>> {
    let mut found = assigned(text);
    found.extend(after_schemes(text));
    found.extend(lines(text, form));
    found.extend(members(text));
    found
}

const fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// What stands after a credential's key at the beginning of a line: `key: value` and
/// `key = value`, as files of settings have it; with a text block after `key: |`.
fn lines(text: &[u8], form: Form) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    // A block under a credential's key: how far the key is indented, and where the block begins.
    let mut block: Option<(usize, Option<usize>)> = None;
    for line in text.lines_with_terminator() {
        let (start, rest) = (at, line.trim_end());
        at += line.len();
        let indent = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if let Some((above, begin)) = &mut block {
            if rest.is_empty() {
                continue;
            }
            if indent > *above {
                let begin = *begin.get_or_insert(start + indent);
                match found.last_mut().filter(|last| last.start == begin) {
                    Some(last) => last.end = start + rest.len(),
                    None => found.push(begin..start + rest.len()),
                }
                continue;
            }
            block = None;
        }
        let Some((key, value)) = setting(rest) else { continue };
        let is_number = rest.get(value.clone()).is_some_and(|value| {
            value.iter().all(|byte| byte.is_ascii_digit() || b"._".contains(byte))
        });
        if !names_assigned(key, None) || (is_number && is_count(key)) {
            continue;
        }
        let (offset, whole) = (value.start, rest.get(value).unwrap_or_default());
        if matches!(whole.first(), Some(b'|' | b'>'))
            && whole.iter().skip(1).all(|byte| b"+-0123456789".contains(byte))
        {
            block = Some((indent, None));
            continue;
        }
        let is_open = whole.iter().all(|byte| b"{[(".contains(byte));
        let is_sentence = form == Form::Prose && whole.contains(&b' ');
        if !is_open && !is_sentence && is_credential(whole) {
            found.push(start + offset..start + offset + whole.len());
        }
    }
    found
}

/// The key that a line begins with, and where in the line its value is.
fn setting(line: &[u8]) -> Option<(&[u8], Range<usize>)> {
    let mut rest = line.trim_start();
    while let Some(item) = rest.strip_prefix(b"- ") {
        rest = item.trim_start();
    }
    let quote = rest.first().copied().filter(|byte| b"\"'".contains(byte));
    rest = rest.get(usize::from(quote.is_some())..)?;
    let size = rest.iter().take_while(|byte| is_part(**byte)).count();
    let (key, rest) = rest.split_at_checked(size)?;
    let rest = match quote {
        Some(quote) => rest.strip_prefix(&[quote])?,
        None => rest,
    };
    let after = rest.trim_start();
    let is_apart = after.len() < rest.len();
    let (sign, value) = after.split_first()?;
    let value_apart = value.first().is_none_or(u8::is_ascii_whitespace);
    let is_setting = match sign {
        b':' => value_apart || quote.is_some(),
        // Without blanks it may be an argument, of which there are several in a line.
        b'=' => !key.starts_with(b"-") && (is_apart || value_apart),
        _ => false,
    };
    let value = value.trim_start();
    if !is_setting || key.is_empty() || key.len() > LONGEST_KEY || value.is_empty() {
        return None;
    }
    let begin = line.len() - value.len();
    let value = value.trim_end_with(|c| c == ',' || c == ';');
    let quoted = value.first().copied().filter(|byte| b"\"'".contains(byte)).and_then(|quote| {
        let inner = value.get(1..)?;
        Some(begin + 1..begin + 1 + inner.rfind_byte(quote)?)
    });
    Some((key, quoted.unwrap_or(begin..begin + value.len())))
}

/// What a credential's key of a JSON object holds, a text or a number, however often its quotes
/// are escaped.
fn members(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for sign in text.find_iter(":") {
        let before = text.get(..sign).unwrap_or_default().trim_end();
        let Some(before) = before.strip_suffix(b"\"") else { continue };
        let before = before.trim_end_with(|c| c == '\\');
        let size = before.iter().rev().take(LONGEST_KEY).take_while(|byte| is_part(**byte)).count();
        let (before, key) = before.split_at(before.len() - size);
        // What follows a scheme's name in a header is told by that.
        let is_header = key.eq_ignore_ascii_case(b"authorization");
        if before.last() != Some(&b'"') || is_header || !names_assigned(key, None) {
            continue;
        }
        let rest = text.get(sign + 1..).unwrap_or_default();
        let value = rest.trim_start();
        let inner = value.trim_start_with(|c| c == '\\');
        let depth = value.len() - inner.len();
        let at = sign + 1 + rest.len() - value.len();
        let range = match inner.first() {
            Some(b'"') => {
                let begin = at + depth + 1;
                let inner = inner.get(1..).unwrap_or_default();
                begin..begin + json_text(inner, depth)
            }
            Some(byte) if depth == 0 && byte.is_ascii_digit() && !is_count(key) => {
                let digits = inner.iter().take_while(|byte| !b",}] \t\r\n".contains(byte));
                at..at + digits.count()
            }
            _ => continue,
        };
        if text.get(range.clone()).is_some_and(is_credential) {
            found.push(range);
        }
    }
    found
}

/// How long a text is whose quotes have so many backslashes before them.
fn json_text(text: &[u8], depth: usize) -> usize {
    let mut slashes = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\\' => slashes += 1,
            b'"' if slashes == depth || (depth == 0 && slashes % 2 == 0) => {
                return at - slashes.min(depth);
            }
            b'\n' | b'\r' => return at,
            _ => slashes = 0,
        }
        if *byte == b'"' {
            slashes = 0;
        }
    }
    text.len()
}

/// What is assigned to a credential's key.
fn assigned(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find_byte(b'=')) {
        let sign = from + at;
        from = sign + 1;
        let before = text.get(sign.saturating_sub(LONGEST_KEY)..sign).unwrap_or_default();
        let size = before.iter().rev().take_while(|byte| is_part(**byte)).count();
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
    use bstr::ByteSlice;

    use crate::release::redact::{text, text_without};

    #[test]
    fn credentials_in_files_of_settings() {
        for (from, to) in [
            ("password=x1\nsecret_key: LEAK\n", "password=REDACTED\nsecret_key: REDACTED\n"),
            ("[db]\npassword = a b\nport = 1\n", "[db]\npassword = REDACTED\nport = 1\n"),
            ("- token: \"a b\"\n  x: y\n", "- token: \"REDACTED\"\n  x: y\n"),
            ("db:\n  'password': 'a''b',\n", "db:\n  'password': 'REDACTED',\n"),
            ("{\"password\":\"a\\\"b\",\"n\":1}", "{\"password\":\"REDACTED\",\"n\":1}"),
            ("{\"a\": {\"token\" : 123, \"b\": 4}}", "{\"a\": {\"token\" : REDACTED, \"b\": 4}}"),
            ("x '{\\\"pw\\\": \\\"LEAK\\\"}'", "x '{\\\"pw\\\": \\\"REDACTED\\\"}'"),
            (
                "tls:\n  privateKey: |\n    a\n\n    b\n  c: d\n",
                "tls:\n  privateKey: |\n    REDACTED\n  c: d\n",
            ),
        ] {
            let shown = text_without(from.into()).unwrap();
            assert_eq!(shown.to_str_lossy(), to);
            let again = text_without(shown.as_bstr());
            assert!(again.is_none_or(|again| again == shown), "{to}");
        }
        for same in [
            "maxTokens: 5\npassword: ${PW}\nsecret: {{ .x }}\ntoken: null\npasswordFile: /x\n",
            "password:\n  from: vault\nurl: http://h/\nnote: the password: x\n",
        ] {
            assert_eq!(text_without(same.into()), None, "{same}");
        }
        // Of a sentence nothing is hidden.
        let sentence = "Password: ask your admin\nToken: it expired\n";
        assert_eq!(text(sentence), sentence);
        assert_eq!(text("Password: x1\n"), "Password: REDACTED\n");
    }

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
