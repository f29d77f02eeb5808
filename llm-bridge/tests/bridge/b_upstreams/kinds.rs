//! The kinds of model servers are told apart.

use std::time::Duration;

use llm_bridge::upstream::{KINDS, Upstream, UpstreamApi, UpstreamSettings};
use serde_json::{Value, json};

use crate::support::{Answer, Rack, Reply, Scripted, Setup, Site, user, within};

const IDLE: Duration = Duration::from_secs(20);

async fn health(rack: &Rack) -> Value {
    let response = within(rack.client.get(rack.url("/healthz")).send()).await.unwrap();
    response.json::<Value>().await.unwrap()["upstream"].clone()
}

async fn rack_of(site: Site, change: impl FnOnce(&mut UpstreamSettings)) -> Rack {
    let upstream = Scripted::start_as(site, [Reply::text("Hi."), Reply::text("Hi.")]).await;
    let mut settings = UpstreamSettings::new(upstream.base(), IDLE);
    change(&mut settings);
    Setup::new().start_with(upstream, Upstream::server(settings).unwrap()).await
}

#[tokio::test]
async fn b14_every_kind_of_server_is_recognised_when_it_is_first_asked() {
    for kind in &KINDS {
        for with_v1 in [true, false] {
            let rack = rack_of(Site::of_kind(kind.id, &["m"]), |settings| {
                if !with_v1 {
                    settings.url = settings.url.trim_end_matches("/v1").to_owned();
                }
            })
            .await;
            assert_eq!(health(&rack).await, "openai", "{}: nobody has asked it yet", kind.id);
            assert!(rack.upstream.looked().is_empty(), "{}", kind.id);
            for _ in 0..2 {
                assert_eq!(rack.ask(false).await.content, "Hi.", "{}", kind.id);
            }
            assert_eq!(health(&rack).await, kind.id);
            let path = if kind.id == "ollama" { "/api/chat" } else { "/v1/chat/completions" };
            let asked = rack.upstream.asked();
            assert!(asked.iter().all(|asked| asked.path == path), "{}: {asked:?}", kind.id);
            let looked = rack.upstream.looked();
            let lists = looked.iter().filter(|path| *path == "/v1/models").count();
            // Some say there how large the context is.
            let expected = if matches!(kind.id, "vllm" | "sglang" | "jan" | "toolrack") { 2 } else { 1 };
            assert_eq!(lists, expected, "{}: it is looked at once: {looked:?}", kind.id);
        }
    }
}

#[tokio::test]
async fn b14_an_unknown_server_is_asked_as_openai() {
    let rack = rack_of(Site::default(), |_| ()).await;
    assert_eq!(rack.ask(true).await.content, "Hi.");
    assert_eq!(health(&rack).await, "openai");
    assert_eq!(rack.upstream.asked()[0].path, "/v1/chat/completions");
}

#[tokio::test]
async fn b14_a_setting_goes_before_what_was_recognised() {
    let rack =
        rack_of(Site::of_kind("ollama", &["m"]), |settings| settings.api = Some(UpstreamApi::OpenAi)).await;
    assert_eq!(rack.ask(false).await.content, "Hi.");
    assert_eq!(rack.upstream.asked()[0].path, "/v1/chat/completions");
    assert_eq!(health(&rack).await, "ollama");
    let rack = rack_of(Site::default(), |settings| settings.api = Some(UpstreamApi::Ollama)).await;
    assert_eq!(rack.ask(false).await.content, "Hi.");
    assert_eq!(rack.upstream.asked()[0].path, "/api/chat");
    assert_eq!(health(&rack).await, "ollama");
}

#[tokio::test]
async fn b14_another_server_at_the_address_is_recognised_after_the_first_was_away() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let upstream = Upstream::http(&format!("http://{address}/v1"), None, IDLE).unwrap();
    drop(listener);
    assert!(within(upstream.models()).await.is_err());
    assert_eq!(upstream.kind(), "openai");
    for kind in ["vllm", "ollama"] {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let scripted = Scripted::start_on(listener, Site::of_kind(kind, &["m"]), []).await;
        assert_eq!(within(upstream.models()).await.unwrap().len(), 1);
        assert_eq!(upstream.kind(), kind);
        scripted.close().await;
        assert!(within(upstream.models()).await.is_err());
        assert_eq!(upstream.kind(), kind, "what it was is shown until another answers");
    }
}

#[tokio::test]
async fn g7_the_default_model_is_one_that_answers_questions() {
    // The names say nothing here; the servers do.
    for kind in ["lmstudio", "ollama"] {
        let rack = rack_of(Site::of_kind(kind, &["small-vectors", "embedded-coder"]), |_| ()).await;
        let reported = rack.chat(json!({"messages": [user("Go.")]})).await;
        assert_eq!(reported.content, "Hi.", "{kind}");
        assert_eq!(rack.upstream.asked()[0].body["model"], "embedded-coder", "{kind}");
        let listed: Value =
            within(rack.client.get(rack.url("/v1/models")).send()).await.unwrap().json().await.unwrap();
        for model in ["small-vectors", "embedded-coder"] {
            assert!(
                listed["data"].as_array().unwrap().iter().any(|listed| listed["id"] == model),
                "{kind}: {listed}"
            );
        }
    }
}

#[tokio::test]
async fn b14_a_server_that_has_nothing_but_the_chat_is_asked_all_the_same() {
    let upstream = Scripted::start([Reply::from(Answer::text("Hi."))]).await;
    upstream.become_site(Site { server: "", pages: Vec::new() });
    let base = upstream.base();
    let rack = Setup::new().start_before(upstream, &base).await;
    assert_eq!(rack.ask(false).await.content, "Hi.");
}
