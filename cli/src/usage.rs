//! Command-line mistakes in Helm's words (`github.com/spf13/pflag`, `github.com/spf13/cobra`).

use std::num::IntErrorKind;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::CommandError;

/// Turns what clap says into what Helm says, as far as Helm has the same mistake.
pub(crate) fn usage_error(
    definition: &clap::Command,
    error: &clap::Error,
    arguments: &[String],
) -> CommandError {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    if let Some(mistake) = value_apart(error, argument, arguments) {
        return mistake;
    }
    if let Some(message) = wrong_count(definition, error, arguments) {
        return CommandError::new(message);
    }
    let message = match error.kind() {
        ErrorKind::UnknownArgument => unknown_flag(argument, arguments),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals => {
            invalid_value(
                error,
                argument,
                text(ContextKind::InvalidValue).unwrap_or_default(),
                arguments,
            )
        }
        ErrorKind::InvalidSubcommand => {
            let name = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("unknown command {} for \"ichor\"", helm_rs::gotext::quote(name))
        }
        ErrorKind::MissingRequiredArgument => match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::Strings(names)) => format!("missing argument: {}", names.join(", ")),
            _ => first_line(error),
        },
        _ => first_line(error),
    };
    let hint = match error
        .get(ContextKind::SuggestedArg)
        .or(error.get(ContextKind::SuggestedSubcommand))
    {
        Some(ContextValue::String(name)) => format!("did you mean {name}?"),
        Some(ContextValue::Strings(names)) if !names.is_empty() => {
            format!("did you mean {}?", names.join(" or "))
        }
        _ => "see --help".to_owned(),
    };
    CommandError::new(message).hint(hint)
}

/// Too few or too many arguments of a command (`cmd/helm/require/args.go`).
fn wrong_count(
    definition: &clap::Command,
    error: &clap::Error,
    arguments: &[String],
) -> Option<String> {
    let named = |context: Option<&ContextValue>| match context {
        Some(ContextValue::Strings(names)) => names.iter().all(|name| !name.starts_with('-')),
        Some(ContextValue::String(name)) => !name.starts_with('-'),
        _ => false,
    };
    let is_count =
        matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument);
    if !is_count || !named(error.get(ContextKind::InvalidArg)) {
        return None;
    }
    let (mut command, mut path) = (definition, definition.get_name().to_owned());
    for argument in arguments.iter().skip(1) {
        if let Some(below) = command.find_subcommand(argument) {
            command = below;
            path = format!("{path} {}", below.get_name());
        }
    }
    let positionals: Vec<&clap::Arg> = command.get_positionals().collect();
    if command.has_subcommands() {
        return None;
    }
    let is_open =
        positionals.iter().any(|argument| matches!(argument.get_action(), clap::ArgAction::Append));
    let required = positionals.iter().filter(|argument| argument.is_required_set()).count();
    let is_missing = error.kind() == ErrorKind::MissingRequiredArgument;
    // What is required only without some flag is missing here.
    let least = if is_missing { required.max(1) } else { required };
    let noun = |count| if count == 1 { "argument" } else { "arguments" };
    let takes = match positionals.len() {
        0 => "accepts no arguments".to_owned(),
        count if !is_open && required == count => format!("requires {count} {}", noun(count)),
        _ if is_missing => format!("requires at least {least} {}", noun(least)),
        most if !is_open => format!("accepts at most {most} {}", noun(most)),
        _ => return None,
    };
    let names: Vec<String> = positionals
        .iter()
        .flat_map(|argument| {
            let more = matches!(argument.get_action(), clap::ArgAction::Append);
            let names = argument.get_value_names().unwrap_or_default();
            names.iter().map(move |name| format!("[{name}] {}", if more { "[...] " } else { "" }))
        })
        .collect();
    let quoted = helm_rs::gotext::quote(&path);
    Some(format!("{quoted} {takes}\n\nUsage:  {path} {}[flags]", names.concat()))
}

/// A flag whose value may be left out takes it after `=` only; apart, it is an argument too many.
/// pflag has the same rule (`NoOptDefVal`) and says nothing of it.
fn value_apart(error: &clap::Error, argument: &str, arguments: &[String]) -> Option<CommandError> {
    const FLAG: &str = "--accept-cilium-diff";
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let at = arguments.iter().position(|other| other == FLAG)?;
    arguments.get(at + 1).filter(|next| *next == argument)?;
    let message = format!("{FLAG} takes its digest after an equals sign, not after a blank");
    Some(CommandError::new(message).hint(format!("{FLAG}={argument}")))
}

fn unknown_flag(argument: &str, arguments: &[String]) -> String {
    match argument.strip_prefix("--") {
        Some(_) => {
            let name = argument.split('=').next().unwrap_or(argument);
            format!("unknown flag: {name}")
        }
        None => match argument.strip_prefix('-').and_then(|rest| rest.chars().next()) {
            Some(letter) => {
                // pflag quotes the whole group of letters, clap only the wrong one.
                let group = arguments
                    .iter()
                    .find(|a| a.starts_with('-') && !a.starts_with("--") && a.contains(letter))
                    .map_or(argument, String::as_str);
                format!("unknown shorthand flag: '{letter}' in {group}")
            }
            None => format!("unknown command {}", helm_rs::gotext::quote(argument)),
        },
    }
}

fn invalid_value(error: &clap::Error, argument: &str, value: &str, arguments: &[String]) -> String {
    // clap names the argument as in usage: `--values <FILES>`, `-f, --values <FILES>`.
    let flag = argument.split(['<', '[']).next().unwrap_or(argument).trim_end_matches(['=', ' ']);
    let missing = error.get(ContextKind::InvalidValue).is_none()
        || value.is_empty() && error.kind() == ErrorKind::InvalidValue;
    if missing {
        let long = flag.split(", ").last().unwrap_or(flag);
        let last = arguments.last().map_or("", String::as_str);
        return match last.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
            Some(letters) => {
                let letter = letters.chars().last().unwrap_or('-');
                format!("flag needs an argument: '{letter}' in {last}")
            }
            None => format!("flag needs an argument: {long}"),
        };
    }
    let quoted = helm_rs::gotext::quote(value);
    // Helm's own flag type (`pkg/cli/output`), which has a short name everywhere.
    if flag.ends_with("--output") && takes_table(error) {
        return format!("invalid argument {quoted} for \"-o, --output\" flag: invalid format type");
    }
    let cause = match std::error::Error::source(error) {
        None => first_line(error),
        Some(source) => match source
            .downcast_ref::<std::num::ParseIntError>()
            .map(std::num::ParseIntError::kind)
        {
            None => source.to_string(),
            Some(IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) => {
                format!("strconv.ParseInt: parsing {quoted}: value out of range")
            }
            Some(_) => format!("strconv.ParseInt: parsing {quoted}: invalid syntax"),
        },
    };
    if flag.is_empty() {
        // clap has only the name of an argument that is no flag, and lists what it may be.
        return format!("invalid argument {quoted} for {argument}{}", one_of(error));
    }
    format!("invalid argument {quoted} for \"{flag}\" flag: {cause}")
}

/// The values that an argument may have, where they are a list.
fn one_of(error: &clap::Error) -> String {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            format!(": it may be {}", values.join(", "))
        }
        _ => String::new(),
    }
}

/// Whether the flag takes one of Helm's forms of a result.
fn takes_table(error: &clap::Error) -> bool {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.iter().any(|value| value == "table"),
        _ => false,
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or("wrong usage");
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
