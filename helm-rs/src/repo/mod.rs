//! Pinned charts: archives that are known by name, version, address and digest.
//!
//! ```text
//! pins file ─► Pin ── resolve ─► chart directory ─► user's cache ─► download
//!                                      └──────── digest checked ────────┘
//! ```
//!
//! Whatever the place, the bytes are handed out only after their digest was compared, so a
//! caller never works on another chart than the pinned one.

mod digest;
mod fetch;
mod pin;
mod resolve;

pub use digest::{Digest, DigestError};
#[cfg(feature = "network")]
pub use fetch::HttpFetch;
pub use fetch::{Fetch, FetchError};
pub use pin::{Pin, PinError, Pins};
pub use resolve::{Place, Places, ResolveError, Resolved, resolve, save};
