//! What the model wrote and what tools gave back in earlier turns, put back where clients send only what they have seen: rows G8, A2
//! and B15.

use std::{path::Path, sync::Arc};

use registry_core::{
    SEARCH_TOOLS, ToolPolicy, ToolResult,
    store::{ConversationLimits, Conversations},
};
use serde_json::{Value, json};
use toolrack_stores::SqliteSettings;

use super::front::{FRONTS, Front, Said};
use crate::support::{
    Act, Answer, Asked, Rack, Reply, Scripted, Setup, client_tool, text_event, user, within,
};

/// Each request begins with the one before, to the byte.
#[track_caller]
fn assert_continued(asked: &[Asked], what: &str) {
    for (at, pair) in asked.windows(2).enumerate() {
        for field in ["messages", "tools"] {
            let [before, after] = [&pair[0], &pair[1]].map(|asked| asked.raw(field));
            let begin = before.strip_suffix(']').unwrap();
            assert!(after.starts_with(begin), "{what}: {field} after request {at}:\n{before}\n{after}");
        }
    }
}

/// What the model does in a turn: it thinks, calls the server's tool natively or as text, and answers.
fn turn(number: i64) -> Vec<Reply> {
    let arguments = json!({"a": number, "b": number});
    let thought = json!({"reasoning_content": format!("I have to add {number} twice.")});
    let first = match number % 3 {
        0 => return vec![Answer::text(&format!("Nothing to add in turn {number}.")).into()],
        1 => Answer::new().delta(thought).say("I add.\n").call(&format!("up-{number}"), "add", &arguments),
        _ => Answer::text(&format!(
            "<tool_call>\n{{\"name\": \"add\", \"arguments\": {{\"a\":  {number}, \"b\": {number}}}}}\n</tool_call>"
        )),
    };
    vec![first.into(), Answer::text(&format!("\n\nIn turn {number} it is {}.\n", 2 * number)).into()]
}

async fn in_file(file: &Path) -> Conversations {
    Conversations::new(
        Arc::new(SqliteSettings::new(file).open().await.unwrap()),
        ConversationLimits::default(),
    )
}

/// A conversation of ten turns, with a restart after every third, each turn over the front that is next.
async fn ten_turns(fronts: &[Front]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let mut upstream = Scripted::start((1..=10).flat_map(turn)).await;
    let mut said = Said::new();
    let (mut turns, mut fronts) = (1..=10, fronts.iter().cycle());
    for _ in 0..4 {
        let conversations = in_file(&file).await;
        let base = upstream.base();
        let setup = Setup::new().with(|setup| setup.conversations = Some(conversations));
        let mut rack = setup.start_before(upstream, &base).await;
        for number in turns.by_ref().take(3) {
            said.push(format!("Question {number}: add {number} and {number}."));
            let text = fronts.next().unwrap().ask(&rack, &said).await;
            assert!(text.contains(&format!("turn {number}")), "{text}");
            said.push(text);
        }
        rack.stop.cancel();
        rack.stopped().await;
        upstream = rack.upstream;
    }
    let asked = upstream.asked();
    assert_eq!(asked.len(), 17);
    assert_continued(&asked, "ten turns");
    let last = asked.last().unwrap().messages();
    let results: Vec<&Value> = last.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 7, "one of each turn with a call");
    assert_eq!(results[0]["content"], "sum=2");
    let first = &last[1];
    assert_eq!(first["reasoning_content"], "I have to add 1 twice.");
    assert_eq!(first["tool_calls"][0]["id"], "up-1");
}

#[tokio::test]
async fn g8_a_client_that_sends_texts_only_continues_each_prompt_after_restarts() {
    for front in FRONTS {
        ten_turns(&[front]).await;
    }
}

#[tokio::test]
async fn b15_a_conversation_goes_on_over_another_front() {
    ten_turns(&FRONTS).await;
}

/// A rack whose model calls `add` once and then says these.
async fn added(answers: &[&str]) -> Rack {
    let call = Answer::new().call("c", "add", &json!({"a": 2, "b": 3}));
    let texts = answers.iter().map(|text| Reply::text(text));
    Setup::new().start([call.into()].into_iter().chain(texts)).await
}

fn said(texts: &[&str]) -> Said {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn roles(asked: &Asked) -> Vec<&str> {
    asked.messages().iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn g8_an_edited_conversation_gets_no_transcript_and_a_branch_its_own() {
    let rack = added(&["Five.", "?", "?", "?", "?"]).await;
    Front::OpenAi.ask(&rack, &said(&["2 + 3?"])).await;
    for (texts, is_whole) in [
        (["2 + 3?", "Five.", "Sure?"], true),
        (["2 + 4?", "Five.", "Sure?"], false),
        (["2 + 3?", "Six.", "Sure?"], false),
        (["2 + 3?", "Five.", "Really?"], true),
    ] {
        Front::OpenAi.ask(&rack, &said(&texts)).await;
        let asked = rack.upstream.asked();
        assert_eq!(roles(asked.last().unwrap()).contains(&"tool"), is_whole, "{texts:?}");
    }
}

#[tokio::test]
async fn g8_of_two_turns_that_look_alike_the_last_one_counts() {
    let rack = added(&["Five."]).await;
    let question = said(&["2 + 3?"]);
    let next = said(&["2 + 3?", "Five.", "Sure?"]);
    Front::OpenAi.ask(&rack, &question).await;
    // Another call, and the same words.
    rack.upstream.push(Answer::new().call("d", "add", &json!({"a": 3, "b": 2})));
    rack.upstream.push(Answer::text("Five."));
    rack.upstream.push(Answer::text("Yes."));
    Front::OpenAi.ask(&rack, &question).await;
    Front::OpenAi.ask(&rack, &next).await;
    assert_eq!(rack.upstream.asked()[4].messages()[1]["tool_calls"][0]["id"], "d");
    // No call at all, and the same words.
    rack.upstream.push(Answer::text("Five."));
    rack.upstream.push(Answer::text("Yes."));
    Front::OpenAi.ask(&rack, &question).await;
    Front::OpenAi.ask(&rack, &next).await;
    assert_eq!(roles(&rack.upstream.asked()[6]), ["user", "assistant", "user"]);
}

#[tokio::test]
async fn a2_a_transcript_is_put_back_once_in_a_request() {
    let rack = added(&["Five.", "?"]).await;
    Front::OpenAi.ask(&rack, &said(&["2 + 3?"])).await;
    // The same answer, many times in one conversation: only where it was given.
    let mut long = said(&["2 + 3?", "Five."]);
    for _ in 0..200 {
        long.extend(said(&["2 + 3?", "Five."]));
    }
    long.push("Sure?".to_owned());
    Front::OpenAi.ask(&rack, &long).await;
    let asked = rack.upstream.asked();
    assert_eq!(asked[2].messages().len(), long.len() + 2);
}

#[tokio::test]
async fn g8_messages_of_results_may_be_shown_elsewhere() {
    let setup = || {
        Setup::bare().plain_tool("note", ToolPolicy::new(), |_| async {
            Ok(ToolResult::new("noted").with_message("I have noted it."))
        })
    };
    let call = Answer::new().call("c", "note", &json!({}));
    let rack = setup().start([call.into(), Reply::text("Done."), Reply::text("?"), Reply::text("?")]).await;
    let shown = Front::OpenAi.ask(&rack, &said(&["Note it."])).await;
    assert!(shown.contains("I have noted it.") && shown.ends_with("Done."), "{shown}");
    // The page shows the message with the call, and sends back what the model said.
    for (number, answer) in [shown.as_str(), "Done."].into_iter().enumerate() {
        Front::OpenAi.ask(&rack, &said(&["Note it.", answer, "Thanks."])).await;
        let asked = &rack.upstream.asked()[2 + number];
        assert_eq!(roles(asked), ["user", "assistant", "tool", "assistant", "user"], "{answer}");
    }
}

#[tokio::test]
async fn g8_a_turn_that_was_stopped_goes_on_from_what_it_has_found() {
    let call = |number: i64| Answer::new().call("c", "add", &json!({"a": number, "b": 1}));
    let setup = Setup::new().chat(|chat| chat.limits.max_calls = 2);
    let rack = setup.start([call(1).into(), call(2).into(), call(3).into(), Reply::text("Four.")]).await;
    let stopped = Front::OpenAi.ask(&rack, &said(&["Add."])).await;
    assert!(stopped.starts_with("[Stopped: "), "{stopped}");
    Front::OpenAi.ask(&rack, &said(&["Add.", &stopped, "Go on."])).await;
    let asked = rack.upstream.asked();
    assert_continued(&asked, "stopped");
    let last = asked[3].messages();
    assert_eq!(last.iter().filter(|message| message["role"] == "tool").count(), 3);
    assert_eq!(last[last.len() - 2]["content"], stopped);
}

#[tokio::test]
async fn b15_a_turn_of_both_kinds_of_tools_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let both = Answer::text("I look.").call("s", "add", &json!({"a": 2, "b": 3})).call(
        "c",
        "weather",
        &json!({"city": "Oslo"}),
    );
    let upstream = Scripted::start([both.into(), Reply::text("Rain, and 5."), Reply::text("Yes.")]).await;
    let start = async |upstream: Scripted| {
        let (conversations, base) = (in_file(&file).await, upstream.base());
        Setup::new()
            .with(|setup| setup.conversations = Some(conversations))
            .start_before(upstream, &base)
            .await
    };
    let stop = async |mut rack: Rack| {
        rack.stop.cancel();
        rack.stopped().await;
        rack.upstream
    };
    let rack = start(upstream).await;
    let tools = json!([client_tool("weather")]);
    let first = rack.chat(json!({"model": "scripted", "messages": [user("Go.")], "tools": tools})).await;
    let rack = start(stop(rack).await).await;
    let mut messages = vec![
        user("Go."),
        // Some clients leave out the text beside calls.
        json!({"role": "assistant", "content": null, "tool_calls": first.calls}),
        json!({"role": "tool", "tool_call_id": first.calls[0]["id"], "content": "rain"}),
    ];
    let body = |messages: &[Value]| json!({"model": "scripted", "messages": messages, "tools": tools});
    rack.chat(body(&messages)).await.expect("Rain, and 5.");
    let rack = start(stop(rack).await).await;
    messages.extend([json!({"role": "assistant", "content": "Rain, and 5."}), user("Sure?")]);
    rack.chat(body(&messages)).await.expect("Yes.");
    let asked = rack.upstream.asked();
    assert_continued(&asked, "both kinds");
    assert_eq!(roles(&asked[2]), ["user", "assistant", "tool", "tool", "assistant", "user"]);
    assert_eq!(asked[2].messages()[1]["content"], "I look.");
}

#[tokio::test]
async fn b15_what_a_conversation_has_found_is_offered_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("toolrack.db");
    let search = |query: &str| Answer::new().call("s", SEARCH_TOOLS, &json!({"query": query}));
    let upstream = Scripted::start([
        search("tides").into(),
        Reply::text("1"),
        search("weather").into(),
        Reply::text("2"),
        Reply::text("3"),
    ])
    .await;
    let (mut upstream, mut said) = (upstream, Said::new());
    for number in 1..=3 {
        let deferred = ToolPolicy { deferred: true, ..ToolPolicy::new() };
        let mut setup = Setup::new();
        for name in ["far.weather", "far.tides"] {
            setup = setup.plain_tool(name, deferred, |_| async { Ok(ToolResult::new("mild")) });
        }
        let (conversations, base) = (in_file(&file).await, upstream.base());
        let setup = setup.with(|setup| setup.conversations = Some(conversations));
        let mut rack = setup.start_before(upstream, &base).await;
        said.push(format!("Question {number}."));
        said.push(Front::OpenAi.ask(&rack, &said).await);
        rack.stop.cancel();
        rack.stopped().await;
        upstream = rack.upstream;
    }
    let asked = upstream.asked();
    let found = |found: &[&'static str]| [&["add", "math_gcd", "search_tools"], found].concat();
    let (tides, both) = (found(&["far_tides"]), found(&["far_tides", "far_weather"]));
    let tools: Vec<_> = asked.iter().map(Asked::tools).collect();
    assert_eq!(tools, [found(&[]), tides.clone(), tides, both.clone(), both]);
    assert_continued(&asked, "found");
}

#[tokio::test]
async fn b15_calls_without_ids_get_those_that_the_model_server_has_seen() {
    let both = Answer::new().call("s", "add", &json!({"a": 2, "b": 3})).call(
        "c",
        "weather",
        &json!({"city": "Oslo"}),
    );
    let rack = Setup::new().start([both.into(), Reply::text("Rain.")]).await;
    let tools = json!([client_tool("weather")]);
    let ask = async |messages: Value| -> Value {
        let body = json!({"model": "scripted", "stream": false, "messages": messages, "tools": tools});
        let reply = within(rack.client.post(rack.url("/api/chat")).json(&body).send()).await.unwrap();
        reply.json().await.unwrap()
    };
    ask(json!([user("Go.")])).await;
    let call = json!({"function": {"name": "weather", "arguments": {"city": "Oslo"}}});
    let called = json!({"role": "assistant", "content": "", "tool_calls": [call]});
    ask(json!([user("Go."), called, {"role": "tool", "tool_name": "weather", "content": "rain"}])).await;
    let asked = rack.upstream.asked();
    let messages = asked[1].messages();
    assert_eq!(roles(&asked[1]), ["user", "assistant", "tool", "tool"]);
    let ids: Vec<&Value> =
        messages[1]["tool_calls"].as_array().unwrap().iter().map(|call| &call["id"]).collect();
    assert_eq!(ids, [&messages[2]["tool_call_id"], &messages[3]["tool_call_id"]]);
}

#[tokio::test]
async fn b15_a_call_that_the_client_has_changed_is_the_one_that_the_model_sees() {
    let both = Answer::text("I look.").call("s", "add", &json!({"a": 2, "b": 3})).call(
        "c",
        "weather",
        &json!({"city": "Oslo"}),
    );
    let rack = Setup::new().start([both.into(), Reply::text("Rain."), Reply::text("Yes.")]).await;
    let tools = json!([client_tool("weather")]);
    let body = |messages: Value| json!({"model": "scripted", "messages": messages, "tools": tools});
    let first = rack.chat(body(json!([user("Go.")]))).await;
    // A person has corrected what the tool is called with.
    let mut calls = first.calls.clone();
    calls[0]["function"]["arguments"] = json!({"city": "Bergen"}).to_string().into();
    let result = json!({"role": "tool", "tool_call_id": calls[0]["id"], "content": "rain"});
    let called = json!({"role": "assistant", "content": "I look.", "tool_calls": calls});
    rack.chat(body(json!([user("Go."), called, result]))).await.expect("Rain.");
    let asked = rack.upstream.asked();
    assert_eq!(roles(&asked[1]), ["user", "assistant", "tool", "tool"]);
    let calls = &asked[1].messages()[1]["tool_calls"];
    let arguments = [&calls[0], &calls[1]].map(|call| call["function"]["arguments"].as_str().unwrap());
    assert_eq!(arguments, [r#"{"a":2,"b":3}"#, r#"{"city":"Bergen"}"#]);
}

#[tokio::test]
async fn g8_an_answer_that_the_person_has_stopped_goes_on_from_what_its_tools_gave() {
    let call = Answer::text("I add.").call("c", "add", &json!({"a": 2, "b": 3}));
    let long = Reply::stream([text_event("It is five, as "), text_event("two and"), Act::Stall]);
    let rack = Setup::new().start([call.into(), long, Reply::text("Five."), Reply::text("?")]).await;
    let mut reading = rack.open_with(json!({"model": "scripted"})).await;
    reading.read_to("two and").await;
    drop(reading);
    rack.upstream.client_gone().await;
    // The client has shown it all, or all but the last piece.
    for shown in ["I add.\n\nIt is five, as two and", "I add.\n\nIt is five, as"] {
        let told = said(&["Go.", shown, "Shorter."]);
        Front::OpenAi.ask(&rack, &told).await;
        let asked = rack.upstream.asked().pop().unwrap();
        assert_eq!(roles(&asked), ["user", "assistant", "tool", "assistant", "user"], "{shown}");
        assert_eq!(asked.messages()[2]["content"], "sum=5");
    }
}
