//! Asking whoever sits at the terminal.

use std::io::Read as _;

use super::shared::no;
use crate::commands::Context;
use crate::environment::Environment;
use crate::error::CommandError;

/// Bytes of an answer that are read.
const LONGEST: usize = 256;

/// Makes sure that it is wanted: `yes` says so, else the one at the terminal is asked. Where nobody
/// can be asked, the answer is no.
pub(crate) fn confirm(
    question: &str,
    yes: bool,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !context.environment.can_be_asked() {
        return Err(no(
            "nothing was written: nobody can be asked, since this is no terminal",
            "to begin without being asked, give --yes as well",
        ));
    }
    // What the question is about has to be seen first.
    context.ui.finish()?;
    context.ui.question(&format!("{question} [y/N] "));
    match answer(context.environment).as_deref().map(str::trim) {
        Some(text) if ["y", "yes"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Ok(()),
        answer => {
            if answer.is_none() {
                context.ui.question("\n");
            }
            Err(no("nothing was written: the answer was no", "--yes begins without asking"))
        }
    }
}

/// A line of standard input; none when a signal comes first, or the input ends.
fn answer(environment: &Environment) -> Option<String> {
    let environment = environment.clone();
    let read = move || {
        let mut input = environment.input().take(LONGEST as u64);
        let mut line = Vec::new();
        let mut byte = [0];
        while input.read(&mut byte).is_ok_and(|count| count == 1) {
            if byte == *b"\n" {
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            line.extend_from_slice(&byte);
        }
        (!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned())
    };
    #[cfg(feature = "network")]
    return unless_signalled(read);
    // No handler was left behind: a signal ends the program.
    #[cfg(not(feature = "network"))]
    read()
}

#[cfg(feature = "network")]
fn unless_signalled(read: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
    use tokio::signal::unix::{SignalKind, signal};

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let line = runtime.block_on(async {
        // The plan's own session left a handler behind, so that a signal alone ends nothing.
        let mut interrupt = signal(SignalKind::interrupt()).ok()?;
        let mut terminate = signal(SignalKind::terminate()).ok()?;
        tokio::select! {
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
            line = tokio::task::spawn_blocking(read) => line.ok().flatten(),
        }
    });
    // Whoever still reads is not waited for.
    runtime.shutdown_background();
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Global;
    use crate::exit::Exit;
    use crate::ui::{Buffer, Colour, Ui};

    fn asked(environment: &Environment, yes: bool) -> (Result<(), CommandError>, String) {
        let err = Buffer::default();
        let mut ui = Ui::new(Box::new(Buffer::default()), Box::new(err.clone()), false);
        let global = Global { debug: false, verbose: false, quiet: true, color: Colour::Never };
        let mut context = Context { global, environment, ui: &mut ui };
        let result = confirm("Go on?", yes, &mut context);
        (result, String::from_utf8(err.bytes()).unwrap())
    }

    #[test]
    fn only_yes_is_yes() {
        for (input, is_yes) in [
            ("y\n", true),
            ("  YES \n", true),
            ("yes", true),
            ("n\n", false),
            ("\n", false),
            ("", false),
            ("yess\n", false),
            ("no\ny\n", false),
        ] {
            let environment = Environment::sealed([]).with_input(input).with_terminal();
            let (result, told) = asked(&environment, false);
            assert_eq!(result.is_ok(), is_yes, "{input:?}");
            assert!(told.starts_with("Go on? [y/N] "), "{told}");
            if let Err(error) = result {
                assert_eq!(error.exit, Exit::No);
            }
        }
    }

    #[test]
    fn nobody_is_asked_without_a_terminal_or_with_yes() {
        let environment = Environment::sealed([]).with_input("y\n");
        let (result, told) = asked(&environment, false);
        let error = result.unwrap_err();
        assert!(error.exit == Exit::No && error.hint.unwrap().contains("--yes"));
        assert_eq!(told, "");
        let (result, told) = asked(&environment, true);
        assert!(result.is_ok() && told.is_empty());
    }
}
