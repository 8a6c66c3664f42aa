//! Why a takeover ended.

use helm_rs::apply::WaitError;
use helm_rs::cluster::ClusterError;
use helm_rs::release::storage::StorageError;

use super::backup::BackupError;
use super::lock::LockError;
use super::own::OwnError;
use super::stored::StoredError;
use super::strangers::LookError;
use crate::job::Summary;
use crate::plan::{Consent, PlanError, Refusal};

/// Why nothing was begun: the answer is no.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Denied {
    /// The plan refuses.
    #[error("refused: {}", messages(refusals))]
    Refused {
        /// Why.
        refusals: Vec<Refusal>,
    },
    /// The plan is another one than was consented to.
    #[error(
        "refused: what would be done is not what was consented to (consent {consented}, now \
         {now}): something changed in between; look at the plan again"
    )]
    Digest {
        /// The consented digest.
        consented: String,
        /// The digest of the plan as it is now.
        now: String,
        /// That plan in short.
        plan: Option<Box<Summary>>,
    },
    /// Something needs consent that was not given.
    #[error("refused: consent is missing: {missing}")]
    Consent {
        /// What is missing.
        missing: String,
        /// The plan in short.
        plan: Option<Box<Summary>>,
    },
}

impl Denied {
    /// A refusal by one rule.
    pub(crate) fn by(refusal: Refusal) -> Self {
        Self::Refused { refusals: vec![refusal] }
    }

    /// Refuses a plan other than the one that was consented to by name. `plan` is it in short.
    pub(crate) fn other_plan(
        digest: Option<&str>,
        now: &str,
        plan: impl FnOnce() -> Option<Box<Summary>>,
    ) -> Result<(), Self> {
        match digest.filter(|digest| *digest != now) {
            Some(consented) => {
                let (consented, now) = (consented.to_owned(), now.to_owned());
                Err(Self::Digest { consented, now, plan: plan() })
            }
            None => Ok(()),
        }
    }

    /// Refuses a plan that asks for something which `given` denies. `plan` is it in short.
    pub(crate) fn without_consent(
        needed: &[Consent],
        given: impl Fn(&Consent) -> bool,
        plan: impl FnOnce() -> Option<Box<Summary>>,
    ) -> Result<(), Self> {
        match needed.iter().find(|consent| !given(consent)) {
            Some(consent) => {
                let missing = format!("{} ({})", consent.flag, consent.why);
                Err(Self::Consent { missing, plan: plan() })
            }
            None => Ok(()),
        }
    }
}

/// Why a takeover ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The answer is no.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// There is no lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// No plan can be made.
    #[error(transparent)]
    Plan(Box<PlanError>),
    /// The stored plan.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// Ichor's newest record.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// Ichor's records.
    #[error("ichor's record")]
    Record(#[from] StorageError),
    /// A record cannot be made.
    #[error("ichor's record cannot be made: {reason}")]
    NoRecord {
        /// Why.
        reason: String,
    },
    /// A takeover was begun, and objects are neither as they were before nor as it writes them.
    #[error(
        "refused: {} neither as at the consent nor as the takeover that was begun writes it: \
         somebody else made a change. Undo it, or look at the plan as it is now (`{look}`) and \
         consent to that one's digest",
        are(objects)
    )]
    Stranger {
        /// The command that shows the plan as it is now.
        look: String,
        /// The objects.
        objects: Vec<String>,
    },
    /// The objects of a takeover that was begun cannot be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// An object is neither as it was at the consent nor as it is written.
    #[error(
        "{object} changed since the consent, by somebody else: it was not written; look at the \
         plan again"
    )]
    Changed {
        /// The object.
        object: String,
    },
    /// An object cannot be read or written.
    #[error("{doing}")]
    Object {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// An object's patch cannot be made.
    #[error("the patch for {object}")]
    Patch {
        /// The object.
        object: String,
        /// Why.
        source: mergepatch::Error,
    },
    /// The rollout did not become Ready.
    #[error("the rollout is not Ready")]
    Wait(#[from] WaitError),
    /// The foreign records cannot be retired.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The end was asked for.
    #[error("stopped, as was asked; run it again to go on")]
    Cancelled,
}

fn are(objects: &[String]) -> String {
    format!("{} {}", objects.join(", "), if objects.len() == 1 { "is" } else { "are each" })
}

fn messages(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| refusal.message.as_str()).collect::<Vec<_>>().join("; ")
}

impl From<PlanError> for RunError {
    fn from(error: PlanError) -> Self {
        Self::Plan(Box::new(error))
    }
}

impl RunError {
    /// The plan that a consent is missing to.
    pub fn plan(&self) -> Option<&Summary> {
        match self {
            Self::Denied(Denied::Consent { plan, .. } | Denied::Digest { plan, .. }) => {
                plan.as_deref()
            }
            _ => None,
        }
    }

    /// Whether the answer is no, with nothing written but the namespace and the lock.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Denied(_)
                | Self::Stranger { .. }
                | Self::Own(OwnError::Damaged { .. })
                | Self::Stored(StoredError::Content { .. })
                | Self::Lock(LockError::Held { .. })
        ) || matches!(self, Self::Plan(error)
            // What does not render today does not tomorrow: only other values help.
            if matches!(**error, PlanError::Rights(_) | PlanError::Rendered(_)))
    }
}
