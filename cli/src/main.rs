//! The `ichor` program. Everything lives in the library, where tests can call it.

use std::process::ExitCode;

use ichor_cli::{Environment, Ui, run};

fn main() -> ExitCode {
    let environment = Environment::of_process();
    let mut ui = Ui::of_process(&environment);
    run(std::env::args_os(), &environment, &mut ui).into()
}
