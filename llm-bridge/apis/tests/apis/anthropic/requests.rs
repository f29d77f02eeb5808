//! Requests through the front.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolrack_apis::{
    Content, CountTokens, Front, RawJson, Role, Wire, anthropic::AnthropicFront, openai::OpenAiWire,
};

use super::{
    API, decode, decoded,
    random::{body, request},
};

proptest! {
    #[test]
    fn b13_anthropic_a_request_survives_the_front(request in request()) {
        prop_assert_eq!(decoded(&body(&request)), request);
    }

    #[test]
    fn b13_anthropic_a_body_of_anything_never_panics(
        text in "[\\[\\]{}:,\"a-z0-9 ]{0,60}", bytes in any::<Vec<u8>>(),
    ) {
        let _ = decode(text.as_bytes());
        let _ = decode(&bytes);
    }
}

/// By this the SDKs know that they are to send whole conversations.
#[test]
fn b13_anthropic_a_thread_is_refused_as_the_api_refuses_it() {
    for thread in [json!({"type": "create"}), json!({"type": "continue", "previous_message_id": "msg_1"})] {
        let body =
            json!({"max_tokens": 9, "thread": thread, "messages": [{"role": "user", "content": "hi"}]});
        let error = decode(body.to_string().as_bytes()).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, "thread");
        let reply = AnthropicFront.failure(&error.into());
        let reply: Value = serde_json::from_slice(reply.body()).unwrap();
        assert_eq!(reply["error"]["details"]["error_code"], "thread_unsupported_request");
        assert_eq!(reply["error"]["type"], "invalid_request_error");
    }
}

/// The tools that Anthropic defines and the client runs, as its SDKs send them.
#[test]
fn b13_anthropic_tools_that_the_client_runs_have_their_schema() {
    let computer = json!({
        "type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768, "display_number": 1,
    });
    let request = decoded(&json!({
        "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": [
            {"type": "bash_20250124", "name": "bash", "cache_control": {"type": "ephemeral"}},
            {"type": "text_editor_20250124", "name": "str_replace_editor"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10_000},
            {"type": "memory_20250818", "name": "memory"},
            computer,
        ],
    }));
    let sent: Value = serde_json::from_slice(OpenAiWire.request(&request, "").http.body()).unwrap();
    let function = |at: usize| &sent["tools"][at]["function"];
    let enumerated = |at: usize, of: &str| -> Vec<&str> {
        let words = function(at)["parameters"]["properties"][of]["enum"].as_array().unwrap();
        words.iter().map(|word| word.as_str().unwrap()).collect()
    };
    let names: Vec<&Value> = (0..5).map(|at| &function(at)["name"]).collect();
    assert_eq!(names, ["bash", "str_replace_editor", "str_replace_based_edit_tool", "memory", "computer"]);
    let has =
        |at: usize, property: &str| function(at)["parameters"]["properties"][property]["type"].is_string();
    assert!(has(0, "command") && has(0, "restart"));
    assert_eq!(enumerated(1, "command"), ["view", "create", "str_replace", "insert", "undo_edit"]);
    assert_eq!(enumerated(2, "command"), ["view", "create", "str_replace", "insert"]);
    assert!(!has(1, "insert_text") && has(2, "insert_text"));
    assert_eq!(enumerated(3, "command"), ["view", "create", "str_replace", "insert", "delete", "rename"]);
    assert_eq!(function(3)["parameters"]["required"], json!(["command"]));
    assert!(has(3, "old_path") && has(3, "new_path"));
    assert!(function(4)["description"].as_str().unwrap().contains("1024 x 768"));
    assert!(enumerated(4, "action").contains(&"scroll") && !enumerated(4, "action").contains(&"zoom"));
}

#[test]
fn b13_anthropic_a_message_of_results_and_text_is_taken_apart() {
    let request = decoded(&json!({
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "text", "text": "So?"},
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true},
                {"type": "text", "text": ""},
            ]},
        ],
        "max_tokens": 100,
        "metadata": {"user_id": "u"},
    }));
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
    assert_eq!(request.messages[3].tool_result().unwrap().parts, [Content::Text("1".into()).into()]);
    let second = request.messages[4].tool_result().unwrap();
    assert_eq!((second.call_id.as_str(), second.is_error, second.parts.len()), ("b", true, 0));
    assert_eq!(request.messages[5].plain_text(), "So?");
    assert_eq!(request.passing.get(API, "metadata"), Some(&RawJson::of(&json!({"user_id": "u"}))));
}

#[test]
fn b13_anthropic_a_document_of_text_reaches_a_chat_server_as_text() {
    let source = json!({"type": "text", "media_type": "text/plain", "data": "Once."});
    let document = json!({"type": "document", "title": "Tale", "source": source});
    let request = decoded(&json!({"messages": [{"role": "user", "content": [document]}]}));
    let encoded = OpenAiWire.request(&request, "");
    let body: Value = serde_json::from_slice(encoded.http.body()).unwrap();
    assert_eq!(body["messages"][0]["content"], json!([{"type": "text", "text": "Tale\n\nOnce."}]));
    assert_eq!(encoded.omissions[0].to_string(), "`messages[0].parts[0]` sent as text");
}

#[test]
fn b13_anthropic_blocks_of_text_reach_a_chat_server_as_text() {
    let inner = json!([{"type": "text", "text": "Seven."}, {"type": "text", "text": "Or eight."}]);
    let found = json!({
        "type": "search_result", "title": "Bears", "source": "https://a", "content": inner, "citations": {"enabled": true},
    });
    let reference = json!({"type": "tool_reference", "tool_name": "w"});
    let document = |content: &Value| json!({"type": "document", "title": "Tale", "source": {"type": "content", "content": content}});
    let request = decoded(&json!({"messages": [
        {"role": "user", "content": [document(&inner), document(&json!("Once."))]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [found, reference]}]},
    ]}));
    let text = |text: &str| json!({"type": "text", "text": text});
    let body: Value = serde_json::from_slice(OpenAiWire.request(&request, "").http.body()).unwrap();
    let words = ["Tale\n\nSeven.\n\nOr eight.", "Tale\n\nOnce."].map(text);
    assert_eq!(body["messages"][0]["content"], json!(words));
    let words = "Bears\n\nhttps://a\n\nSeven.\n\nOr eight.\nThe tool `w` is available.";
    assert_eq!(body["messages"][2]["content"], words);
    // Nobody takes what is quoted for the person's own words.
    assert_eq!(request.messages[0].plain_text(), "");
}

#[test]
fn b13_anthropic_tokens_are_counted() {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "system": "s"});
    let parts = http::Request::new(()).into_parts().0;
    let request = AnthropicFront.decode_count(&parts, body.to_string().as_bytes()).unwrap();
    assert_eq!((request.model.as_deref(), request.messages.len()), (Some("m"), 2));
    let reply = AnthropicFront.count(12);
    assert_eq!(reply.headers()["content-type"], "application/json");
    assert_eq!(reply.body(), b"{\"input_tokens\":12}");
}

#[test]
fn b13_anthropic_a_malformed_body_names_the_field() {
    let messages = json!([{"role": "user", "content": "hi"}]);
    let with = |fields: Value| {
        let mut body = json!({"messages": messages});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    let block = |role: &str, block: Value| json!({"messages": [{"role": role, "content": [block]}]});
    let tool = |tool: Value| with(json!({"tools": [tool]}));
    let (content, tool_field) = ("messages[0].content[0]", "tools[0]");
    for (body, param) in [
        (json!([]), "body".to_owned()),
        (json!({}), "messages".to_owned()),
        (json!({"messages": []}), "messages".to_owned()),
        (json!({"messages": {}}), "messages".to_owned()),
        (json!({"messages": ["hi"]}), "messages[0]".to_owned()),
        (json!({"messages": [{"content": "hi"}]}), "messages[0].role".to_owned()),
        (json!({"messages": [{"role": "tool", "content": "hi"}]}), "messages[0].role".to_owned()),
        (json!({"messages": [{"role": "user", "content": 1}]}), "messages[0].content".to_owned()),
        (block("user", json!("hi")), content.to_owned()),
        (block("user", json!({"text": "hi"})), format!("{content}.type")),
        (block("user", json!({"type": "text"})), format!("{content}.text")),
        (block("user", json!({"type": "tool_use"})), format!("{content}.type")),
        (block("user", json!({"type": "thinking"})), format!("{content}.type")),
        (block("assistant", json!({"type": "tool_result"})), format!("{content}.type")),
        (block("assistant", json!({"type": "tool_use", "name": "f"})), format!("{content}.id")),
        (block("assistant", json!({"type": "tool_use", "id": "a"})), format!("{content}.name")),
        (
            block("assistant", json!({"type": "tool_use", "id": "a", "name": "f", "input": "{}"})),
            format!("{content}.input"),
        ),
        (block("assistant", json!({"type": "thinking", "thinking": 1})), format!("{content}.thinking")),
        (block("assistant", json!({"type": "redacted_thinking"})), format!("{content}.data")),
        (block("user", json!({"type": "tool_result"})), format!("{content}.tool_use_id")),
        (
            block("user", json!({"type": "tool_result", "tool_use_id": "a", "is_error": 1})),
            format!("{content}.is_error"),
        ),
        (
            block("user", json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]})),
            format!("{content}.content[0].text"),
        ),
        (block("user", json!({"type": "image"})), format!("{content}.source")),
        (block("user", json!({"type": "image", "source": {}})), format!("{content}.source.type")),
        (
            block("user", json!({"type": "image", "source": {"type": "base64"}})),
            format!("{content}.source.data"),
        ),
        (
            block("user", json!({"type": "image", "source": {"type": "text", "data": "a"}})),
            format!("{content}.source.type"),
        ),
        (with(json!({"system": 1})), "system".to_owned()),
        (with(json!({"model": 3})), "model".to_owned()),
        (with(json!({"stream": "yes"})), "stream".to_owned()),
        (with(json!({"max_tokens": -1})), "max_tokens".to_owned()),
        (with(json!({"temperature": "hot"})), "temperature".to_owned()),
        (with(json!({"stop_sequences": "a"})), "stop_sequences".to_owned()),
        (with(json!({"stop_sequences": [1]})), "stop_sequences[0]".to_owned()),
        (with(json!({"thinking": {}})), "thinking.type".to_owned()),
        (with(json!({"thinking": {"type": "enabled"}})), "thinking.budget_tokens".to_owned()),
        (with(json!({"output_config": {"effort": "most"}})), "output_config.effort".to_owned()),
        (with(json!({"output_config": {"format": {}}})), "output_config.format.type".to_owned()),
        (with(json!({"output_format": {"type": "json_schema"}})), "output_format.schema".to_owned()),
        (with(json!({"output_format": {}, "output_config": {"format": {}}})), "output_format".to_owned()),
        (with(json!({"tools": {}})), "tools".to_owned()),
        (tool(json!({"type": "web_search_20250305", "name": "web_search"})), format!("{tool_field}.type")),
        (tool(json!({"type": "bash_code_execution_20250825", "name": "x"})), format!("{tool_field}.type")),
        (tool(json!({"type": "bash_2025", "name": "bash"})), format!("{tool_field}.type")),
        (tool(json!({"type": "bash_20250124"})), format!("{tool_field}.name")),
        (tool(json!({"name": "f"})), format!("{tool_field}.input_schema")),
        (tool(json!({"name": "f", "input_schema": 1})), format!("{tool_field}.input_schema")),
        (tool(json!({"input_schema": {}})), format!("{tool_field}.name")),
        (
            with(
                json!({"tools": [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {"type": "object"}}]}),
            ),
            "tools[1]".to_owned(),
        ),
        (with(json!({"tool_choice": "auto"})), "tool_choice".to_owned()),
        (with(json!({"tool_choice": {"type": "maybe"}})), "tool_choice.type".to_owned()),
        (with(json!({"tool_choice": {"type": "tool"}})), "tool_choice.name".to_owned()),
        (with(json!({"mcp_servers": [{"url": "https://a"}]})), "mcp_servers".to_owned()),
        (with(json!({"toolrack": {"deltas": true}})), "toolrack.deltas".to_owned()),
    ] {
        let text = body.to_string();
        let error = decode(text.as_bytes()).map(|decoded| decoded.request).unwrap_err();
        assert_eq!(error.param, param, "{body}: {error}");
        assert!(error.message.len() > 10, "{error}");
        assert_eq!(decode(&text.as_bytes()[..text.len() - 1]).unwrap_err().param, "body");
    }
}
