//! What clients have not seen of their conversations, kept by the program: row G8, requirement B15.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use axum::{Json, Router, body::Bytes, extract::State, routing};
use serde_json::{Value, json, value::RawValue};

use super::{
    program::{Rack, Serving, client, mock},
    servers::postgres,
};

/// A model server that calls a tool and then answers, again and again, and keeps what it is sent.
#[derive(Clone, Default)]
struct Model {
    asked: Arc<Mutex<Vec<String>>>,
    next: Arc<Mutex<VecDeque<Value>>>,
}

impl Model {
    async fn start() -> (Self, String) {
        let model = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let models =
            || async { Json(json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]})) };
        let routes = Router::new()
            .route("/v1/models", routing::get(models))
            .route("/v1/chat/completions", routing::post(Self::answer))
            .with_state(model.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (model, base)
    }

    async fn answer(State(model): State<Self>, body: Bytes) -> Json<Value> {
        let number = {
            let mut asked = model.asked.lock().unwrap();
            asked.push(String::from_utf8(body.to_vec()).unwrap());
            asked.len()
        };
        let mut next = model.next.lock().unwrap();
        if next.is_empty() {
            let arguments = json!({"n": number}).to_string();
            let call = json!({"id": format!("call-{number}"), "type": "function",
                "function": {"name": "count_free", "arguments": arguments}});
            next.push_back(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
            next.push_back(json!({"role": "assistant", "content": format!("Counted, {number}.")}));
        }
        let message = next.pop_front().unwrap();
        let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
        Json(json!({"id": "a", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}]}))
    }

    /// The messages of each request, as they came.
    fn asked(&self) -> Vec<String> {
        let read = |text: &String| {
            let fields: HashMap<String, Box<RawValue>> = serde_json::from_str(text).unwrap();
            fields["messages"].get().to_owned()
        };
        self.asked.lock().unwrap().iter().map(read).collect()
    }

    #[track_caller]
    fn assert_continued(&self) {
        for pair in self.asked().windows(2) {
            let begin = pair[0].strip_suffix(']').unwrap();
            assert!(pair[1].starts_with(begin), "{}\n{}", pair[0], pair[1]);
        }
    }
}

/// Asks the next question of a conversation, and adds it with the answer.
async fn go_on(server: &Serving, key: &str, messages: &mut Vec<Value>) {
    let question = format!("Count, {}.", messages.len());
    messages.push(json!({"role": "user", "content": question}));
    let body = json!({"messages": messages});
    let reply = server.post(&client(), "/v1/chat/completions", key, &body).send().await.unwrap();
    assert!(reply.status().is_success(), "{reply:?}");
    let reply: Value = reply.json().await.unwrap();
    // The text alone.
    let text = reply["choices"][0]["message"]["content"].as_str().unwrap().trim();
    messages.push(json!({"role": "assistant", "content": text}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_what_a_client_has_not_seen_outlives_the_program_and_goes_with_the_user() {
    let (model, base) = Model::start().await;
    let rack = Rack::new("", &mock("count.free", "")).with_variable("TOOLRACK_UPSTREAM", &base);
    rack.done(&["user", "add", "ada"]);
    let (_, key) = rack.key("ada", &[]);
    let mut messages = Vec::new();
    for _ in 0..3 {
        let mut server = rack.serve();
        go_on(&server, &key, &mut messages).await;
        go_on(&server, &key, &mut messages).await;
        server.kill();
    }
    assert_eq!(model.asked().len(), 12);
    model.assert_continued();

    // Another user who says the same has no part in it, nor has one who gets the name later.
    rack.done(&["user", "add", "bob"]);
    let (_, bob) = rack.key("bob", &[]);
    let removed = rack.run(&["user", "remove", "ada"]);
    let reported = String::from_utf8(removed.stderr).unwrap();
    assert!(reported.contains("0 responses and 6 transcripts"), "{reported}");
    rack.done(&["user", "add", "ada"]);
    let (_, ada) = rack.key("ada", &[]);
    let server = rack.serve();
    for key in [bob, ada] {
        let before = model.asked().len();
        go_on(&server, &key, &mut messages.clone()).await;
        let asked = &model.asked()[before];
        assert!(!asked.contains("tool_calls") && asked.contains("Count, 10."), "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g8_what_a_client_has_not_seen_is_known_to_each_server_of_a_database() {
    let test = "g8_what_a_client_has_not_seen_is_known_to_each_server_of_a_database";
    let Some(postgres) = postgres(test) else { return };
    let (model, base) = Model::start().await;
    let racks = ["one", "two"].map(|server| {
        let store = format!("url = \"{postgres}\"\nserver = \"{server}\"");
        Rack::new(&store, &mock("count.free", "")).with_variable("TOOLRACK_UPSTREAM", &base)
    });
    racks[0].done(&["user", "add", "ada"]);
    let (_, key) = racks[0].key("ada", &[]);
    let mut servers = racks.each_ref().map(Rack::serve);
    let mut messages = Vec::new();
    for turn in 0..10 {
        go_on(&servers[turn % 2], &key, &mut messages).await;
        if turn == 4 {
            servers[0].kill();
            servers[0] = racks[0].serve();
        }
    }
    assert_eq!(model.asked().len(), 20);
    model.assert_continued();
}
