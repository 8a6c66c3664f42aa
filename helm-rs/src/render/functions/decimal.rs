//! Decimal arithmetic as sprig uses it for `addf` and its relatives:
//! github.com/shopspring/decimal v1.4.0 (`decimal.go`).

use gotemplate::CallError;
use num_bigint::{BigInt, BigUint, Sign};

/// Digits after the point that a division keeps (`DivisionPrecision`).
const DIVISION_PRECISION: i64 = 16;
/// Bounds the digits of a number; charts multiply prices, not factorials.
const MAX_BITS: u64 = 1 << 20;

/// `value × 10^exponent`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    value: BigInt,
    exponent: i64,
}

impl Decimal {
    /// The shortest decimal that reads back as `value` (`NewFromFloat`).
    pub(super) fn from_float(value: f64) -> Result<Self, CallError> {
        if !value.is_finite() {
            let shown = if value.is_nan() {
                "NaN"
            } else if value > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            return Err(CallError::from(format!("Cannot create a Decimal from {shown}")));
        }
        if value == 0.0 {
            return Ok(Self { value: BigInt::ZERO, exponent: 0 });
        }
        // Rust's `{:e}` has Go's shortest digits, as d.ddde±x.
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let fraction = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        let digits: String = digits.chars().filter(|c| *c != '.').collect();
        Ok(Self {
            value: digits.parse().unwrap_or_default(),
            exponent: exponent.parse::<i64>().unwrap_or(0) - fraction as i64,
        })
    }

    /// The float nearest to it (`Float64`).
    pub(super) fn to_float(&self) -> f64 {
        // Rust's parser rounds correctly at any length.
        format!("{}e{}", self.value, self.exponent).parse().unwrap_or(0.0)
    }

    pub(super) fn add(&self, other: &Self) -> Result<Self, CallError> {
        let (left, right, exponent) = self.rescale(other)?;
        Ok(Self { value: left + right, exponent })
    }

    pub(super) fn sub(&self, other: &Self) -> Result<Self, CallError> {
        let (left, right, exponent) = self.rescale(other)?;
        Ok(Self { value: left - right, exponent })
    }

    pub(super) fn mul(&self, other: &Self) -> Result<Self, CallError> {
        let exponent = self.exponent + other.exponent;
        if i32::try_from(exponent).is_err() {
            return Err(CallError::from(format!("exponent {exponent} overflows an int32!")));
        }
        if self.value.bits() + other.value.bits() > MAX_BITS {
            return Err(too_long());
        }
        Ok(Self { value: &self.value * &other.value, exponent })
    }

    /// `Div`: rounds half away from zero at the sixteenth digit after the point.
    pub(super) fn div(&self, other: &Self) -> Result<Self, CallError> {
        if other.value.sign() == Sign::NoSign {
            return Err(CallError::new("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + DIVISION_PRECISION;
        let (dividend, divisor) = if shift < 0 {
            (self.value.clone(), &other.value * power_of_ten(-shift)?)
        } else {
            (&self.value * power_of_ten(shift)?, other.value.clone())
        };
        let quotient = &dividend / &divisor;
        let remainder = &dividend - &quotient * &divisor;
        let twice: BigUint = remainder.magnitude() << 1_u32;
        let rounded = if twice < *divisor.magnitude() {
            quotient
        } else if dividend.sign() == divisor.sign() {
            quotient + 1
        } else {
            quotient - 1
        };
        Ok(Self { value: rounded, exponent: -DIVISION_PRECISION })
    }

    /// Both values at the smaller exponent (`RescalePair`).
    fn rescale(&self, other: &Self) -> Result<(BigInt, BigInt, i64), CallError> {
        let exponent = self.exponent.min(other.exponent);
        Ok((
            &self.value * power_of_ten(self.exponent - exponent)?,
            &other.value * power_of_ten(other.exponent - exponent)?,
            exponent,
        ))
    }
}

/// 10 to a power that is not negative.
fn power_of_ten(exponent: i64) -> Result<BigInt, CallError> {
    match u32::try_from(exponent) {
        Ok(exponent) if u64::from(exponent) <= MAX_BITS => Ok(BigInt::from(10).pow(exponent)),
        _ => Err(too_long()),
    }
}

fn too_long() -> CallError {
    CallError::new("decimal has too many digits")
}
