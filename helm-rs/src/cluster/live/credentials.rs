//! Making clients: credentials that are files or come from plugins are read here, anew when the
//! server refuses them.

use std::io;

use kube::client::AuthError;
use kube::{Client, Config};

use super::problem::innermost;
use crate::cluster::{ClusterError, TransportProblem};

/// Why there is no client.
pub(super) enum NoClient {
    /// The configuration is not good.
    Configuration(ClusterError),
    /// Credentials cannot be had. client-go says so of each request.
    Credentials(TransportProblem),
}

/// A client for a configuration. Credential plugins run here, so not on the runtime's own threads.
pub(super) async fn client(config: &Config) -> Result<Client, NoClient> {
    let copy = config.clone();
    // The client's background task belongs to the runtime that the thread knows.
    let made = tokio::task::spawn_blocking(move || Client::try_from(copy)).await;
    let reason = match made {
        Ok(Ok(client)) => return Ok(client),
        Ok(Err(kube::Error::Auth(error))) => {
            return Err(NoClient::Credentials(refused(&error, config)));
        }
        Ok(Err(error)) => innermost(&error),
        Err(error) => error.to_string(),
    };
    Err(NoClient::Configuration(ClusterError::Configuration { reason }))
}

/// Whether new credentials can be had: from a plugin, or from a file that changes.
pub(super) const fn can_renew(config: &Config) -> bool {
    config.auth_info.exec.is_some() || config.auth_info.token_file.is_some()
}

/// What client-go says of credentials that cannot be had (`plugin/pkg/client/auth/exec`,
/// `wrapCmdRunErrorLocked`).
pub(super) fn refused(error: &AuthError, config: &Config) -> TransportProblem {
    const HINT: &str = "\n\nIt looks like you are trying to use a client-go credential plugin that \
                        is not installed.\n\nTo learn more about this feature, consult the \
                        documentation available at:\n      https://kubernetes.io/docs/reference/\
                        access-authn-authz/authentication/#client-go-credential-plugins";
    let exec = config.auth_info.exec.as_ref();
    let command = exec.and_then(|exec| exec.command.as_deref()).unwrap_or_default();
    let reason = match error {
        AuthError::AuthExecStart(error) if command.contains('/') => {
            format!("exec: fork/exec {command}: {}", crate::gotext::io_text(error))
        }
        AuthError::AuthExecStart(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("exec: executable {command} not found{HINT}")
        }
        AuthError::AuthExecStart(error) => format!("exec: {}", crate::gotext::io_text(error)),
        AuthError::AuthExecRun { out, .. } => {
            let code = out.status.code().unwrap_or(-1);
            format!("exec: executable {command} failed with exit code {code}")
        }
        other => format!("exec: {}", innermost(other)),
    };
    TransportProblem::Other { reason: format!("getting credentials: {reason}") }
}
