//! What of a request reaches the model server, and what of its answer comes back.

use std::time::Duration;

use llm_bridge::upstream::{Upstream, UpstreamSettings};
use serde_json::{Value, json};

use crate::support::{Answer, Asked, Rack, Reply, Scripted, Setup, Site, client_tool, user};

fn call(name: &str) -> Answer {
    Answer::new().call("c", name, &json!({"a": 12, "b": 18}))
}

/// Asks with a `tool_choice` and a tool of the client; the model calls `gcd` and then answers. Where the client's tool has to be called, it
/// calls that when it is asked once more.
async fn with_choice(choice: Value) -> Vec<Asked> {
    let weather = Answer::new().call("w", "weather", &json!({"city": "Oslo"}));
    let rack = Setup::new().start([call("math_gcd").into(), Answer::text("6").into(), weather.into()]).await;
    let fields = json!({"tools": [client_tool("weather")], "tool_choice": choice});
    let reported = rack.ask_with(true, fields).await;
    let asked = rack.upstream.asked();
    match asked.len() {
        2 => assert_eq!((reported.content.as_str(), reported.calls.len()), ("6", 0)),
        _ => assert_eq!((reported.content.as_str(), reported.calls.len()), ("", 1)),
    }
    asked
}

#[tokio::test]
async fn n1_tool_choice_holds_until_a_tool_of_the_client_is_called() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    let all = ["add", "math_gcd", "weather"];
    let required = json!("required");
    for (choice, sent, then, offered) in [
        (json!("auto"), Value::Null, Value::Null, [&all[..], &all]),
        (required.clone(), required.clone(), required.clone(), [&all, &all]),
        // One tool and a call required is a form that every server knows. Of the server's own asked for again there would be no end.
        (named("math.gcd"), required.clone(), Value::Null, [&["math_gcd"], &all]),
        (named("math_gcd"), required.clone(), Value::Null, [&["math_gcd"], &all]),
    ] {
        let asked = with_choice(choice.clone()).await;
        let choices = [&asked[0].body["tool_choice"], &asked[1].body["tool_choice"]];
        assert_eq!(choices, [&sent, &then], "{choice}");
        assert_eq!([asked[0].tools(), asked[1].tools()], offered.map(<[&str]>::to_vec), "{choice}");
    }
    // The client's own ends the turn, and no other tool's call stands for it.
    let weather = Answer::new().call("w", "weather", &json!({"city": "Oslo"}));
    let rack = Setup::new().start([call("math_gcd").into(), weather.into()]).await;
    let fields = json!({"tools": [client_tool("weather")], "tool_choice": named("weather")});
    let reported = rack.ask_with(true, fields).await;
    assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
    let asked = rack.upstream.asked();
    assert_eq!((&asked[0].body["tool_choice"], asked[0].tools()), (&required, vec!["weather"]));
    assert!(rack.ran().is_empty() && asked[1].body["response_format"].is_object());
    // A client without tools gets an answer.
    let rack = Setup::new().start([call("math_gcd").into(), Answer::text("6").into()]).await;
    rack.ask_with(true, json!({"tool_choice": "required"})).await.expect("6");
    assert_eq!(rack.upstream.asked()[1].body.get("tool_choice"), None);
}

#[tokio::test]
async fn n1_the_last_round_has_the_clients_tools_alone() {
    let gcd = |a| Answer::new().call("c", "math_gcd", &json!({"a": a, "b": 18}));
    let report = Answer::new().call("r", "weather", &json!({"city": "Oslo"}));
    let rack = Setup::new()
        .chat(|chat| chat.limits.max_rounds = 3)
        .start([gcd(1).into(), gcd(2).into(), report.into()])
        .await;
    let fields = json!({"tools": [client_tool("weather")], "tool_choice": "required"});
    let reported = rack.ask_with(true, fields).await;
    assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
    let asked = rack.upstream.asked();
    assert_eq!(asked[1].tools(), ["add", "math_gcd", "weather"]);
    assert_eq!(asked[2].tools(), ["weather"]);
}

#[tokio::test]
async fn n12_the_answer_gets_its_form_when_all_calls_are_done() {
    let schema = json!({"type": "object", "properties": {"gcd": {"type": "integer"}}, "required": ["gcd"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "gcd", "schema": schema}});
    for stream in [true, false] {
        let answers = [call("math_gcd").into(), Reply::text("It is 6."), Reply::text("{\"gcd\": 6}")];
        let rack = Setup::new().start(answers).await;
        rack.ask_with(stream, json!({"response_format": format})).await.expect("{\"gcd\": 6}");
        let asked = rack.upstream.asked();
        for free in &asked[..2] {
            assert_eq!((free.body.get("response_format"), free.tools().len()), (None, 2));
        }
        assert_eq!((&asked[2].body["response_format"], asked[2].body.get("tools")), (&format, None));
        // What has the form already is not asked for again.
        let rack = Setup::new().start([Reply::text("{\"a\": 1}")]).await;
        let object = json!({"response_format": {"type": "json_object"}});
        rack.ask_with(stream, object).await.expect("{\"a\": 1}");
    }
    let rack = Setup::bare().start([Reply::text("{}")]).await;
    rack.ask_with(true, json!({"response_format": format})).await.expect("{}");
    assert_eq!(rack.upstream.asked()[0].body["response_format"], format, "without tools at once");
}

/// A server of a kind, which keeps to forms where it takes them.
async fn rack_of(kind: Option<&str>, replies: impl IntoIterator<Item = Reply>) -> Rack {
    let site = kind.map_or_else(Site::default, |kind| Site::of_kind(kind, &["m"]));
    let upstream = Scripted::start_as(site, replies).await;
    let settings = UpstreamSettings::new(upstream.base(), Duration::from_secs(20));
    Setup::new().start_with(upstream, Upstream::server(settings).unwrap()).await
}

fn form() -> Value {
    let schema = json!({"type": "object", "properties": {"gcd": {"type": "integer"}}, "required": ["gcd"]});
    json!({"response_format": {"type": "json_schema", "json_schema": {"name": "gcd", "schema": schema}}})
}

#[tokio::test]
async fn b15_an_answer_without_its_form_is_asked_for_again_and_never_shown() {
    for stream in [true, false] {
        let answers = ["It is 6.", "The gcd is 6.", "{\"gcd\": \"6\"}", "```json\n{\"gcd\": 6}\n```"];
        let rack = rack_of(None, answers.map(Reply::text)).await;
        rack.ask_with(stream, form()).await.expect("{\"gcd\": 6}");
        let asked = rack.upstream.asked();
        assert!(asked[1].body["response_format"].is_object());
        for again in &asked[2..] {
            assert!(again.body.get("response_format").is_none());
            let first = again.messages()[0]["content"].as_str().unwrap();
            assert!(first.contains("JSON schema") && first.contains("\"gcd\""), "{first}");
        }
        let last = asked[3].messages().last().unwrap();
        assert!(last["content"].as_str().unwrap().contains("is not of type"), "{last}");

        let never = ["It is 6."; 4].map(Reply::text);
        let rack = rack_of(None, never).await;
        let reported = rack.ask_with(stream, form()).await;
        let error = reported.error.as_ref().unwrap()["message"].as_str().unwrap();
        assert!(error.contains("3 answers had not") && error.contains("It is 6."), "{error}");
        assert_eq!((reported.content.as_str(), rack.upstream.asked().len()), ("", 4));
    }
}

#[tokio::test]
async fn b15_a_form_that_the_server_refuses_is_described_in_the_prompt() {
    let refusal = || Reply::error(400, "Unable to generate parser: JSON schema conversion failed");
    let replies = [Reply::text("It is 6."), refusal(), Reply::text("Six."), Reply::text("{\"gcd\": 6}")];
    let rack = rack_of(Some("llama.cpp"), replies).await;
    rack.ask_with(true, form()).await.expect("{\"gcd\": 6}");
    assert!(rack.upstream.asked()[2].body.get("response_format").is_none());
    // A schema that is none is the client's to mend.
    let rack = rack_of(Some("llama.cpp"), [Reply::text("It is 6."), refusal(), Reply::text("Six.")]).await;
    let format = json!({"type": "json_schema", "json_schema": {"name": "gcd", "schema": {"type": "gcd"}}});
    let reported = rack.ask_with(false, json!({"response_format": format})).await;
    assert_eq!(reported.status, 400, "{:?}", reported.error);
    assert!(reported.error.unwrap()["message"].as_str().unwrap().contains("conversion failed"));
}

#[tokio::test]
async fn n12_beside_a_grammar_no_tools_are_added() {
    let rack = Setup::new().start([Reply::text("yes")]).await;
    rack.ask_with(true, json!({"grammar": "root ::= \"yes\""})).await.expect("yes");
    assert_eq!(rack.upstream.asked()[0].body.get("tools"), None);
}

#[tokio::test]
async fn n12_a_schema_as_llama_cpp_takes_it_is_a_form() {
    let schema = json!({"type": "object", "properties": {"gcd": {"type": "integer"}}});
    let rack = Setup::new().start([Reply::text("It is 6."), Reply::text("{\"gcd\": 6}")]).await;
    rack.ask_with(true, json!({"json_schema": schema})).await.expect("{\"gcd\": 6}");
    let asked = rack.upstream.asked();
    assert_eq!((asked[0].tools().len(), asked[0].body.get("response_format")), (2, None));
    assert_eq!(asked[1].body["response_format"]["json_schema"]["schema"], schema);
}

#[tokio::test]
async fn n14_a_model_by_its_plain_name_gets_no_tools() {
    let rack = Setup::new().start([Reply::text("A title")]).await;
    rack.chat(json!({"model": "m:plain", "messages": [user("Title?")]})).await.expect("A title");
    let asked = &rack.upstream.asked()[0];
    assert_eq!((&asked.body["model"], asked.body.get("tools")), (&json!("m"), None));
}

#[tokio::test]
async fn n7_without_tools_of_the_client_only_calls_of_offered_tools_are_calls() {
    let own = "<tool_call>\n{\"name\": \"browse\", \"arguments\": {}}\n</tool_call>";
    for stream in [true, false] {
        let rack = Setup::new().start([Reply::text(own)]).await;
        let body = json!({"model": "m", "messages": [user("Go.")], "stream": stream});
        rack.chat(body).await.expect(own);
        assert!(rack.ran().is_empty());
        let rack = Setup::new().start([Reply::text(own), Reply::text("No.")]).await;
        rack.ask_with(stream, json!({"tools": [client_tool("weather")]})).await.expect("No.");
    }
}

#[tokio::test]
async fn b2_tool_choice_none_and_allowed_tools_narrow_what_is_offered() {
    let rack = Setup::new().start([call("add").into(), Answer::text("No.").into()]).await;
    let fields = json!({"tools": [client_tool("weather")], "tool_choice": "none"});
    rack.ask_with(true, fields).await.expect("No.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].body.get("tools"), None);
    assert!(rack.ran().is_empty(), "what is not offered is not run");
    let reported = asked[1].messages().last().unwrap()["content"].as_str().unwrap();
    assert!(!reported.contains("Did you mean"), "{reported}");

    let tools = json!([{"type": "function", "function": {"name": "math.gcd"}}, {"type": "function", "name": "weather"}]);
    let choice = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": tools}});
    let asked = with_choice(choice).await;
    assert_eq!(asked[0].tools(), ["math_gcd", "weather"]);
    assert_eq!(asked[0].body["tool_choice"], "required");
    assert_eq!(asked[1].body["tool_choice"], "required", "until the client's tool is called");
}

#[tokio::test]
async fn b2_a_tool_choice_that_is_not_there_is_refused() {
    let rack = Setup::new().start([]).await;
    let choice = json!({"type": "function", "function": {"name": "nothing"}});
    let reported = rack.ask_with(true, json!({"tool_choice": choice})).await;
    assert_eq!(reported.status, 400);
    assert!(reported.failure().contains("`nothing`"));
    assert_eq!(reported.error.unwrap()["param"], "tool_choice");
    assert!(rack.upstream.asked().is_empty());
}

#[tokio::test]
async fn b2_unknown_fields_pass_both_ways() {
    for stream in [true, false] {
        let answer =
            Answer::text("Hi.").extra(json!({"timings": {"predicted_ms": 3}, "system_fingerprint": "f"}));
        let rack = Setup::new().start([answer.into()]).await;
        let fields = json!({"temperature": 0.5, "grammar": "root ::= x", "chat_template_kwargs": {"a": [1]}, "stream_options": null});
        let reported = rack.ask_with(stream, fields).await;
        reported.expect("Hi.");
        let body = &rack.upstream.asked()[0].body;
        assert_eq!(body["temperature"], 0.5);
        assert_eq!(body["grammar"], "root ::= x");
        assert_eq!(body["chat_template_kwargs"], json!({"a": [1]}));
        assert_eq!(body["stream"], true, "g6: else the time of the whole answer would be one of silence");
        assert_eq!(body["stream_options"]["include_usage"], true);
        let timings: Vec<_> = reported.objects.iter().filter_map(|object| object.get("timings")).collect();
        assert_eq!(timings, [&json!({"predicted_ms": 3})]);
        assert!(reported.objects.iter().any(|object| object["system_fingerprint"] == "f"));
    }
}

#[tokio::test]
async fn b2_messages_pass_as_they_are() {
    let rack = Setup::new().start([Answer::text("Hi.").into()]).await;
    let messages = json!([
        {"role": "developer", "content": "Be brief.", "name": "d"},
        {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]},
        {"role": "assistant", "content": "A.", "reasoning_content": "r", "x": 1},
        {"role": "user", "content": "B."},
    ]);
    rack.chat(json!({"messages": messages})).await.expect("Hi.");
    let asked = rack.upstream.asked();
    // But for a role that few templates know.
    let mut sent = messages;
    sent[0]["role"] = "system".into();
    assert_eq!(asked[0].body["messages"], sent);
    assert_eq!(asked[0].body["model"], "scripted", "the first model that the server has");
}

#[tokio::test]
async fn b2_usage_is_summed_and_streamed_where_asked_for() {
    for stream in [true, false] {
        let rack = Setup::new()
            .start([call("add").usage(10, 2).into(), Answer::text("30").usage(20, 3).into()])
            .await;
        let fields = if stream { json!({"stream_options": {"include_usage": true}}) } else { json!({}) };
        let reported = rack.ask_with(stream, fields).await;
        reported.expect("30");
        let sum = json!({"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35});
        assert_eq!(reported.usage, Some(sum));
    }
    let rack = Setup::new().start([Answer::text("Hi.").usage(1, 1).into()]).await;
    let reported = rack.ask(true).await;
    assert_eq!(reported.usage, None);
    assert_eq!(rack.upstream.asked()[0].body["stream_options"], json!({"include_usage": true}));
}

#[tokio::test]
async fn b2_the_extension_only_narrows() {
    for (allowed, extension, offered) in [
        (None, json!({"allowed_tools": ["add"]}), vec!["add"]),
        (None, json!({"allowed_modules": ["math"]}), vec!["math_gcd"]),
        (None, json!({"allowed_modules": ["math"], "allowed_tools": ["add"]}), vec![]),
        (Some(["add", "nothing"]), json!({"allowed_tools": ["add", "math.gcd"]}), vec!["add"]),
        (Some(["add", "nothing"]), json!({"allowed_modules": ["math", "local"]}), vec!["add"]),
    ] {
        let setup = Setup::new().with(|setup| {
            if let Some(allowed) = allowed {
                setup.caller = setup.caller.clone().only_tools(allowed);
            }
        });
        let rack = setup.start([call("math_gcd").into(), Answer::text("x").into()]).await;
        rack.ask_with(true, json!({"toolrack": extension})).await.expect("x");
        let asked = rack.upstream.asked();
        assert_eq!(asked[0].tools(), offered, "{extension}");
        assert_eq!(asked[0].body.get("toolrack"), None);
        assert_eq!(!rack.ran().is_empty(), offered.contains(&"math_gcd"), "{extension}");
    }
}

#[tokio::test]
async fn b2_reasoning_comes_back_as_reasoning_only() {
    for stream in [true, false] {
        for answer in [
            Answer::new().delta(json!({"reasoning_content": "Hm, 2."})).say("It is 2."),
            Answer::new().delta(json!({"reasoning": "Hm, 2."})).say("It is 2."),
            Answer::text("<think>Hm, 2.</think>\n\nIt is 2."),
            Answer::text("<thi").say("nk>Hm,").say(" 2.</th").say("ink>It is 2."),
        ] {
            let rack = Setup::new().start([answer.into()]).await;
            let reported = rack.ask(stream).await;
            reported.expect("It is 2.");
            assert_eq!(reported.reasoning, "Hm, 2.");
        }
    }
}

#[tokio::test]
async fn b2_thinking_left_open_is_reasoning_and_a_call_ends_it() {
    for stream in [true, false] {
        let rack = Setup::new().start([Answer::text("<think>And then").finish("length").into()]).await;
        let reported = rack.ask(stream).await;
        assert_eq!((reported.content.as_str(), reported.reasoning.as_str()), ("", "And then"));
        assert_eq!(reported.finish.as_deref(), Some("length"));

        let call =
            "<think>I add.\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 1}}</tool_call>";
        let rack = Setup::new().start([Answer::text(call).into(), Answer::text("2").into()]).await;
        let reported = rack.ask(stream).await;
        reported.expect("2");
        assert_eq!((reported.reasoning.trim(), rack.ran().len()), ("I add.", 1));

        let setup = Setup::new().chat(|chat| chat.thinking = true);
        let rack = setup.start([Answer::text("Hm.</think>2").into()]).await;
        let reported = rack.ask(stream).await;
        reported.expect("2");
        assert_eq!(reported.reasoning, "Hm.");
    }
}

/// A model that thinks while it calls is given its thoughts back.
#[tokio::test]
async fn b2_native_reasoning_goes_with_the_calls() {
    let first = Answer::new().delta(json!({"reasoning_content": "I add."})).call(
        "c",
        "add",
        &json!({"a": 1, "b": 1}),
    );
    let rack = Setup::new().start([first.into(), Answer::text("2").into()]).await;
    rack.ask(true).await.expect("2");
    assert_eq!(rack.upstream.asked()[1].messages()[1]["reasoning_content"], "I add.");
}

#[tokio::test]
async fn b2_a_client_that_names_no_model_gets_the_configured_one() {
    let rack = Setup::new()
        .chat(|chat| chat.model = Some("mine".into()))
        .start([Answer::text("a").into(), Answer::text("b").into()])
        .await;
    let reported = rack.chat(json!({"messages": [user("Go.")]})).await;
    assert_eq!(reported.objects[0]["model"], "mine");
    rack.ask(true).await.expect("b");
    let models: Vec<_> = rack.upstream.asked().iter().map(|asked| asked.body["model"].clone()).collect();
    assert_eq!(models, ["mine", "m"]);
}
