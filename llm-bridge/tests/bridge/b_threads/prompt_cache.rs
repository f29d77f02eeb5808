//! Prompts that differ from what the server has just read, so that it reads all of them again.

use registry_core::{ToolPolicy, ToolResult, ToolSpec, handler_fn};
use serde_json::json;

use super::{Thread, expect_continued, texts};
use crate::support::{Answer, Reply, Setup, client_tool, user};

const DEFERRED: ToolPolicy = ToolPolicy { deferred: true, ..ToolPolicy::new() };

/// <https://github.com/ggml-org/llama.cpp/issues/21903>: after a turn with calls the prompt is read again, as clients swallow the thoughts
/// that were in it.
#[tokio::test]
async fn b15_the_thoughts_of_a_turn_with_calls_are_still_there_in_the_next() {
    let _thread = Thread("https://github.com/ggml-org/llama.cpp/issues/21903");
    let thinking = |text: &str| Answer::new().delta(json!({"reasoning_content": text}));
    let replies = [
        thinking("I have to add.").call("c", "add", &json!({"a": 2, "b": 3})).into(),
        thinking("That is it.").say("It is 5.").into(),
        Reply::text("5, as I said."),
    ];
    let rack = Setup::new().start_of_kind("llama.cpp", replies).await;
    rack.ask_with(true, texts(&["2 + 3?"])).await.expect("It is 5.");
    rack.ask_with(true, texts(&["2 + 3?", "It is 5.", "Sure?"])).await.expect("5, as I said.");
    let asked = rack.upstream.asked();
    expect_continued(&asked);
    let thoughts: Vec<_> =
        asked[2].messages().iter().filter_map(|message| message.get("reasoning_content")).collect();
    assert_eq!(thoughts, ["I have to add.", "That is it."]);
}

/// <https://github.com/ggml-org/llama.cpp/issues/22746>: another tool, and all is read again: a template writes the tools before the
/// conversation. Of those that are deferred only the modules are there.
#[tokio::test]
async fn b15_another_deferred_tool_does_not_change_the_prompt() {
    let _thread = Thread("https://github.com/ggml-org/llama.cpp/issues/22746");
    let call = Answer::new().call("c", "add", &json!({"a": 2, "b": 3}));
    let replies = [call.into(), Reply::text("It is 5."), Reply::text("Sure.")];
    let tides = |_| async { Ok(ToolResult::new("high")) };
    let setup = Setup::new().plain_tool("far.tides", DEFERRED, tides);
    let rack = setup.start_of_kind("llama.cpp", replies).await;
    rack.ask_with(true, texts(&["2 + 3?"])).await.expect("It is 5.");
    let snow = ToolSpec::new("far.snow", json!({"type": "object"}));
    let handler = handler_fn(|_, _| async { Ok(ToolResult::new("deep")) });
    rack.registry.register(snow, DEFERRED, Some(handler)).unwrap();
    rack.ask_with(true, texts(&["2 + 3?", "It is 5.", "Sure?"])).await.expect("Sure.");
    expect_continued(&rack.upstream.asked());
}

/// <https://github.com/antirez/ds4/pull/985>: a line break before a call is lost on the way to the client and back, and with it the prompt
/// of 161,000 tokens.
#[tokio::test]
async fn b15_the_line_break_before_a_call_is_sent_back() {
    let _thread = Thread("https://github.com/antirez/ds4/pull/985");
    for stream in [true, false] {
        let call = Answer::text("I add them:\n").call("c", "add", &json!({"a": 2, "b": 3}));
        let replies = [call.into(), Reply::text("It is 5."), Reply::text("Sure.")];
        let rack = Setup::new().start(replies).await;
        let shown = rack.ask_with(stream, texts(&["2 + 3?"])).await.content;
        assert_eq!(shown, "I add them:\n\nIt is 5.");
        rack.ask_with(stream, texts(&["2 + 3?", &shown, "Sure?"])).await.expect("Sure.");
        let asked = rack.upstream.asked();
        assert_eq!(asked[2].messages()[1]["content"], "I add them:\n");
        expect_continued(&asked);
    }
}

/// <https://github.com/antirez/ds4/issues/200>: clients read the arguments of a call and write them anew, in another order, so that the call in the next
/// prompt is not the one that the model wrote.
#[tokio::test]
async fn b15_a_call_is_sent_back_in_the_models_own_words() {
    let _thread = Thread("https://github.com/antirez/ds4/issues/200");
    for stream in [true, false] {
        let delta = json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "weather", "arguments": "{\"when\":\"now\",\"city\":\"Oslo\"}"}}]});
        let replies = [Answer::new().delta(delta).finish("tool_calls").into(), Reply::text("It is grey.")];
        let rack = Setup::new().start_of_kind("llama.cpp", replies).await;
        let tools = json!([client_tool("weather")]);
        let reported = rack.ask_with(stream, json!({"tools": tools})).await;
        let mut call = reported.calls[0].clone();
        call["function"]["arguments"] = "{\"city\": \"Oslo\", \"when\": \"now\"}".into();
        let messages = json!([
            user("Go."),
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "grey"},
        ]);
        rack.ask_with(stream, json!({"tools": tools, "messages": messages})).await.expect("It is grey.");
        let asked = rack.upstream.asked();
        let sent = &asked[1].messages()[1]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(sent, "{\"when\":\"now\",\"city\":\"Oslo\"}");
    }
}

/// <https://github.com/open-webui/open-webui/issues/23339>: a turn of several rounds with calls comes back as one text, trimmed and without its thoughts,
/// and all of it is read again.
#[tokio::test]
async fn b15_a_turn_of_several_rounds_is_continued_where_the_client_has_its_text_alone() {
    let _thread = Thread("https://github.com/open-webui/open-webui/issues/23339");
    for stream in [true, false] {
        let thinking = |text: &str| Answer::new().delta(json!({"reasoning_content": text}));
        let replies = [
            thinking("First the sum.").say("I add.\n").call("c", "add", &json!({"a": 2, "b": 3})).into(),
            thinking("Now the divisor.")
                .say("And divide.")
                .call("d", "math_gcd", &json!({"a": 12, "b": 18}))
                .into(),
            thinking("That is it.").say("5 and 6.\n\n").into(),
            Reply::text("Sure."),
            Reply::text("Yes."),
        ];
        let rack = Setup::new().start_of_kind("llama.cpp", replies).await;
        let shown = rack.ask_with(stream, texts(&["Go."])).await.content;
        let shown = shown.trim();
        assert_eq!(rack.ran().len(), 2);
        rack.ask_with(stream, texts(&["Go.", shown, "Sure?"])).await.expect("Sure.");
        rack.ask_with(stream, texts(&["Go.", shown, "Sure?", "Sure.", "Yes?"])).await.expect("Yes.");
        expect_continued(&rack.upstream.asked());
    }
}
