//! Ollama, asked in its own API.

use std::time::Duration;

use llm_bridge::upstream::{Upstream, UpstreamSettings};
use registry_core::{Caller, Permission};
use serde_json::{Value, json};

use crate::support::{Act, Answer, Rack, Reply, Scripted, Setup, Site, within};

async fn rack_of(setup: Setup, replies: Vec<Reply>) -> Rack {
    let upstream = Scripted::start_as(Site::of_kind("ollama", &["m"]), replies).await;
    let settings = UpstreamSettings {
        num_ctx: Some(32768),
        keep_alive: Some("30m".into()),
        ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20))
    };
    setup.start_with(upstream, Upstream::server(settings).unwrap()).await
}

#[tokio::test]
async fn b14_the_size_of_the_context_is_that_of_the_settings_and_the_calls_are_run() {
    let replies = vec![
        Answer::new().delta(json!({"reasoning": "Hm."})).call("", "add", &json!({"a": 2, "b": 3})).into(),
        Answer::text("It is 5.").usage(10, 5).into(),
    ];
    let rack = rack_of(Setup::new(), replies).await;
    let reported = rack.ask_with(true, json!({"reasoning_effort": "high", "temperature": 0.5})).await;
    assert_eq!(reported.content, "It is 5.");
    assert_eq!(rack.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
    let asked = rack.upstream.asked();
    assert_eq!(asked[0].path, "/api/chat");
    let body = &asked[0].body;
    assert_eq!(body["options"], json!({"temperature": 0.5, "num_ctx": 32768}));
    assert_eq!((&body["keep_alive"], &body["think"]), (&json!("30m"), &json!("high")));
    assert_eq!(asked[0].tools(), ["add", "math_gcd"]);
    let result = asked[1].messages().last().unwrap();
    assert_eq!((&result["role"], &result["tool_name"]), (&json!("tool"), &json!("add")), "{result}");
    assert_eq!(result["content"], "sum=5");
}

#[tokio::test]
async fn b14_an_error_of_ollama_is_reported_with_its_words() {
    let replies = vec![
        Reply::json(404, &json!({"error": "model 'm' not found"})),
        Reply::Raw {
            status: 200,
            kind: "application/x-ndjson",
            acts: vec![Act::Send(b"{\"message\":{\"role\":\"assistant\",\"content\":\"Well\"},\"done\":false}\n{\"error\":\"out of memory\"}\n".to_vec())],
        },
    ];
    let rack = rack_of(Setup::new(), replies).await;
    let response = rack.post(&json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]})).await;
    assert_eq!(response.status(), 404);
    let text = within(response.text()).await.unwrap();
    assert!(text.contains("model 'm' not found") && !text.contains("end in /v1"), "{text}");
    let response = rack.post(&json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]})).await;
    assert_eq!(response.status(), 502);
    let text = within(response.text()).await.unwrap();
    assert!(text.contains("out of memory"), "{text}");
}

/// Before a server of a kind, for a caller of a level; all may say how models are loaded, or admins alone.
async fn rack_for(level: Permission, kind: &str, users_load: bool) -> Rack {
    let mut setup = Setup::new();
    setup.caller = Caller::new("bob", level);
    let upstream = Scripted::start_as(Site::of_kind(kind, &["m"]), []).await;
    let settings =
        UpstreamSettings { users_load, ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20)) };
    setup.start_with(upstream, Upstream::server(settings).unwrap()).await
}

/// What the server gets of a request.
async fn sent(rack: &Rack, path: &str, reply: impl Into<Reply>, body: &Value) -> Value {
    rack.upstream.push(reply);
    let reply = within(rack.client.post(rack.url(path)).json(body).send()).await.unwrap();
    assert_eq!(reply.status(), 200);
    rack.upstream.asked().pop().unwrap().body
}

#[tokio::test]
async fn b14_how_a_model_is_loaded_for_all_is_said_by_admins_alone() {
    let options = json!({"num_ctx": 1_000_000, "num_gpu": 0, "num_thread": 1, "repeat_penalty": 1.5});
    let chat = json!({"model": "m", "stream": false, "keep_alive": 0, "options": options,
        "messages": [{"role": "user", "content": "hi"}]});
    let answer = || Answer::text("Hi.");
    for (level, users_load) in [(Permission::Admin, false), (Permission::User, true)] {
        let rack = rack_for(level, "ollama", users_load).await;
        let body = sent(&rack, "/api/chat", answer(), &chat).await;
        assert_eq!((&body["options"], &body["keep_alive"]), (&options, &json!(0)), "{level:?}");
    }
    let rack = rack_for(Permission::User, "ollama", false).await;
    let body = sent(&rack, "/api/chat", answer(), &chat).await;
    // As much as the operator gives to a request that needs as much.
    assert_eq!(body["options"], json!({"num_ctx": 32_768, "repeat_penalty": 1.5}));
    assert_eq!(body["keep_alive"], Value::Null);
    // A small one does not have the model loaded anew for the others.
    let small = json!({"model": "m", "stream": false, "options": {"num_ctx": 512},
        "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(sent(&rack, "/api/chat", answer(), &small).await["options"], json!({"num_ctx": 32_768}));
}

#[tokio::test]
async fn b14_nor_do_others_say_so_where_a_request_is_passed_on_to_ollama() {
    let load = json!({"keep_alive": 0, "options": {"num_gpu": 0, "num_ctx": 9, "seed": 1}});
    for (path, asked) in [
        ("/api/embed", json!({"model": "m", "input": "a"})),
        ("/api/embeddings", json!({"model": "m", "prompt": "a"})),
        ("/api/generate", json!({"model": "m"})),
        ("/api/generate", json!({"model": "m", "prompt": "a", "raw": true})),
        ("/api/chat", json!({"model": "m", "messages": []})),
    ] {
        let mut all = asked.clone();
        all.as_object_mut().unwrap().extend(load.as_object().unwrap().clone());
        let reply = || Reply::json(200, &json!({"done": true}));
        let rack = rack_for(Permission::Admin, "ollama", false).await;
        assert_eq!(sent(&rack, path, reply(), &all).await, all, "{path}");
        let rack = rack_for(Permission::User, "ollama", false).await;
        let mut expected = asked;
        expected["options"] = json!({"seed": 1});
        assert_eq!(sent(&rack, path, reply(), &all).await, expected, "{path}");
    }
}

#[tokio::test]
async fn b14_slots_and_adapters_of_other_servers_are_chosen_by_admins_alone() {
    let chat = json!({"model": "m", "stream": false, "id_slot": 0, "priority": -9, "lora": [], "ttl": 1,
        "kv_transfer_params": {}, "cache_prompt": true, "messages": [{"role": "user", "content": "hi"}]});
    let names = ["id_slot", "priority", "lora", "ttl", "kv_transfer_params", "cache_prompt"];
    for (level, there) in [(Permission::Admin, &names[..]), (Permission::User, &names[5..])] {
        let rack = rack_for(level, "llama.cpp", false).await;
        let body = sent(&rack, "/v1/chat/completions", Answer::text("Hi."), &chat).await;
        let found: Vec<&str> = names.into_iter().filter(|name| body.get(name).is_some()).collect();
        assert_eq!(found, there, "{level:?}");
    }
}
