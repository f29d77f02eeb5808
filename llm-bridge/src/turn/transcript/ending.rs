//! Where a turn stands in its conversation, and what the client sees at its end: what its transcript is kept under.

use registry_core::flow::HasRead;
use toolrack_apis::{Call, Content, Message, Part, SeenAnswer};

use super::{
    Claim, Resumed,
    effects::Effects,
    fingerprint::{Fingerprint, Link, Words, key_of_calls},
    replace::is_own,
    visible::Standing,
};
use crate::append::append;

/// Where a turn stands in its conversation.
#[derive(Debug, Default)]
pub(in super::super) struct Place {
    /// All before the answer; `None` where it cannot be kept.
    pub(super) before: Option<Fingerprint>,
    /// The text that the client has begun the answer with.
    pub(super) begun: String,
    /// How many messages that is, the last ones of the request.
    pub(in super::super) trailing: usize,
    /// The deferred tools that the conversation has found, as its transcripts say.
    pub(in super::super) found: Vec<String>,
    /// The same for what was read; `None` where nothing is known.
    pub(super) standing: Option<Standing>,
    /// What the conversation had read before.
    pub(in super::super) read: HasRead,
    /// The rounds that the turn goes on with, which are the trailing messages then.
    pub(in super::super) resumed: Resumed,
    /// Whether rounds are kept of a turn at this place.
    pub(in super::super) has_rounds: bool,
    /// What the client has seen at the end of the turn.
    pub(in super::super) seen: Option<SeenAnswer>,
    /// That no other turn of this process is at this place.
    pub(super) claim: Option<Claim>,
    /// The calls with effects of this place.
    pub(super) effects: Option<Effects>,
}

impl Place {
    /// What the client sees of the answer so far.
    pub(in super::super) fn shown(&self) -> Shown {
        Shown { all: self.begun.clone(), said: None, settled: self.begun.len() }
    }

    /// So many of the last messages that the turn goes on with are its own now.
    pub(in super::super) fn takes_back(&mut self, count: usize) {
        self.resumed.messages = self.resumed.messages.saturating_sub(count);
        self.trailing = self.trailing.saturating_sub(count);
    }

    /// Takes note of what the client sees at the end of the turn.
    pub(in super::super) fn has_answer(&mut self, ending: &Ending<'_>) {
        let shown = if let Ending::Answer(shown) = ending { Some(*shown) } else { None };
        let keys = [None, shown].into_iter().filter_map(|shown| self.read_keys(shown));
        let mut read: Vec<String> = keys.flat_map(|(key, other)| [Some(key), other]).flatten().collect();
        read.dedup();
        self.seen = self.before.map(|before| SeenAnswer { conversation: ending.after(before), read });
    }
}

/// The text of a turn that the client is shown.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct Shown {
    pub(super) all: String,
    /// What of it the model said: some clients show the messages of results elsewhere. `None` if that is all.
    pub(super) said: Option<String>,
    /// How many bytes of what the model said are in the messages of the turn already.
    settled: usize,
}

impl Shown {
    /// The next piece of what the model says.
    pub(in super::super) fn say(&mut self, text: &str) {
        append(&mut self.all, text);
        if let Some(said) = &mut self.said {
            append(said, text);
        }
    }

    /// The message of a result.
    pub(in super::super) fn show(&mut self, text: &str) {
        self.said.get_or_insert_with(|| self.all.clone());
        append(&mut self.all, text);
    }

    fn said(&self) -> &str {
        self.said.as_deref().unwrap_or(&self.all)
    }

    /// What was said so far is in the messages of the turn.
    pub(in super::super) fn settle(&mut self) {
        self.settled = self.said().len();
    }

    /// What the model said in an answer that broke off.
    pub(in super::super) fn unsettled(&self) -> &str {
        self.said().get(self.settled..).unwrap_or_default()
    }

    /// The texts that clients may have of an answer that broke off, or the beginning of one of them.
    pub(in super::super) fn texts(&self) -> Vec<&str> {
        [self.all.as_str()].into_iter().chain(self.said.as_deref()).collect()
    }
}

/// What the client sees at the end of a turn.
pub(in super::super) enum Ending<'a> {
    Answer(&'a Shown),
    /// Calls of its tools.
    Calls(&'a [&'a Call]),
    /// The same where the client sees all of the turn.
    ShownCalls(&'a [&'a Call]),
    /// The beginning of an answer that broke off, or that somebody has stopped.
    Broken,
}

impl<'a> Ending<'a> {
    /// The end of a turn with these messages, and those that are to be put back; `None` where the client sends them all again as they are.
    pub(in super::super) fn of<'m>(
        shown: &'a Shown,
        calls: Option<&'a [&'a Call]>,
        messages: &'m [Message],
        place: &Place,
    ) -> (Self, Option<&'m [Message]>) {
        let ending = calls.map_or(Self::Answer(shown), Self::Calls);
        match (ending.shows(messages, place), ending) {
            (false, ending) => (ending, Some(messages)),
            (true, Self::Calls(calls)) if may_be_reworded(calls) => (Self::ShownCalls(calls), Some(messages)),
            (true, ending) => (ending, None),
        }
    }

    /// Whether these messages are all that the client sees, behind what it has begun itself.
    fn shows(&self, messages: &[Message], place: &Place) -> bool {
        let is_seen = |part: &Part| match (&part.content, self) {
            (Content::Text(text), Self::Answer(_)) => text.trim() == text,
            (Content::Text(_), Self::Calls(_) | Self::ShownCalls(_)) => true,
            (Content::Call(call), Self::Calls(calls) | Self::ShownCalls(calls)) => {
                calls.iter().any(|client| client.id == call.id)
            }
            _ => false,
        };
        match messages {
            [] => true,
            [message] => place.trailing == 0 && message.parts.iter().all(is_seen),
            _ => false,
        }
    }

    /// The conversation up to here, as a hash.
    fn after(&self, before: Fingerprint) -> String {
        self.keys(before).0
    }

    pub(super) fn keys(&self, before: Fingerprint) -> (String, Option<String>) {
        match self {
            Self::Answer(Shown { all, said, .. }) => {
                let key = |text: &String| before.and(&Link::text(Words::of(text))).key();
                (key(all), said.as_ref().map(key))
            }
            Self::Calls(calls) | Self::ShownCalls(calls) => {
                let key = before.and(&Link::calls(calls.iter().copied())).key();
                let other = key_of_calls(calls.iter().copied());
                // An id of the model server may come again in another conversation.
                let other = other.filter(|(id, _)| matches!(self, Self::Calls(_)) || is_own(id));
                (key, other.map(|(_, key)| key))
            }
            Self::Broken => (before.and_beginning().key(), None),
        }
    }
}

/// Whether a client may send these calls in other words than the model's: most clients read the arguments and write them anew, with other spaces or
/// in another order.
fn may_be_reworded(calls: &[&Call]) -> bool {
    calls.iter().any(|call| !matches!(call.arguments.trim(), "" | "{}"))
}
