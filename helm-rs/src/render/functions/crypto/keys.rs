//! Private keys of any kind: PEM in and out (`sprig/crypto.go`, `pemBlockForKey` and
//! `parsePrivateKeyPEM`).

use chacha20::ChaCha20Rng;
use num_bigint::BigUint;

use super::curves::{EcdsaKey, Ed25519Key};
use super::der::{self, Reader};
use super::dsa::DsaKey;
use super::pem;
use super::rsa::RsaKey;

/// A private key.
#[derive(Clone)]
pub(super) enum PrivateKey {
    Rsa(Box<RsaKey>),
    Ecdsa(EcdsaKey),
    Ed25519(Ed25519Key),
    Dsa(Box<DsaKey>),
}

const RSA_ENCRYPTION: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

fn algorithm(identifier: &[u8], parameters: &[u8]) -> Vec<u8> {
    der::sequence(&[&der::element(der::OBJECT_IDENTIFIER, identifier), parameters])
}

impl PrivateKey {
    /// What the certificates of `genCA` and the like get.
    pub(super) fn generate_rsa_2048(random: &mut ChaCha20Rng) -> Self {
        Self::Rsa(Box::new(RsaKey::generate::<16>(random)))
    }

    /// The key for `genPrivateKey`; `None` for a kind that sprig does not know.
    pub(super) fn generate(random: &mut ChaCha20Rng, kind: &[u8]) -> Option<Self> {
        Some(match kind {
            b"" | b"rsa" => Self::Rsa(Box::new(RsaKey::generate::<32>(random))),
            b"dsa" => Self::Dsa(Box::new(DsaKey::generate(random))),
            b"ecdsa" => Self::Ecdsa(EcdsaKey::generate(random)),
            b"ed25519" => Self::Ed25519(Ed25519Key::generate(random)),
            _ => return None,
        })
    }

    /// The key in PEM.
    pub(super) fn to_pem(&self) -> String {
        match self {
            Self::Rsa(key) => pem::encode("RSA PRIVATE KEY", &key.to_pkcs1()),
            Self::Ecdsa(key) => pem::encode("EC PRIVATE KEY", &key.to_sec1()),
            Self::Dsa(key) => pem::encode("DSA PRIVATE KEY", &key.to_der()),
            Self::Ed25519(key) => {
                let seed = der::element(der::OCTET_STRING, &key.seed());
                let info = der::sequence(&[
                    &der::integer(&BigUint::ZERO),
                    &algorithm(ED25519, &[]),
                    &der::element(der::OCTET_STRING, &seed),
                ]);
                pem::encode("PRIVATE KEY", &info)
            }
        }
    }

    /// Reads a key from PEM; the error is sprig's.
    pub(super) fn from_pem(text: &[u8]) -> Result<Self, String> {
        let block = pem::decode(text).ok_or_else(|| "no PEM data in input".to_owned())?;
        if block.kind == b"PRIVATE KEY" {
            return Self::from_pkcs8(&block.bytes)
                .map_err(|error| format!("decoding PEM as PKCS#8: {error}"));
        }
        let kind = String::from_utf8_lossy(&block.kind);
        let Some(kind) = kind.strip_suffix(" PRIVATE KEY") else {
            return Err(format!("no private key data in PEM block of type {kind}"));
        };
        match kind {
            "RSA" => RsaKey::from_pkcs1(&block.bytes)
                .map(|key| Self::Rsa(Box::new(key)))
                .map_err(|error| format!("parsing RSA private key from PEM: {error}")),
            "EC" => EcdsaKey::from_sec1(&block.bytes, None)
                .map(Self::Ecdsa)
                .map_err(|error| format!("parsing EC private key from PEM: {error}")),
            "DSA" => DsaKey::from_der(&block.bytes).map(|key| Self::Dsa(Box::new(key))).ok_or_else(
                || "parsing DSA private key from PEM: asn1: structure error: malformed".to_owned(),
            ),
            _ => Err(format!("invalid private key type {kind} PRIVATE KEY")),
        }
    }

    /// Go's `x509.ParsePKCS8PrivateKey`.
    fn from_pkcs8(bytes: &[u8]) -> Result<Self, String> {
        let malformed = || "asn1: structure error: malformed private key".to_owned();
        let mut body = Reader(Reader(bytes).read(der::SEQUENCE).ok_or_else(malformed)?);
        body.integer().ok_or_else(malformed)?;
        let mut kind = Reader(body.read(der::SEQUENCE).ok_or_else(malformed)?);
        let identifier = kind.read(der::OBJECT_IDENTIFIER).ok_or_else(malformed)?;
        let key = body.read(der::OCTET_STRING).ok_or_else(malformed)?;
        match identifier {
            RSA_ENCRYPTION => {
                RsaKey::from_pkcs1(key).map(|key| Self::Rsa(Box::new(key))).map_err(|error| {
                    format!("x509: failed to parse RSA private key embedded in PKCS#8: {error}")
                })
            }
            EC_PUBLIC_KEY => {
                let curve = kind.read(der::OBJECT_IDENTIFIER);
                EcdsaKey::from_sec1(key, curve).map(Self::Ecdsa).map_err(|error| {
                    format!("x509: failed to parse EC private key embedded in PKCS#8: {error}")
                })
            }
            ED25519 => {
                if !kind.is_empty() {
                    return Err("x509: invalid Ed25519 private key parameters".to_owned());
                }
                let seed = Reader(key).read(der::OCTET_STRING).ok_or_else(|| {
                    "x509: invalid Ed25519 private key: asn1: structure error".to_owned()
                })?;
                let length = seed.len();
                let seed: [u8; 32] = seed
                    .try_into()
                    .map_err(|_| format!("x509: invalid Ed25519 private key length: {length}"))?;
                Ok(Self::Ed25519(Ed25519Key::from_seed(seed)))
            }
            _ => Err(format!(
                "x509: PKCS#8 wrapping contained private key with unknown algorithm: {}",
                der::dotted(identifier)
            )),
        }
    }

    /// The algorithm and the bytes of the public key; `None` for a kind that certificates
    /// do not have.
    pub(super) fn public_key(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        Some(match self {
            Self::Rsa(key) => (algorithm(RSA_ENCRYPTION, der::NULL), key.public_key()),
            Self::Ecdsa(key) => {
                let curve = der::element(der::OBJECT_IDENTIFIER, key.curve.identifier());
                (algorithm(EC_PUBLIC_KEY, &curve), key.public_key().to_vec())
            }
            Self::Ed25519(key) => (algorithm(ED25519, &[]), key.public_key()),
            Self::Dsa(_) => return None,
        })
    }

    /// The algorithm that the key signs with; `None` for a kind that does not.
    pub(super) fn signature_algorithm(&self) -> Option<Vec<u8>> {
        Some(match self {
            Self::Rsa(_) => algorithm(RSA_SHA256, der::NULL),
            Self::Ecdsa(key) => algorithm(key.curve.signature_identifier(), &[]),
            Self::Ed25519(_) => algorithm(ED25519, &[]),
            Self::Dsa(_) => return None,
        })
    }

    /// The signature of a message.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Rsa(key) => key.sign(message),
            Self::Ecdsa(key) => key.sign(message),
            Self::Ed25519(key) => Some(key.sign(message)),
            Self::Dsa(_) => None,
        }
    }
}
