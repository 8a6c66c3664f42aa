//! The layers of a stored record: base64, gzip, JSON (`pkg/storage/driver/util.go`).
//!
//! ```text
//! Secret manifest ─ base64 (Kubernetes) ─► release string ─ base64 (Helm) ─► gzip or plain ─► JSON
//! ```

use std::io::{Read, Write};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD};
use bstr::ByteSlice;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::bytes;

/// The first bytes of a gzip stream with deflate, by which Helm tells compressed records.
const GZIP: [u8; 3] = [0x1f, 0x8b, 0x08];

/// Go's `base64.StdEncoding`, which does not look at the unused bits of the last character.
pub(super) const GO: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// Bounds on what a record may decode to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecLimits {
    /// Bytes of JSON after decompression (32 MiB). A Secret holds 1 MiB, which is 10 to 20 MB of
    /// JSON in a record that somebody made; gzip could pack a thousand times as much.
    pub decompressed: usize,
    /// Values in the JSON (1,000,000): objects, lists, texts and numbers. Each costs a hundred
    /// times the memory that it has bytes.
    pub values: usize,
}

impl Default for CodecLimits {
    fn default() -> Self {
        Self { decompressed: 32 * 1024 * 1024, values: 1_000_000 }
    }
}

/// Which layer of a record does not decode, and where.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// Helm's base64.
    #[error("base64 layer: {reason} at byte {offset}")]
    Base64 {
        /// The byte in the release string.
        offset: usize,
        /// What is wrong there.
        reason: String,
    },
    /// The gzip stream.
    #[error("gzip layer: broken after {decoded} bytes of JSON")]
    Gzip {
        /// How many bytes came out before the fault.
        decoded: usize,
        /// What the decompressor says.
        source: std::io::Error,
    },
    /// More comes out than may.
    #[error("gzip layer: decompresses to more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The JSON has more values than it may have.
    #[error("JSON layer: more than {limit} values")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The JSON is not UTF-8.
    #[error("JSON layer: invalid UTF-8 at byte {offset}")]
    Utf8 {
        /// The byte in the JSON.
        offset: usize,
    },
    /// The JSON does not parse, or is not a release.
    #[error("JSON layer")]
    Json(#[from] serde_json::Error),
}

/// Decodes the release string of a record to its JSON text.
///
/// As Helm does, data that does not begin like gzip is taken for plain JSON.
///
/// # Errors
/// [`CodecError`] names the layer and the byte.
pub fn decode(release: &[u8], limits: CodecLimits) -> Result<String, CodecError> {
    // Go's decoder skips line breaks; dumps made by other tools wrap lines.
    let release = bytes::without(release, |byte| matches!(byte, b'\r' | b'\n'));
    let data = GO.decode(&release).map_err(|error| base64_error(&error, release.len()))?;
    let json = if data.len() > GZIP.len() && data.starts_with(&GZIP) {
        decompress(&data, limits)?
    } else {
        data
    };
    checked(json, limits)
}

/// JSON bytes as text, within the limits.
pub(super) fn checked(json: Vec<u8>, limits: CodecLimits) -> Result<String, CodecError> {
    if json.len() > limits.decompressed {
        return Err(CodecError::TooLarge { limit: limits.decompressed });
    }
    if has_more_values(&json, limits.values) {
        return Err(CodecError::TooMany { limit: limits.values });
    }
    String::from_utf8(json)
        .map_err(|error| CodecError::Utf8 { offset: error.utf8_error().valid_up_to() })
}

/// Whether JSON has more values than `limit`, nearly: each begins after a bracket or a comma.
pub(super) fn has_more_values(json: &[u8], limit: usize) -> bool {
    let count = |text: &[u8]| bytes::count(text, |byte| matches!(byte, b',' | b'{' | b'['));
    // What texts hold is counted too, which is fast and nearly always answers.
    if count(json) <= limit {
        return false;
    }
    let (mut values, mut rest) = (0, json);
    loop {
        let end = rest.find_byte(b'"').unwrap_or(rest.len());
        values += count(rest.get(..end).unwrap_or_default());
        if values > limit {
            return true;
        }
        let Some(behind) = rest.get(end + 1..).and_then(behind_text) else { return false };
        rest = behind;
    }
}

/// What stands behind a JSON text whose quote has just begun; `None` when it does not end.
fn behind_text(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let at = text.find_byteset(b"\"\\")?;
        if text.get(at) == Some(&b'"') {
            return text.get(at + 1..);
        }
        text = text.get(at + 2..)?;
    }
}

fn decompress(data: &[u8], limits: CodecLimits) -> Result<Vec<u8>, CodecError> {
    let mut json = Vec::with_capacity((data.len() * 6).min(limits.decompressed));
    // One byte over the limit tells "just fits" from "too large".
    let bound = limits.decompressed as u64 + 1;
    match MultiGzDecoder::new(data).take(bound).read_to_end(&mut json) {
        Ok(_) if json.len() > limits.decompressed => {
            Err(CodecError::TooLarge { limit: limits.decompressed })
        }
        Ok(_) => Ok(json),
        Err(source) => Err(CodecError::Gzip { decoded: json.len(), source }),
    }
}

fn base64_error(error: &base64::DecodeError, length: usize) -> CodecError {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    let (offset, reason) = match error {
        InvalidByte(offset, byte) => (*offset, format!("invalid byte 0x{byte:02x}")),
        InvalidLastSymbol { .. } => (length, "invalid last character".to_owned()),
        InvalidLength(length) => (*length, "the text is cut off".to_owned()),
        InvalidPadding => (length, "wrong padding".to_owned()),
    };
    CodecError::Base64 { offset, reason }
}

/// Encodes JSON text as Helm stores it: gzip at the best level, then base64.
///
/// The compressed bytes need not be those of Go's compressor; what they decode to is equal.
///
/// # Errors
/// When compressing fails, which memory alone can cause.
pub fn encode(json: &str) -> std::io::Result<String> {
    let mut gzip = GzEncoder::new(Vec::with_capacity(json.len() / 4), Compression::best());
    gzip.write_all(json.as_bytes())?;
    Ok(STANDARD.encode(gzip.finish()?))
}

#[cfg(test)]
mod tests {
    use super::{CodecError, CodecLimits, STANDARD, decode, encode};
    use base64::Engine as _;

    #[test]
    fn round_trip_and_plain() {
        let json = r#"{"name":"x","config":{"a":"ö"}}"#;
        let limits = CodecLimits::default();
        assert_eq!(decode(encode(json).unwrap().as_bytes(), limits).unwrap(), json);
        assert_eq!(decode(STANDARD.encode(json).as_bytes(), limits).unwrap(), json);
    }

    #[test]
    fn every_truncation_is_an_error_or_other_text() {
        let json = r#"{"name":"x","info":{"status":"deployed"},"version":3}"#;
        let stored = encode(json).unwrap();
        for end in 0..stored.len() {
            let result = decode(&stored.as_bytes()[..end], CodecLimits::default());
            assert_ne!(result.ok().as_deref(), Some(json), "cut at {end}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let stored = encode(&"0".repeat(10_000_000)).unwrap();
        let limits = CodecLimits { decompressed: 1_000_000, ..CodecLimits::default() };
        assert!(matches!(decode(stored.as_bytes(), limits), Err(CodecError::TooLarge { .. })));
    }

    #[test]
    fn values_are_counted_outside_of_texts() {
        use super::has_more_values;

        let json = br#"{"a":[{},{},1],"b":"[,{,\"[,{,\\","c":",,,"}"#;
        // Two brackets and their commas, an object each, and the comma before b and c.
        assert!(has_more_values(json, 7));
        assert!(!has_more_values(json, 8));
        for end in 0..json.len() {
            assert!(!has_more_values(&json[..end], 8), "cut at {end}");
        }
        let many = format!(r#"{{"hooks":[{}{{}}]}}"#, "{},".repeat(1_000_000));
        let stored = encode(&many).unwrap();
        let result = decode(stored.as_bytes(), CodecLimits::default());
        assert!(matches!(result, Err(CodecError::TooMany { .. })), "{result:?}");
    }
}
