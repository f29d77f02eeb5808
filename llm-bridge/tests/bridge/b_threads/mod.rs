//! What users have reported of local model servers and the clients before them, a test for each thread: the scripted server fails as the
//! thread says, and what a user of Toolrack sees instead is asserted.

mod calls_as_text;
mod client_dialects;
mod forgotten_results;
mod forms;
mod grammars;
mod loops;
mod parsers;
mod pictures;
mod prompt_cache;
mod required_calls;
mod small_contexts;
mod unread_calls;

use std::thread;

use serde_json::{Value, json};

use crate::support::{Asked, Rack, Reported};

/// The thread that a test is about. Where the test fails, its output names it.
struct Thread(&'static str);

impl Drop for Thread {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("this is what {} reports", self.0);
        }
    }
}

/// `add(2, 3)` as the models of most threads write it.
const CALL: &str = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>";

/// Asserts that the client was shown this and nothing of a call, and that `add(2, 3)` has run once and the model has seen its result.
#[track_caller]
fn expect_added(rack: &Rack, reported: &Reported, shown: &str) {
    reported.expect(shown);
    assert!(reported.calls.is_empty(), "the client has no part in it: {:?}", reported.calls);
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
    let asked = rack.upstream.asked();
    let last = asked.last().unwrap().messages().last().unwrap();
    assert!(last["content"].as_str().unwrap().contains("sum=5"), "{last}");
}

/// A client that sends back what it was shown and nothing else.
fn texts(said: &[&str]) -> Value {
    let roles = ["user", "assistant"].into_iter().cycle();
    json!({"messages": roles.zip(said).map(|(role, text)| json!({"role": role, "content": text})).collect::<Value>()})
}

/// Asserts that each request begins with the one before, to the byte.
#[track_caller]
fn expect_continued(asked: &[Asked]) {
    for pair in asked.windows(2) {
        for field in ["tools", "messages"] {
            let [before, after] = [&pair[0], &pair[1]].map(|asked| asked.raw(field));
            assert!(after.starts_with(before.trim_end_matches(']')), "{field}:\n{before}\n{after}");
        }
    }
}
