//! Chats that servers share, and one whose server is killed.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    response::{IntoResponse, Response},
    routing,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{
    program::{Rack, Serving, client, mock},
    servers::postgres,
};

/// A model server that answers at once, or begins an answer and never ends it where it is asked to wait.
async fn model() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let models =
        || async { Json(json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]})) };
    let routes = Router::new()
        .route("/v1/models", routing::get(models))
        .route("/v1/chat/completions", routing::post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    base
}

async fn answer(body: Bytes) -> Response {
    if !String::from_utf8_lossy(&body).contains("Please wait") {
        let message = json!({"role": "assistant", "content": "Hello."});
        return Json(json!({"id": "a", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
        .into_response();
    }
    let chunk = json!({"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "delta": {"content": "Let me see"}, "finish_reason": null}]});
    let first = stream::iter([Ok::<_, Infallible>(format!("data: {chunk}\n\n"))]);
    let body = Body::from_stream(first.chain(stream::pending()));
    ([("content-type", "text/event-stream")], body).into_response()
}

async fn post(server: &Serving, key: &str, path: &str, body: Value) -> Value {
    let reply = server.post(&client(), path, key, &body).send().await.unwrap();
    assert!(reply.status().is_success(), "{reply:?}");
    reply.json().await.unwrap()
}

async fn get(server: &Serving, key: &str, path: &str) -> Value {
    let reply = client().get(format!("{}{path}", server.base)).bearer_auth(key).send().await.unwrap();
    assert!(reply.status().is_success(), "{reply:?}");
    reply.json().await.unwrap()
}

/// The chat as soon as its last message is as it should be.
async fn until(server: &Serving, key: &str, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let chat = get(server, key, path).await;
            if chat["messages"].as_array().unwrap().last().is_some_and(&holds) {
                return chat;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(40), waiting).await.expect("it should have happened long ago")
}

async fn new_chat(server: &Serving, key: &str) -> String {
    let chat = post(server, key, "/api/chats", json!({"title": "A chat"})).await;
    format!("/api/chats/{}", chat["id"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b17_a_chat_outlives_a_killed_server_with_what_was_done_and_goes_with_the_user() {
    let base = model().await;
    let rack = Rack::new("", &mock("count.free", "")).with_variable("TOOLRACK_UPSTREAM", &base);
    rack.done(&["user", "add", "ada"]);
    let (_, key) = rack.key("ada", &[]);
    let mut server = rack.serve();
    let chat = new_chat(&server, &key).await;
    post(&server, &key, &format!("{chat}/turn"), json!({"content": "Please wait."})).await;
    until(&server, &key, &chat, |answer| answer["parts"][0]["text"] == "Let me see").await;
    // By then it is kept.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    server.kill();

    let server = rack.serve();
    let cut = until(&server, &key, &chat, |answer| answer["status"] == "cut_off").await;
    assert_eq!(cut["messages"][1]["parts"][0]["text"], "Let me see");
    post(&server, &key, &format!("{chat}/turn"), json!({"content": "Again?", "parent": null})).await;
    until(&server, &key, &chat, |answer| answer["status"] == "done").await;
    drop(server);
    let removed = rack.run(&["user", "remove", "ada"]);
    let reported = String::from_utf8(removed.stderr).unwrap();
    assert!(reported.contains("1 chat and the conversations"), "{reported}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b17_a_chat_made_on_one_server_is_read_and_stopped_on_another() {
    let test = "b17_a_chat_made_on_one_server_is_read_and_stopped_on_another";
    let Some(postgres) = postgres(test) else { return };
    let base = model().await;
    let racks = ["one", "two"].map(|server| {
        let store = format!("url = \"{postgres}\"\nserver = \"{server}\"");
        Rack::new(&store, &mock("count.free", "")).with_variable("TOOLRACK_UPSTREAM", &base)
    });
    racks[0].done(&["user", "add", "ada"]);
    let (_, key) = racks[0].key("ada", &[]);
    let [one, two] = racks.each_ref().map(Rack::serve);
    let chat = new_chat(&one, &key).await;
    post(&one, &key, &format!("{chat}/turn"), json!({"content": "Hi."})).await;
    until(&two, &key, &chat, |answer| answer["status"] == "done" && answer["parts"][0]["text"] == "Hello.")
        .await;

    post(&one, &key, &format!("{chat}/turn"), json!({"content": "Please wait."})).await;
    let running = until(&two, &key, &chat, |answer| answer["parts"][0]["text"] == "Let me see").await;
    assert_eq!((&running["running"], &running["turn"]["here"]), (&json!(true), &json!(false)));
    let stopped = post(&two, &key, &format!("{chat}/stop"), json!({})).await;
    assert_eq!(stopped, json!({"stopped": true}));
    let chat = get(&one, &key, &chat).await;
    assert_eq!((&chat["turn"], &chat["messages"][3]["status"]), (&Value::Null, &json!("stopped")));
}
