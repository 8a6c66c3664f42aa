//! Digests in hexadecimal, and Adler-32 in decimal: the first part of sprig's `crypto.go`.

use std::fmt::Write as _;

use gotemplate::{Function, FunctionMap, Str};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("sha1sum", Function::new(|text: Str| hex(&Sha1::digest(&text))));
    functions.insert("sha256sum", Function::new(|text: Str| hex(&Sha256::digest(&text))));
    functions.insert("sha512sum", Function::new(|text: Str| hex(&Sha512::digest(&text))));
    functions.insert("adler32sum", Function::new(|text: Str| adler32(&text).to_string()));
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// RFC 1950's checksum.
fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}
