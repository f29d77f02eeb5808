//! What happened on the server in a turn that ended with calls of the client's tools.
//!
//! The client sees only its own calls and sends only those back. What the server did before them is kept here under the ids
//! of the client's calls and put back into the conversation when it goes on.

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use serde_json::Value;

/// How many unfinished turns are remembered; the oldest give way.
const CAPACITY: u64 = 10_000;
/// How long a client may take to answer.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// The messages of unfinished turns.
#[derive(Debug)]
pub(super) struct Memory(Cache<String, Arc<[Value]>>);

impl Default for Memory {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(CAPACITY).time_to_live(TIME_TO_LIVE).build())
    }
}

impl Memory {
    /// Keeps the messages of a turn, of which the last with calls has the client's.
    pub(super) fn keep<'i>(&self, client_call_ids: impl Iterator<Item = &'i str>, messages: &[Value]) {
        let messages: Arc<[Value]> = messages.into();
        for id in client_call_ids {
            self.0.insert(id.to_owned(), Arc::clone(&messages));
        }
    }

    /// The conversation with what is remembered in place of the client's shortened messages.
    pub(super) fn complete(&self, messages: Vec<Value>) -> Vec<Value> {
        let mut whole = Vec::with_capacity(messages.len());
        for message in messages {
            let remembered = (message.get("role").and_then(Value::as_str) == Some("assistant"))
                .then(|| message.get("tool_calls")?.get(0)?.get("id")?.as_str())
                .flatten()
                .and_then(|id| self.0.get(id));
            match remembered {
                Some(kept) => whole.extend(kept.iter().cloned()),
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
        memory.keep(["c"].into_iter(), &kept);
        let user = json!({"role": "user", "content": "hi"});
        let result = json!({"role": "tool", "tool_call_id": "c"});
        let sent =
            vec![user.clone(), json!({"role": "assistant", "tool_calls": [{"id": "c"}]}), result.clone()];
        assert_eq!(memory.complete(sent), [user.clone(), kept[0].clone(), kept[1].clone(), result]);
        let other = vec![user, json!({"role": "assistant", "tool_calls": [{"id": "x"}]})];
        assert_eq!(memory.complete(other.clone()), other);
    }
}
