//! Layouts: text that shows how the reference time, Mon Jan 2 15:04:05 MST 2006, looks
//! (`format.go`, `nextStdChunk`).

/// The months' names.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The names of the days of the week.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// How a zone's offset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OffsetStyle {
    /// `Z` stands for UTC.
    pub(super) zulu: bool,
    pub(super) colon: bool,
    pub(super) minutes: bool,
    pub(super) seconds: bool,
}

/// One element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    LongMonth,
    Month,
    NumberMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    Abbreviation,
    Offset(OffsetStyle),
    /// A fraction of the second: separator, number of digits, whether trailing zeros go.
    Fraction {
        separator: u8,
        digits: usize,
        trim: bool,
    },
}

/// A layout cut at its first element.
pub(super) struct Chunk<'a> {
    /// The literal text before.
    pub(super) prefix: &'a [u8],
    /// The element; `None` at the end of the layout.
    pub(super) element: Option<Element>,
    /// The element as written.
    pub(super) text: &'a [u8],
    /// What follows.
    pub(super) suffix: &'a [u8],
}

const fn offset(zulu: bool, colon: bool, minutes: bool, seconds: bool) -> Element {
    Element::Offset(OffsetStyle { zulu, colon, minutes, seconds })
}

/// Elements that one fixed text stands for; earlier rows win.
const FIXED: &[(&[u8], Element)] = &[
    (b"January", Element::LongMonth),
    (b"Monday", Element::LongWeekday),
    (b"MST", Element::Abbreviation),
    (b"01", Element::ZeroMonth),
    (b"02", Element::ZeroDay),
    (b"03", Element::ZeroHour12),
    (b"04", Element::ZeroMinute),
    (b"05", Element::ZeroSecond),
    (b"06", Element::Year),
    (b"002", Element::ZeroYearDay),
    (b"15", Element::Hour),
    (b"1", Element::NumberMonth),
    (b"2006", Element::LongYear),
    (b"2", Element::Day),
    (b"_2", Element::UnderDay),
    (b"__2", Element::UnderYearDay),
    (b"3", Element::Hour12),
    (b"4", Element::Minute),
    (b"5", Element::Second),
    (b"PM", Element::UpperHalf),
    (b"pm", Element::LowerHalf),
    (b"-070000", offset(false, false, true, true)),
    (b"-07:00:00", offset(false, true, true, true)),
    (b"-0700", offset(false, false, true, false)),
    (b"-07:00", offset(false, true, true, false)),
    (b"-07", offset(false, false, false, false)),
    (b"Z070000", offset(true, false, true, true)),
    (b"Z07:00:00", offset(true, true, true, true)),
    (b"Z0700", offset(true, false, true, false)),
    (b"Z07:00", offset(true, true, true, false)),
    (b"Z07", offset(true, false, false, false)),
];

/// Cuts a layout at its first element.
pub(super) fn next_chunk(layout: &[u8]) -> Chunk<'_> {
    for at in 0..layout.len() {
        let rest = layout.get(at..).unwrap_or_default();
        // `_2006` is a literal `_` and the year.
        if rest.starts_with(b"_2006") {
            continue;
        }
        if let Some((element, length)) = element(rest) {
            return Chunk {
                prefix: layout.get(..at).unwrap_or_default(),
                element: Some(element),
                text: rest.get(..length).unwrap_or_default(),
                suffix: rest.get(length..).unwrap_or_default(),
            };
        }
    }
    Chunk { prefix: layout, element: None, text: &[], suffix: &[] }
}

fn element(text: &[u8]) -> Option<(Element, usize)> {
    if let Some((fixed, element)) = FIXED.iter().find(|(fixed, _)| text.starts_with(fixed)) {
        return Some((*element, fixed.len()));
    }
    // `Jan` and `Mon` are elements unless they begin a longer word.
    for (name, element) in [(b"Jan", Element::Month), (b"Mon", Element::Weekday)] {
        if let Some(rest) = text.strip_prefix(name)
            && !rest.first().is_some_and(u8::is_ascii_lowercase)
        {
            return Some((element, name.len()));
        }
    }
    let (&separator, digits) = text.split_first()?;
    let &first = digits.first()?;
    if matches!(separator, b'.' | b',') && matches!(first, b'0' | b'9') {
        let count = digits.iter().take_while(|&&digit| digit == first).count();
        if !digits.get(count).is_some_and(u8::is_ascii_digit) {
            // Go keeps the number of digits in twelve bits.
            let element =
                Element::Fraction { separator, digits: count & 0xfff, trim: first == b'9' };
            return Some((element, count + 1));
        }
    }
    None
}

/// The leading digits as a number; `None` beyond 2^63 (`leadingInt`).
pub(super) fn leading_integer(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut rest = text;
    while let Some((&digit, tail)) = rest.split_first() {
        if !digit.is_ascii_digit() {
            break;
        }
        if value > (1 << 63) / 10 {
            return None;
        }
        value = value * 10 + u64::from(digit - b'0');
        if value > 1 << 63 {
            return None;
        }
        rest = tail;
    }
    Some((value, rest))
}

/// The quotes of Go's `time` package, which escape every byte beyond ASCII.
pub(super) fn quote(text: &[u8]) -> String {
    use std::fmt::Write as _;

    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(byte.into());
            }
            b' '..0x80 => out.push(byte.into()),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}
