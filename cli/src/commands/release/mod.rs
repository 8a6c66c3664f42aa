//! `ichor release`: release records, read from files or from a cluster.

#[cfg(feature = "network")]
mod adopt;
mod chart;
mod diff;
mod everything;
mod export;
mod get;
mod history;
#[cfg(feature = "network")]
mod install;
mod list;
#[cfg(feature = "network")]
mod live;
mod metadata;
#[cfg(feature = "network")]
mod moves;
#[cfg(feature = "network")]
mod plan;
#[cfg(feature = "network")]
mod planned;
mod reading;
#[cfg(feature = "network")]
mod repair;
#[cfg(feature = "network")]
mod restore;
#[cfg(feature = "network")]
mod rollback;
mod selector;
mod show;
mod source;
mod status;
mod stored;
pub(crate) mod table;
#[cfg(feature = "network")]
mod test;
mod time;
#[cfg(feature = "network")]
mod uninstall;
#[cfg(feature = "network")]
mod upgrade;
mod values;
mod verify;
#[cfg(feature = "network")]
pub(crate) mod write;

use clap::Subcommand;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// What the commands that read records have in common, for `--help`.
const INPUTS: &str = "\
Without --from, a cluster is asked, as Helm does. Inputs (--from, repeatable; - is standard input):
  one Secret or ConfigMap or a list of them, as YAML or JSON (kubectl get -o yaml|json)
  NDJSON, a folder, a tar archive or backup tree, each also gzipped
  a bare release string, with one or two layers of base64
  an etcd snapshot or a copy of etcd's database (etcdctl snapshot save, talosctl etcd snapshot)
Other objects are passed over and counted.";

/// As [`INPUTS`], for commands that print what may be secret.
const HIDING: &str = "Credentials are hidden unless --show-secrets is given.";

/// A command's examples, then what all have in common.
macro_rules! with_inputs {
    (@hiding $examples:expr) => {
        format!("{}\n\n{INPUTS}\n{HIDING}", $examples)
    };
    ($examples:expr) => {
        format!("{}\n\n{INPUTS}", $examples)
    };
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List releases, as `helm list`
    #[command(visible_alias = "ls", after_help = with_inputs!("Examples:\n  ichor release list -A\n  ichor release list --all --from dump.yaml"))]
    List(Box<list::Arguments>),
    /// Print a release's revisions, as `helm history`
    #[command(visible_alias = "hist", after_help = with_inputs!("Examples:\n  ichor release history web -n shop\n  ichor release history web -n shop --from dump.yaml"))]
    History(history::Arguments),
    /// Print the state of a release, as `helm status`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release status web -n shop --show-desc\n  ichor release status web --revision 3 --from dump.yaml"))]
    Status(status::Arguments),
    /// Print parts of a release's record, with Helm's words for them
    #[command(subcommand, arg_required_else_help = true)]
    Get(Get),
    /// Print a release's values, as `helm get values`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release values web -n shop\n  ichor release values web --all -o json --from dump.yaml"))]
    Values(values::Arguments),
    /// Print a release's manifest, as `helm get manifest`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release manifest web -n shop\n  ichor release manifest web --revision 3 --from dump.yaml"))]
    Manifest(get::OneRecord),
    /// Print a release's hooks, as `helm get hooks`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release hooks web -n shop --from dump.yaml"))]
    Hooks(get::OneRecord),
    /// Print a release's notes, as `helm get notes`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release notes web -n shop --from dump.yaml"))]
    Notes(get::OneRecord),
    /// Install a chart on the cluster, as `helm install`
    #[cfg(feature = "network")]
    Install(Box<install::Arguments>),
    /// Upgrade a release on the cluster, as `helm upgrade`
    #[cfg(feature = "network")]
    Upgrade(Box<upgrade::Arguments>),
    /// Roll a release back to an earlier revision, as `helm rollback`
    #[cfg(feature = "network")]
    Rollback(Box<rollback::Arguments>),
    /// Uninstall releases, as `helm uninstall`
    #[cfg(feature = "network")]
    #[command(visible_aliases = ["del", "delete", "un"])]
    Uninstall(Box<uninstall::Arguments>),
    /// Run a release's tests, as `helm test`
    #[cfg(feature = "network")]
    Test(Box<test::Arguments>),
    /// Tell what an installation or upgrade would do, without writing
    #[cfg(feature = "network")]
    #[command(subcommand, arg_required_else_help = true)]
    Plan(plan::Command),
    /// Make a release of objects that another release holds, or none
    #[cfg(feature = "network")]
    Adopt(Box<adopt::Arguments>),
    /// Move a release's records to another namespace, name or driver
    #[cfg(feature = "network")]
    Move(Box<moves::Arguments>),
    #[cfg(feature = "network")]
    Restore(Box<restore::Arguments>),
    /// Look at a release that stayed pending, and mark it failed
    #[cfg(feature = "network")]
    Repair(Box<repair::Arguments>),
    /// Print everything that a revision's record holds
    #[command(after_help = with_inputs!(@hiding show::EXAMPLES))]
    Show(show::Arguments),
    /// Write the chart that a record holds back as a folder or an archive
    #[command(after_help = with_inputs!(chart::EXAMPLES))]
    Chart(chart::Arguments),
    /// Compare two revisions, two files, or a revision with its chart rendered now
    #[command(after_help = with_inputs!(@hiding diff::EXAMPLES))]
    Diff(Box<diff::Arguments>),
    /// Audit records: exit status 2 when there are findings
    #[command(after_help = with_inputs!(verify::EXAMPLES))]
    Verify(verify::Arguments),
    /// Write records as objects ready to apply, or as a line of JSON each
    #[command(after_help = with_inputs!(export::EXAMPLES))]
    Export(export::Arguments),
}

/// `helm get`.
#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// Print all of it, as `helm get all`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release get all web -n shop --from dump.yaml\n  ichor release get all web -n shop --template '{{.Release.Chart.Metadata.Version}}'"))]
    All(everything::Arguments),
    /// Print the hooks, as `helm get hooks`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release get hooks web -n shop"))]
    Hooks(get::OneRecord),
    /// Print the manifest, as `helm get manifest`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release get manifest web -n shop"))]
    Manifest(get::OneRecord),
    /// Print what the chart says of itself, as `helm get metadata`
    #[command(after_help = with_inputs!("Examples:\n  ichor release get metadata web -n shop -o yaml"))]
    Metadata(metadata::Arguments),
    /// Print the notes, as `helm get notes`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release get notes web -n shop"))]
    Notes(get::OneRecord),
    /// Print the values, as `helm get values`
    #[command(after_help = with_inputs!(@hiding "Examples:\n  ichor release get values web -n shop --all"))]
    Values(values::Arguments),
}

fn get(command: &Get, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Get::All(arguments) => everything::run(arguments, context),
        Get::Hooks(arguments) => get::run(get::Part::Hooks, arguments, context),
        Get::Manifest(arguments) => get::run(get::Part::Manifest, arguments, context),
        Get::Metadata(arguments) => metadata::run(arguments, context),
        Get::Notes(arguments) => get::run(get::Part::Notes, arguments, context),
        Get::Values(arguments) => values::run(arguments, context),
    }
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::List(arguments) => list::run(&arguments, context),
        Command::History(arguments) => history::run(&arguments, context),
        Command::Status(arguments) => status::run(&arguments, context),
        Command::Get(command) => get(&command, context),
        Command::Values(arguments) => values::run(&arguments, context),
        Command::Manifest(arguments) => get::run(get::Part::Manifest, &arguments, context),
        Command::Hooks(arguments) => get::run(get::Part::Hooks, &arguments, context),
        #[cfg(feature = "network")]
        Command::Install(arguments) => install::run(*arguments, context),
        #[cfg(feature = "network")]
        Command::Upgrade(arguments) => upgrade::run(*arguments, context),
        #[cfg(feature = "network")]
        Command::Rollback(arguments) => rollback::run(&arguments, context),
        #[cfg(feature = "network")]
        Command::Uninstall(arguments) => uninstall::run(&arguments, context),
        #[cfg(feature = "network")]
        Command::Test(arguments) => test::run(&arguments, context),
        #[cfg(feature = "network")]
        Command::Plan(command) => plan::run(command, context),
        #[cfg(feature = "network")]
        Command::Adopt(arguments) => adopt::run(*arguments, context),
        #[cfg(feature = "network")]
        Command::Move(arguments) => moves::run(&arguments, context),
        #[cfg(feature = "network")]
        Command::Restore(arguments) => restore::run(&arguments, context),
        #[cfg(feature = "network")]
        Command::Repair(arguments) => repair::run(&arguments, context),
        Command::Notes(arguments) => get::run(get::Part::Notes, &arguments, context),
        Command::Show(arguments) => show::run(&arguments, context),
        Command::Chart(arguments) => chart::run(&arguments, context),
        Command::Diff(arguments) => diff::run(*arguments, context),
        Command::Verify(arguments) => verify::run(&arguments, context),
        Command::Export(arguments) => export::run(&arguments, context),
    }
}

/// A JSON array of objects whose fields keep their order, with the line end of Go's encoder.
fn ordered_json<const N: usize>(
    items: impl Iterator<Item = [(&'static str, goyaml::Value); N]>,
) -> String {
    let mut out = String::from("[");
    for (index, item) in items.enumerate() {
        out.push_str(if index > 0 { ",{" } else { "{" });
        for (place, (name, value)) in item.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            // Texts and integers always encode.
            let value = goyaml::json::to_json(value).unwrap_or_default();
            out.push_str(&format!("\"{name}\":{value}"));
        }
        out.push('}');
    }
    out.push_str("]\n");
    out
}
