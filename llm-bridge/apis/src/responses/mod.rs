//! OpenAI's Responses API, spoken by clients: <https://platform.openai.com/docs/api-reference/responses>.
//!
//! A key comes as `Authorization: Bearer`. Canonical fields of a request are in [`Request`](crate::Request); all others pass. Which
//! answer a request continues and whether its own is kept is in [`Conversation`](crate::Conversation); what is kept is an [`Addition`]
//! and the [response as it was given](crate::Encode::take_response).

mod encode;
mod event;
mod front;
mod input;
mod item;
mod kept;
mod namespace;
pub(crate) mod tools;

pub use front::{ITEMS_HEADER, ResponsesFront};
pub use kept::{Added, Addition, KeptItems, KeptResponse, read_addition, response_of_item};

use crate::Provider;

const API: Provider = Provider::Responses;
/// The label of this server in items of type `mcp_call`, which say what happens to its tools.
const SERVER_LABEL: &str = "toolrack";
