//! Gemini's `generateContent`.

mod answers;
pub(crate) mod random;
mod requests;

use serde_json::Value;
use toolrack_apis::{BadRequest, Decoded, Front, Provider, Request, gemini::GeminiFront};

const API: Provider = Provider::Gemini;

fn parts(path: &str) -> http::request::Parts {
    http::Request::builder().uri(path).body(()).unwrap().into_parts().0
}

fn decode(body: &[u8]) -> Result<Decoded, BadRequest> {
    GeminiFront.decode(&parts("/v1beta/models/m:streamGenerateContent?alt=sse"), body)
}

fn decoded(body: &Value) -> Request {
    decode(body.to_string().as_bytes()).unwrap().request
}
