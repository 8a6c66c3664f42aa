//! Reading a snapshot.

use std::io::{self, BufRead, BufReader, Read};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{About, END, End, HEAD, SCHEMA_VERSION, hexadecimal};

/// What gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How much of a file is read.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one object, and of the first line.
    pub line: u64,
    /// Objects.
    pub objects: usize,
    /// Bytes in all, decompressed.
    pub total: u64,
}

impl Default for Limits {
    /// Objects of 16 MiB (a server's are at most 3 MiB of JSON, discovery of a large one 2 MiB), a
    /// million of them, 4 GiB in all.
    fn default() -> Self {
        Self { line: 16 << 20, objects: 1_000_000, total: 4 << 30 }
    }
}

/// What is wrong with a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// It cannot be read.
    #[error("read it")]
    Read(#[from] io::Error),
    /// The first line says something else.
    #[error("this is no cluster snapshot: its first line is not one's head")]
    Foreign,
    /// A form that this program does not know.
    #[error(
        "it has schema version {found}, and this program reads {SCHEMA_VERSION}: it was made by \
         another version ({by})"
    )]
    Schema {
        /// The version of the form.
        found: u64,
        /// The program that made it.
        by: String,
    },
    /// A line is no object.
    #[error("line {number}: {reason}")]
    Line {
        /// The line, from 1.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// There is more than is read.
    #[error("line {number}: more than {limit}")]
    TooMuch {
        /// The line, from 1.
        number: usize,
        /// What there is too much of.
        limit: String,
    },
    /// The last line is missing.
    #[error("it was cut off after {objects} object(s): the last line is missing")]
    Cut {
        /// How many were read.
        objects: usize,
    },
    /// Something was changed.
    #[error("it was changed after it was made: {what} in the last line is another one")]
    Changed {
        /// What does not fit.
        what: &'static str,
    },
    /// There is something after the end.
    #[error("line {number} comes after the last one: two snapshots in one file?")]
    More {
        /// The line, from 1.
        number: usize,
    },
}

/// Reads a snapshot and hands over its objects one by one; what the first line says comes before
/// any of them.
///
/// # Errors
/// [`SnapshotError`]. What was handed over before an error is not to be used.
pub fn read(
    input: impl Read,
    limits: &Limits,
    mut about: impl FnMut(&About),
    mut each: impl FnMut(Value),
) -> Result<(About, End), SnapshotError> {
    let mut input = BufReader::new(input);
    let is_gzip = input.fill_buf()?.starts_with(&GZIP);
    let mut lines: Lines<Box<dyn Read + '_>> = if is_gzip {
        Lines::new(Box::new(flate2::bufread::MultiGzDecoder::new(input)), *limits)
    } else {
        Lines::new(Box::new(input), *limits)
    };
    let head = lines.next()?.ok_or(SnapshotError::Foreign)?;
    let head = read_head(head)?;
    about(&head);
    let mut objects = 0;
    loop {
        // The last line is not part of its own digest.
        let digest = lines.digest.clone();
        let number = lines.number + 1;
        let Some(line) = lines.next()? else { return Err(SnapshotError::Cut { objects }) };
        let cut = !line.ends_with(b"\n");
        let parsed: Result<Value, _> = serde_json::from_slice(line);
        let value = match parsed {
            Ok(value) => value,
            Err(_) if cut => return Err(SnapshotError::Cut { objects }),
            Err(error) => return Err(SnapshotError::Line { number, reason: reason(&error) }),
        };
        if value.get("kind").and_then(Value::as_str) != Some(END) {
            if !value.is_object() {
                let reason = "this is no object".to_owned();
                return Err(SnapshotError::Line { number, reason });
            }
            objects += 1;
            if objects > limits.objects {
                let limit = format!("{} objects", limits.objects);
                return Err(SnapshotError::TooMuch { number, limit });
            }
            each(value);
            continue;
        }
        let end: End = serde_json::from_value(value)
            .map_err(|error| SnapshotError::Line { number, reason: reason(&error) })?;
        if end.objects != objects {
            return Err(SnapshotError::Changed { what: "the number of objects" });
        }
        if end.sha256 != hexadecimal(&digest.finalize()) {
            return Err(SnapshotError::Changed { what: "the digest" });
        }
        if lines.next()?.is_some() {
            return Err(SnapshotError::More { number: lines.number });
        }
        return Ok((head, end));
    }
}

fn read_head(line: &[u8]) -> Result<About, SnapshotError> {
    let value: Value = serde_json::from_slice(line).map_err(|_| SnapshotError::Foreign)?;
    if value.get("kind").and_then(Value::as_str) != Some(HEAD) {
        return Err(SnapshotError::Foreign);
    }
    let found = value.get("schemaVersion").and_then(Value::as_u64).unwrap_or_default();
    if found != SCHEMA_VERSION {
        let by = value.get("takenBy").and_then(Value::as_str).unwrap_or("not said").to_owned();
        return Err(SnapshotError::Schema { found, by });
    }
    serde_json::from_value(value)
        .map_err(|error| SnapshotError::Line { number: 1, reason: reason(&error) })
}

/// What is wrong with a line: to the parser it is line 1 of a text.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((text, _)) => format!("{text} (column {})", error.column()),
        None => text,
    }
}

/// Lines of bounded length.
struct Lines<R: Read> {
    input: BufReader<R>,
    limits: Limits,
    line: Vec<u8>,
    number: usize,
    total: u64,
    digest: Sha256,
}

impl<R: Read> Lines<R> {
    fn new(input: R, limits: Limits) -> Self {
        Self {
            input: BufReader::new(input),
            limits,
            line: Vec::new(),
            number: 0,
            total: 0,
            digest: Sha256::new(),
        }
    }

    fn next(&mut self) -> Result<Option<&[u8]>, SnapshotError> {
        self.line.clear();
        let mut part = (&mut self.input).take(self.limits.line);
        let count = part.read_until(b'\n', &mut self.line)?;
        if count == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.total += count as u64;
        let number = self.number;
        if count as u64 == self.limits.line && !self.line.ends_with(b"\n") {
            let limit = format!("{} bytes in a line", self.limits.line);
            return Err(SnapshotError::TooMuch { number, limit });
        }
        if self.total > self.limits.total {
            let limit = format!("{} bytes in all", self.limits.total);
            return Err(SnapshotError::TooMuch { number, limit });
        }
        self.digest.update(&self.line);
        Ok(Some(&self.line))
    }
}
