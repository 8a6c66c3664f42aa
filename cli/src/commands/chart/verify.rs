//! `ichor chart verify`.

use std::path::PathBuf;

use helm_repo::provenance::verify_chart;
use helm_rs::error_chain;

use super::source::{keyring, seconds};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "The provenance file stands beside the archive: NAME-VERSION.tgz.prov. Prints what `helm verify`\n",
    "prints.\n\n",
    "Examples:\n",
    "  ichor chart verify my-chart-1.0.0.tgz --keyring pubring.gpg\n\n",
    "Exit codes:\n",
    "  0  a key of the keyring signed the archive, and it was not changed\n",
    "  1  it is not signed, not by such a key, or changed since"
))]
pub(crate) struct Arguments {
    /// Archive of a chart
    chart: PathBuf,
    /// Keys that may sign; $GNUPGHOME/pubring.gpg or ~/.gnupg/pubring.gpg if none is given
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let keyring = keyring(arguments.keyring.as_ref(), context.environment);
    let verification = verify_chart(&arguments.chart, &keyring, seconds(context.environment))
        .map_err(|error| CommandError::new(error_chain(&error)))?;
    context.ui.result(verification.text())?;
    Ok(Exit::Done)
}
