//! `ichor man`: manual pages, out of the same definition as `--help`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::file::{self, Existing};

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "One page a command, named as the command is typed: ichor-chart-template.1. What is there under\n",
    "such a name is replaced.\n\n",
    "Examples:\n",
    "  ichor man ~/.local/share/man/man1 && man ichor-adopt\n",
    "  ichor man . && man ./ichor-chart-template.1"
))]
pub(crate) struct Arguments {
    /// The folder; made when it is not there
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let folder = &arguments.folder;
    let failed = |error| CommandError::new(format_args!("{}: {error}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut definition = super::command();
    definition.build();
    let count = write_all(&definition, "ichor", folder).map_err(failed)?;
    context.ui.result(format!("{count} pages in {}\n", folder.display()))?;
    Ok(Exit::Done)
}

/// Writes the page of a command, then those below it; the number of pages.
fn write_all(command: &clap::Command, name: &str, folder: &Path) -> io::Result<usize> {
    let mut count = 1;
    file::write(&folder.join(format!("{name}.1")), &page(command, name)?, Existing::Replace)?;
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        count += write_all(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(count)
}

fn page(command: &clap::Command, name: &str) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone())
        .title(name)
        .source(concat!("ichor ", env!("CARGO_PKG_VERSION")))
        .manual("ichor");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let more = command.get_after_long_help().or(command.get_after_help());
    if let Some(more) = more {
        page.write_all(sections(&more.to_string()).as_bytes())?;
    }
    Ok(page)
}

/// What follows the options in `--help`, line by line as there: `Examples:` and `Exit codes:` begin
/// sections of their own.
fn sections(text: &str) -> String {
    let mut page = String::new();
    let mut open = "";
    for block in text.split("\n\n") {
        let first = block.lines().next().unwrap_or_default();
        let (section, lines) = match first {
            "Examples:" => ("EXAMPLES", block.strip_prefix(first)),
            "Exit codes:" => ("EXIT STATUS", block.strip_prefix(first)),
            _ => ("NOTES", Some(block)),
        };
        page.push_str(if open == section { ".PP\n" } else { ".SH " });
        if open != section {
            page.push_str(&format!("\"{section}\"\n"));
        }
        open = section;
        page.push_str(".nf\n");
        for line in lines.unwrap_or_default().trim_matches('\n').lines() {
            let line = line.strip_prefix("  ").unwrap_or(line);
            page.push_str(&escape(line));
            page.push('\n');
        }
        page.push_str(".fi\n");
    }
    page
}

/// A line as text of a page: no request, and hyphens that can be copied.
fn escape(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}
