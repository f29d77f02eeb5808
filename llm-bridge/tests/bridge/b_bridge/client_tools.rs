//! The client's own tools beside the server's.

use serde_json::{Value, json};

use crate::support::{Answer, Reply, Setup, client_tool, user};

fn weather() -> Value {
    json!({"tools": [client_tool("weather")]})
}

const TEXT_CALL: &str =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>";

#[tokio::test]
async fn b2_a_client_call_comes_back_native_however_it_was_written() {
    let native = || Answer::new().call("up1", "weather", &json!({"city": "Oslo"}));
    for (answer, text) in [
        (native(), ""),
        (Answer::text("I look.").call("up1", "weather", &json!({"city": "Oslo"})), "I look."),
        (Answer::text(TEXT_CALL), ""),
        (Answer::text("I look.\n").say(TEXT_CALL), "I look."),
        (Answer::text("{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}"), ""),
        (Answer::text("<function=weather><parameter=city>Oslo</parameter></function>"), ""),
    ] {
        for stream in [true, false] {
            let rack = Setup::new().start([answer.clone().into()]).await;
            let reported = rack.ask_with(stream, weather()).await;
            assert_eq!(reported.finish.as_deref(), Some("tool_calls"));
            assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
            assert_eq!(reported.content.trim(), text);
            assert!(stream || reported.content_is_null == text.is_empty(), "{:?}", reported.objects);
            assert!(rack.ran().is_empty() && reported.details.is_empty());
            assert!(rack.upstream.asked()[0].tools().contains(&"weather"));
        }
    }
}

#[tokio::test]
async fn b2_a_turn_with_calls_for_both_goes_on_with_the_whole_history() {
    for stream in [true, false] {
        let before = Answer::text("First.").call("s0", "add", &json!({"a": 1, "b": 1}));
        let both = Answer::new()
            .call("s1", "add", &json!({"a": 2, "b": 3}))
            .call("c1", "weather", &json!({"city": "Oslo"}))
            .call("c2", "weather", &json!({"city": "Rome"}));
        let rack = Setup::new().start([before.into(), both.into(), Answer::text("Rain.").into()]).await;
        let reported = rack.ask_with(stream, weather()).await;
        assert_eq!(reported.finish.as_deref(), Some("tool_calls"));
        let names: Vec<_> =
            reported.named_calls().into_iter().map(|(_, arguments)| arguments["city"].clone()).collect();
        assert_eq!(names, ["Oslo", "Rome"], "the client gets only its own");
        assert_eq!(rack.ran().len(), 2, "the server's have run");

        let mut body = json!({"model": "m", "messages": [
            user("Go."),
            {"role": "assistant", "content": reported.content, "tool_calls": reported.calls},
            {"role": "tool", "tool_call_id": reported.calls[0]["id"], "content": "rain"},
            {"role": "tool", "tool_call_id": reported.calls[1]["id"], "content": "sun"},
        ], "stream": stream});
        body["tools"] = weather()["tools"].clone();
        rack.chat(body).await.expect("Rain.");
        let asked = rack.upstream.asked();
        let messages = asked[2].messages();
        let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "tool", "tool"]);
        assert_eq!(messages[2]["content"], "sum=2");
        let calls = messages[3]["tool_calls"].as_array().unwrap();
        let mut called: Vec<_> = calls.iter().map(|call| call["id"].clone()).collect();
        let mut answered: Vec<_> =
            messages[4..].iter().map(|message| message["tool_call_id"].clone()).collect();
        called.sort_by_key(Value::to_string);
        answered.sort_by_key(Value::to_string);
        assert_eq!((called.len(), &called), (3, &answered));
        assert_eq!(rack.ran().len(), 2, "nothing is run again");
    }
}

#[tokio::test]
async fn b2_a_name_of_both_is_the_clients_and_the_servers_gets_another() {
    let calls =
        Answer::new().call("1", "add_2", &json!({"a": 2, "b": 3})).call("2", "add", &json!({"city": "Oslo"}));
    let rack = Setup::new().start([calls.into()]).await;
    let reported = rack.ask_with(true, json!({"tools": [client_tool("add")]})).await;
    let asked = rack.upstream.asked();
    let mut tools = asked[0].tools();
    tools.sort_unstable();
    assert_eq!(tools, ["add", "add_2", "math_gcd"]);
    assert_eq!(reported.named_calls(), [("add".to_owned(), json!({"city": "Oslo"}))]);
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
}

#[tokio::test]
async fn b2_a_dotted_name_of_both_is_the_clients() {
    let call = "<tool_call>{\"name\": \"math.gcd\", \"arguments\": {\"city\": \"Oslo\"}}</tool_call>";
    let rack = Setup::new().start([Answer::text(call).into()]).await;
    let reported = rack.ask_with(true, json!({"tools": [client_tool("math.gcd")]})).await;
    assert_eq!(reported.named_calls(), [("math.gcd".to_owned(), json!({"city": "Oslo"}))]);
    assert!(rack.upstream.asked()[0].tools().contains(&"math_gcd"));
    assert!(rack.ran().is_empty());
}

#[tokio::test]
async fn b2_broken_arguments_of_a_client_call_are_the_clients_to_see() {
    let delta = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "weather", "arguments": "{\"city\": "}}]});
    let rack = Setup::new().start([Answer::new().delta(delta).finish("tool_calls").into()]).await;
    let reported = rack.ask_with(false, weather()).await;
    assert_eq!(reported.calls[0]["function"]["arguments"], "{\"city\": ");
}

/// Some servers number the calls of every answer from the start. What is remembered of one conversation must not get into
/// another.
#[tokio::test]
async fn b2_call_ids_that_repeat_do_not_mix_conversations() {
    let both = |a: i64| {
        Answer::new().call("call_0", "weather", &json!({"city": "Oslo"})).call(
            "call_1",
            "add",
            &json!({"a": a, "b": 1}),
        )
    };
    let rack = Setup::new().start([both(10).into(), Answer::text("?").into()]).await;
    let reported = rack.ask_with(true, weather()).await;
    assert_eq!(reported.calls.len(), 1);
    // Another conversation, from before or from elsewhere, with the ids that such a server gives.
    let messages = json!([
        user("Mine."),
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "call_0", "content": "fog"},
    ]);
    rack.chat(json!({"model": "m", "messages": messages})).await.expect("?");
    assert_eq!(rack.upstream.asked()[1].body["messages"], messages);
}

#[tokio::test]
async fn b2_an_id_that_is_in_the_conversation_already_is_not_given_again() {
    let call = || Reply::from(Answer::new().call("call_0", "add", &json!({"a": 1, "b": 1})));
    let other = Answer::new().call("call_0", "add", &json!({"a": 2, "b": 2}));
    let rack = Setup::new().start([call(), other.into(), Answer::text("4").into()]).await;
    let reported = rack.ask(true).await;
    reported.expect("4");
    let ids: Vec<_> = reported.details_of("call_finished").iter().map(|call| call["id"].clone()).collect();
    assert_ne!(ids[0], ids[1], "a page tells calls apart by their ids");
    let records = rack.outcomes();
    assert_ne!(records[0].call_id, records[1].call_id);
}
