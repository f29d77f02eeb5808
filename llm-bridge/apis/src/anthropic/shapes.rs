//! The shapes of an answer.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, value::RawValue};

use super::API;
use crate::{Framing, Passing, Usage, passing::Fields};

/// Fields of a message that are written anyhow.
pub(super) const OWN: &[&str] =
    &["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage", "x_toolrack"];

/// Appends an event, whose name is also its type.
pub(super) fn send(out: &mut Vec<u8>, name: &'static str, body: impl Serialize) {
    #[derive(Serialize)]
    struct Event<B> {
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(flatten)]
        body: B,
    }
    Framing::Sse.append(out, Some(name), &Event { kind: name, body });
}

/// Appends the next piece of a block.
pub(super) fn send_delta(index: usize, delta: &Delta<'_>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct BlockDelta<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        index: usize,
        delta: &'a Delta<'a>,
    }
    const NAME: &str = "content_block_delta";
    Framing::Sse.append(out, Some(NAME), &BlockDelta { kind: NAME, index, delta });
}

#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) role: &'static str,
    pub(super) model: &'a str,
    pub(super) content: &'a [Block<'a>],
    pub(super) stop_reason: Option<&'a str>,
    pub(super) stop_sequence: Option<&'a str>,
    pub(super) usage: UsageJson<'a>,
    #[serde(skip_serializing_if = "<[Value]>::is_empty")]
    pub(super) x_toolrack: &'a [Value],
    #[serde(flatten)]
    pub(super) passing: Fields<'a>,
}

/// What of a message is known at its end only.
#[derive(Serialize)]
pub(super) struct MessageDelta<'a> {
    pub(super) stop_reason: &'a str,
    pub(super) stop_sequence: Option<&'a str>,
    #[serde(flatten)]
    pub(super) passing: Fields<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse(ToolUse<'a>),
}

#[derive(Serialize)]
pub(super) struct ToolUse<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(serialize_with = "object_or_empty")]
    input: Option<&'a RawValue>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

impl<'a> Block<'a> {
    /// A call. Where its arguments come in deltas, it has no input.
    pub(super) fn call(
        id: &'a str,
        name: &'a str,
        input: Option<&'a RawValue>,
        passing: &'a Passing,
    ) -> Self {
        let passing = Fields { fields: passing.to(API), but: &["id", "name", "input", "type"] };
        Self::ToolUse(ToolUse { id, name, input, passing })
    }
}

#[allow(clippy::ref_option)] // serde's signature
fn object_or_empty<S: Serializer>(input: &Option<&RawValue>, serializer: S) -> Result<S::Ok, S::Error> {
    match input {
        Some(input) => input.serialize(serializer),
        None => serializer.serialize_map(Some(0))?.end(),
    }
}

/// The tokens used. Those that were read from a cache or written to it are not among `input_tokens`.
#[derive(Serialize)]
pub(super) struct UsageJson<'a> {
    input_tokens: u64,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<OutputDetails>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Serialize)]
struct OutputDetails {
    thinking_tokens: u64,
}

impl<'a> UsageJson<'a> {
    pub(super) fn of(usage: &'a Usage) -> Self {
        let of_cache = usage.cached.unwrap_or(0).saturating_add(usage.cache_written.unwrap_or(0));
        Self {
            input_tokens: usage.input.saturating_sub(of_cache),
            output_tokens: usage.output,
            cache_read_input_tokens: usage.cached,
            cache_creation_input_tokens: usage.cache_written,
            output_tokens_details: usage.reasoning.map(|thinking_tokens| OutputDetails { thinking_tokens }),
            passing: Fields { fields: usage.passing.to(API), but: &[] },
        }
    }
}
