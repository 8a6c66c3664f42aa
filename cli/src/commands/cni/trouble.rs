//! What went wrong at the API server, as a person needs it: no answer, credentials that are not
//! taken, a right that is missing.

use std::error::Error;

use helm_rs::cluster::{ClusterError, ErrorKind};
use helm_rs::error_chain;
use takeover::access::{Purpose, missing_to_look};

use super::place::PlaceFlags;
use super::shared::session;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Rights that an error names; more are counted.
const NAMED: usize = 12;

/// An error of something that only reads, as the command's. A right that is missing is a refusal;
/// all that are missing to look are named then.
pub(crate) fn reading_error(
    error: &(dyn Error + 'static),
    purpose: Purpose,
    place: &PlaceFlags,
    context: &mut Context<'_>,
) -> CommandError {
    let mut told = server_error(error);
    if told.exit != Exit::No {
        return told;
    }
    let missing =
        session(place, context, async |session| missing_to_look(&*session.cluster, purpose).await);
    let missing: Vec<String> =
        missing.unwrap_or_default().iter().map(ToString::to_string).collect();
    if !missing.is_empty() {
        let mut hint = "missing to look at this cluster, for this identity:".to_owned();
        for right in missing.iter().take(NAMED) {
            hint.push_str(&format!("\n  {right}"));
        }
        if missing.len() > NAMED {
            hint.push_str(&format!("\n  and {} more", missing.len() - NAMED));
        }
        told.hint = Some(hint);
    }
    told
}

/// An error as the command's, in the words for the case where the server is what it comes of.
pub(crate) fn server_error(error: &(dyn Error + 'static)) -> CommandError {
    let chain = error_chain(error);
    let Some(cause) = cluster_error(error) else { return CommandError::new(chain) };
    match cause.kind() {
        ErrorKind::Forbidden => {
            let server = cause.to_string();
            let doing = outermost(error);
            let message = match Denied::read(&server) {
                Some(denied) => format!("refused: {denied}{doing}"),
                None => format!("refused: {chain}"),
            };
            let mut told = CommandError::new(message)
                .hint("have the right granted, or name another identity (--kubeconfig, --context)");
            told.exit = Exit::No;
            told
        }
        ErrorKind::Unauthorized => {
            CommandError::new(format_args!("the API server does not take the credentials: {cause}"))
                .hint(
                    "the token or certificate has expired, or this server does not know it: log in \
                     again, or name another identity (--kubeconfig, --context)",
                )
        }
        ErrorKind::Transport | ErrorKind::Unavailable => CommandError::new(format_args!(
            "Kubernetes cluster unreachable: {cause}"
        ))
        .hint(
            "is the server up, and the one that is meant? Its address comes from the kubeconfig \
                 (--kubeconfig, KUBECONFIG) and the context in it (--context)",
        ),
        _ => CommandError::new(chain),
    }
}

fn cluster_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ClusterError> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<ClusterError>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// What was being done, in brackets; empty when the error is the server's own.
fn outermost(error: &(dyn Error + 'static)) -> String {
    if error.downcast_ref::<ClusterError>().is_some() || error.source().is_none() {
        return String::new();
    }
    format!(" ({error})")
}

/// A denial of the authorizer (`apierrors.NewForbidden`, and `responsewriters.Forbidden` of the
/// API server: `User "u" cannot list resource "r" in API group "g" in the namespace "n"`).
#[derive(Debug, PartialEq, Eq)]
struct Denied {
    user: String,
    verb: String,
    resource: String,
    name: String,
    namespace: String,
}

impl Denied {
    /// None when the text is another one, such as that of an admission webhook.
    fn read(text: &str) -> Option<Self> {
        let (object, rest) = text.split_once(" is forbidden: User ")?;
        let (user, rest) = quoted(rest)?;
        let rest = rest.strip_prefix(" cannot ")?;
        let (verb, rest) = rest.split_once(" resource ")?;
        let (resource, rest) = quoted(rest)?;
        let rest = rest.strip_prefix(" in API group ")?;
        let (group, rest) = quoted(rest)?;
        let name = object.split_once(' ').and_then(|(_, name)| quoted(name)).map(|(name, _)| name);
        let namespace = match rest.strip_prefix(" in the namespace ") {
            Some(rest) => quoted(rest)?.0,
            None if rest.starts_with(" at the cluster scope") => "",
            None => return None,
        };
        let resource =
            if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        Some(Self {
            user: user.to_owned(),
            verb: verb.to_owned(),
            resource,
            name: name.unwrap_or_default().to_owned(),
            namespace: namespace.to_owned(),
        })
    }
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} may not {} {}", self.user, self.verb, self.resource)?;
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if self.namespace.is_empty() {
            f.write_str(" of the cluster")
        } else {
            write!(f, " in namespace {}", self.namespace)
        }
    }
}

/// A text in double quotes, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('"')?.split_once('"')
}

#[cfg(test)]
mod tests {
    use helm_rs::cluster::{Status, TransportError, TransportProblem};

    use super::*;

    fn message(error: &CommandError) -> String {
        String::from_utf8_lossy(error.message.as_deref().unwrap_or_default()).into_owned()
    }

    #[derive(Debug, thiserror::Error)]
    #[error("list ichor's records")]
    struct Doing(#[from] ClusterError);

    fn status(code: u16, reason: &str, text: &str) -> ClusterError {
        ClusterError::from(Status::new(code, reason, text))
    }

    #[test]
    fn a_missing_right_is_named_and_refused() {
        let user = "system:serviceaccount:default:viewer";
        let list = format!(
            "secrets is forbidden: User \"{user}\" cannot list resource \"secrets\" in API group \
             \"\" in the namespace \"ichor-system\""
        );
        let told = server_error(&Doing::from(status(403, "Forbidden", &list)));
        assert_eq!(
            message(&told),
            format!(
                "refused: {user} may not list secrets in namespace ichor-system (list ichor's \
                 records)"
            )
        );
        assert_eq!(told.exit, Exit::No);
        let get = "daemonsets.apps \"cilium\" is forbidden: User \"eve\" cannot get resource \
                   \"daemonsets\" in API group \"apps\" at the cluster scope: RBAC: role not found";
        assert_eq!(
            Denied::read(get).unwrap().to_string(),
            "eve may not get daemonsets.apps cilium of the cluster"
        );
    }

    #[test]
    fn what_admission_says_stays_as_it_is() {
        let text = "admission webhook \"x\" denied the request: no";
        let told = server_error(&Doing::from(status(403, "Forbidden", text)));
        assert_eq!(message(&told), format!("refused: list ichor's records: {text}"));
    }

    #[test]
    fn no_answer_and_no_identity_are_errors() {
        let told = server_error(&Doing::from(status(401, "Unauthorized", "Unauthorized")));
        assert_eq!(message(&told), "the API server does not take the credentials: Unauthorized");
        assert!(told.exit == Exit::Error && told.hint.unwrap().contains("expired"));
        let transport = TransportError {
            method: "GET".to_owned(),
            url: "https://127.0.0.1:1/version".to_owned(),
            problem: TransportProblem::Refused { address: "127.0.0.1:1".to_owned() },
        };
        let told = server_error(&Doing::from(ClusterError::from(transport)));
        assert!(message(&told).starts_with("Kubernetes cluster unreachable: Get \"https://"));
        assert_eq!(told.exit, Exit::Error);
    }
}
