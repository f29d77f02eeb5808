//! The HTTP client of remote sources.

use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds a client with what ours have in common: 5 s to connect, our user agent, and TLS that works on a bare system too.
///
/// # Errors
/// When the system's TLS cannot be set up.
pub(super) fn build_client(
    configure: impl Fn() -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, reqwest::Error> {
    // An error says that the process has a provider already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = || {
        configure()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("toolrack/", env!("CARGO_PKG_VERSION")))
    };
    builder().build().or_else(|error| {
        // A system without certificates, such as a bare container, can still reach a model server over plain HTTP.
        let client = builder().tls_certs_only([]).build()?;
        tracing::warn!(%error, "no https address can be reached: install the system's CA certificates");
        Ok(client)
    })
}
