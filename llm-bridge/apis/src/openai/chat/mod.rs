//! The chat completions API: <https://platform.openai.com/docs/api-reference/chat>.
//!
//! Canonical fields of a request are in [`Request`](crate::Request); all others pass. Passing fields of an answer have their place in
//! front of their name: `timings` is one of the chunk or reply, `choice.logprobs` of its choice, `message.refusal` of the message or
//! delta.

mod answer;
mod call;
mod chunk;
mod decode;
mod encode;
mod front;
mod message_json;
mod messages;
pub(crate) mod tools;
mod wire;

pub use front::OpenAiFront;
pub use wire::OpenAiWire;

pub(crate) use decode::failure_of;
pub(crate) use front::error_body;
pub(crate) use messages::read_audio;

use crate::Provider;

const API: Provider = Provider::OpenAi;
/// What stands in front of a passing field of a choice, and of a message or delta.
const OF_CHOICE: &str = "choice.";
const OF_MESSAGE: &str = "message.";
