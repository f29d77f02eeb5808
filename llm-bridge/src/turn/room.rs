//! Makes room in the context: the oldest results are shortened before the model server has to cut the conversation.
//!
//! Which ones is decided by the conversation alone, so that the next request comes to the same, and in big steps, so that the prompt's
//! beginning stays what it was for many rounds and servers need not read it again. What is kept of the conversation is whole.

use std::{mem, sync::Arc};

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

/// The long texts of old results, oldest first.
fn long_texts(messages: &mut [Message]) -> impl Iterator<Item = ([usize; 3], &mut String)> {
    let old = old(messages);
    messages.iter_mut().take(old).enumerate().flat_map(|(message_at, message)| {
        message.parts.iter_mut().enumerate().flat_map(move |(part_at, part)| {
            let parts = match &mut part.content {
                Content::Result(result) => result.parts.as_mut_slice(),
                _ => &mut [],
            };
            parts.iter_mut().enumerate().filter_map(move |(at, part)| match &mut part.content {
                Content::Text(text) if text.chars().nth(SHORT).is_some() => {
                    Some(([message_at, part_at, at], text))
                }
                _ => None,
            })
        })
    })
}

/// Shortens old results until so many tokens are removed, as far as there are any.
fn shorten_old(messages: &mut [Message], offer: &Offer, goal: u64, removed: &mut Removed) {
    for (place, text) in long_texts(messages) {
        if removed.tokens >= goal {
            return;
        }
        let before = tokens_of(text);
        let short = offer.shortened(text.clone(), REST);
        removed.tokens += before.saturating_sub(tokens_of(&short));
        removed.originals.push(Original { place, text: mem::replace(text, short) });
    }
}

impl Removed {
    /// Puts the texts back into messages of which so many stood before them.
    fn restore(&self, messages: &mut [Message], before: usize) {
        for Original { place: [message, part, at], text } in &self.originals {
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
    /// Shortens the oldest results where the conversation would not fit in the model's context with an answer.
    pub(super) async fn make_room(&mut self) {
        self.context.size = self.route.context(&self.request).await;
        let Some(size) = self.context.size else { return };
        let tools = self.share_of_tools(size);
        if self.offer.reading().is_none() || long_texts(&mut self.request.messages).next().is_none() {
            return;
        }
        let answer = self.request.sampling.max_tokens.map_or(ANSWER, |most| most.min(ANSWER)).min(size / 4);
        let per_hundred = self.route.tokens_per_hundred().await.max(1);
        // In estimated tokens, as all that follows.
        let room = (size - answer).saturating_mul(100) / per_hundred;
        let whole = Estimate::of(&self.request.messages).total() + self.context.removed.tokens + tools;
        let goal = goal(whole, room);
        if goal <= self.context.removed.tokens {
            return;
        }
        let count = self.context.removed.originals.len();
        let (mut messages, mut removed) =
            (mem::take(&mut self.request.messages), mem::take(&mut self.context.removed));
        let bytes: usize = messages.iter().map(Message::size).sum();
        if bytes <= SMALL {
            shorten_old(&mut messages, &self.offer, goal, &mut removed);
        } else {
            let offer = Arc::clone(&self.offer);
            let shortened = spawn_blocking(move || {
                shorten_old(&mut messages, &offer, goal, &mut removed);
                (messages, removed)
            });
            // Only a runtime that is going down gives nothing back.
            (messages, removed) = shortened.await.unwrap_or_default();
        }
        let shortened = removed.originals.len() - count.min(removed.originals.len());
        (self.request.messages, self.context.removed) = (messages, removed);
        tracing::debug!(size, whole, room, shortened, "old_results_shortened");
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
        let places: Vec<usize> = long_texts(&mut messages).map(|([message, ..], _)| message).collect();
        assert_eq!(places, [2, 5]);
    }
}
