//! RSA keys: generation, PKCS #1, and the signature of PKCS #1 v1.5 over SHA-256.

use chacha20::ChaCha20Rng;
use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use super::der::{self, Reader};
use super::primes::{SmallPrimes, random_prime};

/// The public exponent that Go chooses.
const EXPONENT: u64 = 65_537;

/// An RSA private key of two primes.
#[derive(Clone)]
pub(super) struct RsaKey {
    modulus: BigUint,
    exponent: BigUint,
    private: BigUint,
    p: BigUint,
    q: BigUint,
    exponent_p: BigUint,
    exponent_q: BigUint,
    coefficient: BigUint,
}

/// The inverse of the small prime `e` modulo `modulus`, by arithmetic modulo `e`; `None`
/// when there is none.
fn small_inverse(e: u64, modulus: &BigUint) -> Option<BigUint> {
    let one = BigUint::from(1_u8);
    let rest = modulus % e;
    // d = (1 + k * modulus) / e with k = -1 / modulus modulo e.
    let inverse = rest.modinv(&BigUint::from(e))?;
    let k = BigUint::from(e) - inverse;
    Some((k * modulus + one) / e)
}

fn greatest_divisor(mut a: BigUint, mut b: BigUint) -> BigUint {
    while b != BigUint::ZERO {
        (a, b) = (b.clone(), a % b);
    }
    a
}

impl RsaKey {
    /// A key of `128 * LIMBS` bits, `LIMBS` being the words of 64 bits of each prime.
    pub(super) fn generate<const LIMBS: usize>(random: &mut ChaCha20Rng) -> Self {
        let small = SmallPrimes::new();
        loop {
            let p = random_prime::<LIMBS>(random, &small, EXPONENT);
            let q = random_prime::<LIMBS>(random, &small, EXPONENT);
            if let Some(key) = Self::from_primes(p, q) {
                return key;
            }
        }
    }

    /// Go takes the private exponent modulo the least common multiple of `p-1` and `q-1`.
    fn from_primes(p: BigUint, q: BigUint) -> Option<Self> {
        if p == q {
            return None;
        }
        let one = BigUint::from(1_u8);
        let (p1, q1) = (&p - &one, &q - &one);
        let totient = &p1 * &q1 / greatest_divisor(p1.clone(), q1.clone());
        let private = small_inverse(EXPONENT, &totient)?;
        Some(Self {
            modulus: &p * &q,
            exponent: EXPONENT.into(),
            exponent_p: &private % &p1,
            exponent_q: &private % &q1,
            coefficient: (&q % &p).modinv(&p)?,
            private,
            p,
            q,
        })
    }

    /// The public key of PKCS #1.
    pub(super) fn public_key(&self) -> Vec<u8> {
        der::sequence(&[&der::integer(&self.modulus), &der::integer(&self.exponent)])
    }

    /// The private key of PKCS #1.
    pub(super) fn to_pkcs1(&self) -> Vec<u8> {
        let numbers = [
            &BigUint::ZERO,
            &self.modulus,
            &self.exponent,
            &self.private,
            &self.p,
            &self.q,
            &self.exponent_p,
            &self.exponent_q,
            &self.coefficient,
        ];
        let parts: Vec<u8> = numbers.into_iter().flat_map(der::integer).collect();
        der::element(der::SEQUENCE, &parts)
    }

    /// Reads a private key of PKCS #1 (`x509.ParsePKCS1PrivateKey`).
    pub(super) fn from_pkcs1(bytes: &[u8]) -> Result<Self, String> {
        let malformed = || "asn1: structure error: malformed RSA private key".to_owned();
        let mut outer = Reader(bytes);
        let mut body = Reader(outer.read(der::SEQUENCE).ok_or_else(malformed)?);
        if !outer.is_empty() {
            return Err("asn1: syntax error: trailing data".to_owned());
        }
        let (version, _) = body.integer().ok_or_else(malformed)?;
        let mut numbers = Vec::with_capacity(8);
        let mut negative = false;
        while !body.is_empty() && numbers.len() < 8 {
            let (number, below_zero) = body.integer().ok_or_else(malformed)?;
            negative |= below_zero || (number == BigUint::ZERO && numbers.len() != 1);
            numbers.push(number);
        }
        let [modulus, exponent, private, p, q, rest @ ..] = numbers.as_slice() else {
            return Err(malformed());
        };
        if version > BigUint::from(1_u8) {
            return Err("x509: unsupported private key version".to_owned());
        }
        if negative {
            return Err("x509: private key contains zero or negative value".to_owned());
        }
        let one = BigUint::from(1_u8);
        if *p <= one || *q <= one {
            return Err("crypto/rsa: invalid prime".to_owned());
        }
        if p * q != *modulus {
            return Err("crypto/rsa: p * q != n".to_owned());
        }
        let (p1, q1) = (p - &one, q - &one);
        for totient in [&p1, &q1] {
            if (exponent * private) % totient != &one % totient {
                return Err("crypto/rsa: invalid private exponent".to_owned());
            }
        }
        let (exponent_p, exponent_q) = (private % &p1, private % &q1);
        let coefficient =
            (q % p).modinv(p).ok_or_else(|| "crypto/rsa: invalid coefficient".to_owned())?;
        let known = [&exponent_p, &exponent_q, &coefficient];
        if rest.iter().zip(known).any(|(given, computed)| given != computed) {
            return Err("crypto/rsa: invalid CRT exponent or coefficient".to_owned());
        }
        Ok(Self {
            modulus: modulus.clone(),
            exponent: exponent.clone(),
            private: private.clone(),
            p: p.clone(),
            q: q.clone(),
            exponent_p,
            exponent_q,
            coefficient,
        })
    }

    /// The signature of a message; `None` when the key is too short for one.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        // DigestInfo of SHA-256 (RFC 8017, section 9.2).
        const PREFIX: [u8; 19] = [
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
            0x01, 0x05, 0x00, 0x04, 0x20,
        ];
        let length = usize::try_from(self.modulus.bits().div_ceil(8)).ok()?;
        let padding = length.checked_sub(PREFIX.len() + 32 + 3)?;
        let mut padded = vec![0, 1];
        padded.resize(2 + padding, 0xff);
        padded.push(0);
        padded.extend_from_slice(&PREFIX);
        padded.extend_from_slice(&Sha256::digest(message));
        let message = BigUint::from_bytes_be(&padded);
        // By the primes, as Go and everyone does it.
        let by_p = message.modpow(&self.exponent_p, &self.p);
        let by_q = message.modpow(&self.exponent_q, &self.q);
        let difference = (&by_p + &self.p - &by_q % &self.p) % &self.p;
        let factor = difference * &self.coefficient % &self.p;
        let signature = (by_q + factor * &self.q).to_bytes_be();
        let mut out = vec![0; length.checked_sub(signature.len())?];
        out.extend_from_slice(&signature);
        Some(out)
    }
}
