//! Certificates, keys, passwords and ciphers (`sprig/crypto.go`).
//!
//! All randomness comes from the rendering host, so that a seed gives the same material
//! again, and so does the time of a certificate.

mod certificate;
mod cipher;
mod curves;
mod der;
mod dsa;
mod keys;
mod passwords;
mod pem;
mod primes;
mod rsa;

use std::any::Any;
use std::rc::Rc;

use gotemplate::function::{IntoResult, Param};
use gotemplate::{CallError, Function, FunctionMap, Kind, List, Object, Runtime, Str, Type, Value};

use self::certificate::{Alternatives, Issuer, Template};
use self::keys::PrivateKey;
use super::base::base64_decode;
use crate::render::host::Host;
use crate::render::time::Time;

/// Sprig's `certificate`: a certificate and its key, both in PEM.
#[derive(Clone, Debug, Default)]
struct Certificate {
    certificate: Str,
    key: Str,
}

const TYPE_NAME: &str = "sprig.certificate";

impl Object for Certificate {
    fn type_name(&self) -> &'static str {
        TYPE_NAME
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::String(self.certificate.clone())),
            "Key" => Some(Value::String(self.key.clone())),
            _ => None,
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("Cert", Value::String(self.certificate.clone())),
            ("Key", Value::String(self.key.clone())),
        ]
    }

    fn to_json(&self) -> Option<Value> {
        Some(Value::map(self.fields()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Param for Certificate {
    const TYPE: Type = Type::Named(TYPE_NAME, Kind::Struct);

    fn take(args: &mut std::slice::Iter<'_, Value>) -> Option<Self> {
        match args.next()? {
            Value::Object(object) => object.as_any().downcast_ref().cloned(),
            _ => None,
        }
    }
}

impl IntoResult for Certificate {
    fn into_result(self) -> Result<Value, CallError> {
        Ok(Value::Object(Rc::new(self)))
    }
}

type Made = Result<Certificate, CallError>;

/// A template for the given name, with the host's time and a random serial number.
fn template(
    host: &mut Host,
    name: &Str,
    alternatives: &Alternatives<'_>,
    days: i64,
) -> Result<Template, CallError> {
    let mut serial = [0; 16];
    host.fill_random(&mut serial);
    let reading = host.now();
    let now = Time::now(reading, host.local().clone());
    let serial = u128::from_be_bytes(serial);
    Template::new(name.as_bytes(), alternatives, days, &now, serial).map_err(CallError::new)
}

fn finish(
    template: &Template,
    key: &PrivateKey,
    issuer: Option<&Issuer>,
    signer: &PrivateKey,
) -> Made {
    let certificate = template
        .create(key, issuer, signer)
        .map_err(|error| CallError::new(format!("error creating certificate: {error}")))?;
    Ok(Certificate { certificate: certificate.into(), key: key.to_pem().into() })
}

fn parse_key(text: &Str) -> Result<PrivateKey, CallError> {
    PrivateKey::from_pem(text.as_bytes())
        .map_err(|error| CallError::new(format!("parsing private key: {error}")))
}

/// A new key, as the functions make that get none.
fn new_key(runtime: &mut dyn Runtime) -> Result<PrivateKey, CallError> {
    Ok(PrivateKey::generate_rsa_2048(Host::of(runtime)?.random()))
}

/// What stands for keys and certificates when the host wants none made.
const STAND_IN: &str = "stand-in";

/// The stand-in for a key pair, if the host wants it.
fn stand_in(runtime: &mut dyn Runtime) -> Result<Option<Certificate>, CallError> {
    let is_wanted = Host::of(runtime)?.stand_in_keys;
    Ok(is_wanted.then(|| Certificate { certificate: STAND_IN.into(), key: STAND_IN.into() }))
}

const NO_ALTERNATIVES: Alternatives<'_> = Alternatives { addresses: None, names: None };

fn authority(host: &mut Host, name: &Str, days: i64, key: &PrivateKey) -> Made {
    let template = template(host, name, &NO_ALTERNATIVES, days)?.for_authority();
    finish(&template, key, None, key)
}

/// A certificate authority as `genCA` makes it: certificate and key, in PEM.
///
/// # Errors
/// The text of `genCA`'s error.
pub fn certificate_authority(
    host: &mut Host,
    name: &str,
    days: i64,
) -> Result<(String, String), String> {
    let key = PrivateKey::generate_rsa_2048(host.random());
    let made = authority(host, &name.into(), days, &key).map_err(|error| error.to_string())?;
    Ok((made.certificate.to_string(), made.key.to_string()))
}

fn gen_ca(runtime: &mut dyn Runtime, name: Str, days: i64) -> Made {
    if let Some(pair) = stand_in(runtime)? {
        return Ok(pair);
    }
    let key = new_key(runtime)?;
    authority(Host::of(runtime)?, &name, days, &key)
}

fn gen_ca_with_key(runtime: &mut dyn Runtime, name: Str, days: i64, key: Str) -> Made {
    let key = parse_key(&key)?;
    authority(Host::of(runtime)?, &name, days, &key)
}

fn self_signed(
    runtime: &mut dyn Runtime,
    name: &Str,
    (addresses, names): (&List, &List),
    days: i64,
    key: &PrivateKey,
) -> Made {
    let alternatives = Alternatives { addresses: Some(addresses), names: Some(names) };
    let template = template(Host::of(runtime)?, name, &alternatives, days)?;
    finish(&template, key, None, key)
}

fn gen_self_signed(
    runtime: &mut dyn Runtime,
    name: Str,
    addresses: List,
    names: List,
    days: i64,
) -> Made {
    if let Some(pair) = stand_in(runtime)? {
        return Ok(pair);
    }
    let key = new_key(runtime)?;
    self_signed(runtime, &name, (&addresses, &names), days, &key)
}

fn gen_self_signed_with_key(
    runtime: &mut dyn Runtime,
    name: Str,
    addresses: List,
    names: List,
    days: i64,
    key: Str,
) -> Made {
    let key = parse_key(&key)?;
    self_signed(runtime, &name, (&addresses, &names), days, &key)
}

fn signed(
    runtime: &mut dyn Runtime,
    name: &Str,
    (addresses, names): (&List, &List),
    days: i64,
    ca: &Certificate,
    key: &PrivateKey,
) -> Made {
    let Some(block) = pem::decode(ca.certificate.as_bytes()) else {
        return Err(CallError::from("unable to decode certificate"));
    };
    let issuer = Issuer::parse(&block.bytes).map_err(|error| {
        CallError::new(format!("error parsing certificate: decodedSignerCert.Bytes: {error}"))
    })?;
    let signer = PrivateKey::from_pem(ca.key.as_bytes())
        .map_err(|error| CallError::new(format!("error parsing private key: {error}")))?;
    let alternatives = Alternatives { addresses: Some(addresses), names: Some(names) };
    let template = template(Host::of(runtime)?, name, &alternatives, days)?;
    finish(&template, key, Some(&issuer), &signer)
}

fn gen_signed(
    runtime: &mut dyn Runtime,
    name: Str,
    addresses: List,
    names: List,
    days: i64,
    ca: Certificate,
) -> Made {
    if let Some(pair) = stand_in(runtime)? {
        return Ok(pair);
    }
    let key = new_key(runtime)?;
    signed(runtime, &name, (&addresses, &names), days, &ca, &key)
}

fn gen_signed_with_key(
    runtime: &mut dyn Runtime,
    name: Str,
    addresses: List,
    names: List,
    days: i64,
    ca: Certificate,
    key: Str,
) -> Made {
    let key = parse_key(&key)?;
    signed(runtime, &name, (&addresses, &names), days, &ca, &key)
}

fn build_custom_cert(certificate: Str, key: Str) -> Made {
    let certificate = base64_decode(certificate.as_bytes())
        .map_err(|_| CallError::from("unable to decode base64 certificate"))?;
    let key = base64_decode(key.as_bytes())
        .map_err(|_| CallError::from("unable to decode base64 private key"))?;
    let Some(block) = pem::decode(&certificate) else {
        return Err(CallError::from("unable to decode certificate"));
    };
    Issuer::parse(&block.bytes).map_err(|error| {
        CallError::new(format!("error parsing certificate: decodedCert.Bytes: {error}"))
    })?;
    PrivateKey::from_pem(&key)
        .map_err(|error| CallError::new(format!("error parsing private key: {error}")))?;
    Ok(Certificate { certificate: certificate.into(), key: key.into() })
}

fn gen_private_key(runtime: &mut dyn Runtime, kind: Str) -> Result<Vec<u8>, CallError> {
    if stand_in(runtime)?.is_some() {
        return Ok(STAND_IN.into());
    }
    let random = Host::of(runtime)?.random();
    Ok(match PrivateKey::generate(random, kind.as_bytes()) {
        Some(key) => key.to_pem().into_bytes(),
        None => [b"Unknown type ", kind.as_bytes()].concat(),
    })
}

pub(super) fn register(functions: &mut FunctionMap) {
    functions.extend([
        ("bcrypt", Function::new(passwords::bcrypt)),
        ("buildCustomCert", Function::new(build_custom_cert)),
        ("decryptAES", Function::new(cipher::decrypt_aes)),
        ("derivePassword", Function::new(passwords::derive_password)),
        ("encryptAES", Function::new(cipher::encrypt_aes)),
        ("genCA", Function::new(gen_ca)),
        ("genCAWithKey", Function::new(gen_ca_with_key)),
        ("genPrivateKey", Function::new(gen_private_key)),
        ("genSelfSignedCert", Function::new(gen_self_signed)),
        ("genSelfSignedCertWithKey", Function::new(gen_self_signed_with_key)),
        ("genSignedCert", Function::new(gen_signed)),
        ("genSignedCertWithKey", Function::new(gen_signed_with_key)),
        ("htpasswd", Function::new(passwords::htpasswd)),
    ]);
}
