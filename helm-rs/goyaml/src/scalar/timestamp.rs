//! Which texts go-yaml takes for timestamps: four layouts of Go's `time.Parse`.

/// Whether go-yaml's `parseTimestamp` accepts the text.
pub(super) fn is_timestamp(text: &[u8]) -> bool {
    let year_digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if year_digits != 4 || text.get(4) != Some(&b'-') {
        return false;
    }
    date(text).is_some_and(|rest| match rest.first() {
        None => true,
        Some(b'T' | b't') => rest.get(1..).and_then(clock).is_some_and(is_zone),
        // A space in a layout stands for any number of them.
        Some(b' ') => clock(rest.trim_ascii_start_spaces()).is_some_and(<[u8]>::is_empty),
        Some(_) => false,
    })
}

trait TrimSpaces {
    fn trim_ascii_start_spaces(&self) -> &[u8];
}

impl TrimSpaces for [u8] {
    fn trim_ascii_start_spaces(&self) -> &[u8] {
        let spaces = self.iter().take_while(|&&b| b == b' ').count();
        self.get(spaces..).unwrap_or_default()
    }
}

/// One or two digits (Go's `getnum`).
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digit =
        |at: usize| text.get(at).filter(|b| b.is_ascii_digit()).map(|b| u32::from(b - b'0'));
    let first = digit(0)?;
    match digit(1) {
        Some(second) => Some((first * 10 + second, text.get(2..)?)),
        None => Some((first, text.get(1..)?)),
    }
}

/// `2006-1-2`; the day must exist.
fn date(text: &[u8]) -> Option<&[u8]> {
    let (year, rest) = text.split_at_checked(4)?;
    let year = year.iter().fold(0, |year, digit| year * 10 + u32::from(digit - b'0'));
    let (month, rest) = number(rest.strip_prefix(b"-")?)?;
    let (day, rest) = number(rest.strip_prefix(b"-")?)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(rest)
}

/// `15:4:5.999999999`; the fraction may be missing and may follow a comma.
fn clock(text: &[u8]) -> Option<&[u8]> {
    let (hour, rest) = number(text)?;
    let (minute, rest) = number(rest.strip_prefix(b":")?)?;
    let (second, rest) = number(rest.strip_prefix(b":")?)?;
    if hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    match rest {
        [b'.' | b',', digit, ..] if digit.is_ascii_digit() => {
            let digits = rest.iter().skip(1).take_while(|b| b.is_ascii_digit()).count();
            rest.get(1 + digits..)
        }
        _ => Some(rest),
    }
}

/// `Z07:00`; Go allows 24 hours and 60 minutes here.
fn is_zone(text: &[u8]) -> bool {
    match text {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let two = |tens: u8, ones: u8| {
                (tens.is_ascii_digit() && ones.is_ascii_digit())
                    .then(|| (tens - b'0') * 10 + (ones - b'0'))
            };
            two(*h1, *h2).is_some_and(|hours| hours <= 24)
                && two(*m1, *m2).is_some_and(|minutes| minutes <= 60)
        }
        _ => false,
    }
}
