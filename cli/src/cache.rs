//! Pinned charts: which there are, and where to look for them.

use helm_rs::error_chain;
use helm_rs::repo::{Fetch, Pin, Pins, Places, Resolved};

use crate::commands::Context;
use crate::error::CommandError;

/// The charts that this program knows by name.
pub(crate) fn pins() -> Result<Pins, CommandError> {
    Pins::parse(cilium::pinned::LOCK).map_err(|error| CommandError::new(error_chain(&error)))
}

/// Gets a pinned chart: from `ICHOR_CHART_DIR`, the user's cache, or the network.
pub(crate) fn resolve(
    pin: &Pin,
    limit: u64,
    context: &mut Context<'_>,
) -> Result<Resolved, CommandError> {
    let places = Places {
        directory: context.environment.chart_directory(),
        cache: context.environment.cache_directory().map(|cache| cache.join("charts")),
        limit,
    };
    let resolved = helm_rs::repo::resolve(pin, &places, &*fetcher()).map_err(|error| {
        CommandError::new(error_chain(&error))
            .hint(format!("put {} into a folder and name it in ICHOR_CHART_DIR", pin.file_name()))
    })?;
    let path = resolved.path.as_ref().map_or_else(String::new, |p| format!(" ({})", p.display()));
    context.ui.debug(format!(
        "chart {} {} from {}{path}, {}",
        pin.name,
        pin.version,
        resolved.place.name(),
        pin.digest
    ));
    Ok(resolved)
}

/// Downloads on first use, so that a chart in the cache costs no TLS set-up.
struct Downloader;

fn fetcher() -> Box<dyn Fetch> {
    Box::new(Downloader)
}

impl Fetch for Downloader {
    #[cfg(feature = "network")]
    fn fetch(&self, url: &str, limit: u64) -> Result<Vec<u8>, helm_rs::repo::FetchError> {
        let agent = concat!("ichor/", env!("CARGO_PKG_VERSION"));
        helm_rs::repo::HttpFetch::new(agent)?.fetch(url, limit)
    }

    #[cfg(not(feature = "network"))]
    fn fetch(&self, url: &str, _: u64) -> Result<Vec<u8>, helm_rs::repo::FetchError> {
        Err(helm_rs::repo::FetchError::NoNetwork { url: url.to_owned() })
    }
}
