//! Calls that `tool_choice` requires, from models that would rather talk.

use toolrack_apis::{Failure, FinishReason, TurnEvent};

use super::{
    SEE_DOCTOR,
    offer::Round,
    reader::Reader,
    run::{End, Run},
    runner,
};
use crate::upstream::UpstreamError;

/// How many answers without a call are borne before the turn fails.
const MOST_MISSING: usize = 3;
/// How much of an answer without a call the model sees again, in characters.
const LAST_WORDS: usize = 1000;

/// What has come of a round whose calls are required.
#[derive(Debug)]
pub(super) struct Required {
    /// The text of an answer that has no call yet: it is shown when there is one.
    held: Option<String>,
    /// How many answers had none.
    pub(super) missing: usize,
    /// What the last of them said.
    pub(super) last_words: String,
}

impl Required {
    /// Holds text back until a call begins.
    pub(super) fn hold(&mut self, events: &mut Vec<TurnEvent>) {
        for event in std::mem::take(events) {
            match (event, self.held.as_mut()) {
                (TurnEvent::Text(text), Some(held)) => held.push_str(&text),
                (event @ (TurnEvent::Tool(_) | TurnEvent::CallBegun { .. }), Some(_)) => {
                    events.extend(self.release());
                    events.push(event);
                }
                (event, _) => events.push(event),
            }
        }
    }

    /// Begins another answer, and forgets what was held back of this one.
    pub(super) fn begin_answer(&mut self) {
        self.held = Some(String::new());
    }

    fn release(&mut self) -> Option<TurnEvent> {
        self.held.take().filter(|held| !held.is_empty()).map(TurnEvent::Text)
    }
}

impl Run {
    /// Asks until there is an answer, of its form, or with a call in it, where that is required.
    pub(super) async fn ask_until_called(&mut self, round: Round) -> Result<Reader, End> {
        if self.asks_for_form() {
            return Box::pin(self.ask_until_formed(round)).await;
        }
        if !self.offer.requires_call(round) {
            return self.ask_until_whole(round).await;
        }
        self.required = Some(Required { held: None, missing: 0, last_words: String::new() });
        let reader = loop {
            if let Some(required) = &mut self.required {
                required.begin_answer();
            }
            let reader = self.ask_until_read(round).await?;
            // What was cut off would be again.
            if !reader.calls.is_empty() || reader.finish == Some(FinishReason::Length) {
                break reader;
            }
            self.was_missing(reader)?;
        };
        self.release().await?;
        self.required = None;
        Ok(reader)
    }

    /// Takes note of an answer without a call.
    fn was_missing(&mut self, mut reader: Reader) -> Result<(), End> {
        self.count_usage(&mut reader);
        self.paragraphs.part();
        let Some(required) = &mut self.required else { return Ok(()) };
        required.missing += 1;
        tracing::warn!(missing = required.missing, "an answer has no call where one is required");
        if required.missing < MOST_MISSING {
            required.last_words = runner::shorten(reader.text, LAST_WORDS);
            return Ok(());
        }
        let failure = Failure::of_upstream(format!(
            "`tool_choice` requires a call, and {MOST_MISSING} answers had none; {SEE_DOCTOR}; the last was: {}",
            runner::shorten(reader.text, 200)
        ));
        // Asked again by the client the model would be asked as often once more.
        Err(End::Upstream(UpstreamError::Failed(Box::new(failure.not_again()))))
    }

    /// How many answers of this round had no call where one is required.
    pub(super) fn missing(&self) -> usize {
        self.required.as_ref().map_or(0, |required| required.missing)
    }

    /// Shows what was held back.
    pub(super) async fn release(&mut self) -> Result<(), End> {
        let held = self.required.as_mut().and_then(Required::release);
        self.send_all(&mut held.into_iter().collect()).await
    }
}
