//! A plan as a report: `--report FILE.html|.md|.json`.

use std::path::{Path, PathBuf};

use clap::Args;
use helm_rs::error_chain;
use takeover::plan::Plan;
use takeover::report::{Form, render};

use super::file;
use super::planned::LeafFlags;
use super::shared::PlanFlags;
use crate::commands::Context;
use crate::error::CommandError;
use crate::output::Output;

/// How a plan is shown, and where it is written.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct ReportFlags {
    /// Also write the plan as a report, in the form of the extension: .html, .md or .json
    #[arg(long = "report", value_name = "FILE")]
    reports: Vec<PathBuf>,
    #[command(flatten)]
    leaves: LeafFlags,
}

impl ReportFlags {
    /// Whether every report can be written, as far as that can be told before there is a plan.
    ///
    /// # Errors
    /// The extension names no form; the file cannot be written; it is another file of this command.
    pub(crate) fn check(&self, plan: &PlanFlags) -> Result<(), CommandError> {
        plan.check_files()?;
        for (index, report) in self.reports.iter().enumerate() {
            form(report)?;
            file::check(report).map_err(|why| fail(report, why))?;
            let earlier =
                self.reports.iter().take(index).map(|other| ("--report", other.as_path()));
            let same = plan.files().chain(earlier).find(|(_, other)| file::is_same(report, other));
            if let Some((flag, _)) = same {
                return Err(fail(report, format_args!("this is the file of {flag} too")));
            }
        }
        Ok(())
    }

    /// Says what was typed, so that the plan ends in the whole command that accepts it. Reports are
    /// passed on, and do not have it.
    #[cfg(feature = "controller")]
    pub(super) fn typed(&mut self, words: Vec<String>) {
        self.leaves.typed = words;
    }

    /// Prints the plan and writes its reports.
    pub(crate) fn show(
        &self,
        plan: &Plan,
        output: Output,
        context: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        self.leaves.show(plan, output, context)?;
        for report in &self.reports {
            let text = render(plan, form(report)?);
            let text = text.map_err(|error| fail(report, error_chain(&error)))?;
            file::write(report, text.as_bytes()).map_err(|why| fail(report, why))?;
            context.ui.debug(format!("report {}", report.display()));
        }
        Ok(())
    }
}

fn fail(file: &Path, why: impl std::fmt::Display) -> CommandError {
    CommandError::new(format_args!("--report {}: {why}", file.display()))
}

fn form(file: &Path) -> Result<Form, CommandError> {
    Form::of_file(file).map_err(|_| fail(file, "a report's name ends in .html, .md or .json"))
}
