//! Go's `time.Duration`.

use std::fmt;

use super::layout;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub i64);

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Why a text is no duration, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It does not follow the grammar, or is out of range.
    #[error("time: invalid duration {value}")]
    Invalid {
        /// The whole text, quoted as Go's `time` package does.
        value: String,
    },
    /// A number stands without a unit.
    #[error("time: missing unit in duration {value}")]
    MissingUnit {
        /// The whole text, quoted.
        value: String,
    },
    /// There is no such unit.
    #[error("time: unknown unit {unit} in duration {value}")]
    UnknownUnit {
        /// The unit, quoted.
        unit: String,
        /// The whole text, quoted.
        value: String,
    },
}

/// Go's `lessThanHalf`.
pub(super) const fn less_than_half(part: i64, whole: i64) -> bool {
    (part as u64).wrapping_add(part as u64) < whole as u64
}

impl Duration {
    /// Whole seconds, wrapping as Go's multiplication does.
    pub const fn seconds(seconds: i64) -> Self {
        Self(seconds.wrapping_mul(SECOND as i64))
    }

    /// Reads a duration such as `-1h30m` or `1.5s` (`time.ParseDuration`).
    ///
    /// # Errors
    /// When the text is none, or exceeds 64 bits of nanoseconds.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, DurationError> {
        let whole = text.as_ref();
        let invalid = || DurationError::Invalid { value: layout::quote(whole) };
        let (negative, mut text) = match whole.split_first() {
            Some((b'-', rest)) => (true, rest),
            Some((b'+', rest)) => (false, rest),
            _ => (false, whole),
        };
        if text == b"0" {
            return Ok(Self(0));
        }
        if text.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while let Some(&first) = text.first() {
            if first != b'.' && !first.is_ascii_digit() {
                return Err(invalid());
            }
            let (integer, after) = layout::leading_integer(text).ok_or_else(invalid)?;
            let mut digits = after.len() != text.len();
            text = after;
            let (mut fraction, mut scale) = (0, 1.0);
            if let Some(after) = text.strip_prefix(b".") {
                let (value, by, rest) = leading_fraction(after);
                (fraction, scale) = (value, by);
                digits |= rest.len() != after.len();
                text = rest;
            }
            if !digits {
                return Err(invalid());
            }
            let length =
                text.iter().position(|b| *b == b'.' || b.is_ascii_digit()).unwrap_or(text.len());
            let (unit_text, rest) = text.split_at_checked(length).unwrap_or((text, &[]));
            if unit_text.is_empty() {
                return Err(DurationError::MissingUnit { value: layout::quote(whole) });
            }
            text = rest;
            let unit = unit(unit_text).ok_or_else(|| DurationError::UnknownUnit {
                unit: layout::quote(unit_text),
                value: layout::quote(whole),
            })?;
            if integer > (1 << 63) / unit {
                return Err(invalid());
            }
            let mut value = integer * unit;
            if fraction > 0 {
                value += (fraction as f64 * (unit as f64 / scale)) as u64;
                if value > 1 << 63 {
                    return Err(invalid());
                }
            }
            total = total.wrapping_add(value);
            if total > 1 << 63 {
                return Err(invalid());
            }
        }
        if negative {
            return Ok(Self((total as i64).wrapping_neg()));
        }
        i64::try_from(total).map(Self).map_err(|_| invalid())
    }

    /// Rounded toward zero to a multiple of `step` (`Truncate`).
    #[must_use]
    pub const fn truncate(self, step: Self) -> Self {
        if step.0 <= 0 { self } else { Self(self.0 - self.0 % step.0) }
    }

    /// Rounded to a multiple of `step`, halves away from zero, saturating (`Round`).
    #[must_use]
    pub const fn round(self, step: Self) -> Self {
        if step.0 <= 0 {
            return self;
        }
        let remainder = self.0 % step.0;
        if self.0 < 0 {
            let remainder = -remainder;
            if less_than_half(remainder, step.0) {
                return Self(self.0 + remainder);
            }
            return Self(self.0.saturating_sub(step.0 - remainder));
        }
        if less_than_half(remainder, step.0) {
            return Self(self.0 - remainder);
        }
        Self(self.0.saturating_add(step.0 - remainder))
    }

    /// The value in another unit, as Go computes it: whole and rest apart.
    pub const fn in_units(self, unit: i64) -> f64 {
        (self.0 / unit) as f64 + (self.0 % unit) as f64 / unit as f64
    }
}

fn unit(text: &[u8]) -> Option<u64> {
    Some(match text {
        b"ns" => 1,
        // The micro sign and the Greek letter.
        b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => MICROSECOND,
        b"ms" => MILLISECOND,
        b"s" => SECOND,
        b"m" => MINUTE,
        b"h" => HOUR,
        _ => return None,
    })
}

/// Digits after the point with the power of ten they are divided by; what exceeds the
/// precision is skipped.
fn leading_fraction(text: &[u8]) -> (u64, f64, &[u8]) {
    let (mut value, mut scale, mut full) = (0_u64, 1.0, false);
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits).unwrap_or((text, &[]));
    for digit in digits {
        full |= value > (u64::MAX >> 1) / 10;
        if full {
            continue;
        }
        let next = value * 10 + u64::from(digit - b'0');
        if next > 1 << 63 {
            full = true;
            continue;
        }
        value = next;
        scale *= 10.0;
    }
    (value, scale, rest)
}

impl fmt::Display for Duration {
    /// Go's form: `1h2m3.5s`, `1.5µs`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let value = self.0.unsigned_abs();
        let (unit, suffix) = match value {
            0 => return f.write_str("0s"),
            1..MICROSECOND => (1, "ns"),
            MICROSECOND..MILLISECOND => (MICROSECOND, "µs"),
            MILLISECOND..SECOND => (MILLISECOND, "ms"),
            _ => {
                f.write_str(sign)?;
                let (hours, minutes) = (value / HOUR, value / MINUTE % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if value >= MINUTE {
                    write!(f, "{minutes}m")?;
                }
                return write!(f, "{}s", decimal(value % MINUTE, SECOND));
            }
        };
        write!(f, "{sign}{}{suffix}", decimal(value, unit))
    }
}

/// `value / unit` for a unit that is a power of ten, without trailing zeros.
fn decimal(value: u64, unit: u64) -> String {
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}
