//! A plan as a report: `--report FILE.html|.md|.json`.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use takeover::plan::{Look, Plan, to_terminal};
use takeover::report::{Form, render};

use super::shared::print_plan;
use crate::commands::Context;
use crate::error::CommandError;
use crate::output::Output;

/// Columns where the environment names none.
const WIDTH: usize = 100;

/// How a plan is shown, and where it is written.
#[derive(Debug, Default, Args)]
pub(crate) struct ReportFlags {
    /// Also write the plan as a report, in the form of the extension: .html, .md or .json
    #[arg(long = "report", value_name = "FILE")]
    reports: Vec<PathBuf>,
    /// Show every leaf, those of controllers and the server too
    #[arg(long)]
    show_all: bool,
}

impl ReportFlags {
    /// Whether every report can be written, as far as that can be told before there is a plan.
    ///
    /// # Errors
    /// The extension names no form, the file is a directory or its directory is missing.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        self.reports.iter().try_for_each(|file| place(file).map(|_| ()))
    }

    /// Prints the plan and writes its reports.
    pub(crate) fn show(
        &self,
        plan: &Plan,
        output: Output,
        context: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        if matches!(output, Output::Table) {
            let columns = context.environment.text("COLUMNS").and_then(|text| text.parse().ok());
            let look = Look {
                all: self.show_all || context.global.verbose,
                colour: context.ui.has_colour(),
                width: columns.unwrap_or(WIDTH),
            };
            context.ui.result(to_terminal(plan, look))?;
        } else {
            print_plan(plan, output, context)?;
        }
        for file in &self.reports {
            write(plan, file)?;
            context.ui.debug(format!("report {}", file.display()));
        }
        Ok(())
    }
}

fn fail(file: &Path, why: impl std::fmt::Display) -> CommandError {
    CommandError::new(format_args!("--report {}: {why}", file.display()))
}

/// The form of a report and the directory that it goes to.
fn place(file: &Path) -> Result<(Form, &Path), CommandError> {
    let form = Form::of_file(file)
        .map_err(|_| fail(file, "a report's name ends in .html, .md or .json"))?;
    if file.is_dir() {
        return Err(fail(file, "this is a directory"));
    }
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !directory.is_dir() {
        return Err(fail(file, format_args!("there is no directory {}", directory.display())));
    }
    Ok((form, directory))
}

/// Writes a report whole or not at all: beside its place, then renamed over it.
fn write(plan: &Plan, file: &Path) -> Result<(), CommandError> {
    let (form, directory) = place(file)?;
    let text = render(plan, form).map_err(|error| fail(file, error_chain(&error)))?;
    let wrong = |error: std::io::Error| fail(file, io_text(&error));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ichor-report-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any file that a program creates: the umask decides who may read it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(directory).map_err(wrong)?;
    temporary.write_all(text.as_bytes()).map_err(wrong)?;
    temporary.as_file().sync_all().map_err(wrong)?;
    temporary.persist(file).map_err(|error| wrong(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: &CommandError) -> String {
        String::from_utf8_lossy(error.message.as_deref().unwrap_or_default()).into_owned()
    }

    #[test]
    fn a_report_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.md");
        fs::write(&file, "before").unwrap();
        write(&Plan::default(), &file).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# ") && !text.contains("before"));
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing temporary stays");
    }

    #[test]
    fn a_directory_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.html");
        fs::create_dir(&file).unwrap();
        let error = write(&Plan::default(), &file).unwrap_err();
        assert_eq!(message(&error), format!("--report {}: this is a directory", file.display()));
        assert!(file.is_dir());
    }

    #[test]
    fn the_error_names_the_file() {
        let flags = ReportFlags { reports: vec!["no/where/a.json".into()], show_all: false };
        let error = flags.check().unwrap_err();
        assert_eq!(message(&error), "--report no/where/a.json: there is no directory no/where");
    }
}
