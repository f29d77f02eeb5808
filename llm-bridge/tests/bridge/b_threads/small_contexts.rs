//! Servers that cut what does not fit, and say nothing.

use registry_core::{ToolPolicy, ToolResult};
use serde_json::{Value, json};

use super::Thread;
use crate::support::{Answer, Asked, Reply, Setup, user};

fn num_ctx(asked: &Asked) -> Option<u64> {
    asked.body["options"]["num_ctx"].as_u64()
}

/// <https://github.com/ollama/ollama/issues/18107>: instructions, tools and the first result are more than 4096 tokens; Ollama drops the
/// user's message, and answers that there is none.
#[tokio::test]
async fn b11_a_result_that_does_not_fit_by_default_gets_a_larger_context() {
    let _thread = Thread("https://github.com/ollama/ollama/issues/18107");
    let status = |_| async { Ok(ToolResult::new("changed ".repeat(3000))) };
    let setup = Setup::new().plain_tool("git_status", ToolPolicy::new(), status);
    let replies = [Answer::new().call("", "git_status", &json!({})).into(), Reply::text("Much has changed.")];
    let rack = setup.start_of_kind("ollama", replies).await;
    let instructions = json!({"role": "system", "content": "word ".repeat(2500)});
    let messages = json!([instructions, user("Run git status.")]);
    rack.ask_with(true, json!({"messages": messages})).await.expect("Much has changed.");
    let asked = rack.upstream.asked();
    let sizes: Vec<_> = asked.iter().map(num_ctx).collect();
    assert!(sizes[0] >= Some(8192) && sizes[1] >= Some(16384), "{sizes:?}");
    let all = asked[1].messages();
    let roles: Vec<&Value> = all.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(all[1]["content"], "Run git status.");
}

/// <https://github.com/NousResearch/hermes-agent/pull/5929>: Ollama has a small context whatever the model can, and nobody asks it for a
/// larger one.
#[tokio::test]
async fn b11_ollama_is_asked_for_a_larger_context_without_a_setting() {
    let _thread = Thread("https://github.com/NousResearch/hermes-agent/pull/5929");
    let rack = Setup::new().start_of_kind("ollama", [Reply::text("Hi."), Reply::text("Hi.")]).await;
    for (words, size) in [(10, None), (12_000, Some(32768))] {
        rack.ask_with(true, json!({"messages": [user(&"word ".repeat(words))]})).await.expect("Hi.");
        assert_eq!(num_ctx(rack.upstream.asked().last().unwrap()), size, "{words} words");
    }
}
