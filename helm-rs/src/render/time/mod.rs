//! Go's `time.Time`, as far as charts can see it: arithmetic, zones, layouts, durations.
//!
//! ```text
//! Time ── seconds, nanoseconds ── Zone: offset and abbreviation at a moment
//!   ├─ format / parse             layouts by the reference time (`2006-01-02`)
//!   └─ Duration                   signed nanoseconds
//! ```
//!
//! Numbers wrap as Go's do, so that a far-fetched input gives Go's far-fetched output.

mod duration;
mod format;
mod layout;
mod parse;
mod zone;

use std::cmp::Ordering;

pub use duration::{Duration, DurationError};
pub use parse::ParseError;
pub use zone::{Zone, ZoneError};

use super::host::Reading;

/// Seconds from 0001-01-01 to 1970-01-01, where Go starts to count.
const UNIX_TO_INTERNAL: i64 = 62_135_596_800;
const SECONDS_PER_DAY: i64 = 86_400;
const NANOSECONDS: i64 = 1_000_000_000;

/// A moment, the zone that it is shown in, and perhaps a monotonic clock's reading.
#[derive(Clone, Debug)]
pub struct Time {
    /// Since 1970-01-01T00:00:00Z.
    seconds: i64,
    nanoseconds: u32,
    zone: Zone,
    monotonic: Option<i64>,
}

/// A date of the proleptic Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilDate {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
}

/// A time of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// From 0 to 23.
    pub hour: i64,
    /// From 0 to 59.
    pub minute: i64,
    /// From 0 to 59.
    pub second: i64,
}

impl Time {
    /// Go's `time.Unix(seconds, nanoseconds)` in the given zone.
    pub const fn unix(seconds: i64, nanoseconds: u32, zone: Zone) -> Self {
        Self { seconds, nanoseconds, zone, monotonic: None }
    }

    /// Go's `time.Now`.
    pub const fn now(reading: Reading, local: Zone) -> Self {
        Self {
            seconds: reading.seconds,
            nanoseconds: reading.nanoseconds,
            zone: local,
            monotonic: reading.monotonic,
        }
    }

    /// Go's zero time: 0001-01-01 00:00:00 UTC.
    pub fn zero() -> Self {
        Self::unix(-UNIX_TO_INTERNAL, 0, Zone::utc())
    }

    /// Go's `time.Date`: fields out of their range carry over into the next one.
    pub(crate) fn from_fields(date: CivilDate, clock: Clock, nanoseconds: i64, zone: Zone) -> Self {
        let carry =
            |high: i128, low: i128, base: i128| (high + low.div_euclid(base), low.rem_euclid(base));
        let (year, month) = carry(i128::from(date.year), i128::from(date.month) - 1, 12);
        let (second, nanoseconds) =
            carry(clock.second.into(), nanoseconds.into(), NANOSECONDS.into());
        let days = days_from_civil(year as i64, month as i64 + 1, 1);
        let seconds = (i128::from(days) + i128::from(date.day) - 1) * i128::from(SECONDS_PER_DAY)
            + i128::from(clock.hour) * 3600
            + i128::from(clock.minute) * 60
            + second;
        let mut seconds = seconds as i64;
        // The zone is asked for the wall time first and then for the moment that this gives.
        let guess = zone.lookup(seconds).offset;
        if guess != 0 {
            let offset = zone.lookup(seconds.wrapping_sub(guess)).offset;
            seconds = seconds.wrapping_sub(offset);
        }
        Self { seconds, nanoseconds: nanoseconds as u32, zone, monotonic: None }
    }

    /// Seconds since 1970.
    pub const fn unix_seconds(&self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub const fn nanosecond(&self) -> u32 {
        self.nanoseconds
    }

    /// Nanoseconds since 1970, wrapping (`UnixNano`).
    pub const fn unix_nanoseconds(&self) -> i64 {
        self.seconds.wrapping_mul(NANOSECONDS).wrapping_add(self.nanoseconds as i64)
    }

    /// The zone that it is shown in.
    pub const fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The same moment in another zone (`In`, `UTC`, `Local`).
    #[must_use]
    pub fn in_zone(&self, zone: Zone) -> Self {
        Self { zone, monotonic: None, ..*self }
    }

    /// Seconds since 0001, as Go compares them.
    const fn internal(&self) -> i64 {
        self.seconds.wrapping_add(UNIX_TO_INTERNAL)
    }

    /// Whether it is [`Time::zero`].
    pub const fn is_zero(&self) -> bool {
        self.internal() == 0 && self.nanoseconds == 0
    }

    /// Order in time (`Compare`): by the monotonic readings when both have one.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.monotonic, other.monotonic) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => (self.internal(), self.nanoseconds).cmp(&(other.internal(), other.nanoseconds)),
        }
    }

    /// `self + duration` (`Add`).
    #[must_use]
    pub fn add(&self, duration: Duration) -> Self {
        let mut seconds = duration.0 / NANOSECONDS;
        let mut nanoseconds = i64::from(self.nanoseconds) + duration.0 % NANOSECONDS;
        if nanoseconds >= NANOSECONDS {
            seconds += 1;
            nanoseconds -= NANOSECONDS;
        } else if nanoseconds < 0 {
            seconds -= 1;
            nanoseconds += NANOSECONDS;
        }
        Self {
            seconds: self.add_seconds(seconds),
            nanoseconds: nanoseconds as u32,
            zone: self.zone.clone(),
            monotonic: self.monotonic.and_then(|reading| reading.checked_add(duration.0)),
        }
    }

    /// Go's `addSec`, which saturates where its count from 0001 would overflow.
    const fn add_seconds(&self, seconds: i64) -> i64 {
        let sum = match self.internal().checked_add(seconds) {
            Some(sum) => sum,
            None if seconds > 0 => i64::MAX,
            None => -i64::MAX,
        };
        sum.wrapping_sub(UNIX_TO_INTERNAL)
    }

    /// `self - other`, saturating (`Sub`).
    #[must_use]
    pub fn since(&self, other: &Self) -> Duration {
        if let (Some(a), Some(b)) = (self.monotonic, other.monotonic) {
            return Duration(a.saturating_sub(b));
        }
        let seconds = i128::from(self.internal()) - i128::from(other.internal());
        let nanoseconds = i128::from(self.nanoseconds) - i128::from(other.nanoseconds);
        let total = seconds * i128::from(NANOSECONDS) + nanoseconds;
        let least = i128::from(i64::MIN);
        Duration(total.clamp(least, i128::from(i64::MAX)) as i64)
    }

    /// The moment with calendar fields added (`AddDate`).
    #[must_use]
    pub fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let date = self.date();
        let date = CivilDate {
            year: date.year.wrapping_add(years),
            month: date.month.wrapping_add(months),
            day: date.day.wrapping_add(days),
        };
        Self::from_fields(date, self.clock(), self.nanoseconds.into(), self.zone.clone())
    }

    /// The distance from the last multiple of `step` since 0001.
    fn remainder(&self, step: Duration) -> Duration {
        let since =
            i128::from(self.internal()) * i128::from(NANOSECONDS) + i128::from(self.nanoseconds);
        Duration(since.rem_euclid(i128::from(step.0)) as i64)
    }

    /// Rounded down to a multiple of `step` since 0001 (`Truncate`).
    #[must_use]
    pub fn truncate(&self, step: Duration) -> Self {
        let plain = Self { monotonic: None, ..self.clone() };
        if step.0 <= 0 {
            return plain;
        }
        plain.add(Duration(-plain.remainder(step).0))
    }

    /// Rounded to a multiple of `step` since 0001, halves up (`Round`).
    #[must_use]
    pub fn round(&self, step: Duration) -> Self {
        let plain = Self { monotonic: None, ..self.clone() };
        if step.0 <= 0 {
            return plain;
        }
        let remainder = plain.remainder(step);
        if duration::less_than_half(remainder.0, step.0) {
            plain.add(Duration(-remainder.0))
        } else {
            plain.add(Duration(step.0 - remainder.0))
        }
    }

    /// Go's `absSeconds`: local seconds since a year before all others, which wrap.
    fn absolute(&self) -> u64 {
        let local = self.seconds.wrapping_add(self.zone.lookup(self.seconds).offset);
        local.wrapping_sub(ABSOLUTE_DAYS.wrapping_mul(SECONDS_PER_DAY)) as u64
    }

    /// Days since 1970 in its zone.
    fn days(&self) -> i64 {
        (self.absolute() / SECONDS_PER_DAY as u64) as i64 + ABSOLUTE_DAYS
    }

    /// The date in its zone.
    pub fn date(&self) -> CivilDate {
        civil_from_days(self.days())
    }

    /// The time of the day in its zone.
    pub fn clock(&self) -> Clock {
        let second = (self.absolute() % SECONDS_PER_DAY as u64) as i64;
        Clock { hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
    }

    /// The day of the week: 0 is Sunday.
    pub fn weekday(&self) -> i64 {
        (self.days() + 4).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub fn year_day(&self) -> i64 {
        let days = self.days();
        days - days_from_civil(civil_from_days(days).year, 1, 1) + 1
    }
}

/// Days from 1970-01-01 to -292277022400-03-01, Go's absolute beginning
/// (`time.go`, `absoluteYears`).
const ABSOLUTE_DAYS: i64 = days_from_civil(-292_277_022_400, 3, 1);

/// Days since 1970-01-01.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years from March on, so that the leap day is the last of them.
    let year = if month <= 2 { year.wrapping_sub(1) } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    // Wrapping: the year may be any number, through `time.Date`.
    era.wrapping_mul(146_097).wrapping_add(day_of_era - 719_468)
}

const fn civil_from_days(days: i64) -> CivilDate {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    CivilDate { year, month, day }
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The month's English name; `%!Month(n)` as Go prints it for no month.
pub fn month_name(month: i64) -> String {
    let index = usize::try_from(month).ok().and_then(|month| month.checked_sub(1));
    match index.and_then(|index| layout::MONTHS.get(index)) {
        Some(name) => (*name).to_owned(),
        None => format!("%!Month({})", month as u64),
    }
}

/// The English name of a day of the week, from 0 for Sunday.
pub fn weekday_name(weekday: i64) -> String {
    match usize::try_from(weekday).ok().and_then(|index| layout::DAYS.get(index)) {
        Some(name) => (*name).to_owned(),
        None => format!("%!Weekday({})", weekday as u64),
    }
}
