//! Prints a snapshot of `examples/`: a cluster on which a release of the sample chart runs that Helm
//! installed. `before` is one that people changed since, `refused` one with a second network plugin.
//!
//! ```console
//! $ cargo run -p takeover --example before > examples/before.ndjson
//! $ cargo run -p takeover --example before refused > examples/refused.ndjson
//! ```

mod cluster;

use std::io::Write as _;

fn main() -> Result<(), cluster::Failure> {
    let made = match std::env::args().nth(1).as_deref() {
        None | Some("before") => cluster::before()?,
        Some("refused") => cluster::refused()?,
        Some(other) => return Err(format!("no example is called {other}").into()),
    };
    std::io::stdout().write_all(&made)?;
    Ok(())
}
