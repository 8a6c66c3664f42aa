//! Times from text (`format.go`, `parse`; `format_rfc3339.go`, `parseRFC3339`).

use super::layout::{
    Chunk, DAYS, Element, MONTHS, OffsetStyle, leading_integer, next_chunk, quote,
};
use super::{CivilDate, Clock, Duration, Time, Zone, is_leap};

/// Why a text is no time of the given layout, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// An element of the layout does not fit the text.
    #[error("parsing time {value} as {layout}: cannot parse {found} as {element}")]
    Mismatch {
        /// The whole text; this and the other fields in the quotes of Go's `time`.
        value: String,
        /// The layout.
        layout: String,
        /// What is left of the text.
        found: String,
        /// The element.
        element: String,
    },
    /// The text goes on after the end of the layout.
    #[error("parsing time {value}: extra text: {extra}")]
    Extra {
        /// The whole text.
        value: String,
        /// What follows.
        extra: String,
    },
    /// A field has a value that no time has.
    #[error("parsing time {value}: {problem}")]
    Field {
        /// The whole text.
        value: String,
        /// Which field.
        problem: &'static str,
    },
}

/// What went wrong with one element.
enum Bad {
    /// It does not have the element's form.
    Form,
    /// The value of the named field is out of its range.
    Range(&'static str),
}

type Parsed<T> = Result<T, Bad>;

const RFC3339: &[u8] = b"2006-01-02T15:04:05Z07:00";
const RFC3339_NANO: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";

impl Time {
    /// Reads a time; without a zone in the layout it is one of `zone`, whose offsets and
    /// abbreviations are known too (`ParseInLocation`).
    ///
    /// # Errors
    /// When the text does not fit the layout or is no time.
    pub fn parse(
        layout: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        zone: &Zone,
    ) -> Result<Self, ParseError> {
        let (layout, value) = (layout.as_ref(), value.as_ref());
        if (layout == RFC3339 || layout == RFC3339_NANO)
            && let Some(time) = parse_rfc3339(value, zone)
        {
            return Ok(time);
        }
        let mut fields = Fields::default();
        let mut rest_layout = layout;
        let mut rest = value;
        loop {
            let chunk = next_chunk(rest_layout);
            let mismatch = |found: &[u8], element: &[u8]| ParseError::Mismatch {
                value: quote(value),
                layout: quote(layout),
                found: quote(found),
                element: quote(element),
            };
            rest = skip(rest, chunk.prefix).map_err(|at| mismatch(at, chunk.prefix))?;
            let Some(element) = chunk.element else { break };
            let held = rest;
            rest = match fields.read(element, &chunk, rest) {
                Ok(rest) => rest,
                Err(Bad::Form) => return Err(mismatch(held, chunk.text)),
                Err(Bad::Range(field)) => {
                    return Err(ParseError::Field { value: quote(value), problem: field });
                }
            };
            rest_layout = chunk.suffix;
        }
        if !rest.is_empty() {
            return Err(ParseError::Extra { value: quote(value), extra: quote(rest) });
        }
        fields.build(zone).map_err(|problem| ParseError::Field { value: quote(value), problem })
    }
}

/// Removes the literal text from the front, runs of blanks being alike; the error is where
/// they part.
fn skip<'a>(mut value: &'a [u8], mut literal: &[u8]) -> Result<&'a [u8], &'a [u8]> {
    while let Some((&expected, after)) = literal.split_first() {
        if expected == b' ' {
            if value.first().is_some_and(|&b| b != b' ') {
                return Err(value);
            }
            literal = cut_blanks(literal);
            value = cut_blanks(value);
            continue;
        }
        match value.split_first() {
            Some((&found, rest)) if found == expected => value = rest,
            _ => return Err(value),
        }
        literal = after;
    }
    Ok(value)
}

fn cut_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|&&b| b == b' ').count();
    text.get(blanks..).unwrap_or_default()
}

fn digit(text: &[u8], at: usize) -> Option<i64> {
    text.get(at).filter(|b| b.is_ascii_digit()).map(|b| i64::from(b - b'0'))
}

/// One or two digits, exactly two when fixed (`getnum`).
fn number(text: &[u8], fixed: bool) -> Parsed<(i64, &[u8])> {
    let first = digit(text, 0).ok_or(Bad::Form)?;
    match digit(text, 1) {
        Some(second) => Ok((first * 10 + second, text.get(2..).unwrap_or_default())),
        None if fixed => Err(Bad::Form),
        None => Ok((first, text.get(1..).unwrap_or_default())),
    }
}

/// One to three digits, exactly three when fixed (`getnum3`).
fn number3(text: &[u8], fixed: bool) -> Parsed<(i64, &[u8])> {
    let digits = text.iter().take(3).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || (fixed && digits != 3) {
        return Err(Bad::Form);
    }
    let value = text.iter().take(digits).fold(0, |n, b| n * 10 + i64::from(b - b'0'));
    Ok((value, text.get(digits..).unwrap_or_default()))
}

/// Go's `atoi`: an optional sign and digits, perhaps none.
fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let (value, rest) = leading_integer(digits)?;
    let value = value as i64;
    rest.is_empty().then_some(if negative { value.wrapping_neg() } else { value })
}

/// A name out of a table, in any case (`lookup`); `length` cuts the names short.
fn name<'a>(names: &[&str], length: usize, text: &'a [u8]) -> Parsed<(i64, &'a [u8])> {
    for (index, name) in names.iter().enumerate() {
        let name = name.as_bytes().get(..length).unwrap_or(name.as_bytes());
        if let Some((start, rest)) = text.split_at_checked(name.len())
            && start.eq_ignore_ascii_case(name)
        {
            return Ok((index as i64, rest));
        }
    }
    Err(Bad::Form)
}

fn in_range(value: i64, range: std::ops::RangeInclusive<i64>, field: &'static str) -> Parsed<()> {
    if range.contains(&value) { Ok(()) } else { Err(Bad::Range(field)) }
}

/// A fraction of the second with its separator, `length` bytes (`parseNanoseconds`).
fn nanoseconds(text: &[u8], length: usize) -> Parsed<(i64, &[u8])> {
    let (field, rest) = text.split_at_checked(length).ok_or(Bad::Form)?;
    if !matches!(field.first(), Some(b'.' | b',')) {
        return Err(Bad::Form);
    }
    let digits = field.get(1..length.min(10)).unwrap_or_default();
    let value = integer(digits).ok_or(Bad::Form)?;
    if value < 0 {
        return Err(Bad::Range("fractional second out of range"));
    }
    let scale = 10_u32.saturating_sub(digits.len() as u32 + 1);
    Ok((value * 10_i64.pow(scale), rest))
}

/// What has been read so far.
#[derive(Default)]
struct Fields<'a> {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanosecond: i64,
    afternoon: bool,
    morning: bool,
    utc: bool,
    offset: Option<i64>,
    abbreviation: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Reads one element from the front of `text`; gives what follows.
    fn read(
        &mut self,
        element: Element,
        chunk: &Chunk<'_>,
        mut text: &'a [u8],
    ) -> Parsed<&'a [u8]> {
        match element {
            Element::Year => {
                let (digits, rest) = text.split_at_checked(2).ok_or(Bad::Form)?;
                let year = integer(digits).ok_or(Bad::Form)?;
                self.year = if year >= 69 { year + 1900 } else { year + 2000 };
                text = rest;
            }
            Element::LongYear => {
                let (digits, rest) = text.split_at_checked(4).ok_or(Bad::Form)?;
                if digit(digits, 0).is_none() {
                    return Err(Bad::Form);
                }
                self.year = integer(digits).ok_or(Bad::Form)?;
                text = rest;
            }
            Element::Month | Element::LongMonth => {
                let length = if element == Element::Month { 3 } else { usize::MAX };
                let (month, rest) = name(&MONTHS, length, text)?;
                self.month = Some(month + 1);
                text = rest;
            }
            Element::NumberMonth | Element::ZeroMonth => {
                let (month, rest) = number(text, element == Element::ZeroMonth)?;
                in_range(month, 1..=12, "month out of range")?;
                self.month = Some(month);
                text = rest;
            }
            Element::Weekday | Element::LongWeekday => {
                let length = if element == Element::Weekday { 3 } else { usize::MAX };
                text = name(&DAYS, length, text)?.1;
            }
            Element::Day | Element::UnderDay | Element::ZeroDay => {
                if element == Element::UnderDay {
                    text = text.strip_prefix(b" ").unwrap_or(text);
                }
                let (day, rest) = number(text, element == Element::ZeroDay)?;
                self.day = Some(day);
                text = rest;
            }
            Element::UnderYearDay | Element::ZeroYearDay => {
                if element == Element::UnderYearDay {
                    text = text.strip_prefix(b" ").unwrap_or(text);
                    text = text.strip_prefix(b" ").unwrap_or(text);
                }
                let (year_day, rest) = number3(text, element == Element::ZeroYearDay)?;
                self.year_day = Some(year_day);
                text = rest;
            }
            Element::Hour => {
                let (hour, rest) = number(text, false)?;
                in_range(hour, 0..=23, "hour out of range")?;
                self.hour = hour;
                text = rest;
            }
            Element::Hour12 | Element::ZeroHour12 => {
                let (hour, rest) = number(text, element == Element::ZeroHour12)?;
                in_range(hour, 0..=12, "hour out of range")?;
                self.hour = hour;
                text = rest;
            }
            Element::Minute | Element::ZeroMinute => {
                let (minute, rest) = number(text, element == Element::ZeroMinute)?;
                in_range(minute, 0..=59, "minute out of range")?;
                self.minute = minute;
                text = rest;
            }
            Element::Second | Element::ZeroSecond => {
                let (second, rest) = number(text, element == Element::ZeroSecond)?;
                in_range(second, 0..=59, "second out of range")?;
                self.second = second;
                text = self.unannounced_fraction(chunk, rest)?;
            }
            Element::UpperHalf => text = self.half(text, b"PM", b"AM")?,
            Element::LowerHalf => text = self.half(text, b"pm", b"am")?,
            Element::Offset(style) => text = self.offset(style, text)?,
            Element::Abbreviation => {
                if let Some(rest) = text.strip_prefix(b"UTC") {
                    self.utc = true;
                    return Ok(rest);
                }
                let length = abbreviation_length(text).ok_or(Bad::Form)?;
                (self.abbreviation, text) = text.split_at_checked(length).ok_or(Bad::Form)?;
            }
            Element::Fraction { digits, trim: false, .. } => {
                (self.nanosecond, text) = nanoseconds(text, digits + 1)?;
            }
            Element::Fraction { trim: true, .. } => {
                if !matches!(text.first(), Some(b'.' | b',')) || digit(text, 1).is_none() {
                    return Ok(text);
                }
                (self.nanosecond, text) = nanoseconds(text, fraction_length(text))?;
            }
        }
        Ok(text)
    }

    /// A fraction after the seconds is taken even if the layout has none.
    fn unannounced_fraction(&mut self, chunk: &Chunk<'_>, text: &'a [u8]) -> Parsed<&'a [u8]> {
        let fraction = matches!(text.first(), Some(b'.' | b',')) && digit(text, 1).is_some();
        if !fraction || matches!(next_chunk(chunk.suffix).element, Some(Element::Fraction { .. })) {
            return Ok(text);
        }
        let (value, rest) = nanoseconds(text, fraction_length(text))?;
        self.nanosecond = value;
        Ok(rest)
    }

    fn half(&mut self, text: &'a [u8], after: &[u8], before: &[u8]) -> Parsed<&'a [u8]> {
        let (half, rest) = text.split_at_checked(2).ok_or(Bad::Form)?;
        if half == after {
            self.afternoon = true;
        } else if half == before {
            self.morning = true;
        } else {
            return Err(Bad::Form);
        }
        Ok(rest)
    }

    fn offset(&mut self, style: OffsetStyle, text: &'a [u8]) -> Parsed<&'a [u8]> {
        if style.zulu
            && let Some(rest) = text.strip_prefix(b"Z")
        {
            self.utc = true;
            return Ok(rest);
        }
        let step = if style.colon { 3 } else { 2 };
        let parts = 1 + usize::from(style.minutes) + usize::from(style.seconds);
        let length = 3 + step * (parts - 1);
        let (field, rest) = text.split_at_checked(length).ok_or(Bad::Form)?;
        if style.colon && (1..parts).any(|part| field.get(step * part) != Some(&b':')) {
            return Err(Bad::Form);
        }
        // Go looks at the ranges of what it could read before it complains about the form.
        let mut values = [0; 3];
        let mut form = Ok(());
        for (part, value) in values.iter_mut().take(parts).enumerate() {
            let start = 1 + step * part;
            match number(field.get(start..start + 2).unwrap_or_default(), true) {
                Ok((read, _)) => *value = read,
                Err(bad) => {
                    form = Err(bad);
                    break;
                }
            }
        }
        let [hours, minutes, seconds] = values;
        // The last one that is out of range is the one that Go names.
        in_range(seconds, 0..=60, "time zone offset second out of range")?;
        in_range(minutes, 0..=60, "time zone offset minute out of range")?;
        in_range(hours, 0..=24, "time zone offset hour out of range")?;
        form?;
        let offset = (hours * 60 + minutes) * 60 + seconds;
        self.offset = Some(match field.first() {
            Some(b'+') => offset,
            Some(b'-') => -offset,
            _ => return Err(Bad::Form),
        });
        Ok(rest)
    }

    fn build(mut self, zone: &Zone) -> Result<Time, &'static str> {
        if self.afternoon && self.hour < 12 {
            self.hour += 12;
        } else if self.morning && self.hour == 12 {
            self.hour = 0;
        }
        let (month, day) = self.month_and_day()?;
        if day < 1 || day > days_in(month, self.year) {
            return Err("day out of range");
        }
        let date = CivilDate { year: self.year, month, day };
        let clock = Clock { hour: self.hour, minute: self.minute, second: self.second };
        let in_zone = |zone: Zone| Time::from_fields(date, clock, self.nanosecond, zone);
        if self.utc {
            return Ok(in_zone(Zone::utc()));
        }
        let shifted = |time: &Time, offset: i64, zone: Zone| {
            let time = time.add(Duration::seconds(-offset));
            time.in_zone(zone)
        };
        // Go cannot tell the offset -1 from none.
        if let Some(offset) = self.offset.filter(|&offset| offset != -1) {
            let time = in_zone(Zone::utc());
            let found = zone.lookup(time.unix_seconds() - offset);
            let named =
                self.abbreviation.is_empty() || found.abbreviation.as_bytes() == self.abbreviation;
            let zone = if found.offset == offset && named {
                zone.clone()
            } else {
                Zone::fixed(&String::from_utf8_lossy(self.abbreviation), offset)
            };
            return Ok(shifted(&time, offset, zone));
        }
        if !self.abbreviation.is_empty() {
            let time = in_zone(Zone::utc());
            if let Some(offset) = zone.lookup_name(self.abbreviation, time.unix_seconds()) {
                return Ok(shifted(&time, offset, zone.clone()));
            }
            let offset = match self.abbreviation.strip_prefix(b"GMT") {
                Some(hours) if !hours.is_empty() => integer(hours).unwrap_or(0) * 3600,
                _ => 0,
            };
            let name = String::from_utf8_lossy(self.abbreviation);
            return Ok(time.in_zone(Zone::fixed(&name, offset)));
        }
        Ok(in_zone(zone.clone()))
    }

    fn month_and_day(&self) -> Result<(i64, i64), &'static str> {
        let Some(mut year_day) = self.year_day else {
            return Ok((self.month.unwrap_or(1), self.day.unwrap_or(1)));
        };
        let leap_day = is_leap(self.year) && year_day == 31 + 29;
        if is_leap(self.year) && year_day > 31 + 29 {
            year_day -= 1;
        }
        if !(1..=365).contains(&year_day) {
            return Err("day-of-year out of range");
        }
        let (month, day) = if leap_day {
            (2, 29)
        } else {
            let month = (1..=12).rev().find(|&m| days_before(m) < year_day).unwrap_or(1);
            (month, year_day - days_before(month))
        };
        if self.month.is_some_and(|known| known != month) {
            return Err("day-of-year does not match month");
        }
        if self.day.is_some_and(|known| known != day) {
            return Err("day-of-year does not match day");
        }
        Ok((month, day))
    }
}

/// Days of a common year before the month.
fn days_before(month: i64) -> i64 {
    (1..month).map(|month| days_in(month, 1)).sum()
}

const fn days_in(month: i64, year: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The separator and all digits that follow.
fn fraction_length(text: &[u8]) -> usize {
    1 + text.iter().skip(1).take_while(|b| b.is_ascii_digit()).count()
}

/// How much of the text looks like an abbreviation of a zone (`parseTimeZone`).
fn abbreviation_length(text: &[u8]) -> Option<usize> {
    if text.len() < 3 {
        return None;
    }
    if text.starts_with(b"ChST") || text.starts_with(b"MeST") {
        return Some(4);
    }
    if let Some(rest) = text.strip_prefix(b"GMT") {
        return Some(3 + signed_offset_length(rest));
    }
    if matches!(text.first(), Some(b'+' | b'-')) {
        return Some(signed_offset_length(text)).filter(|&length| length > 0);
    }
    let capitals = text.iter().take(6).take_while(|b| b.is_ascii_uppercase()).count();
    match capitals {
        3 => Some(3),
        4 if text.get(3) == Some(&b'T') || text.starts_with(b"WITA") => Some(4),
        5 if text.get(4) == Some(&b'T') => Some(5),
        _ => None,
    }
}

/// The length of an offset in hours such as `+03`, 0 when it is none.
fn signed_offset_length(text: &[u8]) -> usize {
    let Some((b'+' | b'-', digits)) = text.split_first() else { return 0 };
    match leading_integer(digits) {
        Some((hours, rest)) if rest.len() < digits.len() && hours <= 23 => text.len() - rest.len(),
        _ => 0,
    }
}

/// The common form without a layout; `None` leaves it to the general code.
fn parse_rfc3339(text: &[u8], zone: &Zone) -> Option<Time> {
    fn field(text: &[u8], from: usize, to: usize, least: i64, most: i64) -> Option<i64> {
        let digits = text.get(from..to)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let value = digits.iter().fold(0, |n, b| n * 10 + i64::from(b - b'0'));
        (least..=most).contains(&value).then_some(value)
    }
    let year = field(text, 0, 4, 0, 9999)?;
    let month = field(text, 5, 7, 1, 12)?;
    let day = field(text, 8, 10, 1, days_in(month, year))?;
    let hour = field(text, 11, 13, 0, 23)?;
    let minute = field(text, 14, 16, 0, 59)?;
    let second = field(text, 17, 19, 0, 59)?;
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if marks.iter().any(|&(at, mark)| text.get(at) != Some(&mark)) {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut nanosecond = 0;
    if rest.first() == Some(&b'.') && digit(rest, 1).is_some() {
        let (value, after) = nanoseconds(rest, fraction_length(rest)).ok()?;
        (nanosecond, rest) = (value, after);
    }
    let date = CivilDate { year, month, day };
    let time = Time::from_fields(date, Clock { hour, minute, second }, nanosecond, Zone::utc());
    if rest == b"Z" {
        return Some(time);
    }
    if rest.len() != 6 || rest.get(3) != Some(&b':') {
        return None;
    }
    let offset = (field(rest, 1, 3, 0, 23)? * 60 + field(rest, 4, 6, 0, 59)?) * 60;
    let offset = match rest.first() {
        Some(b'+') => offset,
        Some(b'-') => -offset,
        _ => return None,
    };
    let time = time.add(Duration::seconds(-offset));
    let known = zone.lookup(time.unix_seconds()).offset == offset;
    Some(time.in_zone(if known { zone.clone() } else { Zone::fixed("", offset) }))
}
