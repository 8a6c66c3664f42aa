//! Flag values as `github.com/spf13/pflag` reads them, where clap differs.

use std::ffi::OsString;
use std::fmt::Display;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::{Arg, ArgAction, Command};
use helm_rs::{gotext, name};

use crate::error::CommandError;

/// Lets every flag with a value take the next argument whatever it looks like, as pflag does.
pub(crate) fn take_any_value(command: Command) -> Command {
    command.mut_subcommands(take_any_value).mut_args(|flag| {
        let is_flag = !flag.is_positional() && flag.get_action().takes_values();
        if is_flag { flag.allow_hyphen_values(true) } else { flag }
    })
}

/// Flags that every command of Helm's takes, whatever it does with them: those with a value, and one
/// without.
const HELMS: [&str; 14] = [
    "burst-limit",
    "kube-apiserver",
    "kube-as-group",
    "kube-as-user",
    "kube-ca-file",
    "kube-context",
    "kube-tls-server-name",
    "kube-token",
    "kubeconfig",
    "namespace",
    "qps",
    "registry-config",
    "repository-cache",
    "repository-config",
];
const HELMS_SWITCH: &str = "kube-insecure-skip-tls-verify";

/// Lets the commands that are Helm's take the flags that they have no use for, as Helm does: a
/// script that gives them goes on working. They are not in `--help`.
pub(crate) fn take_helms(command: Command) -> Command {
    command.mut_subcommands(|group| match group.get_name() {
        "chart" | "registry" | "release" => take_unused(group),
        _ => group,
    })
}

fn take_unused(command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(take_unused);
    }
    let known = |name: &str| command.get_arguments().any(|it| it.get_long() == Some(name));
    let has_n = command.get_arguments().any(|it| it.get_short() == Some('n'));
    let unused = |name: &'static str| Arg::new(name).long(name).hide(true);
    let mut missing: Vec<Arg> = HELMS
        .into_iter()
        .filter(|name| !known(name))
        .map(|name| match name {
            "namespace" if !has_n => unused(name).short('n').action(ArgAction::Append),
            name => unused(name).action(ArgAction::Append),
        })
        .collect();
    if !known(HELMS_SWITCH) {
        missing.push(unused(HELMS_SWITCH).action(ArgAction::SetTrue));
    }
    command.args(missing)
}

/// A whole number that is not negative: the value of a limit.
///
/// # Errors
///
/// What is expected, for people.
pub(crate) fn whole_number<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => "the number is too large".to_owned(),
        _ => "expected a whole number, 0 or more".to_owned(),
    })
}

/// The name of a release.
///
/// # Errors
///
/// Helm's.
pub(crate) fn release_name(text: &str) -> Result<String, String> {
    name::validate_release_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// The name of a namespace.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    name::validate_namespace(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

/// A duration as Go writes it, such as `1m30s`, of a flag that is no flag of Helm's.
///
/// # Errors
///
/// pflag's; or it is negative, which is no time that anything could take.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration, CommandError> {
    let wrong = |why: &dyn Display| {
        let text = gotext::quote(text);
        CommandError::new(format_args!("invalid argument {text} for \"--{flag}\" flag: {why}"))
    };
    let parsed = helm_rs::render::time::Duration::parse(text).map_err(|error| wrong(&error))?;
    let nanoseconds =
        u64::try_from(parsed.0).map_err(|_| wrong(&"a time to wait is not negative"))?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// The value of a flag of Helm's, which takes a negative one for none.
///
/// # Errors
///
/// pflag's.
pub(crate) fn helms_duration(flag: &str, text: &str) -> Result<Duration, CommandError> {
    let is_negative = helm_rs::render::time::Duration::parse(text).is_ok_and(|parsed| parsed.0 < 0);
    if is_negative { Ok(Duration::ZERO) } else { duration(flag, text) }
}

/// Rewrites `--flag=true` and `--flag=false`, which Go programs accept for their boolean flags,
/// into what clap knows: the flag, or its absence. As in Go, the last one counts.
pub(crate) fn expand_booleans(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Vec<OsString>, CommandError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let flags = boolean_flags(command, &arguments);
    let mut expanded: Vec<OsString> = Vec::new();
    let mut arguments = arguments.into_iter();
    for argument in arguments.by_ref() {
        if argument == "--" {
            expanded.push(argument);
            break;
        }
        let assignment =
            argument.to_str().and_then(|text| text.strip_prefix("--")?.split_once('='));
        let flag = assignment.and_then(|(name, value)| {
            flags.iter().find(|flag| flag.long == name).map(|flag| (flag, value))
        });
        let Some((flag, value)) = flag else {
            expanded.push(argument);
            continue;
        };
        let long = OsString::from(format!("--{}", flag.long));
        match gotext::parse_bool(value) {
            Some(true) => expanded.push(long),
            Some(false) => {
                let short = flag.short.map(|letter| OsString::from(format!("-{letter}")));
                expanded.retain(|earlier| *earlier != long && Some(earlier) != short.as_ref());
            }
            None => {
                let value = gotext::quote(value);
                return Err(CommandError::new(format_args!(
                    "invalid argument {value} for \"{}\" flag: strconv.ParseBool: parsing {value}: invalid syntax",
                    flag.name()
                )));
            }
        }
    }
    expanded.extend(arguments);
    Ok(expanded)
}

struct BooleanFlag {
    long: String,
    short: Option<char>,
}

impl BooleanFlag {
    /// The flag as pflag names it in errors.
    fn name(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}, --{}", self.long),
            None => format!("--{}", self.long),
        }
    }
}

/// The boolean flags of the command that is called, and of those above it: one command's
/// `--dry-run` takes a word, another's does not.
fn boolean_flags(root: &Command, arguments: &[OsString]) -> Vec<BooleanFlag> {
    let mut flags: Vec<BooleanFlag> = Vec::new();
    let mut add = |command: &Command| {
        for argument in command.get_arguments() {
            if let (ArgAction::SetTrue, Some(long)) = (argument.get_action(), argument.get_long()) {
                flags.retain(|flag| flag.long != long);
                flags.push(BooleanFlag { long: long.to_owned(), short: argument.get_short() });
            }
        }
    };
    let mut command = root;
    add(command);
    for argument in arguments.iter().take_while(|argument| *argument != "--") {
        let Some(called) = command.find_subcommand(argument) else { continue };
        command = called;
        add(command);
    }
    flags
}

/// Several values in one argument, separated by commas: pflag's `StringSlice`, which reads the
/// text as one record of CSV. `flag` is how pflag names the flag in errors.
pub(crate) fn string_slice(flag: &str, arguments: &[String]) -> Result<Vec<String>, CommandError> {
    let mut all = Vec::new();
    for argument in arguments {
        let values = csv_record(argument).map_err(|cause| {
            let argument = gotext::quote(argument);
            CommandError::new(format_args!(
                "invalid argument {argument} for \"{flag}\" flag: {cause}"
            ))
        })?;
        all.extend(values);
    }
    Ok(all)
}

/// The first record of a CSV text, as `encoding/csv` of Go reads it.
fn csv_record(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // Empty lines before the record do not count.
    let mut rest = text.trim_start_matches(['\r', '\n']);
    if rest.is_empty() {
        return Err("EOF".to_owned());
    }
    let total = rest.len();
    let mut record = Vec::new();
    loop {
        let column = total - rest.len() + 1;
        if let Some(quoted) = rest.strip_prefix('"') {
            let (field, after) = quoted_field(quoted).map_err(|end| {
                format!(
                    "parse error on line 1, column {}: extraneous or missing \" in quoted-field",
                    column + 1 + end
                )
            })?;
            record.push(field);
            match after {
                Some(after) => rest = after,
                None => return Ok(record),
            }
        } else {
            let end = rest.find([',', '\n']).unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            if let Some(at) = field.find('"') {
                let column = column + at;
                return Err(format!(
                    "parse error on line 1, column {column}: bare \" in non-quoted-field"
                ));
            }
            record.push(field.trim_end_matches('\r').to_owned());
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => return Ok(record),
            }
        }
    }
}

/// After the opening quote: the field and what follows its comma, if there is one. The error is
/// the offset of the wrong place.
fn quoted_field(text: &str) -> Result<(String, Option<&str>), usize> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let Some(end) = rest.find('"') else { return Err(text.len()) };
        let (part, after) = rest.split_at(end);
        field.push_str(part);
        let after = after.get(1..).unwrap_or_default();
        if let Some(more) = after.strip_prefix('"') {
            field.push('"');
            rest = more;
        } else if let Some(more) = after.strip_prefix(',') {
            return Ok((field, Some(more)));
        } else if after.is_empty() || after.starts_with(['\n', '\r']) {
            return Ok((field, None));
        } else {
            return Err(text.len() - after.len() - 1);
        }
    }
}

/// `key=value` pairs: pflag's `StringToString`.
pub(crate) fn string_map(
    flag: &str,
    arguments: &[String],
) -> Result<Vec<(String, String)>, CommandError> {
    let mut pairs = Vec::new();
    for argument in arguments {
        let fail = |cause: String| {
            let argument = gotext::quote(argument);
            CommandError::new(format_args!(
                "invalid argument {argument} for \"{flag}\" flag: {cause}"
            ))
        };
        let items = match argument.matches('=').count() {
            0 => return Err(fail(format!("{argument} must be formatted as key=value"))),
            1 => vec![argument.trim_matches('"').to_owned()],
            _ => csv_record(argument).map_err(fail)?,
        };
        for item in items {
            match item.split_once('=') {
                Some((key, value)) => pairs.push((key.to_owned(), value.to_owned())),
                None => return Err(fail(format!("{item} must be formatted as key=value"))),
            }
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::csv_record;

    #[test]
    fn records_as_go_reads_them() {
        let read =
            |text| csv_record(text).map_err(|error| error.replace("parse error on line 1, ", ""));
        assert_eq!(read("a,b"), Ok(vec!["a".into(), "b".into()]));
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(read("a,"), Ok(vec!["a".into(), String::new()]));
        assert_eq!(read("\"a,b\",c"), Ok(vec!["a,b".into(), "c".into()]));
        assert_eq!(read("\"a\"\"b\""), Ok(vec!["a\"b".into()]));
        assert_eq!(read("a\"b"), Err("column 2: bare \" in non-quoted-field".into()));
        assert_eq!(
            read("\"a\"b"),
            Err("column 3: extraneous or missing \" in quoted-field".into())
        );
    }
}
