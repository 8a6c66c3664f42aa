//! What single tokens stand for: strings, numbers, dates.

use gotemplate::Value;
use gotemplate::function::IntoResult;
use gotemplate::strconv::{NumberError, parse_float, parse_int, quote_rune};

use super::super::lex::{Kind, Token};
use super::{Failure, Outcome, Parser, about, bug};
use crate::render::functions::dates::TimeObject;
use crate::render::time::Time;

impl Parser<'_> {
    /// The content of a string token, `None` for another one.
    pub(super) fn string(&self, token: &Token) -> Outcome<Option<Vec<u8>>> {
        let text = token.text.as_slice();
        Ok(Some(match token.kind {
            Kind::String | Kind::RawString => text.to_vec(),
            Kind::EscapedString => self.unescape(token, text)?,
            Kind::MultilineString => {
                self.unescape(token, &join_lines(strip_first_line_end(text)))?
            }
            Kind::RawMultilineString => strip_first_line_end(text).to_vec(),
            _ => return Ok(None),
        }))
    }

    pub(super) fn integer(&self, token: &Token) -> Outcome<Value> {
        let text = token.text.as_slice();
        let problem = if !underscores_ok(text) {
            Some(": underscores must be surrounded by digits")
        } else if has_leading_zero(text) {
            Some(": cannot have leading zeroes")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(self.fail(token.line, &about("Invalid integer ", text, problem)));
        }
        match parse_int(text, 0) {
            Ok(number) => Ok(Value::int64(number)),
            Err(NumberError::Range) => {
                let message = [text, b" is out of range for int64"].concat();
                Err(self.fail(token.line, &message))
            }
            Err(NumberError::Syntax) => Err(bug(&format!(
                "Expected integer value, but got '{}'.",
                String::from_utf8_lossy(text)
            ))),
        }
    }

    pub(super) fn float(&self, token: &Token) -> Outcome<Value> {
        let text = token.text.as_slice();
        let mut parts = text
            .split(|b| matches!(b, b'.' | b'e' | b'E'))
            .filter(|part| !part.is_empty())
            .peekable();
        let zero = parts.peek().is_some_and(|part| has_leading_zero(part));
        let problem = if !parts.all(underscores_ok) {
            Some(": underscores must be surrounded by digits")
        } else if zero {
            Some(": cannot have leading zeroes")
        } else if !periods_ok(text) {
            Some(": '.' must be followed by one or more digits")
        } else {
            None
        };
        if let Some(problem) = problem {
            return Err(self.fail(token.line, &about("Invalid float ", text, problem)));
        }
        let digits: Vec<u8> = text.iter().copied().filter(|&b| b != b'_').collect();
        match digits.as_slice() {
            b"nan" | b"+nan" => return Ok(Value::Float(f64::NAN)),
            b"-nan" => return Ok(Value::Float(-f64::NAN)),
            _ => {}
        }
        match parse_float(&digits) {
            Ok(number) => Ok(Value::Float(number)),
            Err(NumberError::Range) => {
                let message = [text, b" is out of range for float64"].concat();
                Err(self.fail(token.line, &message))
            }
            Err(NumberError::Syntax) => {
                Err(self.fail(token.line, &about("Invalid float value: ", text, "")))
            }
        }
    }

    pub(super) fn datetime(&self, token: &Token) -> Outcome<Value> {
        let text: Vec<u8> = token
            .text
            .iter()
            .map(|&byte| match byte {
                b'z' => b'Z',
                b't' | b' ' => b'T',
                _ => byte,
            })
            .collect();
        let zones = self.zones;
        let forms = [
            ("2006-01-02T15:04:05.999999999Z07:00", &zones.local),
            ("2006-01-02T15:04:05.999999999", &zones.date_time),
            ("2006-01-02", &zones.date),
            ("15:04:05.999999999", &zones.time),
            ("2006-01-02T15:04Z07:00", &zones.local),
            ("2006-01-02T15:04", &zones.date_time),
            ("15:04", &zones.time),
        ];
        let found = forms.into_iter().find_map(|(layout, zone)| {
            Time::parse(layout, &text, zone).ok().map(|time| (layout, time))
        });
        match found {
            Some((layout, time)) if !misses_zero(&text, layout.as_bytes()) => {
                TimeObject::new(time, zones.local.clone()).into_result().map_err(Failure::Panic)
            }
            _ => Err(self.fail(token.line, &about("invalid datetime: ", &text, ""))),
        }
    }

    /// Replaces the escapes, which the lexer has checked for form.
    fn unescape(&self, token: &Token, text: &[u8]) -> Outcome<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte != b'\\' {
                out.push(byte);
                continue;
            }
            let Some((&letter, after)) = rest.split_first() else {
                return Err(bug("Escape sequence at end of string."));
            };
            rest = after;
            let digits = match letter {
                b'b' => Err(0x08),
                b't' => Err(b'\t'),
                b'n' => Err(b'\n'),
                b'f' => Err(0x0c),
                b'r' => Err(b'\r'),
                b'e' => Err(0x1b),
                b'"' | b'\\' => Err(letter),
                b'x' => Ok(2),
                b'u' => Ok(4),
                b'U' => Ok(8),
                b' ' | b'\t' => {
                    let message = format!("invalid escape: '\\{}'", char::from(letter));
                    return Err(self.fail(token.line, message.as_bytes()));
                }
                _ => {
                    let letter = String::from_utf8_lossy(&quote_rune(letter.into())).into_owned();
                    return Err(bug(&format!(
                        "Expected valid escape code after \\, but got {letter}."
                    )));
                }
            };
            let count = match digits {
                Err(byte) => {
                    out.push(byte);
                    continue;
                }
                Ok(count) => count,
            };
            let (digits, after) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            rest = after;
            let digits = String::from_utf8_lossy(digits);
            let number = u32::from_str_radix(&digits, 16).unwrap_or(u32::MAX);
            let Some(c) = char::from_u32(number) else {
                let message = format!("Escaped character '\\u{digits}' is not valid UTF-8.");
                return Err(self.fail(token.line, message.as_bytes()));
            };
            let mut buffer = [0; 4];
            out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
        }
        Ok(out)
    }
}

fn has_leading_zero(text: &[u8]) -> bool {
    match text {
        [b'0', next, ..] => !matches!(next, b'b' | b'o' | b'x'),
        [b'-' | b'+', b'0', _, ..] => true,
        _ => false,
    }
}

fn underscores_ok(text: &[u8]) -> bool {
    if matches!(text, b"nan" | b"+nan" | b"-nan" | b"inf" | b"-inf" | b"+inf") {
        return true;
    }
    let mut accept = false;
    for &byte in text {
        if byte == b'_' && !accept {
            return false;
        }
        accept = byte.is_ascii_hexdigit();
    }
    accept
}

fn periods_ok(text: &[u8]) -> bool {
    let mut period = false;
    for &byte in text {
        if period && !byte.is_ascii_digit() {
            return false;
        }
        period = byte == b'.';
    }
    !period
}

/// Whether a field is shorter than its layout, which Go's parser would let pass.
fn misses_zero(text: &[u8], layout: &[u8]) -> bool {
    layout
        .iter()
        .take_while(|b| !matches!(b, b'.' | b'Z'))
        .enumerate()
        .any(|(i, b)| !b.is_ascii_digit() && text.get(i) != Some(b))
}

fn strip_first_line_end(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\n").or_else(|| text.strip_prefix(b"\r\n")).unwrap_or(text)
}

/// Removes the line ends that a backslash hides, with all blanks after them.
fn join_lines(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = after;
            continue;
        }
        if let Some(next) = after.strip_prefix(b"\\") {
            out.extend_from_slice(b"\\\\");
            rest = next;
            continue;
        }
        let blanks = after.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')).count();
        let (blank, next) = after.split_at_checked(blanks).unwrap_or((&[], after));
        if blank.contains(&b'\n') {
            rest = next;
        } else {
            out.push(byte);
            rest = after;
        }
    }
    out
}
