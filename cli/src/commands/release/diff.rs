//! `ichor release diff`: two revisions, two files, or a revision and its chart rendered now.

mod text;

use std::cell::OnceCell;
use std::path::Path;

use clap::{Args, ValueEnum};
use helm_rs::action::generated::generated_leaves;
use helm_rs::action::template::Options;
use helm_rs::error_chain;
use helm_rs::release::compare::{Comparison, Side, compare};
use helm_rs::release::redact::Sensitive;
use helm_rs::values::{Nulls, coalesce_tables};

use super::source::SourceFlags;
use super::stored::{self, Found};
use crate::commands::Context;
use crate::commands::chart::options::{LimitFlags, ValueFlags, capabilities};
use crate::commands::chart::render::RenderFlags;
use crate::commands::chart::source::ChartFlags;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

pub(super) const EXAMPLES: &str = "\
A and B are a release's name (its last revision), NAME:REVISION, or a file with a record; B may be
a revision of A's release alone. Without B, A is compared with its chart, or that of --chart,
rendered now with its values and those given; leaves that are generated anew are left out.

Examples:
  ichor release diff web:3 4 --from dump.yaml
  ichor release diff old/web.yaml new/web.yaml --part values --leaves
  ichor release diff web --chart ./web-2.0.0.tgz -f values.yaml --from dump.yaml
  ichor release diff web:3 web:4 --from dump.yaml --output json

Exit codes:
  0  no differences
  1  an error
  2  there are differences";

/// A part of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// The chart's files and default values.
    Chart,
    /// The user-supplied values.
    Values,
    /// Objects.
    Manifest,
    /// Hooks.
    Hooks,
    /// Notes.
    Notes,
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to compare from
    #[arg(value_name = "A")]
    old: String,
    /// What to compare with; A's chart rendered now when not given
    #[arg(value_name = "B")]
    new: Option<String>,
    /// Only this part (repeatable)
    #[arg(long = "part", value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// Print leaves with their old and new values instead of lines of text
    #[arg(long)]
    leaves: bool,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// Print credentials as they are
    #[arg(long)]
    show_secrets: bool,
    /// Chart to render instead of the one in the record: a folder, an archive or a pinned name
    #[arg(long, value_name = "CHART", conflicts_with = "new")]
    chart: Option<String>,
    /// Render with the given values alone, not with the record's
    #[arg(long, conflicts_with = "new")]
    reset_values: bool,
    /// Kubernetes version that templates see
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// API version that templates see besides the usual ones (repeatable, comma-separated)
    #[arg(short, long, value_name = "VERSION")]
    api_versions: Vec<String>,
    #[command(flatten)]
    values: ValueFlags,
    #[command(flatten)]
    chart_source: ChartFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    render: RenderFlags,
    #[command(flatten)]
    source: SourceFlags,
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let old = find(&arguments.old, None, &arguments.source, context)?;
    let old_side = side(&old)?;
    let (new_title, new_side) = match arguments.new.take() {
        Some(new) => {
            let new = find(&new, Some(&old.summary.name), &arguments.source, context)?;
            (new.title(), side(&new)?)
        }
        None => arguments.rendered(&old, context)?,
    };
    let mut comparison = compare(&old_side, &new_side, arguments.show_secrets);
    keep(&arguments.parts, &mut comparison);
    let titles = (old.title(), new_title);
    let is_empty = comparison.is_empty();
    let printed = match (arguments.output, arguments.leaves) {
        (Output::Table, true) => context.ui.painted_diff(&text::leaves(&titles, &comparison), true),
        (Output::Table, false) => {
            context.ui.painted_diff(&text::unified(&titles, &comparison), false)
        }
        _ => String::new(),
    };
    let value = text::structured(&titles, &comparison);
    write_structured(context.ui, arguments.output, &value, printed.as_bytes())?;
    Ok(if is_empty { Exit::Done } else { Exit::No })
}

/// What an argument means: a file that is there, `NAME:REVISION`, `NAME`, or a revision alone.
fn find(
    argument: &str,
    release: Option<&str>,
    source: &SourceFlags,
    context: &mut Context<'_>,
) -> Result<Found, CommandError> {
    let revision = |text: &str| text.parse::<i64>().ok().filter(|revision| *revision > 0);
    if argument == "-" || argument.contains('/') || Path::new(argument).is_file() {
        return stored::in_file(argument, source, context);
    }
    if let Some((name, number)) = argument.rsplit_once(':')
        && let Some(revision) = revision(number)
    {
        return stored::find(name, revision, source, context);
    }
    if let (Some(name), Some(revision)) = (release, revision(argument)) {
        return stored::find(name, revision, source, context);
    }
    stored::find(argument, 0, source, context)
}

fn side(found: &Found) -> Result<Side, CommandError> {
    Side::of_record(&found.record()?).map_err(|error| found.error(&error))
}

fn keep(parts: &[Part], comparison: &mut Comparison) {
    if parts.is_empty() {
        return;
    }
    let has = |part| parts.contains(&part);
    if !has(Part::Chart) {
        comparison.chart.clear();
        comparison.chart_values = None;
    }
    if !has(Part::Values) {
        comparison.values = None;
    }
    if !has(Part::Manifest) {
        comparison.manifest.clear();
    }
    if !has(Part::Hooks) {
        comparison.hooks.clear();
    }
    if !has(Part::Notes) {
        comparison.notes = None;
    }
}

impl Arguments {
    /// What an upgrade now would make of a revision.
    fn rendered(
        &mut self,
        old: &Found,
        context: &mut Context<'_>,
    ) -> Result<(String, Side), CommandError> {
        let fail = |error: &dyn std::error::Error| CommandError::new(error_chain(error));
        let record = old.record()?;
        let mut warnings = Vec::new();
        let stored_secrets = OnceCell::new();
        let mut values = std::mem::take(&mut self.values).merge(context.environment)?;
        if !self.reset_values {
            // As `--reuse-values`: what is given wins.
            let stored =
                record.user_values().map_err(|error| old.error(&error))?.unwrap_or_default();
            values = coalesce_tables(&values, &stored, Nulls::Remove, &mut warnings)
                .map_err(|error| fail(&error))?;
        }
        let (mut chart, title) = if let Some(name) = &self.chart {
            (self.chart_source.load(name, &self.limits, false, context)?, name.clone())
        } else {
            let chart = record.chart().map_err(|error| old.error(&error))?;
            let missing = helm_rs::values::missing_dependencies(&chart);
            if !missing.is_empty() {
                context.ui.warning(format!(
                    "warning: records do not hold subcharts; the chart asks for {}",
                    missing.join(", ")
                ));
            }
            (chart, "its chart".to_owned())
        };
        let options = Options {
            release_name: old.summary.name.clone(),
            namespace: old.summary.namespace.clone(),
            is_upgrade: true,
            revision: old.summary.revision.saturating_add(1),
            capabilities: capabilities(self.kube_version.as_deref(), &self.api_versions)?,
            ..Options::default()
        };
        let given_secrets = Sensitive::of(std::iter::once(&values).chain(&chart.values));
        let show_secrets = self.show_secrets;
        // Errors and warnings may quote values.
        let scrub = |text: String| {
            if show_secrets {
                return text;
            }
            let stored = stored_secrets.get_or_init(|| Sensitive::of_record(&record));
            stored.scrub(&given_secrets.scrub(&text))
        };
        let mut first = self.render.host(context.environment)?;
        let mut second = self.render.other_host(context.environment)?;
        let generated = generated_leaves(
            &self.render.engine(),
            &mut chart,
            &values,
            &options,
            [&mut first, &mut second],
            &mut warnings,
        );
        for warning in &warnings {
            context.ui.warning(scrub(warning.to_string()));
        }
        let generated = generated.map_err(|error| CommandError::new(scrub(error_chain(&error))))?;
        let side = Side::of_rendering(&chart, &values, &generated.rendering, generated.leaves)
            .map_err(|error| fail(&error))?;
        Ok((format!("{title} rendered now"), side))
    }
}
