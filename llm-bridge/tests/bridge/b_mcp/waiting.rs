//! The first list waits for sources of tools that have not answered yet: many clients list once.

use std::time::Instant;

use llm_bridge::mcp::McpSettings;
use tokio::sync::Notify;

use super::{peer::ERAS, *};

/// A rack one of whose sources answers when it is told to, and a list that does not wait for longer.
fn rack(first_list_seconds: u64) -> (Rack, Arc<Notify>) {
    let (mut rack, answers) = (Rack::new(), Arc::new(Notify::new()));
    let settings = McpSettings { first_list_seconds, ..McpSettings::default() };
    let answered = Arc::clone(&answers);
    rack.server = rack.server.clone().with_settings(settings, async move { answered.notified().await });
    rack.add("here", ToolPolicy::new(), says("h"));
    (rack, answers)
}

#[tokio::test]
async fn n9_the_first_list_waits_for_the_first_answers() {
    for era in ERAS {
        let (rack, answers) = rack(600);
        // What a client has to do before it lists does not wait.
        let mut peer = rack.peer(era, json!({})).await;
        let id = peer.send("tools/list", json!({})).await;
        let early = tokio::time::timeout(Duration::from_millis(100), peer.answer(id)).await;
        assert!(early.is_err(), "{early:?}");
        rack.add("far", ToolPolicy::new(), says("f"));
        answers.notify_one();
        let listed = peer.answer(id).await["result"]["tools"].clone();
        assert_eq!((&listed[0]["name"], &listed[1]["name"]), (&json!("far"), &json!("here")));
        assert_eq!(peer.list(None).await.0, ["far", "here"], "the next does not wait");
    }
}

#[tokio::test]
async fn n9_a_source_that_never_answers_delays_one_list_and_no_longer_than_is_set() {
    let (rack, _answers) = rack(1);
    let began = Instant::now();
    let mut peer = rack.peer(Era::Legacy, json!({})).await;
    assert_eq!(peer.list(None).await.0, ["here"]);
    let first = began.elapsed();
    assert!(first >= Duration::from_secs(1), "{first:?}");
    let mut other = rack.peer(Era::Modern, json!({})).await;
    assert_eq!(other.list(None).await.0, ["here"]);
    assert!(began.elapsed() - first < Duration::from_millis(900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn n9_a_call_waits_only_for_a_tool_that_is_not_known_yet() {
    let (rack, answers) = rack(600);
    let mut peer = rack.peer(Era::Modern, json!({})).await;
    assert_eq!(peer::text(&peer.call("here", json!({})).await), "h");
    let id = peer.send("tools/call", json!({"name": "far_tool", "arguments": {}})).await;
    let early = tokio::time::timeout(Duration::from_millis(100), peer.answer(id)).await;
    assert!(early.is_err(), "{early:?}");
    rack.add("far.tool", ToolPolicy::new(), says("f"));
    answers.notify_one();
    assert_eq!(peer::text(&peer.answer(id).await), "f");
    let unknown = peer.call("no_such", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}
