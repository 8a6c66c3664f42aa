//! Go's `math` where its result depends on how it computes.

use super::cast::float_to_int;

/// `math.Pow(10, places)` for an integer, multiplied in Go's order so that the last bit is
/// Go's too.
pub(super) fn power_of_ten(places: f64) -> f64 {
    if places == 0.0 {
        return 1.0;
    }
    if places == 1.0 {
        return 10.0;
    }
    if places.abs() >= 9_223_372_036_854_775_808.0 {
        return if places > 0.0 { f64::INFINITY } else { 0.0 };
    }
    let (mut result, mut exponent) = (1.0_f64, 0_i64);
    let (mut square, mut square_exponent) = frexp(10.0);
    let mut left = float_to_int(places.abs());
    while left != 0 {
        if !(-4096..=4096).contains(&square_exponent) {
            exponent += square_exponent;
            break;
        }
        if left & 1 == 1 {
            result *= square;
            exponent += square_exponent;
        }
        square *= square;
        square_exponent *= 2;
        if square < 0.5 {
            square += square;
            square_exponent -= 1;
        }
        left >>= 1;
    }
    if places < 0.0 { ldexp(1.0 / result, -exponent) } else { ldexp(result, exponent) }
}

/// Go's `math.Ldexp`: `value × 2^exponent`, rounded once.
fn ldexp(value: f64, exponent: i64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let (fraction, own) = frexp(value);
    let exponent = exponent.saturating_add(own).saturating_sub(1);
    let fraction = fraction * 2.0;
    match exponent {
        ..-1075 => 0.0_f64.copysign(value),
        -1075..-1022 => fraction * power_of_two(exponent + 53) * power_of_two(-53),
        -1022..=1023 => fraction * power_of_two(exponent),
        1024.. => f64::INFINITY.copysign(value),
    }
}

/// Go's `math.Frexp`: a fraction of `0.5 <= |fraction| < 1` and the power of two that gives
/// the value; zero, NaN and infinities come back with 0.
fn frexp(value: f64) -> (f64, i64) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let (value, scaled) =
        if value.is_subnormal() { (value * power_of_two(52), -52) } else { (value, 0) };
    let bits = value.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i64 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent + scaled)
}

/// 2 to a power of the normal range.
const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64 & 0x7ff) << 52)
}
