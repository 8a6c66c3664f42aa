//! The smallest parts of a pattern: characters, escapes, counts.

use super::error::{BAD_ESCAPE, BAD_UTF8, SyntaxError, TRAILING_BACKSLASH, error};

/// The next character, or Go's error for bytes that are none; empty text gives `None`.
pub(super) fn next_char(text: &[u8]) -> Result<Option<(char, &[u8])>, SyntaxError> {
    let head = text.get(..text.len().min(4)).unwrap_or_default();
    let Some(chunk) = head.utf8_chunks().next() else { return Ok(None) };
    match chunk.valid().chars().next() {
        Some(c) => Ok(Some((c, text.get(c.len_utf8()..).unwrap_or_default()))),
        None => Err(error(BAD_UTF8, text)),
    }
}

pub(super) fn check_utf8(text: &[u8]) -> Result<(), SyntaxError> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        // Go reports the rest of the text from the first bad byte on.
        Err(problem) => Err(error(BAD_UTF8, text.get(problem.valid_up_to()..).unwrap_or_default())),
    }
}

/// The part of `whole` before its suffix `rest`.
pub(super) fn before<'a>(whole: &'a [u8], rest: &[u8]) -> &'a [u8] {
    whole.get(..whole.len().saturating_sub(rest.len())).unwrap_or(whole)
}

/// A single-character escape; `None` for a surrogate, which no text contains.
pub(super) fn escape(text: &[u8]) -> Result<(Option<char>, &[u8]), SyntaxError> {
    let (number, rest) = escape_number(text)?;
    Ok((char::from_u32(number), rest))
}

pub(super) fn escape_number(text: &[u8]) -> Result<(u32, &[u8]), SyntaxError> {
    let Some((c, mut rest)) = next_char(text.get(1..).unwrap_or_default())? else {
        return Err(error(TRAILING_BACKSLASH, b""));
    };
    let octal = |rest: &[u8]| rest.first().copied().filter(|b| (b'0'..=b'7').contains(b));
    match c {
        '0'..='7' if c == '0' || octal(rest).is_some() => {
            let mut number = u32::from(c) - 0x30;
            for _ in 1..3 {
                let Some(digit) = octal(rest) else { break };
                number = number * 8 + u32::from(digit - b'0');
                rest = rest.get(1..).unwrap_or_default();
            }
            return Ok((number, rest));
        }
        'x' => match hexadecimal(rest)? {
            (Some(number), rest) => return Ok((number, rest)),
            (None, after) => rest = after,
        },
        'a' => return Ok((7, rest)),
        'f' => return Ok((12, rest)),
        'n' => return Ok((10, rest)),
        'r' => return Ok((13, rest)),
        't' => return Ok((9, rest)),
        'v' => return Ok((11, rest)),
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok((u32::from(c), rest)),
        _ => {}
    }
    Err(error(BAD_ESCAPE, before(text, rest)))
}

/// What follows `\x`; `None` with the place where Go stops reading when it is malformed.
fn hexadecimal(text: &[u8]) -> Result<(Option<u32>, &[u8]), SyntaxError> {
    let Some((c, mut rest)) = next_char(text)? else { return Ok((None, text)) };
    if c != '{' {
        // Go reads a second character before it looks at the first; the end of the text
        // counts as one that is no digit.
        let Some((d, rest)) = next_char(rest)? else { return Ok((None, rest)) };
        return Ok((c.to_digit(16).zip(d.to_digit(16)).map(|(x, y)| x * 16 + y), rest));
    }
    let mut number = 0;
    let mut digits = 0;
    while let Some((c, next)) = next_char(rest)? {
        rest = next;
        if c == '}' {
            return Ok((Some(number).filter(|_| digits > 0), rest));
        }
        let Some(digit) = c.to_digit(16) else { break };
        number = number * 16 + digit;
        if number > u32::from(char::MAX) {
            break;
        }
        digits += 1;
    }
    Ok((None, rest))
}

/// The least and the most copies; no most for an open end.
type Count = Option<(u32, Option<u32>)>;

/// `{n}`, `{n,}` or `{n,m}`: the counts, themselves `None` when out of any range, and what
/// follows. `None` when it is not of that form and `{` stands for itself.
pub(super) fn count(text: &[u8]) -> Option<(Count, &[u8])> {
    let (min, rest) = integer(text.strip_prefix(b"{")?)?;
    let (max, rest) = match rest.strip_prefix(b",") {
        None => (Some(min), rest),
        Some(rest) if rest.first() == Some(&b'}') => (None, rest),
        Some(rest) => {
            let (max, rest) = integer(rest)?;
            (Some(max), rest)
        }
    };
    let rest = rest.strip_prefix(b"}")?;
    let range = match (min, max) {
        (Some(min), None) => Some((min, None)),
        (Some(min), Some(Some(max))) => Some((min, Some(max))),
        _ => None,
    };
    Some((range, rest))
}

/// Digits without a leading zero; the inner `None` is a number beyond Go's range.
fn integer(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if number.is_empty() || (number.len() > 1 && number.starts_with(b"0")) {
        return None;
    }
    let value = std::str::from_utf8(number).ok().and_then(|digits| digits.parse().ok());
    Some((value, rest))
}
