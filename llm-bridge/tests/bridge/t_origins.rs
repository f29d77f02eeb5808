//! Pages of other origins, as a browser sends their requests: rows N11 and G20.

use std::collections::BTreeSet;

use llm_bridge::server::Access;
use registry_core::Permission;
use reqwest::{Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::t_access::Rack;

const ALLOWED: [&str; 5] = [
    "http://localhost:3000",
    "app://obsidian.md",
    "chrome-extension://abcdefghijklmnop",
    "vscode-webview://*",
    "null",
];

/// A server that lets these origins in.
async fn rack(access: Access) -> Rack {
    let allowed_origins = ALLOWED.iter().map(|origin| origin.parse().unwrap()).collect();
    Rack::start(Access { allowed_origins, ..access }).await
}

fn words(response: &Response, name: &str) -> BTreeSet<String> {
    let values = response.headers().get_all(name).iter();
    let words = values.flat_map(|value| value.to_str().unwrap().split(','));
    words.map(|word| word.trim().to_ascii_lowercase()).collect()
}

/// A page in a browser, by the fetch standard.
struct Page<'r> {
    rack: &'r Rack,
    origin: &'static str,
    /// The name by which it calls the server.
    host: Option<&'static str>,
}

impl<'r> Page<'r> {
    fn of(origin: &'static str, rack: &'r Rack) -> Self {
        Self { rack, origin, host: None }
    }

    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let request = self.rack.client.request(method, format!("{}{path}", self.rack.base));
        let host = self.host.map(|host| ("host", host));
        let headers = headers.iter().copied().chain([("origin", self.origin)]).chain(host);
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        request.body(body.to_owned()).send().await.unwrap()
    }

    /// Whether the browser hands the answer to the page.
    fn may_read(&self, response: &Response) -> bool {
        response
            .headers()
            .get(header::ACCESS_CONTROL_ALLOW_ORIGIN)
            .is_some_and(|origin| origin == self.origin)
    }

    async fn preflight(&self, method: &Method, path: &str, headers: &[(&str, &str)]) -> Response {
        let names: BTreeSet<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(",");
        let asked =
            [("access-control-request-method", method.as_str()), ("access-control-request-headers", &names)];
        self.send(Method::OPTIONS, path, &asked, "").await
    }

    /// The answer, if the browser sends the request and the page may read it.
    async fn fetch(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response, String> {
        let preflight = self.preflight(&method, path, headers).await;
        let allowed = words(&preflight, "access-control-allow-headers");
        let methods = words(&preflight, "access-control-allow-methods");
        let is_passed = preflight.status().is_success()
            && self.may_read(&preflight)
            && methods.contains(&method.as_str().to_ascii_lowercase())
            && headers.iter().all(|(name, _)| allowed.contains(*name));
        if !is_passed {
            return Err(format!("preflight: {preflight:?}"));
        }
        let response = self.send(method, path, headers, body).await;
        if self.may_read(&response) { Ok(response) } else { Err(format!("request: {response:?}")) }
    }
}

/// What the SDKs send besides the key.
const OF_SDKS: [(&str, &str); 12] = [
    ("content-type", "application/json"),
    ("anthropic-version", "2023-06-01"),
    ("anthropic-beta", "tools"),
    ("anthropic-dangerous-direct-browser-access", "true"),
    ("x-goog-api-client", "genai-js"),
    ("openai-organization", "o"),
    ("openai-beta", "assistants=v2"),
    ("x-stainless-lang", "js"),
    ("x-stainless-retry-count", "0"),
    ("mcp-protocol-version", "2025-06-18"),
    ("x-toolrack-hops", "0"),
    ("accept", "application/json, text/event-stream"),
];
const CALL: &str = r#"{"tool_name": "echo"}"#;

#[tokio::test]
async fn n11_a_page_of_an_allowed_origin_uses_the_server() {
    let rack = rack(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let bearer = format!("Bearer {ada}");
    for origin in [ALLOWED[0], ALLOWED[1], ALLOWED[2], "vscode-webview://1a2b3c", ALLOWED[4]] {
        let page = Page::of(origin, &rack);
        for key in [("authorization", bearer.as_str()), ("x-api-key", &ada), ("x-goog-api-key", &ada)] {
            let headers: Vec<_> = OF_SDKS.into_iter().chain([key]).collect();
            let reply = page.fetch(Method::POST, "/execute", &headers, CALL).await.unwrap();
            assert!(words(&reply, "vary").contains("origin"), "{reply:?}");
            assert_eq!(reply.json::<Value>().await.unwrap()["result"]["user"], "ada", "{origin}");
        }
        // Without a key it is the configured user.
        let reply = page.fetch(Method::POST, "/execute", &OF_SDKS, CALL).await.unwrap();
        assert_eq!(reply.json::<Value>().await.unwrap()["result"]["user"], "local", "{origin}");
        // A persona that nobody has: the error of the server, not of the browser.
        let persona = [("x-toolrack-persona", "nobody")];
        let refused = page.fetch(Method::GET, "/api/tools", &persona, "").await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn n11_a_page_reads_errors_and_the_headers_that_it_needs() {
    let rack = rack(Access { key_required: true, ..Access::default() }).await;
    let page = Page::of(ALLOWED[0], &rack);
    for (method, path, status) in [
        (Method::GET, "/v1/models", StatusCode::UNAUTHORIZED),
        (Method::GET, "/nothing", StatusCode::NOT_FOUND),
        (Method::PUT, "/healthz", StatusCode::METHOD_NOT_ALLOWED),
        (Method::GET, "/healthz", StatusCode::OK),
    ] {
        let response = page.fetch(method, path, &[], "").await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        let exposed = words(&response, "access-control-expose-headers");
        for name in ["mcp-session-id", "retry-after", "www-authenticate", "x-request-id"] {
            assert!(exposed.contains(name), "{name}: {exposed:?}");
        }
        // No cookie is of use here.
        assert!(!response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS));
    }
}

#[tokio::test]
async fn n11_a_page_with_a_key_calls_the_server_by_any_name() {
    let rack = rack(Access::default()).await;
    let ada = rack.user("default", "ada", Permission::User).await;
    let page = Page { host: Some("host.docker.internal:7331"), ..Page::of(ALLOWED[0], &rack) };
    let headers = [("x-api-key", ada.as_str()), ("content-type", "application/json")];
    let reply = page.fetch(Method::POST, "/execute", &headers, CALL).await.unwrap();
    assert_eq!(reply.json::<Value>().await.unwrap()["result"]["user"], "ada");
    let refused = page.fetch(Method::POST, "/execute", &headers[1..], CALL).await.unwrap();
    assert_eq!(refused.status(), StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn g20_a_page_of_another_origin_is_refused() {
    for rack in [rack(Access::default()).await, Rack::start(Access::default()).await] {
        let ada = rack.user("default", "ada", Permission::User).await;
        for origin in
            ["http://evil.example", "http://localhost:3001", "https://localhost:3000", "app://other"]
        {
            let page = Page::of(origin, &rack);
            let headers = [("x-api-key", ada.as_str()), ("content-type", "application/json")];
            let asked = page.preflight(&Method::POST, "/execute", &headers).await;
            let sent = page.send(Method::POST, "/execute", &headers, CALL).await;
            for response in [asked, sent] {
                assert!(!page.may_read(&response), "{response:?}");
                assert_eq!(response.status(), StatusCode::FORBIDDEN, "{origin}");
                let error: Value = response.json().await.unwrap();
                assert_eq!(error["error"]["type"], "origin_not_allowed");
                assert!(error["error"]["message"].as_str().unwrap().contains("`allowed_origins`"), "{error}");
            }
        }
        // No call was made.
        assert!(rack.audit.records().is_empty());
    }
}

#[tokio::test]
async fn g20_without_the_setting_no_answer_is_for_other_pages() {
    let rack = Rack::start(Access::default()).await;
    for (method, status) in [(Method::GET, StatusCode::OK), (Method::OPTIONS, StatusCode::METHOD_NOT_ALLOWED)]
    {
        let request = rack.client.request(method, format!("{}/v1/models", rack.base));
        let own = request.header(header::ORIGIN, &rack.base).send().await.unwrap();
        assert_eq!(own.status(), status);
        let given = own.headers().keys().filter(|name| name.as_str().starts_with("access-control"));
        assert_eq!(given.count(), 0, "{:?}", own.headers());
    }
}

#[tokio::test]
async fn n11_a_page_of_an_allowed_origin_has_an_mcp_session() {
    let rack = rack(Access::default()).await;
    let page = Page::of("vscode-webview://1a2b3c", &rack);
    let common = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2025-06-18"),
    ];
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"},
    }});
    let opened = page.fetch(Method::POST, "/mcp", &common, &message.to_string()).await.unwrap();
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let headers: Vec<_> = common.into_iter().chain([("mcp-session-id", session.as_str())]).collect();
    let ended = page.fetch(Method::DELETE, "/mcp", &headers, "").await.unwrap();
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn n11_a_request_that_names_two_hosts_is_refused() {
    let rack = rack(Access::default()).await;
    let address = rack.base.strip_prefix("http://").unwrap();
    let status = async |hosts: &str| {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer.get(..12).unwrap_or_default().to_owned()
    };
    assert_eq!(status("Host: localhost\r\n").await, "HTTP/1.1 200");
    for hosts in ["Host: localhost\r\nHost: other\r\n", "Host: localhost\r\nhost: localhost\r\n"] {
        assert_eq!(status(hosts).await, "HTTP/1.1 400", "{hosts}");
    }
}
