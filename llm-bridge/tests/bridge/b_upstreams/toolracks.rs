//! Another Toolrack as model server, and those that ask each other.

use std::time::{Duration, Instant};

use llm_bridge::upstream::Upstream;
use serde_json::{Value, json};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::support::{Answer, Rack, Reply, Scripted, Setup, Site, within};

const IDLE: Duration = Duration::from_secs(20);

/// A Toolrack before an address.
async fn before(setup: Setup, base: &str) -> Rack {
    let nobody = Scripted::start([]).await;
    setup.start_with(nobody, Upstream::http(base, None, IDLE).unwrap()).await
}

async fn upstream_of(rack: &Rack) -> Value {
    let response = within(rack.client.get(rack.url("/healthz")).send()).await.unwrap();
    response.json::<Value>().await.unwrap()["upstream"].clone()
}

#[tokio::test]
async fn b14_another_toolrack_is_recognised_and_asked_as_openai() {
    for kind in ["ollama", "llama.cpp", ""] {
        let call = Answer::new().call("", "add", &json!({"a": 2, "b": 3}));
        let far = Setup::new().start_of_kind(kind, [call.into(), Reply::text("It is 5.")]).await;
        let near = before(Setup::bare(), &far.url("/v1")).await;
        near.ask(true).await.expect("It is 5.");
        assert_eq!(upstream_of(&near).await, "toolrack", "before {kind}");
        assert_eq!(far.ran(), [("add".to_owned(), json!({"a": 2, "b": 3}))]);
        let path = if kind == "ollama" { "/api/chat" } else { "/v1/chat/completions" };
        assert!(far.upstream.asked().iter().all(|asked| asked.path == path), "{:?}", far.upstream.asked());
    }
}

#[tokio::test]
async fn b14_the_models_of_another_toolrack_are_listed_as_they_are() {
    let far = Setup::new().start_of_kind("ollama", []).await;
    let near = before(Setup::new(), &far.url("/v1")).await;
    let listed: Value =
        within(near.client.get(near.url("/v1/models")).send()).await.unwrap().json().await.unwrap();
    let names: Vec<&str> =
        listed["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names, ["m", "m:plain"]);
}

/// An address that leads to another one, which is known later.
async fn leading_to() -> (String, watch::Sender<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, target) = watch::channel(String::new());
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let address = target.borrow().clone();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(address).await?;
                copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    (base, sender)
}

async fn expect_found_out(rack: &Rack) {
    let began = Instant::now();
    for stream in [true, false] {
        let reported = rack.ask(stream).await;
        assert!(reported.failure().contains("come through this server before"), "{reported:?}");
    }
    for path in ["/v1/models", "/api/tags"] {
        let response = within(rack.client.get(rack.url(path)).send()).await.unwrap();
        assert_eq!(response.status(), 502, "{path}");
        let said = within(response.text()).await.unwrap();
        assert!(said.contains("come through this server before"), "{path}: {said}");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "nobody waits for itself");
}

#[tokio::test]
async fn b14_a_server_that_asks_itself_finds_out() {
    let (base, target) = leading_to().await;
    let rack = before(Setup::new(), &base).await;
    target.send(rack.address.to_string()).unwrap();
    expect_found_out(&rack).await;
}

#[tokio::test]
async fn b14_servers_that_ask_each_other_find_out() {
    let (base, target) = leading_to().await;
    let one = before(Setup::new(), &base).await;
    let two = before(Setup::new(), &one.url("/v1")).await;
    let three = before(Setup::new(), &two.url("/v1")).await;
    target.send(three.address.to_string()).unwrap();
    expect_found_out(&one).await;
    expect_found_out(&three).await;
}

#[tokio::test]
async fn b14_a_request_from_too_far_is_refused_and_one_from_a_client_is_not_marked() {
    let rack = Setup::new().start_of_kind("vllm", []).await;
    let ask = async |through: Option<&str>| {
        let mut request = rack.client.get(rack.url("/v1/models"));
        if let Some(through) = through {
            request = request.header("x-toolrack-via", through);
        }
        let response = within(request.send()).await.unwrap();
        (response.status().as_u16(), response.headers().contains_key("x-toolrack-via"))
    };
    assert_eq!(ask(None).await, (200, false));
    assert_eq!(ask(Some("a, b, c")).await, (200, true));
    assert_eq!(ask(Some("a, b, c, d")).await, (508, true));
    assert_eq!(ask(Some(&"a".repeat(4000))).await, (508, true));
    // The model server is told of all.
    let nobody = Site::of_kind("vllm", &["m"]);
    let last = Scripted::start_as(nobody, [Reply::text("Hi.")]).await;
    let base = last.base();
    let rack = Setup::bare().start_before(last, &base).await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
    let request = rack.client.post(rack.url("/v1/chat/completions")).header("x-toolrack-via", "a, b");
    assert_eq!(within(request.json(&body).send()).await.unwrap().status(), 200);
    let head = &rack.upstream.asked()[0].head;
    let via = head.lines().find_map(|line| line.strip_prefix("x-toolrack-via: ")).unwrap();
    assert!(via.starts_with("a, b, ") && via.split(", ").count() == 3, "{via}");
}
