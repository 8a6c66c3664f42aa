//! Guessing a media type from the first bytes, as Go's `net/http/sniff.go`: Helm names what it
//! found instead of an archive.

/// A signature: the bytes that must be there (`None` for any byte) from the start.
struct Signature {
    pattern: &'static [Option<u8>],
    media_type: &'static str,
}

macro_rules! masked {
    (@byte _) => { None };
    (@byte $byte:literal) => { Some($byte) };
    ($($byte:tt)*) => { &[$(masked!(@byte $byte)),*] };
}

const HTML_TAGS: [&[u8]; 17] = [
    b"<!DOCTYPE HTML",
    b"<HTML",
    b"<HEAD",
    b"<SCRIPT",
    b"<IFRAME",
    b"<H1",
    b"<DIV",
    b"<FONT",
    b"<TABLE",
    b"<A",
    b"<STYLE",
    b"<TITLE",
    b"<B",
    b"<BODY",
    b"<BR",
    b"<P",
    b"<!--",
];

const EXACT: [(&[u8], &str); 2] =
    [(b"%PDF-", "application/pdf"), (b"%!PS-Adobe-", "application/postscript")];

const MASKED: [Signature; 3] = [
    Signature { pattern: masked!(0xFE 0xFF _ _), media_type: "text/plain; charset=utf-16be" },
    Signature { pattern: masked!(0xFF 0xFE _ _), media_type: "text/plain; charset=utf-16le" },
    Signature { pattern: masked!(0xEF 0xBB 0xBF _), media_type: "text/plain; charset=utf-8" },
];

const IMAGES: [(&[u8], &str); 5] = [
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"\x00\x00\x02\x00", "image/x-icon"),
    (b"BM", "image/bmp"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
];

const MEDIA: [Signature; 9] = [
    Signature {
        pattern: masked!(b'R' b'I' b'F' b'F' _ _ _ _ b'W' b'E' b'B' b'P' b'V' b'P'),
        media_type: "image/webp",
    },
    Signature {
        pattern: masked!(0x89 b'P' b'N' b'G' 0x0D 0x0A 0x1A 0x0A),
        media_type: "image/png",
    },
    Signature { pattern: masked!(0xFF 0xD8 0xFF), media_type: "image/jpeg" },
    Signature {
        pattern: masked!(b'F' b'O' b'R' b'M' _ _ _ _ b'A' b'I' b'F' b'F'),
        media_type: "audio/aiff",
    },
    Signature { pattern: masked!(b'I' b'D' b'3'), media_type: "audio/mpeg" },
    Signature { pattern: masked!(b'O' b'g' b'g' b'S' 0x00), media_type: "application/ogg" },
    Signature {
        pattern: masked!(b'M' b'T' b'h' b'd' 0x00 0x00 0x00 0x06),
        media_type: "audio/midi",
    },
    Signature {
        pattern: masked!(b'R' b'I' b'F' b'F' _ _ _ _ b'A' b'V' b'I' b' '),
        media_type: "video/avi",
    },
    Signature {
        pattern: masked!(b'R' b'I' b'F' b'F' _ _ _ _ b'W' b'A' b'V' b'E'),
        media_type: "audio/wave",
    },
];

const FONTS_AND_ARCHIVES: [(&[u8], &str); 10] = [
    (b"\x00\x01\x00\x00", "font/ttf"),
    (b"OTTO", "font/otf"),
    (b"ttcf", "font/collection"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"\x1F\x8B\x08", "application/x-gzip"),
    (b"PK\x03\x04", "application/zip"),
    (b"Rar!\x1A\x07\x00", "application/x-rar-compressed"),
    (b"Rar!\x1A\x07\x01\x00", "application/x-rar-compressed"),
    (b"\x00\x61\x73\x6D", "application/wasm"),
];

/// Offset of the letters that mark an embedded OpenType font.
const EMBEDDED_FONT_OFFSET: usize = 34;

/// The media type that the bytes look like.
pub(super) fn content_type(data: &[u8]) -> &'static str {
    let is_space = |b: &u8| matches!(b, b'\t' | b'\n' | 0x0C | b'\r' | b' ');
    let start = data.iter().take_while(|b| is_space(b)).count();
    let trimmed = data.get(start..).unwrap_or_default();
    if HTML_TAGS.iter().any(|tag| is_html(trimmed, tag)) {
        return "text/html; charset=utf-8";
    }
    if trimmed.starts_with(b"<?xml") {
        return "text/xml; charset=utf-8";
    }
    let found = exact(data, &EXACT)
        .or_else(|| masked(data, &MASKED))
        .or_else(|| exact(data, &IMAGES))
        .or_else(|| masked(data, &MEDIA))
        .or_else(|| is_mp4(data).then_some("video/mp4"))
        .or_else(|| data.starts_with(b"\x1A\x45\xDF\xA3").then_some("video/webm"))
        .or_else(|| {
            let font = data.get(EMBEDDED_FONT_OFFSET..EMBEDDED_FONT_OFFSET + 2) == Some(b"LP");
            font.then_some("application/vnd.ms-fontobject")
        })
        .or_else(|| exact(data, &FONTS_AND_ARCHIVES));
    if let Some(media_type) = found {
        return media_type;
    }
    let binary = |b: &u8| matches!(b, 0x00..=0x08 | 0x0B | 0x0E..=0x1A | 0x1C..=0x1F);
    if trimmed.iter().any(binary) {
        "application/octet-stream"
    } else {
        "text/plain; charset=utf-8"
    }
}

fn exact(data: &[u8], table: &[(&'static [u8], &'static str)]) -> Option<&'static str> {
    table.iter().find(|(prefix, _)| data.starts_with(prefix)).map(|&(_, media_type)| media_type)
}

fn masked(data: &[u8], table: &[Signature]) -> Option<&'static str> {
    let fits = |signature: &&Signature| {
        data.len() >= signature.pattern.len()
            && signature
                .pattern
                .iter()
                .zip(data)
                .all(|(wanted, byte)| wanted.is_none_or(|wanted| wanted == *byte))
    };
    table.iter().find(fits).map(|signature| signature.media_type)
}

fn is_html(data: &[u8], tag: &[u8]) -> bool {
    let Some((start, rest)) = data.split_at_checked(tag.len()) else { return false };
    start.eq_ignore_ascii_case(tag) && matches!(rest.first(), Some(b' ' | b'>'))
}

fn is_mp4(data: &[u8]) -> bool {
    let Some(size) = data.first_chunk().map(|bytes| u32::from_be_bytes(*bytes) as usize) else {
        return false;
    };
    data.len() >= 12
        && size <= data.len()
        && size % 4 == 0
        && data.get(4..8) == Some(b"ftyp")
        && (8..size).step_by(4).any(|at| at != 12 && data.get(at..at + 3) == Some(b"mp4"))
}
