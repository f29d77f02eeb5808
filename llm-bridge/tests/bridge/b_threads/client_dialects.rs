//! Clients with a dialect of their own, whose tools stand in their prompt: "You did not use a tool in your previous response".

use serde_json::json;

use super::Thread;
use crate::support::{Reply, Setup, user};

/// How such clients have their tools called.
const INSTRUCTIONS: &str =
    "Tool uses are formatted in XML: <tool_name>\n<parameter1_name>value1</parameter1_name>\n</tool_name>";

/// Asserts that what the model writes for its client comes there as it was written, in pieces of any size, and is asked for once.
async fn expect_untouched(kind: &str, said: &str) {
    for stream in [true, false] {
        let rack = Setup::new().start_of_kind(kind, [Reply::text(said)]).await;
        let messages = json!([
            {"role": "system", "content": INSTRUCTIONS},
            user("<task>Go.</task>"),
            {"role": "assistant", "content": "I will."},
            user("[ERROR] You did not use a tool in your previous response! Please retry with a tool use."),
        ]);
        let reported = rack.ask_with(stream, json!({"messages": messages})).await;
        assert_eq!(reported.content, said);
        reported.expect(said);
        assert!(rack.ran().is_empty() && reported.calls.is_empty());
        assert_eq!(rack.upstream.asked().len(), 1);
        let system = rack.upstream.asked()[0].messages()[0]["content"].clone();
        assert!(system.as_str().unwrap().contains(INSTRUCTIONS), "{system}");
    }
}

/// <https://github.com/cline/cline/issues/735>: tools are elements, and so are their parameters.
#[tokio::test]
async fn n7_elements_for_the_client_are_its_own() {
    let _thread = Thread("https://github.com/cline/cline/issues/735");
    expect_untouched(
        "",
        "<attempt_completion>\n<result>\nI have completed the task.\n</result>\n</attempt_completion>",
    )
    .await;
    expect_untouched("", "I look.\n\n<read_file>\n<path>src/main.rs</path>\n</read_file>").await;
}

/// <https://github.com/cline/cline/issues/4362>: the same with models in Ollama.
#[tokio::test]
async fn n7_elements_for_the_client_are_its_own_in_ollamas_lines() {
    let _thread = Thread("https://github.com/cline/cline/issues/4362");
    let said = "<execute_command>\n<command>add 2 3</command>\n</execute_command>";
    expect_untouched("ollama", said).await;
}

/// <https://github.com/RooCodeInc/Roo-Code/issues/2708>: the same in Roo Code; qwen2.5 and gemma3 in Ollama write the client's tools as they
/// were taught to write calls.
#[tokio::test]
async fn n7_calls_of_the_clients_tools_are_its_own_in_every_form() {
    let _thread = Thread("https://github.com/RooCodeInc/Roo-Code/issues/2708");
    let call = r#"{"name": "ask_followup_question", "arguments": {"question": "Which?"}}"#;
    expect_untouched("ollama", &format!("<tool_call>\n{call}\n</tool_call>")).await;
    expect_untouched("ollama", &format!("```json\n{call}\n```")).await;
    // As its prompt for MCP servers has it, and that of Cherry Studio.
    let arguments = r#"<arguments>{"question": "Which?"}</arguments>"#;
    let mcp = format!("<server_name>a</server_name>\n<tool_name>ask</tool_name>\n{arguments}");
    expect_untouched("", &format!("<use_mcp_tool>\n{mcp}\n</use_mcp_tool>")).await;
    expect_untouched("", &format!("<tool_use>\n  <name>ask</name>\n  {arguments}\n</tool_use>")).await;
}
