//! OpenPGP keyrings in GnuPG's old binary form.

use std::fs;
use std::path::Path;

use pgp::composed::{KeyType, SecretKeyParamsBuilder, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::ser::Serialize as _;
use pgp::types::Password;
use rand_pgp::SeedableRng as _;
use rand_pgp::rngs::StdRng;

/// The passphrase of the key `locked`.
pub const PASSPHRASE: &str = "open sesame";

/// Writes keyrings into a folder, equal in every run: `secret.gpg` and `public.gpg` with the keys
/// `Signer <signer@example.org>` (RSA), `Edward <ed@example.org>` (EdDSA) and
/// `Locked <locked@example.org>` (with [`PASSPHRASE`]); `strangers.gpg` with another key; and
/// `armored.asc`, the public keys in text form.
///
/// # Panics
/// When a key cannot be made or written.
pub fn write(folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let signer = key(1, KeyType::Rsa(2048), "Signer <signer@example.org>", None);
    let edward = key(2, KeyType::Ed25519Legacy, "Edward <ed@example.org>", None);
    let locked = key(3, KeyType::Rsa(2048), "Locked <locked@example.org>", Some(PASSPHRASE));
    let stranger = key(4, KeyType::Ed25519Legacy, "Stranger <stranger@example.org>", None);
    let (mut secret, mut public) = (Vec::new(), Vec::new());
    for key in [&signer, &edward, &locked] {
        secret.extend(key.to_bytes().expect("bytes"));
        public.extend(key.to_public_key().to_bytes().expect("bytes"));
    }
    let strangers = stranger.to_public_key().to_bytes().expect("bytes");
    let armored = signer.to_public_key().to_armored_string(None.into()).expect("text");
    fs::write(folder.join("secret.gpg"), secret).expect("a file");
    fs::write(folder.join("public.gpg"), public).expect("a file");
    fs::write(folder.join("strangers.gpg"), strangers).expect("a file");
    fs::write(folder.join("armored.asc"), armored).expect("a file");
    fs::write(folder.join("passphrase"), format!("{PASSPHRASE}\n")).expect("a file");
}

fn key(seed: u64, kind: KeyType, name: &str, passphrase: Option<&str>) -> SignedSecretKey {
    let mut random = StdRng::seed_from_u64(seed);
    let mut builder = SecretKeyParamsBuilder::default();
    builder
        .key_type(kind)
        .can_certify(true)
        .can_sign(true)
        .primary_user_id(name.to_owned())
        .preferred_hash_algorithms(vec![HashAlgorithm::Sha512].into());
    let parameters = builder.build().expect("parameters");
    let mut key = parameters.generate(&mut random).expect("a key");
    if let Some(passphrase) = passphrase {
        key.primary_key
            .set_password(&mut random, &Password::from(passphrase))
            .expect("a passphrase");
    }
    key
}
