//! Chats that the server keeps, with turns that go on without a client.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use registry_core::{
    Caller, Effect, Permission, ToolResult,
    store::{ChatKey, ChatLimits, ChatMessage},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::support::{Act, Answer, Rack, Reply, Setup, text_event, with_effect, within};

pub(crate) async fn send(
    rack: &Rack,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (StatusCode, Value) {
    let request = rack.client.request(method, rack.url(path));
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = within(request.send()).await.unwrap();
    let (status, text) = (response.status(), response.text().await.unwrap());
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

pub(crate) async fn get(rack: &Rack, path: &str) -> Value {
    let (status, body) = send(rack, Method::GET, path, None).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    body
}

pub(crate) async fn post(rack: &Rack, path: &str, body: Value) -> Value {
    let (status, answer) = send(rack, Method::POST, path, Some(body)).await;
    assert!(status.is_success(), "{status} {answer}");
    answer
}

/// The status and the type of an error.
async fn refused(rack: &Rack, method: Method, path: &str, body: Option<Value>) -> (u16, String) {
    let (status, body) = send(rack, method, path, body).await;
    (status.as_u16(), body["error"]["type"].as_str().unwrap_or_default().to_owned())
}

/// The address of a new chat, which has a name, so that the model is not asked for one.
pub(crate) async fn new_chat(rack: &Rack) -> String {
    let chat = post(rack, "/api/chats", json!({"title": "Sums", "settings": {"model": "m"}})).await;
    format!("/api/chats/{}", chat["id"].as_str().unwrap())
}

pub(crate) async fn turn(rack: &Rack, chat: &str, body: Value) -> Value {
    post(rack, &format!("{chat}/turn"), body).await
}

/// The chat once no turn of it runs any more.
pub(crate) async fn settled(rack: &Rack, chat: &str) -> Value {
    within(async {
        loop {
            let whole = get(rack, chat).await;
            if whole["turn"].is_null() {
                return whole;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await
}

/// A whole turn with a new message: the answer's message.
async fn ask(rack: &Rack, chat: &str, content: &str) -> Value {
    let begun = turn(rack, chat, json!({"content": content})).await;
    message(&settled(rack, chat).await, &begun["answer"]["id"])
}

pub(crate) fn message(whole: &Value, id: &Value) -> Value {
    whole["messages"].as_array().unwrap().iter().find(|message| message["id"] == *id).unwrap().clone()
}

/// The texts of a message's parts.
pub(crate) fn text(message: &Value) -> String {
    message["parts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == "text")
        .map(|part| part["text"].as_str().unwrap())
        .collect()
}

/// The events of a stream: id, name, data.
async fn events(rack: &Rack, path: &str) -> Vec<(u64, String, Value)> {
    let response = within(rack.client.get(rack.url(path)).send()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let text = within(response.text()).await.unwrap();
    let frames = text.split("\n\n").filter(|frame| frame.contains("data: "));
    let field = |frame: &str, name: &str| {
        frame.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let read = |frame: &str| {
        let data = serde_json::from_str(&field(frame, "data: ")).unwrap_or_default();
        (field(frame, "id: ").parse().unwrap_or(0), field(frame, "event: "), data)
    };
    frames.map(read).collect()
}

fn said(events: &[(u64, String, Value)]) -> String {
    let chunk = |(_, _, data): &(u64, String, Value)| {
        data["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
    };
    events.iter().map(chunk).collect()
}

fn sum() -> Answer {
    Answer::new().call("c", "add", &json!({"a": 2, "b": 3}))
}

/// A reply that waits in its middle.
fn waiting(before: &str, wait: &Arc<Notify>, behind: &str) -> Reply {
    let mut acts = vec![text_event(before), Act::Wait(Arc::clone(wait)), text_event(behind)];
    acts.push(Act::Send(
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
            .to_vec(),
    ));
    Reply::stream(acts)
}

#[tokio::test]
async fn b17_b7_a_turn_goes_on_without_its_client_and_the_model_remembers_what_its_tools_found() {
    let replies = [
        sum().usage(10, 5).into(),
        Answer::new().delta(json!({"reasoning_content": "Easy."})).say("It is 5.").usage(20, 7).into(),
        Reply::text("As I said, 5."),
    ];
    let rack = Setup::new().start(replies).await;
    let chat = new_chat(&rack).await;
    // Nobody reads the stream.
    let answer = ask(&rack, &chat, "2 + 3?").await;
    let kinds: Vec<&Value> = answer["parts"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["call", "reasoning", "text"], "{answer}");
    let call = &answer["parts"][0];
    assert_eq!(
        (&call["name"], &call["state"], &call["result"]),
        (&json!("add"), &json!("ok"), &json!("sum=5"))
    );
    assert_eq!(call["arguments"], json!({"a": 2, "b": 3}));
    assert!(call["duration_ms"].is_u64() && answer["parts"][1]["ms"].is_u64(), "{answer}");
    assert_eq!(
        (&answer["status"], &answer["finish_reason"], &answer["model"]),
        (&json!("done"), &json!("stop"), &json!("m"))
    );
    assert_eq!(answer["usage"], json!({"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}));

    ask(&rack, &chat, "Really?").await;
    let asked = rack.upstream.asked();
    let sent = asked.last().unwrap().messages();
    assert!(
        sent.iter().any(|message| message["role"] == "tool" && message["content"] == "sum=5"),
        "{sent:?}"
    );
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(rack.ran().len(), 1);
}

#[tokio::test]
async fn b17_messages_are_edited_and_answers_made_again_in_branches() {
    let replies = ["one", "two", "three", "four"].map(Reply::text);
    let rack = Setup::bare().start(replies).await;
    let chat = new_chat(&rack).await;
    let first = ask(&rack, &chat, "First").await;
    let begun = turn(&rack, &chat, json!({"regenerate": first["id"], "model": "other"})).await;
    let again = message(&settled(&rack, &chat).await, &begun["answer"]["id"]);
    assert_eq!((&again["parent"], text(&again).as_str()), (&first["parent"], "two"));
    assert_eq!(rack.upstream.asked().last().unwrap().body["model"], "other");

    // Edited: a message beside the first one.
    let edited = turn(&rack, &chat, json!({"parent": null, "content": "Edited"})).await;
    let whole = settled(&rack, &chat).await;
    assert_eq!(edited["message"]["parent"], Value::Null);
    assert_eq!((&whole["leaf"], whole["messages"].as_array().unwrap().len()), (&edited["answer"]["id"], 5));
    assert_eq!(rack.upstream.asked().last().unwrap().messages().len(), 1, "the other branch is not in it");

    // Back to the first branch, and on from there.
    let shown = post(&rack, &chat, json!({"leaf": first["parent"]})).await;
    assert_eq!(shown["leaf"], again["id"], "the newest branch below");
    post(&rack, &chat, json!({"leaf": first["id"]})).await;
    ask(&rack, &chat, "On").await;
    let asked = rack.upstream.asked();
    let texts: Vec<&Value> =
        asked.last().unwrap().messages().iter().map(|message| &message["content"]).collect();
    assert_eq!(texts, ["First", "one", "On"]);

    let (status, left) =
        send(&rack, Method::DELETE, &format!("{chat}/messages/{}", first["id"].as_str().unwrap()), None)
            .await;
    assert_eq!((status, &left["leaf"]), (StatusCode::OK, &again["id"]));
    assert_eq!(get(&rack, &chat).await["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn b17_a_turn_is_joined_and_resumed_from_any_place() {
    let wait = Arc::new(Notify::new());
    let rack = Setup::bare().start([waiting("Hel", &wait, "lo")]).await;
    let chat = new_chat(&rack).await;
    let begun = turn(&rack, &chat, json!({"content": "Hi"})).await;
    let so_far = within(async {
        loop {
            let whole = get(&rack, &chat).await;
            if text(&message(&whole, &begun["answer"]["id"])) == "Hel" {
                return whole;
            }
        }
    })
    .await;
    assert_eq!((&so_far["running"], &so_far["turn"]["here"]), (&json!(true), &json!(true)));
    assert_eq!(
        refused(&rack, Method::POST, &format!("{chat}/turn"), Some(json!({"content": "More"}))).await,
        (409, "turn_running".into())
    );
    let deleted = format!("{chat}/messages/{}", begun["answer"]["id"].as_str().unwrap());
    assert_eq!(refused(&rack, Method::DELETE, &deleted, None).await, (409, "turn_running".into()));

    let position = so_far["turn"]["position"].as_u64().unwrap();
    let (all, rest) = (format!("{chat}/turn"), format!("{chat}/turn?after={position}"));
    let (all, rest, ()) = tokio::join!(events(&rack, &all), events(&rack, &rest), async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        wait.notify_one();
    });
    assert_eq!((said(&all).as_str(), said(&rest).as_str()), ("Hello", "lo"));
    let ids: Vec<u64> = all.iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, (1..=u64::try_from(ids.len()).unwrap()).collect::<Vec<_>>());
    let (_, name, done) = all.last().unwrap();
    assert_eq!((name.as_str(), text(done).as_str(), &done["status"]), ("done", "Hello", &json!("done")));
    // A moment later it can still be read.
    let last = all[all.len() - 2].0;
    let late = events(&rack, &format!("{chat}/turn?after={last}")).await;
    assert_eq!((late.len(), late[0].1.as_str()), (1, "done"));
    let late = events(&rack, &format!("{chat}/turn?after=10000")).await;
    assert_eq!(late, all, "a position of another turn is none");
    let never = new_chat(&rack).await;
    assert_eq!(send(&rack, Method::GET, &format!("{never}/turn"), None).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn b17_b7_a_turn_ends_by_stop_and_goes_on_where_it_was_cut() {
    let wait = Arc::new(Notify::new());
    let replies = [
        sum().into(),
        waiting("Hel", &wait, "lo"),
        Answer::text("lo.").finish("length").into(),
        Reply::text(" Bye."),
    ];
    let rack = Setup::new().start(replies).await;
    let chat = new_chat(&rack).await;
    let begun = turn(&rack, &chat, json!({"content": "Hi"})).await;
    let id = begun["answer"]["id"].clone();
    within(async { while text(&message(&get(&rack, &chat).await, &id)) != "Hel" {} }).await;
    assert_eq!(post(&rack, &format!("{chat}/stop"), json!({})).await, json!({"stopped": true}));
    assert_eq!(post(&rack, &format!("{chat}/stop"), json!({})).await, json!({"stopped": false}));
    let stopped = message(&get(&rack, &chat).await, &id);
    assert_eq!((&stopped["status"], text(&stopped).as_str()), (&json!("stopped"), "Hel"));

    for expected in ["Hello.", "Hello. Bye."] {
        turn(&rack, &chat, json!({"continue": id})).await;
        let whole = settled(&rack, &chat).await;
        assert_eq!(
            (text(&message(&whole, &id)).as_str(), whole["messages"].as_array().unwrap().len()),
            (expected, 2)
        );
    }
    let sent = rack.upstream.asked();
    let sent = sent.last().unwrap().messages();
    assert!(
        sent.iter().any(|message| message["role"] == "tool" && message["content"] == "sum=5"),
        "{sent:?}"
    );
    let again = refused(&rack, Method::POST, &format!("{chat}/turn"), Some(json!({"continue": id}))).await;
    assert_eq!(again, (400, "invalid_request_error".into()), "it is whole");
}

#[tokio::test]
async fn b17_of_settings_that_are_changed_at_once_none_is_lost() {
    let rack = Setup::bare().start([]).await;
    let chat = new_chat(&rack).await;
    for round in 0..8 {
        let all = [
            json!({"temperature": 0.5}),
            json!({"top_p": 0.25}),
            json!({"max_tokens": round + 1}),
            json!({"system": format!("Be brief, {round}.")}),
        ];
        let changes = all.iter().map(|settings| post(&rack, &chat, json!({"settings": settings})));
        futures_util::future::join_all(changes).await;
        let settings = get(&rack, &chat).await["settings"].clone();
        for change in &all {
            for (name, value) in change.as_object().unwrap() {
                assert_eq!(&settings[name], value, "{settings}");
            }
        }
        post(&rack, &chat, json!({"settings": {"temperature": null, "top_p": null}})).await;
    }
}

#[tokio::test]
async fn b17_a_call_that_was_stopped_is_cancelled() {
    let begun = Arc::new(Notify::new());
    let running = Arc::clone(&begun);
    let setup = Setup::bare().plain_tool("wait", with_effect(Effect::Read), move |_| {
        let running = Arc::clone(&running);
        async move {
            running.notify_one();
            std::future::pending::<()>().await;
            Ok(ToolResult::new("never"))
        }
    });
    let rack = setup.start([Answer::new().call("c", "wait", &json!({})).into()]).await;
    let chat = new_chat(&rack).await;
    let id = turn(&rack, &chat, json!({"content": "Wait"})).await["answer"]["id"].clone();
    within(begun.notified()).await;
    post(&rack, &format!("{chat}/stop"), json!({})).await;
    let stopped = message(&settled(&rack, &chat).await, &id);
    assert_eq!(stopped["status"], "stopped");
    let call = stopped["parts"].as_array().unwrap().iter().find(|part| part["type"] == "call").unwrap();
    assert_eq!(call["state"], "cancelled", "{call}");
}

#[tokio::test]
async fn b17_a_chat_is_named_by_the_model_once() {
    let rack = Setup::bare().start(["Warm.", "\"Green tea\"", "Hot."].map(Reply::text)).await;
    let chat = post(&rack, "/api/chats", json!({})).await;
    let path = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    let wait_for = async |by: &str| {
        within(async {
            loop {
                let whole = get(&rack, &path).await;
                if whole["titled_by"] == by {
                    return whole["title"].clone();
                }
            }
        })
        .await
    };
    turn(&rack, &path, json!({"content": "How warm is green tea?"})).await;
    assert_eq!(wait_for("model").await, "Green tea");
    ask(&rack, &path, "And black?").await;
    post(&rack, &path, json!({"title": "  Tea  "})).await;
    assert_eq!(wait_for("user").await, "Tea");
    assert_eq!(rack.upstream.asked().len(), 3);
    // Where the model gives none, the first words stay.
    let rack = Setup::bare().start([Reply::text("Warm."), Reply::error(400, "no")]).await;
    let chat = post(&rack, "/api/chats", json!({})).await;
    let path = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    ask(&rack, &path, "How warm\n is green tea?").await;
    within(async {
        while rack.upstream.asked().len() < 2 {
            tokio::task::yield_now().await
        }
    })
    .await;
    let whole = get(&rack, &path).await;
    assert_eq!(
        (&whole["title"], &whole["titled_by"]),
        (&json!("How warm is green tea?"), &json!("question"))
    );
}

#[tokio::test]
async fn b17_chats_are_listed_found_pinned_exported_and_deleted() {
    let rack = Setup::bare().start(["75 Grad", "Nein"].map(Reply::text)).await;
    let (tea, other) = (new_chat(&rack).await, new_chat(&rack).await);
    ask(&rack, &tea, "Wie heiß ist GRÜNER Tee?").await;
    ask(&rack, &other, "Nichts?").await;
    let ids = async |query: &str| {
        let list = get(&rack, &format!("/api/chats{query}")).await;
        let id = |chat: &Value| format!("/api/chats/{}", chat["id"].as_str().unwrap());
        (list["chats"].as_array().unwrap().iter().map(id).collect::<Vec<_>>(), list)
    };
    assert_eq!(ids("").await.0, [other.clone(), tea.clone()]);
    post(&rack, &tea, json!({"pinned": true})).await;
    let (first, list) = ids("?limit=1").await;
    assert_eq!(first, std::slice::from_ref(&tea));
    let next = format!("?limit=1&after={}", list["next"].as_str().unwrap());
    let (second, list) = ids(&next).await;
    assert_eq!((second, &list["next"]), (vec![other.clone()], &Value::Null));
    let (found, list) = ids("?search=gr%C3%BCner+tee").await;
    assert_eq!(
        (found, &list["chats"][0]["found"]["text"]),
        (vec![tea.clone()], &json!("Wie heiß ist GRÜNER Tee?"))
    );
    assert_eq!(ids("?search=sums").await.0.len(), 2, "in the titles");
    assert!(ids("?search=unbekannt").await.0.is_empty());

    let markdown = send(&rack, Method::GET, &format!("{tea}/export"), None).await.1;
    let markdown = markdown.as_str().unwrap();
    assert!(markdown.starts_with("# Sums\n\n## User, ") && markdown.ends_with("\n75 Grad\n"), "{markdown}");
    let json = get(&rack, &format!("{tea}/export?format=json")).await;
    assert_eq!(json["messages"], get(&rack, &tea).await["messages"]);

    assert_eq!(send(&rack, Method::DELETE, &tea, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(refused(&rack, Method::GET, &tea, None).await, (404, "chat_not_found".into()));
    assert_eq!(refused(&rack, Method::DELETE, &tea, None).await, (404, "chat_not_found".into()));
    assert_eq!(ids("").await.0, [other]);
}

#[tokio::test]
async fn b17_settings_pictures_and_tools_of_a_chat_reach_the_model() {
    let rack = Setup::new().start(["A cat.", "Yes."].map(Reply::text)).await;
    let settings = json!({"model": "m", "system": "Be brief.", "temperature": 0.5, "top_p": 0.9, "max_tokens": 9, "tools": ["add"]});
    let chat = post(&rack, "/api/chats", json!({"title": "Cat", "settings": settings})).await;
    let path = format!("/api/chats/{}", chat["id"].as_str().unwrap());
    let bytes = b"\x89PNG\r\n\x1a\n and more";
    let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(bytes));
    let content =
        json!([{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": url}}]);
    let begun = turn(&rack, &path, json!({"content": content})).await;
    settled(&rack, &path).await;
    let picture = &begun["message"]["parts"][1];
    assert_eq!(
        (&picture["type"], &picture["size"], &picture["media_type"]),
        (&json!("image"), &json!(bytes.len()), &json!("image/png"))
    );
    let file =
        rack.client.get(rack.url(&format!("/{}", picture["path"].as_str().unwrap()))).send().await.unwrap();
    assert_eq!(file.headers()["content-type"], "image/png");
    assert!(file.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"));
    assert_eq!(&file.bytes().await.unwrap()[..], bytes);
    assert_eq!(
        refused(
            &rack,
            Method::GET,
            &format!("/{}", picture["path"].as_str().unwrap().replace("files/1", "files/0")),
            None
        )
        .await,
        (404, "file_not_found".into())
    );
    let asked = rack.upstream.asked();
    let body = &asked[0].body;
    assert_eq!(
        (&body["temperature"], &body["top_p"], &body["max_tokens"]),
        (&json!(0.5), &json!(0.9), &json!(9))
    );
    assert_eq!(asked[0].messages()[0]["content"], "Be brief.");
    assert_eq!(asked[0].messages()[1]["content"][1]["image_url"]["url"], url);
    assert_eq!(asked[0].tools(), ["add"]);

    let changed = post(&rack, &path, json!({"settings": {"tools": [], "temperature": null}})).await;
    assert_eq!(
        (&changed["settings"]["tools"], &changed["settings"]["temperature"], &changed["settings"]["top_p"]),
        (&json!([]), &Value::Null, &json!(0.9))
    );
    ask(&rack, &path, "Sure?").await;
    assert!(rack.upstream.asked()[1].tools().is_empty());
}

#[tokio::test]
async fn b17_bad_requests_say_what_to_send_and_leave_nothing_behind() {
    let rack = Setup::new().start([Reply::text("one")]).await;
    let chat = new_chat(&rack).await;
    let answer = ask(&rack, &chat, "First").await;
    let path = format!("{chat}/turn");
    let invalid = (400, "invalid_request_error".to_owned());
    let missing = (404, "message_not_found".to_owned());
    for (body, expected) in [
        (json!({}), &invalid),
        (json!({"content": "a", "regenerate": "b"}), &invalid),
        (json!({"content": ""}), &invalid),
        (json!({"content": [{"type": "nonsense"}], "more": 1}), &invalid),
        (json!({"content": {"a": 1}}), &invalid),
        (json!({"regenerate": answer["id"], "parent": null}), &invalid),
        (json!({"regenerate": answer["parent"]}), &invalid),
        (json!({"continue": answer["id"]}), &invalid),
        (json!({"answer": answer["id"]}), &invalid),
        (json!({"content": "a", "parent": "msg_0"}), &missing),
        (json!({"regenerate": "msg_0"}), &missing),
    ] {
        assert_eq!(&refused(&rack, Method::POST, &path, Some(body.clone())).await, expected, "{body}");
    }
    for body in [
        json!({"settings": {"thinking": "much"}}),
        json!({"settings": {"temperature": -1}}),
        json!({"settings": {"top_p": 2}}),
        json!({"settings": {"system": "x".repeat(70_000)}}),
        json!({"settings": {"tools": (0..1001).map(|tool| format!("t{tool}")).collect::<Vec<_>>()}}),
        json!({"settings": {"tools": vec!["\u{1}".repeat(256); 200]}}),
        json!({"settings": {"unknown": 1}}),
        json!({"title": " "}),
        json!({"title": "x".repeat(300)}),
    ] {
        assert_eq!(refused(&rack, Method::POST, &chat, Some(body.clone())).await, invalid, "{body}");
        assert_eq!(refused(&rack, Method::POST, "/api/chats", Some(body)).await, invalid);
    }
    assert_eq!(refused(&rack, Method::POST, &chat, Some(json!({"leaf": "msg_0"}))).await, missing);
    let long = format!("?search={}", "x".repeat(1001));
    for query in ["?limit=0", "?limit=101", "?after=x", "?search=a+b+c+d+e+f+g+h+i", &long, "?unknown=1"] {
        assert_eq!(
            refused(&rack, Method::GET, &format!("/api/chats{query}"), None).await,
            invalid,
            "{query}"
        );
    }
    let huge = json!({"content": "x".repeat(24 << 20)});
    assert_eq!(refused(&rack, Method::POST, &path, Some(huge)).await.0, 413);
    let whole = get(&rack, &chat).await;
    assert_eq!((whole["messages"].as_array().unwrap().len(), &whole["turn"]), (2, &Value::Null));
}

#[tokio::test]
async fn b17_a_turn_that_was_stopped_is_not_gone_on_with_by_another_chat() {
    let wait = Arc::new(Notify::new());
    let replies = [sum().into(), waiting("Hel", &wait, "lo"), sum().into(), Reply::text("It is 5.")];
    let rack = Setup::new().start(replies).await;
    let chat = new_chat(&rack).await;
    let begun = turn(&rack, &chat, json!({"content": "2 + 3?"})).await;
    let id = begun["answer"]["id"].clone();
    within(async { while text(&message(&get(&rack, &chat).await, &id)) != "Hel" {} }).await;
    post(&rack, &format!("{chat}/stop"), json!({})).await;
    settled(&rack, &chat).await;

    let answer = ask(&rack, &new_chat(&rack).await, "2 + 3?").await;
    let types: Vec<_> = answer["parts"].as_array().unwrap().iter().map(|part| part["type"].clone()).collect();
    assert_eq!(types, ["call", "text"], "what the model is told is shown: {answer}");
    let asked = rack.upstream.asked();
    assert_eq!(asked[2].messages().len(), 1, "{:?}", asked[2].messages());
}

#[tokio::test]
async fn b17_a_failed_turn_says_why_and_its_question_is_asked_again() {
    let rack = Setup::bare().start([Reply::error(400, "no such thing"), Reply::text("Yes.")]).await;
    let chat = new_chat(&rack).await;
    let failed = ask(&rack, &chat, "Hm?").await;
    assert_eq!(failed["status"], "failed");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no such thing"), "{failed}");
    ask(&rack, &chat, "Hello?").await;
    let asked = rack.upstream.asked();
    let sent = asked.last().unwrap().messages();
    assert_eq!(sent.len(), 1, "two messages of the user in a row are one: {sent:?}");
}

/// The model server says so of a picture; its text goes on to be answered.
#[tokio::test]
async fn b17_pictures_that_a_model_refuses_lock_no_chat() {
    let replies = ["Hello.", "There is none.", "No.", "A cat.", "Two."].map(Reply::text);
    let refusal =
        Reply::error(500, "image input is not supported - hint: you may need to provide the mmproj");
    let rack = Setup::bare().start([refusal].into_iter().chain(replies)).await;
    let chat = new_chat(&rack).await;
    let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(b"\x89PNG\r\n\x1a\n and more"));
    let picture = json!({"type": "image_url", "image_url": {"url": url}});
    let content = json!([{"type": "text", "text": "What is it?"}, picture]);
    let begun = turn(&rack, &chat, json!({"content": content})).await;
    let failed = message(&settled(&rack, &chat).await, &begun["answer"]["id"]);
    assert_eq!((&failed["status"], &failed["error"]["type"]), (&json!("failed"), &json!("pictures_refused")));
    assert!(
        failed["error"]["message"].as_str().unwrap().contains("image input is not supported"),
        "{failed}"
    );

    // The next message is answered, and what follows it.
    let asked = |at: usize| json!(rack.upstream.asked()[at].messages()).to_string();
    ask(&rack, &chat, "Hello?").await;
    for word in
        ["What is it?", "[picture, image/png, 17 bytes; not shown: this model gets no pictures]", "Hello?"]
    {
        assert!(asked(1).contains(word), "no {word} in {}", asked(1));
    }
    assert!(!asked(1).contains("image_url"), "{}", asked(1));
    // So is the question itself, once that is wanted.
    let begun = turn(&rack, &chat, json!({"regenerate": failed["id"], "without_pictures": true})).await;
    let answer = message(&settled(&rack, &chat).await, &begun["answer"]["id"]);
    assert_eq!(text(&answer), "There is none.");
    assert!(asked(2).contains("not shown") && !asked(2).contains("image_url"), "{}", asked(2));
    turn(&rack, &chat, json!({"parent": answer["id"], "content": "Sure?"})).await;
    settled(&rack, &chat).await;
    assert!(asked(3).contains("Sure?") && !asked(3).contains("image_url"), "{}", asked(3));
    // Another model sees it.
    let begun = turn(&rack, &chat, json!({"regenerate": failed["id"], "model": "seer"})).await;
    settled(&rack, &chat).await;
    turn(&rack, &chat, json!({"parent": begun["answer"]["id"], "content": "How many?", "model": "seer"}))
        .await;
    settled(&rack, &chat).await;
    assert!(asked(4).contains("image_url") && asked(5).contains("image_url"), "{} {}", asked(4), asked(5));
}

/// A picture that could not be sent for another reason is asked about with the next message.
#[tokio::test]
async fn b17_a_picture_whose_turn_failed_otherwise_goes_with_the_next_message() {
    let rack = Setup::bare().start([Reply::error(400, "no such thing"), Reply::text("A cat.")]).await;
    let chat = new_chat(&rack).await;
    let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(b"\x89PNG\r\n\x1a\n and more"));
    turn(&rack, &chat, json!({"content": [{"type": "image_url", "image_url": {"url": url}}]})).await;
    settled(&rack, &chat).await;
    ask(&rack, &chat, "What is it?").await;
    let sent = json!(rack.upstream.asked()[1].messages()).to_string();
    assert!(sent.contains("image_url") && sent.contains("What is it?"), "{sent}");
}

#[tokio::test]
async fn b17_others_find_no_chat_and_another_server_shows_its_turn() {
    let wait = Arc::new(Notify::new());
    let setup = Setup::bare();
    let chats = Arc::clone(&setup.chats);
    let rack =
        setup.start([waiting("Hel", &wait, "lo"), Reply::stream([text_event("Long"), Act::Stall])]).await;
    let chat = new_chat(&rack).await;
    let on_store = |user: &str| {
        let (chats, caller) = (Arc::clone(&chats), Caller::new(user, Permission::Owner));
        Setup::bare().with(move |setup| (setup.chats, setup.caller) = (chats, caller)).start([])
    };
    let bob = on_store("bob").await;
    for (method, below) in [
        (Method::GET, ""),
        (Method::DELETE, ""),
        (Method::GET, "/export"),
        (Method::GET, "/turn"),
        (Method::POST, "/stop"),
        (Method::DELETE, "/messages/m"),
        (Method::GET, "/messages/m/files/0"),
    ] {
        let path = format!("{chat}{below}");
        assert_eq!(refused(&bob, method, &path, None).await, (404, "chat_not_found".into()), "{path}");
    }
    for (below, body) in [("", json!({"pinned": true})), ("/turn", json!({"content": "a"}))] {
        let path = format!("{chat}{below}");
        assert_eq!(refused(&bob, Method::POST, &path, Some(body)).await, (404, "chat_not_found".into()));
    }
    assert_eq!(get(&bob, "/api/chats").await["chats"], json!([]));

    let other = on_store("ada").await;
    turn(&rack, &chat, json!({"content": "Hi"})).await;
    let path = format!("{chat}/turn");
    assert_eq!(
        refused(&other, Method::POST, &path, Some(json!({"content": "Hi"}))).await,
        (409, "turn_running".into())
    );
    let whole = get(&other, &chat).await;
    assert_eq!((&whole["running"], &whole["turn"]["here"]), (&json!(true), &json!(false)));
    let (seen, ()) = tokio::join!(events(&other, &path), async {
        within(async { while text(&get(&other, &chat).await["messages"][1]) != "Hel" {} }).await;
        wait.notify_one();
    });
    assert_eq!((seen[0].0, seen[0].1.as_str()), (0, "snapshot"), "without a position");
    let (_, name, done) = seen.last().unwrap();
    assert_eq!((name.as_str(), text(done).as_str(), &done["status"]), ("done", "Hello", &json!("done")));

    turn(&rack, &chat, json!({"content": "More"})).await;
    assert_eq!(post(&other, &format!("{chat}/stop"), json!({})).await, json!({"stopped": true}));
    assert_eq!(get(&other, &chat).await["messages"][3]["status"], "stopped");
}

#[tokio::test]
async fn b17_what_a_server_has_done_before_it_was_killed_is_there_and_cut_off() {
    let setup = Setup::bare();
    let store = Arc::clone(&setup.chats);
    let rack = setup.start([Reply::text("Again.")]).await;
    let chat = new_chat(&rack).await;
    let id = chat.rsplit('/').next().unwrap();
    let key = ChatKey { tenant: "default", user: "ada", id };
    let at = Timestamp::now() - SignedDuration::from_secs(20);
    let row = |id: &str, parent: Option<&str>, role: &str, status: &str, parts: Value| ChatMessage {
        id: id.to_owned(),
        parent: parent.map(str::to_owned),
        created_at: at,
        text: String::new(),
        document: json!({"shown": {
            "id": id, "parent": parent, "role": role, "created_at": at, "status": status, "parts": parts,
        }, "said": []})
        .to_string()
        .into(),
        context: "".into(),
    };
    let calls = json!([
        {"type": "text", "text": "Let me see."},
        {"type": "call", "id": "c1", "name": "math.gcd", "dialect": "native", "state": "ok", "arguments": {"a": 4}, "result": "gcd=2"},
        {"type": "call", "id": "c2", "name": "add", "state": "running", "approval": "a1"},
    ]);
    let rows = vec![
        row("msg_1", None, "user", "done", json!([{"type": "text", "text": "GCD?"}])),
        row("msg_2", Some("msg_1"), "assistant", "running", calls),
    ];
    store.add_chat_messages(key, rows, &ChatLimits::DEFAULT).await.unwrap();
    store.begin_chat_turn(key, "msg_2:turn_1", at, &ChatLimits::DEFAULT).await.unwrap();
    let whole = get(&rack, &chat).await;
    let cut = &whole["messages"][1];
    assert_eq!((&whole["turn"], &cut["status"]), (&Value::Null, &json!("cut_off")));
    assert_eq!(
        (&cut["parts"][2]["state"], &cut["parts"][2]["approval"]),
        (&json!("cancelled"), &Value::Null)
    );
    ask(&rack, &chat, "And?").await;
    let asked = rack.upstream.asked();
    let sent = asked[0].messages();
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["assistant", "tool", "user"], "the user's message was of this test");
    assert_eq!(
        (&sent[0]["tool_calls"][0]["function"]["name"], &sent[1]["content"]),
        (&json!("math_gcd"), &json!("gcd=2"))
    );
}

#[tokio::test]
async fn b17_b8_who_opens_a_chat_sees_the_approval_that_its_turn_waits_for() {
    let setup = Setup::bare().with(|setup| {
        setup.registry = registry_core::Registry::builder().without_compiled().build().unwrap();
    });
    let setup = setup
        .plain_tool("wipe", with_effect(Effect::Destructive), |_| async { Ok(ToolResult::new("wiped")) });
    let call = Answer::new().call("c", "wipe", &json!({}));
    let rack = setup.start([call.into(), Reply::text("Gone.")]).await;
    let chat = new_chat(&rack).await;
    let begun = turn(&rack, &chat, json!({"content": "Wipe it."})).await;
    let call = within(async {
        loop {
            let call = message(&get(&rack, &chat).await, &begun["answer"]["id"])["parts"][0].clone();
            if call["approval"].is_string() {
                return call;
            }
        }
    })
    .await;
    let time = |name: &str| call[name].as_str().unwrap().parse::<Timestamp>().unwrap();
    assert!(time("answer_by") > Timestamp::now() && time("began_at") <= Timestamp::now(), "{call}");
    let path = format!("/api/approvals/{}", call["approval"].as_str().unwrap());
    post(&rack, &path, json!({"approve": true})).await;
    let whole = settled(&rack, &chat).await;
    let parts = &whole["messages"][1]["parts"];
    assert_eq!(
        (&parts[0]["state"], &parts[0]["approval"], &parts[1]["text"]),
        (&json!("ok"), &Value::Null, &json!("Gone."))
    );
}

#[tokio::test]
async fn b17_who_comes_late_gets_a_snapshot() {
    const WORDS: usize = 8000;
    let wait = Arc::new(Notify::new());
    let acts =
        (0..WORDS).map(|_| text_event("word ")).chain([Act::Wait(Arc::clone(&wait)), text_event("end")]);
    let end =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let rack = Setup::bare().start([Reply::stream(acts.chain([Act::Send(end.to_vec())]))]).await;
    let chat = new_chat(&rack).await;
    turn(&rack, &chat, json!({"content": "Hi"})).await;
    let is_there = async || text(&get(&rack, &chat).await["messages"][1]).len() == 5 * WORDS;
    within(async { while !is_there().await {} }).await;
    let path = format!("{chat}/turn");
    let (seen, ()) = tokio::join!(events(&rack, &path), async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        wait.notify_one();
    });
    assert_eq!((seen[0].1.as_str(), text(&seen[0].2).len()), ("snapshot", 5 * WORDS));
    assert_eq!(said(&seen), "end", "what follows is not there twice");
    assert_eq!(text(&seen.last().unwrap().2).len(), 5 * WORDS + 3);
}

#[tokio::test]
async fn a25_so_many_read_a_turn_at_once_and_all_get_the_same() {
    let wait = Arc::new(Notify::new());
    let piece = "word ".repeat(20_000);
    let acts = (0..20).map(|_| text_event(&piece)).chain([Act::Wait(Arc::clone(&wait)), text_event("end")]);
    let end =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let rack = Setup::bare().start([Reply::stream(acts.chain([Act::Send(end.to_vec())]))]).await;
    let chat = new_chat(&rack).await;
    turn(&rack, &chat, json!({"content": "Hi"})).await;
    let is_there = async || text(&get(&rack, &chat).await["messages"][1]).len() == 20 * piece.len();
    within(async { while !is_there().await {} }).await;
    let path = format!("{chat}/turn");
    let mut readers = Vec::new();
    for _ in 0..16 {
        let reader = within(rack.client.get(rack.url(&path)).send()).await.unwrap();
        assert_eq!(reader.status(), StatusCode::OK);
        readers.push(reader);
    }
    assert_eq!(refused(&rack, Method::GET, &path, None).await, (429, "too_many_requests".into()));
    // One that goes away makes room for another.
    drop(readers.pop());
    let another = async {
        loop {
            let reader = within(rack.client.get(rack.url(&path)).send()).await.unwrap();
            if reader.status() == StatusCode::OK {
                return reader;
            }
        }
    };
    readers.push(within(another).await);
    wait.notify_one();
    let mut got = Vec::new();
    for reader in readers {
        got.push(within(reader.text()).await.unwrap());
    }
    for name in ["event: snapshot\n", "event: done\n"] {
        assert_eq!(got[0].matches(name).count(), 1, "{name}");
    }
    assert!(got[0].len() > 40 * piece.len() && got.iter().all(|text| text == &got[0]));
}

#[tokio::test]
async fn b17_a_long_answer_is_stopped_and_says_so() {
    let piece = "word ".repeat(20_000);
    let acts = (0..60).map(|_| text_event(&piece)).chain([Act::Stall]);
    let rack = Setup::bare().start([Reply::stream(acts)]).await;
    let chat = new_chat(&rack).await;
    let answer = ask(&rack, &chat, "Write on.").await;
    assert_eq!((&answer["status"], text(&answer).len()), (&json!("failed"), 4 << 20));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("longer than what is kept"),
        "{}",
        answer["error"]
    );
}
