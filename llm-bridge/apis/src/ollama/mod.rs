//! Ollama's own API: <https://docs.ollama.com/api>.
//!
//! Canonical fields of a request are in [`Request`](crate::Request); all others pass: `keep_alive`, `logprobs`, and below `options`
//! those that are not [`Sampling`](crate::Sampling), such as `num_ctx`. Passing fields of an answer have their place in front of their
//! name: `logprobs` is one of the line, `message.x` of its message.

mod decode;
mod encode;
mod front;
mod message_json;
mod messages;
pub mod models;
pub(crate) mod tools;
mod wire;

pub use front::OllamaFront;
pub use wire::{OllamaWire, leave_out_loading};

use crate::Provider;

const API: Provider = Provider::Ollama;
/// What stands in front of a passing field of a message.
const OF_MESSAGE: &str = "message.";
/// How long the parts of an answer took, in nanoseconds. `total_duration` is that of the whole turn.
const DURATIONS: [&str; 3] = ["load_duration", "prompt_eval_duration", "eval_duration"];
