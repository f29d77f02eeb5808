//! What happened on the server in a turn that ended with calls of the client's tools.
//!
//! The client sees only its own calls and sends only those back. What the server did before them is kept here under the ids
//! of the client's calls and put back into the conversation when it goes on. Ollama's SDKs leave the ids out, and some of Gemini's do:
//! for these it is kept under what the client can see as well.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use moka::sync::Cache;
use serde_json::Value;
use toolrack_apis::{Call, Content, Message, Part, Role};

/// How many bytes of unfinished turns are remembered; the oldest give way.
const CAPACITY: u64 = 64 * 1024 * 1024;
/// What an entry takes beside its messages, in bytes.
const ENTRY: u32 = 256;
/// How long a client may take to answer.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// A user and what a turn is found by. One user's ids say nothing to another.
type Key = (String, Handle);

/// What an unfinished turn is found by.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Handle {
    /// The id of a call.
    Call(String),
    /// The conversation up to the calls, and the calls.
    Visible(Fingerprint),
}

impl Handle {
    fn visible(conversation: Fingerprint, calls: &[&Call]) -> Self {
        Self::Visible(conversation.and_calls(calls.iter().copied()))
    }
}

/// A conversation without the ids in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    /// Of all messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        messages.iter().fold(Self(0), Self::and)
    }

    fn and(self, message: &Message) -> Self {
        let mut hasher = DefaultHasher::new();
        (self, message.role).hash(&mut hasher);
        hash_parts(&message.parts, &mut hasher);
        Self(hasher.finish())
    }

    /// The same, and calls behind it. The text around them may have been shortened.
    fn and_calls<'c>(self, calls: impl Iterator<Item = &'c Call>) -> Self {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        calls.for_each(|call| hash_call(call, &mut hasher));
        Self(hasher.finish())
    }
}

fn hash_parts(parts: &[Part], hasher: &mut DefaultHasher) {
    for part in parts {
        match &part.content {
            Content::Text(text) => text.hash(hasher),
            Content::Call(call) => hash_call(call, hasher),
            Content::Result(result) => hash_parts(&result.parts, hasher),
            Content::Media(media) => media.hash(hasher),
            _ => {}
        }
    }
}

/// Clients write arguments anew.
fn hash_call(call: &Call, hasher: &mut DefaultHasher) {
    let arguments = serde_json::from_str::<Value>(&call.arguments).map(|arguments| arguments.to_string());
    (&call.name, arguments.as_ref().unwrap_or(&call.arguments)).hash(hasher);
}

/// The messages of unfinished turns.
#[derive(Debug)]
pub(super) struct Memory(Cache<Key, Kept>);

#[derive(Debug, Clone)]
struct Kept {
    messages: Arc<[Message]>,
    bytes: u32,
}

impl Default for Memory {
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(CAPACITY).time_to_live(TIME_TO_LIVE);
        Self(cache.weigher(|_: &Key, kept: &Kept| kept.bytes.saturating_add(ENTRY)).build())
    }
}

impl Memory {
    /// Keeps the messages of a turn, of which the last with calls has the client's. `conversation` is what the client sent.
    pub(super) fn keep(&self, user: &str, conversation: Fingerprint, client: &[&Call], messages: &[Message]) {
        let bytes: usize = messages.iter().map(Message::size).sum();
        let kept = Kept { messages: messages.into(), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
        self.0.insert((user.to_owned(), Handle::visible(conversation, client)), kept.clone());
        self.insert_by_ids(user, client, &kept);
    }

    /// Keeps that there is nothing to put back, though another turn after the same conversation had something.
    pub(super) fn keep_nothing(&self, user: &str, conversation: Fingerprint, client: &[&Call]) {
        self.0.invalidate(&(user.to_owned(), Handle::visible(conversation, client)));
        self.insert_by_ids(user, client, &Kept { messages: Arc::default(), bytes: 0 });
    }

    fn insert_by_ids(&self, user: &str, client: &[&Call], kept: &Kept) {
        for call in client {
            self.0.insert((user.to_owned(), Handle::Call(call.id.clone())), kept.clone());
        }
    }

    /// The conversation with what is remembered in place of the client's shortened messages; each once, so that a short request cannot
    /// become a long one.
    pub(super) fn complete(&self, user: &str, messages: Vec<Message>) -> Vec<Message> {
        let mut whole = Vec::with_capacity(messages.len());
        let mut put_back = HashSet::new();
        let mut before = Fingerprint::of(&[]);
        for message in messages {
            let kept = self.of(user, before, &message);
            before = before.and(&message);
            match kept.filter(|kept| put_back.insert(kept.messages.as_ptr())) {
                Some(kept) => whole.extend(kept.messages.iter().cloned()),
                None => whole.push(message),
            }
        }
        whole
    }

    /// What is remembered for a message with calls, behind a conversation.
    fn of(&self, user: &str, before: Fingerprint, message: &Message) -> Option<Kept> {
        let first = message.calls().next().filter(|_| message.role == Role::Assistant)?;
        let kept = |handle| self.0.get(&(user.to_owned(), handle));
        let visible = || kept(Handle::Visible(before.and_calls(message.calls())));
        kept(Handle::Call(first.id.clone())).or_else(visible).filter(|kept| !kept.messages.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use toolrack_apis::{Call, Content, ToolResult};

    use super::*;

    fn calls(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| Content::Call(Call::new(*id, "f", "{}")).into());
        Message::new(Role::Assistant, calls.collect())
    }

    fn result(id: &str) -> Message {
        Message::result(ToolResult { call_id: id.into(), ..ToolResult::default() })
    }

    /// Keeps messages under calls behind a conversation.
    fn keep(memory: &Memory, sent: &[Message], ids: &[&str], kept: &[Message]) {
        let client = calls(ids);
        memory.keep("ada", Fingerprint::of(sent), &client.calls().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn a_turn_is_put_back_whole() {
        let memory = Memory::default();
        let kept = [calls(&["s", "c"]), result("s")];
        let user = Message::text(Role::User, "hi");
        keep(&memory, &[], &["c"], &kept);
        let sent = vec![user.clone(), calls(&["c"]), result("c")];
        let whole = [user.clone(), kept[0].clone(), kept[1].clone(), result("c")];
        assert_eq!(memory.complete("ada", sent.clone()), whole);
        let other = vec![user, calls(&["x", "y"])];
        assert_eq!(memory.complete("ada", other.clone()), other);
        assert_eq!(memory.complete("bob", sent.clone()), sent);
    }

    #[test]
    fn a2_what_is_remembered_is_put_back_once() {
        let memory = Memory::default();
        keep(&memory, &[], &["c", "d"], &[calls(&["s", "c", "d"]), result("s")]);
        let again = memory.complete("ada", vec![calls(&["c"]), calls(&["d"]), calls(&["c"])]);
        assert_eq!(again, [calls(&["s", "c", "d"]), result("s"), calls(&["d"]), calls(&["c"])]);
    }

    #[test]
    fn b13_a_turn_is_found_without_ids_by_what_the_client_sees() {
        let memory = Memory::default();
        let sent = [Message::text(Role::User, "hi")];
        let kept = [calls(&["s", "c"]), result("s")];
        keep(&memory, &sent, &["c"], &kept);
        let went_on = |word: &str, id: &str| vec![Message::text(Role::User, word), calls(&[id]), result(id)];
        let whole = [sent[0].clone(), kept[0].clone(), kept[1].clone(), result("call00000")];
        assert_eq!(memory.complete("ada", went_on("hi", "call00000")), whole);
        for (user, word) in [("ada", "ho"), ("bob", "hi")] {
            assert_eq!(memory.complete(user, went_on(word, "call00000")), went_on(word, "call00000"));
        }
        // The same question again, without anything that the client does not see.
        let again = calls(&["d"]);
        memory.keep_nothing("ada", Fingerprint::of(&sent), &again.calls().collect::<Vec<_>>());
        assert_eq!(memory.complete("ada", went_on("hi", "call00000")), went_on("hi", "call00000"));
        keep(&memory, &sent, &["e"], &kept);
        assert_eq!(memory.complete("ada", went_on("hi", "d")), went_on("hi", "d"));
    }
}
