//! `ichor cni run`: the takeover, or the change of ichor's own release, that a digest names; what the
//! Job runs.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use takeover::job::{Summary, TALOS_API_SERVER};
use takeover::plan::KubePrism;

use super::account::account;
use super::shared::{ChangeFlags, ConsentFlags, PlanFlags, no, run_error};
use crate::commands::Context;
use crate::environment::Environment;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::ui::LogFormat;

/// Where a kubelet looks for a container's last words.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// Bytes that a kubelet reads of them.
const MESSAGE_LIMIT: usize = 4096;
/// How long KubePrism may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "One line about the end goes to the termination message: to --termination-message, to\n",
    "ICHOR_TERMINATION_MESSAGE, or to /dev/termination-log where there is one.\n",
    "SIGTERM stops the run between two writes; the next run goes on from there.\n\n",
    "Examples:\n",
    "  ichor cni run --takeover --accept-cilium-diff=sha256:…   # as `ichor cni manifest` writes it\n",
    "  ichor cni run --cilium-values=values.yaml --digest=sha256:…   # after the hand-over\n\n",
    "Exit codes:\n",
    "  0  done, or nothing to do\n",
    "  1  it failed; run it again to go on\n",
    "  2  refused, or consent is missing; nothing was written but the lock"
))]
pub(crate) struct Arguments {
    /// The digest of the plan that was consented to; --accept-cilium-diff=DIGEST is the same
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Take over: what every Job of an adopted cluster says until the hand-over is complete. Without
    /// it, ichor's own release is changed: the values of --cilium-values over those that it has
    #[arg(long, conflicts_with_all = ["upgrade", "kube_proxy"])]
    takeover: bool,
    /// Write one line about the end to this file
    #[arg(long, value_name = "FILE")]
    termination_message: Option<String>,
    /// Form of what is told on standard error
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    log_format: LogFormat,
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten)]
    changes: ChangeFlags,
    #[command(flatten)]
    consent: ConsentFlags,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let log_format = arguments.log_format;
    if !context.global.quiet {
        context.ui.log_as(log_format, context.environment);
    }
    let file = message_file(arguments.termination_message.as_deref(), context.environment);
    let mut summary = None;
    let outcome = execute(arguments, &mut summary, context);
    if let Some(file) = file {
        let line = message(&outcome, summary.as_ref());
        // The exit code says what matters; a message that cannot be left does not change it.
        if let Err(error) = fs::write(&file, line) {
            context.ui.warning(format!("the termination message {file}: {error}"));
        }
    }
    let text = outcome?;
    match log_format {
        LogFormat::Text => context.ui.result(text)?,
        // Whoever collects a container's logs gets standard output among them.
        LogFormat::Json => text.lines().for_each(|line| context.ui.warning(line)),
    }
    Ok(Exit::Done)
}

fn execute(
    arguments: Arguments,
    summary: &mut Option<Summary>,
    context: &mut Context<'_>,
) -> Result<String, CommandError> {
    let mut consent = arguments.consent;
    consent.timeout()?;
    let named = consent.digest();
    if let (Some(digest), Some(named)) = (arguments.digest.as_deref(), named)
        && digest != named
    {
        return Err(no(
            format_args!("--digest is {digest}, and --accept-cilium-diff is {named}"),
            "both name the plan that was consented to: give one of them",
        ));
    }
    // The digest is the consent to everything that the plan told, whichever flag names it.
    let digest = arguments.digest.or_else(|| named.map(str::to_owned));
    if digest.is_some() {
        consent.accept();
    }
    let mut plan = arguments.plan;
    if !arguments.takeover {
        plan.change = Some(arguments.changes.change());
    }
    plan.kube_prism = kube_prism(context.environment);
    let work = plan.work(context)?;
    #[cfg(feature = "controller")]
    {
        let host = plan.host(&work, context)?;
        let instead = if arguments.takeover {
            "`ichor adopt` has the controller do it"
        } else {
            "`ichor cni values set`, or `ichor cni upgrade`, has the controller do it"
        };
        crate::commands::managed::check_nobody_acts(host, instead, context)?;
    }
    let (result, heard) = plan.carry_out(&work, &consent, digest, context)?;
    *summary = match &result {
        Ok(done) => done.summary.clone(),
        Err(error) => error.plan().cloned(),
    };
    result.as_ref().map(account).map_err(|error| run_error(error, &heard))
}

/// Whether KubePrism answers on this node, when this is a pod of the cluster: the Job's has the
/// node's network. What talks to the API server through it need not ask.
fn kube_prism(environment: &Environment) -> KubePrism {
    let Some(host) = environment.text("KUBERNETES_SERVICE_HOST") else {
        return KubePrism::NotAsked;
    };
    if environment.variable("KUBECONFIG").is_some() {
        return KubePrism::NotAsked;
    }
    let (name, port) = TALOS_API_SERVER;
    let served = environment.text("KUBERNETES_SERVICE_PORT").and_then(|port| port.parse().ok());
    if host == name && served == Some(port) {
        return KubePrism::Answers;
    }
    listens(name, port)
}

/// Whether something takes connections there.
fn listens(host: &str, port: u16) -> KubePrism {
    let addresses = match (host, port).to_socket_addrs() {
        Ok(addresses) => addresses,
        Err(error) => return KubePrism::Silent { why: error.to_string() },
    };
    let mut why = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(_) => return KubePrism::Answers,
            Err(error) => why = error.to_string(),
        }
    }
    KubePrism::Silent { why }
}

/// Where the termination message goes; none when nobody asks for one.
fn message_file(flag: Option<&str>, environment: &Environment) -> Option<String> {
    if let Some(file) = flag.or_else(|| environment.text("ICHOR_TERMINATION_MESSAGE")) {
        return Some(file.to_owned());
    }
    Path::new(TERMINATION_LOG).exists().then(|| TERMINATION_LOG.to_owned())
}

/// One line about the end, as long as a kubelet reads it, with the plan in short at its end.
fn message(outcome: &Result<String, CommandError>, summary: Option<&Summary>) -> String {
    let (word, text) = match outcome {
        Ok(text) => ("done", text.clone()),
        Err(error) => {
            let text = String::from_utf8_lossy(error.message.as_deref().unwrap_or_default());
            let word = if error.exit == Exit::No { "refused" } else { "failed" };
            // Refusals begin with the word themselves.
            (word, text.strip_prefix("refused: ").unwrap_or(&text).to_owned())
        }
    };
    let mut line = format!("{word}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "));
    let summary = summary.map(|summary| format!(" {summary}")).unwrap_or_default();
    let limit = MESSAGE_LIMIT.saturating_sub(summary.len());
    if line.len() > limit {
        let mut end = limit.saturating_sub('…'.len_utf8());
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line.truncate(end);
        line.push('…');
    }
    line + &summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_prism_is_asked_on_a_node() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listens("127.0.0.1", port), KubePrism::Answers);
        drop(listener);
        assert!(matches!(listens("127.0.0.1", port), KubePrism::Silent { .. }));
    }

    #[test]
    fn one_line_that_a_kubelet_reads_whole() {
        assert_eq!(
            message(&Ok("Taken over:\n 3 objects\n".to_owned()), None),
            "done: Taken over: 3 objects"
        );
        let mut error = CommandError::new("refused: another run is at work");
        error.exit = Exit::No;
        assert_eq!(message(&Err(error), None), "refused: another run is at work");
        let summary = Summary { digest: "sha256:1".to_owned(), ..Summary::default() };
        let line = message(&Err(CommandError::new("ä\n".repeat(5000))), Some(&summary));
        assert_eq!(Summary::find(&line), Some(summary));
        assert!(line.len() <= MESSAGE_LIMIT, "{}", line.len());
        let line = message(&Err(CommandError::new("ä\n".repeat(5000))), None);
        assert!(line.starts_with("failed: ä ä") && line.ends_with('…'));
        assert!(line.len() <= MESSAGE_LIMIT && line.len() > MESSAGE_LIMIT - 4, "{}", line.len());
    }
}
