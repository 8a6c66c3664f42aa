//! How a revision's objects were written (`ApplyMethod` in Helm 4's `pkg/release/v1/release.go`).

/// The way in which the objects of a revision were brought to the cluster. Helm 3 writes no such
/// field, and means [`Self::ClientSide`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyMethod {
    /// The client reads what is live, and sends a patch.
    ClientSide,
    /// The server merges what is rendered into what is live, and keeps account of every field's
    /// owners.
    ServerSide,
}

impl ApplyMethod {
    /// The text that records hold.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClientSide => "csa",
            Self::ServerSide => "ssa",
        }
    }

    /// Reads the text of a record; none for what no Helm writes.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::ClientSide, Self::ServerSide].into_iter().find(|method| method.as_str() == text)
    }
}
