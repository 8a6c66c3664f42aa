//! Formatting of floats (Go `internal/strconv/ftoa.go`).

use std::io::Write as _;

/// The verbs of `strconv.FormatFloat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// `b`: `-ddddp±ddd`, a binary exponent.
    Binary,
    /// `e`, `E`: `-d.dddde±dd`.
    Exponent {
        /// Whether it is `E`.
        upper: bool,
    },
    /// `f`: `-ddd.dddd`.
    Fixed,
    /// `g`, `G`: `e` for large and small exponents, `f` otherwise.
    General {
        /// Whether it is `G`.
        upper: bool,
    },
    /// `x`, `X`: a hexadecimal fraction and a binary exponent.
    Hex {
        /// Whether it is `X`.
        upper: bool,
    },
}

/// A finite float has at most this many digits after the point, and fewer significant
/// ones; whatever precision asks for beyond is zeros.
const MAX_FRACTION_DIGITS: usize = 1074;

/// The text of `value` with `precision` digits, `None` for as few as give `value` back,
/// as `strconv.FormatFloat(value, format, precision, 64)`.
pub fn format_float(value: f64, format: FloatFormat, precision: Option<usize>) -> String {
    let mut out = Vec::with_capacity(24);
    append_float(&mut out, value, format, precision);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends what [`format_float`] gives.
pub fn append_float(out: &mut Vec<u8>, value: f64, format: FloatFormat, precision: Option<usize>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-Inf" } else { b"+Inf" });
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    match (format, precision) {
        (FloatFormat::General { .. }, None) if value < 1e6 && value.fract() == 0.0 => {
            // Writing to a vector cannot fail.
            write!(out, "{}", value as u32).unwrap_or_default();
        }
        (FloatFormat::Binary, _) => binary(out, value),
        (FloatFormat::Hex { upper }, _) => hex(out, value, precision, upper),
        (FloatFormat::Exponent { upper }, None) => {
            let digits = Digits::shortest(value);
            exponent(out, &digits, digits.digits.len().saturating_sub(1), upper);
        }
        (FloatFormat::Exponent { upper }, Some(precision)) => {
            exponent(out, &Digits::significant(value, precision + 1), precision, upper);
        }
        (FloatFormat::Fixed, None) => {
            let digits = Digits::shortest(value);
            let count = digits.digits.len() as i32;
            fixed(out, &digits, usize::try_from(count - digits.point).unwrap_or(0));
        }
        (FloatFormat::Fixed, Some(precision)) => {
            let exact = precision.min(MAX_FRACTION_DIGITS);
            write!(out, "{value:.exact$}").unwrap_or_default();
            if exact == 0 && precision > 0 {
                out.push(b'.');
            }
            out.resize(out.len() + precision - exact, b'0');
        }
        (FloatFormat::General { upper }, None) => {
            let digits = Digits::shortest(value);
            general(out, &digits, digits.digits.len(), 6, upper);
        }
        (FloatFormat::General { upper }, Some(precision)) => {
            let precision = precision.max(1);
            let digits = Digits::significant(value, precision);
            let count = digits.digits.len();
            let limit =
                if precision > count && count as i32 >= digits.point { count } else { precision };
            general(out, &digits, precision, limit, upper);
        }
    }
}

/// Decimal digits without trailing zeros: `0.DIGITS × 10^point`.
struct Digits {
    digits: Vec<u8>,
    point: i32,
}

impl Digits {
    fn shortest(value: f64) -> Self {
        let text = format!("{value:e}");
        let digits = Self::from_exponent_form(&text);
        // Half way between two shortest texts Go takes the even one, Rust the greater. That
        // takes an exact expansion of one digit more, so it needs many digits.
        if digits.digits.len() >= 16 {
            let even = format!("{value:.0$e}", digits.digits.len() - 1);
            if even != text && even.parse() == Ok(value) {
                return Self::from_exponent_form(&even);
            }
        }
        digits
    }

    fn significant(value: f64, count: usize) -> Self {
        let fraction = count.saturating_sub(1).min(MAX_FRACTION_DIGITS);
        Self::from_exponent_form(&format!("{value:.fraction$e}"))
    }

    fn from_exponent_form(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Self { digits, point: 0 };
        }
        Self { digits, point: exponent.parse::<i32>().unwrap_or(0) + 1 }
    }

    fn at(&self, index: usize) -> u8 {
        self.digits.get(index).copied().unwrap_or(b'0')
    }
}

/// `formatDigits` for `g`: `limit` is the exponent from which the `e` form is used.
fn general(out: &mut Vec<u8>, digits: &Digits, precision: usize, limit: usize, upper: bool) {
    let count = digits.digits.len();
    let exp = digits.point - 1;
    if exp < -4 || exp >= limit as i32 {
        exponent(out, digits, precision.min(count).saturating_sub(1), upper);
    } else {
        let precision =
            if precision as i32 > digits.point { count as i32 } else { precision as i32 };
        fixed(out, digits, usize::try_from(precision - digits.point).unwrap_or(0));
    }
}

/// `fmtE`.
fn exponent(out: &mut Vec<u8>, digits: &Digits, precision: usize, upper: bool) {
    out.push(digits.at(0));
    if precision > 0 {
        out.push(b'.');
        let end = digits.digits.len().min(precision + 1);
        let tail = digits.digits.get(1..end).unwrap_or_default();
        out.extend_from_slice(tail);
        out.resize(out.len() + precision - tail.len(), b'0');
    }
    out.push(if upper { b'E' } else { b'e' });
    let exp = if digits.digits.is_empty() { 0 } else { digits.point - 1 };
    out.push(if exp < 0 { b'-' } else { b'+' });
    write!(out, "{:02}", exp.unsigned_abs()).unwrap_or_default();
}

/// `fmtF`.
fn fixed(out: &mut Vec<u8>, digits: &Digits, precision: usize) {
    let point = usize::try_from(digits.point).unwrap_or(0);
    if point > 0 {
        out.extend((0..point).map(|i| digits.at(i)));
    } else {
        out.push(b'0');
    }
    if precision > 0 {
        out.push(b'.');
        out.extend((0..precision).map(|i| {
            // Zeros between the point and the first digit have a negative index.
            let index = i64::from(digits.point) + i as i64;
            usize::try_from(index).map_or(b'0', |index| digits.at(index))
        }));
    }
}

/// Mantissa and exponent as Go splits them: the value is `mantissa × 2^(exponent - 52)`.
fn split(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    if exponent == 0 { (mantissa, -1022) } else { (mantissa | (1 << 52), exponent - 1023) }
}

/// `fmtB`.
fn binary(out: &mut Vec<u8>, value: f64) {
    let (mantissa, exponent) = split(value);
    write!(out, "{mantissa}p{:+}", exponent - 52).unwrap_or_default();
}

/// `fmtX`.
fn hex(out: &mut Vec<u8>, value: f64, precision: Option<usize>, upper: bool) {
    const TOP: u64 = 1 << 60;
    let (mut mantissa, mut exponent) = split(value);
    if mantissa == 0 {
        exponent = 0;
    }
    mantissa <<= 8;
    while mantissa != 0 && mantissa & TOP == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision) = precision.filter(|&p| p < 15) {
        let shift = precision as u32 * 4;
        let extra = (mantissa << shift) & (TOP - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > TOP >> 1 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (TOP << 1) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let table: &[u8; 16] = if upper { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let digit = |mantissa: u64| table[((mantissa >> 60) & 15) as usize];
    out.extend_from_slice(&[b'0', if upper { b'X' } else { b'x' }]);
    out.push(b'0' + ((mantissa >> 60) & 1) as u8);
    mantissa <<= 4;
    match precision {
        None if mantissa != 0 => {
            out.push(b'.');
            while mantissa != 0 {
                out.push(digit(mantissa));
                mantissa <<= 4;
            }
        }
        Some(precision) if precision > 0 => {
            out.push(b'.');
            for _ in 0..precision {
                out.push(digit(mantissa));
                mantissa <<= 4;
            }
        }
        _ => {}
    }
    out.push(if upper { b'P' } else { b'p' });
    out.push(if exponent < 0 { b'-' } else { b'+' });
    write!(out, "{:02}", exponent.unsigned_abs()).unwrap_or_default();
}
