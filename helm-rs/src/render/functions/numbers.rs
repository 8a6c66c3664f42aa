//! Numbers: sprig's `numeric.go` and the arithmetic of its function table.

use gotemplate::function::{Int64, Rest};
use gotemplate::strconv::{NumberError, parse_int};
use gotemplate::value::LIST_INT;
use gotemplate::{CallError, Function, FunctionMap, List, Str, Value};

use super::cast::{to_float, to_int};
use super::decimal::Decimal;
use super::float::power_of_ten;
use super::limits;

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("int", Function::new(|value: Value| to_int(&value)));
    functions.insert("int64", Function::new(|value: Value| Int64(to_int(&value))));
    functions.insert("float64", Function::new(|value: Value| to_float(&value)));
    functions.insert("atoi", Function::new(atoi));
    functions.insert("toDecimal", Function::new(to_decimal));

    functions.insert("add1", Function::new(|value: Value| Int64(to_int(&value).wrapping_add(1))));
    functions.insert(
        "add",
        Function::new(|values: Rest<Value>| {
            Int64(values.0.iter().map(to_int).fold(0, i64::wrapping_add))
        }),
    );
    functions.insert(
        "sub",
        Function::new(|a: Value, b: Value| Int64(to_int(&a).wrapping_sub(to_int(&b)))),
    );
    functions.insert(
        "mul",
        Function::new(|first: Value, rest: Rest<Value>| {
            Int64(rest.0.iter().map(to_int).fold(to_int(&first), i64::wrapping_mul))
        }),
    );
    functions.insert("div", Function::new(|a: Value, b: Value| divide(&a, &b, i64::wrapping_div)));
    functions.insert("mod", Function::new(|a: Value, b: Value| divide(&a, &b, i64::wrapping_rem)));

    let max = Function::new(|first: Value, rest: Rest<Value>| {
        Int64(rest.0.iter().map(to_int).fold(to_int(&first), i64::max))
    });
    functions.insert("biggest", max.clone());
    functions.insert("max", max);
    functions.insert(
        "min",
        Function::new(|first: Value, rest: Rest<Value>| {
            Int64(rest.0.iter().map(to_int).fold(to_int(&first), i64::min))
        }),
    );
    functions.insert(
        "maxf",
        Function::new(|first: Value, rest: Rest<Value>| {
            rest.0.iter().map(to_float).fold(to_float(&first), float_max)
        }),
    );
    functions.insert(
        "minf",
        Function::new(|first: Value, rest: Rest<Value>| {
            rest.0.iter().map(to_float).fold(to_float(&first), |a, b| -float_max(-a, -b))
        }),
    );

    functions.insert(
        "add1f",
        Function::new(|value: Value| decimals(&value, &[Value::int(1)], Decimal::add)),
    );
    functions.insert(
        "addf",
        Function::new(|values: Rest<Value>| decimals(&Value::Float(0.0), &values.0, Decimal::add)),
    );
    functions.insert(
        "subf",
        Function::new(|first: Value, rest: Rest<Value>| decimals(&first, &rest.0, Decimal::sub)),
    );
    functions.insert(
        "mulf",
        Function::new(|first: Value, rest: Rest<Value>| decimals(&first, &rest.0, Decimal::mul)),
    );
    functions.insert(
        "divf",
        Function::new(|first: Value, rest: Rest<Value>| decimals(&first, &rest.0, Decimal::div)),
    );

    functions.insert("ceil", Function::new(|value: Value| to_float(&value).ceil()));
    functions.insert("floor", Function::new(|value: Value| to_float(&value).floor()));
    functions.insert("round", Function::new(round));

    functions.insert(
        "until",
        Function::new(|count: i64| ints(0, count, if count < 0 { -1 } else { 1 })),
    );
    functions.insert("untilStep", Function::new(ints));
    functions.insert("seq", Function::new(seq));
}

/// `strconv.Atoi` with the error dropped, which leaves the nearest integer when the number
/// is too big.
fn atoi(text: Str) -> i64 {
    match parse_int(text.as_bytes(), 10) {
        Ok(value) => value,
        Err(NumberError::Range) if text.starts_with(b"-") => i64::MIN,
        Err(NumberError::Range) => i64::MAX,
        Err(NumberError::Syntax) => 0,
    }
}

/// Reads what `print` would show as an octal number; 0 when it is none.
fn to_decimal(value: Value) -> Int64 {
    Int64(parse_int(gotemplate::fmt::to_string(&value).as_bytes(), 8).unwrap_or(0))
}

fn divide(a: &Value, b: &Value, op: fn(i64, i64) -> i64) -> Result<Int64, CallError> {
    match to_int(b) {
        0 => Err(CallError::new("runtime error: integer divide by zero")),
        b => Ok(Int64(op(to_int(a), b))),
    }
}

/// Go's `math.Max`: infinity wins over NaN, NaN over numbers, +0 over -0.
fn float_max(a: f64, b: f64) -> f64 {
    if a == f64::INFINITY || b == f64::INFINITY {
        f64::INFINITY
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a == 0.0 && b == 0.0 {
        if a.is_sign_negative() { b } else { a }
    } else if a > b {
        a
    } else {
        b
    }
}

/// Sprig's `execDecimalOp`: floats become the decimals that they print as, and the result is
/// the float nearest to the exact decimal result.
fn decimals(
    first: &Value,
    rest: &[Value],
    op: fn(&Decimal, &Decimal) -> Result<Decimal, CallError>,
) -> Result<f64, CallError> {
    let mut result = Decimal::from_float(to_float(first))?;
    for value in rest {
        result = op(&result, &Decimal::from_float(to_float(value))?)?;
    }
    Ok(result.to_float())
}

/// `round value places [at]`: rounds up from the fraction `at`, half by default. Negative
/// numbers are always rounded down, as sprig does it.
fn round(value: Value, places: i64, at: Rest<f64>) -> f64 {
    let round_on = at.0.first().copied().unwrap_or(0.5);
    let power = power_of_ten(places as f64);
    let digit = power * to_float(&value);
    let fraction = (digit - digit.trunc()).copysign(digit);
    let rounded = if fraction >= round_on { digit.ceil() } else { digit.floor() };
    rounded / power
}

/// The integers of sprig's `untilStep`.
fn range(start: i64, stop: i64, step: i64) -> Result<Vec<i64>, CallError> {
    if (stop < start && step >= 0) || (stop >= start && step <= 0) {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    limits::check_items(usize::try_from(count).unwrap_or(usize::MAX))?;
    // Every item lies between start and stop, so nothing overflows.
    Ok((0..count as i64).map(|i| start.wrapping_add(i.wrapping_mul(step))).collect())
}

fn ints(start: i64, stop: i64, step: i64) -> Result<List, CallError> {
    let items: Vec<_> = range(start, stop, step)?.into_iter().map(Value::int).collect();
    Ok(List::new(&LIST_INT, items))
}

/// `seq [first [step]] last`, like the shell's.
fn seq(params: Rest<i64>) -> Result<String, CallError> {
    let (start, step, end) = match *params.0.as_slice() {
        [end] => (1, if end < 1 { -1 } else { 1 }, end),
        [start, end] => (start, if end < start { -1 } else { 1 }, end),
        [start, step, end] if end >= start || step <= 0 => (start, step, end),
        _ => return Ok(String::new()),
    };
    let past_end = end.wrapping_add(if end < start { -1 } else { 1 });
    let items: Vec<_> = range(start, past_end, step)?.iter().map(i64::to_string).collect();
    Ok(items.join(" "))
}
