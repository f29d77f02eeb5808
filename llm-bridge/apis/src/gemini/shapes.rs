//! The shapes of an answer.

use serde::{Serialize, Serializer};
use serde_json::{Value, value::RawValue};

use super::API;
use crate::{ClientCall, Usage, json::Leftover, passing::Fields};

/// An answer, or a chunk of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    pub(super) candidates: [Candidate<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_metadata: Option<UsageJson<'a>>,
    pub(super) model_version: &'a str,
    pub(super) response_id: &'a str,
    #[serde(rename = "x_toolrack", skip_serializing_if = "Option::is_none")]
    pub(super) x_toolrack: Option<Details<'a>>,
}

/// What happened to tools of the server.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Details<'a> {
    One(&'a Value),
    All(&'a [Value]),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) content: ContentJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) finish_message: Option<&'a str>,
    pub(super) index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) logprobs_result: Option<Value>,
    #[serde(flatten)]
    pub(super) passing: Fields<'a>,
}

/// Fields of a candidate that are written anyhow.
pub(super) const OF_CANDIDATE: &[&str] =
    &["content", "finishReason", "finishMessage", "index", "logprobsResult"];

#[derive(Serialize)]
pub(super) struct ContentJson<'a> {
    pub(super) parts: &'a [AnswerPart],
    pub(super) role: &'static str,
}

/// A part of an answer.
#[derive(Debug)]
pub(super) enum AnswerPart {
    Text(String),
    Thought { text: String, signature: Option<String> },
    Call(ClientCall),
}

impl Serialize for AnswerPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Default, Serialize)]
        #[serde(rename_all = "camelCase")]
        struct PartJson<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            text: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            thought: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            thought_signature: Option<&'a str>,
        }
        let part = match self {
            Self::Call(call) => {
                return CallJson::of(call, &call.call.arguments_as_object()).serialize(serializer);
            }
            Self::Text(text) => PartJson { text: Some(text), ..PartJson::default() },
            Self::Thought { text, signature } => {
                PartJson { text: Some(text), thought: Some(true), thought_signature: signature.as_deref() }
            }
        };
        part.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallJson<'a> {
    function_call: FunctionCall<'a>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: &'a RawValue,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

impl<'a> CallJson<'a> {
    fn of(ClientCall { call, passing }: &'a ClientCall, args: &'a RawValue) -> Self {
        let inner = Leftover(passing.get(API, "functionCall"));
        Self {
            function_call: FunctionCall { id: &call.id, name: &call.name, args, passing: inner },
            passing: Fields { fields: passing.to(API), but: &["functionCall"] },
        }
    }
}

/// The tokens used. Those of thoughts are not among `candidatesTokenCount`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageJson<'a> {
    prompt_token_count: u64,
    candidates_token_count: u64,
    total_token_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_content_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thoughts_token_count: Option<u64>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

impl<'a> UsageJson<'a> {
    pub(super) fn of(usage: &'a Usage) -> Self {
        Self {
            prompt_token_count: usage.input,
            candidates_token_count: usage.output.saturating_sub(usage.reasoning.unwrap_or(0)),
            total_token_count: usage.total(),
            cached_content_token_count: usage.cached,
            thoughts_token_count: usage.reasoning,
            passing: Fields { fields: usage.passing.to(API), but: &[] },
        }
    }
}
