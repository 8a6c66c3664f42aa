//! `ichor release list`, as `cmd/helm/list.go` and `pkg/action/list.go`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use clap::Args;
use goyaml::{Map, Value};
use helm_rs::release::{Status, Summary};
use helm_rs::render::time::Zone;

use super::selector::Selector;
use super::source::{Listed, SourceFlags};
use super::table::table;
use super::time;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print names only; --quiet does the same, as in Helm
    #[arg(long)]
    short: bool,
    /// Print no headers
    #[arg(long)]
    no_headers: bool,
    /// Layout of times, as Go writes it
    #[arg(long, value_name = "LAYOUT", default_value = "", hide_default_value = true)]
    time_format: String,
    /// Sort by date
    #[arg(short, long)]
    date: bool,
    /// Reverse the order
    #[arg(short, long)]
    reverse: bool,
    /// Releases in every state
    #[arg(short, long)]
    all: bool,
    /// Uninstalled releases whose history was kept
    #[arg(long)]
    uninstalled: bool,
    /// Superseded revisions
    #[arg(long)]
    superseded: bool,
    /// Releases that are being uninstalled
    #[arg(long)]
    uninstalling: bool,
    /// Deployed releases
    #[arg(long)]
    deployed: bool,
    /// Failed releases
    #[arg(long)]
    failed: bool,
    /// Pending releases
    #[arg(long)]
    pending: bool,
    /// Maximum number of releases; 0 is all
    #[arg(
        short,
        long,
        value_name = "NUMBER",
        default_value_t = 256,
        allow_negative_numbers = true
    )]
    max: i64,
    /// Releases to leave out at the beginning
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    offset: usize,
    /// Regular expression that names must match
    #[arg(short, long, value_name = "EXPRESSION", default_value = "", hide_default_value = true)]
    filter: String,
    /// Labels that the record's object must have
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        default_value = "",
        hide_default_value = true
    )]
    selector: String,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    source: SourceFlags,
}

impl Arguments {
    /// `SetStateMask`: the states to show.
    fn states(&self) -> Vec<Status> {
        if self.all {
            // Helm's mask of all states does not have "unknown".
            return Status::ALL.into_iter().filter(|status| *status != Status::Unknown).collect();
        }
        let wanted = |status: &Status| match status {
            Status::Deployed => self.deployed,
            Status::Uninstalled => self.uninstalled,
            Status::Uninstalling => self.uninstalling,
            Status::Superseded => self.superseded,
            Status::Failed => self.failed,
            status => status.is_pending() && self.pending,
        };
        let states: Vec<Status> = Status::ALL.into_iter().filter(wanted).collect();
        if states.is_empty() { vec![Status::Deployed, Status::Failed] } else { states }
    }
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let selector = Selector::parse(&arguments.selector).map_err(CommandError::new)?;
    let filter = match arguments.filter.as_str() {
        "" => None,
        pattern => Some(super::selector::Filter::parse(pattern).map_err(CommandError::new)?),
    };
    let reading = arguments.source.list(context)?;
    // Helm passes over records of a cluster that it cannot read.
    let complete =
        if arguments.source.is_live() { reading.check_inputs() } else { reading.check_whole() };
    let mut releases = reading.made;
    releases
        .retain(|listed| filter.as_ref().is_none_or(|filter| filter.matches(&listed.summary.name)));
    let states = arguments.states();
    if states != [Status::Superseded] {
        releases = latest(releases);
    }
    releases.retain(|listed| states.contains(&listed.summary.info.status()));
    releases.retain(|listed| selector.matches(&listed.labels));
    sort(&mut releases, arguments.date, arguments.reverse);
    releases.dedup_by(|a, b| a.is_same(b));
    let limit = match usize::try_from(arguments.max) {
        Ok(0) | Err(_) => usize::MAX,
        Ok(limit) => limit,
    };
    let releases: Vec<Listed> = releases.into_iter().skip(arguments.offset).take(limit).collect();
    let names = arguments.short || context.global.quiet;
    let text = if names {
        names_only(&releases, arguments.output)?
    } else {
        full(&releases, arguments, &context.environment.zone())?
    };
    context.ui.result(text)?;
    // What could be read is printed, and is not all.
    complete.map(|()| Exit::Done)
}

/// `filterLatestReleases`: of every release its last revision; of two equal ones the later read.
fn latest(releases: Vec<Listed>) -> Vec<Listed> {
    let mut last: BTreeMap<(String, String), Listed> = BTreeMap::new();
    for listed in releases {
        match last.entry((listed.summary.namespace.clone(), listed.summary.name.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(listed);
            }
            Entry::Occupied(mut entry) => {
                if entry.get().summary.revision <= listed.summary.revision {
                    entry.insert(listed);
                }
            }
        }
    }
    last.into_values().collect()
}

/// As Helm sorts; what is equal there, and in any order, is ordered by name, namespace and
/// revision here.
fn sort(releases: &mut [Listed], by_date: bool, reverse: bool) {
    releases.sort_by(|a, b| {
        let key = |listed: &Listed| {
            (listed.summary.name.clone(), listed.summary.namespace.clone(), listed.summary.revision)
        };
        key(a).cmp(&key(b))
    });
    if by_date {
        let seconds = |listed: &Listed| {
            time::read(&listed.summary.info.last_deployed)
                .map_or(i64::MIN, |time| time.unix_seconds())
        };
        releases.sort_by_key(seconds);
    }
    if reverse {
        releases.reverse();
    }
}

/// `formatChartName`.
pub(super) fn chart_name(summary: &Summary) -> String {
    if summary.has_chart {
        format!("{}-{}", summary.chart, summary.chart_version)
    } else {
        "MISSING".to_owned()
    }
}

/// `formatAppVersion`.
pub(super) fn app_version(summary: &Summary) -> String {
    if summary.has_chart { summary.app_version.clone() } else { "MISSING".to_owned() }
}

fn names_only(releases: &[Listed], output: Output) -> Result<String, CommandError> {
    let names: Vec<Value> =
        releases.iter().map(|listed| Value::from(listed.summary.name.as_str())).collect();
    Ok(match output {
        Output::Table => {
            releases.iter().flat_map(|listed| [listed.summary.name.as_str(), "\n"]).collect()
        }
        Output::Json => {
            format!("{}\n", goyaml::json::to_json(&Value::Seq(names)).map_err(CommandError::new)?)
        }
        Output::Yaml => goyaml::to_yaml(&Value::Seq(names)).map_err(CommandError::new)?,
    })
}

/// The fields of `releaseElement` in Go's order, which JSON keeps.
fn fields(listed: &Listed, layout: &str, local: &Zone) -> [(&'static str, String); 7] {
    let summary = &listed.summary;
    let updated = match time::read_in(&summary.info.last_deployed, local) {
        None => "-".to_owned(),
        Some(time) if layout.is_empty() => time.to_text(),
        Some(time) => time::format(&time, layout),
    };
    [
        ("name", summary.name.clone()),
        ("namespace", summary.namespace.clone()),
        ("revision", summary.revision.to_string()),
        ("updated", updated),
        ("status", summary.info.status_text.clone()),
        ("chart", chart_name(summary)),
        ("app_version", app_version(summary)),
    ]
}

fn full(releases: &[Listed], arguments: &Arguments, local: &Zone) -> Result<String, CommandError> {
    let rows = releases.iter().map(|listed| fields(listed, &arguments.time_format, local));
    let values =
        |row: [(&'static str, String); 7]| row.map(|(name, text)| (name, Value::from(text)));
    Ok(match arguments.output {
        Output::Table => {
            let heads =
                ["NAME", "NAMESPACE", "REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION"];
            let mut table_rows = Vec::new();
            if !arguments.no_headers {
                table_rows.push(heads.map(str::to_owned).to_vec());
            }
            table_rows.extend(rows.map(|row| row.map(|(_, text)| text).to_vec()));
            table(&table_rows)
        }
        Output::Json => super::ordered_json(rows.map(values)),
        Output::Yaml => {
            let items = rows.map(|row| Value::Map(Map::from_iter(values(row)))).collect();
            goyaml::to_yaml(&Value::Seq(items)).map_err(CommandError::new)?
        }
    })
}
