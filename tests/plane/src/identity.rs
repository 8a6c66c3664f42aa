//! The identities that a plane knows from the start, and the kubeconfigs that use them.
//!
//! Bearer tokens rather than client certificates, so that the fault proxy, which ends TLS, can pass
//! an identity on unchanged.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::error::{Error, Result};
use crate::pki::Pki;

/// Name and groups of one identity, and the token it shows.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Name as the audit log and RBAC see it.
    pub user: String,
    /// Groups; `system:masters` may do everything.
    pub group: Option<String>,
    /// Bearer token.
    pub token: String,
}

/// The four identities of every plane.
#[derive(Debug, Clone)]
pub struct Identities {
    /// Who tests act as when they say nothing else.
    pub admin: Identity,
    /// The node helper, apart from `admin` so that an audit log tells the two apart.
    pub nodes: Identity,
    /// The controller manager.
    pub controller_manager: Identity,
    /// The scheduler.
    pub scheduler: Identity,
}

/// User name of the node helper.
pub const NODES_USER: &str = "ichor:nodes";
/// User name of the default identity of tests.
pub const ADMIN_USER: &str = "ichor:admin";

const FILE: &str = "tokens.csv";

impl Identities {
    /// Makes fresh tokens and writes the API server's token file.
    ///
    /// # Errors
    ///
    /// When randomness cannot be read or the file cannot be written.
    pub fn create(pki: &Pki) -> Result<Self> {
        let identity = |user: &str, group: Option<&str>| -> Result<Identity> {
            Ok(Identity {
                user: user.to_owned(),
                group: group.map(str::to_owned),
                token: random_token()?,
            })
        };
        let identities = Self {
            admin: identity(ADMIN_USER, Some("system:masters"))?,
            nodes: identity(NODES_USER, Some("system:masters"))?,
            controller_manager: identity("system:kube-controller-manager", None)?,
            scheduler: identity("system:kube-scheduler", None)?,
        };
        let mut text = String::new();
        for identity in identities.all() {
            let group = identity.group.as_deref().unwrap_or_default();
            let Identity { user, token, .. } = identity;
            text.extend([token, ",", user, ",", user, ",\"", group, "\"\n"]);
        }
        let path = pki.path(FILE);
        fs::write(&path, text).map_err(Error::file("cannot write", path))?;
        Ok(identities)
    }

    /// Reads the tokens of a saved state.
    ///
    /// # Errors
    ///
    /// When the file is missing or lacks an identity.
    pub fn open(pki: &Pki) -> Result<Self> {
        let path = pki.path(FILE);
        let text = fs::read_to_string(&path).map_err(Error::file("cannot read", &path))?;
        let find = |user: &str| {
            let line = text.lines().find(|line| line.split(',').nth(1) == Some(user));
            let Some(line) = line else {
                let missing = std::io::Error::new(std::io::ErrorKind::InvalidData, user.to_owned());
                return Err(Error::file("an identity is missing in", &path)(missing));
            };
            let mut fields = line.split(',');
            let token = fields.next().unwrap_or_default().to_owned();
            let group = fields.nth(2).map(|group| group.trim_matches('"').to_owned());
            let group = group.filter(|group| !group.is_empty());
            Ok(Identity { user: user.to_owned(), group, token })
        };
        Ok(Self {
            admin: find(ADMIN_USER)?,
            nodes: find(NODES_USER)?,
            controller_manager: find("system:kube-controller-manager")?,
            scheduler: find("system:kube-scheduler")?,
        })
    }

    /// The token file for `--token-auth-file`.
    pub(crate) fn file(pki: &Pki) -> std::path::PathBuf {
        pki.path(FILE)
    }

    fn all(&self) -> [&Identity; 4] {
        [&self.admin, &self.nodes, &self.controller_manager, &self.scheduler]
    }
}

/// 128 random bits in hexadecimal.
fn random_token() -> Result<String> {
    use std::io::Read;
    let path = Path::new("/dev/urandom");
    let mut bytes = [0_u8; 16];
    fs::File::open(path)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(Error::file("cannot read", path))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Writes a kubeconfig (JSON, which is YAML too) that shows a token.
///
/// # Errors
///
/// When the file cannot be written.
pub(crate) fn write_kubeconfig(path: &Path, server: &str, ca: &Path, token: &str) -> Result<()> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "ichor", "cluster": {"server": server, "certificate-authority": ca}}],
        "users": [{"name": "ichor", "user": {"token": token}}],
        "contexts": [{"name": "ichor", "context": {"cluster": "ichor", "user": "ichor"}}],
        "current-context": "ichor",
    });
    fs::write(path, format!("{config:#}\n")).map_err(Error::file("cannot write", path))
}
