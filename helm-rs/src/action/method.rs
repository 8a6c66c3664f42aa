//! Which way an action writes objects (`getUpgradeServerSideValue` and the checks of `Update` in
//! Helm 4's `pkg/action/upgrade.go` and `pkg/kube/client.go`).

use super::error::ActionError;
use super::session::Session;
use crate::apply::Method;
use crate::release::{ApplyMethod, FieldError, Record};

/// What the user says about the way of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodOptions {
    /// The way; none for that of the record before, and by patches where there is none.
    pub apply_method: Option<ApplyMethod>,
    /// With server-side apply, take fields that other managers own.
    pub force_conflicts: bool,
    /// Replace objects instead of patching them.
    pub force: bool,
}

impl MethodOptions {
    /// The way, and what the record says of it: what the user or the record before says, so that
    /// records stay Helm 3's where neither says anything.
    pub(super) fn resolve(
        self,
        before: Option<ApplyMethod>,
    ) -> Result<(Method, Option<ApplyMethod>), ActionError> {
        let Self { force_conflicts, force, .. } = self;
        let told = self.apply_method.or(before);
        let method = match told {
            Some(ApplyMethod::ServerSide) if force => return Err(ActionError::ForcedApply),
            Some(ApplyMethod::ServerSide) => Method::Apply { force_conflicts },
            _ if force_conflicts => return Err(ActionError::ForceConflicts),
            _ if force => Method::Replace,
            _ => Method::Patch,
        };
        Ok((method, told))
    }

    /// The same for the undoing of a failed action, which may go back to a revision of another way.
    pub(super) fn undoing(self) -> Self {
        let apply_method = self.force_conflicts.then_some(ApplyMethod::ServerSide);
        Self { apply_method: self.apply_method.or(apply_method), ..self }
    }
}

impl Session<'_> {
    /// The session that writes in that way.
    pub(super) fn writing(&self, method: Method) -> Self {
        Self { method, ..self.clone() }
    }

    /// The session that writes in the way of a record, for its hooks alone.
    pub(super) fn writing_as(&self, record: &Record) -> Result<Self, FieldError> {
        let is_apply = record.apply_method()? == Some(ApplyMethod::ServerSide);
        let method =
            if is_apply { Method::Apply { force_conflicts: false } } else { Method::Patch };
        Ok(self.writing(method))
    }
}

#[cfg(test)]
mod tests {
    use super::{Method, MethodOptions};
    use crate::release::ApplyMethod::{ClientSide, ServerSide};

    #[test]
    fn the_record_before_is_followed_unless_the_user_says_otherwise() {
        let auto = MethodOptions::default();
        let apply = Method::Apply { force_conflicts: false };
        let told = |method| MethodOptions { apply_method: Some(method), ..auto };
        for (options, before, wanted) in [
            (auto, None, (Method::Patch, None)),
            (auto, Some(ClientSide), (Method::Patch, Some(ClientSide))),
            (auto, Some(ServerSide), (apply, Some(ServerSide))),
            (told(ClientSide), Some(ServerSide), (Method::Patch, Some(ClientSide))),
            (told(ServerSide), None, (apply, Some(ServerSide))),
        ] {
            assert_eq!(options.resolve(before).unwrap(), wanted, "{options:?} after {before:?}");
        }
    }

    #[test]
    fn each_force_goes_with_its_own_way() {
        let replace = MethodOptions { force: true, ..MethodOptions::default() };
        assert_eq!(replace.resolve(None).unwrap().0, Method::Replace);
        replace.resolve(Some(ServerSide)).unwrap_err();
        let take = MethodOptions { force_conflicts: true, ..MethodOptions::default() };
        take.resolve(None).unwrap_err();
        take.undoing().resolve(Some(ClientSide)).unwrap();
        let method = take.resolve(Some(ServerSide)).unwrap().0;
        assert_eq!(method, Method::Apply { force_conflicts: true });
    }
}
