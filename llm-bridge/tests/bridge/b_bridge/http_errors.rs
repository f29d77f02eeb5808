//! The HTTP server: what they refuse and in which form.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, Log, Rack, Reply, Scripted, Setup, user, within};

const CHAT: &str = "/v1/chat/completions";
const ROUTES: [(&str, &str); 11] = [
    ("GET", "/"),
    ("GET", "/icon.svg"),
    ("GET", "/page/any/main.js"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/health"),
    ("GET", "/v1/models"),
    ("GET", "/api/tools"),
    ("POST", "/execute"),
    ("POST", CHAT),
    ("GET", "/nothing"),
];

/// Sends a request and gives status and error object.
async fn send(rack: &Rack, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = rack.client.request(method.clone(), rack.url(path)).body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = within(request.send()).await.unwrap();
    let status = response.status();
    if status.is_success() || method == Method::HEAD {
        return (status.as_u16(), Value::Null);
    }
    let body: Value = response.json().await.expect("errors are JSON");
    let error = body["error"].clone();
    assert!(error["message"].is_string() && error["type"].is_string(), "{body}");
    assert!(error.get("param").is_some() && error.get("code").is_some(), "{body}");
    (status.as_u16(), error)
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn b2_what_cannot_be_understood_is_refused_with_the_field() {
    let rack = Setup::new().start([]).await;
    let messages = json!([user("Go.")]);
    for (body, param) in [
        ("{\"messages\":".to_owned(), json!("body")),
        (String::new(), json!("body")),
        ("[]".to_owned(), json!("body")),
        ("\u{fffd}".to_owned(), json!("body")),
        (json!({}).to_string(), json!("messages")),
        (json!({"messages": []}).to_string(), json!("messages")),
        (json!({"messages": ["x"]}).to_string(), json!("messages[0]")),
        (json!({"messages": messages, "n": 2}).to_string(), json!("n")),
        (json!({"messages": messages, "toolrack": {"level": "owner"}}).to_string(), json!("toolrack")),
    ] {
        let (status, error) = send(&rack, "POST", CHAT, &[JSON], &body).await;
        assert_eq!((status, &error["param"]), (400, &param), "{body}: {error}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    let body = json!({"messages": messages}).to_string();
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"]
    {
        assert_eq!(send(&rack, "POST", CHAT, &[("content-type", kind)], &body).await.0, 415, "{kind}");
    }
    assert_eq!(send(&rack, "POST", CHAT, &[], &body).await.0, 415);
    assert!(rack.upstream.asked().is_empty());
    rack.upstream.push(Answer::text("Hi."));
    let kind = ("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(send(&rack, "POST", CHAT, &[kind], &body).await.0, 200);
}

#[tokio::test]
async fn b2_every_error_has_the_form_of_the_api() {
    let rack = Setup::new().start([]).await;
    for (method, path, body, status) in [
        ("GET", "/v1/nothing", "", 404),
        ("POST", "/nothing", "", 404),
        ("GET", CHAT, "", 405),
        ("DELETE", "/v1/models", "", 405),
        ("POST", "/", "", 405),
        ("OPTIONS", CHAT, "", 405),
        ("POST", "/execute", "{", 400),
        ("POST", "/execute", "{\"tool_name\": 3}", 400),
    ] {
        assert_eq!(send(&rack, method, path, &[JSON], body).await.0, status, "{method} {path}");
    }
    assert_eq!(send(&rack, "POST", "/execute", &[("content-type", "text/plain")], "{}").await.0, 415);
    let huge = format!("{{\"x\": \"{}\"}}", "x".repeat(33 << 20));
    let (status, error) = send(&rack, "POST", CHAT, &[JSON], &huge).await;
    assert_eq!(status, 413);
    assert!(error["message"].as_str().unwrap().contains("32 MiB"), "{error}");
    assert_eq!(send(&rack, "POST", "/execute", &[JSON], &huge).await.0, 413);
}

#[tokio::test]
async fn b2_the_page_and_the_health_need_no_key() {
    let rack = Setup::new().with(|setup| setup.access.api_key = Some("secret".into())).start([]).await;
    for path in ["/", "/icon.svg", "/page/any/main.js", "/healthz", "/health", "/readyz"] {
        assert_eq!(send(&rack, "HEAD", path, &[], "").await.0, 200, "{path}");
    }
    assert_eq!(send(&rack, "HEAD", "/v1/models", &[], "").await.0, 401);
}

#[tokio::test]
async fn b2_an_address_without_v1_is_suspected() {
    let upstream = Scripted::start([Reply::error(404, "no such page")]).await;
    let base = upstream.base().trim_end_matches("/v1").to_owned();
    let rack = Setup::new().start_before(upstream, &base).await;
    let body = json!({"model": "m", "messages": [user("Go.")]}).to_string();
    let (status, error) = send(&rack, "POST", CHAT, &[JSON], &body).await;
    assert_eq!(status, 404);
    assert!(error["message"].as_str().unwrap().contains("end in /v1?"), "{error}");
}

#[tokio::test]
async fn b2_other_hosts_and_pages_are_kept_out_of_every_route() {
    let rack =
        Setup::new().with(|setup| setup.access.allowed_hosts = vec!["rack.lan".into()]).start([]).await;
    let port = rack.address.port();
    let our_page = format!("http://{}", rack.address);
    for (method, path) in ROUTES {
        for host in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "evil.example:7331"]
        {
            let (status, error) = send(&rack, method, path, &[("host", host), JSON], "{}").await;
            assert_eq!((status, &error["type"]), (421, &json!("host_not_allowed")), "{path} as {host}");
        }
        for origin in ["http://evil.example", "null", "https://localhost", "file://", "http://127.0.0.1:1"] {
            let (status, error) = send(&rack, method, path, &[("origin", origin), JSON], "{}").await;
            // The page's frame for diagrams has no origin, and reads the page's files.
            if origin == "null" && path.starts_with("/page/") {
                assert_eq!(status, 200, "{path} from {origin}");
                continue;
            }
            assert_eq!((status, &error["type"]), (403, &json!("origin_not_allowed")), "{path} from {origin}");
        }
        for headers in [
            vec![("host", format!("localhost:{port}"))],
            vec![("host", "rack.lan".to_owned())],
            vec![("host", format!("[::1]:{port}"))],
            vec![("origin", our_page.clone())],
            vec![("host", "rack.lan:80".to_owned()), ("origin", "https://rack.lan:80".to_owned())],
        ] {
            let headers: Vec<(&str, &str)> =
                headers.iter().map(|(name, value)| (*name, value.as_str())).chain([JSON]).collect();
            let (status, _) = send(&rack, method, path, &headers, "{}").await;
            assert!(!matches!(status, 403 | 421), "{path} with {headers:?}: {status}");
        }
    }
}

/// The browser shows neither status nor text to whoever tries it.
#[tokio::test]
async fn b2_a_page_that_is_refused_is_in_the_log_once() {
    let log = Log::start();
    let rack = Setup::new().start([]).await;
    for _ in 0..2 {
        let refused = send(&rack, "POST", CHAT, &[("origin", "app://a-new-page"), JSON], "{}").await;
        assert_eq!(refused.0, 403);
    }
    let text = log.text();
    assert_eq!(text.matches("app://a-new-page").count(), 1, "{text}");
    assert!(text.contains("WARN") && text.contains("`allowed_origins`"), "{text}");
}

#[tokio::test]
async fn b2_a_key_is_asked_for_where_something_can_be_done() {
    let rack = Setup::new().with(|setup| setup.access.api_key = Some("secret".into())).start([]).await;
    for (method, path) in ROUTES {
        let open = matches!(
            path,
            "/" | "/icon.svg" | "/page/any/main.js" | "/healthz" | "/health" | "/readyz" | "/nothing"
        );
        for wrong in ["", "Bearer ", "Bearer secre", "Bearer secret2", "Basic secret", "secret"] {
            let (status, _) = send(&rack, method, path, &[("authorization", wrong), JSON], "{}").await;
            assert_eq!(status == 401, !open, "{path} with `{wrong}`: {status}");
        }
        for right in ["Bearer secret", "bearer secret"] {
            let (status, _) = send(&rack, method, path, &[("authorization", right), JSON], "{}").await;
            assert_ne!(status, 401, "{path} with `{right}`");
        }
    }
}

#[tokio::test]
async fn b2_models_and_health_are_told() {
    let rack = Setup::new().start([]).await;
    let get = async |path: &str| -> (StatusCode, Value) {
        let response = rack.client.get(rack.url(path)).send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    };
    let (status, models) = get("/v1/models").await;
    assert_eq!((status, &models["data"][0]["id"]), (StatusCode::OK, &json!("scripted")));
    let (status, health) = get("/healthz").await;
    assert_eq!((status, &health["status"], &health["tools"]), (StatusCode::OK, &json!("ok"), &json!(2)));
    let (status, tools) = get("/api/tools").await;
    assert_eq!((status, tools["tools"].as_array().unwrap().len()), (StatusCode::OK, 2));
}

#[tokio::test]
async fn b2_the_key_of_the_model_server_goes_with_every_request() {
    let rack = Setup::new()
        .with(|setup| setup.upstream_key = Some("k".into()))
        .start([Answer::text("Hi.").into()])
        .await;
    rack.ask(true).await.expect("Hi.");
    assert!(rack.upstream.asked()[0].head.contains("authorization: bearer k\r\n"));
}
