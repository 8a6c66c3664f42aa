//! Equal values: numbers by their value, quantities by their amount.
//!
//! The server writes quantities in its own form: `0.1` becomes `100m`.

use serde_json::Value;

use super::leaf::Path;

/// Whether two values of a leaf are the same setting.
pub(super) fn same(path: &Path, one: &Value, other: &Value) -> bool {
    if equal(one, other) {
        return true;
    }
    let keys = path.keys();
    let is_quantity = keys.iter().any(|key| matches!(*key, "limits" | "requests" | "hard"))
        || matches!(keys.last(), Some(&("sizeLimit" | "divisor")));
    is_quantity && amount(one).is_some_and(|one| amount(other) == Some(one))
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (a, b) => a == b,
    }
}

/// A quantity in thousandths; none for what is none, or too long to say.
fn amount(value: &Value) -> Option<i128> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let factor: i128 = match suffix {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || whole.len() > 18 {
        return None;
    }
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(factor)?;
    (scaled % scale == 0).then_some(scaled / scale)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Path, same};
    use crate::gate::Step;

    #[test]
    fn amounts_and_numbers() {
        let cpu = Path(vec![Step::Key("limits".into()), Step::Key("cpu".into())]);
        for (a, b, equal) in [
            (json!("0.1"), json!("100m"), true),
            (json!(1), json!("1000m"), true),
            (json!("1Gi"), json!("1024Mi"), true),
            (json!("1G"), json!("1Gi"), false),
            (json!("x"), json!("y"), false),
            (json!(""), json!("0"), false),
        ] {
            assert_eq!(same(&cpu, &a, &b), equal, "{a} {b}");
        }
        assert!(same(&Path::default(), &json!(1.0), &json!(1)));
        assert!(!same(&Path::default(), &json!("0.1"), &json!("100m")));
    }
}
