//! Anthropic Messages.

mod answers;
pub(crate) mod random;
mod requests;

use serde_json::Value;
use toolrack_apis::{BadRequest, Decoded, Front, Provider, Request, anthropic::AnthropicFront};

const API: Provider = Provider::Anthropic;

fn decode(body: &[u8]) -> Result<Decoded, BadRequest> {
    AnthropicFront.decode(&http::Request::new(()).into_parts().0, body)
}

fn decoded(body: &Value) -> Request {
    decode(body.to_string().as_bytes()).unwrap().request
}
