//! Clients that keep what the model said, and nothing of what its tools gave back.

use serde_json::json;

use super::{CALL, Thread, expect_added, texts};
use crate::support::{Answer, Asked, Rack, Reply, Setup};

/// Whether the model can see that `add` was called and what it gave back.
#[track_caller]
fn expect_remembered(asked: &Asked) {
    let of_role = |role: &str| asked.messages().iter().find(|message| message["role"] == role).cloned();
    let call = &of_role("assistant").unwrap()["tool_calls"][0];
    assert_eq!(call["function"]["name"], "add", "{:?}", asked.messages());
    let result = of_role("tool").unwrap();
    assert_eq!((&result["content"], &result["tool_call_id"]), (&json!("sum=5"), &call["id"]));
}

async fn go_on(rack: &Rack, stream: bool, said: &[&str]) -> Asked {
    rack.ask_with(stream, texts(said)).await.expect("5, as I said.");
    rack.upstream.asked().pop().unwrap()
}

/// <https://github.com/open-webui/open-webui/issues/16829>: Open WebUI keeps the model's answers only; in the next turn the model does not
/// know what its tools gave back, and calls them again.
#[tokio::test]
async fn g8_results_are_there_in_the_next_turn() {
    let _thread = Thread("https://github.com/open-webui/open-webui/issues/16829");
    for stream in [true, false] {
        let call = Answer::new().call("c", "add", &json!({"a": 2, "b": 3}));
        let replies = [call.into(), Reply::text("It is 5."), Reply::text("5, as I said.")];
        let rack = Setup::new().start(replies).await;
        let reported = rack.ask_with(stream, texts(&["2 + 3?"])).await;
        expect_added(&rack, &reported, "It is 5.");
        expect_remembered(&go_on(&rack, stream, &["2 + 3?", "It is 5.", "What exactly did it say?"]).await);
        assert_eq!(rack.ran().len(), 1, "nothing has to be done again");
    }
}

/// <https://github.com/NousResearch/hermes-agent/issues/14270>: asked what it has just done, the agent behind Open WebUI says that it has
/// done nothing, and does it once more.
#[tokio::test]
async fn g8_a_model_knows_what_it_has_done_as_text_several_turns_ago() {
    let _thread = Thread("https://github.com/NousResearch/hermes-agent/issues/14270");
    let replies =
        [Reply::text(CALL), Reply::text("Done."), Reply::text("5, as I said."), Reply::text("5, as I said.")];
    let rack = Setup::new().start(replies).await;
    rack.ask_with(true, texts(&["Add 2 and 3."])).await.expect("Done.");
    let mut said = vec!["Add 2 and 3.", "Done.", "What did you add?"];
    expect_remembered(&go_on(&rack, true, &said).await);
    said.extend(["5, as I said.", "Sure?"]);
    expect_remembered(&go_on(&rack, true, &said).await);
    assert_eq!(rack.ran().len(), 1, "nothing has to be done again");
}
