//! Calls that cannot be read: the model is asked for them once more.

use toolrack_apis::{Message, Role, join_users};
use toolrack_dialects::Abort;

use super::{
    offer::Round,
    reader::Reader,
    run::{End, Run},
    runner,
};

/// How much of an answer the model sees again, in characters: what could not be read is at its end.
const LAST_WORDS: usize = 8000;

/// An answer with a call that cannot be read.
#[derive(Debug)]
pub(super) struct Unread {
    answer: String,
    reason: String,
}

impl Unread {
    /// Says to the model what was wrong.
    pub(super) fn remind(&self, messages: &mut Vec<Message>) {
        messages.push(Message::text(Role::Assistant, self.answer.clone()));
        let text = format!(
            "That call could not be read: {}. Write it once more, as a whole and with its arguments in valid form, and nothing else.",
            self.reason
        );
        messages.push(Message::text(Role::User, text));
        join_users(messages);
    }
}

impl Run {
    /// Asks until there is an answer, and once more where all that it has is a call that cannot be read.
    pub(super) async fn ask_until_whole(&mut self, round: Round) -> Result<Reader, End> {
        let mut reader = self.ask_until_read(round).await?;
        let parsing = self.backend.settings().parsing;
        // By the operator's word a call without its end is text.
        let is_meant = |reason: &Abort| *reason != Abort::Incomplete || !parsing.only_closed;
        let unread = reader.unread_call().filter(|_| self.offer.has_tools()).filter(is_meant);
        let Some(reason) = unread else { return Ok(reader) };
        tracing::warn!(%reason, "the model has written a call that cannot be read; asking once more");
        self.count_usage(&mut reader);
        self.paragraphs.part();
        let answer = runner::shorten(reader.text, LAST_WORDS);
        self.unread = Some(Unread { answer, reason: reason.to_string() });
        let again = self.ask_until_read(round).await;
        self.unread = None;
        again
    }
}
