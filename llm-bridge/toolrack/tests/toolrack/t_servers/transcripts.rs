//! What clients have not seen of their conversations, kept by the program: row G8, requirement B15.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::State,
    response::{IntoResponse, Response},
    routing,
};
use futures_util::{StreamExt, stream};
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

    async fn answer(State(model): State<Self>, body: Bytes) -> Response {
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
        if let Some(text) = message["breaks_off_after"].as_str() {
            let event =
                format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": text}}]}));
            let events = stream::iter([Ok::<_, Infallible>(event)]).chain(stream::pending());
            return ([("content-type", "text/event-stream")], Body::from_stream(events)).into_response();
        }
        let reason = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
        Json(json!({"id": "a", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": reason}]}))
        .into_response()
    }

    fn push(&self, message: Value) {
        self.next.lock().unwrap().push_back(message);
    }

    fn push_call(&self, tool: &str) {
        let call = json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}});
        self.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    }

    /// The messages of the last request, behind the server's prompt.
    fn last(&self) -> Vec<Value> {
        let mut messages: Vec<Value> = serde_json::from_str(&self.asked().pop().unwrap()).unwrap();
        assert_eq!(messages.remove(0)["role"], "system");
        messages
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
    // Ten turns.
    for _ in 0..5 {
        let mut server = rack.serve();
        go_on(&server, &key, &mut messages).await;
        go_on(&server, &key, &mut messages).await;
        server.kill();
    }
    assert_eq!(model.asked().len(), 20);
    model.assert_continued();

    // Another user who says the same has no part in it, nor has one who gets the name later.
    rack.done(&["user", "add", "bob"]);
    let (_, bob) = rack.key("bob", &[]);
    let removed = rack.run(&["user", "remove", "ada"]);
    let reported = String::from_utf8(removed.stderr).unwrap();
    assert!(reported.contains("0 responses, 10 transcripts and 0 files"), "{reported}");
    rack.done(&["user", "add", "ada"]);
    let (_, ada) = rack.key("ada", &[]);
    let server = rack.serve();
    for key in [bob, ada] {
        let before = model.asked().len();
        go_on(&server, &key, &mut messages.clone()).await;
        let asked = &model.asked()[before];
        assert!(!asked.contains("tool_calls") && asked.contains("Count, 20."), "{asked}");
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

/// Asks with a stream, and reads until this has come.
async fn read_to(server: &Serving, key: &str, messages: &Value, text: &str) {
    let body = json!({"messages": messages, "stream": true});
    let mut reply = server.post(&client(), "/v1/chat/completions", key, &body).send().await.unwrap();
    let mut read = String::new();
    while !read.contains(text) {
        let piece = reply.chunk().await.unwrap();
        read += &String::from_utf8_lossy(&piece.unwrap_or_else(|| panic!("it ends: {read}")));
    }
}

async fn answer(server: &Serving, key: &str, messages: &Value) -> String {
    let body = json!({"messages": messages});
    let reply = server.post(&client(), "/v1/chat/completions", key, &body).send().await.unwrap();
    let reply: Value = reply.json().await.unwrap();
    reply["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b15_a_turn_in_which_the_program_is_killed_goes_on_after_its_first_round() {
    let (model, base) = Model::start().await;
    let rack = Rack::new("", &mock("count.free", "")).with_variable("TOOLRACK_UPSTREAM", &base);
    rack.done(&["user", "add", "ada"]);
    let (_, key) = rack.key("ada", &[]);
    let question = json!({"role": "user", "content": "Count."});
    let asks_again = json!([question]);
    let goes_on = json!([
        question,
        {"role": "assistant", "content": "It is three,  as"},
        {"role": "user", "content": "Go on."},
    ]);
    for (sent, expected) in [
        (asks_again, vec!["user", "assistant", "tool"]),
        (goes_on, vec!["user", "assistant", "tool", "assistant", "user"]),
    ] {
        model.push_call("count_free");
        model.push(json!({"breaks_off_after": "It is three, as I"}));
        let mut server = rack.serve();
        read_to(&server, &key, &json!([question]), "as I").await;
        server.kill();
        let server = rack.serve();
        model.push(json!({"role": "assistant", "content": "Three."}));
        assert_eq!(answer(&server, &key, &sent).await, "Three.");
        let last = model.last();
        assert_eq!(roles(&last), expected);
        assert_eq!(last[2]["content"], "done");
        // Half of an answer is no reason to forget what was said.
        if let Some(message) = last.get(3) {
            assert_eq!(message["content"], "It is three,  as");
        }
    }
    let calls = rack.exported_calls(&[]);
    let ran = calls.iter().filter(|record| record["phase"] == "outcome").count();
    assert_eq!(ran, 2, "once for each of the two turns: {calls:?}");
}

/// A module with a tool that changes something and never comes back. Gives how often it was called.
async fn post_office() -> (String, Arc<AtomicUsize>) {
    let tool = json!({"name": "post.send", "description": "Send it.", "required_permission": "guest",
        "effect": "write", "parameters": []});
    let manifest = json!({"name": "post", "description": "A module.", "tools": [tool]});
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let routes = Router::new().route("/manifest", routing::get(|| async { Json(manifest) })).route(
        "/execute",
        routing::post(move || async move {
            counted.fetch_add(1, Ordering::SeqCst);
            std::future::pending::<()>().await;
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b15_of_a_call_with_an_effect_in_which_the_program_is_killed_the_model_is_told() {
    let (model, base) = Model::start().await;
    let (post, calls) = post_office().await;
    let rack = Rack::new("", &format!("[module_services]\npost = \"{post}\"\n"))
        .with_variable("TOOLRACK_UPSTREAM", &base);
    rack.done(&["user", "add", "ada", "--level", "admin"]);
    let (_, key) = rack.key("ada", &[]);
    let sent = json!([{"role": "user", "content": "Send it."}]);
    model.push_call("post_send");
    let mut server = rack.serve();
    {
        let asking = answer(&server, &key, &sent);
        tokio::select! {
            answer = asking => panic!("{answer}"),
            () = async {
                while calls.load(Ordering::SeqCst) == 0 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            } => {}
        }
        server.kill();
    }
    let server = rack.serve();
    model.push(json!({"role": "assistant", "content": "I look whether it is there."}));
    assert_eq!(answer(&server, &key, &sent).await, "I look whether it is there.");
    let last = model.last();
    assert_eq!(roles(&last), ["user", "assistant", "tool"]);
    let result = last[2]["content"].as_str().unwrap();
    assert!(result.contains("whether it took effect is not known"), "{result}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b15_a_call_with_an_effect_that_one_server_makes_is_not_made_by_another() {
    let test = "b15_a_call_with_an_effect_that_one_server_makes_is_not_made_by_another";
    let Some(postgres) = postgres(test) else { return };
    let (model, base) = Model::start().await;
    let (post, calls) = post_office().await;
    let racks = ["one", "two"].map(|server| {
        let store = format!("url = \"{postgres}\"\nserver = \"{server}\"");
        Rack::new(&store, &format!("[module_services]\npost = \"{post}\"\n"))
            .with_variable("TOOLRACK_UPSTREAM", &base)
    });
    racks[0].done(&["user", "add", "ada", "--level", "admin"]);
    let (_, key) = racks[0].key("ada", &[]);
    let [mut one, two] = racks.each_ref().map(Rack::serve);
    let sent = json!([{"role": "user", "content": "Send it."}]);
    model.push_call("post_send");
    // Whoever might ask again is answered with another call.
    model.push_call("post_send");
    let asked_at_two = async {
        while calls.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let body = json!({"messages": sent});
        two.post(&client(), "/v1/chat/completions", &key, &body).send().await.unwrap()
    };
    let refused = tokio::select! {
        answer = answer(&one, &key, &sent) => panic!("{answer}"),
        refused = asked_at_two => refused,
    };
    let (status, may_retry) = (refused.status(), refused.headers().get("x-should-retry").cloned());
    let refusal = refused.text().await.unwrap();
    assert_eq!(status, 424, "{refusal}");
    assert_eq!(may_retry.unwrap(), "false");
    assert!(refusal.contains("another server answers the same conversation"), "{refusal}");
    assert_eq!((calls.load(Ordering::SeqCst), model.asked().len()), (1, 1));

    // The client is gone with the first server: the second goes on where that was.
    one.kill();
    model.next.lock().unwrap().clear();
    model.push(json!({"role": "assistant", "content": "I look whether it is there."}));
    assert_eq!(answer(&two, &key, &sent).await, "I look whether it is there.");
    let last = model.last();
    assert_eq!(roles(&last), ["user", "assistant", "tool"]);
    let result = last[2]["content"].as_str().unwrap();
    assert!(result.contains("whether it took effect is not known"), "{result}");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1517>: tools of MCP servers are there in the chat of the program, and not for
/// clients of `/v1`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b2_tools_of_mcp_servers_are_called_for_clients_that_know_nothing_of_them() {
    let (model, base) = Model::start().await;
    let folder = tempfile::tempdir().unwrap();
    let settings = format!(
        "[mcp_servers.other]\ncommand = {:?}\nargs = [\"mcp\"]\ncwd = {:?}\nallow = [\"calculate\"]\n",
        env!("CARGO_BIN_EXE_toolrack"),
        folder.path()
    );
    let rack = Rack::new("", &settings).with_variable("TOOLRACK_UPSTREAM", &base);
    rack.done(&["user", "add", "ada", "--level", "admin"]);
    let (_, key) = rack.key("ada", &[]);
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "other_calculate", "arguments": "{\"expression\": \"6*7\"}"}});
    model.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    model.push(json!({"role": "assistant", "content": "It is 42."}));
    let server = rack.serve();
    // It is connected in the background.
    let began = Instant::now();
    let refusal = async || server.call(&client(), &key, "other.calculate").await.text().await.unwrap();
    while !refusal().await.contains("`expression` is missing") {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let sent = json!([{"role": "user", "content": "6 * 7?"}]);
    assert_eq!(answer(&server, &key, &sent).await, "It is 42.");
    let asked: Value = serde_json::from_str(&model.asked.lock().unwrap()[0]).unwrap();
    let tools = asked["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["function"]["name"] == "other_calculate"), "{tools:?}");
    let last = model.last();
    assert_eq!(roles(&last), ["user", "assistant", "tool"]);
    assert!(last[2]["content"].as_str().unwrap().contains("42"), "{last:?}");
}
