//! What model servers and requests have in them that is easily mistaken for something else.

use llm_bridge::{
    turn::{Backend, ChatSettings, ToolStyle},
    upstream::Upstream,
};
use registry_core::{Caller, ErrorKind, Registry, TextTag};
use serde_json::{Value, json};
use toolrack_apis::TurnEvent;

use super::faults::{CALL, delta};
use crate::support::{Act, Answer, Reply, Setup, client_tool, event, question, text_event, user, within};

fn done() -> Act {
    Act::Send(b"data: [DONE]\n\n".to_vec())
}

fn setup() -> Setup {
    Setup::new().with_note(TextTag::new("NOTE"))
}

fn weather() -> Value {
    json!({"tools": [client_tool("weather")]})
}

#[tokio::test]
async fn b2_a_text_call_cut_off_at_the_token_limit_is_not_run() {
    for text in [
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}",
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3",
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}",
        "<function=weather>\n<parameter=city>\nOslo\n</parameter>",
        "One moment.\nNOTE: half a li",
    ] {
        for stream in [true, false] {
            let rack = setup().start([Answer::text(text).finish("length").into()]).await;
            let reported = rack.ask_with(stream, weather()).await;
            assert_eq!(
                (reported.finish.as_deref(), reported.error.as_ref()),
                (Some("length"), None),
                "{text}"
            );
            assert_eq!(reported.content.trim(), text, "{text}");
            assert!(rack.ran().is_empty() && reported.calls.is_empty(), "{text}");
            assert!(reported.details_of("call_started").is_empty(), "{text}");
            assert!(!reported.details_of("notice").is_empty(), "{text}");
        }
    }
}

#[tokio::test]
async fn b2_a_text_call_that_was_whole_at_the_token_limit_is_run() {
    let function =
        "<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>";
    let wrapped = format!("<tool_call>\n{function}\n</tool_call>");
    let bare = "{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}";
    for text in [CALL, function, &wrapped, bare] {
        for end in ["", "\n"] {
            let first = Answer::text(text).say(end).finish("length");
            let rack = Setup::new().start([first.into(), Answer::text("5").into()]).await;
            let reported = rack.ask(true).await;
            assert_eq!(rack.ran().len(), 1, "{text}{end}: {reported:?}");
        }
    }
}

#[tokio::test]
async fn b2_calls_before_the_one_that_was_cut_off_are_run() {
    let text = format!("{CALL}\n<tool_call>\n{{\"name\": \"add\", \"arguments\": {{\"a\": 9, \"b\": 9}}");
    let rack = setup().start([Answer::text(&text).finish("length").into(), Answer::text("5").into()]).await;
    let reported = rack.ask(true).await;
    assert_eq!(reported.finish.as_deref(), Some("stop"));
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
}

#[tokio::test]
async fn b2_a_reply_without_an_answer_is_a_failure() {
    for (body, words) in [
        (json!({"detail": "no such model"}), "no such model"),
        (json!({"object": "error", "message": "too long", "code": 400}), "too long"),
        (json!({"message": "moved"}), "moved"),
        (json!({}), "{}"),
        (json!([]), "[]"),
        (json!({"choices": []}), "choices"),
        (json!({"choices": null, "x": 1}), "\"x\":1"),
    ] {
        for stream in [true, false] {
            let rack = Setup::new().start([Reply::json(200, &body)]).await;
            let reported = rack.ask(stream).await;
            let status = body["code"].as_u64().map_or(502, |code| u16::try_from(code).unwrap());
            assert_eq!(reported.status, status, "{body}");
            assert!(reported.failure().contains(words), "{body}: {}", reported.failure());
        }
    }
    let failure = event(&json!({"object": "error", "message": "out of memory"}));
    let rack = Setup::new().start([Reply::stream([text_event("On"), failure])]).await;
    let reported = rack.ask(true).await;
    assert!(reported.failure().contains("out of memory"), "{reported:?}");
    assert!(reported.objects.iter().all(|chunk| chunk.get("message").is_none()));
}

#[tokio::test]
async fn b2_unknown_fields_pass_at_their_own_level() {
    let chunk = |delta: Value, choice: Value| {
        let mut chunk = super::faults::delta(&delta);
        chunk["service_tier"] = "flex".into();
        chunk["system_fingerprint"] = "f".into();
        chunk["choices"][0].as_object_mut().unwrap().extend(choice.as_object().unwrap().clone());
        event(&chunk)
    };
    let streamed = Reply::stream([
        chunk(json!({"role": "assistant", "content": "", "refusal": null}), json!({})),
        chunk(json!({"refusal": "I "}), json!({"logprobs": {"content": [1]}})),
        chunk(json!({"refusal": "won't."}), json!({"logprobs": {"content": [2]}})),
        chunk(json!({"content": "No.", "annotations": [{"type": "x"}]}), json!({})),
        chunk(json!({}), json!({"finish_reason": "stop", "stop_reason": 7})),
        done(),
    ]);
    let reported = Setup::new().start([streamed]).await.ask(true).await;
    reported.expect("No.");
    let all = |path: &str| -> Vec<Value> {
        reported
            .objects
            .iter()
            .filter_map(|chunk| chunk.pointer(path))
            .filter(|v| !v.is_null())
            .cloned()
            .collect()
    };
    let refusal: String = all("/choices/0/delta/refusal").iter().filter_map(Value::as_str).collect();
    assert_eq!(refusal, "I won't.");
    assert_eq!(all("/choices/0/delta/annotations"), [json!([{"type": "x"}])]);
    assert_eq!(all("/choices/0/stop_reason"), [json!(7)]);
    let logprobs: Vec<Value> =
        all("/choices/0/logprobs/content").iter().flat_map(|list| list.as_array().unwrap().clone()).collect();
    assert_eq!(logprobs, [1, 2]);
    assert!(!all("/service_tier").is_empty() && !all("/system_fingerprint").is_empty());
    assert!(all("/refusal").is_empty() && all("/index").is_empty());

    let whole = json!({
        "service_tier": "flex",
        "choices": [{"index": 0, "finish_reason": "stop", "stop_reason": 7, "message": {
            "role": "assistant", "content": "No.", "refusal": "I won't.", "audio": {"id": "a"},
            "function_call": null,
        }}],
    });
    let reported = Setup::new().start([Reply::json(200, &whole)]).await.ask(false).await;
    reported.expect("No.");
    let reply = &reported.objects[0];
    assert_eq!(reply["service_tier"], "flex");
    assert_eq!(reply["choices"][0]["stop_reason"], 7);
    assert_eq!(reply["choices"][0]["message"]["refusal"], "I won't.");
    assert_eq!(reply["choices"][0]["message"]["audio"], json!({"id": "a"}));
}

#[tokio::test]
async fn b2_other_choices_than_the_first_are_passed_over() {
    let other = |text: &str| json!({"index": 1, "delta": {"content": text}, "finish_reason": "length"});
    let first = |text: &str| json!({"index": 0, "delta": {"content": text}});
    let events = [
        event(&json!({"choices": [other("x"), first("A")]})),
        event(&json!({"choices": [other("y")]})),
        event(&json!({"choices": [{"index": 0, "delta": {"content": "ll."}, "finish_reason": "stop"}]})),
        done(),
    ];
    Setup::new().start([Reply::stream(events)]).await.ask(true).await.expect("All.");
    let whole = json!({"choices": [
        {"index": 1, "message": {"content": "x"}, "finish_reason": "length"},
        {"index": 0, "message": {"content": "All."}, "finish_reason": "stop"},
    ]});
    Setup::new().start([Reply::json(200, &whole)]).await.ask(false).await.expect("All.");
}

#[tokio::test]
async fn b2_one_call_at_a_time_where_that_is_asked_for() {
    let native = || {
        Answer::new().call("1", "add", &json!({"a": 2, "b": 3})).call("2", "add", &json!({"a": 4, "b": 4}))
    };
    for answer in [
        Answer::text(&format!("{CALL}\n{}", CALL.replace('2', "7"))),
        native(),
        Answer::text(CALL).call("1", "add", &json!({"a": 4, "b": 4})),
    ] {
        for stream in [true, false] {
            let rack = Setup::new().start([answer.clone().into(), Answer::text("5").into()]).await;
            let reported = rack.ask_with(stream, json!({"parallel_tool_calls": false})).await;
            reported.expect("5");
            assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
            assert_eq!(reported.details_of("notice").len(), 1);
            let asked = rack.upstream.asked();
            assert_eq!(asked[0].body["parallel_tool_calls"], false);
            assert_eq!(asked[1].messages()[1]["tool_calls"].as_array().unwrap().len(), 1);
        }
    }
    let rack = Setup::new().start([native().into(), Answer::text("5").into()]).await;
    rack.ask_with(true, json!({"parallel_tool_calls": true})).await.expect("5");
    assert_eq!(rack.ran().len(), 2);
}

#[tokio::test]
async fn b2_arguments_that_are_not_quite_json() {
    let half = "<tool_call>{\"name\": \"note\", \"arguments\": {\"text\": \"a\\ud83d\"}}</tool_call>";
    let rack = setup().start([Answer::text(half).into(), Answer::text("Done.").into()]).await;
    rack.ask(true).await.expect("Done.");
    assert_eq!(rack.ran(), [("note".to_owned(), json!({"text": "a\u{fffd}"}))]);

    let huge = "{\"a\": 1e999, \"b\": 1}";
    let text = format!("<tool_call>{{\"name\": \"add\", \"arguments\": {huge}}}</tool_call>");
    let rack = Setup::new().start([Answer::text(&text).into(), Answer::text("Sorry.").into()]).await;
    rack.ask(true).await.expect("Sorry.");
    assert!(rack.ran().is_empty());
    assert_eq!(rack.outcomes()[0].error, Some(ErrorKind::InvalidArguments));
    let asked = rack.upstream.asked();
    let call = &asked[1].messages()[1]["tool_calls"][0]["function"];
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({"INVALID_JSON": huge}), "the model sees what it wrote");
    let reported = asked[1].messages()[2]["content"].as_str().unwrap();
    assert!(reported.contains("not valid JSON") && reported.contains("out of range"), "{reported}");
}

#[tokio::test]
async fn b6_an_unknown_tool_is_unknown_whatever_its_arguments() {
    let call = json!({"index": 0, "id": "1", "function": {"name": "ad", "arguments": "{\"a\": "}});
    let calls = Answer::new().delta(json!({"tool_calls": [call]}));
    let rack = Setup::new().start([calls.into(), Answer::text("Sorry.").into()]).await;
    rack.ask(true).await.expect("Sorry.");
    let asked = rack.upstream.asked();
    let reported = asked[1].messages()[2]["content"].as_str().unwrap();
    assert!(reported.contains("no tool named `ad`") && reported.contains("`add`"), "{reported}");
}

#[tokio::test]
async fn b2_a_native_call_without_a_name_is_none() {
    let unnamed =
        [json!([null]), json!([{"index": 0, "id": "x", "function": {"name": null, "arguments": "{}"}}])];
    for calls in unnamed {
        let events = || [event(&delta(&json!({"content": "Hm.", "tool_calls": calls}))), done()];
        let rack = Setup::new().start([Reply::stream(events())]).await;
        let reported = rack.ask(true).await;
        reported.expect("Hm.");
        assert_eq!((rack.upstream.asked().len(), reported.details_of("notice").len()), (1, 1));
        assert!(reported.details_of("notice")[0].to_string().contains("`toolrack doctor`"), "{reported:?}");
        assert!(rack.audit().is_empty());
    }
}

#[tokio::test]
async fn b2_a_call_that_is_required_is_required_in_the_prompt_too() {
    let named = json!({"type": "function", "function": {"name": "add"}});
    for (choice, words) in [
        (json!("auto"), None),
        (json!("required"), Some("You must call one of these tools now.")),
        (named, Some("You must call `add` now.")),
    ] {
        let setup = Setup::new().chat(|chat| chat.tool_style = ToolStyle::Prompt);
        let rack = setup.start([Answer::text(CALL).into(), Answer::text("5").into()]).await;
        rack.ask_with(true, json!({"tool_choice": choice})).await.expect("5");
        let reported: Vec<String> = rack
            .upstream
            .asked()
            .iter()
            .map(|asked| asked.messages()[0]["content"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(reported[0].contains("You must call"), words.is_some(), "{}", reported[0]);
        assert!(reported[0].ends_with(words.unwrap_or_default()), "{}", reported[0]);
        assert!(!reported[1].contains("You must call"), "asked for again there would be no end");
    }
}

#[tokio::test]
async fn b2_lines_that_call_are_told_beside_a_system_message_of_the_client() {
    let parts = json!([{"type": "text", "text": "Be brief."}]);
    for content in [json!("Be brief."), parts] {
        let rack = setup().start([Answer::text("Hi.").into()]).await;
        let messages = json!([{"role": "system", "content": content}, user("Go.")]);
        rack.chat(json!({"model": "m", "messages": messages})).await.expect("Hi.");
        let asked = rack.upstream.asked();
        let reported = asked[0].messages()[0]["content"].as_str().unwrap();
        assert!(reported.contains("writing a line of its own") && reported.contains("NOTE"), "{reported}");
        assert!(asked[0].messages()[0].to_string().contains("Be brief."));
        assert_eq!(asked[0].messages().len(), 2);
    }
}

#[tokio::test]
async fn b2_a_turn_without_a_last_word_is_a_failure() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
    let mut turn = backend.start(question("Hello!"), Caller::default()).unwrap();
    turn.cancellation().cancel();
    let mut failures = 0;
    while let Some(event) = within(turn.next()).await {
        assert!(!matches!(event, TurnEvent::Finished { .. }));
        if let TurnEvent::Failed(error) = event {
            assert!(error.to_string().contains("ended without an answer"), "{error}");
            failures += 1;
        }
    }
    assert_eq!(failures, 1);
}

#[tokio::test]
async fn b2_the_extension_takes_both_names_and_refuses_unknown_ones() {
    for name in ["math.gcd", "math_gcd"] {
        let rack = Setup::new().start([Answer::text("x").into()]).await;
        rack.ask_with(true, json!({"toolrack": {"allowed_tools": [name]}})).await.expect("x");
        assert_eq!(rack.upstream.asked()[0].tools(), ["math_gcd"], "{name}");
    }
    for (extension, param, words) in [
        (
            json!({"allowed_tools": ["add", "math.gdc"]}),
            "toolrack.allowed_tools",
            ["`math.gdc`", "`math.gcd`"],
        ),
        (json!({"allowed_modules": ["mathe"]}), "toolrack.allowed_modules", ["`mathe`", "`math`"]),
    ] {
        let rack = Setup::new().start([]).await;
        let reported = rack.ask_with(true, json!({"toolrack": extension})).await;
        assert_eq!(reported.status, 400);
        assert!(words.iter().all(|word| reported.failure().contains(word)), "{}", reported.failure());
        assert_eq!(reported.error.as_ref().unwrap()["param"], param);
        assert!(rack.upstream.asked().is_empty());
    }
}
