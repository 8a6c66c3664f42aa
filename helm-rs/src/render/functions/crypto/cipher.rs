//! AES-256 in CBC mode with the random vector in front (`sprig/crypto.go`).

use aes::Aes256;
use aes::cipher::array::Array;
use aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gotemplate::{CallError, Runtime, Str};

use crate::render::functions::base::base64_decode;
use crate::render::host::Host;

const BLOCK: usize = 16;

/// The password cut or filled with zeros to 32 bytes.
fn cipher(password: &Str) -> Aes256 {
    let mut key = [0; 32];
    for (place, byte) in key.iter_mut().zip(password.as_bytes()) {
        *place = *byte;
    }
    Aes256::new(&key.into())
}

fn exclusive_or(block: &mut [u8], other: &[u8]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}

pub(super) fn encrypt_aes(
    runtime: &mut dyn Runtime,
    password: Str,
    plain: Str,
) -> Result<String, CallError> {
    if plain.is_empty() {
        return Ok(String::new());
    }
    let cipher = cipher(&password);
    let padding = BLOCK - plain.len() % BLOCK;
    let mut content = plain.as_bytes().to_vec();
    content.resize(plain.len() + padding, padding as u8);
    let mut previous = [0; BLOCK];
    Host::of(runtime)?.fill_random(&mut previous);
    let mut out = previous.to_vec();
    for block in content.chunks_exact(BLOCK) {
        exclusive_or(&mut previous, block);
        let mut block = Array::from(previous);
        cipher.encrypt_block(&mut block);
        previous = block.into();
        out.extend_from_slice(&previous);
    }
    Ok(STANDARD.encode(out))
}

pub(super) fn decrypt_aes(password: Str, text: Str) -> Result<Vec<u8>, CallError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let bytes =
        base64_decode(text.as_bytes()).map_err(|error| CallError::new(error.to_string()))?;
    let bounds =
        |range: String| CallError::new(format!("runtime error: slice bounds out of range {range}"));
    let Some((vector, body)) = bytes.split_at_checked(BLOCK) else {
        // The decoder reserves three bytes for each four characters, line ends included.
        let capacity = text.len() / 4 * 3;
        return Err(bounds(if capacity < BLOCK {
            format!("[:16] with capacity {capacity}")
        } else {
            format!("[16:{}]", bytes.len())
        }));
    };
    if body.len() % BLOCK != 0 {
        return Err(CallError::from("crypto/cipher: input not full blocks"));
    }
    let cipher = cipher(&password);
    let mut out = Vec::with_capacity(body.len());
    let mut previous = vector;
    for chunk in body.chunks_exact(BLOCK) {
        let mut block = Array::from(<[u8; BLOCK]>::try_from(chunk).unwrap_or_default());
        cipher.decrypt_block(&mut block);
        exclusive_or(&mut block, previous);
        out.extend_from_slice(&block);
        previous = chunk;
    }
    let Some(&padding) = out.last() else {
        return Err(CallError::from("runtime error: index out of range [-1]"));
    };
    let Some(length) = out.len().checked_sub(usize::from(padding)) else {
        let end = out.len() as i64 - i64::from(padding);
        return Err(bounds(format!("[:{end}]")));
    };
    out.truncate(length);
    Ok(out)
}
