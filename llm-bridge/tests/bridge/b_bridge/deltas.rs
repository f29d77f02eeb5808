//! Calls that are sent while the model writes them, to clients that ask for that.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use toolrack_dialects::dialect;

use super::faults::delta;
use crate::support::{Act, Answer, Reply, Reported, Setup, client_tool, event, text_event, user};

const DIALECTS: [&str; 6] = ["hermes", "qwen3_coder", "gemma4", "pythonic", "harmony", "mistral"];

/// Without a mark nothing is a call before all of it is one.
const UNMARKED: &str = "pythonic";

/// What a client sends that has the tool `weather` and wants deltas.
fn fields() -> Value {
    json!({"tools": [client_tool("weather")], "toolrack": {"deltas": true}})
}

fn written(name: &str, tool: &str, arguments: &Value) -> String {
    dialect(name).unwrap().call(tool, arguments.as_object().unwrap()).unwrap()
}

fn piece(index: u64, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
}

fn begin(index: u64, id: &str, name: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]})
}

fn stream(acts: impl IntoIterator<Item = Act>, finish: &str) -> Reply {
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    Reply::stream(acts.into_iter().chain([event(&last), Act::Send(b"data: [DONE]\n\n".to_vec())]))
}

/// The pieces of tool calls in the chunks of a stream, in order.
fn call_pieces(reported: &Reported) -> Vec<&Value> {
    let calls =
        reported.objects.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array());
    calls.flatten().collect()
}

/// Every announced call of the server's tools is begun, reported and settled once.
fn settled(reported: &Reported) {
    for begun in reported.details_of("call_begun") {
        let with_id =
            |kind: &str| reported.details_of(kind).iter().filter(|it| it["id"] == begun["id"]).count();
        assert_eq!(with_id("call_started") + with_id("call_aborted"), 1, "{:?}", reported.details);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_the_deltas_of_a_clients_call_add_up_wherever_it_is_cut() {
    for name in DIALECTS {
        let call = written(name, "weather", &json!({"city": "Oslo ☃"}));
        let text = format!("I look.\n{call}");
        let rack = Setup::new().start([]).await;
        let mut all = Vec::new();
        for cut in (1..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            rack.upstream.push(Answer::text(&text[..cut]).say(&text[cut..]));
            all.push((cut, rack.ask_with(true, fields()).await));
        }
        rack.upstream.push(text.chars().fold(Answer::new(), |answer, c| answer.say(&c.to_string())));
        all.push((0, rack.ask_with(true, fields()).await));
        for (cut, reported) in all {
            let case = format!("{name} cut at {cut}");
            assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo ☃"}))], "{case}");
            assert_eq!((reported.finish.as_deref(), reported.done), (Some("tool_calls"), true), "{case}");
            assert_eq!((reported.content.trim(), reported.details.len()), ("I look.", 0), "{case}");
            let pieces = call_pieces(&reported);
            assert_eq!(pieces[0]["function"], json!({"name": "weather", "arguments": ""}), "{case}");
            assert!(pieces.len() > 1, "{case}");
            assert!(cut > 0 || name == UNMARKED || pieces.len() > 3, "{case}: {pieces:?}");
        }
    }
}

#[tokio::test]
async fn b2_the_deltas_of_a_servers_call_are_events() {
    let arguments = json!({"a": 2, "b": 3});
    let answers = DIALECTS.map(|name| {
        let text = written(name, "add", &arguments);
        (name, text.chars().fold(Answer::new(), |answer, c| answer.say(&c.to_string())))
    });
    let native =
        Answer::new().delta(begin(0, "c1", "add")).delta(piece(0, "{\"a\": 2,")).delta(piece(0, "\"b\": 3}"));
    for (name, answer) in answers.into_iter().chain([("native", native)]) {
        let rack = Setup::new().start([answer.into(), Answer::text("5").into()]).await;
        let reported = rack.ask_with(true, json!({"toolrack": {"deltas": true}})).await;
        reported.expect("5");
        let (begun, started) = (reported.details_of("call_begun"), reported.details_of("call_started"));
        assert_eq!(
            *begun[0],
            json!({"type": "call_begun", "id": started[0]["id"], "name": "add", "dialect": name})
        );
        assert_eq!((begun.len(), started.len()), (1, 1), "{name}");
        assert_eq!(started[0]["arguments"], arguments, "{name}");
        let deltas = reported.details_of("call_delta");
        assert!(
            (deltas.len() > 1 || name == UNMARKED)
                && deltas.iter().all(|delta| delta["id"] == begun[0]["id"]),
            "{name}: {deltas:?}"
        );
        let whole: String = deltas.iter().map(|delta| delta["arguments"].as_str().unwrap()).collect();
        assert_eq!(serde_json::from_str::<Value>(&whole).unwrap(), arguments, "{name}");
        assert_eq!(reported.details_of("call_finished")[0]["id"], begun[0]["id"], "{name}");
        assert!(reported.calls.is_empty());
        settled(&reported);
    }
}

#[tokio::test]
async fn b2_a_call_is_announced_before_it_is_whole() {
    let call = |text: &str, rest: &str| (text_event(text), text_event(rest));
    for (first, rest) in [
        call("<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"ci", "ty\": \"Oslo\"}}\n</tool_call>"),
        call("<function=weather>\n<parameter=ci", "ty>\nOslo\n</parameter>\n</function>"),
        (event(&delta(&begin(0, "x", "weather"))), event(&delta(&piece(0, "{\"city\": \"Oslo\"}")))),
    ] {
        let go = Arc::new(Notify::new());
        let rack = Setup::new().start([stream([first, Act::Wait(Arc::clone(&go)), rest], "stop")]).await;
        let mut reading = rack.open_with(fields()).await;
        reading.read_to("\"weather\"").await;
        go.notify_one();
        let reported = reading.rest().await;
        assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
        assert_eq!(reported.finish.as_deref(), Some("tool_calls"));
    }
}

#[tokio::test]
async fn b2_native_deltas_are_passed_on_as_they_come() {
    let calls = Answer::text("Both.")
        .delta(begin(0, "c1", "weather"))
        .delta(piece(0, "{\"city\": "))
        .delta(begin(1, "c2", "weather"))
        .delta(piece(1, "{\"city\": \"Ro"))
        .delta(piece(0, "\"Oslo\"}"))
        .delta(piece(1, "me\"}"))
        .delta(begin(2, "c3", "weather"))
        .finish("tool_calls");
    let rack = Setup::new().start([calls.into()]).await;
    let reported = rack.ask_with(true, fields()).await;
    let cities: Vec<Value> =
        reported.named_calls().into_iter().map(|(_, arguments)| arguments["city"].clone()).collect();
    assert_eq!(cities, [json!("Oslo"), json!("Rome"), Value::Null]);
    let told_of: Vec<(u64, &str)> = call_pieces(&reported)
        .iter()
        .map(|piece| (piece["index"].as_u64().unwrap(), piece["function"]["arguments"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told_of,
        [
            (0, ""),
            (0, "{\"city\": "),
            (1, ""),
            (1, "{\"city\": \"Ro"),
            (0, "\"Oslo\"}"),
            (1, "me\"}"),
            (2, ""),
            (2, "{}")
        ]
    );
    assert_eq!((reported.finish.as_deref(), reported.content.as_str()), (Some("tool_calls"), "Both."));
}

#[tokio::test]
async fn b2_an_announced_call_that_is_none_is_taken_back() {
    let whole = written("hermes", "weather", &json!({"city": "Rome"}));
    for (text, finish, reason) in [
        (
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Os",
            "stop",
            "the text ended inside it",
        ),
        (
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": ]]]}</tool_call>",
            "stop",
            "it is not written",
        ),
        (
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}",
            "length",
            "at the token limit",
        ),
    ] {
        let (first, rest) = text.split_at(text.find("city").unwrap());
        let answer = Answer::text(first).say(rest).finish(finish);
        let rack = Setup::new().start([answer.into(), Answer::text("No.").into()]).await;
        let reported = rack.ask_with(true, fields()).await;
        assert_eq!(
            (reported.error.as_ref(), reported.finish.as_deref(), reported.done),
            (None, Some(finish), true),
            "{text}"
        );
        // It is text after all, and asked for once more unless it would be cut off again.
        let again = if finish == "length" { "" } else { "\n\nNo." };
        assert_eq!(reported.content, format!("{text}{again}"));
        let aborted = reported.details_of("call_aborted");
        let [aborted] = aborted.as_slice() else { panic!("{:?}", reported.details) };
        assert_eq!((&aborted["type"], &aborted["name"]), (&json!("call_aborted"), &json!("weather")));
        let source = aborted["source"].as_str().unwrap();
        assert!(text.starts_with(source) && source.starts_with(first), "{aborted}");
        assert_eq!(aborted["id"], reported.calls[0]["id"]);
        assert!(aborted["reason"].as_str().unwrap().contains(reason), "{aborted}");

        // Another call of the same answer stands.
        if finish == "stop" && text.ends_with('>') {
            let rack = Setup::new().start([Answer::text(first).say(rest).say("\n").say(&whole).into()]).await;
            let reported = rack.ask_with(true, fields()).await;
            assert_eq!((reported.finish.as_deref(), reported.calls.len()), (Some("tool_calls"), 2));
            assert_eq!(reported.details_of("call_aborted")[0]["id"], reported.calls[0]["id"]);
            assert_eq!(reported.calls[1]["function"]["arguments"], "{\"city\":\"Rome\"}");

            // What comes with the piece that shows it to be none was never sent.
            let rack = Setup::new().start([Answer::text(text).into(), Answer::text("No.").into()]).await;
            let reported = rack.ask_with(true, fields()).await;
            assert_eq!(
                (reported.content.clone(), reported.finish.as_deref()),
                (format!("{text}\n\nNo."), Some("stop"))
            );
            assert!(reported.calls.is_empty() && reported.details_of("call_aborted").is_empty());
            assert!(!reported.details_of("notice").is_empty());
        }
    }

    let native = Answer::new().delta(begin(0, "c", "weather")).delta(piece(0, "{\"city\"")).finish("length");
    let rack = Setup::new().start([native.into()]).await;
    let reported = rack.ask_with(true, fields()).await;
    assert_eq!(reported.finish.as_deref(), Some("length"));
    let aborted = reported.details_of("call_aborted")[0];
    assert_eq!((&aborted["id"], &aborted["source"]), (&reported.calls[0]["id"], &json!("")));

    let server = Answer::text("<tool_call>\n{\"name\": \"add\", \"arguments\": {").say("\"a\": 1");
    let rack = Setup::new().start([server.into(), Answer::text("No.").into()]).await;
    let reported = rack.ask_with(true, fields()).await;
    assert_eq!((reported.finish.as_deref(), reported.details_of("call_aborted").len()), (Some("stop"), 1));
    settled(&reported);
    assert!(rack.ran().is_empty());
}

#[tokio::test]
async fn b2_a_turn_with_announced_calls_for_both_goes_on_with_the_whole_history() {
    let both = || {
        Answer::new()
            .call("call_0", "weather", &json!({"city": "Oslo"}))
            .call("call_1", "add", &json!({"a": 2, "b": 3}))
            .say(&written("gemma4", "weather", &json!({"city": "Rome"})))
    };
    let rack = Setup::new().start([both().into(), Answer::text("Rain.").into()]).await;
    let reported = rack.ask_with(true, fields()).await;
    let mut cities: Vec<_> =
        reported.named_calls().iter().map(|(_, arguments)| arguments["city"].to_string()).collect();
    cities.sort();
    assert_eq!(
        (reported.finish.as_deref(), cities),
        (Some("tool_calls"), vec!["\"Oslo\"".to_owned(), "\"Rome\"".to_owned()])
    );
    assert_eq!((reported.details_of("call_begun").len(), reported.details_of("call_finished").len()), (1, 1));
    assert!(
        reported.calls.iter().all(|call| call["id"] != "call_0"),
        "an id that other conversations have too"
    );
    settled(&reported);
    let mut messages =
        vec![user("Go."), json!({"role": "assistant", "content": null, "tool_calls": reported.calls})];
    messages.extend(
        reported
            .calls
            .iter()
            .map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "rain"})),
    );
    rack.chat(json!({"model": "m", "messages": messages, "tools": fields()["tools"]})).await.expect("Rain.");
    let asked = rack.upstream.asked();
    let messages = asked[1].messages();
    assert_eq!(messages[1]["tool_calls"].as_array().unwrap().len(), 3);
    let answered = messages.iter().filter(|message| message["role"] == "tool");
    assert_eq!((answered.count(), rack.ran().len()), (3, 1));
}

#[tokio::test]
async fn b2_one_call_at_a_time_is_announced_as_one() {
    let weather = |city: &str| written("hermes", "weather", &json!({"city": city}));
    let native = Answer::new()
        .delta(begin(0, "a", "weather"))
        .delta(begin(1, "b", "weather"))
        .delta(piece(0, "{\"city\": \"Oslo\"}"))
        .delta(piece(1, "{\"city\": \"Rome\"}"));
    let text = Answer::text(&weather("Oslo")).say(&weather("Rome"));
    let list = Answer::text("<tool_call>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}},")
        .say("{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}]</tool_call>");
    let mixed = native.clone().say(&weather("Rome"));
    for answer in [native, text, list, mixed] {
        let rack = Setup::new().start([answer.into()]).await;
        let mut fields = fields();
        fields["parallel_tool_calls"] = false.into();
        let reported = rack.ask_with(true, fields).await;
        assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
        assert_eq!(reported.finish.as_deref(), Some("tool_calls"));
        assert!(!reported.details_of("notice").is_empty() && reported.details_of("call_aborted").is_empty());
    }
}

#[tokio::test]
async fn b2_a_turn_that_is_stopped_takes_announced_calls_back() {
    // By a limit of calls, after the answer.
    let both = Answer::new().call("1", "weather", &json!({"city": "Oslo"})).call(
        "2",
        "add",
        &json!({"a": 1, "b": 1}),
    );
    let rack = Setup::new().chat(|chat| chat.limits.max_calls = 0).start([both.into()]).await;
    let reported = rack.ask_with(true, fields()).await;
    assert_eq!(reported.finish.as_deref(), Some("length"));
    assert_eq!(reported.details_of("call_aborted")[0]["id"], reported.calls[0]["id"]);
    settled(&reported);

    let half = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Os";

    // By the model server.
    for first in [text_event(half), event(&delta(&begin(0, "x", "weather")))] {
        let rack = Setup::new().start([Reply::stream([first, Act::Cut])]).await;
        let reported = rack.ask_with(true, fields()).await;
        assert_eq!(reported.details_of("call_aborted")[0]["id"], reported.calls[0]["id"]);
        assert!(reported.error.is_some() && reported.finish.is_none());
    }
}

#[tokio::test]
async fn b2_what_the_server_began_to_read_and_could_not_is_taken_back() {
    let raw = written("hermes", "weather", &json!({"city": "Oslo"}));
    for (begun, raw, more) in [
        ("Let me see.", format!("Let me see.\n{raw}"), None),
        ("", "<tool_call>{\"name\": \"weat".to_owned(), Some(Answer::text(&raw))),
    ] {
        let said = (!begun.is_empty()).then(|| text_event(begun));
        let failing = Reply::stream(said.into_iter().chain([
            event(&delta(&begin(0, "x", "weather"))),
            event(&delta(&piece(0, "{\"city\":"))),
            event(&json!({"error": {"message": format!("Failed to parse input at pos 11: {raw}")}})),
        ]));
        let rack = Setup::new().start([failing].into_iter().chain(more.map(Reply::from))).await;
        let reported = rack.ask_with(true, fields()).await;
        assert_eq!(
            (reported.finish.as_deref(), reported.calls.len()),
            (Some("tool_calls"), 2),
            "{reported:?}"
        );
        let aborted = reported.details_of("call_aborted");
        assert_eq!((aborted.len(), &aborted[0]["id"]), (1, &reported.calls[0]["id"]));
        assert_eq!(reported.calls[1]["function"]["arguments"], "{\"city\":\"Oslo\"}");
    }
}

#[tokio::test]
async fn n3_without_deltas_a_native_call_of_the_client_streams_and_one_in_text_is_one_piece() {
    let native = Answer::new()
        .delta(begin(0, "c", "weather"))
        .delta(piece(0, "{\"city\": "))
        .delta(piece(0, "\"Oslo\"}"));
    let text = written("qwen3_coder", "weather", &json!({"city": "Oslo"}));
    let text = text.chars().fold(Answer::new(), |answer, c| answer.say(&c.to_string()));
    for (answer, pieces) in [(native, 3), (text, 1)] {
        for extension in [json!({}), json!({"deltas": false})] {
            let rack = Setup::new().start([answer.clone().into()]).await;
            let reported =
                rack.ask_with(true, json!({"tools": fields()["tools"], "toolrack": extension})).await;
            assert_eq!(
                (call_pieces(&reported).len(), reported.objects.len(), reported.details.len()),
                (pieces, pieces + 1, 0)
            );
            assert_eq!(reported.named_calls(), [("weather".to_owned(), json!({"city": "Oslo"}))]);
        }
    }
}

#[tokio::test]
async fn b2_deltas_without_a_stream_are_refused() {
    let rack = Setup::new().start([]).await;
    let reported = rack.ask_with(false, fields()).await;
    assert_eq!(reported.status, 400);
    assert!(reported.failure().contains("\"stream\": true"), "{}", reported.failure());
    assert_eq!(reported.error.unwrap()["param"], "toolrack.deltas");
    assert!(rack.upstream.asked().is_empty());
}
