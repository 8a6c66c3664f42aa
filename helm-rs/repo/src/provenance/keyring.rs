//! Keys, and what they sign (`github.com/ProtonMail/go-crypto/openpgp`, through the crate `pgp`).

use std::path::Path;

use pgp::composed::{PublicOrSecret, SignedKeyDetails, SignedPublicKey, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{
    Packet, PacketParser, Signature, SignatureConfig, SignatureType, Subpacket, SubpacketData,
};
use pgp::types::{KeyDetails as _, KeyVersion, Password, Timestamp, VerifyingKey};

use super::{MAX_FILE, ProvenanceError};
use crate::files;

/// Keys that signatures are checked with, and made with.
#[derive(Debug)]
pub struct Keyring(Vec<Entity>);

/// A key with its identities; the secret part may be there.
#[derive(Debug)]
struct Entity {
    public: SignedPublicKey,
    secret: Option<SignedSecretKey>,
    identities: Vec<String>,
}

/// A secret key that can sign.
pub(super) struct Secret<'a> {
    key: &'a SignedSecretKey,
    password: Password,
}

fn openpgp(error: &pgp::errors::Error) -> ProvenanceError {
    ProvenanceError::OpenPgp(error.to_string())
}

impl Keyring {
    /// Reads a keyring in GnuPG's old binary form (`secring.gpg`, `pubring.gpg`), or armored. Keys
    /// that cannot be read are left out, as by `openpgp.ReadKeyRing`.
    ///
    /// # Errors
    /// [`ProvenanceError`] when the file cannot be read or holds no key.
    pub fn read(path: &Path) -> Result<Self, ProvenanceError> {
        Self::parse(&files::read(path, MAX_FILE)?)
    }

    /// Reads the bytes of a keyring.
    ///
    /// # Errors
    /// [`ProvenanceError::OpenPgp`] when there is no key in them.
    pub fn parse(bytes: &[u8]) -> Result<Self, ProvenanceError> {
        let is_armored = bytes.trim_ascii_start().starts_with(b"-----BEGIN PGP ");
        if !is_armored && bytes.first().is_some_and(|first| first & 0x80 == 0) {
            let text = "invalid data: tag byte does not have MSB set";
            return Err(ProvenanceError::OpenPgp(text.to_owned()));
        }
        if bytes.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let (keys, _) = PublicOrSecret::from_reader_many(bytes).map_err(|e| openpgp(&e))?;
        let mut first = None;
        let mut entities = Vec::new();
        for key in keys {
            match key {
                Ok(key) => entities.extend(Entity::new(key)),
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) if entities.is_empty() => Err(openpgp(&error)),
            _ => Ok(Self(entities)),
        }
    }

    /// The key of an identity: the one that is named so, or the only one whose name contains `id`
    /// (`NewFromKeyring`).
    pub(super) fn find(&self, id: &str) -> Result<usize, ProvenanceError> {
        let exact = self.0.iter().position(|entity| entity.identities.iter().any(|n| n == id));
        if let Some(exact) = exact {
            return Ok(exact);
        }
        let mut near = self.0.iter().enumerate().flat_map(|(at, entity)| {
            entity.identities.iter().filter(|name| name.contains(id)).map(move |_| at)
        });
        match (near.next(), near.next()) {
            (Some(_), Some(_)) => Err(ProvenanceError::Vague { id: id.to_owned() }),
            (Some(only), None) => Ok(only),
            (None, _) => Err(ProvenanceError::NoKey),
        }
    }

    /// Makes a key ready to sign (`DecryptKey`).
    pub(super) fn unlock(
        &self,
        at: usize,
        passphrase: &mut dyn FnMut(&str) -> Result<Vec<u8>, ProvenanceError>,
    ) -> Result<Secret<'_>, ProvenanceError> {
        let entity = self.0.get(at).ok_or(ProvenanceError::NoKey)?;
        let key = entity.secret.as_ref().ok_or(ProvenanceError::PublicKey)?;
        let mut password = Password::empty();
        if key.primary_key.secret_params().is_encrypted() {
            let name = entity.identities.first().map_or("Unknown", String::as_str);
            password = Password::from(passphrase(name)?.as_slice());
            let tried = key.primary_key.unlock(&password, |_, _| Ok(()));
            if !matches!(tried, Ok(Ok(()))) {
                let text = "invalid data: private key checksum failure";
                return Err(ProvenanceError::OpenPgp(text.to_owned()));
            }
        }
        Ok(Secret { key, password })
    }

    /// Checks a signature over a text, and that its key was good when it is used
    /// (`CheckDetachedSignature`); the key's identities and fingerprint are the answer.
    pub(super) fn verify(
        &self,
        text: &[u8],
        signature: &[u8],
        now: i64,
    ) -> Result<(Vec<String>, String), ProvenanceError> {
        for packet in PacketParser::new(signature) {
            let Packet::Signature(signature) = packet.map_err(|error| openpgp(&error))? else {
                return Err(pgp_text("invalid data: non signature packet found"));
            };
            if signature.issuer_key_id().is_empty() && signature.issuer_fingerprint().is_empty() {
                return Err(pgp_text("invalid data: signature doesn't have an issuer"));
            }
            let signers =
                self.0.iter().filter_map(|entity| Some((entity, entity.signer(&signature)?)));
            let mut result = None;
            for (entity, signer) in signers {
                match signer.verify(&signature, text) {
                    Ok(()) => {
                        entity.check_times(&signature, signer, now)?;
                        let fingerprint = format!("{:X}", entity.public.primary_key.fingerprint());
                        return Ok((entity.identities.clone(), fingerprint));
                    }
                    Err(error) => result = Some(error),
                }
            }
            if let Some(error) = result {
                return Err(error);
            }
        }
        Err(pgp_text("signature made by unknown entity"))
    }
}

fn pgp_text(text: &str) -> ProvenanceError {
    ProvenanceError::OpenPgp(text.to_owned())
}

/// The key of an entity that made a signature.
#[derive(Clone, Copy)]
enum Signer<'a> {
    Primary(&'a SignedPublicKey),
    Sub(&'a pgp::composed::SignedPublicSubKey),
}

impl Signer<'_> {
    fn verify(self, signature: &Signature, text: &[u8]) -> Result<(), ProvenanceError> {
        match self {
            Self::Primary(key) => check(&key.primary_key, signature, text),
            Self::Sub(key) => check(&key.key, signature, text),
        }
    }
}

fn check(
    key: &impl VerifyingKey,
    signature: &Signature,
    text: &[u8],
) -> Result<(), ProvenanceError> {
    signature.verify(key, text).map_err(|_| {
        let algorithm = match key.algorithm() {
            pgp::crypto::public_key::PublicKeyAlgorithm::RSA => "RSA",
            pgp::crypto::public_key::PublicKeyAlgorithm::DSA => "DSA",
            pgp::crypto::public_key::PublicKeyAlgorithm::ECDSA => "ECDSA",
            _ => "EdDSA",
        };
        pgp_text(&format!("invalid signature: {algorithm} verification failure"))
    })
}

impl Entity {
    /// A key whose identities are signed by itself; none without one, as `ReadEntity`.
    fn new(key: PublicOrSecret) -> Option<Self> {
        let (public, secret) = match key {
            PublicOrSecret::Public(key) => (key, None),
            PublicOrSecret::Secret(key) => (key.to_public_key(), Some(key)),
        };
        let identities: Vec<String> = public
            .details
            .users
            .iter()
            .filter(|user| user.verify_bindings(&public.primary_key).is_ok())
            .map(|user| String::from_utf8_lossy(user.id.id()).into_owned())
            .collect();
        (!identities.is_empty()).then_some(Self { public, secret, identities })
    }

    /// The key that a signature names, if it may sign (`KeysByIdUsage`).
    fn signer(&self, signature: &Signature) -> Option<Signer<'_>> {
        let primary = &self.public.primary_key;
        if names(signature, primary) {
            let own = self_signature(&self.public.details)?;
            return own.key_flags().sign().then_some(Signer::Primary(&self.public));
        }
        let sub = self.public.public_subkeys.iter().find(|sub| {
            names(signature, &sub.key)
                && sub.verify_bindings(primary).is_ok()
                && sub.signatures.iter().any(|binding| binding.key_flags().sign())
        })?;
        Some(Signer::Sub(sub))
    }

    /// `checkMessageSignatureDetails`: neither key nor signature may be over or withdrawn.
    fn check_times(
        &self,
        signature: &Signature,
        signer: Signer<'_>,
        now: i64,
    ) -> Result<(), ProvenanceError> {
        let primary = &self.public.primary_key;
        let revoked = |list: &[Signature]| {
            list.iter().any(|s| {
                s.typ() == Some(SignatureType::KeyRevocation)
                    || s.typ() == Some(SignatureType::SubkeyRevocation)
            })
        };
        let own = self_signature(&self.public.details);
        let mut withdrawn = revoked(&self.public.details.revocation_signatures);
        let mut over =
            own.is_some_and(|own| expired(own.key_expiration_time(), primary.created_at(), now));
        if let Signer::Sub(sub) = signer {
            withdrawn |= revoked(&sub.signatures);
            over |= sub
                .signatures
                .iter()
                .any(|binding| expired(binding.key_expiration_time(), sub.key.created_at(), now));
        }
        if withdrawn {
            return Err(pgp_text("signature made by revoked key"));
        }
        if over {
            return Err(pgp_text("key expired"));
        }
        let created = signature.created().unwrap_or(Timestamp::from_secs(0));
        if expired(signature.signature_expiration_time(), created, now) {
            return Err(pgp_text("signature expired"));
        }
        Ok(())
    }
}

/// The newest signature of a key over one of its identities.
fn self_signature(details: &SignedKeyDetails) -> Option<&Signature> {
    let all =
        details.users.iter().flat_map(|user| &user.signatures).chain(&details.direct_signatures);
    all.max_by_key(|signature| signature.created().map(Timestamp::as_secs))
}

fn expired(lifetime: Option<pgp::types::Duration>, created: Timestamp, now: i64) -> bool {
    let lifetime = lifetime.map_or(0, |lifetime| i64::from(lifetime.as_secs()));
    lifetime != 0 && i64::from(created.as_secs()).saturating_add(lifetime) < now
}

fn names(signature: &Signature, key: &impl pgp::types::KeyDetails) -> bool {
    let (id, fingerprint) = (key.legacy_key_id(), key.fingerprint());
    signature.issuer_key_id().iter().any(|issuer| **issuer == id)
        || signature.issuer_fingerprint().iter().any(|issuer| **issuer == fingerprint)
}

impl Secret<'_> {
    /// Signs a text; the signature's packet is the answer.
    pub(super) fn sign(&self, text: &[u8], now: i64) -> Result<Vec<u8>, ProvenanceError> {
        let key = &self.key.primary_key;
        if key.version() != KeyVersion::V4 {
            return Err(pgp_text("unsupported feature: signing with a key of this version"));
        }
        let sign = || -> pgp::errors::Result<Vec<u8>> {
            let mut config =
                SignatureConfig::v4(SignatureType::Text, key.algorithm(), HashAlgorithm::Sha512);
            let created = Timestamp::from_secs(u32::try_from(now).unwrap_or_default());
            config.hashed_subpackets = vec![
                Subpacket::regular(SubpacketData::SignatureCreationTime(created))?,
                Subpacket::regular(SubpacketData::IssuerKeyId(key.legacy_key_id()))?,
                Subpacket::regular(SubpacketData::IssuerFingerprint(key.fingerprint()))?,
            ];
            let signature = config.sign(key, &self.password, text)?;
            let mut bytes = Vec::new();
            pgp::packet::PacketTrait::to_writer_with_header(&signature, &mut bytes)?;
            Ok(bytes)
        };
        sign().map_err(|error| openpgp(&error))
    }
}
