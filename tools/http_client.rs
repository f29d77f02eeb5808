use registry_core::prelude::*;
use toolrack_http::HttpClient;

/// The client for addresses that the operator or a tool's author has chosen.
#[resource]
fn http_client() -> Result<HttpClient, ToolError> {
    HttpClient::new()
}
