//! Numbers as Go's `strconv` reads and prints them.

use std::fmt::Write as _;

/// An integer that go-yaml resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integer {
    Signed(i64),
    Unsigned(u64),
}

/// `strconv.ParseInt(text, 0, 64)`, then `strconv.ParseUint(text, 0, 64)`.
///
/// `text` has no underscores.
pub(crate) fn parse_integer(text: &str) -> Option<Integer> {
    let (negative, digits) = split_sign(text);
    let (radix, digits) = split_radix(digits)?;
    if negative.is_none() {
        // Only the unsigned parser refuses signs, so it adds nothing to a signed text.
        let value = parse_digits(digits, radix)?;
        return Some(i64::try_from(value).map_or(Integer::Unsigned(value), Integer::Signed));
    }
    signed(negative == Some(true), parse_digits(digits, radix)?).map(Integer::Signed)
}

/// `strconv.ParseInt(text, radix, 64)`, then `strconv.ParseUint(text, radix, 64)`.
pub(crate) fn parse_radix(text: &str, radix: u32) -> Option<Integer> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() {
        return None;
    }
    let value = parse_digits(digits, radix)?;
    if negative.is_none() {
        return Some(i64::try_from(value).map_or(Integer::Unsigned(value), Integer::Signed));
    }
    signed(negative == Some(true), value).map(Integer::Signed)
}

fn split_sign(text: &str) -> (Option<bool>, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (Some(true), text.get(1..).unwrap_or_default()),
        Some(b'+') => (Some(false), text.get(1..).unwrap_or_default()),
        _ => (None, text),
    }
}

fn signed(negative: bool, value: u64) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() }
}

/// Takes a radix prefix off; nothing left means zero only behind a leading `0`.
fn split_radix(digits: &str) -> Option<(u32, &str)> {
    let Some(rest) = digits.strip_prefix('0') else {
        return (!digits.is_empty()).then_some((10, digits));
    };
    let radix = match rest.as_bytes() {
        [b'b' | b'B', _, ..] => 2,
        [b'o' | b'O', _, ..] => 8,
        [b'x' | b'X', _, ..] => 16,
        _ => return Some((8, rest)),
    };
    Some((radix, rest.get(1..).unwrap_or_default()))
}

fn parse_digits(digits: &str, radix: u32) -> Option<u64> {
    digits.chars().try_fold(0u64, |value, digit| {
        value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit.to_digit(radix)?))
    })
}

/// Whether the text has the form of a decimal float (`^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$`).
pub(crate) fn is_decimal_float(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits_from = |at: usize| bytes.iter().skip(at).take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits_from(at);
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits_from(at + 1);
        if whole + fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    } else if whole == 0 {
        return false;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'-' | b'+')));
        let exponent = digits_from(at);
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == bytes.len()
}

/// `strconv.ParseFloat(text, 64)` of a text that [`is_decimal_float`]; `None` where it overflows.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// `strconv.ParseFloat(text, 64)` of a text that begins with a point. Unlike other numbers, which
/// go-yaml strips of underscores first, it may have them between digits only.
pub(crate) fn parse_fraction(text: &str) -> Option<f64> {
    let mut behind = 0;
    let separated = text.bytes().chain([0]).all(|byte| {
        let good = match (behind, byte) {
            (b'_', _) => byte.is_ascii_digit(),
            (_, b'_') => behind.is_ascii_digit(),
            _ => true,
        };
        behind = byte;
        good
    });
    if !separated {
        return None;
    }
    let plain = text.replace('_', "");
    is_decimal_float(&plain).then(|| parse_float(&plain)).flatten()
}

/// The shortest decimal digits of a number and the power of ten of the first one.
struct Shortest {
    negative: bool,
    digits: String,
    exponent: i32,
}

impl Shortest {
    fn of_f64(value: f64) -> Self {
        let shortest = Self::new(&format!("{value:e}"));
        if shortest.digits.len() < 15 {
            return shortest;
        }
        // Of two shortest texts that are equally near, Go takes the one that ends on an even digit.
        let nearest = format!("{value:.*e}", shortest.digits.len() - 1);
        if nearest.parse() == Ok(value) { Self::new(&nearest) } else { shortest }
    }

    fn of_f32(value: f32) -> Self {
        let shortest = Self::new(&format!("{value:e}"));
        if shortest.digits.len() < 6 {
            return shortest;
        }
        let nearest = format!("{value:.*e}", shortest.digits.len() - 1);
        if nearest.parse() == Ok(value) { Self::new(&nearest) } else { shortest }
    }

    fn new(exponential: &str) -> Self {
        let (mantissa, exponent) = exponential.split_once('e').unwrap_or((exponential, "0"));
        Self {
            negative: mantissa.starts_with('-'),
            digits: mantissa.chars().filter(char::is_ascii_digit).collect(),
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    /// Go's `'g'` with the shortest precision: exponents below -4 and from 6 on are written.
    fn general(&self) -> String {
        if self.exponent < -4 || self.exponent >= 6 { self.exponential() } else { self.fixed() }
    }

    fn exponential(&self) -> String {
        let mut text = String::with_capacity(24);
        if self.negative {
            text.push('-');
        }
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or(("0", ""));
        text.push_str(first);
        if !rest.is_empty() {
            text.push('.');
            text.push_str(rest);
        }
        let sign = if self.exponent < 0 { '-' } else { '+' };
        write!(text, "e{sign}{:02}", self.exponent.unsigned_abs()).unwrap_or_default();
        text
    }

    fn fixed(&self) -> String {
        let mut text = String::with_capacity(24);
        if self.negative {
            text.push('-');
        }
        let Ok(exponent) = usize::try_from(self.exponent) else {
            text.push_str("0.");
            for _ in 1..self.exponent.unsigned_abs() {
                text.push('0');
            }
            text.push_str(&self.digits);
            return text;
        };
        let whole = exponent + 1;
        if self.digits.len() <= whole {
            text.push_str(&self.digits);
            for _ in self.digits.len()..whole {
                text.push('0');
            }
        } else {
            let (left, right) = self.digits.split_at_checked(whole).unwrap_or((&self.digits, ""));
            text.push_str(left);
            text.push('.');
            text.push_str(right);
        }
        text
    }
}

/// The words of `strconv` for numbers that are none.
fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("+Inf")
    } else if value == f64::NEG_INFINITY {
        Some("-Inf")
    } else {
        None
    }
}

/// `strconv.FormatFloat(value, 'g', -1, 64)`: how go-yaml prints floats, and `%v` in essence.
///
/// ```
/// use goyaml::number::format_g64;
/// assert_eq!(format_g64(1234567.0), "1.234567e+06");
/// assert_eq!(format_g64(0.5), "0.5");
/// assert_eq!(format_g64(f64::NAN), "NaN");
/// ```
pub fn format_g64(value: f64) -> String {
    special(value).map_or_else(|| Shortest::of_f64(value).general(), str::to_owned)
}

/// `strconv.FormatFloat(value, 'g', -1, 32)`: how `sigs.k8s.io/yaml` turns floats into strings
/// where a string is wanted, keys among them.
///
/// ```
/// use goyaml::number::format_g32;
/// assert_eq!(format_g32(1.1), "1.1");
/// assert_eq!(format_g32(16777217.0), "1.6777216e+07");
/// ```
pub fn format_g32(value: f64) -> String {
    let value = value as f32;
    special(f64::from(value)).map_or_else(|| Shortest::of_f32(value).general(), str::to_owned)
}

/// How `encoding/json` prints a float; `None` for what JSON does not have.
///
/// ```
/// use goyaml::number::format_json;
/// assert_eq!(format_json(1e20).as_deref(), Some("100000000000000000000"));
/// assert_eq!(format_json(1e-7).as_deref(), Some("1e-7"));
/// assert_eq!(format_json(f64::NAN), None);
/// ```
pub fn format_json(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let shortest = Shortest::of_f64(value);
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
        return Some(shortest.fixed());
    }
    let mut text = shortest.exponential();
    // A single digit behind a minus loses its zero.
    if let Some(at) = text.rfind("e-0") {
        text.remove(at + 2);
    }
    Some(text)
}
