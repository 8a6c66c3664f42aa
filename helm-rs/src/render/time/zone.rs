//! Time zones: Go's `time.Location`.

use std::rc::Rc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A time zone: UTC, a fixed offset, or one of the tz database.
#[derive(Clone, Debug)]
pub struct Zone {
    name: Rc<str>,
    rule: Rule,
    /// Whether this is Go's `time.Local`.
    local: bool,
}

#[derive(Clone, Debug)]
enum Rule {
    Utc,
    Fixed(i64),
    Table(TimeZone),
}

/// Why a time zone cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ZoneError {
    /// The tz database has no such name (names are case-sensitive, as for Go on Linux).
    #[error("unknown time zone {name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The bytes are no compiled time zone.
    #[error("malformed time zone information")]
    Malformed,
}

/// What a zone says about a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// The abbreviation, such as `CEST`; empty for an unnamed fixed offset.
    pub abbreviation: Rc<str>,
    /// Seconds east of UTC.
    pub offset: i64,
    /// Whether daylight saving time is in effect.
    pub daylight: bool,
}

/// The Gregorian calendar repeats after this many seconds (400 years), and so do the rules
/// by which zones go on into the future.
const CYCLE: i64 = 146_097 * 86_400;

impl Zone {
    /// UTC.
    pub fn utc() -> Self {
        Self { name: "UTC".into(), rule: Rule::Utc, local: false }
    }

    /// A fixed offset in seconds east of UTC (`time.FixedZone`).
    pub fn fixed(name: &str, offset: i64) -> Self {
        Self { name: name.into(), rule: Rule::Fixed(offset), local: false }
    }

    /// A zone of the bundled tz database by its exact name (`time.LoadLocation`); the empty
    /// name and `UTC` are UTC.
    ///
    /// # Errors
    /// When there is no such zone.
    pub fn named(name: &str) -> Result<Self, ZoneError> {
        if name.is_empty() || name == "UTC" {
            return Ok(Self::utc());
        }
        let unknown = || ZoneError::Unknown { name: name.to_owned() };
        let zone = TimeZoneDatabase::bundled().get(name).map_err(|_| unknown())?;
        // The database ignores case; Go opens a file of that name.
        if zone.iana_name() != Some(name) {
            return Err(unknown());
        }
        Ok(Self { name: name.into(), rule: Rule::Table(zone), local: false })
    }

    /// A zone from a compiled tz file, such as `/etc/localtime`.
    ///
    /// # Errors
    /// When the bytes are no such file.
    pub fn from_tzif(name: &str, bytes: &[u8]) -> Result<Self, ZoneError> {
        let zone = TimeZone::tzif(name, bytes).map_err(|_| ZoneError::Malformed)?;
        Ok(Self { name: name.into(), rule: Rule::Table(zone), local: false })
    }

    /// The same zone as the process's local one (`time.Local`); Go names it `Local` unless
    /// the environment names a zone.
    #[must_use]
    pub fn as_local(mut self) -> Self {
        self.local = true;
        self
    }

    /// The name (`Location.String`).
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn is_local(&self) -> bool {
        self.local
    }

    pub(super) const fn is_utc(&self) -> bool {
        matches!(self.rule, Rule::Utc) && !self.local
    }

    /// Offset and abbreviation at a moment, in seconds since 1970.
    pub fn lookup(&self, seconds: i64) -> ZoneState {
        match &self.rule {
            Rule::Utc => ZoneState { abbreviation: "UTC".into(), offset: 0, daylight: false },
            Rule::Fixed(offset) => {
                ZoneState { abbreviation: Rc::clone(&self.name), offset: *offset, daylight: false }
            }
            Rule::Table(zone) => lookup(zone, seconds),
        }
    }

    /// The offset that an abbreviation means around a wall time (`lookupName`).
    pub(super) fn lookup_name(&self, name: &[u8], wall_seconds: i64) -> Option<i64> {
        let zone = match &self.rule {
            Rule::Utc => return None,
            Rule::Fixed(offset) => {
                return (self.name.as_bytes() == name).then_some(*offset);
            }
            Rule::Table(zone) => zone,
        };
        let offsets = offsets_called(zone, name);
        offsets
            .iter()
            .find_map(|&offset| {
                let found = lookup(zone, wall_seconds.wrapping_sub(offset));
                (found.abbreviation.as_bytes() == name).then_some(found.offset)
            })
            .or_else(|| offsets.first().copied())
    }
}

fn lookup(zone: &TimeZone, seconds: i64) -> ZoneState {
    let last = Timestamp::MAX.as_second();
    let folded = if seconds > last {
        // Stay inside the last 400 years that the crate knows.
        last - CYCLE + (seconds - (last - CYCLE)).rem_euclid(CYCLE)
    } else {
        seconds.max(Timestamp::MIN.as_second())
    };
    let timestamp = Timestamp::from_second(folded).unwrap_or(Timestamp::UNIX_EPOCH);
    let info = zone.to_offset_info(timestamp);
    ZoneState {
        abbreviation: info.abbreviation().into(),
        offset: info.offset().seconds().into(),
        daylight: info.dst().is_dst(),
    }
}

/// The offsets that the zone ever calls by this abbreviation, in order of appearance.
fn offsets_called(zone: &TimeZone, name: &[u8]) -> Vec<i64> {
    let first = lookup(zone, i64::MIN);
    let mut offsets = Vec::new();
    if first.abbreviation.as_bytes() == name {
        offsets.push(first.offset);
    }
    // From 2040 on every zone only repeats itself.
    let end = 2_208_988_800;
    for transition in zone.following(Timestamp::MIN) {
        if transition.timestamp().as_second() > end {
            break;
        }
        let offset = i64::from(transition.offset().seconds());
        if transition.abbreviation().as_bytes() == name && !offsets.contains(&offset) {
            offsets.push(offset);
        }
    }
    offsets
}
