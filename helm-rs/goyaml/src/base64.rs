//! Base64 as Go's `base64.StdEncoding`, for `!!binary`.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Like Go, it does not mind bits left over in the last character.
const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// `base64.StdEncoding.DecodeString`, which skips line breaks.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    ENGINE.decode(digits).ok()
}

/// go-yaml's `encodeBase64`: lines of 70 characters, each with a line break if there are several.
pub(crate) fn encode_lines(data: &[u8]) -> String {
    const LINE: usize = 70;
    let encoded = ENGINE.encode(data);
    if encoded.len() < LINE {
        return encoded;
    }
    let mut text = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
        text.push_str(line);
        text.push('\n');
        rest = tail;
    }
    text
}
