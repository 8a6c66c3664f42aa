//! The marks that installers leave on live objects.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::inline_manifest::is_agent;
use crate::object::{Field, FieldError, ObjectRef};

/// The release that an object says it belongs to, by Helm's ownership annotations.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// `meta.helm.sh/release-name`
    pub name: String,
    /// `meta.helm.sh/release-namespace`
    pub namespace: String,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A field manager, and on how many live objects it set fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// How many objects.
    pub objects: usize,
}

/// Who installed Cilium, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installer {
    /// Helm.
    Helm,
    /// The Cilium CLI.
    CiliumCli,
    /// Talos, from an inline manifest.
    Talos,
    /// kubectl.
    Kubectl,
    /// Some other program, by its field manager.
    Other(String),
    /// Nothing tells.
    Unknown,
}

impl fmt::Display for Installer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Helm => "Helm",
            Self::CiliumCli => "the Cilium CLI",
            Self::Talos => "Talos (inline manifest)",
            Self::Kubectl => "kubectl",
            Self::Other(manager) => manager,
            Self::Unknown => "unknown",
        })
    }
}

/// What the marks tell.
pub(super) struct Marks {
    pub(super) claim: Option<Claim>,
    pub(super) other_claims: Vec<(Claim, usize)>,
    pub(super) managers: Vec<Manager>,
    pub(super) installer: Installer,
}

/// Reads the marks of live objects.
pub(super) fn read(live: &[Value]) -> Result<Marks, FieldError> {
    let mut claim = None;
    let mut claims: BTreeMap<Claim, usize> = BTreeMap::new();
    let mut managers: BTreeMap<String, usize> = BTreeMap::new();
    let mut installer = Installer::Unknown;
    for object in live {
        let claimed = claim_of(object)?;
        let wrote = managers_of(object)?;
        for manager in &wrote {
            *managers.entry(manager.clone()).or_default() += 1;
        }
        if is_agent(&ObjectRef::of(object)) {
            installer = installed_by(object, claimed.is_some(), &wrote)?;
            claim.clone_from(&claimed);
        }
        if let Some(claimed) = claimed {
            *claims.entry(claimed).or_default() += 1;
        }
    }
    let mut managers: Vec<Manager> =
        managers.into_iter().map(|(name, objects)| Manager { name, objects }).collect();
    managers.sort_by_key(|manager| std::cmp::Reverse(manager.objects));
    let other_claims = claims.into_iter().filter(|(other, _)| Some(other) != claim.as_ref());
    Ok(Marks { other_claims: other_claims.collect(), claim, managers, installer })
}

fn claim_of(object: &Value) -> Result<Option<Claim>, FieldError> {
    let annotations = Field::root(object).at(&["metadata", "annotations"])?;
    let name = annotations.get("meta.helm.sh/release-name")?.text()?;
    let namespace = annotations.get("meta.helm.sh/release-namespace")?.text()?;
    Ok(name
        .zip(namespace)
        .map(|(name, namespace)| Claim { name: name.to_owned(), namespace: namespace.to_owned() }))
}

/// The managers that set more than status, in the order of the managed fields.
fn managers_of(object: &Value) -> Result<Vec<String>, FieldError> {
    let mut managers = Vec::new();
    for entry in Field::root(object).at(&["metadata", "managedFields"])?.items()? {
        if entry.get("subresource")?.text()?.is_some_and(|name| !name.is_empty()) {
            continue;
        }
        let name = entry.get("manager")?.text()?.unwrap_or_default();
        if !name.is_empty() && !managers.iter().any(|known| known == name) {
            managers.push(name.to_owned());
        }
    }
    Ok(managers)
}

fn installed_by(
    object: &Value,
    is_claimed: bool,
    managers: &[String],
) -> Result<Installer, FieldError> {
    let has = |name: &str| managers.iter().any(|manager| manager == name);
    let annotations = Field::root(object).at(&["metadata", "annotations"])?;
    let inventory = annotations.get("config.k8s.io/owning-inventory")?.text()?;
    let other = || {
        // Controllers come later than whoever created the object.
        managers.first().map_or(Installer::Unknown, |name| Installer::Other(name.clone()))
    };
    Ok(match () {
        () if is_claimed && has("cilium") => Installer::CiliumCli,
        () if is_claimed => Installer::Helm,
        () if has("talos") || inventory.is_some() => Installer::Talos,
        () if managers.iter().any(|name| name.starts_with("kubectl")) => Installer::Kubectl,
        () => other(),
    })
}
