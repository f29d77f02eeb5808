//! Endpoints that the operator configures, and why one cannot be used.

use reqwest::Url;

/// Why an endpoint cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Its URL cannot be parsed.
    #[error("this is not the URL of a {endpoint}: {cause}; write https://HOST/PATH")]
    InvalidUrl {
        /// What it is for: `gate` or `webhook`.
        endpoint: &'static str,
        /// What is wrong with the URL.
        cause: url::ParseError,
    },
    /// Its URL is of another scheme than `http` and `https`.
    #[error("a {endpoint} cannot be reached by {scheme}, only by http or https; write https://HOST/PATH")]
    UnknownScheme {
        /// What it is for: `gate` or `webhook`.
        endpoint: &'static str,
        /// The scheme.
        scheme: String,
    },
    /// Its name cannot be written to the audit.
    #[error("{name:?} cannot be its name: {rule}")]
    InvalidName {
        /// The name.
        name: String,
        /// What a name has to be.
        rule: &'static str,
    },
    /// The system's TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] reqwest::Error),
}

/// The URL of an endpoint, which is one of `http` or `https`.
pub(crate) fn parse_url(endpoint: &'static str, url: &str) -> Result<Url, EndpointError> {
    let url = Url::parse(url).map_err(|cause| EndpointError::InvalidUrl { endpoint, cause })?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(EndpointError::UnknownScheme { endpoint, scheme: scheme.to_owned() }),
    }
}
