//! The fields of chunks and replies of model servers.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess},
};
use serde_json::value::RawValue;

use crate::{
    FinishReason,
    json::{ArgumentsText, Count, Known, Open, Text, each, text_of},
};

/// Fields that are not known.
pub(super) type Rest<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

#[derive(Debug, Default)]
pub(super) struct Answer<'a> {
    pub(super) choice: Option<Open<'a, Choice<'a>>>,
    pub(super) usage: Option<Open<'a, UsageFields<'a>>>,
    pub(super) error: Option<&'a RawValue>,
    pub(super) is_error: bool,
}

impl<'de> Known<'de> for Answer<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "id" | "created" | "model" => drop(map.next_value::<IgnoredAny>()?),
            "object" => self.is_error = map.next_value::<&RawValue>()?.get() == "\"error\"",
            "choices" => self.choice = map.next_value::<FirstChoice<'de>>()?.0,
            "usage" => self.usage = map.next_value()?,
            "error" => self.error = Some(map.next_value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The first of the choices; a server may send more than one.
struct FirstChoice<'a>(Option<Open<'a, Choice<'a>>>);

impl<'de> Deserialize<'de> for FirstChoice<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut first = None;
        each(deserializer, |choice: Open<'de, Choice<'de>>| {
            if first.is_none() && choice.known.is_choice() {
                first = Some(choice);
            }
        })?;
        Ok(Self(first))
    }
}

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) has_fields: bool,
    pub(super) index: Count,
    pub(super) message: Option<Open<'a, Said<'a>>>,
    pub(super) reason: Option<FinishReason>,
}

impl Choice<'_> {
    fn is_choice(&self) -> bool {
        self.has_fields && self.index.0.unwrap_or(0) == 0
    }
}

impl<'de> Known<'de> for Choice<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        self.has_fields = true;
        match name {
            "index" => self.index = map.next_value()?,
            "delta" | "message" => self.message = map.next_value::<Option<_>>()?.or(self.message.take()),
            "finish_reason" => self.reason = read_reason(map.next_value::<Text>()?.0),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The reason in the API's word. Some servers send an empty one in chunks before the last.
fn read_reason(word: String) -> Option<FinishReason> {
    Some(match word.as_str() {
        "" => return None,
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(word),
    })
}

#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) reasoning: String,
    pub(super) content: Words,
    pub(super) calls: Calls<'a>,
}

impl<'de> Known<'de> for Said<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "role" => drop(map.next_value::<IgnoredAny>()?),
            // A server that sends both sends the same text twice.
            "reasoning_content" | "reasoning" => {
                let text = map.next_value::<Text>()?.0;
                if self.reasoning.is_empty() {
                    self.reasoning = text;
                }
            }
            "content" => self.content = map.next_value()?,
            "tool_calls" => self.calls = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Content: a text, or the texts of parts, each in a line of its own.
#[derive(Debug, Default)]
pub(super) struct Words(pub(super) String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?;
        if let Some(text) = text_of(value) {
            return Ok(Self(text));
        }
        let parts: Vec<Open<'_, TextPart>> = serde_json::from_str(value.get()).unwrap_or_default();
        let texts: Vec<String> = parts.into_iter().filter_map(|part| part.known.text).collect();
        Ok(Self(texts.join("\n")))
    }
}

#[derive(Debug, Default)]
struct TextPart {
    text: Option<String>,
}

impl<'de> Known<'de> for TextPart {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        let is_text = name == "text";
        if is_text {
            self.text = Some(map.next_value::<Text>()?.0);
        }
        Ok(is_text)
    }
}

#[derive(Debug, Default)]
pub(super) struct Calls<'a>(pub(super) Vec<Open<'a, CallDelta<'a>>>);

impl<'de> Deserialize<'de> for Calls<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut calls = Vec::new();
        each(deserializer, |call| calls.push(call))?;
        Ok(Self(calls))
    }
}

#[derive(Debug, Default)]
pub(super) struct CallDelta<'a> {
    pub(super) index: Count,
    pub(super) id: Text,
    /// The fields of a function that stand in the call itself.
    pub(super) outer: FunctionDelta,
    pub(super) function: Option<Open<'a, FunctionDelta>>,
    pub(super) custom: Option<Open<'a, FunctionDelta>>,
}

impl<'de> Known<'de> for CallDelta<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "index" => self.index = map.next_value()?,
            "id" => self.id = map.next_value()?,
            "type" => drop(map.next_value::<IgnoredAny>()?),
            "function" => self.function = map.next_value()?,
            "custom" => self.custom = map.next_value()?,
            _ => return self.outer.read(name, map),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
pub(super) struct FunctionDelta {
    pub(super) name: Text,
    pub(super) arguments: String,
}

impl<'de> Known<'de> for FunctionDelta {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "arguments" | "input" => self.arguments = map.next_value::<ArgumentsText>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
pub(super) struct UsageFields<'a> {
    pub(super) input: Count,
    pub(super) output: Count,
    pub(super) prompt: Open<'a, Details>,
    pub(super) completion: Open<'a, Details>,
}

impl<'de> Known<'de> for UsageFields<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "prompt_tokens" => self.input = map.next_value()?,
            "completion_tokens" => self.output = map.next_value()?,
            "total_tokens" => drop(map.next_value::<IgnoredAny>()?),
            "prompt_tokens_details" => self.prompt = map.next_value()?,
            "completion_tokens_details" => self.completion = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
pub(super) struct Details {
    pub(super) cached: Count,
    pub(super) cache_written: Count,
    pub(super) reasoning: Count,
}

impl<'de> Known<'de> for Details {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "cached_tokens" => self.cached = map.next_value()?,
            "cache_write_tokens" => self.cache_written = map.next_value()?,
            "reasoning_tokens" => self.reasoning = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
