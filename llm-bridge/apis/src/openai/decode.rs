//! Answers of model servers, streamed or whole. Local servers deviate (ids missing, arguments as objects, `reasoning` or
//! `reasoning_content`, an empty `finish_reason`), and decoding tolerates that.

use serde_json::{Map, Value};

use super::{
    API, OF_CHOICE, OF_MESSAGE,
    answer::{Answer, CallDelta, Choice, FunctionDelta, Rest, Said, UsageFields},
};
use crate::{
    CallInput, CallPiece, Failure, FailureKind, FinishReason, Frame, Passing, Piece, Progress, RawJson,
    UpstreamDetails, Usage,
    json::{Entries, Open, Text, text_of},
    passing::is_ours,
};

/// Reads an event of a stream.
pub(super) fn read_frame(frame: Frame<'_>, pieces: &mut Vec<Piece>) -> Result<Progress, Failure> {
    let data = frame.data.trim();
    if data == "[DONE]" {
        return Ok(Progress::Done);
    }
    // What is no object is a comment that some servers keep the connection alive with.
    if !data.starts_with('{') {
        return Ok(Progress::Answering);
    }
    let before = pieces.len();
    read_answer(data, pieces)?;
    let is_finished = pieces.iter().skip(before).any(|piece| matches!(piece, Piece::Finish(_)));
    Ok(if is_finished { Progress::Finished } else { Progress::Answering })
}

/// Reads a chunk or a reply; whether there is an answer in it.
pub(super) fn read_answer(json: &str, pieces: &mut Vec<Piece>) -> Result<bool, Failure> {
    let answer: Open<'_, Answer<'_>> = serde_json::from_str(json)
        .map_err(|error| Failure::of_upstream(format!("it sent what is not JSON: {error}")))?;
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
    // vLLM, SGLang. Where a token has ended the answer, it is a number.
    let stopped = choice.rest.iter().find(|(name, _)| matches!(&**name, "stop_reason" | "matched_stop"));
    let stopped = stopped.and_then(|(_, value)| text_of(value)).filter(|text| !text.is_empty());
    for (name, value) in choice.rest {
        passing.push([OF_CHOICE, &*name].concat(), value);
    }
    let Choice { message, reason, .. } = choice.known;
    let reason = match (reason, stopped) {
        (Some(FinishReason::Stop), Some(text)) => Some(FinishReason::StopSequence(text)),
        (reason, _) => reason,
    };
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

/// What servers say of a request that is too long and does not say so by its type: vLLM, LM Studio, SGLang, older llama.cpp.
const TOO_LONG: [&str; 4] = [
    "maximum context length",
    "exceeds the context length",
    "exceeds maximum context length",
    "exceeds the available context size",
];

/// The failure in the body of an error response or in an event of a stream.
pub(crate) fn failure_of(json: &str, status: Option<u16>) -> Failure {
    let json = super::beginning(json);
    let message = super::error_text(json);
    let message = if message.trim().is_empty() { "it gives no reason".to_owned() } else { message };
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
    if words.iter().any(is_known) || TOO_LONG.iter().any(|words| failure.message.contains(words)) {
        failure.kind = FailureKind::ContextLength;
        failure.status = status.filter(|status| (400..500).contains(status)).unwrap_or(400);
    }
    let others = fields.into_iter().filter(|(name, value)| {
        !value.is_null()
            && !is_ours(name)
            && !matches!(name.as_str(), "message" | "object" | "detail" | "error")
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
