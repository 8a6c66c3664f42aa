//! The layers of a stored record: base64, gzip, JSON (`pkg/storage/driver/util.go`).
//!
//! ```text
//! Secret manifest ─ base64 (Kubernetes) ─► release string ─ base64 (Helm) ─► gzip or plain ─► JSON
//! ```

use std::io::{Read, Write};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, PAD, STANDARD};
use base64::write::{EncoderStringWriter, EncoderWriter};
use bstr::ByteSlice;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::raw::RawObject;
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
    unpack(unbase64(release)?, limits)
}

/// [`decode`] of a text that is let go as soon as it can be.
pub(super) fn decode_owned(release: Vec<u8>, limits: CodecLimits) -> Result<String, CodecError> {
    let data = unbase64(&release)?;
    drop(release);
    unpack(data, limits)
}

fn unbase64(release: &[u8]) -> Result<Vec<u8>, CodecError> {
    // Go's decoder skips line breaks; dumps made by other tools wrap lines.
    let release = bytes::without(release, |byte| matches!(byte, b'\r' | b'\n'));
    GO.decode(&release).map_err(|error| base64_error(&error, release.len()))
}

fn unpack(data: Vec<u8>, limits: CodecLimits) -> Result<String, CodecError> {
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
    let mut json = Vec::with_capacity(promised_size(data).min(limits.decompressed) + 1);
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

/// What the end of a gzip stream says of the size of its data, where that is likely.
fn promised_size(data: &[u8]) -> usize {
    let size = data.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    // Records come to 3 to 20 times their gzip; a size that a broken end makes up is not reserved.
    usize::try_from(size).unwrap_or_default().min(data.len().saturating_mul(32))
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
    let mut gzip = GzEncoder::new(text_writer(json.len() / 3), Compression::best());
    gzip.write_all(json.as_bytes())?;
    Ok(gzip.finish()?.into_inner())
}

/// [`encode`] of an object whose JSON is not held.
pub(super) fn encode_once(object: &RawObject) -> std::io::Result<String> {
    Ok(compress(object, text_writer(object.json_size() / 3))?.into_inner())
}

/// [`encode_once`] in the base64 that a Secret's data have, made in the same go.
pub(super) fn encode_twice(object: &RawObject) -> std::io::Result<String> {
    let outer = Whole(text_writer(object.json_size() / 2));
    let inner = EncoderWriter::new(outer, &STANDARD);
    Ok(compress(object, inner)?.finish()?.0.into_inner())
}

/// An object's JSON in little room for a while: quickly packed, a fifth of its size.
pub(super) fn lay_by(object: &RawObject) -> std::io::Result<Vec<u8>> {
    let packed = Vec::with_capacity(object.json_size() / 3);
    let mut gzip = GzEncoder::new(packed, Compression::fast());
    object.write_json(&mut gzip)?;
    gzip.finish()
}

/// What [`lay_by`] packed.
pub(super) fn take_up(packed: &[u8], limits: CodecLimits) -> Result<String, CodecError> {
    checked(decompress(packed, limits)?, limits)
}

/// Takes all that is written at once: of a writer that takes a part, `EncoderWriter` keeps the rest
/// and then takes nothing itself for once, which `GzEncoder` holds for a fault.
struct Whole<W>(W);

impl<W: Write> Write for Whole<W> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        let mut rest = data;
        while !rest.is_empty() {
            let taken = self.0.write(rest)?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(data.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

fn text_writer(size: usize) -> EncoderStringWriter<'static, GeneralPurpose, String> {
    EncoderStringWriter::from_consumer(String::with_capacity(size), &STANDARD)
}

fn compress<W: Write>(object: &RawObject, out: W) -> std::io::Result<W> {
    let mut gzip = GzEncoder::new(out, Compression::best());
    object.write_json(&mut gzip)?;
    gzip.finish()
}

#[cfg(test)]
mod tests {
    use super::{
        CodecError, CodecLimits, STANDARD, decode, decode_owned, encode, encode_once, encode_twice,
        lay_by, take_up,
    };
    use crate::release::RawObject;
    use base64::Engine as _;

    #[test]
    fn round_trip_and_plain() {
        let json = r#"{"name":"x","config":{"a":"ö"}}"#;
        let limits = CodecLimits::default();
        assert_eq!(decode(encode(json).unwrap().as_bytes(), limits).unwrap(), json);
        assert_eq!(decode(STANDARD.encode(json).as_bytes(), limits).unwrap(), json);
    }

    #[test]
    fn both_layers_of_base64_at_once() {
        for size in [0, 1, 2, 3, 100, 100_000] {
            let text = "\u{1f600}x".repeat(size);
            let json = format!("{{\"a\":\"{text}\",\"b\":{{}}}}");
            let object = RawObject::parse(&json).unwrap();
            let once = encode_once(&object).unwrap();
            assert_eq!(once, encode(&json).unwrap());
            assert_eq!(encode_twice(&object).unwrap(), STANDARD.encode(&once));
            assert_eq!(decode_owned(once.into_bytes(), CodecLimits::default()).unwrap(), json);
        }
    }

    #[test]
    fn what_is_laid_by_comes_back_whole() {
        let json =
            format!(r#"{{"name":"x","chart":"{}","config":{{"a":"ö"}}}}"#, "=".repeat(100_000));
        let packed = lay_by(&RawObject::parse(&json).unwrap()).unwrap();
        assert!(packed.len() < 10_000);
        assert_eq!(take_up(&packed, CodecLimits::default()).unwrap(), json);
        let limits = CodecLimits { decompressed: 1000, ..CodecLimits::default() };
        assert!(matches!(take_up(&packed, limits), Err(CodecError::TooLarge { .. })));
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
