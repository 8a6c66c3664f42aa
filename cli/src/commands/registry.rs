//! `ichor registry`: who registries are asked as.

use clap::{Args, Subcommand};
use helm_repo::credentials::{Login, forget};
use helm_rs::error_chain;

use super::Context;
use super::chart::failed;
use super::chart::source::{CertificateFlags, FileFlags, ServerFlags, transport};
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a user and a password with a registry, and keep them
    #[command(after_help = concat!(
        "The file has the form of Docker's config.json, and Helm reads it too.\n\n",
        "Examples:\n",
        "  ichor registry login registry.example.org -u me --password-stdin < token"
    ))]
    Login(Box<LoginArguments>),
    /// Forget the password of a registry
    #[command(after_help = "Examples:\n  ichor registry logout registry.example.org")]
    Logout(LogoutArguments),
}

#[derive(Args)]
pub(crate) struct LoginArguments {
    /// Host and port of the registry
    host: String,
    /// User of the registry; with none, the password is a token
    #[arg(short, long, value_name = "NAME", default_value = "", hide_default_value = true)]
    username: String,
    /// Password of the user
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    password: String,
    /// Read the password, or a token, from standard input
    #[arg(long)]
    password_stdin: bool,
    /// Take any certificate of the registry
    #[arg(long)]
    insecure: bool,
    /// Speak plain HTTP to the registry
    #[arg(long)]
    plain_http: bool,
    #[command(flatten)]
    certificates: CertificateFlags,
    #[command(flatten)]
    files: FileFlags,
}

impl std::fmt::Debug for LoginArguments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out of it.
        f.debug_struct("LoginArguments").field("host", &self.host).finish_non_exhaustive()
    }
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArguments {
    /// Host and port of the registry
    host: String,
    #[command(flatten)]
    files: FileFlags,
}

pub(crate) fn run(command: &Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::Login(arguments) => login(arguments, context),
        Command::Logout(arguments) => {
            let settings = arguments.files.settings(context.environment);
            forget(&settings.registry_config, &arguments.host)
                .map_err(|error| CommandError::new(error_chain(&error)))?;
            context.ui.note(format!("Removing login credentials for {}", arguments.host));
            Ok(Exit::Done)
        }
    }
}

fn login(arguments: &LoginArguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let username = arguments.username.clone();
    let password = if arguments.password_stdin {
        super::chart::read_password(context)?
    } else {
        if !arguments.password.is_empty() {
            context.ui.warning(
                "WARNING: Using --password via the CLI is insecure. Use --password-stdin.",
            );
        }
        arguments.password.clone()
    };
    if password.is_empty() {
        let what = if username.is_empty() { "token required" } else { "password required" };
        return Err(CommandError::new(what).hint("give it with --password-stdin on standard input"));
    }
    let login = Login { username, password };
    let settings = arguments.files.settings(context.environment);
    let transport = transport();
    let certificates = arguments.certificates.clone();
    ServerFlags::of_login(&login, certificates, arguments.insecure, arguments.plain_http)
        .registry(&*transport, &settings)
        .login(&arguments.host, &login)
        .map_err(|error| failed(&error, &arguments.host))?;
    context.ui.note("Login Succeeded");
    Ok(Exit::Done)
}
