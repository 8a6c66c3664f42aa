//! Flags about rendering itself: randomness, clock, network, limits.

use std::net::ToSocketAddrs as _;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use helm_rs::name::NameError;
use helm_rs::render::host::{Clock, Host, Randomness, Reading};
use helm_rs::render::{Engine, EngineOptions, RenderLimits};

use crate::commands::Context;
use crate::environment::Environment;
use crate::error::CommandError;
use crate::flags;

#[derive(Debug, Args)]
#[command(next_help_heading = "Rendering")]
pub(crate) struct RenderFlags {
    /// Generate keys, passwords and other random material from this number
    #[arg(long, value_name = "NUMBER", value_parser = flags::whole_number::<u64>)]
    seed: Option<u64>,
    /// The time that templates see, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    now: Option<String>,
    /// Let getHostByName ask the network
    #[arg(long)]
    enable_dns: bool,
    /// Bytes that the rendered files may come to
    #[arg(long, value_name = "BYTES", value_parser = flags::whole_number::<usize>, default_value_t = RenderLimits::default().output, hide_short_help = true)]
    max_output: usize,
    /// Seconds that rendering may take
    #[arg(long, value_name = "SECONDS", value_parser = flags::whole_number::<u64>, default_value_t = 60, hide_short_help = true)]
    max_time: u64,
}

impl RenderFlags {
    /// An engine for one run of the program.
    pub(crate) fn engine(&self) -> Engine {
        let limits = RenderLimits { output: self.max_output, ..RenderLimits::default() };
        Engine::new(EngineOptions { limits, ..EngineOptions::default() })
    }

    /// The world that templates see.
    pub(crate) fn host(&self, environment: &Environment) -> Result<Host, CommandError> {
        let randomness = match self.seed {
            Some(seed) => Randomness::Seed(seed),
            None => Randomness::Entropy(entropy()?),
        };
        let clock = match &self.now {
            Some(text) => Clock::Fixed(moment(text)?),
            None => running_clock(environment.clone()),
        };
        Ok(self.host_of(randomness, clock, environment))
    }

    /// A world with other randomness and another time of day, to tell what depends on them.
    pub(crate) fn other_host(&self, environment: &Environment) -> Result<Host, CommandError> {
        const LATER: i64 = 100_000_000;
        let randomness = match self.seed {
            Some(seed) => Randomness::Seed(seed.wrapping_add(1)),
            None => Randomness::Entropy(entropy()?),
        };
        let now = match &self.now {
            Some(text) => moment(text)?.seconds,
            None => environment
                .now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or_default()),
        };
        let clock = Clock::Fixed(Reading::at(now.saturating_add(LATER), 0));
        Ok(self.host_of(randomness, clock, environment))
    }

    fn host_of(&self, randomness: Randomness, clock: Clock, environment: &Environment) -> Host {
        let mut host = Host::new(randomness, clock, environment.zone());
        host.enable_dns = self.enable_dns;
        if self.enable_dns {
            host.engine.resolver = Some(Box::new(addresses));
        }
        // A deadline beyond what the clock can tell is none.
        if let Some(deadline) = Instant::now().checked_add(Duration::from_secs(self.max_time)) {
            host.engine.interrupted = Some(Box::new(move || Instant::now() >= deadline));
        }
        host
    }
}

fn entropy() -> Result<[u8; 32], CommandError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        CommandError::new(format_args!("the system gives no randomness: {error}"))
    })?;
    Ok(bytes)
}

fn moment(text: &str) -> Result<Reading, CommandError> {
    let time: jiff::Timestamp = text.parse().map_err(|error| {
        CommandError::new(format_args!(
            "invalid argument {} for \"--now\" flag: {error}",
            helm_rs::gotext::quote(text)
        ))
        .hint("write it like 2026-01-31T12:00:00Z")
    })?;
    let nanoseconds = time.as_nanosecond();
    let seconds = nanoseconds.div_euclid(1_000_000_000);
    let rest = nanoseconds.rem_euclid(1_000_000_000);
    Ok(Reading::at(
        i64::try_from(seconds).unwrap_or_default(),
        u32::try_from(rest).unwrap_or_default(),
    ))
}

fn running_clock(environment: Environment) -> Clock {
    let start = Instant::now();
    Clock::Running(Box::new(move || {
        let since = environment.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Reading {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since.subsec_nanos(),
            monotonic: i64::try_from(start.elapsed().as_nanos()).ok(),
        }
    }))
}

/// What the system's resolver says.
fn addresses(host: &str) -> Vec<String> {
    let found = (host, 0).to_socket_addrs().into_iter().flatten();
    found.map(|address| address.ip().to_string()).collect()
}

/// A release name as text, or Helm's error: a name is never anything but ASCII.
pub(crate) fn release_name(name: &[u8]) -> Result<String, CommandError> {
    String::from_utf8(name.to_vec()).map_err(|_| {
        let name = helm_rs::gotext::quote(name);
        CommandError::new(format_args!("release name {name}: {}", NameError::Release))
    })
}

/// The name that `--name-template` makes (`action.TemplateName`).
pub(crate) fn name_from_template(
    template: &str,
    flags: &RenderFlags,
    context: &Context<'_>,
) -> Result<String, CommandError> {
    let mut host = flags.host(context.environment)?;
    let environment = context.environment.clone();
    let variable = move |name: &[u8]| environment.bytes(name).unwrap_or_default();
    let name = helm_rs::render::name_from_template(template, &mut host, variable)
        .map_err(|error| CommandError::from_bytes(error.message))?;
    release_name(name.as_slice())
}
