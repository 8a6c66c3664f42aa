//! Whose release a takeover makes, and where it keeps what it leaves of itself: records, lock,
//! stored plan, backups.

use std::borrow::Cow;

use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE, RELEASE};
use helm_rs::release::storage::ObjectKind;

use crate::run::lock::LeaseName;

/// A release, and the names of what a takeover keeps beside its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The release's name.
    pub release: Cow<'static, str>,
    /// The release's own namespace, which its chart is rendered for.
    pub namespace: Cow<'static, str>,
    /// The namespace of records, lock, stored plan and backups. It is another one than the
    /// release's own for Cilium alone.
    pub home: Cow<'static, str>,
    /// Which objects hold the records.
    pub records: ObjectKind,
    /// The Lease that is the lock.
    pub lease: Cow<'static, str>,
    /// The Secret with the stored plan.
    pub plan: Cow<'static, str>,
    /// The first Secret with backups; further ones have `-2`, `-3` and so on.
    pub backup: Cow<'static, str>,
    /// Whether the namespace may hold other releases' backups, so that each says whose it is.
    pub is_shared: bool,
    /// What people are told to run, and how things are called.
    pub words: Words,
}

/// What is done to a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deed {
    /// Cilium is taken over.
    #[default]
    Takeover,
    /// Ichor's own release of Cilium is changed.
    Change,
    /// A release is made of what is there.
    Adoption,
    /// A release is moved.
    Move,
}

impl Deed {
    /// As messages name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Takeover => "takeover",
            Self::Change => "change",
            Self::Adoption => "adoption",
            Self::Move => "move",
        }
    }

    /// As messages name the records that are deleted at its end.
    pub(crate) const fn records(self) -> &'static str {
        match self {
            Self::Takeover | Self::Change => "foreign record",
            Self::Adoption => "record of the release before",
            Self::Move => "old record",
        }
    }

    /// As messages name the namespace of the records that it makes.
    pub(crate) const fn home(self) -> &'static str {
        match self {
            Self::Takeover | Self::Change => "ichor's namespace",
            Self::Adoption | Self::Move => "the release's namespace",
        }
    }

    /// As messages name what it keeps there.
    pub(crate) const fn own(self) -> &'static str {
        match self {
            Self::Takeover | Self::Change => "ichor's records, plan and backups",
            Self::Adoption | Self::Move => "the release's records, the stored plan and backups",
        }
    }
}

/// What messages say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// What is done.
    pub deed: Deed,
    /// What is taken over.
    pub what: Cow<'static, str>,
    /// The command that shows the plan.
    pub look: Cow<'static, str>,
    /// The command that gives everything back.
    pub restore: Cow<'static, str>,
    /// The flag that consents to what the gate found.
    pub accept: &'static str,
}

/// Ichor's own release of Cilium.
pub static CILIUM: Place =
    own(Deed::Takeover, "ichor-cni-plan", "ichor adopt --cilium-only --plan");

/// The same release, when it is ichor's and is changed: the plan of the takeover stays where it is,
/// since it says how everything is given back.
pub static CHANGE: Place = own(Deed::Change, "ichor-cni-change", "ichor cni plan --change");

const fn own(deed: Deed, plan: &'static str, look: &'static str) -> Place {
    Place {
        release: Cow::Borrowed(RELEASE),
        namespace: Cow::Borrowed(NAMESPACE),
        home: Cow::Borrowed(RECORD_NAMESPACE),
        records: ObjectKind::Secret,
        lease: Cow::Borrowed("ichor-cni"),
        plan: Cow::Borrowed(plan),
        backup: Cow::Borrowed("ichor-cilium-prior-release"),
        is_shared: false,
        words: Words {
            deed,
            what: Cow::Borrowed("Cilium"),
            look: Cow::Borrowed(look),
            restore: Cow::Borrowed("ichor cni restore"),
            accept: "--accept-cilium-diff",
        },
    }
}

impl Place {
    /// Any other release, with everything in its own namespace. `look` is the command that shows
    /// the plan.
    pub fn release(
        name: &str,
        namespace: &str,
        records: ObjectKind,
        deed: Deed,
        look: String,
    ) -> Self {
        Self {
            release: name.to_owned().into(),
            namespace: namespace.to_owned().into(),
            home: namespace.to_owned().into(),
            records,
            lease: lease_of(name, namespace).name.into(),
            plan: format!("ichor-release-{name}-plan").into(),
            backup: format!("ichor-release-{name}-prior").into(),
            is_shared: true,
            words: Words {
                deed,
                what: format!("release {name}").into(),
                look: look.into(),
                restore: format!("ichor release restore {name} -n {namespace}").into(),
                accept: "--accept-plan",
            },
        }
    }

    /// The Lease that is the lock of this release.
    pub fn lease_name(&self) -> LeaseName {
        LeaseName { namespace: self.home.to_string(), name: self.lease.to_string() }
    }

    /// The kind of the objects that hold the records.
    pub const fn kind(&self) -> &'static str {
        kind_name(self.records)
    }
}

/// The Lease that is the lock of a release other than ichor's own Cilium.
pub(crate) fn lease_of(release: &str, namespace: &str) -> LeaseName {
    LeaseName { namespace: namespace.to_owned(), name: format!("ichor-release-{release}") }
}

/// The kind of the objects that a driver keeps records in.
pub(crate) const fn kind_name(records: ObjectKind) -> &'static str {
    match records {
        ObjectKind::Secret => "Secret",
        ObjectKind::ConfigMap => "ConfigMap",
    }
}
