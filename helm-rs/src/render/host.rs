//! What one rendering may ask of the world: randomness and time. Both are inputs.
//!
//! The executor hands the [`Host`] to every function that wants it
//! ([`gotemplate::Runtime::host`]); [`Host::of`] gets it back by its type.

use std::fmt;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use gotemplate::{CallError, Runtime};

use super::time::Zone;

/// A point in time from a [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000.
    pub nanoseconds: u32,
    /// Nanoseconds since the process started, where the clock has such a reading. Go prints
    /// it with `now`, as ` m=+0.012345678`.
    pub monotonic: Option<i64>,
}

impl Reading {
    /// The reading of the given wall clock, without a monotonic part.
    pub const fn at(seconds: i64, nanoseconds: u32) -> Self {
        Self { seconds, nanoseconds, monotonic: None }
    }
}

/// Where `now` comes from.
pub enum Clock {
    /// Always the same moment: for `--now` and for comparing renders.
    Fixed(Reading),
    /// Asked anew by every `now`.
    Running(Box<dyn FnMut() -> Reading>),
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(reading) => f.debug_tuple("Fixed").field(reading).finish(),
            Self::Running(_) => f.write_str("Running"),
        }
    }
}

/// Where random material comes from.
///
/// Either way it is the ChaCha stream cipher with 20 rounds: the bytes for a seed are the
/// same on every machine and in every version that says so in its changelog.
#[derive(Clone, Copy)]
pub enum Randomness {
    /// From `--seed`: the number as little-endian bytes, then zeros, is the key.
    Seed(u64),
    /// From 32 bytes of the system's entropy.
    Entropy([u8; 32]),
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(seed) => f.debug_tuple("Seed").field(seed).finish(),
            // Whoever knows these bytes knows the keys that the charts generate.
            Self::Entropy(_) => f.write_str("Entropy(..)"),
        }
    }
}

/// The state of one rendering.
pub struct Host {
    random: ChaCha20Rng,
    clock: Clock,
    local: Zone,
    /// Whether generated keys and certificates are a fixed text instead: for renders that are only
    /// compared with each other, since making a key takes a hundred times as long as the rest.
    pub stand_in_keys: bool,
    /// Whether `getHostByName` may ask the resolver (`--enable-dns`).
    pub enable_dns: bool,
    /// What the engine's own functions need.
    pub engine: super::EngineState,
}

impl Host {
    /// A host with the given sources; `local` is the time zone that `date` and `now` use,
    /// which in Helm is the process's.
    pub fn new(randomness: Randomness, clock: Clock, local: Zone) -> Self {
        let random = match randomness {
            Randomness::Seed(seed) => {
                let mut key = [0; 32];
                for (place, byte) in key.iter_mut().zip(seed.to_le_bytes()) {
                    *place = byte;
                }
                ChaCha20Rng::from_seed(key)
            }
            Randomness::Entropy(key) => ChaCha20Rng::from_seed(key),
        };
        Self {
            random,
            clock,
            local,
            stand_in_keys: false,
            enable_dns: false,
            engine: super::EngineState::default(),
        }
    }

    /// The host that the executor was given.
    ///
    /// # Errors
    /// When the executor was given something else, which is a fault in the program.
    pub fn of(runtime: &mut dyn Runtime) -> Result<&mut Self, CallError> {
        runtime
            .host()
            .downcast_mut()
            .ok_or_else(|| CallError::from("the function needs a rendering host"))
    }

    /// Fills `bytes` with random ones.
    pub fn fill_random(&mut self, bytes: &mut [u8]) {
        self.random.fill_bytes(bytes);
    }

    /// A uniformly distributed number below `bound`; 0 for the bound 0.
    pub fn random_below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // Rejection: the numbers that are left over would favour the small ones.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let number = self.random.next_u64();
            if number < limit {
                return number % bound;
            }
        }
    }

    /// The random source itself, for key generation.
    pub(crate) const fn random(&mut self) -> &mut ChaCha20Rng {
        &mut self.random
    }

    /// The present moment.
    pub fn now(&mut self) -> Reading {
        match &mut self.clock {
            Clock::Fixed(reading) => *reading,
            Clock::Running(read) => read(),
        }
    }

    /// The local time zone.
    pub const fn local(&self) -> &Zone {
        &self.local
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host")
            .field("clock", &self.clock)
            .field("local", &self.local)
            .field("enable_dns", &self.enable_dns)
            .finish_non_exhaustive()
    }
}
