//! The ciphers of `apiserver/pkg/storage/value/encrypt`.

use aes::cipher::array::Array;
use aes::cipher::{
    BlockCipherDecrypt as _, KeyInit as _, KeyIvInit as _, StreamCipher as _, consts::U12,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{Aead as _, Payload};
use poly1305::Poly1305;
use salsa20::XSalsa20;

const BLOCK: usize = 16;
/// Bytes before an `aesgcm` value's cipher text.
const GCM_NONCE: usize = 12;
/// Bytes before a `secretbox` value's tag, and of the tag.
const BOX_NONCE: usize = 24;
const TAG: usize = 16;

/// Why a value does not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The key is another one.
    Key,
    /// It has fewer bytes than its form needs.
    Size,
}

/// A key, by cipher.
#[derive(Clone)]
pub(super) enum Key {
    Cbc(AesKey),
    Gcm(AesKey),
    SecretBox([u8; 32]),
}

/// AES with its three sizes of keys.
#[derive(Clone, Copy)]
pub(super) enum AesKey {
    Aes128([u8; 16]),
    Aes192([u8; 24]),
    Aes256([u8; 32]),
}

impl Key {
    /// Takes a secret; the error is which sizes the cipher takes.
    pub(super) fn new(provider: &str, secret: &[u8]) -> Result<Self, &'static str> {
        if provider == "secretbox" {
            return secret.try_into().map(Self::SecretBox).map_err(|_| "32");
        }
        let aes = match secret.len() {
            16 => secret.try_into().ok().map(AesKey::Aes128),
            24 => secret.try_into().ok().map(AesKey::Aes192),
            32 => secret.try_into().ok().map(AesKey::Aes256),
            _ => None,
        };
        let aes = aes.ok_or("16, 24 or 32")?;
        Ok(if provider == "aesgcm" { Self::Gcm(aes) } else { Self::Cbc(aes) })
    }
}

/// Opens what stands behind the prefix.
pub(super) fn open(key: &Key, content: &[u8], etcd_key: &[u8]) -> Result<Vec<u8>, Wrong> {
    match key {
        Key::Cbc(key) => cbc(*key, content),
        Key::Gcm(key) => gcm(*key, content, etcd_key),
        Key::SecretBox(key) => secret_box(key, content),
    }
}

/// AES-CBC with PKCS#7 padding, the vector in front (`aes/aes.go`, `cbc`).
fn cbc(key: AesKey, content: &[u8]) -> Result<Vec<u8>, Wrong> {
    let (vector, body) = content.split_at_checked(BLOCK).ok_or(Wrong::Size)?;
    if body.is_empty() || body.len() % BLOCK != 0 {
        return Err(Wrong::Size);
    }
    let mut plain = Vec::with_capacity(body.len());
    let mut decrypt = |decrypt_block: &dyn Fn(&mut Array<u8, _>)| {
        let mut previous = vector;
        for chunk in body.chunks_exact(BLOCK) {
            let mut block = Array::from(<[u8; BLOCK]>::try_from(chunk).unwrap_or_default());
            decrypt_block(&mut block);
            plain.extend(block.iter().zip(previous).map(|(byte, other)| byte ^ other));
            previous = chunk;
        }
    };
    match key {
        AesKey::Aes128(key) => {
            let cipher = Aes128::new(&key.into());
            decrypt(&|block| cipher.decrypt_block(block));
        }
        AesKey::Aes192(key) => {
            let cipher = Aes192::new(&key.into());
            decrypt(&|block| cipher.decrypt_block(block));
        }
        AesKey::Aes256(key) => {
            let cipher = Aes256::new(&key.into());
            decrypt(&|block| cipher.decrypt_block(block));
        }
    }
    let padding = plain.last().copied().unwrap_or_default();
    let size = plain.len().checked_sub(usize::from(padding)).ok_or(Wrong::Key)?;
    let is_padded =
        padding > 0 && plain.get(size..).is_some_and(|end| end.iter().all(|byte| *byte == padding));
    plain.truncate(size);
    if is_padded { Ok(plain) } else { Err(Wrong::Key) }
}

/// AES-GCM, the nonce in front, the etcd key sealed in (`aes/aes.go`, `gcm`).
fn gcm(key: AesKey, content: &[u8], etcd_key: &[u8]) -> Result<Vec<u8>, Wrong> {
    let (nonce, body) = content.split_at_checked(GCM_NONCE).ok_or(Wrong::Size)?;
    if body.len() < TAG {
        return Err(Wrong::Size);
    }
    let nonce: Array<u8, U12> = <[u8; GCM_NONCE]>::try_from(nonce).unwrap_or_default().into();
    let payload = Payload { msg: body, aad: etcd_key };
    let plain = match key {
        AesKey::Aes128(key) => AesGcm::<Aes128, U12>::new(&key.into()).decrypt(&nonce, payload),
        AesKey::Aes192(key) => AesGcm::<Aes192, U12>::new(&key.into()).decrypt(&nonce, payload),
        AesKey::Aes256(key) => AesGcm::<Aes256, U12>::new(&key.into()).decrypt(&nonce, payload),
    };
    plain.map_err(|_| Wrong::Key)
}

/// XSalsa20 with Poly1305, the nonce in front, then the tag (`secretbox/secretbox.go`, and
/// `nacl/secretbox` of golang.org/x/crypto). The first 32 bytes of the stream are the tag's key.
fn secret_box(key: &[u8; 32], content: &[u8]) -> Result<Vec<u8>, Wrong> {
    let (nonce, rest) = content.split_at_checked(BOX_NONCE).ok_or(Wrong::Size)?;
    let (tag, body) = rest.split_at_checked(TAG).ok_or(Wrong::Size)?;
    let nonce = <[u8; BOX_NONCE]>::try_from(nonce).unwrap_or_default();
    let mut stream = XSalsa20::new(key.into(), &nonce.into());
    let mut tag_key = [0; 32];
    stream.apply_keystream(&mut tag_key);
    let computed = Poly1305::new(&tag_key.into()).compute_unpadded(body);
    // Nobody learns anything by how long this takes: the file's reader has the file.
    if computed.as_slice() != tag {
        return Err(Wrong::Key);
    }
    let mut plain = body.to_vec();
    stream.apply_keystream(&mut plain);
    Ok(plain)
}
