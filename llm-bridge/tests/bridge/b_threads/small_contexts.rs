//! Servers that cut what does not fit, and say nothing.

use std::time::Duration;

use llm_bridge::upstream::{Upstream, UpstreamSettings};
use registry_core::{ToolPolicy, ToolResult};
use serde_json::{Value, json};

use super::Thread;
use crate::support::{Answer, Asked, Reply, Scripted, Setup, Site, client_tool, user};

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

/// Tools of the client with long descriptions.
fn long_tools(count: usize) -> Vec<Value> {
    let tool = |at: usize| {
        let mut tool = client_tool(&format!("tool_{at}"));
        tool["function"]["description"] = "Edits a file of the workspace. ".repeat(30).into();
        tool
    };
    (0..count).map(tool).collect()
}

/// <https://github.com/ollama/ollama/issues/7796>: the tools alone are more than the context that Ollama gives by default; it cuts them off without a word, and
/// the model calls none.
#[tokio::test]
async fn b11_tools_that_do_not_fit_by_default_get_a_larger_context() {
    let _thread = Thread("https://github.com/ollama/ollama/issues/7796");
    for stream in [true, false] {
        let call = Answer::new().call("", "tool_0", &json!({"city": "Oslo"}));
        let rack = Setup::bare().start_of_kind("ollama", [call.into()]).await;
        let reported = rack.ask_with(stream, json!({"tools": long_tools(24)})).await;
        assert_eq!(reported.named_calls(), [("tool_0".to_owned(), json!({"city": "Oslo"}))]);
        let asked = &rack.upstream.asked()[0];
        assert_eq!((asked.path.as_str(), asked.tools().len()), ("/api/chat", 24));
        assert!(num_ctx(asked) >= Some(16384), "{:?}", num_ctx(asked));
    }
}

/// <https://github.com/microsoft/vscode/issues/255164>: an editor in agent mode sends about 9000 tokens to OpenAI's API of Ollama, which has no size of the
/// context; its log alone says that the prompt was cut to 4096.
#[tokio::test]
async fn b11_an_agents_request_is_not_cut_in_silence() {
    let _thread = Thread("https://github.com/microsoft/vscode/issues/255164");
    let messages = json!([{"role": "system", "content": "word ".repeat(4000)}, user("Fix the test.")]);
    let body = json!({"tools": long_tools(20), "messages": messages});
    let rack = Setup::bare().start_of_kind("ollama", [Answer::text("Done.").usage(8942, 3).into()]).await;
    rack.ask_with(true, body.clone()).await.expect("Done.");
    assert!(num_ctx(&rack.upstream.asked()[0]) >= Some(16384));

    // Where the operator allows no more, the person is told.
    let upstream =
        Scripted::start_as(Site::of_kind("ollama", &["m"]), [Answer::text("Done.").usage(2050, 3).into()])
            .await;
    let settings = UpstreamSettings {
        num_ctx: Some(4096),
        ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20))
    };
    let rack = Setup::bare().start_with(upstream, Upstream::server(settings).unwrap()).await;
    let mut reading = rack.open_with(body).await;
    let notice = reading.read_to("notice").await.to_string();
    assert!(notice.contains("2050") && notice.contains("4096"), "{notice}");
}
