//! `ichor completions`.

use clap_complete::Shell;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  source <(ichor completions bash)\n",
    "  ichor completions zsh > ~/.zfunc/_ichor"
))]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "ichor", &mut script);
    context.ui.result(script)?;
    Ok(Exit::Done)
}
