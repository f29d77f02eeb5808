//! What happened on the server in a turn that ended with calls of the client's tools.
//!
//! The client sees only its own calls and sends only those back. What the server did before them is kept here under the ids
//! of the client's calls and put back into the conversation when it goes on.

use std::{collections::HashSet, sync::Arc, time::Duration};

use moka::sync::Cache;
use toolrack_apis::{Message, Role};

/// How many bytes of unfinished turns are remembered; the oldest give way.
const CAPACITY: u64 = 64 * 1024 * 1024;
/// How long a client may take to answer.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// A user and the id of a call. One user's ids say nothing to another.
type Key = (String, String);

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
        Self(cache.weigher(|_: &Key, kept: &Kept| kept.bytes).build())
    }
}

impl Memory {
    /// Keeps the messages of a turn, of which the last with calls has the client's.
    pub(super) fn keep<'i>(
        &self,
        user: &str,
        client_call_ids: impl Iterator<Item = &'i str>,
        messages: &[Message],
    ) {
        let bytes: usize = messages.iter().map(Message::size).sum();
        let kept = Kept { messages: messages.into(), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
        for id in client_call_ids {
            self.0.insert((user.to_owned(), id.to_owned()), kept.clone());
        }
    }

    /// The conversation with what is remembered in place of the client's shortened messages; each once, so that a short request cannot
    /// become a long one.
    pub(super) fn complete(&self, user: &str, messages: Vec<Message>) -> Vec<Message> {
        let mut whole = Vec::with_capacity(messages.len());
        let mut put_back = HashSet::new();
        for message in messages {
            let id = message
                .calls()
                .next()
                .filter(|_| message.role == Role::Assistant)
                .map(|call| call.id.clone());
            let kept = id.and_then(|id| self.0.get(&(user.to_owned(), id)));
            match kept.filter(|kept| put_back.insert(kept.messages.as_ptr())) {
                Some(kept) => whole.extend(kept.messages.iter().cloned()),
                None => whole.push(message),
            }
        }
        whole
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

    #[test]
    fn a_turn_is_put_back_whole() {
        let memory = Memory::default();
        let kept = [calls(&["s", "c"]), result("s")];
        memory.keep("ada", ["c"].into_iter(), &kept);
        let user = Message::text(Role::User, "hi");
        let sent = vec![user.clone(), calls(&["c"]), result("c")];
        let whole = [user.clone(), kept[0].clone(), kept[1].clone(), result("c")];
        assert_eq!(memory.complete("ada", sent.clone()), whole);
        let other = vec![user, calls(&["x"])];
        assert_eq!(memory.complete("ada", other.clone()), other);
        assert_eq!(memory.complete("bob", sent.clone()), sent);
    }

    #[test]
    fn a2_what_is_remembered_is_put_back_once() {
        let memory = Memory::default();
        memory.keep("ada", ["c", "d"].into_iter(), &[calls(&["s", "c", "d"]), result("s")]);
        let again = memory.complete("ada", vec![calls(&["c"]), calls(&["d"]), calls(&["c"])]);
        assert_eq!(again, [calls(&["s", "c", "d"]), result("s"), calls(&["d"]), calls(&["c"])]);
    }
}
