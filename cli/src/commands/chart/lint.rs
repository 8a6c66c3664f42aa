//! `ichor chart lint`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use goyaml::{Map, Value};
use helm_rs::action::lint::{self, Options, Report, Severity};
use helm_rs::{error_chain, gopath};

use super::options::{LimitFlags, NamespaceFlags, ValueFlags, capabilities};
use super::render::RenderFlags;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Prints what `helm lint` of Helm 3.21.4 prints.\n\n",
    "Examples:\n",
    "  ichor chart lint ./my-chart\n",
    "  ichor chart lint ./my-chart --strict -f values.yaml --kube-version 1.33.0\n",
    "  ichor chart lint ./my-chart --output json | jq '.charts[].messages'\n\n",
    "Exit codes:\n",
    "  0  no chart failed\n",
    "  1  a chart failed, or an error, as in Helm"
))]
pub(crate) struct Arguments {
    /// Folders or archives of charts
    #[arg(default_value = ".")]
    charts: Vec<String>,
    /// Fail on warnings
    #[arg(long)]
    strict: bool,
    /// Check subcharts too
    #[arg(long)]
    with_subcharts: bool,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,
    /// Kubernetes version that templates see and deprecations are checked for
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<String>,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    values: ValueFlags,
    #[command(flatten)]
    namespace: NamespaceFlags,
    #[command(flatten)]
    render: RenderFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let mut paths = arguments.charts;
    let given = capabilities(arguments.kube_version.as_deref(), &[])?;
    if arguments.with_subcharts {
        for path in paths.clone() {
            subcharts(Path::new(&gopath::join(&path, "charts")), 0, &mut paths);
        }
    }
    let values = arguments.values.merge(context.environment)?;
    let options = Options {
        namespace: arguments.namespace.namespace(context.environment),
        kube_version: given.kube_version,
        skip_schema_validation: arguments.skip_schema_validation,
        limits: arguments.limits.limits(),
    };
    let lowest = if arguments.strict { Severity::Warning } else { Severity::Error };
    let quiet = context.global.quiet;
    let engine = arguments.render.engine();
    let mut text = String::new();
    let mut entries = Vec::new();
    let mut failed = 0;
    let mut noteworthy = false;
    for path in &paths {
        let mut host = arguments.render.host(context.environment)?;
        host.engine.lint = true;
        let mut warnings = Vec::new();
        let result =
            lint::lint(&engine, Path::new(path), &values, &options, &mut host, &mut warnings);
        super::options::print_warnings(context.ui, &warnings);
        super::options::print_warnings(context.ui, &host.engine.log);
        let (report, error) = match result {
            Ok(report) => (report, None),
            Err(error) => (Report::default(), Some(error_chain(&error))),
        };
        let fails = error.is_some() || report.messages.iter().any(|m| m.severity >= lowest);
        failed += usize::from(fails);
        entries.push(entry(path, &report, error.as_deref(), fails));
        let said = fails || report.messages.iter().any(|m| m.severity > Severity::Info);
        noteworthy |= said;
        if quiet && !said {
            continue;
        }
        let _ = writeln!(text, "==> Linting {path}");
        if let Some(error) = error {
            let _ = writeln!(text, "Error {error}");
        }
        for message in &report.messages {
            if !quiet || message.severity > Severity::Info {
                let _ = writeln!(text, "{message}");
            }
        }
        text.push('\n');
    }
    let summary = format!("{} chart(s) linted, {failed} chart(s) failed", paths.len());
    if failed == 0 && (!quiet || noteworthy) {
        text.push_str(&summary);
        text.push('\n');
    }
    let mut result = Map::new();
    result.insert("charts", entries);
    result.insert("failed", failed as i64);
    write_structured(context.ui, arguments.output, &Value::Map(result), text.as_bytes())?;
    if failed > 0 {
        return Err(CommandError::new(summary));
    }
    Ok(Exit::Done)
}

fn entry(path: &str, report: &Report, error: Option<&str>, failed: bool) -> Value {
    let messages: Vec<Value> = report
        .messages
        .iter()
        .map(|message| {
            let mut map = Map::new();
            map.insert("severity", message.severity.name().to_lowercase());
            map.insert("path", message.path.as_str());
            map.insert("message", message.text.as_str());
            Value::Map(map)
        })
        .collect();
    let mut map = Map::new();
    map.insert("path", path);
    map.insert("failed", failed);
    map.insert("messages", messages);
    if let Some(error) = error {
        map.insert("error", error);
    }
    Value::Map(map)
}

#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "Helm compares so")]
fn is_archive(name: &str) -> bool {
    name.ends_with(".tgz") || name.ends_with(".tar.gz")
}

/// Levels of folders that charts in charts are looked for in.
const MAX_DEPTH: usize = 100;

/// Charts below a folder, in the order of their names (`filepath.Walk`): folders that hold a
/// `Chart.yaml`, and archives.
fn subcharts(folder: &Path, depth: usize, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "Chart.yaml" {
            found.push(folder.display().to_string());
        } else if is_archive(&name) {
            found.push(path.display().to_string());
        }
        // Links are not followed.
        if path.symlink_metadata().is_ok_and(|m| m.is_dir()) && depth < MAX_DEPTH {
            subcharts(&path, depth + 1, found);
        }
    }
}
