//! Where a key may be, what it opens and what says that there is none: rows N6, N10, N11 and N16.

use std::{
    io::Write,
    sync::{Arc, Mutex, PoisonError},
};

use llm_bridge::server::Access;
use registry_core::Permission;
use reqwest::{Method, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing_subscriber::fmt::MakeWriter;

use crate::{support, t_access::Rack};

/// The headers in which clients send nothing but the key.
const HEADERS: [&str; 3] = ["x-api-key", "api-key", "x-goog-api-key"];
const INITIALIZE: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
    "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}"#;

async fn locked() -> Rack {
    Rack::start(Access { api_key: Some("sesame".into()), ..Access::default() }).await
}

fn ask(rack: &Rack, method: Method, path: &str) -> RequestBuilder {
    rack.client.request(method, format!("{}{path}", rack.base))
}

/// The status of a request, and the message of its error.
async fn refusal(request: RequestBuilder) -> (StatusCode, String) {
    let response = request.send().await.unwrap();
    let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
    (status, body["error"]["message"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned())
}

fn initialize(rack: &Rack, path: &str) -> RequestBuilder {
    ask(rack, Method::POST, path)
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::CONTENT_TYPE, "application/json")
        .body(INITIALIZE)
}

#[tokio::test]
async fn n16_every_route_reads_a_key_wherever_clients_send_it() {
    let rack = locked().await;
    let document: Value =
        ask(&rack, Method::GET, "/openapi.json").send().await.unwrap().json().await.unwrap();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let Some(security) = operation["security"].as_array() else { continue };
            let schemes: Vec<&str> = security
                .iter()
                .flat_map(|scheme| scheme.as_object().unwrap().keys())
                .map(String::as_str)
                .collect();
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let path = path.replace(['{', '}'], "");
            for scheme in &schemes {
                let scheme = &document["components"]["securitySchemes"][scheme];
                for (key, is_right) in [("sesame", true), ("sesam", false)] {
                    let request = ask(&rack, method.clone(), &path);
                    let request = match (scheme["in"].as_str(), scheme["name"].as_str()) {
                        (None, None) => request.bearer_auth(key),
                        (Some("header"), Some(name)) => request.header(name, key),
                        (Some("query"), Some(name)) => request.query(&[(name, key)]),
                        _ => panic!("{scheme}"),
                    };
                    let status = request.send().await.unwrap().status();
                    assert_eq!(status != StatusCode::UNAUTHORIZED, is_right, "{method} {path} {scheme}");
                    seen += 1;
                }
            }
            assert!(HEADERS.iter().chain(&["key"]).all(|name| schemes.contains(name)), "{path}: {schemes:?}");
            assert_eq!(
                schemes.contains(&"key-parameter"),
                ["/v1/models", "/v1beta", "/v1alpha"].iter().any(|begin| path.starts_with(begin)),
                "{path}"
            );
        }
    }
    assert!(seen > 200, "{seen}");
    // Elsewhere a query parameter of this name is no key.
    let status = ask(&rack, Method::GET, "/api/tools?key=sesame").send().await.unwrap().status();
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn n16_of_keys_that_differ_the_first_counts() {
    let rack = Rack::start(Access { key_required: true, ..Access::default() }).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let bob = rack.user("default", "bob", Permission::User).await;
    let user = async |headers: &[(&str, &str)]| {
        let request = ask(&rack, Method::POST, "/execute").json(&json!({"tool_name": "echo"}));
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let reply: Value = request.send().await.unwrap().json().await.unwrap();
        reply["result"]["user"].as_str().map(str::to_owned)
    };
    let bearer = format!("Bearer {ada}");
    assert_eq!(user(&[("x-api-key", &bob), ("authorization", &bearer)]).await.as_deref(), Some("ada"));
    assert_eq!(user(&[("api-key", &ada), ("x-api-key", &bob)]).await.as_deref(), Some("bob"));
    assert_eq!(user(&[("x-goog-api-key", &bob), ("api-key", &ada)]).await.as_deref(), Some("ada"));
    // What a proxy wants is no key of this server.
    assert_eq!(user(&[("authorization", "Basic eA=="), ("api-key", &ada)]).await.as_deref(), Some("ada"));
    assert_eq!(user(&[("authorization", "Bearer none"), ("x-api-key", &ada)]).await, None);
}

/// What is logged, at all levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn n16_a_key_in_the_query_reaches_no_log_and_no_error() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::TRACE);
    // The server runs on the thread of the test.
    let _logging = tracing::subscriber::set_default(subscriber.with_writer(log.clone()).finish());
    let rack = locked().await;
    for (method, path, key, status) in [
        ("GET", "/v1/models", "sesame", "200"),
        ("GET", "/v1/models/", "sesame", "200"),
        ("GET", "/v1/models", "trk_geheim", "401"),
        ("PUT", "/v1/models", "sesame", "405"),
        ("POST", "/v1beta/models/m:nothing", "sesame", "415"),
        ("POST", "/v1beta/nothing", "sesame", "404"),
    ] {
        let mut stream =
            tokio::net::TcpStream::connect(rack.base.trim_start_matches("http://")).await.unwrap();
        let request = format!(
            "{method} {path}?alt=sse&key={key} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        assert!(!answer.contains(key), "{answer}");
    }
    tracing::info!("the log is written");
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("the log is written"));
    assert!(!logged.contains("sesame") && !logged.contains("geheim"), "{logged}");
}

#[tokio::test]
async fn n10_who_has_no_key_gets_a_challenge() {
    let rack = locked().await;
    for path in ["/v1/models", "/api/tools", "/mcp"] {
        let response = ask(&rack, Method::GET, path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer realm=\"toolrack\"", "{path}");
    }
    let right = ask(&rack, Method::GET, "/v1/models").bearer_auth("sesame").send().await.unwrap();
    assert!(!right.headers().contains_key(header::WWW_AUTHENTICATE));
}

#[tokio::test]
async fn n10_the_end_of_a_session_is_answered_as_clients_expect() {
    let rack = Rack::start(Access::default()).await;
    let opened = initialize(&rack, "/mcp").send().await.unwrap();
    let session = opened.headers()["mcp-session-id"].clone();
    let ended = ask(&rack, Method::DELETE, "/mcp").header("mcp-session-id", session.clone());
    let ended = ended.send().await.unwrap();
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    assert_eq!(ended.text().await.unwrap(), "");
    let late = ask(&rack, Method::POST, "/mcp")
        .header("mcp-session-id", session)
        .header(header::ACCEPT, "application/json, text/event-stream")
        .json(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    assert_eq!(late.send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn n11_a_valid_key_makes_the_host_irrelevant() {
    const CALLED: &str = "host.docker.internal:7331";
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let from = |path: &str| ask(&rack, Method::GET, path).header(header::HOST, CALLED);
    let (status, message) = refusal(from("/v1/models")).await;
    assert_eq!(status, StatusCode::MISDIRECTED_REQUEST);
    assert!(message.contains("a valid key") && message.contains("`allowed_hosts`"), "{message}");
    for wrong in ["none", "trk_00", &ada[..ada.len() - 1]] {
        assert_eq!(refusal(from("/v1/models").bearer_auth(wrong)).await.0, StatusCode::MISDIRECTED_REQUEST);
    }
    for path in ["/v1/models", "/api/tools", "/healthz", "/"] {
        assert_eq!(from(path).bearer_auth(&ada).send().await.unwrap().status(), StatusCode::OK, "{path}");
        for name in HEADERS {
            assert_eq!(
                from(path).header(name, &ada).send().await.unwrap().status(),
                StatusCode::OK,
                "{path}"
            );
        }
    }
    // A page with a key, at the name by which it was loaded.
    let own = from("/v1/models").header(header::ORIGIN, format!("http://{CALLED}")).bearer_auth(&ada);
    assert_eq!(own.send().await.unwrap().status(), StatusCode::OK);
    let other = from("/v1/models").header(header::ORIGIN, "http://evil.example").bearer_auth(&ada);
    assert_eq!(other.send().await.unwrap().status(), StatusCode::FORBIDDEN);

    let rack = locked().await;
    let from =
        |key: &str| ask(&rack, Method::GET, "/v1/models").header(header::HOST, CALLED).bearer_auth(key);
    assert_eq!(from("sesame").send().await.unwrap().status(), StatusCode::OK);
    assert_eq!(from("sesamf").send().await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn n6_a_slash_at_the_end_makes_no_difference() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    for path in ["/v1/models/", "/api/tools/", "/healthz/", "/icon.svg/", "/v1/models/?key=none"] {
        assert_eq!(ask(&rack, Method::GET, path).send().await.unwrap().status(), StatusCode::OK, "{path}");
    }
    let call = json!({"tool_name": "echo"});
    let reply: Value = rack.post("/execute/", &ada, &call).send().await.unwrap().json().await.unwrap();
    assert_eq!(reply["result"]["user"], "ada");
    let chat = json!({"messages": [{"role": "user", "content": "Hello."}]});
    assert_eq!(
        rack.post("/v1/chat/completions/", &ada, &chat).send().await.unwrap().status(),
        StatusCode::OK
    );
    let opened = initialize(&rack, "/mcp/").send().await.unwrap();
    assert!(opened.headers().contains_key("mcp-session-id"), "{}", opened.status());
    let locked = locked().await;
    assert_eq!(refusal(ask(&locked, Method::GET, "/api/tools/")).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn n6_errors_name_the_routes_that_there_are() {
    let rack = Rack::start(Access::default()).await;
    for (path, near) in [
        ("/chat/completions", "`POST /v1/chat/completions`"),
        ("/v1/chat/completion/", "`POST /v1/chat/completions`"),
        ("/models", "`GET /v1/models`"),
        ("/v1/v1/models", "`GET /v1/models`"),
        ("/api/tool", "`GET, POST /api/tools`"),
        ("/mpc", "`POST, GET, DELETE /mcp`"),
    ] {
        let (status, message) = refusal(ask(&rack, Method::POST, path)).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(message.contains(near) && message.contains("/openapi.json"), "{path}: {message}");
        assert!(message.len() < 300, "{message}");
    }
    for far in ["/zzz".to_owned(), format!("/v1/models{}", "x".repeat(10_000))] {
        let (status, message) = refusal(ask(&rack, Method::GET, &far)).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert_eq!(message, "there is nothing at this path; `/openapi.json` has all routes");
    }
    for (method, path, says) in [
        (Method::GET, "/v1/chat/completions", "`/v1/chat/completions` takes POST, not GET"),
        (Method::DELETE, "/api/tools/", "`/api/tools` takes GET, POST, not DELETE"),
        (Method::PUT, "/api/tools/echo", "`/api/tools/{name}` takes POST, DELETE, not PUT"),
        (Method::POST, "/", "`/` takes GET, not POST"),
    ] {
        let (status, message) = refusal(ask(&rack, method, path)).await;
        assert_eq!((status, message.as_str()), (StatusCode::METHOD_NOT_ALLOWED, says));
    }
}

#[tokio::test]
async fn n10_a_user_has_so_many_mcp_sessions_and_others_have_theirs() {
    let rack = Rack::start(Access::default()).await;
    let (ada, bob) = (
        rack.user("default", "ada", Permission::User).await,
        rack.user("default", "bob", Permission::User).await,
    );
    let open = async |key: &str| initialize(&rack, "/mcp").bearer_auth(key).send().await.unwrap();
    let mut last = open(&ada).await;
    for _ in 1..500 {
        last = open(&ada).await;
        assert_eq!(last.status(), StatusCode::OK);
    }
    let refused = open(&ada).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["type"], "too_many_sessions");
    assert_eq!(open(&bob).await.status(), StatusCode::OK);
    let id = last.headers().get("mcp-session-id").unwrap();
    let close = ask(&rack, Method::DELETE, "/mcp").bearer_auth(&ada).header("mcp-session-id", id);
    assert!(close.send().await.unwrap().status().is_success());
    assert_eq!(open(&ada).await.status(), StatusCode::OK, "one of them is closed");
}

#[tokio::test]
async fn n10_a_user_has_no_more_mcp_sessions_by_opening_them_at_once() {
    let rack = Rack::start(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    for _ in 0..495 {
        assert_eq!(
            initialize(&rack, "/mcp").bearer_auth(&ada).send().await.unwrap().status(),
            StatusCode::OK
        );
    }
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ada}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        INITIALIZE.len()
    );
    // All of them are asked for before the first is opened.
    let mut asked = Vec::new();
    for _ in 0..10 {
        let mut connection =
            tokio::net::TcpStream::connect(rack.base.strip_prefix("http://").unwrap()).await.unwrap();
        connection.write_all(head.as_bytes()).await.unwrap();
        asked.push(connection);
    }
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let mut opened = 0;
    for connection in &mut asked {
        // A refused one may be closed already.
        let _ = connection.write_all(INITIALIZE.as_bytes()).await;
        let mut status = [0; 12];
        connection.read_exact(&mut status).await.unwrap();
        opened += u32::from(status.ends_with(b" 200"));
    }
    assert_eq!(opened, 5);
}

#[tokio::test]
async fn b7_what_opens_a_session_is_small() {
    let rack = Rack::start(Access::default()).await;
    let name = |length: usize| {
        INITIALIZE.replace(
            "\"capabilities\": {}",
            &format!("\"capabilities\": {{\"x\": \"{}\"}}", "x".repeat(length)),
        )
    };
    let opened = initialize(&rack, "/mcp").body(name(60 << 10)).send().await.unwrap();
    assert_eq!(opened.status(), StatusCode::OK);
    let refused = initialize(&rack, "/mcp").body(name(64 << 10)).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let said: Value = refused.json().await.unwrap();
    assert_eq!(said["error"]["message"], "the first message of a session is larger than the limit of 64 KiB");
}

#[tokio::test]
async fn a34_a_large_message_to_mcp_is_refused_or_holds_up_nobody() {
    let rack = Rack::start(Access::default()).await;
    let opened = initialize(&rack, "/mcp").body(INITIALIZE).send().await.unwrap();
    let session = opened.headers()["mcp-session-id"].clone();
    let message = |values: &str| {
        format!(
            r#"{{"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {{"_meta": {{"x": {values}}}}}}}"#
        )
    };
    let list = |many: usize| message(&format!("[{}]", vec!["1"; many].join(",")));
    let send =
        |body: String| initialize(&rack, "/mcp").header("mcp-session-id", session.clone()).body(body).send();
    let refused = async |body: String| {
        let response = send(body).await.unwrap();
        let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
        (status, body["error"]["message"].as_str().unwrap().to_owned())
    };
    let long = message(&format!("\"{}\"", "x".repeat(4 << 20)));
    let too_large = "the message is larger than the limit of 4 MiB".to_owned();
    assert_eq!(refused(long).await, (StatusCode::PAYLOAD_TOO_LARGE, too_large));
    let too_many = "the request has more than 500000 values; send less at once".to_owned();
    assert_eq!(refused(list(500_000)).await, (StatusCode::BAD_REQUEST, too_many));
    // The server runs on this thread, too: what held it up would come first.
    let large = tokio::spawn(send(list(400_000)));
    let mut healthy = 0;
    while !large.is_finished() {
        let health = rack.client.get(format!("{}/healthz", rack.base)).send();
        assert_eq!(health.await.unwrap().status(), StatusCode::OK);
        healthy += 1;
    }
    let answered = large.await.unwrap().unwrap();
    assert_eq!(answered.status(), StatusCode::OK);
    assert!(healthy > 3, "it held up others");
}

#[tokio::test]
async fn the_key_of_the_metrics_opens_them_and_nothing_else() {
    for api_key in [None, Some("sesame".to_owned())] {
        let access = Access { api_key, metrics_key: Some("scrape".into()), ..Access::default() };
        let rack = Rack::start(access).await;
        let get = async |path: &str, key: &str| {
            let request =
                ask(&rack, Method::GET, path).bearer_auth(key).header(header::HOST, "toolrack.lan:1");
            request.send().await.unwrap()
        };
        let scraped = get("/metrics", "scrape").await;
        assert_eq!(scraped.status(), StatusCode::OK);
        assert!(scraped.text().await.unwrap().contains("toolrack_"));
        for path in ["/api/tools", "/api/account", "/v1/models", "/api/audit"] {
            assert_eq!(get(path, "scrape").await.status(), StatusCode::UNAUTHORIZED, "{path}");
        }
        let guest = rack.user("default", "guest", Permission::Guest).await;
        assert_eq!(get("/metrics", &guest).await.status(), StatusCode::FORBIDDEN);
        let nobody = ask(&rack, Method::GET, "/metrics").bearer_auth("scrap3").send().await.unwrap();
        let open = rack.client.get(format!("{}/metrics", rack.base)).send().await.unwrap();
        assert_eq!(nobody.status(), open.status());
    }
}

#[tokio::test]
async fn b21_keys_that_are_refused_are_in_the_log_by_their_beginning_and_not_all_of_them() {
    let (log, rack) = (support::Log::start(), locked().await);
    let ask = async |key: &str| {
        let asked = ask(&rack, Method::GET, "/v1/models").bearer_auth(key);
        assert_eq!(refusal(asked).await.0, StatusCode::UNAUTHORIZED);
    };
    ask("trk_abcdefghijkl").await;
    ask("sk-of-another-service").await;
    for number in 0..20 {
        ask(&format!("trk_{number:08}secret")).await;
    }
    let text = log.text();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("key_refused")).collect();
    assert_eq!(lines.len(), 10, "{text}");
    assert!(lines[0].contains("trk_abcd…") && lines[1].contains("not of this server"), "{text}");
    for secret in ["efgh", "another-service", "secret"] {
        assert!(!text.contains(secret), "{text}");
    }
}
