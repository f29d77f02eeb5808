//! Answers of completion servers. The three forms have no field in common but `error`, and are read as one.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Failure, FinishReason, Frame, Piece, Progress, Usage, openai::failure_of};

#[derive(Debug, Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    // llama.cpp
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
    #[serde(default)]
    stop: bool,
    #[serde(borrow)]
    stop_type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stopping_word: Option<Cow<'a, str>>,
    tokens_evaluated: Option<u64>,
    tokens_predicted: Option<u64>,
    // Ollama
    #[serde(borrow)]
    response: Option<Cow<'a, str>>,
    #[serde(default)]
    done: bool,
    #[serde(borrow)]
    done_reason: Option<Cow<'a, str>>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    // OpenAI
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Counts>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}

/// Reads a frame of a stream.
pub(super) fn read_frame(frame: Frame<'_>, pieces: &mut Vec<Piece>) -> Result<Progress, Failure> {
    match frame.data.trim() {
        "[DONE]" => Ok(Progress::Done),
        data if data.starts_with('{') => Ok(read(data, pieces)?.1),
        _ => Ok(Progress::Answering),
    }
}

/// Reads a reply; whether there is an answer in it.
pub(super) fn read_reply(json: &str, pieces: &mut Vec<Piece>) -> Result<bool, Failure> {
    read(json, pieces).map(|(has_answer, _)| has_answer)
}

fn read(json: &str, pieces: &mut Vec<Piece>) -> Result<(bool, Progress), Failure> {
    let mut answer: Answer<'_> = serde_json::from_str(json)
        .map_err(|error| Failure::of_upstream(format!("it sent what cannot be read: {error}")))?;
    if let Some(error) = answer.error.filter(|error| error.get() != "null") {
        let body = if error.get().starts_with('{') { error.get() } else { json };
        return Err(failure_of(body, None));
    }
    let choice =
        answer.choices.take().and_then(|choices| choices.into_iter().find(|choice| choice.index == 0));
    let (said, ended) = choice.map_or((None, None), |choice| (choice.text, choice.finish_reason));
    let text = answer.content.take().or(answer.response.take()).or(said);
    let has_answer = text.is_some();
    pieces.extend(text.filter(|text| !text.is_empty()).map(|text| Piece::Text(text.into_owned())));
    let reason = match (answer.stop, answer.done) {
        (true, _) => Some(answer.stop_type.take().unwrap_or_default()),
        (_, true) => Some(answer.done_reason.take().unwrap_or_default()),
        _ => ended.filter(|reason| !reason.is_empty()),
    };
    // A prompt that was cached has no count at Ollama.
    let counts = answer.usage.as_ref().map(|usage| (usage.prompt_tokens, usage.completion_tokens));
    let (input, output) = counts.unwrap_or((
        answer.tokens_evaluated.or(answer.prompt_eval_count),
        answer.tokens_predicted.or(answer.eval_count),
    ));
    let is_whole = answer.stop || answer.done;
    let mut progress = if is_whole { Progress::Done } else { Progress::Answering };
    if let Some(reason) = reason {
        progress = progress.max(Progress::Finished);
        let word = answer.stopping_word.filter(|word| !word.is_empty());
        pieces.push(Piece::Finish(match (&*reason, word) {
            ("word", Some(word)) => FinishReason::StopSequence(word.into_owned()),
            ("limit" | "length", _) => FinishReason::Length,
            ("" | "stop" | "eos" | "word" | "none", _) => FinishReason::Stop,
            (reason, _) => FinishReason::Other(reason.to_owned()),
        }));
    }
    if (is_whole || counts.is_some()) && input.or(output).is_some() {
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        pieces.push(Piece::Usage(Usage { input, output, ..Usage::default() }));
    }
    Ok((has_answer, progress))
}
