//! Text as Go prints it: quoting, `%v`, numbers, dates, system errors. What templates print has
//! its own, fuller printer in `gotemplate`; this is for warnings and errors.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::io;

use bstr::{BString, ByteSlice};
use gotemplate::strconv::{self, FloatFormat};
use goyaml::Value;

/// The messages of an error and its sources joined by `: `, which is the text that Helm prints.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(text, ": {error}");
        source = error.source();
    }
    text
}

/// `strconv.Quote`: what `%q` prints for a string. Text that is not UTF-8 is escaped bytewise.
pub fn quote(text: impl AsRef<[u8]>) -> String {
    String::from_utf8_lossy(&strconv::quote(text.as_ref())).into_owned()
}

/// `strconv.ParseBool`; nothing for a text that is no boolean to Go.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// `strconv.QuoteRune`: what `%q` prints for a rune.
pub(crate) fn quote_char(c: char) -> String {
    String::from_utf8_lossy(&strconv::quote_rune(c.into())).into_owned()
}

/// `strings.EqualFold` of an ASCII word with any text. Beside letter case, two characters outside
/// ASCII fold to ASCII letters: the long s and the Kelvin sign.
pub(crate) fn equal_fold(word: &str, text: &[u8]) -> bool {
    if text.is_ascii() {
        return word.as_bytes().eq_ignore_ascii_case(text);
    }
    let fold = |c: char| match c {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    text.to_str().is_ok_and(|text| text.chars().map(fold).eq(word.chars().map(fold)))
}

/// `strconv.FormatFloat(v, 'g', -1, 32)`, which `sigs.k8s.io/yaml` uses for numbers in text fields.
pub(crate) fn float32(value: f64) -> String {
    // The few digits that a `float32` needs are what the `float64` nearest to them needs as well.
    float64((value as f32).to_string().parse().unwrap_or(value))
}

/// `strconv.FormatFloat(v, 'g', -1, 64)`, which is `%v`.
pub(crate) fn float64(value: f64) -> String {
    strconv::format_float(value, FloatFormat::General { upper: false }, None)
}

/// `%v` of a value: maps as `map[k:v]` with sorted keys, lists as `[a b]`, nil as `<nil>`.
pub(crate) fn display(value: &Value) -> String {
    let mut text = String::new();
    push_display(&mut text, value);
    text
}

fn push_display(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => text.push_str(&number.to_string()),
        Value::Uint(number) => text.push_str(&number.to_string()),
        Value::Float(number) => text.push_str(&float64(*number)),
        Value::String(string) => text.push_str(&string.to_str_lossy()),
        Value::Seq(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                push_display(text, item);
            }
            text.push(']');
        }
        Value::Map(map) => {
            text.push_str("map[");
            for (index, (key, item)) in map.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(&key.to_str_lossy());
                text.push(':');
                push_display(text, item);
            }
            text.push(']');
        }
    }
}

/// `%t` of a value, which Helm uses by mistake for "type mismatch": everything but a boolean
/// prints as a complaint with the type.
pub(crate) fn display_truth(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Null => "%!t(<nil>)".to_owned(),
        Value::Seq(items) => {
            let items: Vec<String> = items.iter().map(nested_truth).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Map(map) => {
            let entry = |(key, item): (&BString, &Value)| {
                format!("%!t(string={key}):{}", nested_truth(item))
            };
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("map[{}]", entries.join(" "))
        }
        value => format!("%!t({}={})", value.type_name(), display(value)),
    }
}

/// `%t` below the top, where nil is no complaint.
fn nested_truth(value: &Value) -> String {
    if value.is_null() { "<nil>".to_owned() } else { display_truth(value) }
}

/// What the system said, as Go prints it: the same words, without number and capital.
pub fn io_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match text.find(" (os error ") {
        Some(end) if error.raw_os_error().is_some() => text.get(..end).unwrap_or(&text),
        _ => &text,
    };
    let mut chars = text.chars();
    // Abbreviations such as "RPC" keep their capitals.
    match (chars.next(), text.chars().nth(1)) {
        (Some(first), Some(second)) if first.is_ascii_uppercase() && second.is_lowercase() => {
            format!("{}{}", first.to_ascii_lowercase(), chars.as_str())
        }
        _ => text.to_owned(),
    }
}

/// The zero `time.Time`.
pub const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Checks a `time.Time` in JSON and brings it into the form in which Go prints it back
/// (`time.RFC3339Nano`: no zeros at the end of the fraction).
///
/// # Errors
///
/// Go's text. For dates that are broken in unusual places it may name another part than Go does.
pub(crate) fn normalize_time(value: &mut Value) -> Result<(), String> {
    let Value::String(text) = value else {
        return Err("Time.UnmarshalJSON: input is not a JSON string".to_owned());
    };
    let normalized = parse_time(&text.to_str_lossy())?;
    *value = Value::from(normalized);
    Ok(())
}

fn parse_time(text: &str) -> Result<String, String> {
    /// Go's layout elements with their lengths and ranges.
    const PARTS: [(&str, usize, &str, std::ops::RangeInclusive<u32>); 11] = [
        ("2006", 4, "", 0..=9999),
        ("-", 0, "", 0..=0),
        ("01", 2, "month", 1..=12),
        ("-", 0, "", 0..=0),
        ("02", 2, "day", 1..=31),
        ("T", 0, "", 0..=0),
        ("15", 2, "hour", 0..=23),
        (":", 0, "", 0..=0),
        ("04", 2, "minute", 0..=59),
        (":", 0, "", 0..=0),
        ("05", 2, "second", 0..=59),
    ];
    let layout = "2006-01-02T15:04:05Z07:00";
    let fail = |rest: &str, element: &str| {
        let (text, layout, rest) = (quote(text), quote(layout), quote(rest));
        Err(format!("parsing time {text} as {layout}: cannot parse {rest} as {}", quote(element)))
    };
    let mut rest = text;
    let mut date = [0u32; 3];
    for (index, (element, length, name, range)) in PARTS.iter().enumerate() {
        if *length == 0 {
            let Some(after) = rest.strip_prefix(element) else { return fail(rest, element) };
            rest = after;
            continue;
        }
        let digits = rest.get(..*length).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let Some(digits) = digits else { return fail(rest, element) };
        let number: u32 = digits.parse().unwrap_or_default();
        if !range.contains(&number) {
            return Err(format!("parsing time {}: {name} out of range", quote(text)));
        }
        if let Some(slot) = date.get_mut(index / 2) {
            *slot = number;
        }
        rest = rest.get(*length..).unwrap_or_default();
    }
    let [year, month, day] = date;
    if day > days_in(month, year) {
        return Err(format!("parsing time {}: day out of range", quote(text)));
    }
    let start = text.get(..text.len() - rest.len()).unwrap_or_default();
    let (fraction, zone) = split_fraction(rest);
    if !is_zone(zone) {
        return fail(zone, "Z07:00");
    }
    let zone = if matches!(zone, "+00:00" | "-00:00") { "Z" } else { zone };
    let fraction = fraction.get(..fraction.len().min(9)).unwrap_or_default();
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    Ok(format!("{start}{dot}{fraction}{zone}"))
}

/// Splits `.123Z` into the digits and the zone.
fn split_fraction(text: &str) -> (&str, &str) {
    let Some(after) = text.strip_prefix('.') else { return ("", text) };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 { ("", text) } else { after.split_at(digits) }
}

fn is_zone(zone: &str) -> bool {
    if zone == "Z" {
        return true;
    }
    let bytes = zone.as_bytes();
    bytes.len() == 6
        && matches!(bytes, [b'+' | b'-', h1, h2, b':', m1, m2]
            if [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()))
}

pub(crate) const fn days_in(month: u32, year: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// `strings.TrimSpace`.
pub(crate) fn trim_space(text: &str) -> &str {
    text.trim_matches(char::is_whitespace)
}

/// Text from bytes, as Go's JSON encoder would write it.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    bytes.to_str_lossy()
}
