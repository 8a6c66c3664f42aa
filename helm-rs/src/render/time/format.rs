//! Times as text (`format.go`, `AppendFormat`).

use std::fmt::Write as _;

use super::layout::{DAYS, Element, MONTHS, OffsetStyle, next_chunk};
use super::{CivilDate, Time};

/// Go's `appendInt`: the sign does not count for the width.
fn push_integer(out: &mut Vec<u8>, value: i64, width: usize) {
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(format!("{:0width$}", value.unsigned_abs()).as_bytes());
}

fn name(names: &[&'static str], index: i64) -> &'static str {
    usize::try_from(index).ok().and_then(|index| names.get(index)).copied().unwrap_or_default()
}

fn short(name: &str) -> &[u8] {
    name.as_bytes().get(..3).unwrap_or_default()
}

impl Time {
    /// The time in the given layout (`Format`). The result is not UTF-8 when the layout is
    /// not.
    pub fn format(&self, layout: impl AsRef<[u8]>) -> Vec<u8> {
        let mut rest = layout.as_ref();
        let mut out = Vec::with_capacity(rest.len() + 10);
        let place = self.zone.lookup(self.seconds);
        let CivilDate { year, month, day } = self.date();
        let clock = self.clock();
        let hour12 = if clock.hour % 12 == 0 { 12 } else { clock.hour % 12 };
        loop {
            let chunk = next_chunk(rest);
            out.extend_from_slice(chunk.prefix);
            let Some(element) = chunk.element else { return out };
            rest = chunk.suffix;
            match element {
                Element::Year => push_integer(&mut out, (year % 100).abs(), 2),
                Element::LongYear => push_integer(&mut out, year, 4),
                Element::Month => out.extend_from_slice(short(name(&MONTHS, month - 1))),
                Element::LongMonth => {
                    out.extend_from_slice(name(&MONTHS, month - 1).as_bytes());
                }
                Element::NumberMonth => push_integer(&mut out, month, 0),
                Element::ZeroMonth => push_integer(&mut out, month, 2),
                Element::Weekday => out.extend_from_slice(short(name(&DAYS, self.weekday()))),
                Element::LongWeekday => {
                    out.extend_from_slice(name(&DAYS, self.weekday()).as_bytes());
                }
                Element::Day => push_integer(&mut out, day, 0),
                Element::UnderDay => out.extend_from_slice(format!("{day:2}").as_bytes()),
                Element::ZeroDay => push_integer(&mut out, day, 2),
                Element::UnderYearDay => {
                    out.extend_from_slice(format!("{:3}", self.year_day()).as_bytes());
                }
                Element::ZeroYearDay => push_integer(&mut out, self.year_day(), 3),
                Element::Hour => push_integer(&mut out, clock.hour, 2),
                Element::Hour12 => push_integer(&mut out, hour12, 0),
                Element::ZeroHour12 => push_integer(&mut out, hour12, 2),
                Element::Minute => push_integer(&mut out, clock.minute, 0),
                Element::ZeroMinute => push_integer(&mut out, clock.minute, 2),
                Element::Second => push_integer(&mut out, clock.second, 0),
                Element::ZeroSecond => push_integer(&mut out, clock.second, 2),
                Element::UpperHalf => {
                    out.extend_from_slice(if clock.hour >= 12 { b"PM" } else { b"AM" });
                }
                Element::LowerHalf => {
                    out.extend_from_slice(if clock.hour >= 12 { b"pm" } else { b"am" });
                }
                Element::Offset(style) => push_offset(&mut out, place.offset, style),
                Element::Abbreviation if place.abbreviation.is_empty() => {
                    let style =
                        OffsetStyle { zulu: false, colon: false, minutes: true, seconds: false };
                    push_offset(&mut out, place.offset, style);
                }
                Element::Abbreviation => out.extend_from_slice(place.abbreviation.as_bytes()),
                Element::Fraction { separator, digits, trim } => {
                    push_fraction(&mut out, self.nanoseconds, separator, digits, trim);
                }
            }
        }
    }

    /// The form that `print` and `%v` show (`String`).
    pub fn to_text(&self) -> String {
        let text = self.format("2006-01-02 15:04:05.999999999 -0700 MST");
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if let Some(reading) = self.monotonic {
            let sign = if reading < 0 { '-' } else { '+' };
            let value = reading.unsigned_abs();
            let _ = write!(text, " m={sign}{}.{:09}", value / 1_000_000_000, value % 1_000_000_000);
        }
        text
    }

    /// RFC 3339 as JSON has it (`appendStrictRFC3339`).
    ///
    /// # Errors
    /// With Go's text, when the year or the offset does not fit the form.
    pub(crate) fn to_rfc3339(&self) -> Result<String, &'static str> {
        if !(0..=9999).contains(&self.date().year) {
            return Err("year outside of range [0,9999]");
        }
        let minutes = self.zone.lookup(self.seconds).offset / 60;
        if minutes.abs() / 60 >= 24 {
            return Err("timezone hour outside of range [0,23]");
        }
        let text = self.format("2006-01-02T15:04:05.999999999Z07:00");
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The form that `%#v` shows (`GoString`).
    pub(crate) fn to_go(&self) -> String {
        let (date, clock) = (self.date(), self.clock());
        let zone = if self.zone.is_local() {
            "time.Local".to_owned()
        } else if self.zone.is_utc() {
            "time.UTC".to_owned()
        } else {
            format!("time.Location({})", super::layout::quote(self.zone.name().as_bytes()))
        };
        format!(
            "time.Date({}, time.{}, {}, {}, {}, {}, {}, {zone})",
            date.year,
            super::month_name(date.month),
            date.day,
            clock.hour,
            clock.minute,
            clock.second,
            self.nanoseconds
        )
    }
}

fn push_offset(out: &mut Vec<u8>, offset: i64, style: OffsetStyle) {
    if offset == 0 && style.zulu {
        out.push(b'Z');
        return;
    }
    // Go takes the sign from the minutes: less than a minute west shows as `+`.
    let minutes = offset / 60;
    out.push(if minutes < 0 { b'-' } else { b'+' });
    let seconds = if minutes < 0 { -offset } else { offset };
    let minutes = minutes.abs();
    push_integer(out, minutes / 60, 2);
    if style.colon {
        out.push(b':');
    }
    if style.minutes {
        push_integer(out, minutes % 60, 2);
    }
    if style.seconds {
        if style.colon {
            out.push(b':');
        }
        push_integer(out, seconds % 60, 2);
    }
}

fn push_fraction(out: &mut Vec<u8>, nanoseconds: u32, separator: u8, digits: usize, trim: bool) {
    if trim && (digits == 0 || nanoseconds == 0) {
        return;
    }
    let text = format!("{nanoseconds:09}");
    let mut shown = text.get(..digits.min(9)).unwrap_or(&text);
    if trim {
        shown = shown.trim_end_matches('0');
        if shown.is_empty() {
            return;
        }
    }
    out.push(separator);
    out.extend_from_slice(shown.as_bytes());
}
