//! `ichor chart template`.

mod files;

use std::borrow::Cow;
use std::ffi::OsString;

use clap::Args;
use helm_rs::action::template::{self, Options, Rendering};
use helm_rs::chart::Chart;
use helm_rs::error_chain;
use helm_rs::manifest::{Hook, hook_manifest, select_manifests};

use self::files::{Folder, write_rendering};
#[cfg(not(feature = "network"))]
use super::options::NamespaceFlags as ClusterFlags;
use super::options::{LimitFlags, ValueFlags, capabilities, check_chart, print_warnings};
use super::render::{RenderFlags, name_from_template, release_name};
use super::source::ChartFlags;
use crate::commands::{Context, post_render};
#[cfg(feature = "network")]
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;

/// What Helm appends when it has something that `--debug` would print.
const DEBUG_ADVICE: &str = "\n\nUse --debug flag to render out invalid YAML";

#[derive(Debug, Args)]
#[command(
    override_usage = "ichor chart template [NAME] CHART [OPTIONS]",
    after_help = concat!(
        "Prints what `helm template` of Helm 3.21.4 prints for the same chart and flags.\n",
        "Charts that generate keys or read the clock give other output each time, unless --seed\n",
        "and --now are given.\n\n",
        "Examples:\n",
        "  ichor chart template ./my-chart\n",
        "  ichor chart template my-release ./my-chart -n web -f values.yaml --set replicas=3\n",
        "  ichor chart template cilium cilium --version 1.20.0 -n kube-system --include-crds\n",
        "  ichor chart template ./my-chart -s 'templates/*.yaml' --kube-version 1.33.0\n",
        "  ichor chart template ./my-chart --output-dir rendered --seed 1 --now 2026-01-01T00:00:00Z\n\n",
        "Exit codes:\n",
        "  0  done\n",
        "  1  an error, as in Helm"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release (`release-name` if left out), then the chart: a folder, an archive,
    /// or the name of a pinned chart
    #[arg(value_name = "[NAME] CHART", num_args = 0.., hide_short_help = false)]
    names: Vec<OsString>,

    /// Generate the name
    #[arg(short, long)]
    generate_name: bool,
    /// Name the release by a template
    #[arg(long, value_name = "TEMPLATE")]
    name_template: Option<String>,
    /// Print only the manifests of these templates (repeatable)
    #[arg(short = 's', long, value_name = "PATTERN")]
    show_only: Vec<String>,
    /// Print the manifests under crds/ too
    #[arg(long)]
    include_crds: bool,
    /// Do not print hooks
    #[arg(long)]
    no_hooks: bool,
    /// Do not print test hooks
    #[arg(long)]
    skip_tests: bool,
    /// Set .Release.IsUpgrade instead of .Release.IsInstall
    #[arg(long)]
    is_upgrade: bool,
    /// Write one file per template into a folder instead of printing
    #[arg(long, value_name = "FOLDER")]
    output_dir: Option<String>,
    /// Put the release's name into the folder's path
    #[arg(long)]
    release_name: bool,
    /// Program that gets the manifests and prints what replaces them
    #[arg(long, value_name = "PROGRAM", help_heading = "Rendering")]
    post_renderer: Option<String>,
    /// Argument of that program (repeatable)
    #[arg(long, value_name = "ARGUMENT", help_heading = "Rendering")]
    post_renderer_args: Vec<String>,
    /// Kubernetes version that templates see
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// API version that templates see besides the usual ones (repeatable, comma-separated)
    #[arg(short, long, value_name = "VERSION")]
    api_versions: Vec<String>,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,
    /// Check the objects on the cluster, whose version and APIs templates see
    #[arg(long)]
    validate: bool,
    /// Bring in missing dependencies first: `ichor chart dependency update`
    #[arg(long)]
    dependency_update: bool,

    #[command(flatten)]
    values: ValueFlags,
    #[command(flatten)]
    render: RenderFlags,
    #[command(flatten)]
    source: ChartFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    ignored: Ignored,
}

/// Flags that `helm template` accepts and that change nothing in what it prints.
#[derive(Debug, Args)]
struct Ignored {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    dry_run: Option<String>,
    #[arg(short, long, hide = true)]
    labels: Vec<String>,
    #[arg(long, hide = true)]
    skip_crds: bool,
    #[arg(long, hide = true)]
    create_namespace: bool,
    #[arg(long, hide = true)]
    force: bool,
    #[arg(long, hide = true)]
    replace: bool,
    #[arg(long, hide = true)]
    timeout: Option<String>,
    #[arg(long, hide = true)]
    wait: bool,
    #[arg(long, hide = true)]
    wait_for_jobs: bool,
    #[arg(long, hide = true)]
    description: Option<String>,
    #[arg(long, hide = true)]
    disable_openapi_validation: bool,
    #[arg(long, hide = true)]
    atomic: bool,
    #[arg(long, hide = true)]
    render_subchart_notes: bool,
    #[arg(long, hide = true)]
    hide_notes: bool,
    #[arg(long, hide = true)]
    take_ownership: bool,
}

impl Ignored {
    /// `validateDryRunOptionFlag`
    fn check_dry_run(&self) -> Result<(), CommandError> {
        match self.dry_run.as_deref() {
            None | Some("" | "false" | "true" | "none" | "client" | "server") => Ok(()),
            Some(_) => Err(CommandError::new(
                "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server",
            )),
        }
    }

    /// Labels that Helm's storage uses itself.
    fn check_labels(&self) -> Result<(), CommandError> {
        const SYSTEM: [&str; 6] = ["name", "owner", "status", "version", "createdAt", "modifiedAt"];
        let labels = flags::string_map("-l, --labels", &self.labels)?;
        if labels.iter().any(|(key, _)| SYSTEM.contains(&key.as_str())) {
            return Err(CommandError::new(format_args!(
                "user supplied labels contains system reserved label name. System labels: [{}]",
                SYSTEM.join(" ")
            )));
        }
        Ok(())
    }
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let post_renderer = arguments
        .post_renderer
        .as_deref()
        .filter(|program| !program.is_empty())
        .map(|program| post_render::find(program, context.environment))
        .transpose()?;
    if arguments.names.is_empty() {
        return Err(CommandError::new(
            "\"ichor chart template\" requires at least 1 argument\n\n\
             Usage:  ichor chart template [NAME] [CHART] [flags]",
        ));
    }
    let capabilities = capabilities(arguments.kube_version.as_deref(), &arguments.api_versions)?;
    let (release_name, chart_name) = arguments.name_and_chart(context)?;

    let values = std::mem::take(&mut arguments.values).merge(context.environment)?;
    let mut chart = arguments.source.load(
        &chart_name,
        &arguments.limits,
        arguments.dependency_update,
        context,
    )?;
    check_chart(&chart, true, context)?;
    arguments.ignored.check_dry_run()?;
    arguments.ignored.check_labels()?;

    let options = Options {
        release_name,
        namespace: arguments.cluster.namespace(context.environment),
        is_upgrade: arguments.is_upgrade,
        revision: 1,
        capabilities,
        skip_schema_validation: arguments.skip_schema_validation,
        subchart_notes: arguments.ignored.render_subchart_notes,
        include_crds: arguments.include_crds,
    };
    let mut warnings = Vec::new();
    let mut host = arguments.render.host(context.environment)?;
    let engine = arguments.render.engine();
    let result = if arguments.needs_cluster() {
        arguments.on_cluster(
            &engine,
            &mut chart,
            &values,
            options.clone(),
            &mut host,
            &mut warnings,
            context,
        )?
    } else {
        template::template(&engine, &mut chart, &values, &options, &mut host, &mut warnings)
    };
    print_warnings(context.ui, &warnings);
    print_warnings(context.ui, &host.engine.log);
    let output = Printer { arguments: &arguments, options: &options, chart: &chart, post_renderer };
    match result {
        Ok(rendering) => {
            let exit = output.print(&rendering, context);
            // The process ends here: the system takes all memory back at once, where dropping
            // tens of thousands of values one by one costs a tenth of the whole run.
            std::mem::forget((engine, rendering, values, host));
            std::mem::forget(chart);
            exit
        }
        Err(error) => {
            let mut text = error_text(&error);
            if let template::Error::Render(error) = &error {
                if let Some(excerpt) = &error.excerpt {
                    context.ui.debug(format!("{}\n{}", error.template, excerpt.trim_end()));
                }
                if error.is_limit {
                    return Err(CommandError::from_bytes(text)
                        .hint("raise the limit with --max-output or --max-time"));
                }
            }
            let Some(partial) = error.partial() else { return Err(CommandError::from_bytes(text)) };
            if !context.global.debug {
                text.extend_from_slice(DEBUG_ADVICE.as_bytes());
                return Err(CommandError::from_bytes(text));
            }
            output.print_partial(&partial, context)?;
            Err(CommandError::from_bytes(text))
        }
    }
}

/// Helm's text of a failed render, its bytes unchanged.
pub(crate) fn error_text(error: &template::Error) -> Vec<u8> {
    match error {
        template::Error::Render(error) => error.message.to_vec(),
        error => error_chain(error).into_bytes(),
    }
}

impl Arguments {
    /// Whether the cluster is asked anything.
    fn needs_cluster(&self) -> bool {
        self.validate
            || matches!(self.ignored.dry_run.as_deref(), Some("server" | "none" | "false"))
    }

    /// Renders with `lookup` on the cluster where `--dry-run=server` asks for it, and with the
    /// cluster's own version and checks where `--validate` does.
    #[cfg(feature = "network")]
    #[expect(clippy::too_many_arguments, reason = "each is one input of a rendering")]
    fn on_cluster(
        &self,
        engine: &helm_rs::render::Engine,
        chart: &mut Chart,
        values: &goyaml::Map,
        mut options: Options,
        host: &mut helm_rs::render::Host,
        warnings: &mut Vec<helm_rs::chart::Warning>,
        context: &mut Context<'_>,
    ) -> Result<Result<Rendering, template::Error>, CommandError> {
        use helm_rs::action::{ActionError, ClusterLookup, ReleaseOptions, Session, install};

        use crate::commands::release::write::run;

        let looks_up = self.needs_cluster()
            && matches!(self.ignored.dry_run.as_deref(), Some("server" | "none" | "false"));
        let release = ReleaseOptions {
            name: options.release_name.clone(),
            namespace: options.namespace.clone(),
            disable_validation: self.ignored.disable_openapi_validation,
            take_ownership: self.ignored.take_ownership,
            ..ReleaseOptions::default()
        };
        let (result, _) = run(&self.cluster, context, engine, async |session| {
            if self.validate {
                let version = session.reach().await?;
                let discovery = session.discover(false).await?;
                options.capabilities = Session::capabilities(version, &discovery);
            }
            if looks_up {
                let cluster = std::sync::Arc::clone(&session.cluster);
                host.engine.lookup = Some(Box::new(ClusterLookup::new(cluster)));
            }
            let rendering =
                match template::template(engine, chart, values, &options, host, warnings) {
                    Ok(rendering) => rendering,
                    Err(error) => return Ok(Err(error)),
                };
            if self.validate {
                let upgrade = options.is_upgrade;
                install::validate(session, &rendering.manifest, &release, upgrade).await?;
            }
            Ok::<_, ActionError>(Ok(rendering))
        })?;
        result.map_err(|error| CommandError::new(error_chain(&error)))
    }

    #[cfg(not(feature = "network"))]
    #[expect(clippy::unused_self, reason = "as with a network")]
    #[expect(clippy::too_many_arguments, reason = "as the other one")]
    fn on_cluster(
        &self,
        _: &helm_rs::render::Engine,
        _: &mut Chart,
        _: &goyaml::Map,
        _: Options,
        _: &mut helm_rs::render::Host,
        _: &mut Vec<helm_rs::chart::Warning>,
        _: &mut Context<'_>,
    ) -> Result<Result<Rendering, template::Error>, CommandError> {
        Err(CommandError::new("this program was built without the cluster client"))
    }

    /// `Install.NameAndChart`, where `helm template` presets the name.
    fn name_and_chart(&self, context: &Context<'_>) -> Result<(String, String), CommandError> {
        let template = self.name_template.as_deref().filter(|template| !template.is_empty());
        let text = |argument: &OsString| argument.to_string_lossy().into_owned();
        match self.names.as_slice() {
            [] => Err(CommandError::new("no chart given")),
            [chart] => {
                let name = match template {
                    Some(template) => name_from_template(template, &self.render, context)?,
                    None => "release-name".to_owned(),
                };
                Ok((name, text(chart)))
            }
            [_, _] if self.generate_name => {
                Err(CommandError::new("cannot set --generate-name and also specify a name"))
            }
            [_, _] if template.is_some() => {
                Err(CommandError::new("cannot set --name-template and also specify a name"))
            }
            [name, chart] => Ok((release_name(name.as_encoded_bytes())?, text(chart))),
            [_, _, more @ ..] => Err(CommandError::new(format_args!(
                "expected at most two arguments, unexpected arguments: {}",
                more.iter().map(text).collect::<Vec<_>>().join(", ")
            ))),
        }
    }
}

/// Brings a rendering to where the user wants it.
struct Printer<'a> {
    arguments: &'a Arguments,
    options: &'a Options,
    chart: &'a Chart,
    post_renderer: Option<std::path::PathBuf>,
}

impl Printer<'_> {
    fn print(
        &self,
        rendering: &Rendering,
        context: &mut Context<'_>,
    ) -> Result<Exit, CommandError> {
        let mut folder = self.folder();
        let mut manifest: Cow<'_, [u8]> = match &mut folder {
            Some(folder) => {
                let crds = if self.options.include_crds { self.chart.crds() } else { Vec::new() };
                write_rendering(folder, &crds, &rendering.manifests, context.ui)?;
                Cow::default()
            }
            None => Cow::Borrowed(rendering.manifest.as_slice()),
        };
        if let Some(program) = &self.post_renderer {
            let rendered = post_render::run(program, &self.arguments.post_renderer_args, &manifest);
            manifest = match rendered {
                Ok(manifest) => Cow::Owned(manifest),
                Err(why) => {
                    let mut text = b"error while running post render on files: ".to_vec();
                    text.extend_from_slice(&why);
                    if context.global.debug {
                        // Helm has lost the manifests by now, but not the hooks.
                        self.finish(&[], rendering, folder, context)?;
                    } else {
                        text.extend_from_slice(DEBUG_ADVICE.as_bytes());
                    }
                    return Err(CommandError::from_bytes(text));
                }
            };
        }
        self.finish(&manifest, rendering, folder, context)?;
        Ok(Exit::Done)
    }

    /// What `--debug` prints of a failed render.
    fn print_partial(
        &self,
        partial: &Rendering,
        context: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        self.finish(&partial.manifest, partial, self.folder(), context)
    }

    fn finish(
        &self,
        manifest: &[u8],
        rendering: &Rendering,
        folder: Option<Folder>,
        context: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        let skip = |hook: &&Hook| self.arguments.skip_tests && hook.is_test();
        let mut hooks: Vec<&Hook> = rendering.hooks.iter().filter(|hook| !skip(hook)).collect();
        if self.arguments.no_hooks {
            hooks.clear();
        }
        let document = match folder {
            None => hook_manifest(manifest, hooks),
            Some(mut folder) => {
                for hook in hooks {
                    folder.write_hook(&hook.path, &hook.manifest, context.ui)?;
                }
                hook_manifest(manifest, [])
            }
        };
        if self.arguments.show_only.is_empty() {
            return context.ui.result(document);
        }
        let shown =
            select_manifests(&document, &self.arguments.show_only).map_err(CommandError::new)?;
        context.ui.result(shown)
    }

    fn folder(&self) -> Option<Folder> {
        let output_dir = self.arguments.output_dir.as_deref().filter(|dir| !dir.is_empty())?;
        let name = self.arguments.release_name.then_some(self.options.release_name.as_str());
        Some(Folder::new(output_dir, name))
    }
}
