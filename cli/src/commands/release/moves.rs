//! `ichor release move`: a release's records to another namespace, name or driver.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use helm_rs::action::Session;
use helm_rs::error_chain;
use helm_rs::release::storage::ObjectKind;
use helm_rs::render::{Engine, EngineOptions};
use takeover::plan::PlanError;
use takeover::relocation::{ACCEPT_NEXT, At, MoveError, MovePlan, Moved, Outcome, Request};
use takeover::relocation::{carry_out, prepare};

use super::planned::refused;
use super::write::Host;
use crate::commands::Context;
use crate::commands::cni::ask::confirm;
use crate::commands::cni::planned::{Consent, PlanShape, show_json};
use crate::commands::cni::shared::{holder, no, random};
use crate::commands::cni::trouble::server_error;
use crate::connection::{ClusterFlags, record_kind};
use crate::environment::Environment;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(
    override_usage = "ichor release move NAME [OPTIONS]",
    after_help = concat!(
        "Moves the whole history, contents to the byte but for name and namespace, and the ownership\n",
        "metadata of the objects with it. The objects stay where they are. What the next upgrade would\n",
        "do that it would not have done before is told, since charts name objects after their release\n",
        "and put them into its namespace; where it would create or delete some, it takes\n",
        "--accept-next-upgrade. `ichor release restore` moves back.\n\n",
        "Examples:\n",
        "  ichor release move web -n shop --to-name shop-web --plan\n",
        "  ichor release move web -n shop --to-driver configmap --yes\n",
        "  ichor release move web -n shop --to-namespace infra --accept-plan=sha256:… --yes\n\n",
        "Exit codes:\n",
        "  0  done, or nothing to do\n",
        "  1  it failed; run it again to go on\n",
        "  2  the answer is no: refused, or consent is missing; nothing was written"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release
    #[arg(value_parser = flags::release_name)]
    name: String,
    /// Namespace that the records go to
    #[arg(long, value_name = "NAMESPACE", value_parser = flags::namespace)]
    to_namespace: Option<String>,
    /// Name that the release gets
    #[arg(long, value_name = "NAME", value_parser = flags::release_name)]
    to_name: Option<String>,
    /// What the records will lie in; HELM_DRIVER says what they lie in
    #[arg(long, value_enum, value_name = "secret|configmap")]
    to_driver: Option<Driver>,
    /// Accept that the next upgrade creates or deletes objects, or fails
    #[arg(long, help_heading = "Consent")]
    accept_next_upgrade: bool,
    #[command(flatten)]
    shape: PlanShape,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// What records lie in.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Driver {
    Secret,
    #[value(name = "configmap")]
    ConfigMap,
}

/// What plans are made with.
struct Work<'a> {
    engine: &'a Engine,
    from: At,
    to: At,
    entropy: [u8; 32],
}

impl Work<'_> {
    fn request<'a>(&'a self, session: &Session<'a>) -> Request<'a> {
        Request {
            cluster: Arc::clone(&session.cluster),
            clock: session.clock,
            engine: self.engine,
            from: self.from.clone(),
            to: self.to.clone(),
            entropy: self.entropy,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let from = At {
        release: arguments.name.clone(),
        namespace: arguments.cluster.checked_namespace(context.environment)?,
        records: record_kind(context.environment)?,
    };
    let to = At {
        release: arguments.to_name.clone().unwrap_or_else(|| from.release.clone()),
        namespace: arguments.to_namespace.clone().unwrap_or_else(|| from.namespace.clone()),
        records: match arguments.to_driver {
            None => from.records,
            Some(Driver::Secret) => ObjectKind::Secret,
            Some(Driver::ConfigMap) => ObjectKind::ConfigMap,
        },
    };
    let engine = Engine::new(EngineOptions::default());
    let work = Work { engine: &engine, from, to, entropy: random()? };
    let host = Host::open(&arguments.cluster, context)?;
    let (plan, _) = host.look(context, &engine, async |session| {
        prepare(&work.request(session)).await.map(|prepared| prepared.plan)
    })?;
    let plan = plan.map_err(|error| match error {
        PlanError::Rights(_) => refused(&error),
        error => server_error(&error),
    })?;
    match arguments.shape.output {
        Output::Table => context.ui.result(text(&plan))?,
        output => show_json(&plan, output, context)?,
    }
    if plan.is_refused() {
        return Ok(Exit::No);
    }
    if arguments.shape.plan {
        return Ok(if plan.consent.is_empty() { Exit::Done } else { Exit::No });
    }
    if plan.outcome == Outcome::Nothing {
        return Ok(Exit::Done);
    }
    // A consent to another plan is told before what else is missing.
    if arguments.consent.accept_plan.as_ref().is_some_and(|given| *given != plan.digest) {
        arguments.consent.check(&plan.digest, &plan.consent)?;
    }
    if !plan.consent.is_empty() && !arguments.accept_next_upgrade {
        let why = plan.consent.first().map(|consent| consent.why.as_str()).unwrap_or_default();
        return Err(no(
            format_args!("consent is missing: {why}"),
            format!(
                "to accept it: {} {ACCEPT_NEXT} --accept-plan={} --yes",
                arguments.command(&work, context.environment),
                plan.digest
            ),
        ));
    }
    arguments.consent.check(&plan.digest, &plan.consent)?;
    confirm("Move it?", arguments.consent.yes, context)?;
    let holder = holder(context.environment)?;
    let (result, _) = host.run(context, &engine, async |session| {
        let request = work.request(session);
        let accepts = |_: &takeover::plan::Consent| arguments.accept_next_upgrade;
        let (observer, cancel) = (session.observer, session.cancel);
        let digest = Some(plan.digest.as_str());
        carry_out(&request, digest, accepts, &holder, observer, cancel).await
    })?;
    let done = result.map_err(|error: MoveError| {
        if error.is_refusal() {
            return refused(&error);
        }
        let first =
            server_error(&error).hint.map_or_else(String::new, |hint| format!("{hint}; then "));
        CommandError::new(error_chain(&error))
            .hint(format!("{first}run it again to go on where it stopped"))
    })?;
    arguments.shape.output.tell(&account(&plan, &done), context)?;
    Ok(Exit::Done)
}

impl Arguments {
    /// The command that was given, without consents.
    fn command(&self, work: &Work<'_>, environment: &Environment) -> String {
        let mut command = match environment.variable("HELM_DRIVER") {
            Some(driver) => format!("HELM_DRIVER={} ", driver.display()),
            None => String::new(),
        };
        let Self { name, to_namespace, to_name, to_driver, .. } = self;
        command.push_str(&format!("ichor release move {name} -n {}", work.from.namespace));
        let driver = to_driver.map(|driver| match driver {
            Driver::Secret => "secret",
            Driver::ConfigMap => "configmap",
        });
        let flags = [
            ("--to-namespace", to_namespace.as_deref()),
            ("--to-name", to_name.as_deref()),
            ("--to-driver", driver),
        ];
        for (flag, value) in flags {
            if let Some(value) = value {
                command.push_str(&format!(" {flag} {value}"));
            }
        }
        command
    }
}

/// The plan for people.
fn text(plan: &MovePlan) -> String {
    let place = |about: &takeover::plan::ReleaseAbout| {
        format!("{} in namespace {} ({}s)", about.name, about.namespace, about.records)
    };
    let mut text = format!("Release {} moves to {}\n", place(&plan.from), place(&plan.to));
    for refusal in &plan.refusals {
        text.push_str(&format!("Refused ({}): {}\n", refusal.reason, refusal.message));
    }
    if plan.is_refused() {
        return text;
    }
    match plan.outcome {
        Outcome::Nothing => {
            text.push_str("Nothing is left to do: an earlier move is complete.\n");
            return text;
        }
        Outcome::Resume => text.push_str("A move that was begun is finished by its own plan.\n"),
        _ => {}
    }
    text.push_str("What happens\n");
    for record in &plan.records {
        text.push_str(&format!(
            "  {} ({}) is written anew there, backed up, then deleted\n",
            record.about, record.status
        ));
    }
    text.push_str(&format!(
        "  {} object(s) get the ownership metadata of {}; they stay where they are\n",
        plan.objects.len(),
        plan.to.name
    ));
    let lists = [
        ("Not this release's, and left alone", titles(&plan.others)),
        ("The next upgrade would create", plan.next_upgrade.created.clone()),
        ("The next upgrade would delete", plan.next_upgrade.deleted.clone()),
        ("The next upgrade would change", plan.next_upgrade.changed.clone()),
        ("The next upgrade would fail at the selector of", plan.next_upgrade.selectors.clone()),
        ("Not checked", plan.unchecked.clone()),
    ];
    for (title, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        text.push_str(&format!("{title}\n"));
        for item in items {
            text.push_str(&format!("  {item}\n"));
        }
    }
    for consent in &plan.consent {
        text.push_str(&format!(
            "Consent: {} --accept-plan={} ({})\n",
            consent.flag, plan.digest, consent.why
        ));
    }
    text.push_str(&format!("Digest  {}\n", plan.digest));
    text
}

fn titles(objects: &[takeover::plan::ObjectAbout]) -> Vec<String> {
    objects.iter().map(ToString::to_string).collect()
}

/// What was done, for people.
fn account(plan: &MovePlan, done: &Moved) -> String {
    let to = &plan.to;
    if done.nothing {
        return "Nothing was left to do.\n".to_owned();
    }
    let mut text = format!(
        "Moved: release {} in namespace {}, {} record(s) written, {} object(s) with new owner, {} \
         old record(s) backed up and deleted.\n",
        to.name,
        to.namespace,
        done.records,
        done.objects,
        done.retired.deleted.len()
    );
    for backup in &done.retired.backups {
        text.push_str(&format!("Backup: Secret {}/{backup}\n", to.namespace));
    }
    text
}
