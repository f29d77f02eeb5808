//! Calls that the server hands on as text.

use serde_json::json;

use super::{CALL, Thread, expect_added};
use crate::support::{Answer, Reply, Setup, client_tool};

/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/810>: behind its thoughts a call stands in `content`, the finish reason is
/// `stop`, and the client prints it.
#[tokio::test]
async fn b2_a_call_behind_its_thoughts_in_the_content_is_run() {
    let _thread = Thread("https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/810");
    for stream in [true, false] {
        let said = format!("<think>I have to add them.</think>\n\n{CALL}");
        let rack =
            Setup::new().start_of_kind("lmstudio", [Reply::text(&said), Reply::text("It is 5.")]).await;
        let reported = rack.ask(stream).await;
        expect_added(&rack, &reported, "It is 5.");
        assert_eq!(reported.reasoning.trim(), "I have to add them.");
    }
}

/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1987>: Llama, Hermes, Qwen and Mistral write calls as JSON, as XML and as
/// Anthropic's models do, all of them right, and none is run.
#[tokio::test]
async fn b2_a_call_is_run_in_whichever_form_a_model_writes_it() {
    let _thread = Thread("https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1987");
    for said in [
        CALL,
        r#"{"name": "add", "arguments": {"a": 2, "b": 3}}"#,
        r#"{"name": "add", "parameters": {"a": 2, "b": 3}}"#,
        "```json\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n```",
        r#"<|python_tag|>{"name": "add", "parameters": {"a": 2, "b": 3}}"#,
        "<function=add>{\"a\": 2, \"b\": 3}</function>",
        "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>\n</tool_call>",
        r#"[TOOL_CALLS][{"name": "add", "arguments": {"a": 2, "b": 3}}]"#,
        r#"[TOOL_CALLS]add[ARGS]{"a": 2, "b": 3}"#,
        "<function_calls>\n<invoke name=\"add\">\n<parameter name=\"a\">2</parameter>\n<parameter name=\"b\">3</parameter>\n</invoke>\n</function_calls>",
    ] {
        for stream in [true, false] {
            let rack =
                Setup::new().start_of_kind("lmstudio", [Reply::text(said), Reply::text("It is 5.")]).await;
            let reported = rack.ask(stream).await;
            assert_eq!(reported.content.trim(), "It is 5.", "{said}");
            expect_added(&rack, &reported, "It is 5.");
        }
    }
}

/// <https://github.com/open-webui/open-webui/issues/13905>: the server calls natively, in a whole answer with `content: null` and the
/// fields of a hosted API, and the client neither runs the call nor asks again.
#[tokio::test]
async fn b2_a_native_call_in_a_whole_answer_is_run_before_the_client_gets_it() {
    let _thread = Thread("https://github.com/open-webui/open-webui/issues/13905");
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":2,\"b\":3}"}});
    let message = json!({
        "role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [call],
    });
    let whole = json!({"object": "chat.completion", "model": "m", "choices": [{
        "index": 0, "message": message, "finish_reason": "tool_calls", "logprobs": null, "content_filter_results": {},
    }]});
    for stream in [true, false] {
        let rack = Setup::new().start([Reply::json(200, &whole), Answer::text("It is 5.").into()]).await;
        let reported = rack.ask(stream).await;
        expect_added(&rack, &reported, "It is 5.");
    }
}

/// <https://github.com/continuedev/continue/pull/11870>: a local model writes the calls of the client's tools into the text, and they stand in the
/// chat as they are. In the client's own request they become calls in the fields of its API.
#[tokio::test]
async fn b2_a_call_of_the_clients_tool_in_the_text_comes_in_the_fields_of_its_api() {
    let _thread = Thread("https://github.com/continuedev/continue/pull/11870");
    let call = r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#;
    for said in [
        format!("I look.\n\n<tool_call>\n{call}\n</tool_call>"),
        format!("I look.\n\n```json\n{call}\n```"),
        "I look.\n\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>".to_owned(),
    ] {
        for stream in [true, false] {
            let rack = Setup::new().start_of_kind("llama.cpp", [Reply::text(&said)]).await;
            let reported = rack.ask_with(stream, json!({"tools": [client_tool("weather")]})).await;
            assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))], "{said}");
            assert_eq!(
                (reported.content.trim(), reported.finish.as_deref()),
                ("I look.", Some("tool_calls"))
            );
            assert!(rack.ran().is_empty());
        }
    }
}
