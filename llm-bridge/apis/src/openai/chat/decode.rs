//! Answers of model servers, streamed or whole. Local servers deviate (ids missing, arguments as objects, `reasoning` or
//! `reasoning_content`, an empty `finish_reason`), and decoding tolerates that.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value, value::RawValue};

use super::{API, OF_CHOICE, OF_MESSAGE};
use crate::{
    CallInput, CallPiece, Decode, Failure, FailureKind, FinishReason, Frame, FrameDecoder, Framing, Passing,
    Piece, Progress, RawJson, UpstreamDetails, Usage,
    json::{Count, Entries, Known, Open, Text, text_of},
};

/// The maximum size of a reply that is not streamed.
const MAX_REPLY: usize = 64 * 1024 * 1024;
/// How much of a reply without an answer is quoted, in characters.
const MAX_QUOTED: usize = 300;

/// Decodes a stream of chunks.
#[derive(Debug)]
pub(super) struct StreamDecoder {
    frames: FrameDecoder,
    progress: Progress,
}

impl Default for StreamDecoder {
    fn default() -> Self {
        Self { frames: FrameDecoder::new(Framing::Sse), progress: Progress::Answering }
    }
}

impl Decode for StreamDecoder {
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let mut failure = None;
        let progress = &mut self.progress;
        let pushed = self.frames.push(bytes, &mut |frame| {
            if failure.is_none() {
                failure = take_frame(frame, progress, pieces).err();
            }
        });
        match failure {
            Some(failure) => Err(failure),
            None => {
                pushed.map_err(|_| Failure::of_upstream("a line of the model server's stream is over 16 MiB"))
            }
        }
    }

    fn finish(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        let mut failure = None;
        let progress = &mut self.progress;
        self.frames.finish(&mut |frame| failure = take_frame(frame, progress, pieces).err());
        match failure {
            Some(failure) => Err(failure),
            None if self.progress == Progress::Answering => {
                Err(Failure::of_upstream("the model server's stream ended before its answer did"))
            }
            None => {
                self.progress = Progress::Done;
                Ok(())
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

fn take_frame(frame: Frame<'_>, progress: &mut Progress, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
    if *progress == Progress::Done {
        return Ok(());
    }
    let data = frame.data.trim();
    if data == "[DONE]" {
        *progress = Progress::Done;
        return Ok(());
    }
    // What is no object is a comment that some servers keep the connection alive with.
    if !data.starts_with('{') {
        return Ok(());
    }
    let before = pieces.len();
    let read = read_answer(data, pieces);
    let is_finish = |piece: &Piece| matches!(piece, Piece::Finish(_));
    if read.is_err() {
        *progress = Progress::Done;
    } else if pieces.iter().skip(before).any(is_finish) {
        *progress = (*progress).max(Progress::Finished);
    }
    read.map(|_| ())
}

/// Decodes a reply that is not streamed.
#[derive(Debug, Default)]
pub(super) struct WholeDecoder {
    body: Vec<u8>,
    progress: Progress,
}

impl Decode for WholeDecoder {
    fn push(&mut self, bytes: &[u8], _: &mut Vec<Piece>) -> Result<(), Failure> {
        self.body.extend_from_slice(bytes);
        if self.body.len() > MAX_REPLY {
            return Err(Failure::of_upstream("the model server's reply is over 64 MiB"));
        }
        Ok(())
    }

    fn finish(&mut self, pieces: &mut Vec<Piece>) -> Result<(), Failure> {
        self.progress = Progress::Done;
        let body = std::mem::take(&mut self.body);
        let body = String::from_utf8_lossy(&body);
        let has_answer = match body.trim_start().starts_with('{') {
            true => read_answer(&body, pieces)?,
            false => false,
        };
        if has_answer {
            return Ok(());
        }
        let quoted: String = crate::openai::error_text(body.into_owned()).chars().take(MAX_QUOTED).collect();
        Err(Failure::of_upstream(format!("the model server's reply has no answer in it: {quoted}")))
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

/// Reads a chunk or a reply; whether there is an answer in it.
fn read_answer(json: &str, pieces: &mut Vec<Piece>) -> Result<bool, Failure> {
    let answer: Open<'_, Answer<'_>> = serde_json::from_str(json)
        .map_err(|error| Failure::of_upstream(format!("the model server sent what is not JSON: {error}")))?;
    let Answer { choice, usage, error, is_error } = answer.known;
    if let Some(error) = error.filter(|error| !matches!(error.get(), "null" | "false")) {
        return Err(failure_of(error.get(), None));
    }
    if is_error {
        return Err(failure_of(json, None));
    }
    let mut passing = Passing::of(API);
    for (name, value) in answer.rest {
        passing.push(name, value);
    }
    let has_answer = choice.is_some();
    let begin = pieces.len();
    if let Some(choice) = choice {
        read_choice(choice, &mut passing, pieces);
    }
    if !passing.is_empty() {
        pieces.insert(begin, Piece::Passing(passing));
    }
    pieces.extend(usage.map(|usage| Piece::Usage(read_usage(usage))));
    Ok(has_answer)
}

fn read_choice(choice: Open<'_, Choice<'_>>, passing: &mut Passing, pieces: &mut Vec<Piece>) {
    for (name, value) in choice.rest {
        passing.push([OF_CHOICE, &*name].concat(), value);
    }
    let Choice { message, reason, .. } = choice.known;
    if let Some(message) = message {
        for (name, value) in message.rest {
            passing.push([OF_MESSAGE, &*name].concat(), value);
        }
        let Said { reasoning, content, calls } = message.known;
        if !reasoning.is_empty() {
            pieces.push(Piece::Reasoning { text: reasoning, seal: None });
        }
        if !content.0.is_empty() {
            pieces.push(Piece::Text(content.0));
        }
        pieces.extend(calls.0.into_iter().map(|call| Piece::Call(read_call(call))));
    }
    pieces.extend(reason.map(Piece::Finish));
}

fn read_call(call: Open<'_, CallDelta<'_>>) -> CallPiece {
    let mut passing = Passing::of(API);
    for (name, value) in call.rest {
        passing.push(name, value);
    }
    let CallDelta { index, id, outer, function, custom } = call.known;
    let input = if custom.is_some() { CallInput::Text } else { CallInput::Json };
    let named = if custom.is_some() { "custom" } else { "function" };
    let FunctionDelta { name, arguments } = match function.or(custom) {
        Some(inner) => {
            keep_rest(&mut passing, named, inner.rest);
            inner.known
        }
        // Some servers leave `function` out.
        None => outer,
    };
    let some = |text: Text| Some(text.0).filter(|text| !text.is_empty());
    CallPiece { index: index.0, id: some(id), name: some(name), arguments, input, passing }
}

fn read_usage(usage: Open<'_, UsageFields<'_>>) -> Usage {
    let UsageFields { input, output, prompt, completion } = usage.known;
    let mut passing = Passing::of(API);
    for (name, value) in usage.rest {
        passing.push(name, value);
    }
    keep_rest(&mut passing, "prompt_tokens_details", prompt.rest);
    keep_rest(&mut passing, "completion_tokens_details", completion.rest);
    Usage {
        input: input.0.unwrap_or(0),
        output: output.0.unwrap_or(0),
        cached: prompt.known.cached.0,
        cache_written: prompt.known.cache_written.0,
        reasoning: completion.known.reasoning.0,
        passing,
    }
}

/// The failure in the body of an error response or in an event of a stream.
pub(super) fn failure_of(json: &str, status: Option<u16>) -> Failure {
    let message = crate::openai::error_text(json.to_owned());
    let mut fields = match serde_json::from_str(json) {
        Ok(Value::Object(mut body)) => match body.shift_remove("error") {
            Some(Value::Object(error)) => error,
            Some(_) => Map::new(),
            None => body,
        },
        _ => Map::new(),
    };
    let code = fields.shift_remove("code").filter(|code| !code.is_null());
    let of_code = code.as_ref().and_then(|code| u16::try_from(code.as_u64()?).ok());
    let mut failure = match status.or(of_code.filter(|code| (400..600).contains(code))) {
        Some(status) => Failure::of_status(status, message),
        None => Failure::of_upstream(message),
    };
    let mut text = |name| match fields.shift_remove(name) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let (error_type, param) = (text("type"), text("param"));
    let words = [error_type.as_deref(), code.as_ref().and_then(Value::as_str)];
    let is_known =
        |word: &Option<&str>| matches!(word, Some("context_length_exceeded" | "exceed_context_size_error"));
    if words.iter().any(is_known) || failure.message.contains("maximum context length") {
        failure.kind = FailureKind::ContextLength;
        failure.status = status.filter(|status| (400..500).contains(status)).unwrap_or(400);
    }
    let others = fields.into_iter().filter(|(name, value)| {
        !value.is_null() && !matches!(name.as_str(), "message" | "object" | "detail" | "error")
    });
    let others = others.map(|(name, value)| (name.into(), RawJson::of(&value))).collect();
    let code = code.as_ref().map(RawJson::of);
    failure.param = param;
    failure.upstream = Some(Box::new(UpstreamDetails { error_type, code, others }));
    failure
}

/// The fields that have not been read, as one raw object under a name.
fn keep_rest(passing: &mut Passing, name: &str, rest: Rest<'_>) {
    if !rest.is_empty() {
        passing.push(name, RawJson::of(&Entries(&rest)));
    }
}

type Rest<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

#[derive(Debug, Default)]
struct Answer<'a> {
    choice: Option<Open<'a, Choice<'a>>>,
    usage: Option<Open<'a, UsageFields<'a>>>,
    error: Option<&'a RawValue>,
    is_error: bool,
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

/// Reads an array item by item; anything else has no items.
fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    mut take: impl FnMut(T),
) -> Result<(), D::Error> {
    struct Visit<F, T>(F, PhantomData<T>);

    impl<'de, F: FnMut(T), T: Deserialize<'de>> Visitor<'de> for Visit<F, T> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                (self.0)(item);
            }
            Ok(())
        }

        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }

        fn visit_str<E>(self, _: &str) -> Result<(), E> {
            Ok(())
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(())
        }
    }

    deserializer.deserialize_any(Visit(&mut take, PhantomData))
}

#[derive(Debug, Default)]
struct Choice<'a> {
    has_fields: bool,
    index: Count,
    message: Option<Open<'a, Said<'a>>>,
    reason: Option<FinishReason>,
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
struct Said<'a> {
    reasoning: String,
    content: Words,
    calls: Calls<'a>,
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
struct Words(String);

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
struct Calls<'a>(Vec<Open<'a, CallDelta<'a>>>);

impl<'de> Deserialize<'de> for Calls<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut calls = Vec::new();
        each(deserializer, |call| calls.push(call))?;
        Ok(Self(calls))
    }
}

#[derive(Debug, Default)]
struct CallDelta<'a> {
    index: Count,
    id: Text,
    /// The fields of a function that stand in the call itself.
    outer: FunctionDelta,
    function: Option<Open<'a, FunctionDelta>>,
    custom: Option<Open<'a, FunctionDelta>>,
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
struct FunctionDelta {
    name: Text,
    arguments: String,
}

impl<'de> Known<'de> for FunctionDelta {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "name" => self.name = map.next_value()?,
            "arguments" | "input" => {
                let value: &'de RawValue = map.next_value()?;
                self.arguments = match text_of(value) {
                    Some(text) => text,
                    None if value.get() == "null" => String::new(),
                    None => value.get().to_owned(),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct UsageFields<'a> {
    input: Count,
    output: Count,
    prompt: Open<'a, Details>,
    completion: Open<'a, Details>,
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
struct Details {
    cached: Count,
    cache_written: Count,
    reasoning: Count,
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
