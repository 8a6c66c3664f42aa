//! Objects' identities, each kept once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use crate::diff::Identity;

/// Identities and API versions that audited records share. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct Interner(Arc<Mutex<Store>>);

#[derive(Debug, Default)]
struct Store {
    identities: HashSet<Arc<Identity>>,
    texts: HashSet<Arc<str>>,
}

impl Interner {
    /// The one copy of an identity and of an API version.
    pub(super) fn intern(&self, identity: Identity, text: &str) -> (Arc<Identity>, Arc<str>) {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = store.identities.get(&identity).cloned();
        let identity = known.unwrap_or_else(|| {
            let new = Arc::new(identity);
            store.identities.insert(Arc::clone(&new));
            new
        });
        let known = store.texts.get(text).cloned();
        let text = known.unwrap_or_else(|| {
            let new: Arc<str> = Arc::from(text);
            store.texts.insert(Arc::clone(&new));
            new
        });
        (identity, text)
    }
}
