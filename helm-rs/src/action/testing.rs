//! Running a release's tests (`pkg/action/release_testing.go`).

use std::sync::Arc;
use std::time::Duration;

use super::error::ActionError;
use super::hooks::{HookError, Hooks};
use super::session::Session;
use crate::apply::WaitError;
use crate::cluster::{Resource, Target};
use crate::manifest::HookEvent;
use crate::name::validate_release_name;
use crate::release::{Hook, Record};

/// Which tests to run.
#[derive(Clone, Debug)]
pub struct TestOptions {
    /// The release's name.
    pub name: String,
    /// The namespace that objects without one go to, and in which the pods' logs are.
    pub namespace: String,
    /// How long one test may take.
    pub timeout: Duration,
    /// Names of the only tests to run; empty for all.
    pub only: Vec<String>,
    /// Names of tests that are not run.
    pub without: Vec<String>,
    /// Delete objects of other releases too, as Helm does.
    pub helm_compat: bool,
}

impl TestOptions {
    fn wants(&self, hook: &Hook) -> bool {
        !self.without.contains(&hook.name)
            && (self.only.is_empty() || self.only.contains(&hook.name))
    }
}

/// The release after its tests.
#[derive(Debug)]
pub struct Tested {
    /// Its record.
    pub record: Record,
    /// Why a test failed.
    pub failure: Option<ActionError>,
}

/// Runs the tests of a release's newest revision, and records how they ended.
///
/// # Errors
/// When there is no such release. A failed test is part of the result.
pub async fn test(session: &Session<'_>, options: &TestOptions) -> Result<Tested, ActionError> {
    let name = &options.name;
    session.reach().await?;
    if validate_release_name(name).is_err() {
        return Err(ActionError::NameOf { step: "releaseTest", name: name.clone() });
    }
    let mut stored = session.storage().last(name).await?;
    let namespace = stored.record.namespace()?;
    let session = &session.writing_as(&stored.record)?;
    let hooks = Hooks {
        session,
        release: (name, &namespace),
        namespace: &options.namespace,
        timeout: options.timeout,
        helm_compat: options.helm_compat,
    };
    let skipped = skipped(&stored.record.hooks()?, options);
    let wanted = |hook: &Hook| options.wants(hook);
    let ran = hooks.run_some(&mut stored.record, &stored.labels, HookEvent::Test, wanted).await;
    // As Helm puts them together again.
    stored.record.move_hooks_to_front(&skipped)?;
    let updated = session.storage().update(&stored.record, &stored.labels).await;
    let failure = match ran {
        Ok(()) => updated.err().map(ActionError::from),
        Err(HookError::Cancelled) => Some(ActionError::Wait(WaitError::Cancelled)),
        Err(source) => Some(ActionError::Hook(Box::new(source))),
    };
    Ok(Tested { record: stored.record, failure })
}

/// The places of hooks that are not looked at: first those that are told not to run, then those
/// that are not among the only ones.
fn skipped(hooks: &[Hook], options: &TestOptions) -> Vec<usize> {
    let is_excluded = |hook: &Hook| options.without.contains(&hook.name);
    let is_other = |hook: &Hook| !options.only.is_empty() && !options.only.contains(&hook.name);
    let places = |wanted: &dyn Fn(&Hook) -> bool| -> Vec<usize> {
        let found = hooks.iter().enumerate().filter(|(_, hook)| wanted(hook));
        found.map(|(place, _)| place).collect()
    };
    let mut all = places(&is_excluded);
    all.extend(places(&|hook| !is_excluded(hook) && is_other(hook)));
    all
}

/// The log of each test's pod, with what Helm puts around it (`GetPodLogs`).
///
/// # Errors
/// The first log that cannot be read; what came before was handed to `out`.
pub async fn logs(
    session: &Session<'_>,
    record: &Record,
    options: &TestOptions,
    out: &mut Vec<u8>,
) -> Result<(), ActionError> {
    let mut hooks = record.hooks()?;
    hooks.sort_by(|one, other| (one.weight, &one.name).cmp(&(other.weight, &other.name)));
    let pods = Arc::new(Resource::builtin("v1", "Pod", "pods", true));
    for hook in &hooks {
        let tests = hook.events.iter().filter(|event| *event == HookEvent::Test.as_str());
        for _ in tests.filter(|_| options.wants(hook)) {
            let target = Target::new(&pods, &options.namespace, &hook.name);
            let log = session
                .cluster
                .logs(&target, "")
                .await
                .map_err(|source| ActionError::PodLogs { name: hook.name.clone(), source })?;
            out.extend_from_slice(format!("POD LOGS: {}\n", hook.name).as_bytes());
            out.extend_from_slice(&log);
            out.push(b'\n');
        }
    }
    Ok(())
}
