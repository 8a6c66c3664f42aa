//! What the server answered to dry runs, for a plan that is made twice by one program: once to be
//! shown, and once more under the lock.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use helm_rs::cluster::Target;
use serde_json::Value;

use crate::survey::text;

/// Answers by the object's address. An answer holds for the same write to the same version of the
/// object; where that has changed, the server is asked again.
#[derive(Debug, Default)]
pub struct DryRuns(Mutex<BTreeMap<String, Answer>>);

#[derive(Debug)]
struct Answer {
    version: String,
    write: Value,
    after: Value,
}

/// The version of a live object; empty for one that is not there.
fn version(live: Option<&Value>) -> &str {
    live.map_or("", |live| text(live, "/metadata/resourceVersion"))
}

impl DryRuns {
    /// What the server said to this write: a patch, or an object that is created.
    pub(super) fn known(
        &self,
        target: &Target,
        live: Option<&Value>,
        write: &Value,
    ) -> Option<Value> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.get(&target.to_string())?;
        (answer.version == version(live) && answer.write == *write).then(|| answer.after.clone())
    }

    /// Keeps what it says.
    pub(super) fn keep(&self, target: &Target, live: Option<&Value>, write: &Value, after: &Value) {
        let answer = Answer {
            version: version(live).to_owned(),
            write: write.clone(),
            after: after.clone(),
        };
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(target.to_string(), answer);
    }
}
