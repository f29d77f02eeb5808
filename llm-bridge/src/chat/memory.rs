//! What happened on the server in a turn that ended with calls of the client's tools.
//!
//! The client sees only its own calls and sends only those back. What the server did before them is kept here under the ids
//! of the client's calls and put back into the conversation when it goes on.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use serde_json::Value;
use toolrack_apis::openai::role;

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
    messages: Arc<[Value]>,
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
        messages: &[Value],
    ) {
        let bytes: usize = messages.iter().map(|message| message.to_string().len()).sum();
        let kept = Kept { messages: messages.into(), bytes: u32::try_from(bytes).unwrap_or(u32::MAX) };
        for id in client_call_ids {
            self.0.insert((user.to_owned(), id.to_owned()), kept.clone());
        }
    }

    /// The conversation with what is remembered in place of the client's shortened messages.
    pub(super) fn complete(&self, user: &str, messages: Vec<Value>) -> Vec<Value> {
        let mut whole = Vec::with_capacity(messages.len());
        for message in messages {
            let remembered = (role(&message) == "assistant")
                .then(|| message.get("tool_calls")?.get(0)?.get("id")?.as_str())
                .flatten()
                .and_then(|id| self.0.get(&(user.to_owned(), id.to_owned())));
            match remembered {
                Some(kept) => whole.extend(kept.messages.iter().cloned()),
                None => whole.push(message),
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_is_put_back_whole() {
        let memory = Memory::default();
        let kept = [
            json!({"role": "assistant", "tool_calls": [{"id": "s"}, {"id": "c"}]}),
            json!({"role": "tool", "tool_call_id": "s"}),
        ];
        memory.keep("ada", ["c"].into_iter(), &kept);
        let user = json!({"role": "user", "content": "hi"});
        let result = json!({"role": "tool", "tool_call_id": "c"});
        let sent =
            vec![user.clone(), json!({"role": "assistant", "tool_calls": [{"id": "c"}]}), result.clone()];
        assert_eq!(
            memory.complete("ada", sent.clone()),
            [user.clone(), kept[0].clone(), kept[1].clone(), result]
        );
        let other = vec![user, json!({"role": "assistant", "tool_calls": [{"id": "x"}]})];
        assert_eq!(memory.complete("ada", other.clone()), other);
        assert_eq!(memory.complete("bob", sent.clone()), sent);
    }
}
