//! OpenAI's Responses API, spoken by clients: <https://platform.openai.com/docs/api-reference/responses>.
//!
//! A key comes as `Authorization: Bearer`. Canonical fields of a request are in [`Request`](crate::Request); all others pass. Which
//! answer a request continues and whether its own is kept is in [`Conversation`](crate::Conversation); the id of the answer is
//! [`Encode::id`](crate::Encode::id).

mod encode;
mod event;
mod front;
mod input;
mod item;
mod namespace;
pub(crate) mod tools;

pub use front::ResponsesFront;

use crate::Provider;

const API: Provider = Provider::Responses;
/// The label of this server in items of type `mcp_call`, which say what happens to its tools.
const SERVER_LABEL: &str = "toolrack";
