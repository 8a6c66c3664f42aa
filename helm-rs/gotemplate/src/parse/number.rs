//! Numeric constants (Go `text/template/parse/node.go`, `newNumber`).

use super::lexer::Kind;
use crate::fmt;
use crate::program::{Number, Span};
use crate::strconv::{self, parse_float, parse_int, parse_uint};
use crate::value::Value;

/// The number under every type that can represent it; the error is Go's text.
pub(super) fn parse_number(text: &[u8], kind: Kind) -> Result<Number, Vec<u8>> {
    match kind {
        Kind::CharConstant => return char_constant(text),
        Kind::Complex => {
            return complex_pair(text)
                .map(|(real, imaginary)| from_complex(real, imaginary))
                .ok_or_else(|| b"syntax error scanning complex number".to_vec());
        }
        _ => {}
    }
    if let [digits @ .., b'i'] = text
        && let Ok(imaginary) = parse_float(digits)
    {
        return Ok(from_complex(0.0, imaginary));
    }
    let mut number = empty();
    number.uint = parse_uint(text, 0).ok();
    number.int = parse_int(text, 0).ok();
    if number.int == Some(0) && number.uint.is_none() {
        // -0
        number.uint = Some(0);
    }
    let has_point = text.iter().any(|b| matches!(b, b'.' | b'e' | b'E' | b'p' | b'P'));
    if let Some(int) = number.int {
        number.float = Some(int as f64);
    } else if let Some(uint) = number.uint {
        number.float = Some(uint as f64);
    } else if let Ok(float) = parse_float(text) {
        if !has_point {
            return Err(complain(b"integer overflow: %q", text));
        }
        number.float = Some(float);
        number.int = exact_int(float);
        number.uint = exact_uint(float);
    }
    if number.int.is_none() && number.uint.is_none() && number.float.is_none() {
        return Err(complain(b"illegal number syntax: %q", text));
    }
    number.looks_float = number.float.is_some() && has_point && !is_hex_int(text);
    Ok(number)
}

const fn empty() -> Number {
    Number {
        text: Span { start: 0, end: 0 },
        int: None,
        uint: None,
        float: None,
        complex: None,
        looks_float: false,
    }
}

fn complain(format: &[u8], text: &[u8]) -> Vec<u8> {
    fmt::sprintf(format, &[Value::string(text)])
}

/// `isHexInt` (Go `text/template/exec.go`).
fn is_hex_int(text: &[u8]) -> bool {
    text.len() > 2
        && matches!(text, [b'0', b'x' | b'X', ..])
        && !text.iter().any(|b| matches!(b, b'p' | b'P'))
}

fn char_constant(text: &[u8]) -> Result<Number, Vec<u8>> {
    let inner = text.get(1..).unwrap_or_default();
    let (c, _, tail) =
        strconv::unquote_char(inner, b'\'').map_err(|error| error.to_string().into_bytes())?;
    if tail != b"'" {
        return Err(complain(b"malformed character constant: %s", text));
    }
    Ok(Number { int: Some(c.into()), uint: Some(c.into()), float: Some(c.into()), ..empty() })
}

/// `simplifyComplex`.
fn from_complex(real: f64, imaginary: f64) -> Number {
    let mut number = Number { complex: Some((real, imaginary)), ..empty() };
    if imaginary == 0.0 {
        number.float = Some(real);
        number.int = exact_int(real);
        number.uint = exact_uint(real);
    }
    number
}

/// `1+2i`: two floats, the second with its sign.
fn complex_pair(text: &[u8]) -> Option<(f64, f64)> {
    let body = text.strip_suffix(b"i")?;
    let mut split = None;
    for (at, byte) in body.iter().enumerate().skip(1) {
        let after_exponent = matches!(body.get(at - 1), Some(b'e' | b'E' | b'p' | b'P'))
            && !(body.starts_with(b"0x") && matches!(body.get(at - 1), Some(b'e' | b'E')));
        if matches!(byte, b'+' | b'-') && !after_exponent {
            split = Some(at);
            break;
        }
    }
    let (real, imaginary) = body.split_at(split?);
    let number = |text: &[u8]| match parse_float(text) {
        Ok(value) => Some(value),
        Err(_) => parse_int(text, 0).ok().map(|value| value as f64),
    };
    Some((number(real)?, number(imaginary)?))
}

/// Whether the float is an integer of the type; Go compares after converting, and what
/// does not fit comes back changed.
fn exact_int(float: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    ((-LIMIT..LIMIT).contains(&float) && float.trunc() == float).then_some(float as i64)
}

fn exact_uint(float: f64) -> Option<u64> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    ((0.0..LIMIT).contains(&float) && float.trunc() == float).then_some(float as u64)
}
