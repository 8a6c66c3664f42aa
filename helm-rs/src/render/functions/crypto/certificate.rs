//! X.509 certificates as sprig has Go make them (`sprig/crypto.go`, `crypto/x509`).

use std::net::IpAddr;

use gotemplate::{List, Value};
use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use super::der::{self, Reader};
use super::keys::PrivateKey;
use super::pem;
use crate::address;
use crate::gotext::quote;
use crate::render::time::{Duration, Time, Zone};

/// What a certificate is to say.
pub(super) struct Template {
    common_name: Vec<u8>,
    addresses: Vec<IpAddr>,
    names: Vec<Vec<u8>>,
    serial: BigUint,
    not_before: Time,
    not_after: Time,
    authority: bool,
}

/// The issuer of a certificate: itself, or a parsed one.
pub(super) struct Issuer {
    /// The name, encoded.
    subject: Vec<u8>,
    key_identifier: Vec<u8>,
    /// Algorithm and bytes of the public key.
    public_key: (Vec<u8>, Vec<u8>),
}

/// The addresses and names as the functions get them; a nil list is an empty one.
pub(super) struct Alternatives<'a> {
    pub(super) addresses: Option<&'a List>,
    pub(super) names: Option<&'a List>,
}

impl Template {
    /// Sprig's `getBaseCertTemplate`; `serial` is random, of 128 bits.
    pub(super) fn new(
        common_name: &[u8],
        alternatives: &Alternatives<'_>,
        days: i64,
        now: &Time,
        serial: u128,
    ) -> Result<Self, Vec<u8>> {
        let mut addresses = Vec::new();
        for value in alternatives.addresses.map(List::items).unwrap_or_default() {
            let Value::String(text) = value else {
                return Err(complaint("error parsing ip: ", value));
            };
            match address::parse(text.as_bytes()) {
                Ok(address) if !address.zoned => addresses.push(address.ip.to_canonical()),
                _ => return Err([b"error parsing ip: ", text.as_bytes()].concat()),
            }
        }
        let mut names = Vec::new();
        for value in alternatives.names.map(List::items).unwrap_or_default() {
            let Value::String(text) = value else {
                return Err(complaint("error processing alternate dns name: ", value));
            };
            names.push(text.as_bytes().to_vec());
        }
        // Days as nanoseconds wrap around after 106,751, as in Go.
        let validity = Duration(86_400_000_000_000_i64.wrapping_mul(days));
        Ok(Self {
            common_name: common_name.to_vec(),
            addresses,
            names,
            serial: serial.into(),
            not_before: now.in_zone(Zone::utc()),
            not_after: now.add(validity).in_zone(Zone::utc()),
            authority: false,
        })
    }

    /// Makes it the template of a certificate authority.
    pub(super) fn for_authority(mut self) -> Self {
        self.authority = true;
        self
    }

    /// The certificate in PEM: `key` is whose it is, `issuer` and `signer` who vouch for it;
    /// no issuer means a self-signed one (`x509.CreateCertificate`).
    pub(super) fn create(
        &self,
        key: &PrivateKey,
        issuer: Option<&Issuer>,
        signer: &PrivateKey,
    ) -> Result<String, String> {
        let algorithm = signer.signature_algorithm().ok_or_else(|| {
            "x509: certificate private key does not implement crypto.Signer".to_owned()
        })?;
        let (key_algorithm, public_key) = key
            .public_key()
            .ok_or_else(|| "x509: unsupported public key type: *dsa.PublicKey".to_owned())?;
        let subject = name(&self.common_name)?;
        let issuer_name = issuer.map_or(&subject, |issuer| &issuer.subject);
        if issuer.is_some_and(|issuer| signer.public_key().as_ref() != Some(&issuer.public_key)) {
            return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
        }
        let authority_key = match issuer {
            Some(issuer) if *issuer_name != subject => issuer.key_identifier.as_slice(),
            _ => &[],
        };
        let extensions = self.extensions(&public_key, authority_key, &subject)?;
        let validity = der::sequence(&[&time(&self.not_before)?, &time(&self.not_after)?]);
        let body = der::sequence(&[
            // Version 3.
            &der::element(0xa0, &der::integer(&BigUint::from(2_u8))),
            &der::integer(&self.serial),
            &algorithm,
            issuer_name,
            &validity,
            &subject,
            &der::sequence(&[&key_algorithm, &der::bit_string(&public_key)]),
            &der::element(0xa3, &der::element(der::SEQUENCE, &extensions)),
        ]);
        let signature = signer
            .sign(&body)
            .ok_or_else(|| "crypto/rsa: message too long for RSA key size".to_owned())?;
        let certificate = der::sequence(&[&body, &algorithm, &der::bit_string(&signature)]);
        Ok(pem::encode("CERTIFICATE", &certificate))
    }

    /// The extensions in Go's order (`buildCertExtensions`).
    fn extensions(
        &self,
        public_key: &[u8],
        authority_key: &[u8],
        subject: &[u8],
    ) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        // Digital signature and key encipherment; for an authority, signing certificates.
        let usage: &[u8] = if self.authority { &[2, 0xa4] } else { &[5, 0xa0] };
        out.extend(extension(15, true, &der::element(der::BIT_STRING, usage)));
        // Server and client authentication.
        let purpose =
            |last: u8| der::element(der::OBJECT_IDENTIFIER, &[0x2b, 6, 1, 5, 5, 7, 3, last]);
        out.extend(extension(37, false, &der::sequence(&[&purpose(1), &purpose(2)])));
        let constraints: &[u8] = if self.authority { &[der::BOOLEAN, 1, 0xff] } else { &[] };
        out.extend(extension(19, true, &der::element(der::SEQUENCE, constraints)));
        if self.authority {
            // RFC 7093, section 2, method 1: the start of the key's SHA-256.
            let digest = Sha256::digest(public_key);
            let identifier = digest.get(..20).unwrap_or(&digest);
            out.extend(extension(14, false, &der::element(der::OCTET_STRING, identifier)));
        }
        if !authority_key.is_empty() {
            let identifier = der::element(0x80, authority_key);
            out.extend(extension(35, false, &der::sequence(&[&identifier])));
        }
        if !self.names.is_empty() || !self.addresses.is_empty() {
            let mut alternatives = Vec::new();
            for name in &self.names {
                if !name.is_ascii() {
                    let name = quote(name);
                    return Err(format!("x509: {name} cannot be encoded as an IA5String"));
                }
                alternatives.extend(der::element(0x82, name));
            }
            for address in &self.addresses {
                alternatives.extend(match address {
                    IpAddr::V4(address) => der::element(0x87, &address.octets()),
                    IpAddr::V6(address) => der::element(0x87, &address.octets()),
                });
            }
            // Without a subject, who it is about stands here only.
            let critical = subject == der::sequence(&[]);
            out.extend(extension(17, critical, &der::element(der::SEQUENCE, &alternatives)));
        }
        Ok(out)
    }
}

fn complaint(what: &str, value: &Value) -> Vec<u8> {
    let mut message = what.as_bytes().to_vec();
    gotemplate::fmt::append_value(&mut message, value);
    message.extend_from_slice(b" is not a string");
    message
}

/// An extension 2.5.29.`last`.
fn extension(last: u8, critical: bool, value: &[u8]) -> Vec<u8> {
    let critical: &[u8] = if critical { &[der::BOOLEAN, 1, 0xff] } else { &[] };
    der::sequence(&[
        &der::element(der::OBJECT_IDENTIFIER, &[0x55, 0x1d, last]),
        critical,
        &der::element(der::OCTET_STRING, value),
    ])
}

/// A name with a common name only, or none at all.
fn name(common_name: &[u8]) -> Result<Vec<u8>, String> {
    if common_name.is_empty() {
        return Ok(der::sequence(&[]));
    }
    let printable = |&b: &u8| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&b);
    let tag = if common_name.iter().all(printable) {
        der::PRINTABLE_STRING
    } else if std::str::from_utf8(common_name).is_ok() {
        der::UTF8_STRING
    } else {
        return Err("asn1: string not valid UTF-8".to_owned());
    };
    let attribute = der::sequence(&[
        &der::element(der::OBJECT_IDENTIFIER, &[0x55, 4, 3]),
        &der::element(tag, common_name),
    ]);
    Ok(der::sequence(&[&der::element(der::SET, &attribute)]))
}

/// A time in UTC, in the form that its year asks for.
fn time(time: &Time) -> Result<Vec<u8>, String> {
    match time.date().year {
        1950..2050 => Ok(der::element(der::UTC_TIME, &time.format("060102150405Z"))),
        0..=9999 => Ok(der::element(der::GENERALIZED_TIME, &time.format("20060102150405Z"))),
        _ => Err("asn1: structure error: cannot represent time as GeneralizedTime".to_owned()),
    }
}

/// A tag of a context, perhaps constructed.
const fn context(tag: u8) -> u8 {
    0xa0 | tag
}

impl Issuer {
    /// Reads a certificate as far as a signature under it needs (`x509.ParseCertificate`).
    ///
    /// Of the extensions only the key's identifier is looked into; Go checks the others'
    /// contents too.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut input = Reader(bytes);
        let malformed = |what: &str| format!("x509: malformed {what}");
        let Some(certificate) = input.read(der::SEQUENCE) else {
            return Err(malformed("certificate"));
        };
        let trailing = !input.is_empty();
        let mut outer = Reader(certificate);
        let mut body =
            Reader(outer.read(der::SEQUENCE).ok_or_else(|| malformed("tbs certificate"))?);
        let mut version = BigUint::ZERO;
        if body.peek() == Some(context(0)) {
            let mut field = Reader(body.read(context(0)).unwrap_or_default());
            let (number, negative) = field.integer().ok_or_else(|| malformed("version"))?;
            if negative {
                return Err(malformed("version"));
            }
            version = number;
        }
        if version > BigUint::from(2_u8) {
            return Err("x509: invalid version".to_owned());
        }
        let (_, negative) = body.integer().ok_or_else(|| malformed("serial number"))?;
        if negative {
            return Err("x509: negative serial number".to_owned());
        }
        let inner =
            body.read(der::SEQUENCE).ok_or_else(|| malformed("signature algorithm identifier"))?;
        let signature =
            outer.read(der::SEQUENCE).ok_or_else(|| malformed("algorithm identifier"))?;
        if signature != inner {
            let message = "x509: inner and outer signature algorithm identifiers don't match";
            return Err(message.to_owned());
        }
        body.read_whole(der::SEQUENCE).ok_or_else(|| malformed("issuer"))?;
        let validity = body.read(der::SEQUENCE).ok_or_else(|| malformed("validity"))?;
        check_validity(Reader(validity))?;
        let subject = body.read_whole(der::SEQUENCE).ok_or_else(|| malformed("issuer"))?;
        let mut key = Reader(body.read(der::SEQUENCE).ok_or_else(|| malformed("spki"))?);
        let algorithm = key
            .read_whole(der::SEQUENCE)
            .ok_or_else(|| malformed("public key algorithm identifier"))?;
        let public_key = key.bit_string().ok_or_else(|| malformed("subjectPublicKey"))?;
        let mut key_identifier = Vec::new();
        // Unique identifiers of the issuer and the subject.
        for tag in [0x81, 0x82] {
            if body.peek() == Some(tag) {
                body.any();
            }
        }
        if let Some(extensions) = body.read(context(3)) {
            key_identifier = subject_key_identifier(extensions)?;
        }
        outer.bit_string().ok_or_else(|| malformed("signature"))?;
        if trailing {
            return Err("x509: trailing data".to_owned());
        }
        Ok(Self {
            subject: subject.to_vec(),
            key_identifier,
            public_key: (algorithm.to_vec(), public_key.to_vec()),
        })
    }
}

fn check_validity(mut validity: Reader<'_>) -> Result<(), String> {
    for _ in 0..2 {
        match validity.any() {
            Some((der::UTC_TIME | der::GENERALIZED_TIME, _, _)) => {}
            _ => return Err("x509: unsupported time format".to_owned()),
        }
    }
    Ok(())
}

fn subject_key_identifier(extensions: &[u8]) -> Result<Vec<u8>, String> {
    let mut identifier = Vec::new();
    let malformed = |what: &str| format!("x509: malformed {what}");
    let mut list =
        Reader(Reader(extensions).read(der::SEQUENCE).ok_or_else(|| malformed("extensions"))?);
    let mut seen: Vec<&[u8]> = Vec::new();
    while !list.is_empty() {
        let extension = list.read(der::SEQUENCE).ok_or_else(|| malformed("extension"))?;
        let mut extension = Reader(extension);
        let kind = extension
            .read(der::OBJECT_IDENTIFIER)
            .ok_or_else(|| malformed("extension OID field"))?;
        if extension.peek() == Some(der::BOOLEAN) {
            extension.any();
        }
        let value =
            extension.read(der::OCTET_STRING).ok_or_else(|| malformed("extension value field"))?;
        if seen.contains(&kind) {
            let kind = quote(der::dotted(kind).as_bytes());
            return Err(format!("x509: certificate contains duplicate extension with OID {kind}"));
        }
        seen.push(kind);
        if kind == [0x55, 0x1d, 14] {
            identifier = Reader(value)
                .read(der::OCTET_STRING)
                .ok_or_else(|| "x509: invalid subject key identifier".to_owned())?
                .to_vec();
        }
    }
    Ok(identifier)
}
