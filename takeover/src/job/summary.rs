//! What a Job says of its plan at its end, for people and for the controller.

use std::fmt;
use std::str::FromStr as _;

/// A plan in short: the end of a Job's last words.
///
/// ```
/// use takeover::job::Summary;
///
/// let summary = Summary { digest: "sha256:1".into(), chart: "1.20.0".into(), ..Summary::default() };
/// let words = format!("refused: consent is missing {summary}");
/// assert_eq!(Summary::find(&words), Some(summary));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The plan's digest.
    pub digest: String,
    /// The version of its chart.
    pub chart: String,
    /// Leaves that change.
    pub differences: usize,
    /// Live-only leaves and objects that stay.
    pub residue: usize,
    /// Objects that are created.
    pub creations: usize,
    /// Objects that are deleted.
    pub deletions: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, chart, differences, residue, creations, deletions } = self;
        write!(
            f,
            "[plan={digest} chart={chart} differences={differences} residue={residue} \
             creations={creations} deletions={deletions}]"
        )
    }
}

impl Summary {
    /// Reads the one at the end of a Job's last words; none where there is none.
    pub fn find(words: &str) -> Option<Self> {
        let (_, last) = words.trim_end().strip_suffix(']')?.rsplit_once('[')?;
        let mut fields = last.split(' ');
        let mut field = |name: &str| fields.next()?.strip_prefix(name)?.strip_prefix('=');
        let number = |text: Option<&str>| usize::from_str(text?).ok();
        Some(Self {
            digest: field("plan")?.to_owned(),
            chart: field("chart")?.to_owned(),
            differences: number(field("differences"))?,
            residue: number(field("residue"))?,
            creations: number(field("creations"))?,
            deletions: number(field("deletions"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_last_words_have_none() {
        for words in [
            "",
            "done: nothing",
            "failed: a list [1, 2]",
            "refused: [plan=sha256:1 chart=1.20.0 differences=x residue=0 creations=0 deletions=0]",
            "[plan=sha256:1 chart=1.20.0 differences=1]",
            "[plan=sha256:1 chart=1 differences=1 residue=0 creations=0 deletions=0] and more",
        ] {
            assert_eq!(Summary::find(words), None, "{words}");
        }
    }
}
