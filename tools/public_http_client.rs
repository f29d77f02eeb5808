use registry_core::prelude::*;
use toolrack_http::PublicHttpClient;

/// The client for addresses that a model may name: it reaches the public internet and nothing else.
#[resource]
fn public_http_client() -> Result<PublicHttpClient, ToolError> {
    PublicHttpClient::new()
}
