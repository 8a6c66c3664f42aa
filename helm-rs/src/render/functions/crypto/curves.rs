//! Keys on elliptic curves: ECDSA on the NIST curves, and Ed25519.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;
use num_bigint::BigUint;
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::der::{self, Reader};

/// A curve that certificates use. Go knows P-224 too, which nobody does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// The content of the object identifier.
    pub(super) const fn identifier(self) -> &'static [u8] {
        match self {
            Self::P256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
            Self::P384 => &[0x2b, 0x81, 4, 0, 0x22],
            Self::P521 => &[0x2b, 0x81, 4, 0, 0x23],
        }
    }

    fn from_identifier(content: &[u8]) -> Option<Self> {
        [Self::P256, Self::P384, Self::P521].into_iter().find(|c| c.identifier() == content)
    }

    /// The content of the identifier of ECDSA with the hash that Go pairs it with.
    pub(super) const fn signature_identifier(self) -> &'static [u8] {
        match self {
            Self::P256 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
            Self::P384 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
            Self::P521 => &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4],
        }
    }

    const fn scalar_length(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// An ECDSA private key: the scalar and the uncompressed public point.
#[derive(Clone)]
pub(super) struct EcdsaKey {
    pub(super) curve: Curve,
    scalar: Vec<u8>,
    point: Vec<u8>,
}

macro_rules! on_curve {
    ($curve:expr, $scalar:expr, |$key:ident| $body:expr) => {
        match $curve {
            Curve::P256 => {
                let $key = p256::ecdsa::SigningKey::from_slice($scalar).ok()?;
                $body
            }
            Curve::P384 => {
                let $key = p384::ecdsa::SigningKey::from_slice($scalar).ok()?;
                $body
            }
            Curve::P521 => {
                let $key = p521::ecdsa::SigningKey::from_slice($scalar).ok()?;
                $body
            }
        }
    };
}

impl EcdsaKey {
    /// A random key on P-256.
    pub(super) fn generate(random: &mut ChaCha20Rng) -> Self {
        loop {
            let mut scalar = vec![0; 32];
            random.fill_bytes(&mut scalar);
            // All but a few scalars are in range.
            if let Some(key) = Self::from_scalar(Curve::P256, scalar) {
                return key;
            }
        }
    }

    fn from_scalar(curve: Curve, scalar: Vec<u8>) -> Option<Self> {
        let point = on_curve!(curve, &scalar, |key| {
            key.verifying_key().to_sec1_point(false).as_bytes().to_vec()
        });
        Some(Self { curve, scalar, point })
    }

    /// The uncompressed public point.
    pub(super) fn public_key(&self) -> &[u8] {
        &self.point
    }

    /// The signature of a message in DER, by RFC 6979; Go's are random.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let digest = match self.curve {
            Curve::P256 => Sha256::digest(message).to_vec(),
            Curve::P384 => Sha384::digest(message).to_vec(),
            Curve::P521 => Sha512::digest(message).to_vec(),
        };
        let raw: Vec<u8> = match self.curve {
            Curve::P256 => {
                let key = p256::ecdsa::SigningKey::from_slice(&self.scalar).ok()?;
                let signature: p256::ecdsa::Signature = key.sign_prehash(&digest).ok()?;
                signature.to_bytes().to_vec()
            }
            Curve::P384 => {
                let key = p384::ecdsa::SigningKey::from_slice(&self.scalar).ok()?;
                let signature: p384::ecdsa::Signature = key.sign_prehash(&digest).ok()?;
                signature.to_bytes().to_vec()
            }
            Curve::P521 => {
                let key = p521::ecdsa::SigningKey::from_slice(&self.scalar).ok()?;
                let signature: p521::ecdsa::Signature = key.sign_prehash(&digest).ok()?;
                signature.to_bytes().to_vec()
            }
        };
        let (r, s) = raw.split_at_checked(raw.len() / 2)?;
        let number = |bytes| der::integer(&BigUint::from_bytes_be(bytes));
        Some(der::sequence(&[&number(r), &number(s)]))
    }

    /// The private key of SEC 1 (`x509.MarshalECPrivateKey`).
    pub(super) fn to_sec1(&self) -> Vec<u8> {
        let curve = der::element(der::OBJECT_IDENTIFIER, self.curve.identifier());
        der::sequence(&[
            &der::integer(&BigUint::from(1_u8)),
            &der::element(der::OCTET_STRING, &self.scalar),
            &der::element(0xa0, &curve),
            &der::element(0xa1, &der::bit_string(&self.point)),
        ])
    }

    /// Reads a private key of SEC 1; `outer` is the curve that PKCS #8 names
    /// (`x509.parseECPrivateKey`).
    pub(super) fn from_sec1(bytes: &[u8], outer: Option<&[u8]>) -> Result<Self, String> {
        let malformed =
            || "x509: failed to parse EC private key: asn1: structure error: malformed".to_owned();
        let mut body = Reader(Reader(bytes).read(der::SEQUENCE).ok_or_else(malformed)?);
        let (version, _) = body.integer().ok_or_else(malformed)?;
        let mut scalar = body.read(der::OCTET_STRING).ok_or_else(malformed)?;
        if version != BigUint::from(1_u8) {
            return Err(format!("x509: unknown EC private key version {version}"));
        }
        let inner = body.read(0xa0).and_then(|mut curve| {
            let mut reader = Reader(std::mem::take(&mut curve));
            reader.read(der::OBJECT_IDENTIFIER)
        });
        let curve = outer
            .or(inner)
            .and_then(Curve::from_identifier)
            .ok_or_else(|| "x509: unknown elliptic curve".to_owned())?;
        let length = curve.scalar_length();
        while scalar.len() > length {
            scalar = scalar
                .strip_prefix(&[0])
                .ok_or_else(|| "x509: invalid private key length".to_owned())?;
        }
        let mut padded = vec![0; length - scalar.len()];
        padded.extend_from_slice(scalar);
        Self::from_scalar(curve, padded)
            .ok_or_else(|| "crypto/ecdh: invalid private key".to_owned())
    }
}

/// An Ed25519 private key: its seed.
#[derive(Clone)]
pub(super) struct Ed25519Key(ed25519_dalek::SigningKey);

impl Ed25519Key {
    pub(super) fn generate(random: &mut ChaCha20Rng) -> Self {
        let mut seed = [0; 32];
        random.fill_bytes(&mut seed);
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    pub(super) fn from_seed(seed: [u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    pub(super) fn seed(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    pub(super) fn public_key(&self) -> Vec<u8> {
        self.0.verifying_key().to_bytes().to_vec()
    }

    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        use ed25519_dalek::Signer as _;

        self.0.sign(message).to_bytes().to_vec()
    }
}
