//! The Anthropic Messages API: <https://docs.anthropic.com/en/api/messages>.
//!
//! Clients send their key as `x-api-key` or as `authorization: Bearer …`, and name the API's version in `anthropic-version`; every
//! version is answered alike. Canonical fields of a request are in [`Request`](crate::Request); all others pass, `cache_control`,
//! `metadata` and `service_tier` among them. Passing fields of an answer are those of the message, such as `stop_details`.

mod client_side;
mod encode;
mod front;
mod messages;
mod models;
mod shapes;
pub(crate) mod tools;
mod whole;

pub use front::AnthropicFront;

use crate::Provider;

const API: Provider = Provider::Anthropic;

/// The signature of reasoning that no model server has signed. Clients keep only reasoning that has one, and it means nothing when it comes back.
const UNSIGNED: &str = "dG9vbHJhY2s=";
