//! Password hashes and passwords derived from a master password (`sprig/crypto.go`).

use gotemplate::function::Param;
use gotemplate::{CallError, IntKind, Runtime, Str, Type, Value};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::render::host::Host;

/// Go's `bcrypt.DefaultCost`.
const COST: u32 = 10;
/// The longest password that Go's bcrypt takes.
const LONGEST: usize = 72;

fn hash(host: &mut Host, password: &[u8]) -> String {
    const FAILED: &str = "failed to encrypt string with bcrypt";
    if password.len() > LONGEST {
        return format!("{FAILED}: bcrypt: password length exceeds 72 bytes");
    }
    let mut salt = [0; 16];
    host.fill_random(&mut salt);
    match bcrypt::hash_with_salt(password, COST, salt) {
        Ok(parts) => parts.format_for_version(bcrypt::Version::TwoA),
        Err(error) => format!("{FAILED}: {error}"),
    }
}

pub(super) fn bcrypt(runtime: &mut dyn Runtime, password: Str) -> Result<String, CallError> {
    Ok(hash(Host::of(runtime)?, password.as_bytes()))
}

pub(super) fn htpasswd(
    runtime: &mut dyn Runtime,
    user: Str,
    password: Str,
) -> Result<Vec<u8>, CallError> {
    if user.as_bytes().contains(&b':') {
        return Ok([b"invalid username: ", user.as_bytes()].concat());
    }
    let hash = hash(Host::of(runtime)?, password.as_bytes());
    Ok([user.as_bytes(), b":", hash.as_bytes()].concat())
}

/// A Go `uint32` parameter.
pub(super) struct Counter(u32);

impl Param for Counter {
    const TYPE: Type = Type::Int(IntKind::Uint32);

    fn take(args: &mut std::slice::Iter<'_, Value>) -> Option<Self> {
        match args.next()? {
            Value::Int(int) => Some(Self(int.bits as u32)),
            _ => None,
        }
    }
}

/// The character classes of a password of each kind.
fn templates(kind: &[u8]) -> Option<&'static [&'static str]> {
    Some(match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

/// The characters of a class.
const fn class(letter: u8) -> &'static [u8] {
    match letter {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The Master Password algorithm.
pub(super) fn derive_password(
    counter: Counter,
    kind: Str,
    password: Str,
    user: Str,
    site: Str,
) -> Vec<u8> {
    const SEED: &[u8] = b"com.lyndir.masterpassword";
    let Some(templates) = templates(kind.as_bytes()) else {
        return [b"cannot find password template ", kind.as_bytes()].concat();
    };
    let length = |text: &Str| (text.as_bytes().len() as u32).to_be_bytes();
    let salt = [SEED, &length(&user), user.as_bytes()].concat();
    let mut key = [0; 64];
    let derived =
        scrypt::Params::new(15, 8, 2).map_err(|error| error.to_string()).and_then(|parameters| {
            scrypt::scrypt(password.as_bytes(), &salt, &parameters, &mut key)
                .map_err(|error| error.to_string())
        });
    let mac = Hmac::<Sha256>::new_from_slice(&key);
    let (Ok(()), Ok(mut mac)) = (derived, mac) else {
        return b"failed to derive password".to_vec();
    };
    mac.update(&[SEED, &length(&site), site.as_bytes(), &counter.0.to_be_bytes()].concat());
    let seed = mac.finalize().into_bytes();
    let pick = |index: usize, count: usize| {
        usize::from(seed.get(index).copied().unwrap_or(0)).checked_rem(count).unwrap_or(0)
    };
    let template = templates.get(pick(0, templates.len())).copied().unwrap_or_default();
    let character = |(i, letter): (usize, u8)| {
        let characters = class(letter);
        characters.get(pick(i + 1, characters.len())).copied().unwrap_or(b'0')
    };
    template.bytes().enumerate().map(character).collect()
}
