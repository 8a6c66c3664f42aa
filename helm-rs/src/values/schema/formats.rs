//! The `format`s whose failures santhosh-tekuri/jsonschema v6 words in another way than its Rust
//! port, or which only the Go library knows (`format.go`).

use std::error::Error;

use serde_json::Value as Json;

use crate::address;
use crate::gotext::{quote, quote_char};
use crate::gourl::Url;

/// The text of a failure.
type Checked = Result<(), String>;

/// Gives a compiler the formats of this module.
pub(super) fn register(compiler: &mut boon::Compiler) {
    macro_rules! formats {
        ($($name:literal => $check:ident),* $(,)?) => {
            $(compiler.register_format(boon::Format {
                name: $name,
                func: |value| checked(value, $check),
            });)*
        };
    }
    formats! {
        "json-pointer" => json_pointer,
        "relative-json-pointer" => relative_json_pointer,
        "uuid" => uuid,
        "duration" => duration,
        "period" => period,
        "ipv4" => ipv4,
        "ipv6" => ipv6,
        "uri" => uri,
        "iri" => uri,
        "uri-reference" => uri_reference,
        "iri-reference" => uri_reference,
        "date" => date,
        "time" => time,
        "date-time" => date_time,
        "semver" => semver,
    }
}

fn checked(value: &Json, check: fn(&str) -> Checked) -> Result<(), Box<dyn Error>> {
    match value {
        Json::String(text) => Ok(check(text)?),
        _ => Ok(()),
    }
}

fn fail(text: impl Into<String>) -> Checked {
    Err(text.into())
}

fn json_pointer(text: &str) -> Checked {
    if text.is_empty() {
        return Ok(());
    }
    let Some(tokens) = text.strip_prefix('/') else { return fail("not starting with /") };
    for token in tokens.split('/') {
        let escapes = token.split('~').skip(1);
        if !escapes.into_iter().all(|after| after.starts_with(['0', '1'])) {
            return fail("~ must be followed by 0 or 1");
        }
    }
    Ok(())
}

fn relative_json_pointer(text: &str) -> Checked {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return fail("must start with non-negative integer");
    }
    if digits > 1 && text.starts_with('0') {
        return fail("starts with zero");
    }
    let rest = text.get(digits..).unwrap_or_default();
    if rest == "#" { Ok(()) } else { json_pointer(rest) }
}

fn uuid(text: &str) -> Checked {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    if groups.len() != LENGTHS.len() {
        return fail("must have 5 elements");
    }
    for (index, (group, length)) in groups.iter().zip(LENGTHS).enumerate() {
        if group.len() != length {
            return fail(format!("element {} must be {length} characters long", index + 1));
        }
        if let Some(c) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
            return fail(format!("non-hex character {}", quote_char(c)));
        }
    }
    Ok(())
}

fn duration(text: &str) -> Checked {
    let Some(text) = text.strip_prefix('P') else { return fail("must start with P") };
    if text.is_empty() {
        return fail("nothing after P");
    }
    if let Some(weeks) = text.strip_suffix('W') {
        return match weeks {
            "" => fail("no number in week"),
            weeks if weeks.bytes().all(|b| b.is_ascii_digit()) => Ok(()),
            _ => fail("invalid week"),
        };
    }
    for (index, part) in text.split('T').enumerate() {
        if index > 0 && part.is_empty() {
            return fail("no time elements");
        }
        let units = match index {
            0 => "YMD",
            1 => "HMS",
            _ => return fail("more than one T"),
        };
        duration_part(part, units)?;
    }
    Ok(())
}

/// Numbers with units, in the order of the units.
fn duration_part(mut text: &str, all_units: &str) -> Checked {
    let mut units = all_units;
    while !text.is_empty() {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return fail("missing number");
        }
        text = text.get(digits..).unwrap_or_default();
        let Some(&byte) = text.as_bytes().first() else { return fail("missing unit") };
        let unit = char::from(byte);
        let Some(position) = units.find(unit) else {
            let shown = quote_char(unit);
            return if all_units.contains(unit) {
                fail(format!("unit {shown} out of order"))
            } else {
                fail(format!("invalid unit {shown}"))
            };
        };
        units = units.get(position + 1..).unwrap_or_default();
        text = text.get(1..).unwrap_or_default();
    }
    Ok(())
}

fn period(text: &str) -> Checked {
    let Some((start, end)) = text.split_once('/') else { return fail("missing slash") };
    let wrapped = |name: &str, result: Checked| result.map_err(|e| format!("invalid {name}: {e}"));
    if start.starts_with('P') {
        wrapped("start duration", duration(start))?;
        return wrapped("end date-time", date_time(end));
    }
    wrapped("start date-time", date_time(start))?;
    if end.starts_with('P') {
        wrapped("end duration", duration(end))
    } else {
        wrapped("end date-time", date_time(end))
    }
}

fn ipv4(text: &str) -> Checked {
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() != 4 {
        return fail("expected four decimals");
    }
    for group in groups {
        if group.len() > 1 && group.starts_with('0') {
            return fail("leading zeros");
        }
        let Ok(number) = group.parse::<i64>() else {
            return fail(format!("strconv.Atoi: parsing {}: invalid syntax", quote(group)));
        };
        if !(0..=255).contains(&number) {
            return fail("decimal must be between 0 and 255");
        }
    }
    Ok(())
}

fn ipv6(text: &str) -> Checked {
    if !text.contains(':') {
        return fail("missing colon");
    }
    let address = address::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    if address.zoned { fail("zone id is not a part of ipv6 address") } else { Ok(()) }
}

fn uri(text: &str) -> Checked {
    if parse_url(text)?.scheme.is_empty() { fail("relative url") } else { Ok(()) }
}

fn uri_reference(text: &str) -> Checked {
    if text.contains('\\') {
        return fail("contains \\");
    }
    parse_url(text).map(drop)
}

/// `parseURL`: Go's, with a closer look at addresses in brackets.
fn parse_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    let hostname = url.hostname();
    if hostname.contains(&b':') {
        if !url.host.contains(&b'[') || !url.host.contains(&b']') {
            return Err("ipv6 address not enclosed in brackets".to_owned());
        }
        ipv6(&String::from_utf8_lossy(hostname))
            .map_err(|error| format!("invalid ipv6 address: {error}"))?;
    }
    Ok(url)
}

/// `time.Parse` with the layout of a date.
fn date(text: &str) -> Checked {
    let shown = quote(text);
    let mut rest = text;
    let mut numbers = [0u32; 3];
    for (index, (element, length)) in [("2006", 4), ("01", 2), ("02", 2)].into_iter().enumerate() {
        let cannot = |rest: &str, element: &str| {
            let (rest, element) = (quote(rest), quote(element));
            format!("parsing time {shown} as \"2006-01-02\": cannot parse {rest} as {element}")
        };
        if index > 0 {
            rest = rest.strip_prefix('-').ok_or_else(|| cannot(rest, "-"))?;
        }
        let digits = rest.get(..length).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        let Some(digits) = digits else { return Err(cannot(rest, element)) };
        let number: u32 = digits.parse().unwrap_or_default();
        if index == 1 && !(1..=12).contains(&number) {
            return fail(format!("parsing time {shown}: month out of range"));
        }
        if let Some(slot) = numbers.get_mut(index) {
            *slot = number;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    if !rest.is_empty() {
        return fail(format!("parsing time {shown}: extra text: {}", quote(rest)));
    }
    let [year, month, day] = numbers;
    if day < 1 || day > crate::gotext::days_in(month, year) {
        return fail(format!("parsing time {shown}: day out of range"));
    }
    Ok(())
}

fn time(text: &str) -> Checked {
    let bytes = text.as_bytes();
    if bytes.len() < 9 {
        return fail("less than 9 characters long");
    }
    if bytes.get(2) != Some(&b':') || bytes.get(5) != Some(&b':') {
        return fail("missing colon in correct place");
    }
    let mut clock = [0i64; 3];
    for (slot, start) in clock.iter_mut().zip([0, 3, 6]) {
        *slot = match text.get(start..start + 2).and_then(|digits| digits.parse().ok()) {
            None => return fail("invalid hour/min/sec"),
            Some(number) if number < 0 => return fail("non-positive hour/min/sec"),
            Some(number) => number,
        };
    }
    let [hour, minute, second] = clock;
    if hour > 23 || minute > 59 || second > 60 {
        return fail("hour/min/sec out of range");
    }
    let mut rest = text.get(8..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return fail("no digits in second fraction");
        }
        rest = fraction.get(digits..).unwrap_or_default();
    }
    let mut minutes = hour * 60 + minute;
    if !matches!(rest, "z" | "Z") {
        minutes += offset(rest)?;
        if minutes < 0 {
            minutes += 24 * 60;
        }
    }
    // Go compares the hour as it comes out, which may be 24 and more.
    if second >= 60 && minutes != 23 * 60 + 59 {
        return fail("invalid leap second");
    }
    Ok(())
}

/// Minutes to add to local time for UTC.
fn offset(text: &str) -> Result<i64, String> {
    if text.len() != 6 {
        return Err("offset must be 6 characters long".to_owned());
    }
    let sign = match text.as_bytes().first() {
        Some(b'+') => -1,
        Some(b'-') => 1,
        _ => return Err("offset must begin with plus/minus".to_owned()),
    };
    if text.as_bytes().get(3) != Some(&b':') {
        return Err("missing colon in offset in correct place".to_owned());
    }
    let mut parts = [0i64; 2];
    for (slot, start) in parts.iter_mut().zip([1, 4]) {
        *slot = match text.get(start..start + 2).and_then(|digits| digits.parse().ok()) {
            None => return Err("invalid hour/min in offset".to_owned()),
            Some(number) if number < 0 => {
                return Err("non-positive hour/min in offset".to_owned());
            }
            Some(number) => number,
        };
    }
    let [hours, minutes] = parts;
    if hours > 23 || minutes > 59 {
        return Err("hour/min in offset out of range".to_owned());
    }
    Ok(sign * (hours * 60 + minutes))
}

fn date_time(text: &str) -> Checked {
    if text.len() < 20 {
        return fail("less than 20 characters long");
    }
    if !matches!(text.as_bytes().get(10), Some(b't' | b'T')) {
        return fail("11th character must be t or T");
    }
    let (day, clock) = (text.get(..10).unwrap_or_default(), text.get(11..).unwrap_or_default());
    date(day).map_err(|error| format!("invalid date element: {error}"))?;
    time(clock).map_err(|error| format!("invalid time element: {error}"))
}

fn semver(text: &str) -> Checked {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    if build == Some("") {
        return fail("build is empty");
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return fail("build identifier is empty");
        }
        if let Some(c) = part.chars().find(|c| !allowed(c)) {
            return fail(format!("invalid character {} in build identifier", quote_char(c)));
        }
    }
    let (core, prerelease) = match text.split_once('-') {
        Some((core, prerelease)) => (core, Some(prerelease)),
        None => (text, None),
    };
    for part in prerelease.into_iter().flat_map(|prerelease| prerelease.split('.')) {
        if part.is_empty() {
            return fail("pre-release identifier is empty");
        }
        if let Some(c) = part.chars().find(|c| !allowed(c)) {
            return fail(format!("invalid character {} in pre-release identifier", quote_char(c)));
        }
        if part.len() > 1 && part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) {
            return fail("pre-release numeric identifier starts with zero");
        }
    }
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() != 3 {
        return fail("versionCore must have 3 numbers separated by dot");
    }
    for (number, name) in numbers.into_iter().zip(["major", "minor", "patch"]) {
        if number.is_empty() {
            return fail(format!("{name} is empty"));
        }
        if number.len() > 1 && number.starts_with('0') {
            return fail(format!("{name} starts with zero"));
        }
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return fail(format!("{name} contains non-digit"));
        }
    }
    Ok(())
}
