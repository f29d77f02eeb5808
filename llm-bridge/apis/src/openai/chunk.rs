//! The fields of chunks and replies as they go to clients.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{
    API, OF_CHOICE, OF_MESSAGE,
    call::{CallJson, FunctionJson},
};
use crate::{
    RawJson, TurnEvent, Usage,
    json::Leftover,
    passing::{Fields, is_ours},
};

/// The fields that the chunks of a stream have in common.
#[derive(Serialize)]
pub(super) struct Opening<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
}

/// The other fields of a chunk.
#[derive(Serialize)]
pub(super) struct Chunk<'a> {
    pub(super) choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<UsageJson<'a>>,
    #[serde(flatten)]
    pub(super) tool: Option<ToolFields>,
    #[serde(flatten)]
    pub(super) passing: Placed<'a>,
}

#[derive(Serialize)]
pub(super) struct ChunkChoice<'a> {
    pub(super) index: u32,
    pub(super) delta: Delta<'a>,
    pub(super) logprobs: Logprobs<'a>,
    pub(super) finish_reason: Option<&'a str>,
    #[serde(flatten)]
    pub(super) passing: Placed<'a>,
}

#[derive(Default, Serialize)]
pub(super) struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<&'a [CallJson<'a>]>,
    #[serde(flatten)]
    pub(super) passing: Placed<'a>,
}

#[derive(Serialize)]
pub(super) struct Reply<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: u64,
    pub(super) model: &'a str,
    pub(super) choices: [WholeChoice<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<UsageJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) x_toolrack: Option<&'a [Value]>,
    #[serde(flatten)]
    pub(super) passing: &'a Map<String, Value>,
}

#[derive(Serialize)]
pub(super) struct WholeChoice<'a> {
    pub(super) index: u32,
    pub(super) message: Message<'a>,
    pub(super) logprobs: Option<Value>,
    pub(super) finish_reason: &'a str,
    #[serde(flatten)]
    pub(super) passing: &'a Map<String, Value>,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) function_call: Option<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<&'a [CallJson<'a>]>,
    #[serde(flatten)]
    pub(super) passing: &'a Map<String, Value>,
}

/// What happens to a tool: for people (in Open WebUI's form), and for programs.
#[derive(Serialize)]
pub(super) struct ToolFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<Value>,
    pub(super) x_toolrack: Value,
}

impl ToolFields {
    pub(super) fn of(event: &TurnEvent) -> Option<Self> {
        let line = match event {
            TurnEvent::Tool(status) => status.line(),
            TurnEvent::Notice(text) => Some((text.clone(), true)),
            _ => None,
        };
        let status = |(text, done)| json!({"type": "status", "data": {"description": text, "done": done}});
        Some(Self { event: line.map(status), x_toolrack: event.details()? })
    }
}

/// The passing fields of a place. `logprobs` has a field of its own, as SDKs expect it in each choice.
#[derive(Clone, Copy, Default)]
pub(super) struct Placed<'a> {
    pub(super) fields: &'a [(Box<str>, RawJson)],
    pub(super) place: &'static str,
}

impl Serialize for Placed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let here = self.fields.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(self.place)?;
            let is_here = match self.place {
                "" => !name.starts_with(OF_CHOICE) && !name.starts_with(OF_MESSAGE),
                OF_CHOICE => name != LOGPROBS,
                _ => true,
            };
            (is_here && !is_ours(name)).then_some((name, value))
        });
        serializer.collect_map(here)
    }
}

const LOGPROBS: &str = "logprobs";

/// The field `logprobs` of a choice; null without any.
pub(super) struct Logprobs<'a>(pub(super) &'a [(Box<str>, RawJson)]);

impl Serialize for Logprobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = self.0.iter().find(|(name, _)| name.strip_prefix(OF_CHOICE) == Some(LOGPROBS));
        found.map(|(_, value)| value).serialize(serializer)
    }
}

#[derive(Serialize)]
pub(super) struct UsageJson<'a> {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<PromptDetails<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<CompletionDetails<'a>>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Serialize)]
struct PromptDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

#[derive(Serialize)]
struct CompletionDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

impl<'a> UsageJson<'a> {
    pub(super) fn of(usage: &'a Usage) -> Self {
        let (prompt, completion) = ("prompt_tokens_details", "completion_tokens_details");
        let (of_prompt, of_completion) = (usage.passing.get(API, prompt), usage.passing.get(API, completion));
        let has_prompt = usage.cached.or(usage.cache_written).is_some() || of_prompt.is_some();
        let has_completion = usage.reasoning.is_some() || of_completion.is_some();
        Self {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.total(),
            prompt_tokens_details: has_prompt.then_some(PromptDetails {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.cache_written,
                passing: Leftover(of_prompt),
            }),
            completion_tokens_details: has_completion.then_some(CompletionDetails {
                reasoning_tokens: usage.reasoning,
                passing: Leftover(of_completion),
            }),
            passing: Fields {
                fields: usage.passing.to(API),
                but: &["prompt_tokens_details", "completion_tokens_details"],
            },
        }
    }
}
