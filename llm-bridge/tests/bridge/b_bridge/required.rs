//! Calls that `tool_choice` requires, from models that would rather talk.

use std::time::Duration;

use llm_bridge::{
    turn::ToolStyle,
    upstream::{Upstream, UpstreamApi, UpstreamSettings},
};
use serde_json::{Value, json};

use super::faults::CALL;
use crate::support::{Answer, Rack, Reply, Scripted, Setup, Site, client_tool, within};

const JSON_CALL: &str = r#"{"name": "add", "arguments": {"a": 2, "b": 3}}"#;

/// A server of a kind, with its model.
async fn rack_of(kind: &str, setup: Setup, replies: impl IntoIterator<Item = Reply>) -> Rack {
    let site = if kind == "unknown" { Site::default() } else { Site::of_kind(kind, &["m"]) };
    let upstream = Scripted::start_as(site, replies).await;
    let settings = UpstreamSettings::new(upstream.base(), Duration::from_secs(20));
    setup.start_with(upstream, Upstream::server(settings).unwrap()).await
}

fn required() -> Value {
    json!({"tool_choice": "required"})
}

#[tokio::test]
async fn g11_an_answer_without_a_required_call_is_asked_for_again_so_that_it_can_be_nothing_else() {
    for (kind, said, field) in [
        ("llama.cpp", CALL, &["grammar"][..]),
        ("vllm", CALL, &["structured_outputs", "grammar"]),
        ("sglang", CALL, &["ebnf"]),
        ("lmstudio", JSON_CALL, &["response_format", "json_schema", "schema"]),
        ("unknown", JSON_CALL, &["response_format", "json_schema", "schema"]),
    ] {
        for stream in [true, false] {
            let replies = [Reply::text("I'd rather talk."), Reply::text(said), Reply::text("5")];
            let rack = rack_of(kind, Setup::new(), replies).await;
            // What is no call is not shown.
            rack.ask_with(stream, required()).await.expect("5");
            assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))], "{kind}");
            let asked = rack.upstream.asked();
            assert_eq!(asked[0].body["tool_choice"], "required");
            assert_eq!(asked[0].tools(), ["add", "math_gcd"]);
            let constraint = field.iter().fold(&asked[1].body, |value, name| &value[*name]);
            let constraint = constraint.as_str().map_or_else(|| constraint.to_string(), str::to_owned);
            assert!(
                constraint.contains("math_gcd") && constraint.contains("add"),
                "{kind}: {}",
                asked[1].body
            );
            assert!(asked[1].tools().is_empty() && asked[1].body.get("tool_choice").is_none());
            // The model may talk again when it has called.
            assert!(asked[2].body.get(field[0]).is_none() && asked[2].tools().len() == 2, "{kind}");
        }
    }
}

#[tokio::test]
async fn b15_where_the_server_takes_no_tool_choice_the_first_answer_is_a_call_already() {
    let rack = rack_of("ollama", Setup::new(), [Reply::text(JSON_CALL), Reply::text("5")]).await;
    rack.ask_with(true, required()).await.expect("5");
    let asked = rack.upstream.asked();
    let calls = asked[0].body["format"]["anyOf"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0]["properties"]["name"]["enum"], json!(["add"]));
    assert!(asked[0].tools().is_empty() && asked[1].tools().len() == 2);
    assert!(
        asked[0].messages()[0]["content"].as_str().unwrap().contains("You must call one of these tools now.")
    );

    let named = json!({"tool_choice": {"type": "function", "function": {"name": "add"}}});
    let rack = rack_of("koboldcpp", Setup::new(), [Reply::text(CALL), Reply::text("5")]).await;
    rack.ask_with(true, named).await.expect("5");
    let grammar = rack.upstream.asked()[0].body["grammar"].as_str().unwrap().to_owned();
    assert!(grammar.contains("add") && !grammar.contains("math_gcd"), "{grammar}");
}

#[tokio::test]
async fn g11_a_model_that_never_calls_ends_in_an_error_that_says_so() {
    for style in [ToolStyle::Auto, ToolStyle::Native, ToolStyle::Prompt] {
        let setup = Setup::new().chat(|chat| chat.tool_style = style);
        let replies = ["No.", "Never.", "Not today."].map(Reply::text);
        let rack = rack_of("unknown", setup, replies).await;
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
        body["tool_choice"] = "required".into();
        let response = rack.post(&body).await;
        assert_eq!(response.status(), 424, "{style:?}");
        assert_eq!(response.headers()["x-should-retry"], "false");
        let text = within(response.text()).await.unwrap();
        assert!(text.contains("`tool_choice` requires a call") && text.contains("Not today."), "{text}");
        assert!(text.contains("`toolrack doctor`"), "{text}");
        let asked = rack.upstream.asked();
        assert_eq!(asked.len(), 3, "{style:?}");
        // What was wrong is said, and is no part of the conversation.
        let last = asked[2].messages();
        assert!(
            last[last.len() - 1]["content"].as_str().unwrap().starts_with("That was no call"),
            "{last:?}"
        );
        assert_eq!(last[last.len() - 2]["content"], "Never.");
        assert!(!asked[2].body.to_string().contains("\"No.\""), "{style:?}");
        assert_eq!(asked[1].tools().is_empty(), style != ToolStyle::Native);
    }
}

#[tokio::test]
async fn g11_a_call_of_the_clients_tool_is_waited_for_in_later_rounds_too() {
    let fields = json!({"tools": [client_tool("weather")], "tool_choice": "required"});
    let gcd = Answer::new().call("c", "math_gcd", &json!({"a": 12, "b": 18}));
    let weather = r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#;
    let replies = [gcd.into(), Reply::text("It is 6."), Reply::text(weather)];
    let rack = rack_of("unknown", Setup::new(), replies).await;
    let reported = rack.ask_with(true, fields).await;
    assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
    assert_eq!(reported.content, "");
}

#[tokio::test]
async fn g11_what_stands_before_a_required_call_is_shown_with_it_and_what_was_cut_off_as_it_is() {
    let said = Answer::text("Let me see.").call("c", "add", &json!({"a": 2, "b": 3}));
    let rack = rack_of("unknown", Setup::new(), [said.into(), Reply::text("5")]).await;
    rack.ask_with(true, required()).await.expect("Let me see.\n\n5");

    let cut = Answer::text("I would say that").finish("length");
    let rack = rack_of("unknown", Setup::new(), [cut.into()]).await;
    let reported = rack.ask_with(true, required()).await;
    assert_eq!((reported.content.as_str(), rack.upstream.asked().len()), ("I would say that", 1));
}

#[tokio::test]
async fn b15_a_server_that_refuses_the_constraint_is_asked_without_it() {
    let refusal = Reply::error(400, "failed to parse grammar");
    let replies = [Reply::text("Hm."), refusal, Reply::text(CALL), Reply::text("5")];
    let rack = rack_of("llama.cpp", Setup::new(), replies).await;
    rack.ask_with(true, required()).await.expect("5");
    let asked = rack.upstream.asked();
    assert!(asked[1].body["grammar"].is_string() && asked[2].body.get("grammar").is_none());
}

#[tokio::test]
async fn b15_only_a_call_of_a_tool_that_may_be_called_is_the_required_one() {
    let other = json!({"name": "math_gcd", "arguments": {"a": 12, "b": 18}});
    let native = |name: &str| Answer::new().call("c", name, &json!({"a": 12, "b": 18})).into();
    let text = || Reply::text(&format!("<tool_call>{other}</tool_call>"));
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "add"}}});
    for (fields, wrong) in [
        (named.clone(), native("math_gcd")),
        (named.clone(), text()),
        (named, native("nobody")),
        (required(), native("nobody")),
    ] {
        for stream in [true, false] {
            let replies = [wrong.clone(), Reply::text(CALL), Reply::text("5")];
            let rack = rack_of("llama.cpp", Setup::new(), replies).await;
            let reported = rack.ask_with(stream, fields.clone()).await;
            assert_eq!(reported.content, "5");
            assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))], "{fields}");
            let is_told = |details: &Value| details["type"] == "notice";
            assert!(reported.details.iter().any(is_told), "{:?}", reported.details);
            assert!(rack.upstream.asked()[1].body["grammar"].is_string());
        }
    }
    // Beside the right one, too: the client gets what it has asked for.
    let both = Answer::new().call("c", "math_gcd", &json!({"a": 12, "b": 18}));
    let both = both.call("d", "add", &json!({"a": 2, "b": 3}));
    let rack = rack_of("unknown", Setup::new(), [both.into(), Reply::text("5")]).await;
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "add"}}});
    rack.ask_with(true, named).await.expect("5");
    assert_eq!(rack.ran().len(), 1);
}

#[tokio::test]
async fn b15_a_call_cannot_be_required_where_there_is_no_tool() {
    for choice in [
        json!("required"),
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}),
    ] {
        let rack = rack_of("unknown", Setup::new(), []).await;
        let body = json!({
            "model": "m:plain", "messages": [{"role": "user", "content": "Go."}], "tool_choice": choice,
        });
        let response = rack.post(&body).await;
        assert_eq!(response.status(), 400);
        let text = within(response.text()).await.unwrap();
        assert!(text.contains("there is no tool to call") && text.contains("tool_choice"), "{text}");
    }
}

#[tokio::test]
async fn b15_the_form_of_an_answer_that_was_cut_off_is_asked_for_without_a_call() {
    let fields = json!({
        "tools": [client_tool("weather")], "tool_choice": "required", "response_format": {"type": "json_object"},
    });
    let cut = Answer::text("I would say that").finish("length");
    let rack = rack_of("unknown", Setup::new(), [cut.into(), Reply::text("{}")]).await;
    let reported = rack.ask_with(true, fields).await;
    assert_eq!((reported.content.as_str(), rack.upstream.asked().len()), ("{}", 2));
}

#[tokio::test]
async fn b15_a_grammar_goes_only_to_a_server_that_is_asked_in_the_api_that_has_it() {
    let site = Site::of_kind("llama.cpp", &["m"]);
    let upstream =
        Scripted::start_as(site, [Reply::text("Hm."), Reply::text(JSON_CALL), Reply::text("5")]).await;
    let settings = UpstreamSettings::new(upstream.base(), Duration::from_secs(20));
    let settings = UpstreamSettings { api: Some(UpstreamApi::Ollama), ..settings };
    let rack = Setup::new().start_with(upstream, Upstream::server(settings).unwrap()).await;
    rack.ask_with(true, required()).await.expect("5");
    let asked = rack.upstream.asked();
    assert!(
        asked[1].body.get("grammar").is_none() && asked[1].body["format"].is_object(),
        "{}",
        asked[1].body
    );
}
