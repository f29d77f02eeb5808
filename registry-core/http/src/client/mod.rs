//! Clients for tools that fetch.

mod address;
mod fetched;
mod public;
mod resolve;
#[cfg(test)]
mod tests;
mod tls;
mod trusted;

use std::time::Duration;

use registry_core::{KnownError, KnownErrors, ToolError};
use reqwest::Response;

pub use self::{
    fetched::Fetched,
    public::{PublicHttpClient, PublicHttpClientBuilder},
    trusted::trust_ca_file,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A client for addresses that the operator configured. It reaches private networks too, so an address that comes from a
/// model goes through [`PublicHttpClient`] instead.
///
/// It is a [`reqwest::Client`]: 5 s to connect, 30 s without a byte, no limit on the whole. Cheap to clone.
#[derive(Debug, Clone, derive_more::Deref)]
pub struct HttpClient(reqwest::Client);

impl HttpClient {
    /// A client with the usual timeouts, which honours the proxy of the environment.
    ///
    /// # Errors
    /// When the system's TLS cannot be set up.
    pub fn new() -> Result<Self, ToolError> {
        Ok(Self(build_client(|| reqwest::Client::builder().read_timeout(READ_TIMEOUT))?))
    }
}

// So `?` on a request says what may be tried again, and keeps the address from callers.
inventory::submit! {
    KnownErrors(|error| {
        let error = error.downcast_ref::<reqwest::Error>()?;
        let failing = error.status().is_some_and(|status| status.is_server_error());
        Some(KnownError {
            transient: error.is_timeout() || error.is_connect() || failing,
            // The address is the operator's business.
            private: error.url().map(|url| format!(" for url ({url})")),
        })
    })
}

/// Builds a client with what ours have in common: 5 s to connect, our user agent, and TLS with the certificates of the system and those that are
/// [trusted](trust_ca_file) beside them.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub fn build_client(
    configure: impl Fn() -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, reqwest::Error> {
    configure()
        .tls_backend_preconfigured(tls::config())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("toolrack/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Why the body of an answer was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It has more bytes than are read.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The connection broke.
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// The body of an answer, of at most `most` bytes. They are counted as they come decompressed, so a small file that unpacks without
/// end is stopped as well.
///
/// # Errors
/// When it is larger, or the connection breaks.
pub async fn read_body(response: &mut Response, most: usize) -> Result<Vec<u8>, BodyError> {
    let announced = response.content_length().unwrap_or_default();
    if usize::try_from(announced).is_ok_and(|announced| announced > most) {
        return Err(BodyError::TooLarge(most));
    }
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > most {
            return Err(BodyError::TooLarge(most));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}
