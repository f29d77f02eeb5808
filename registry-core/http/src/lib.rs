//! HTTP around a tool registry: clients for tools that fetch, a gate that is asked over HTTP, and webhooks.
//!
//! [`HttpClient`] is for addresses that the operator configured, such as a search engine on this machine.
//! [`PublicHttpClient`] is for addresses that a model may name: it reaches the public internet and nothing else. A tool takes
//! either as a resource:
//!
//! ```
//! use registry_core::{prelude::*, testing::TestHost};
//! use toolrack_http::HttpClient;
//!
//! /// Get the latest reading of a weather station.
//! #[tool(timeout = secs(10))]
//! async fn station(
//!     http: Resource<HttpClient>,
//!     /// The station's number.
//!     #[arg(range = 1..)]
//!     number: u32,
//! ) -> Result<String, ToolError> {
//!     let url = format!("http://weather.example/stations/{number}");
//!     Ok(http.get(url).send().await?.error_for_status()?.text().await?)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let host = TestHost::new().resource(HttpClient::new()?).build();
//! assert_eq!(host.why_not("station"), None);
//! # Ok(())
//! # }
//! ```

mod client;
mod error;
mod gate;
mod signature;
pub mod webhook;

use registry_core::{random_id, with_causes};

pub use client::{
    BodyError, Fetched, HttpClient, PublicHttpClient, PublicHttpClientBuilder, build_client, read_body,
    trust_ca_file,
};
pub use error::EndpointError;
pub use gate::HttpGate;
pub use ipnet::IpNet;
pub use reqwest;
pub use signature::{BadSecret, Secret};

#[cfg(doctest)]
#[doc = include_str!("../../../docs/lifecycle.md")]
struct Lifecycle;

/// An error with its causes. Without the URL, which may hold a secret.
fn describe(error: reqwest::Error) -> String {
    with_causes(&error.without_url())
}

/// A new random id for a message.
fn message_id() -> std::io::Result<String> {
    Ok(format!("msg_{}", random_id()?))
}
