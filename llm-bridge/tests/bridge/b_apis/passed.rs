//! What is passed on to the model server as it is.

use std::time::Duration;

use llm_bridge::{
    server::{ServerSettings, router},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{Caller, Permission, Registry, store::MemoryStore};
use reqwest::header;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::rack_before;
use crate::support::{Act, Reply, Setup, within};

#[tokio::test]
async fn b13_json_goes_to_the_model_server_and_its_answer_comes_back() {
    let setup = Setup::new().with(|setup| {
        setup.access.api_key = Some("sesame".into());
        setup.upstream_key = Some("upstreams".into());
    });
    let answer = json!({"object": "list", "data": [], "x": 1.0});
    let replies =
        [Reply::json(200, &answer), Reply::json(422, &json!({"detail": "no"})), Reply::json(200, &answer)];
    let rack = setup.start(replies).await;
    let post = |path: &str| {
        let request = rack.client.post(rack.url(path)).header("x-api-key", "sesame");
        request
            .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
            .body(r#"{"model":"m",  "input":"a"}"#)
    };
    let passed = post("/v1/embeddings").send().await.unwrap();
    assert_eq!(
        (passed.status().as_u16(), passed.headers()[header::CONTENT_TYPE].to_str().unwrap()),
        (200, "application/json")
    );
    assert_eq!(passed.json::<Value>().await.unwrap(), answer);
    let refused = post("/v1/completions/").send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), refused.text().await.unwrap()),
        (422, json!({"detail": "no"}).to_string())
    );
    assert_eq!(post("/v2/rerank").send().await.unwrap().status(), 200);

    let asked = rack.upstream.asked();
    let paths: Vec<&str> = asked.iter().map(|asked| asked.path.as_str()).collect();
    assert_eq!(paths, ["/v1/embeddings", "/v1/completions", "/v2/rerank"]);
    for asked in &asked {
        assert_eq!(asked.body, json!({"model": "m", "input": "a"}));
        assert!(
            asked.head.contains("authorization: bearer upstreams") && !asked.head.contains("sesame"),
            "{}",
            asked.head
        );
    }
    let keyless = rack.client.post(rack.url("/v1/embeddings")).json(&json!({})).send().await.unwrap();
    assert_eq!(keyless.status(), 401);
}

/// The list has it, and clients choose from the list for what is passed on as well.
#[tokio::test]
async fn n14_a_model_without_the_servers_tools_is_passed_on_under_its_own_name() {
    let rack = rack_before(None, [Reply::json(200, &json!({})), Reply::json(200, &json!({}))]).await;
    for (model, prompt) in [("scripted:plain", "a"), ("scripted", "b")] {
        let body = json!({"model": model, "prompt": prompt, "n": 1.50});
        let passed = rack.client.post(rack.url("/v1/completions")).json(&body).send().await.unwrap();
        assert_eq!(passed.status(), 200);
    }
    let asked: Vec<Value> = rack.upstream.asked().into_iter().map(|asked| asked.body).collect();
    let expected = |prompt: &str| json!({"model": "scripted", "prompt": prompt, "n": 1.5});
    assert_eq!(asked, [expected("a"), expected("b")]);
}

#[tokio::test]
async fn b13_a_stream_and_a_form_are_passed_on_as_they_are() {
    let go_on = std::sync::Arc::new(tokio::sync::Notify::new());
    let acts = vec![
        Act::Send(b"data: 1\n\n".to_vec()),
        Act::Wait(go_on.clone()),
        Act::Send(b"data: 2\n\n".to_vec()),
    ];
    let speech = Reply::body(200, "text/plain", "Hello.");
    let rack = Setup::new().start([Reply::stream(acts), speech]).await;
    let post = rack
        .client
        .post(rack.url("/v1/completions"))
        .json(&json!({"model": "m", "prompt": "a", "stream": true}));
    let mut stream = post.send().await.unwrap();
    assert_eq!(within(stream.chunk()).await.unwrap().unwrap(), "data: 1\n\n");
    go_on.notify_one();
    assert_eq!(within(stream.chunk()).await.unwrap().unwrap(), "data: 2\n\n");
    assert_eq!(within(stream.chunk()).await.unwrap(), None);

    let form =
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n";
    let post = rack.client.post(rack.url("/v1/audio/transcriptions"));
    let post = post.header(header::CONTENT_TYPE, "multipart/form-data; boundary=b").body(form);
    assert_eq!(post.send().await.unwrap().text().await.unwrap(), "Hello.");
    assert!(rack.upstream.asked()[1].head.contains("content-type: multipart/form-data; boundary=b"));
}

#[tokio::test]
async fn b13_what_a_model_server_cannot_answer_is_said() {
    // It refuses this server's key, falls silent, breaks off.
    let cut = Reply::stream([Act::Send(b"{".to_vec()), Act::Cut]);
    let replies = [Reply::error(401, "wrong key"), Reply::stream([Act::Stall]), cut];
    let rack = Setup::new().with(|setup| setup.idle = Duration::from_millis(300)).start(replies).await;
    let post = || rack.client.post(rack.url("/v1/embeddings")).json(&json!({"model": "m", "input": "a"}));
    let refused = post().send().await.unwrap();
    // No SDK sends a request with that status again.
    assert_eq!(refused.status(), 424);
    let error: Value = refused.json().await.unwrap();
    assert_eq!(error["error"]["message"], "the model server answered 401: wrong key");
    for _ in 0..2 {
        assert!(within(post().send().await.unwrap().bytes()).await.is_err(), "not whole");
    }
}

#[tokio::test]
async fn a28_what_a_model_server_answers_does_nothing_in_a_browser() {
    let kinds = [
        ("text/html", "application/octet-stream"),
        ("TEXT/HTML; charset=utf-8", "application/octet-stream"),
        ("application/xhtml+xml", "application/octet-stream"),
        ("image/svg+xml", "application/octet-stream"),
        ("text/javascript", "application/octet-stream"),
        ("application/json", "application/json"),
        ("audio/mpeg", "audio/mpeg"),
        ("text/vtt; charset=utf-8", "text/vtt; charset=utf-8"),
    ];
    let replies = kinds.map(|(sent, _)| Reply::body(200, sent, "<script>alert(1)</script>"));
    let rack = Setup::new().start(replies).await;
    for (sent, given) in kinds {
        let post = rack.client.post(rack.url("/v1/completions")).json(&json!({"model": "m", "prompt": "a"}));
        let answer = post.send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("content-type").as_deref(), Some(given), "{sent}");
        assert_eq!(header("content-disposition").is_some(), given == "application/octet-stream", "{sent}");
        let policy = header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
        assert_eq!(header("x-content-type-options").as_deref(), Some("nosniff"));
        assert_eq!(answer.text().await.unwrap(), "<script>alert(1)</script>");
    }
    // So it is with every answer that is no page.
    for path in ["/v1/models", "/api/tools", "/nothing/here"] {
        let answer = rack.client.get(rack.url(path)).send().await.unwrap();
        assert!(answer.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"), "{path}");
    }
    let page = rack.client.get(rack.url("/")).send().await.unwrap();
    assert!(!page.headers()["content-security-policy"].to_str().unwrap().contains("sandbox"));
}

#[tokio::test]
async fn b13_the_demo_model_passes_nothing_on() {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
    let settings = ServerSettings::new(
        Caller::new("ada", Permission::Owner),
        std::sync::Arc::new(MemoryStore::default()),
    );
    let app = router(backend, settings, CancellationToken::new()).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = toolrack_http::build_client(|| reqwest::Client::builder().no_proxy()).unwrap();
    for (path, message) in [("/v1/embeddings", "/error/message"), ("/api/embed", "/error")] {
        let body = json!({"model": "demo", "input": "a"});
        let refused = client.post(format!("http://{address}{path}")).json(&body).send().await.unwrap();
        assert_eq!(refused.status(), 501);
        let error: Value = refused.json().await.unwrap();
        let message = error.pointer(message).and_then(Value::as_str).unwrap();
        assert!(message.contains("--upstream URL"), "{message}");
    }
}

#[tokio::test]
async fn b13_geminis_vectors_are_made_by_the_embeddings_of_openai() {
    let vectors = json!({"data": [{"index": 1, "embedding": [3, 4]}, {"index": 0, "embedding": [1, 2]}]});
    let one = json!({"data": [{"index": 0, "embedding": [1, 2]}]});
    let rack =
        rack_before(None, [Reply::json(200, &vectors), Reply::json(200, &one), Reply::error(404, "no")])
            .await;
    let post = async |path: &str, body: &Value| -> (u16, Value) {
        let response = rack.client.post(rack.url(path)).json(body).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    };
    let content = |text: &str| json!({"parts": [{"text": text}]});
    let many = json!({"requests": [
        {"model": "models/org/e:8b", "content": content("a"), "outputDimensionality": 2},
        {"model": "models/org/e:8b", "content": content("b"), "outputDimensionality": 2},
    ]});
    let (status, reply) = post("/v1beta/models/org/e:8b:batchEmbedContents", &many).await;
    assert_eq!(
        (status, reply),
        (200, json!({"embeddings": [{"values": [1.0, 2.0]}, {"values": [3.0, 4.0]}]}))
    );
    let single = json!({"content": {"parts": [{"text": "a"}, {"text": "b"}]}, "taskType": "RETRIEVAL_QUERY"});
    let (status, reply) = post("/v1beta/models/e:embedContent", &single).await;
    assert_eq!((status, reply), (200, json!({"embedding": {"values": [1.0, 2.0]}})));
    let (status, error) = post("/v1beta/models/e:embedContent", &single).await;
    assert_eq!((status, &error["error"]["status"]), (404, &json!("NOT_FOUND")));
    for body in [json!({}), json!({"content": {"parts": [{"inlineData": {}}]}}), json!({"requests": []})] {
        let (status, error) = post("/v1beta/models/e:embedContent", &body).await;
        assert_eq!((status, &error["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{body}");
    }
    let asked = rack.upstream.asked();
    let sent = json!({"model": "org/e:8b", "input": ["a", "b"], "dimensions": 2, "encoding_format": "float"});
    assert_eq!((asked[0].path.as_str(), &asked[0].body), ("/v1/embeddings", &sent));
    assert_eq!(asked[1].body, json!({"model": "e", "input": ["a\nb"], "encoding_format": "float"}));
}

#[tokio::test]
async fn a7_the_name_of_a_model_is_bounded_wherever_a_request_names_one() {
    let rack = Setup::new().start([]).await;
    let long = "m".repeat(513);
    let named = |model: &str| json!({"model": model, "input": "a", "prompt": "a", "name": model});
    let gemini = json!({"content": {"parts": [{"text": "a"}]}});
    let document: Value =
        rack.client.get(rack.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let all = document["paths"].as_object().unwrap().iter();
    let passed = all.filter(|(_, methods)| {
        let post = &methods["post"];
        post["tags"][0] == "Passed on" && !post["requestBody"]["content"]["application/json"].is_null()
    });
    let mut tried: Vec<(String, Value)> = passed.map(|(path, _)| (path.clone(), named(&long))).collect();
    assert!(tried.len() > 5, "{tried:?}");
    for path in ["/api/embed", "/api/embeddings", "/api/show"] {
        tried.push((path.to_owned(), named(&long)));
    }
    tried.push((format!("/v1beta/models/{long}:embedContent"), gemini));
    for (path, body) in tried {
        let refused = rack.client.post(rack.url(&path)).json(&body).send().await.unwrap();
        let (status, error) = (refused.status().as_u16(), refused.text().await.unwrap());
        assert!(status == 400 && error.contains("longer than 512 bytes"), "{path}: {status} {error}");
    }
    assert!(rack.upstream.asked().is_empty());
}
