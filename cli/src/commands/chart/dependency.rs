//! `ichor chart dependency`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use helm_repo::dependency::{Manager, list, strangers};
use helm_repo::download::Verify;
use helm_rs::chart::{Limits, load};
use helm_rs::{error_chain, gopath};

use super::locate::{failed, tell};
use super::options::{LimitFlags, load_error, print_warnings};
use super::source::{
    ChartFlags, FileFlags, RemoteFlags, ServerFlags, downloader, keyring, now_text, transport,
};
use crate::commands::Context;
use crate::commands::release::table::table_within;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what a chart asks for, and what of it is there
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  ichor chart dependency list ./my-chart"
    )]
    List(ListArguments),
    /// Bring what fits Chart.yaml into charts/, and lock it
    #[command(visible_alias = "up", after_help = concat!(
        "Nothing in charts/ changes before everything is fetched.\n\n",
        "Examples:\n",
        "  ichor chart dependency update ./my-chart\n",
        "  ichor chart dependency update ./my-chart --skip-refresh --verify --keyring pubring.gpg"
    ))]
    Update(Box<BuildArguments>),
    /// Bring what Chart.lock says into charts/
    #[command(after_help = "Examples:\n  ichor chart dependency build ./my-chart")]
    Build(Box<BuildArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Folder or archive of the chart
    #[arg(default_value = ".")]
    chart: String,
    /// Columns that a cell of the table may have
    #[arg(long, value_name = "COLUMNS", value_parser = crate::flags::whole_number::<usize>, default_value_t = 80)]
    max_col_width: usize,
    #[command(flatten)]
    limits: LimitFlags,
}

#[derive(Debug, Args)]
pub(crate) struct BuildArguments {
    /// Folder of the chart
    #[arg(default_value = ".")]
    chart: String,
    /// Check the signatures of what is fetched
    #[arg(long)]
    verify: bool,
    /// Keys that may sign; $GNUPGHOME/pubring.gpg or ~/.gnupg/pubring.gpg if none is given
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
    /// Use the repositories' indexes as they are in the cache
    #[arg(long)]
    skip_refresh: bool,
    #[command(flatten)]
    remote: RemoteFlags,
}

/// How dependencies are brought together.
pub(super) struct Options<'a> {
    pub(super) server: &'a ServerFlags,
    pub(super) files: &'a FileFlags,
    pub(super) keyring: &'a Path,
    pub(super) limits: &'a Limits,
    pub(super) verify: Verify,
    pub(super) skip_refresh: bool,
    /// Whether standard output tells of it.
    pub(super) told: bool,
}

impl<'a> Options<'a> {
    /// What `ichor chart dependency update` does without flags, said on standard output.
    pub(super) const fn new(
        server: &'a ServerFlags,
        files: &'a FileFlags,
        keyring: &'a Path,
        limits: &'a Limits,
    ) -> Self {
        let (verify, skip_refresh, told) = (Verify::Never, false, true);
        Self { server, files, keyring, limits, verify, skip_refresh, told }
    }
}

pub(crate) fn run(command: &Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let (arguments, is_update) = match command {
        Command::List(arguments) => return run_list(arguments, context),
        Command::Update(arguments) => (arguments, true),
        Command::Build(arguments) => (arguments, false),
    };
    let chart = gopath::clean(&arguments.chart);
    let verify = match (arguments.verify, is_update) {
        (false, _) => Verify::Never,
        (true, true) => Verify::Always,
        (true, false) => Verify::IfPossible,
    };
    let keyring = keyring(arguments.keyring.as_ref(), context.environment);
    let limits = arguments.remote.limits();
    let options = Options {
        verify,
        skip_refresh: arguments.skip_refresh,
        ..Options::new(&arguments.remote.server, &arguments.remote.files, &keyring, &limits)
    };
    manage(Path::new(&chart), &options, is_update, context)?;
    Ok(Exit::Done)
}

fn run_list(arguments: &ListArguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let path = gopath::clean(&arguments.chart);
    let limits = arguments.limits.limits();
    let mut warnings = Vec::new();
    let chart = load(Path::new(&path), &limits, &mut warnings);
    print_warnings(context.ui, &warnings);
    let chart = chart.map_err(|error| load_error(&error))?;
    let Some(rows) = list(&chart, Path::new(&path)) else {
        let charts = gopath::join(&path, "charts");
        context.ui.result(format!("WARNING: no dependencies at {charts}\n"))?;
        return Ok(Exit::Done);
    };
    let mut cells = vec![["NAME", "VERSION", "REPOSITORY", "STATUS"].map(str::to_owned).to_vec()];
    cells.extend(
        rows.into_iter()
            .map(|row| vec![row.name, row.version, row.repository, row.status.to_owned()]),
    );
    let mut text = table_within(&cells, arguments.max_col_width);
    text.push('\n');
    for line in strangers(&chart, Path::new(&path), &limits) {
        text += &line;
        text.push('\n');
    }
    context.ui.result(text)?;
    Ok(Exit::Done)
}

/// Brings in what a chart asks for, as `ichor chart dependency update`.
pub(super) fn update(
    chart: &Path,
    options: &Options<'_>,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    manage(chart, options, true, context)
}

/// [`update`] for a chart that is to be rendered or installed: `--dependency-update`.
pub(super) fn update_missing(
    chart: &Path,
    flags: &ChartFlags,
    limits: &Limits,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let keyring = flags.keyring(context.environment);
    let options = Options::new(&flags.server, &flags.files, &keyring, limits);
    update(chart, &options, context)
}

fn manage(
    chart: &Path,
    options: &Options<'_>,
    is_update: bool,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let settings = options.files.settings(context.environment);
    let transport = transport();
    let registry = options.server.registry(&*transport, &settings);
    let downloads = downloader(
        &*transport,
        &settings,
        &registry,
        options.keyring,
        options.verify,
        options.limits,
        context,
    );
    let now_text = now_text(context.environment);
    let (mut messages, mut warnings, mut written) = (String::new(), Vec::new(), Ok(()));
    let debug = context.global.debug;
    let result = {
        let ui = &mut *context.ui;
        let mut out = |text: &str| {
            if options.told && written.is_ok() {
                written = ui.result(text).and_then(|()| ui.finish());
            }
        };
        let mut manager = Manager {
            chart,
            downloads,
            skip_refresh: options.skip_refresh,
            now_text: &now_text,
            limits: *options.limits,
            debug,
            out: &mut out,
            messages: &mut messages,
            warnings: &mut warnings,
        };
        if is_update { manager.update() } else { manager.build() }
    };
    written?;
    print_warnings(context.ui, &warnings);
    tell(&messages, context);
    result.map_err(|error| failed(&error, &error_chain(&error)))
}
