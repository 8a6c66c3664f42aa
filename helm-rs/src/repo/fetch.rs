//! Getting bytes from an address.

/// Gets an archive from an address. Tests and offline builds have their own.
pub trait Fetch {
    /// All bytes behind `url`.
    ///
    /// # Errors
    /// [`FetchError`], also when there are more than `limit` bytes.
    fn fetch(&self, url: &str, limit: u64) -> Result<Vec<u8>, FetchError>;
}

/// Why an address gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server did not answer, or broke off.
    #[error("fetch {url}")]
    Transport {
        /// The address.
        url: String,
        /// What went wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server answered with another status than 200.
    #[error("fetch {url}: the server answered {status}")]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// There is more than was asked for.
    #[error("fetch {url}: more than the limit of {limit} bytes")]
    TooLarge {
        /// The address.
        url: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// This build cannot download.
    #[error("fetch {url}: this program was built without network access")]
    NoNetwork {
        /// The address.
        url: String,
    },
}

#[cfg(feature = "network")]
pub use http::HttpFetch;

#[cfg(feature = "network")]
mod http {
    use std::io::Read as _;
    use std::time::Duration;

    use reqwest::blocking::Client;

    use super::{Fetch, FetchError};

    /// Fetches over HTTP and HTTPS. Certificates are checked against the system's; proxies are
    /// none. A request may take five minutes.
    #[derive(Clone, Debug)]
    pub struct HttpFetch {
        client: Client,
    }

    impl HttpFetch {
        /// A client that calls itself `user_agent`.
        ///
        /// # Errors
        /// [`FetchError::Transport`] when TLS cannot be set up.
        pub fn new(user_agent: &str) -> Result<Self, FetchError> {
            // Another part of the program may have chosen already, which is as good.
            drop(rustls::crypto::ring::default_provider().install_default());
            let client = Client::builder()
                .user_agent(user_agent)
                .connect_timeout(Duration::from_secs(30))
                .timeout(Duration::from_mins(5))
                .build()
                .map_err(|source| FetchError::Transport {
                    url: String::new(),
                    source: source.into(),
                })?;
            Ok(Self { client })
        }
    }

    impl Fetch for HttpFetch {
        fn fetch(&self, url: &str, limit: u64) -> Result<Vec<u8>, FetchError> {
            let transport = |source: Box<dyn std::error::Error + Send + Sync>| {
                FetchError::Transport { url: url.to_owned(), source }
            };
            let response = self
                .client
                .get(url)
                .send()
                .map_err(|error| transport(error.without_url().into()))?;
            let status = response.status().as_u16();
            if status != 200 {
                return Err(FetchError::Status { url: url.to_owned(), status });
            }
            let mut bytes = Vec::new();
            response
                .take(limit.saturating_add(1))
                .read_to_end(&mut bytes)
                .map_err(|error| transport(error.into()))?;
            if bytes.len() as u64 > limit {
                return Err(FetchError::TooLarge { url: url.to_owned(), limit });
            }
            Ok(bytes)
        }
    }
}
