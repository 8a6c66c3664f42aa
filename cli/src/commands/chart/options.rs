//! Flags that several chart commands share, and what they mean.

use std::error::Error;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use clap::Args;
use helm_rs::capabilities::{Capabilities, KubeVersion};
use helm_rs::chart::{Chart, Limits, LoadError, Warning};
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use helm_rs::values::{Options, ReadError};

use crate::commands::Context;
use crate::environment::Environment;
use crate::error::CommandError;
use crate::flags;
use crate::ui::Ui;

/// Bytes that a values file may have.
const MAX_VALUES_FILE: u64 = 256 * 1024 * 1024;

/// Where values come from.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Values")]
pub(crate) struct ValueFlags {
    /// Read values from a YAML file; `-` is standard input (repeatable, later ones win)
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    files: Vec<String>,
    /// Set values: key1=val1,key2=val2 (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Set values that are texts: key1=val1,key2=val2 (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set_string: Vec<String>,
    /// Set values to the contents of files: key1=path1,key2=path2 (repeatable)
    #[arg(long, value_name = "KEY=PATH")]
    set_file: Vec<String>,
    /// Set values that are JSON: key1=json1,key2=json2 (repeatable)
    #[arg(long, value_name = "KEY=JSON")]
    set_json: Vec<String>,
    /// Set one value to the very text: key=val (repeatable)
    #[arg(long, value_name = "KEY=TEXT")]
    set_literal: Vec<String>,
}

impl ValueFlags {
    /// The flags as they were typed.
    #[cfg(feature = "controller")]
    pub(crate) fn words(&self) -> Vec<String> {
        [
            ("--values", &self.files),
            ("--set", &self.set),
            ("--set-string", &self.set_string),
            ("--set-file", &self.set_file),
            ("--set-json", &self.set_json),
            ("--set-literal", &self.set_literal),
        ]
        .into_iter()
        .flat_map(|(flag, given)| given.iter().flat_map(move |one| [flag.to_owned(), one.clone()]))
        .collect()
    }

    /// The user's values, merged in Helm's order.
    pub(crate) fn merge(self, environment: &Environment) -> Result<goyaml::Map, CommandError> {
        let options = Options {
            value_files: flags::string_slice("-f, --values", &self.files)?,
            json_values: self.set_json,
            values: self.set,
            string_values: self.set_string,
            file_values: self.set_file,
            literal_values: self.set_literal,
        };
        let mut remote = false;
        options
            .merge(&mut |path| {
                remote |= is_remote(path);
                read_values(path, environment)
            })
            .map_err(|error| {
                let error = CommandError::new(error_chain(&error));
                if remote { error.hint("download the file and pass its path") } else { error }
            })
    }
}

pub(super) fn is_remote(path: &str) -> bool {
    ["http://", "https://", "oci://"].iter().any(|scheme| path.starts_with(scheme))
}

fn read_values(path: &str, environment: &Environment) -> Result<Vec<u8>, ReadError> {
    if path.trim() == "-" {
        return environment.read_input(MAX_VALUES_FILE).map_err(Into::into);
    }
    if is_remote(path) {
        return Err(format!("{path}: values are read from files only, not from the network").into());
    }
    read_file(path, MAX_VALUES_FILE)
}

/// A whole file, with Go's text when that fails.
fn read_file(path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
    let fail = |operation: &str, error: &std::io::Error| -> Box<dyn Error + Send + Sync> {
        format!("{operation} {path}: {}", io_text(error)).into()
    };
    let file = fs::File::open(path).map_err(|error| fail("open", &error))?;
    let mut content = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| fail("read", &error))?;
    if content.len() as u64 > limit {
        return Err(format!("{path}: larger than the limit of {limit} bytes").into());
    }
    Ok(content)
}

/// Where the namespace comes from.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct NamespaceFlags {
    /// Namespace of the release
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Kubeconfig file instead of KUBECONFIG and ~/.kube/config
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) kubeconfig: Option<String>,
    /// Context in the kubeconfig
    #[arg(long, visible_alias = "context", value_name = "NAME", hide_short_help = true)]
    pub(crate) kube_context: Option<String>,
}

impl NamespaceFlags {
    /// As in Helm: the flag, `HELM_NAMESPACE`, the kubeconfig's context, `default`.
    pub(crate) fn namespace(&self, environment: &Environment) -> String {
        self.namespace
            .clone()
            .filter(|name| !name.is_empty())
            .or_else(|| environment.text("HELM_NAMESPACE").map(str::to_owned))
            .or_else(|| self.kubeconfig_namespace(environment))
            .unwrap_or_else(|| "default".to_owned())
    }

    /// Of several kubeconfig files, the first that says something counts. A file that cannot be
    /// read says nothing.
    fn kubeconfig_namespace(&self, environment: &Environment) -> Option<String> {
        let list = match &self.kubeconfig {
            Some(path) => path.into(),
            None => environment.variable("KUBECONFIG").cloned().or_else(|| {
                Some(Path::new(environment.variable("HOME")?).join(".kube/config").into())
            })?,
        };
        let configs: Vec<goyaml::Value> = std::env::split_paths(&list)
            .filter_map(|path| fs::read(path).ok())
            .filter_map(|text| goyaml::from_yaml(&text, &goyaml::Limits::default()).ok())
            .collect();
        let text = |value: &goyaml::Value| {
            value.as_str().map(ToString::to_string).filter(|text| !text.is_empty())
        };
        let context = self
            .kube_context
            .clone()
            .or_else(|| environment.text("HELM_KUBECONTEXT").map(str::to_owned))
            .or_else(|| configs.iter().find_map(|c| text(c.get("current-context")?)))?;
        configs.iter().find_map(|config| {
            let contexts = config.get("contexts")?.as_seq()?;
            let named = contexts
                .iter()
                .find(|c| c.get("name").and_then(text).as_deref() == Some(&*context))?;
            text(named.at(&["context", "namespace"])?)
        })
    }
}

/// Bounds on what a chart may cost.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
#[expect(clippy::struct_field_names, reason = "the names are the flags'")]
pub(crate) struct LimitFlags {
    /// Bytes that a chart's files may have, unpacked
    #[arg(long, value_name = "BYTES", value_parser = flags::whole_number::<u64>, default_value_t = Limits::default().chart_size, hide_short_help = true)]
    max_chart_size: u64,
    /// Bytes that one file of a chart may have
    #[arg(long, value_name = "BYTES", value_parser = flags::whole_number::<u64>, default_value_t = Limits::default().file_size, hide_short_help = true)]
    max_file_size: u64,
    /// Bytes that a packed chart may have
    #[arg(long, value_name = "BYTES", value_parser = flags::whole_number::<u64>, default_value_t = Limits::default().archive_size, hide_short_help = true)]
    max_archive_size: u64,
    /// Files that a chart may have
    #[arg(long, value_name = "COUNT", value_parser = flags::whole_number::<usize>, default_value_t = Limits::default().file_count, hide_short_help = true)]
    max_files: usize,
}

impl LimitFlags {
    pub(crate) fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            chart_size: self.max_chart_size,
            file_size: self.max_file_size,
            archive_size: self.max_archive_size,
            file_count: self.max_files,
            directory_size: default.directory_size.max(self.max_chart_size),
            total_size: default.total_size.max(self.max_chart_size),
            ..default
        }
    }
}

pub(super) fn load_error(error: &LoadError) -> CommandError {
    let text = CommandError::new(error_chain(error));
    match error {
        LoadError::Limit { .. }
        | LoadError::ChartTooLarge { .. }
        | LoadError::FileTooLarge { .. }
        | LoadError::DirectoryFileTooLarge { .. } => text.hint(
            "if you trust the chart, raise --max-chart-size, --max-file-size, \
             --max-archive-size or --max-files",
        ),
        _ => text,
    }
}

/// Prints what Helm would log.
pub(crate) fn print_warnings(ui: &mut Ui, warnings: &[Warning]) {
    for warning in warnings {
        ui.warning(warning.to_string());
    }
}

/// The cluster that templates see.
pub(crate) fn capabilities(
    kube_version: Option<&str>,
    api_versions: &[String],
) -> Result<Capabilities, CommandError> {
    let mut capabilities = Capabilities::default();
    if let Some(text) = kube_version.filter(|text| !text.is_empty()) {
        capabilities.kube_version = KubeVersion::parse(text).map_err(|error| {
            CommandError::new(format_args!("invalid kube version '{text}': {error}"))
        })?;
    }
    capabilities.api_versions.extend(flags::string_slice("-a, --api-versions", api_versions)?);
    Ok(capabilities)
}

/// What Helm looks at once a chart is loaded: whether it can be installed, and is whole.
pub(crate) fn check_chart(
    chart: &Chart,
    installable: bool,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    if installable && !matches!(chart.metadata.chart_type.as_str(), "" | "application") {
        return Err(CommandError::new(format_args!(
            "{} charts are not installable",
            chart.metadata.chart_type
        )));
    }
    if chart.metadata.deprecated {
        context.ui.warning("WARNING: This chart is deprecated");
    }
    let missing = helm_rs::values::missing_dependencies(chart);
    if !missing.is_empty() {
        return Err(CommandError::new(format_args!(
            "An error occurred while checking for chart dependencies. You may need to run \
             `helm dependency build` to fetch missing dependencies: found in Chart.yaml, but \
             missing in charts/ directory: {}",
            missing.join(", ")
        )));
    }
    Ok(())
}
