//! Makes room in the context: the oldest results are shortened before the model server has to cut the conversation, and where that is not
//! enough, those that the model has not read yet, all alike.
//!
//! Which ones is decided by the conversation alone, so that the next request comes to the same, and in big steps, so that the prompt's
//! beginning stays what it was for many rounds and servers need not read it again. What is kept of the conversation is whole.

use std::{mem, ops::Range, sync::Arc};

use tokio::task::spawn_blocking;
use toolrack_apis::{Content, Message, Role};

use super::{offer::Offer, run::Run};
use crate::upstream::{ANSWER, Estimate, tokens_of};

/// As many steps are made for as much room as there is.
const STEPS: u64 = 4;
/// An old result of no more than so many characters stays as it is.
const SHORT: usize = 1600;
/// How many characters of a longer one stay.
const REST: usize = 800;
/// How many characters of a new result stay at least.
const LEAST: usize = 400;
/// A larger conversation is shortened beside the runtime, in bytes.
const SMALL: usize = 256 * 1024;

/// What was taken out of old results.
#[derive(Debug, Default)]
pub(super) struct Removed {
    /// About how many tokens.
    tokens: u64,
    originals: Vec<Original>,
}

/// A text as it was before it was shortened.
#[derive(Debug)]
struct Original {
    /// Which message, which of its parts, and which part of the result.
    place: [usize; 3],
    text: String,
}

/// How many tokens have to be removed of so many, where there is room for so many.
fn goal(tokens: u64, room: u64) -> u64 {
    let step = (room / STEPS).max(1);
    tokens.saturating_sub(room).div_ceil(step).saturating_mul(step)
}

/// The messages before the last answer, behind which are the results of this round.
fn old(messages: &[Message]) -> usize {
    messages.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(0)
}

/// The texts of results among these messages that have more than so many characters, oldest first.
fn long_texts(
    messages: &mut [Message],
    range: Range<usize>,
    short: usize,
) -> impl Iterator<Item = ([usize; 3], &mut String)> {
    let (first, count) = (range.start, range.len());
    messages.iter_mut().enumerate().skip(first).take(count).flat_map(move |(message_at, message)| {
        message.parts.iter_mut().enumerate().flat_map(move |(part_at, part)| {
            let parts = match &mut part.content {
                Content::Result(result) => result.parts.as_mut_slice(),
                _ => &mut [],
            };
            parts.iter_mut().enumerate().filter_map(move |(at, part)| match &mut part.content {
                Content::Text(text) if text.chars().nth(short).is_some() => {
                    Some(([message_at, part_at, at], text))
                }
                _ => None,
            })
        })
    })
}

/// Shortens old results until so many tokens are removed, as far as there are any.
fn shorten_old(messages: &mut [Message], offer: &Offer, goal: u64, removed: &mut Removed) {
    let old = old(messages);
    for (place, text) in long_texts(messages, 0..old, SHORT) {
        if removed.tokens >= goal {
            return;
        }
        removed.shorten(place, text, offer, REST);
    }
}

/// Shortens the new results by so many tokens, each to the same part of it.
fn shorten_new(messages: &mut [Message], offer: &Offer, tokens: u64, removed: &mut Removed) {
    let new = old(messages)..messages.len();
    let all: u64 = long_texts(messages, new.clone(), LEAST).map(|(_, text)| tokens_of(text)).sum();
    let left = all.saturating_sub(tokens);
    for (place, text) in long_texts(messages, new, LEAST) {
        let characters = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let limit = characters.saturating_mul(left) / all.max(1);
        removed.shorten(place, text, offer, usize::try_from(limit).unwrap_or(usize::MAX).max(LEAST));
    }
}

impl Removed {
    fn shorten(&mut self, place: [usize; 3], text: &mut String, offer: &Offer, limit: usize) {
        let short = offer.shortened(text.clone(), limit);
        if short.len() < text.len() {
            self.tokens += tokens_of(text).saturating_sub(tokens_of(&short));
            self.originals.push(Original { place, text: mem::replace(text, short) });
        }
    }

    /// Puts the texts back into messages of which so many stood before them.
    fn restore(&self, messages: &mut [Message], before: usize) {
        // What was shortened twice was whole before the first time.
        for Original { place: [message, part, at], text } in self.originals.iter().rev() {
            let message = message.checked_sub(before).and_then(|message| messages.get_mut(message));
            let part = message.and_then(|message| message.parts.get_mut(*part));
            if let Some(Content::Result(result)) = part.map(|part| &mut part.content)
                && let Some(part) = result.parts.get_mut(*at)
            {
                part.content = Content::Text(text.clone());
            }
        }
    }
}

impl Run {
    /// Shortens the oldest results, and new ones if need be, where the conversation would not fit in the model's context with an answer.
    pub(super) async fn make_room(&mut self) {
        self.context.size = self.route.context(&self.request).await;
        let tools = self.fit_tools().await;
        let Some(size) = self.context.size else { return };
        let count = self.request.messages.len();
        let has_long = long_texts(&mut self.request.messages, 0..count, LEAST).next().is_some();
        if self.offer.reading().is_none() || !has_long {
            return;
        }
        let answer = self.request.sampling.max_tokens.map_or(ANSWER, |most| most.min(ANSWER)).min(size / 4);
        let per_hundred = self.route.tokens_per_hundred().max(1);
        // In estimated tokens, as all that follows.
        let room = (size - answer).saturating_mul(100) / per_hundred;
        let whole = Estimate::of(&self.request.messages).total() + self.context.removed.tokens + tools;
        let goal = goal(whole, room);
        if goal <= self.context.removed.tokens {
            return;
        }
        let count = self.context.removed.originals.len();
        let shorten = move |messages: &mut [Message], offer: &Offer, removed: &mut Removed| {
            shorten_old(messages, offer, goal, removed);
            let too_much = whole.saturating_sub(removed.tokens).saturating_sub(room);
            if too_much > 0 {
                shorten_new(messages, offer, too_much, removed);
            }
        };
        let (mut messages, mut removed) =
            (mem::take(&mut self.request.messages), mem::take(&mut self.context.removed));
        let bytes: usize = messages.iter().map(Message::size).sum();
        if bytes <= SMALL {
            shorten(&mut messages, &self.offer, &mut removed);
        } else {
            let offer = Arc::clone(&self.offer);
            let shortened = spawn_blocking(move || {
                shorten(&mut messages, &offer, &mut removed);
                (messages, removed)
            });
            // Only a runtime that is going down gives nothing back.
            (messages, removed) = shortened.await.unwrap_or_default();
        }
        let shortened = removed.originals.len() - count.min(removed.originals.len());
        (self.request.messages, self.context.removed) = (messages, removed);
        tracing::debug!(size, whole, room, shortened, "results_shortened");
    }

    /// Puts back what this turn's own results were, which are kept whole.
    pub(super) fn restore_results(&mut self) {
        mem::take(&mut self.context.removed).restore(&mut self.request.messages, 0);
    }

    /// What the turn has added to the conversation, with so many messages before that, and its results as they were.
    pub(super) fn restored_behind(&self, before: usize) -> Vec<Message> {
        let mut messages = self.added_behind(before).to_vec();
        let before = self.request.messages.len() - messages.len();
        self.context.removed.restore(&mut messages, before);
        messages
    }
}

#[cfg(test)]
mod tests {
    use toolrack_apis::{Call, ToolResult};

    use super::*;

    #[test]
    fn b11_room_is_made_in_steps() {
        assert_eq!(
            [0, 1000, 1001, 1250, 1251, 1500].map(|tokens| goal(tokens, 1000)),
            [0, 0, 250, 250, 500, 500]
        );
        assert_eq!(goal(5, 0), 5);
    }

    #[test]
    fn b11_only_long_results_before_the_last_answer_are_old() {
        let result = |text: String| {
            let parts = vec![Content::Text(text).into()];
            Message::result(ToolResult { call_id: "1".into(), parts, ..ToolResult::default() })
        };
        let answer = || Message::new(Role::Assistant, vec![Content::Call(Call::new("1", "f", "{}")).into()]);
        let long = || "é".repeat(SHORT + 1);
        let mut messages = vec![
            Message::text(Role::User, long()),
            answer(),
            result(long()),
            answer(),
            result("é".repeat(SHORT)),
            result(long()),
            answer(),
            result(long()),
        ];
        let old = old(&messages);
        let places: Vec<usize> =
            long_texts(&mut messages, 0..old, SHORT).map(|([message, ..], _)| message).collect();
        assert_eq!(places, [2, 5]);
    }
}
