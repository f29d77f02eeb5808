//! Answers of model servers: lines of a stream, or one reply.

use serde::de::{IgnoredAny, MapAccess};
use serde_json::value::RawValue;

use super::{API, DURATIONS, OF_MESSAGE};
use crate::{
    CallInput, CallPiece, Failure, FinishReason, Frame, Passing, Piece, Progress, RawJson, Usage,
    json::{ArgumentsText, Count, Entries, Known, Open, Text, each},
    openai::failure_of,
};

/// Reads a line of a stream.
pub(super) fn read_frame(frame: Frame<'_>, pieces: &mut Vec<Piece>) -> Result<Progress, Failure> {
    match frame.data.trim_start().starts_with('{') {
        true => Ok(if read_line(frame.data, pieces)?.done { Progress::Done } else { Progress::Answering }),
        false => Ok(Progress::Answering),
    }
}

/// Reads a reply; whether there is an answer in it.
pub(super) fn read_reply(json: &str, pieces: &mut Vec<Piece>) -> Result<bool, Failure> {
    let line = read_line(json, pieces)?;
    Ok(line.has_answer || line.done)
}

/// What there is in a line besides its pieces.
struct Read {
    has_answer: bool,
    done: bool,
}

fn read_line(json: &str, pieces: &mut Vec<Piece>) -> Result<Read, Failure> {
    let line: Open<'_, Line<'_>> = serde_json::from_str(json)
        .map_err(|error| Failure::of_upstream(format!("it sent what is not JSON: {error}")))?;
    let Line { message, done, reason, input, output, durations, error } = line.known;
    if let Some(error) = error.filter(|error| error.get() != "null") {
        // A message alone, or an object as from other servers.
        let body = if error.get().starts_with('{') { error.get() } else { json };
        return Err(failure_of(body, None));
    }
    let mut passing = Passing::of(API);
    for (name, value) in line.rest {
        passing.push(name, value);
    }
    let (has_answer, begin) = (message.is_some(), pieces.len());
    if let Some(message) = message {
        for (name, value) in message.rest {
            passing.push([OF_MESSAGE, &*name].concat(), value);
        }
        let Message { thinking, content, calls } = message.known;
        if !thinking.0.is_empty() {
            pieces.push(Piece::Reasoning { text: thinking.0, seal: None });
        }
        if !content.0.is_empty() {
            pieces.push(Piece::Text(content.0));
        }
        pieces.extend(calls.0.into_iter().map(|call| Piece::Call(read_call(call))));
    }
    if !passing.is_empty() {
        pieces.insert(begin, Piece::Passing(passing));
    }
    if done {
        pieces.push(Piece::Finish(match reason.0.as_str() {
            "" | "stop" => FinishReason::Stop,
            "length" => FinishReason::Length,
            _ => FinishReason::Other(reason.0),
        }));
        // A prompt that was cached has no count.
        if input.0.or(output.0).is_some() {
            let (input, output) = (input.0.unwrap_or(0), output.0.unwrap_or(0));
            pieces.push(Piece::Usage(Usage { input, output, passing: durations, ..Usage::default() }));
        }
    }
    Ok(Read { has_answer, done })
}

/// A call is always whole. Its index is not read: some versions give every call the same.
fn read_call(call: Open<'_, Call<'_>>) -> CallPiece {
    let mut passing = Passing::of(API);
    for (name, value) in call.rest {
        passing.push(name, value);
    }
    let Call { id, function } = call.known;
    let Function { name, arguments } = function.known;
    if !function.rest.is_empty() {
        passing.push("function", RawJson::of(&Entries(&function.rest)));
    }
    let some = |text: Text| Some(text.0).filter(|text| !text.is_empty());
    CallPiece { index: None, id: some(id), name: some(name), arguments, input: CallInput::Json, passing }
}

#[derive(Debug, Default)]
struct Line<'a> {
    message: Option<Open<'a, Message<'a>>>,
    done: bool,
    reason: Text,
    input: Count,
    output: Count,
    durations: Passing,
    error: Option<&'a RawValue>,
}

impl<'de> Known<'de> for Line<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "model" | "created_at" | "total_duration" => drop(map.next_value::<IgnoredAny>()?),
            "message" => self.message = map.next_value()?,
            "done" => self.done = map.next_value::<&RawValue>()?.get() == "true",
            "done_reason" => self.reason = map.next_value()?,
            "prompt_eval_count" => self.input = map.next_value()?,
            "eval_count" => self.output = map.next_value()?,
            "error" => self.error = Some(map.next_value()?),
            _ if DURATIONS.contains(&name) => {
                let nanos: Count = map.next_value()?;
                if let Some(nanos) = nanos.0 {
                    if self.durations.is_empty() {
                        self.durations = Passing::of(API);
                    }
                    self.durations.push(name, RawJson::of(&nanos));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct Message<'a> {
    thinking: Text,
    content: Text,
    calls: Calls<'a>,
}

impl<'de> Known<'de> for Message<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "role" => drop(map.next_value::<IgnoredAny>()?),
            "thinking" => self.thinking = map.next_value()?,
            "content" => self.content = map.next_value()?,
            "tool_calls" => self.calls = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct Calls<'a>(Vec<Open<'a, Call<'a>>>);

impl<'de> serde::Deserialize<'de> for Calls<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut calls = Vec::new();
        each(deserializer, |call| calls.push(call))?;
        Ok(Self(calls))
    }
}

#[derive(Debug, Default)]
struct Call<'a> {
    id: Text,
    function: Open<'a, Function>,
}

impl<'de> Known<'de> for Call<'de> {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "id" => self.id = map.next_value()?,
            "type" => drop(map.next_value::<IgnoredAny>()?),
            "function" => self.function = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[derive(Debug, Default)]
struct Function {
    name: Text,
    arguments: String,
}

impl<'de> Known<'de> for Function {
    fn read<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match name {
            "index" => drop(map.next_value::<IgnoredAny>()?),
            "name" => self.name = map.next_value()?,
            "arguments" => self.arguments = map.next_value::<ArgumentsText>()?.0,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
