//! What a tool has to say to the person: requirement T6.

use registry_core::{ToolPolicy, ToolResult};
use serde_json::json;

use crate::support::{Answer, Setup};

fn setup() -> Setup {
    Setup::bare()
        .plain_tool("find", ToolPolicy::new(), |_| async {
            Ok(ToolResult::new("a digest").with_message("Sources:\n1. https://one.example/\n"))
        })
        .plain_tool("save", ToolPolicy::new(), |_| async {
            Ok(ToolResult::unsuccessful("The disk is full."))
        })
        .plain_tool("quiet", ToolPolicy::new(), |_| async { Ok(ToolResult::new("4").with_message(" \n")) })
}

#[tokio::test]
async fn s12_the_message_of_a_result_is_a_paragraph_of_the_answer() {
    let call = |name: &str| format!("<tool_call>{}</tool_call>", json!({"name": name, "arguments": {}}));
    let calls = format!("Looking.\n{}{}{}", call("find"), call("save"), call("quiet"));
    for stream in [false, true] {
        let rack = setup().start([Answer::text(&calls).into(), Answer::text("That is all.").into()]).await;
        let reported = rack.ask(stream).await;
        reported.expect("Looking.\n\nSources:\n1. https://one.example/\n\nThe disk is full.\n\nThat is all.");

        // Whoever reads the details knows which piece of the text is the message of which call.
        let marked: Vec<_> = reported.details.iter().filter(|details| details["type"] == "message").collect();
        assert_eq!(marked.len(), 2, "{:?}", reported.details);
        let finished = reported
            .details
            .iter()
            .find(|details| details["id"] == marked[0]["id"] && details["type"] == "call_finished");
        assert_eq!(finished.unwrap()["message"], "Sources:\n1. https://one.example/\n");
        // The model has read its results, and not the messages beside them.
        let asked = rack.upstream.asked();
        let last = serde_json::to_string(asked.last().unwrap().messages()).unwrap();
        assert!(last.contains("a digest") && !last.contains("Sources"), "{last}");
    }
}
