//! Keys and certificates of one plane.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use crate::error::{Error, Result};

/// Names under which the servers answer; the addresses are the loopback and the first address of
/// the service range.
const SERVER_NAMES: [&str; 6] = [
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A folder with `ca.crt`, `ca.key`, `server.crt`, `server.key`, `sa.key` and `sa.pub`.
///
/// A saved state keeps the folder as it is, so that tokens and kubeconfigs stay good.
#[derive(Debug, Clone)]
pub struct Pki {
    folder: PathBuf,
}

/// A client certificate and its key, both in PEM.
#[derive(Debug, Clone)]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Pki {
    /// Makes all keys and certificates in a new folder.
    ///
    /// # Errors
    ///
    /// When a key cannot be generated or a file cannot be written.
    pub fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::file("cannot make the folder", folder))?;
        let pki = Self { folder: folder.to_path_buf() };
        let failed = |source| Error::Certificate { subject: "ichor-test-ca".to_owned(), source };

        let ca_key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name("ichor-test-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let ca = params.self_signed(&ca_key).map_err(failed)?;
        pki.write("ca.crt", &ca.pem())?;
        pki.write("ca.key", &ca_key.serialize_pem())?;

        let names: Vec<String> = SERVER_NAMES.iter().map(|name| (*name).to_owned()).collect();
        let server = pki.issue("kube-apiserver", None, names)?;
        pki.write("server.crt", &server.certificate)?;
        pki.write("server.key", &server.key)?;

        let failed = |source| Error::Certificate { subject: "service-accounts".to_owned(), source };
        let service_accounts = KeyPair::generate().map_err(failed)?;
        pki.write("sa.key", &service_accounts.serialize_pem())?;
        pki.write("sa.pub", &service_accounts.public_key_pem())?;
        Ok(pki)
    }

    /// Uses the folder that [`Pki::create`] has filled.
    pub fn open(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// Path of one of the files.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The CA certificate in PEM.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn ca_certificate(&self) -> Result<String> {
        self.read("ca.crt")
    }

    /// Issues a client certificate: Kubernetes takes the common name for the user and the
    /// organisation for the group.
    ///
    /// # Errors
    ///
    /// When the CA cannot be read or the certificate cannot be made.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<ClientCertificate> {
        self.issue(user, group, Vec::new())
    }

    fn issue(
        &self,
        user: &str,
        group: Option<&str>,
        names: Vec<String>,
    ) -> Result<ClientCertificate> {
        let failed = |source| Error::Certificate { subject: user.to_owned(), source };
        let ca_key = KeyPair::from_pem(&self.read("ca.key")?).map_err(failed)?;
        // The issuer needs no more of the CA certificate than its name and its key.
        let mut ca = CertificateParams::default();
        ca.distinguished_name = common_name("ichor-test-ca");
        let issuer = Issuer::new(ca, ca_key);

        let key = KeyPair::generate().map_err(failed)?;
        let server = !names.is_empty();
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name = common_name(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if server {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        }];
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
        Ok(ClientCertificate { certificate: certificate.pem(), key: key.serialize_pem() })
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = self.path(name);
        fs::read_to_string(&path).map_err(Error::file("cannot read", path))
    }

    fn write(&self, name: &str, content: &str) -> Result<()> {
        let path = self.path(name);
        fs::write(&path, content).map_err(Error::file("cannot write", path))
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
