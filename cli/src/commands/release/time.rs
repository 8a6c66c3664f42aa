//! Times as Helm prints them.

use helm_rs::render::time::{Time, Zone};

/// Go's `time.ANSIC`.
const ANSIC: &str = "Mon Jan _2 15:04:05 2006";

/// A record's time; `None` for Go's zero time.
pub(super) fn read(text: &str) -> Option<Time> {
    read_in(text, &Zone::utc())
}

/// A record's time, which is local where its offset is that of the local zone
/// (`time.Time.UnmarshalJSON`).
pub(super) fn read_in(text: &str, local: &Zone) -> Option<Time> {
    let time = Time::parse("2006-01-02T15:04:05Z07:00", text, local).ok()?;
    (!time.is_zero()).then_some(time)
}

/// A record's time in the short form.
pub(super) fn ansic(text: &str) -> String {
    let time = read(text).unwrap_or_else(Time::zero);
    format(&time, ANSIC)
}

/// A time in a layout of Go's.
pub(super) fn format(time: &Time, layout: &str) -> String {
    String::from_utf8_lossy(&time.format(layout)).into_owned()
}

/// A record's time as JSON has it; empty for the zero time.
pub(super) fn rfc3339(text: &str) -> String {
    read(text).map(|time| format(&time, "2006-01-02T15:04:05.999999999Z07:00")).unwrap_or_default()
}
