//! Servers that take `tool_choice` and do not keep to it, or fail at it.

use serde_json::{Value, json};

use super::{CALL, Thread, expect_added};
use crate::support::{Act, Answer, Rack, Reply, Setup, client_tool, event, text_event, within};

const JSON_CALL: &str = r#"{"name": "add", "arguments": {"a": 2, "b": 3}}"#;

fn named(tool: &str) -> Value {
    json!({"tool_choice": {"type": "function", "function": {"name": tool}}})
}

/// A request in Anthropic's API, and the JSON of the reply.
async fn messages(rack: &Rack, fields: &Value) -> Value {
    let mut body =
        json!({"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "Hello."}]});
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let reply = within(rack.client.post(rack.url("/v1/messages")).json(&body).send()).await.unwrap();
    assert!(reply.status().is_success(), "{}", reply.status());
    reply.json().await.unwrap()
}

/// <https://github.com/ollama/ollama/issues/11171>: Ollama takes `required`, and the model talks; nothing says that it was not kept to.
#[tokio::test]
async fn g11_any_call_is_required_of_ollama_by_its_form() {
    let _thread = Thread("https://github.com/ollama/ollama/issues/11171");
    for stream in [true, false] {
        let rack =
            Setup::new().start_of_kind("ollama", [Reply::text(JSON_CALL), Reply::text("It is 5.")]).await;
        let reported = rack.ask_with(stream, json!({"tool_choice": "required"})).await;
        expect_added(&rack, &reported, "It is 5.");
        assert!(rack.upstream.asked()[0].body["format"].is_object(), "all that Ollama keeps a model to");
    }
    // `any`, as Anthropic's clients say it.
    let rack = Setup::new().start_of_kind("ollama", [Reply::text(JSON_CALL), Reply::text("It is 5.")]).await;
    let reply = messages(&rack, &json!({"tool_choice": {"type": "any"}, "tools": []})).await;
    assert_eq!(reply["content"][0]["text"], "It is 5.", "{reply}");
    assert_eq!(rack.ran().len(), 1);
    // A model that talks all the same is not passed off as one that called.
    let rack = Setup::new().start_of_kind("ollama", ["Hello!", "Hi!", "Hey!"].map(Reply::text)).await;
    let reported = rack.ask_with(true, json!({"tool_choice": "required"})).await;
    assert!(reported.failure().contains("`tool_choice` requires a call"), "{reported:?}");
    assert_eq!(reported.content, "");
}

/// <https://github.com/ollama/ollama/issues/17921>: a named tool is not called, and `none` does not keep the model from calling; in
/// both of Ollama's compatible APIs.
#[tokio::test]
async fn b15_a_named_tool_is_called_and_none_is_none() {
    let _thread = Thread("https://github.com/ollama/ollama/issues/17921");
    let rack = Setup::new().start_of_kind("ollama", [Reply::text(JSON_CALL), Reply::text("It is 5.")]).await;
    let reported = rack.ask_with(false, named("add")).await;
    expect_added(&rack, &reported, "It is 5.");
    assert_eq!(rack.upstream.asked()[0].body["format"]["properties"]["name"]["enum"], json!(["add"]));

    let weather =
        json!({"name": "weather", "description": "Get the weather.", "input_schema": {"type": "object"}});
    let said = r#"{"name": "weather", "arguments": {}}"#;
    let rack = Setup::new().start_of_kind("ollama", [Reply::text(said)]).await;
    let choice = json!({"tools": [weather], "tool_choice": {"type": "tool", "name": "weather"}});
    let reply = messages(&rack, &choice).await;
    assert_eq!(
        (&reply["stop_reason"], &reply["content"][0]["name"]),
        (&json!("tool_use"), &json!("weather"))
    );

    // It calls all the same, natively or as text.
    let call = Answer::new().call("", "add", &json!({"a": 2, "b": 3}));
    for call in [Reply::from(call), Reply::text(CALL)] {
        for is_anthropic in [false, true] {
            let rack = Setup::new().start_of_kind("ollama", [call.clone(), Reply::text("Hello!")]).await;
            if is_anthropic {
                let reply =
                    messages(&rack, &json!({"tools": [weather], "tool_choice": {"type": "none"}})).await;
                assert_ne!(reply["stop_reason"], "tool_use", "{reply}");
            } else {
                let reported = rack.ask_with(false, json!({"tool_choice": "none"})).await;
                assert!(
                    reported.calls.is_empty() && reported.finish.as_deref() == Some("stop"),
                    "{reported:?}"
                );
            }
            assert!(rack.ran().is_empty());
            assert!(rack.upstream.asked().iter().all(|asked| asked.body.get("tools").is_none()));
        }
    }
}

/// <https://github.com/jundot/omlx/issues/2877>: `required` and a named function are taken for `auto`; the model answers with prose and
/// `stop`, and a client that has to have the call breaks.
#[tokio::test]
async fn g11_a_client_gets_the_call_that_it_required() {
    let _thread = Thread("https://github.com/jundot/omlx/issues/2877");
    for choice in [json!({"tool_choice": "required"}), named("weather")] {
        for stream in [true, false] {
            let said = r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#;
            let rack = Setup::bare().start([Reply::text("Shall I?"), Reply::text(said)]).await;
            let mut fields = choice.clone();
            fields["tools"] = json!([client_tool("weather")]);
            let reported = rack.ask_with(stream, fields).await;
            assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
            assert_eq!((reported.content.as_str(), reported.finish.as_deref()), ("", Some("tool_calls")));
        }
    }
}

/// <https://github.com/vllm-project/vllm/issues/53255>: prose with the finish reason `tool_calls` and an empty list of calls; the client
/// goes to execute what is not there.
#[tokio::test]
async fn g11_a_finish_of_calls_without_a_call_is_none() {
    let _thread = Thread("https://github.com/vllm-project/vllm/issues/53255");
    let message = json!({"role": "assistant", "content": "I am well.", "tool_calls": []});
    let whole = json!({"object": "chat.completion", "model": "m", "choices": [
        {"index": 0, "message": message, "finish_reason": "tool_calls"},
    ]});
    let prose = || Reply::json(200, &whole);
    let rack =
        Setup::new().start_of_kind("vllm", [prose(), Reply::text(CALL), Reply::text("It is 5.")]).await;
    let reported = rack.ask_with(false, json!({"tool_choice": "required"})).await;
    expect_added(&rack, &reported, "It is 5.");
    assert!(rack.upstream.asked()[1].body["structured_outputs"]["grammar"].is_string());

    let rack = Setup::new().start_of_kind("vllm", [prose()]).await;
    rack.ask(false).await.expect("I am well.");
}

/// <https://github.com/vllm-project/vllm/issues/49216>: with `required` the stream ends in an internal error of the server's parser after
/// the thoughts.
#[tokio::test]
async fn g11_a_server_that_fails_at_required_calls_is_asked_so_that_it_has_not_to_parse_them() {
    let _thread = Thread("https://github.com/vllm-project/vllm/issues/49216");
    let failing = || {
        let error = json!({"message": "pop from empty list", "type": "InternalServerError", "param": null, "code": 500});
        Reply::stream([
            event(&json!({"choices": [{"index": 0, "delta": {"reasoning": "I use the tool."}}]})),
            event(&json!({"error": error})),
            Act::Send(b"data: [DONE]\n\n".to_vec()),
        ])
    };
    let rack =
        Setup::new().start_of_kind("vllm", [failing(), Reply::text(CALL), Reply::text("It is 5.")]).await;
    let reported = rack.ask_with(true, json!({"tool_choice": "required"})).await;
    expect_added(&rack, &reported, "It is 5.");
    let asked = rack.upstream.asked();
    assert!(asked[1].body["structured_outputs"]["grammar"].is_string() && asked[1].tools().is_empty());

    // Where that fails as well, the server's words are the client's.
    let rack = Setup::new().start_of_kind("vllm", [failing(), failing()]).await;
    let reported = rack.ask_with(true, json!({"tool_choice": "required"})).await;
    assert!(reported.failure().contains("pop from empty list"), "{reported:?}");
    assert_eq!(rack.upstream.asked().len(), 2);
    // Where no call is required, there is nothing to be done otherwise.
    let rack = Setup::new().start_of_kind("vllm", [failing()]).await;
    assert!(rack.ask(true).await.failure().contains("pop from empty list"));
}

/// <https://github.com/vllm-project/vllm/issues/20028>: with `required` and a stream the call comes as the list that the server has kept the model to, in
/// pieces of text, and the answer ends with `stop`.
#[tokio::test]
async fn g11_a_required_call_that_streams_as_a_list_in_the_text_is_a_call() {
    let _thread = Thread("https://github.com/vllm-project/vllm/issues/20028");
    let list = r#"[{"name": "weather", "parameters": {"city": "Oslo"}}]"#;
    for size in [1, 7, 100] {
        let pieces: Vec<Act> = list
            .as_bytes()
            .chunks(size)
            .map(|piece| text_event(std::str::from_utf8(piece).unwrap()))
            .collect();
        let last = event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        let reply = Reply::stream(pieces.into_iter().chain([last, Act::Send(b"data: [DONE]\n\n".to_vec())]));
        let rack = Setup::bare().start_of_kind("vllm", [reply]).await;
        let fields = json!({"tools": [client_tool("weather")], "tool_choice": "required"});
        let reported = rack.ask_with(true, fields).await;
        assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))], "{size}");
        assert_eq!((reported.content.as_str(), reported.finish.as_deref()), ("", Some("tool_calls")));
        assert_eq!(rack.upstream.asked().len(), 1);
    }
}
