//! Decompressing an archive as far as it goes, as Go's `compress/gzip` reads it.
//!
//! Go's tar reader stops at the end of the archive and never sees what is broken behind it, in
//! the gzip trailer for instance. So decompression collects what can be read and keeps the error
//! for the moment when somebody needs more.

use flate2::{Crc, Decompress, FlushDecompress, Status};

/// Decompressed bytes and why there are no more.
pub(super) struct Decompressed {
    pub(super) data: Vec<u8>,
    pub(super) end: End,
}

/// Why decompression ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// All was read.
    Complete,
    /// There is more than the bound.
    Bound,
    /// The data is broken; Go's text. Go adds an offset to its flate errors, which is not known
    /// here.
    Broken(&'static str),
}

const HEADER: &str = "gzip: invalid header";
const CHECKSUM: &str = "gzip: invalid checksum";
const TRUNCATED: &str = "unexpected EOF";

/// Decompresses all members of a gzip stream, at most `bound` bytes.
///
/// # Errors
///
/// Go's text when already the first header is broken.
pub(super) fn decompress(archive: &[u8], bound: usize) -> Result<Decompressed, &'static str> {
    if archive.is_empty() {
        return Err("EOF");
    }
    let mut rest = header(archive)?;
    let mut data = Vec::new();
    loop {
        rest = match member(rest, &mut data, bound) {
            Ok(rest) => rest,
            Err(end) => return Ok(Decompressed { data, end }),
        };
        if rest.is_empty() {
            return Ok(Decompressed { data, end: End::Complete });
        }
        rest = match header(rest) {
            Ok(rest) => rest,
            Err(text) => return Ok(Decompressed { data, end: End::Broken(text) }),
        };
    }
}

/// Skips a member's header (RFC 1952).
fn header(input: &[u8]) -> Result<&[u8], &'static str> {
    const CHECKSUM_FLAG: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    let (fixed, mut rest) = input.split_first_chunk::<10>().ok_or(TRUNCATED)?;
    let [0x1F, 0x8B, 8, flags, ..] = *fixed else { return Err(HEADER) };
    if flags & EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>().ok_or(TRUNCATED)?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..).ok_or(TRUNCATED)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&b| b == 0).ok_or(TRUNCATED)?;
            // Go's buffer for these texts has 512 bytes.
            if end >= 512 {
                return Err(HEADER);
            }
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
    if flags & CHECKSUM_FLAG != 0 {
        let mut crc = Crc::new();
        crc.update(input.get(..input.len() - rest.len()).unwrap_or_default());
        let (digest, after) = rest.split_first_chunk::<2>().ok_or(TRUNCATED)?;
        if u32::from(u16::from_le_bytes(*digest)) != crc.sum() & 0xFFFF {
            return Err(HEADER);
        }
        rest = after;
    }
    Ok(rest)
}

/// Decompresses one member and checks its trailer.
fn member<'a>(input: &'a [u8], data: &mut Vec<u8>, bound: usize) -> Result<&'a [u8], End> {
    let mut inflate = Decompress::new(false);
    let mut crc = Crc::new();
    let mut rest = input;
    data.reserve_exact(size_hint(input).min(bound.saturating_sub(data.len())) + MARGIN);
    loop {
        if data.len() == data.capacity() {
            let allowed = bound.saturating_sub(data.len()) + MARGIN;
            data.reserve_exact(data.len().clamp(MARGIN, allowed));
        }
        let (read, start) = (inflate.total_in(), data.len());
        let status = inflate.decompress_vec(rest, data, FlushDecompress::None);
        let read = usize::try_from(inflate.total_in() - read).unwrap_or(0);
        let produced = data.get(start..).unwrap_or_default();
        let written = produced.len();
        rest = rest.get(read..).unwrap_or_default();
        crc.update(produced);
        if data.len() > bound {
            data.truncate(bound);
            return Err(End::Bound);
        }
        match status {
            Err(_) => return Err(End::Broken("flate: corrupt input")),
            Ok(Status::StreamEnd) => break,
            Ok(_) if read == 0 && written == 0 => return Err(End::Broken(TRUNCATED)),
            Ok(_) => {}
        }
    }
    let (trailer, rest) = rest.split_first_chunk::<8>().ok_or(End::Broken(TRUNCATED))?;
    let (digest, length) = trailer.split_at(4);
    let expected = [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()];
    if digest != expected[0] || length != expected[1] {
        return Err(End::Broken(CHECKSUM));
    }
    Ok(rest)
}

/// Room that is always left, so that a stream can end without growing the buffer.
const MARGIN: usize = 1024;

/// The size that the last trailer promises, as far as the input can be believed to expand.
fn size_hint(input: &[u8]) -> usize {
    const BELIEVABLE: usize = 16;
    let promised = input.last_chunk::<4>().map_or(0, |size| u32::from_le_bytes(*size));
    usize::try_from(promised).unwrap_or(0).min(input.len().saturating_mul(BELIEVABLE))
}
