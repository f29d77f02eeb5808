//! Answers of a given form, also from servers that do not keep a model to one.

use std::time::Duration;

use jsonschema::PatternOptions;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use toolrack_apis::{Failure, FinishReason, Request, ResponseFormat, TurnEvent};

use super::{
    offer::Round,
    prompt,
    reader::Reader,
    run::{End, Run},
    runner,
};
use crate::upstream::UpstreamError;

/// How many answers without the form are borne before the turn fails.
const MOST_MISFITS: usize = 3;
/// How much of such an answer the model sees again, in characters.
const LAST_WORDS: usize = 1000;
/// How long an answer may take to be validated; schemas are as involved as an outsider likes.
const CHECK_TIME: Duration = Duration::from_secs(2);

/// What has come of asking for the form.
#[derive(Debug, Default)]
pub(super) struct Forming {
    /// The refusal of the server, which is asked for the form in the prompt since then.
    refusal: Option<UpstreamError>,
    /// How many answers did not fit, the last of them, and what was wrong with it.
    misfits: usize,
    last_words: String,
    fault: String,
}

/// Why an answer does not do.
enum Misfit {
    /// The answer does not fit.
    Answer(String),
    /// The schema is none.
    Schema,
}

impl Forming {
    fn is_in_prompt(&self) -> bool {
        self.refusal.is_some() || self.misfits > 0
    }

    /// The request with the form in the prompt, if it is asked for there.
    pub(super) fn in_prompt(&self, request: &Request) -> Option<Request> {
        if !self.is_in_prompt() {
            return None;
        }
        let mut request = request.clone();
        let format = request.format.take()?;
        prompt::describe_form(&mut request.messages, &format);
        if self.misfits > 0 {
            prompt::remind_of_form(&mut request.messages, &self.last_words, &self.fault);
        }
        Some(request)
    }
}

impl Run {
    /// Whether the answer gets its form now, which leaves no room for calls.
    pub(super) fn asks_for_form(&self) -> bool {
        self.request.format.is_some() && (self.offer.has_server_tools() || !self.offer.has_tools())
    }

    /// Asks until there is an answer of the form. Where nothing is known to keep the model to it, the answer is held back until it is checked.
    pub(super) async fn ask_until_formed(&mut self, round: Round) -> Result<Reader, End> {
        self.forming = Some(Forming::default());
        let reader = loop {
            let mut reader = self.ask_until_read(round).await?;
            // What was cut off would be again.
            if !self.holds_answer() || !reader.calls.is_empty() || reader.finish == Some(FinishReason::Length)
            {
                break reader;
            }
            let Some(format) = self.request.format.clone() else { break reader };
            match fitting(format, std::mem::take(&mut reader.text)).await {
                (text, Ok(())) => {
                    reader.text = text;
                    break reader;
                }
                (text, Err(misfit)) => {
                    reader.text = text;
                    if self.does_not_fit(&mut reader, misfit)? {
                        break reader;
                    }
                }
            }
        };
        if self.holds_answer() {
            self.send_all(&mut vec![TurnEvent::Text(reader.text.clone())]).await?;
        }
        self.forming = None;
        Ok(reader)
    }

    /// Takes note of an answer that does not fit; whether it has to do.
    fn does_not_fit(&mut self, reader: &mut Reader, misfit: Misfit) -> Result<bool, End> {
        let Some(forming) = &mut self.forming else { return Ok(true) };
        let fault = match (misfit, forming.refusal.take()) {
            // The server was right.
            (Misfit::Schema, Some(refusal)) => return Err(End::Upstream(refusal)),
            (Misfit::Schema, None) => return Ok(true),
            (Misfit::Answer(fault), refusal) => {
                forming.refusal = refusal;
                fault
            }
        };
        if let Some(usage) = reader.usage.take() {
            self.usage.add(usage, self.api);
        }
        forming.misfits += 1;
        tracing::warn!(
            misfits = forming.misfits,
            fault,
            "an answer does not have the form that was asked for"
        );
        forming.last_words = runner::shorten(std::mem::take(&mut reader.text), LAST_WORDS);
        forming.fault = fault;
        if forming.misfits < MOST_MISFITS {
            return Ok(false);
        }
        let failure = Failure::of_upstream(format!(
            "the answer has to have a given form, and {MOST_MISFITS} answers had not: {}; the last was: {}",
            forming.fault,
            runner::shorten(std::mem::take(&mut forming.last_words), 200)
        ));
        // Asked again by the client the model would be asked as often once more.
        Err(End::Upstream(UpstreamError::Failed(Box::new(failure.not_again()))))
    }

    /// Whether the answer is shown when it has been checked.
    pub(super) fn holds_answer(&self) -> bool {
        // Without tools a server that nobody knows is left to itself: its client knows it.
        let is_unknown = || self.offer.has_server_tools() && self.route.kind().is_none();
        self.forming.as_ref().is_some_and(|forming| forming.is_in_prompt() || is_unknown())
    }

    /// Whether it may help to ask for the form in the prompt.
    pub(super) fn may_describe_form(&self) -> bool {
        self.forming.as_ref().is_some_and(|forming| !forming.is_in_prompt())
    }

    /// The server refuses the form.
    pub(super) fn describe_form(&mut self, refusal: UpstreamError) {
        if let Some(forming) = &mut self.forming {
            forming.refusal = Some(refusal);
        }
    }
}

/// Whether a text has the form without having been asked for it.
pub(super) fn fits_already(format: &ResponseFormat, text: &str) -> bool {
    *format == ResponseFormat::JsonObject
        && serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object())
}

/// The JSON of an answer that fits; else all of it, and why it does not.
async fn fitting(format: ResponseFormat, text: String) -> (String, Result<(), Misfit>) {
    let json = without_fence(&text).to_owned();
    let checked = json.clone();
    let check = spawn_blocking(move || check(&format, &checked));
    match tokio::time::timeout(CHECK_TIME, check).await {
        Ok(Ok(Err(misfit))) => (text, Err(misfit)),
        Ok(_) | Err(_) => (json, Ok(())),
    }
}

fn check(format: &ResponseFormat, text: &str) -> Result<(), Misfit> {
    let any_object = json!({"type": "object"});
    let schema = match format {
        ResponseFormat::JsonObject => &any_object,
        ResponseFormat::JsonSchema { schema, .. } => schema,
    };
    let validator = jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema);
    let validator = validator.map_err(|_| Misfit::Schema)?;
    let value = serde_json::from_str(text);
    let value = value.map_err(|error| Misfit::Answer(format!("it is no JSON: {error}")))?;
    let fault = validator.iter_errors(&value).next();
    match fault {
        None => Ok(()),
        Some(fault) => Err(Misfit::Answer(format!("{fault} (at `{}`)", fault.instance_path()))),
    }
}

/// What stands in a fence, where the text is nothing else.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if language.chars().all(char::is_alphanumeric) => inner.trim(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_the_whole_is_taken_away() {
        assert_eq!(without_fence("```json\n{\"a\": 1}\n```\n"), "{\"a\": 1}");
        assert_eq!(without_fence("```\n[]```"), "[]");
        assert_eq!(without_fence(" {} "), "{}");
        assert_eq!(without_fence("see ```json\n{}\n```"), "see ```json\n{}\n```");
    }
}
