//! Hooks, as Helm's `pkg/release/hook.go`.

use bstr::BString;

/// An object that Helm creates at a certain moment instead of with the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Name of the object.
    pub name: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the template that made it.
    pub path: String,
    /// The object itself.
    pub manifest: BString,
    /// When it is created, in the order of the annotation; the same event may stand twice.
    pub events: Vec<HookEvent>,
    /// Lower weights come first.
    pub weight: i64,
    /// When it is deleted, as written but in lower case; Helm does not check the words.
    pub delete_policies: Vec<String>,
    /// When its log is printed, as written but in lower case.
    pub output_log_policies: Vec<String>,
}

impl Hook {
    /// Whether it runs at one of these events.
    pub fn runs_at(&self, events: &[HookEvent]) -> bool {
        self.events.iter().any(|event| events.contains(event))
    }
}

/// A moment in the life of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// `pre-install`
    PreInstall,
    /// `post-install`
    PostInstall,
    /// `pre-delete`
    PreDelete,
    /// `post-delete`
    PostDelete,
    /// `pre-upgrade`
    PreUpgrade,
    /// `post-upgrade`
    PostUpgrade,
    /// `pre-rollback`
    PreRollback,
    /// `post-rollback`
    PostRollback,
    /// `test`, also written `test-success`
    Test,
}

impl HookEvent {
    const ALL: [Self; 9] = [
        Self::PreInstall,
        Self::PostInstall,
        Self::PreDelete,
        Self::PostDelete,
        Self::PreUpgrade,
        Self::PostUpgrade,
        Self::PreRollback,
        Self::PostRollback,
        Self::Test,
    ];

    /// The word in the annotation and in the release record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreInstall => "pre-install",
            Self::PostInstall => "post-install",
            Self::PreDelete => "pre-delete",
            Self::PostDelete => "post-delete",
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
            Self::PreRollback => "pre-rollback",
            Self::PostRollback => "post-rollback",
            Self::Test => "test",
        }
    }

    /// The event that a word in an annotation names.
    pub fn parse(word: &str) -> Option<Self> {
        if word == "test-success" {
            return Some(Self::Test);
        }
        Self::ALL.into_iter().find(|event| event.as_str() == word)
    }
}

impl Hook {
    /// Whether this is a test, which `--skip-tests` leaves out.
    pub fn is_test(&self) -> bool {
        self.events.contains(&HookEvent::Test)
    }
}
