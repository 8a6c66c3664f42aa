//! Parsing of numbers (Go `internal/strconv/atoi.go` and `atof.go`).

/// Why a text is no number; Go's `strconv.ErrSyntax` and `ErrRange`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not a number's syntax.
    #[error("invalid syntax")]
    Syntax,
    /// A number that the type cannot hold.
    #[error("value out of range")]
    Range,
}

/// An unsigned integer in `base` (0: by its prefix, underscores allowed), as
/// `strconv.ParseUint(text, base, 64)`.
///
/// # Errors
/// When it is no such number, or too large.
pub fn parse_uint(text: &[u8], base: u32) -> Result<u64, NumberError> {
    if text.is_empty() || !(base == 0 || (2..=36).contains(&base)) {
        return Err(NumberError::Syntax);
    }
    let (radix, digits) = match text {
        _ if base != 0 => (base, text),
        [b'0', b'b' | b'B', rest @ ..] if !rest.is_empty() => (2, rest),
        [b'0', b'o' | b'O', rest @ ..] if !rest.is_empty() => (8, rest),
        [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (16, rest),
        [b'0', rest @ ..] => (8, rest),
        _ => (10, text),
    };
    let mut underscores = false;
    let mut value: u64 = 0;
    let mut overflow = false;
    for &byte in digits {
        if byte == b'_' && base == 0 {
            underscores = true;
            continue;
        }
        let digit = char::from(byte).to_digit(radix).ok_or(NumberError::Syntax)?;
        let next = value
            .checked_mul(u64::from(radix))
            .and_then(|value| value.checked_add(u64::from(digit)));
        // Go reports the range at once, before it looks at what follows.
        let Some(next) = next else {
            overflow = true;
            break;
        };
        value = next;
    }
    if overflow {
        return Err(NumberError::Range);
    }
    if underscores && !underscores_fit(text) { Err(NumberError::Syntax) } else { Ok(value) }
}

/// A signed integer, as `strconv.ParseInt(text, base, 64)`.
///
/// # Errors
/// When it is no such number, or out of range.
pub fn parse_int(text: &[u8], base: u32) -> Result<i64, NumberError> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let value = i128::from(parse_uint(digits, base)?);
    i64::try_from(if negative { -value } else { value }).map_err(|_| NumberError::Range)
}

/// A float, decimal or hexadecimal, as `strconv.ParseFloat(text, 64)`.
///
/// # Errors
/// When it is no float, or too large for one.
pub fn parse_float(text: &[u8]) -> Result<f64, NumberError> {
    let unsigned = match text {
        [b'-' | b'+', rest @ ..] => rest,
        _ => text,
    };
    let negative = text.first() == Some(&b'-');
    let signed = |value: f64| if negative { -value } else { value };
    let lower = unsigned.to_ascii_lowercase();
    match lower.as_slice() {
        b"inf" | b"infinity" => return Ok(signed(f64::INFINITY)),
        b"nan" if unsigned.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    if lower.contains(&b'_') && !underscores_fit(text) {
        return Err(NumberError::Syntax);
    }
    let plain: Vec<u8> = lower.iter().copied().filter(|&b| b != b'_').collect();
    if lower.starts_with(b"0x") && lower.len() > 2 {
        return hex(plain.get(2..).unwrap_or_default()).map(signed);
    }
    if !plain.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'+' | b'-')) {
        return Err(NumberError::Syntax);
    }
    // What remains is Rust's syntax too, but for a second sign, which Rust would take.
    if matches!(plain.first(), Some(b'+' | b'-')) {
        return Err(NumberError::Syntax);
    }
    let plain = std::str::from_utf8(&plain).map_err(|_| NumberError::Syntax)?;
    let value: f64 = plain.parse().map_err(|_| NumberError::Syntax)?;
    if value.is_infinite() { Err(NumberError::Range) } else { Ok(signed(value)) }
}

/// `readFloat` and `atofHex` for what follows `0x`.
fn hex(digits: &[u8]) -> Result<f64, NumberError> {
    let mark = digits.iter().position(|&b| b == b'p').ok_or(NumberError::Syntax)?;
    let (digits, power) = digits.split_at(mark);
    let power = power.get(1..).unwrap_or_default();
    let (negative_power, power_digits) = match power {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, power),
    };
    if power_digits.is_empty() || !power_digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberError::Syntax);
    }
    let power = power_digits
        .iter()
        .fold(0i64, |e, &b| if e < 10000 { e * 10 + i64::from(b - b'0') } else { e });

    let (mut mantissa, mut kept, mut exponent) = (0u64, 0u32, 0i64);
    let (mut seen_point, mut seen_digit, mut sticky) = (false, false, false);
    for &byte in digits {
        if byte == b'.' {
            if seen_point {
                return Err(NumberError::Syntax);
            }
            seen_point = true;
            continue;
        }
        let digit = char::from(byte).to_digit(16).ok_or(NumberError::Syntax)?;
        seen_digit = true;
        if kept < 15 {
            mantissa = mantissa << 4 | u64::from(digit);
            if mantissa != 0 {
                kept += 1;
            }
            exponent -= if seen_point { 4 } else { 0 };
        } else {
            sticky |= digit != 0;
            exponent += if seen_point { 0 } else { 4 };
        }
    }
    if !seen_digit {
        return Err(NumberError::Syntax);
    }
    exponent += if negative_power { -power } else { power };
    if mantissa == 0 {
        return Ok(0.0);
    }
    // The mantissa has at most 60 bits; a sticky bit below them makes the rounding exact.
    let mantissa = mantissa << 1 | u64::from(sticky);
    round_binary(mantissa, exponent - 1)
}

/// `mantissa × 2^exponent`, rounded to even.
fn round_binary(mantissa: u64, exponent: i64) -> Result<f64, NumberError> {
    let length = 64 - i64::from(mantissa.leading_zeros());
    // The exponent of the leading bit decides how many bits fit.
    let top = exponent + length - 1;
    let unit = (top - 52).max(-1074);
    let drop = unit - exponent;
    let (kept, unit) = if drop <= 0 {
        (u128::from(mantissa), exponent)
    } else if drop > 64 {
        (0, unit)
    } else {
        let wide = u128::from(mantissa);
        let (kept, rest, half) = (wide >> drop, wide & ((1 << drop) - 1), 1u128 << (drop - 1));
        let up = rest > half || (rest == half && kept & 1 == 1);
        (kept + u128::from(up), unit)
    };
    if kept == 0 {
        return Ok(0.0);
    }
    // Two exact steps: one power alone may lie outside the range of a float.
    let first = unit.clamp(-1000, 1000);
    let second = (unit - first).clamp(-1000, 1000);
    let value = kept as f64 * power_of_two(first) * power_of_two(second);
    if value.is_infinite() { Err(NumberError::Range) } else { Ok(value) }
}

fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// `underscoreOK`: underscores stand between digits, or between a base prefix and a digit.
fn underscores_fit(text: &[u8]) -> bool {
    #[derive(PartialEq)]
    enum Seen {
        Start,
        Digit,
        Underscore,
        Other,
    }
    let text = match text {
        [b'-' | b'+', rest @ ..] => rest,
        _ => text,
    };
    let (digits, hex, mut seen) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (rest, true, Seen::Digit),
        [b'0', b'b' | b'B' | b'o' | b'O', rest @ ..] => (rest, false, Seen::Digit),
        _ => (text, false, Seen::Start),
    };
    for &byte in digits {
        if byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit() {
            seen = Seen::Digit;
        } else if byte == b'_' {
            if seen != Seen::Digit {
                return false;
            }
            seen = Seen::Underscore;
        } else {
            if seen == Seen::Underscore {
                return false;
            }
            seen = Seen::Other;
        }
    }
    seen != Seen::Underscore
}
