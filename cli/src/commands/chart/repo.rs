//! `ichor chart repo`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use goyaml::{Map, Value};
use helm_repo::Settings;
use helm_repo::download::{DownloadError, TIMEOUT, unreachable, update_index};
use helm_repo::index::{Index, IndexError};
use helm_repo::repositories::{Entry, Repositories, charts_file, index_file, lock};
use helm_repo::url::shown;
use helm_rs::chart::Warning;
use helm_rs::error_chain;
use helm_rs::gotext::{self, quote};

use super::options::print_warnings;
use super::source::{CertificateFlags, FileFlags, now_text, transport};
use crate::commands::Context;
use crate::commands::release::table::table;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

/// Bytes that a password may have.
const MAX_PASSWORD: u64 = 64 * 1024;

/// Repositories that are no more, and where their charts are.
const MOVED: [(&str, &str); 2] = [
    ("//kubernetes-charts.storage.googleapis.com", "https://charts.helm.sh/stable"),
    ("//kubernetes-charts-incubator.storage.googleapis.com", "https://charts.helm.sh/incubator"),
];

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a repository known under a name
    #[command(after_help = concat!(
        "Examples:\n",
        "  ichor chart repo add my-repo https://charts.example.org\n",
        "  ichor chart repo add my-repo https://charts.example.org --username me --password-stdin < token"
    ))]
    Add(Box<AddArguments>),
    /// List the known repositories
    #[command(visible_alias = "ls", after_help = "Examples:\n  ichor chart repo list -o json")]
    List(ListArguments),
    /// Fetch the indexes of the known repositories
    #[command(
        visible_alias = "up",
        after_help = "Examples:\n  ichor chart repo update\n  ichor chart repo update my-repo"
    )]
    Update(UpdateArguments),
    /// Write an index.yaml for the packed charts of a folder
    #[command(after_help = concat!(
        "Examples:\n",
        "  ichor chart repo index packages --url https://charts.example.org\n",
        "  ichor chart repo index packages --merge old-index.yaml"
    ))]
    Index(IndexArguments),
    /// Forget repositories
    #[command(visible_alias = "rm", after_help = "Examples:\n  ichor chart repo remove my-repo")]
    Remove(RemoveArguments),
}

#[derive(Args)]
pub(crate) struct AddArguments {
    /// Name that it goes by
    name: String,
    /// Its address
    url: String,
    /// User of the repository
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// Password of the user
    #[arg(long, value_name = "TEXT")]
    password: Option<String>,
    /// Read the password from standard input
    #[arg(long)]
    password_stdin: bool,
    /// Let servers of other names see the password too
    #[arg(long)]
    pass_credentials: bool,
    /// Replace what is known under the name
    #[arg(long)]
    force_update: bool,
    #[arg(long, hide = true)]
    no_update: bool,
    /// Allow repositories that are no more
    #[arg(long, hide_short_help = true)]
    allow_deprecated_repos: bool,
    #[command(flatten)]
    certificates: CertificateFlags,
    /// Take any certificate of the server
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    #[command(flatten)]
    timeout: TimeoutFlag,
    #[command(flatten)]
    files: FileFlags,
}

impl std::fmt::Debug for AddArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out of it.
        f.debug_struct("AddArguments").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long an index may take.
#[derive(Debug, Args)]
struct TimeoutFlag {
    /// How long fetching an index may take
    #[arg(long, value_name = "DURATION", default_value = "2m0s")]
    timeout: String,
}

impl TimeoutFlag {
    fn get(&self) -> Result<Duration, CommandError> {
        let parsed = crate::flags::helms_duration("timeout", &self.timeout)?;
        // None at all is no limit in Go.
        Ok(if parsed.is_zero() { TIMEOUT.saturating_mul(30) } else { parsed })
    }
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    files: FileFlags,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// Names of repositories; all if none is given
    names: Vec<String>,
    /// Fail when an index cannot be fetched
    #[arg(long)]
    fail_on_repo_update_fail: bool,
    #[command(flatten)]
    timeout: TimeoutFlag,
    #[command(flatten)]
    files: FileFlags,
}

#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// Folder with packed charts
    folder: PathBuf,
    /// Address that the folder has
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    url: String,
    /// Index whose charts are taken over
    #[arg(long, value_name = "FILE")]
    merge: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// Names of repositories
    #[arg(required = true)]
    names: Vec<String>,
    #[command(flatten)]
    files: FileFlags,
}

pub(crate) fn run(command: &Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::Add(arguments) => add(arguments, context)?,
        Command::List(arguments) => list(arguments, context)?,
        Command::Update(arguments) => update(arguments, context)?,
        Command::Index(arguments) => index(arguments, context)?,
        Command::Remove(arguments) => remove(arguments, context)?,
    }
    Ok(Exit::Done)
}

fn chain(error: &(dyn std::error::Error + 'static)) -> CommandError {
    CommandError::new(error_chain(error))
}

fn add(arguments: &AddArguments, context: &mut Context<'_>) -> Result<(), CommandError> {
    let (name, url) = (&arguments.name, &arguments.url);
    let moved = MOVED.iter().find(|(old, _)| url.contains(old));
    if let Some((_, new)) = moved.filter(|_| !arguments.allow_deprecated_repos) {
        let (url, new) = (quote(url), quote(new));
        return Err(CommandError::new(format_args!(
            "repo {url} is no longer available; try {new} instead"
        )));
    }
    let settings = arguments.files.settings(context.environment);
    let _lock = lock(&settings.repository_config).map_err(|error| chain(&error))?;
    let mut all =
        Repositories::read_or_none(&settings.repository_config).map_err(|error| chain(&error))?;
    let entry = Entry {
        name: name.clone(),
        url: url.clone(),
        username: arguments.username.clone().unwrap_or_default(),
        password: password(arguments, context)?,
        cert_file: arguments.certificates.cert_file.clone(),
        key_file: arguments.certificates.key_file.clone(),
        ca_file: arguments.certificates.ca_file.clone(),
        insecure_skip_tls_verify: arguments.insecure_skip_tls_verify,
        pass_credentials_all: arguments.pass_credentials,
    };
    if name.contains('/') {
        return Err(CommandError::new(format_args!(
            "repository name ({name}) contains '/', please specify a different name without '/'"
        )));
    }
    let quoted = quote(name);
    if let Some(known) = all.get(name).filter(|_| !arguments.force_update) {
        if *known != entry {
            return Err(CommandError::new(format_args!(
                "repository name ({name}) already exists, please specify a different name"
            )));
        }
        return context
            .ui
            .result(format!("{quoted} already exists with the same configuration, skipping\n"));
    }
    let mut warnings = Vec::new();
    let timeout = arguments.timeout.get()?;
    let result = update_index(&*transport(), &settings, &entry, timeout, &mut warnings)
        .map_err(unreachable(url));
    print_warnings(context.ui, &warnings);
    result.map_err(|error| chain(&error))?;
    all.update(entry);
    all.write(&settings.repository_config).map_err(|error| chain(&error))?;
    context.ui.result(format!("{quoted} has been added to your repositories\n"))
}

fn password(arguments: &AddArguments, context: &Context<'_>) -> Result<String, CommandError> {
    let given = arguments.password.clone().unwrap_or_default();
    if arguments.username.as_ref().is_none_or(String::is_empty) || !given.is_empty() {
        return Ok(given);
    }
    if !arguments.password_stdin {
        return Err(CommandError::new("password required")
            .hint("give it with --password, or with --password-stdin on standard input"));
    }
    read_password(context)
}

/// A password from standard input, without its line end.
pub(in crate::commands) fn read_password(context: &Context<'_>) -> Result<String, CommandError> {
    let text = context
        .environment
        .read_input(MAX_PASSWORD)
        .map_err(|error| CommandError::new(gotext::io_text(&error)))?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn list(arguments: &ListArguments, context: &mut Context<'_>) -> Result<(), CommandError> {
    let settings = arguments.files.settings(context.environment);
    let entries =
        Repositories::read(&settings.repository_config).map(|all| all.entries).unwrap_or_default();
    if entries.is_empty() && arguments.output == Output::Table {
        return Err(CommandError::new("no repositories to show"));
    }
    let mut rows = vec![vec!["NAME".to_owned(), "URL".to_owned()]];
    let mut values = Vec::new();
    for entry in entries {
        let mut value = Map::new();
        value.insert("name", entry.name.as_str());
        value.insert("url", entry.url.as_str());
        values.push(Value::Map(value));
        rows.push(vec![entry.name, entry.url]);
    }
    let text = table(&rows);
    write_structured(context.ui, arguments.output, &Value::Seq(values), text.as_bytes())
}

fn update(arguments: &UpdateArguments, context: &mut Context<'_>) -> Result<(), CommandError> {
    let settings = arguments.files.settings(context.environment);
    let none = || {
        CommandError::new("no repositories found. You must add one before updating")
            .hint("ichor chart repo add NAME URL")
    };
    let all = match Repositories::read(&settings.repository_config) {
        Err(error) if error.is_not_found() => return Err(none()),
        Err(error) => {
            let file = settings.repository_config.display();
            let why = error_chain(&error);
            return Err(CommandError::new(format_args!("failed loading file: {file}: {why}")));
        }
        Ok(all) if all.entries.is_empty() => return Err(none()),
        Ok(all) => all,
    };
    if let Some(unknown) = arguments.names.iter().find(|name| all.get(name).is_none()) {
        return Err(CommandError::new(format_args!(
            "no repositories found matching '{unknown}'.  Nothing will be updated"
        )));
    }
    let timeout = arguments.timeout.get()?;
    let transport = transport();
    context.ui.result("Hang tight while we grab the latest from your chart repositories...\n")?;
    let mut failed = Vec::new();
    for entry in &all.entries {
        if !(arguments.names.is_empty() || arguments.names.contains(&entry.name)) {
            continue;
        }
        let mut warnings = Vec::new();
        let result = update_index(&*transport, &settings, entry, timeout, &mut warnings);
        print_warnings(context.ui, &warnings);
        let (name, url) = (quote(&entry.name), shown(&entry.url));
        let line = match result {
            Ok(()) => format!("...Successfully got an update from the {name} chart repository\n"),
            Err(error @ (DownloadError::Address { .. } | DownloadError::Protocol { .. })) => {
                return Err(chain(&error));
            }
            Err(error) => {
                let why = error_chain(&error);
                failed.push(url.clone());
                format!(
                    "...Unable to get an update from the {name} chart repository ({url}):\n\t{why}\n"
                )
            }
        };
        context.ui.result(line)?;
        context.ui.finish()?;
    }
    if arguments.fail_on_repo_update_fail && !failed.is_empty() {
        let failed = failed.join(" ");
        return Err(CommandError::new(format_args!(
            "Failed to update the following repositories: [{failed}]"
        )));
    }
    context.ui.result("Update Complete. ⎈Happy Helming!⎈\n")
}

fn index(arguments: &IndexArguments, context: &mut Context<'_>) -> Result<(), CommandError> {
    let folder =
        std::path::absolute(&arguments.folder).unwrap_or_else(|_| arguments.folder.clone());
    let now = now_text(context.environment);
    let mut warnings = Vec::new();
    let result = write_index(arguments, &folder, &now, &mut warnings);
    print_warnings(context.ui, &warnings);
    result
}

fn write_index(
    arguments: &IndexArguments,
    folder: &Path,
    now: &str,
    warnings: &mut Vec<Warning>,
) -> Result<(), CommandError> {
    let fail = |error: IndexError| chain(&error);
    let mut index = Index::of_directory(folder, &arguments.url, now).map_err(fail)?;
    if let Some(other) = &arguments.merge {
        if other.exists() {
            let other = Index::read(other, warnings).map_err(|error| {
                CommandError::new(format_args!("merge failed: {}", error_chain(&error)))
            })?;
            index.merge(other);
        } else {
            let empty = Index { generated: now.to_owned(), ..Index::default() };
            empty.write(other, arguments.json).map_err(fail)?;
        }
    }
    index.sort();
    index.write(&folder.join("index.yaml"), arguments.json).map_err(fail)
}

fn remove(arguments: &RemoveArguments, context: &mut Context<'_>) -> Result<(), CommandError> {
    let settings = arguments.files.settings(context.environment);
    let none = || CommandError::new("no repositories configured");
    let mut all = match Repositories::read(&settings.repository_config) {
        Ok(all) if !all.entries.is_empty() => all,
        Ok(_) => return Err(none()),
        Err(error) if error.is_not_found() => return Err(none()),
        Err(error) => return Err(chain(&error)),
    };
    for name in &arguments.names {
        let quoted = quote(name);
        if !all.remove(name) {
            return Err(CommandError::new(format_args!("no repo named {quoted} found")));
        }
        all.write(&settings.repository_config).map_err(|error| chain(&error))?;
        forget(&settings, name)?;
        context.ui.result(format!("{quoted} has been removed from your repositories\n"))?;
    }
    Ok(())
}

/// Takes a repository's files out of the cache.
fn forget(settings: &Settings, name: &str) -> Result<(), CommandError> {
    drop(std::fs::remove_file(settings.repository_cache.join(charts_file(name))));
    let index = settings.repository_cache.join(index_file(name));
    match std::fs::remove_file(&index) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let (index, why) = (index.display(), gotext::io_text(&error));
            Err(CommandError::new(format_args!("can't remove index file {index}: {why}")))
        }
    }
}
