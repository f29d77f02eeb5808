//! `/openapi.json` says what the routes are, all of them, and bad requests are answered as it says.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use axum::Router;
use llm_bridge::{
    server::{Access, ServerSettings, router},
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};
use registry_core::{Caller, Permission, Registry, store::MemoryStore};
use reqwest::{Client, Method, Response, StatusCode, header};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::Chats;

fn routes(access: Access) -> Router {
    let registry = Registry::builder().without_compiled().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let settings = ServerSettings {
        access,
        grace: Duration::from_secs(1),
        chats: Some(Chats::in_memory()),
        ..ServerSettings::new(Caller::new("ada", Permission::Owner), store)
    };
    let backend = Backend::new(registry, Upstream::demo(), ChatSettings::default());
    router(backend, settings, CancellationToken::new()).unwrap()
}

struct Server {
    base: String,
    client: Client,
}

impl Server {
    async fn start(access: Access) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = routes(access);
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = toolrack_http::build_client(|| Client::builder().no_proxy()).unwrap();
        Self { base, client }
    }

    async fn ask(&self, method: Method, path: &str) -> Response {
        self.client.request(method, format!("{}{path}", self.base)).send().await.unwrap()
    }

    async fn document(&self) -> Value {
        self.ask(Method::GET, "/openapi.json").await.json().await.unwrap()
    }
}

/// Expects an error in the form of the path's API; its type, where it is of the common form.
async fn refused(response: Response, status: StatusCode) -> String {
    let about = format!("{}", response.url());
    assert_eq!(response.status(), status, "{about}");
    let body: Value = response.json().await.unwrap_or_else(|fault| panic!("{about}: {fault}"));
    let fields = |object: &Value| object.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (about, error) = (about.as_str(), &body["error"]);
    if about.contains("/v1/messages") {
        assert_eq!(body["type"], "error", "{about}: {body}");
        assert_eq!(fields(error)[..2], ["type", "message"], "{about}: {body}");
    } else if ["/v1beta/", "/v1alpha/"].iter().any(|version| about.contains(version))
        || about.contains("/v1/models/") && error["code"].is_number()
    {
        assert_eq!(error["code"], status.as_u16(), "{about}: {body}");
        assert!(error["status"].is_string() && error["message"].is_string(), "{about}: {body}");
    } else if OLLAMA.iter().any(|path| about.contains(path)) && !about.contains("/api/chats") {
        assert!(error.is_string(), "{about}: {body}");
    } else {
        assert_eq!(fields(error), ["message", "type", "param", "code"], "{about}");
        return error["type"].as_str().unwrap().to_owned();
    }
    OTHERS.to_owned()
}

/// The addresses of Ollama's API.
const OLLAMA: [&str; 7] =
    ["/api/chat", "/api/generate", "/api/tags", "/api/show", "/api/ps", "/api/version", "/api/embed"];

/// The type of an error in the form of an API whose types are its own.
const OTHERS: &str = "";

/// Expects an error of this type, where the API has the common ones.
#[track_caller]
fn expect_type(found: &str, expected: &str) {
    assert!(found == expected || found == OTHERS, "{found} is not {expected}");
}

/// The operations of the document: address, method, description.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item)| {
        let item: &Value = item;
        item.as_object().unwrap().iter().map(move |(method, says)| (path, method.as_str(), says))
    };
    paths.iter().map(|(path, item)| (path.as_str(), item)).flat_map(of_path).collect()
}

/// All values under a key, however deep.
fn under<'v>(key: &str, value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| under(key, item, found)),
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            found.extend(Some(member).filter(|_| name == key));
            under(key, member, found);
        }),
        _ => {}
    }
}

/// The addresses of a router, which says them only in its debug output: `{RouteId(0): "/execute", …}`.
fn addresses(router: &Router) -> BTreeSet<String> {
    let debug = format!("{router:?}");
    let texts = debug.split('"').skip(1).step_by(2);
    // Each route is there with a slash at its end, too.
    let is_route = |text: &&str| {
        text.starts_with('/') && !text.contains("__private__") && (*text == "/" || !text.ends_with('/'))
    };
    texts.filter(is_route).map(|text| text.replace("{*", "{")).collect()
}

#[tokio::test]
async fn every_route_is_in_the_document_with_its_methods() {
    let server = Server::start(Access::default()).await;
    let document = server.document().await;
    let mut described: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (path, method, _) in operations(&document) {
        described.entry(path).or_default().insert(method.to_uppercase());
    }
    let there = addresses(&routes(Access::default()));
    assert!(there.contains("/execute") && there.contains("/") && there.len() > 30, "{there:?}");
    assert_eq!(there, described.keys().map(|path| (*path).to_owned()).collect());
    for (path, mut methods) in described {
        // No route takes this method, and the answer says which it takes.
        // HEAD is a GET without the body.
        methods.extend(methods.contains("GET").then(|| "HEAD".to_owned()));
        let address = path.replace(['{', '}'], "");
        for address in [format!("{}/", address.trim_end_matches('/')), address] {
            let response = server.ask(Method::TRACE, &address).await;
            let allow = response.headers()[header::ALLOW].to_str().unwrap().to_owned();
            let taken: BTreeSet<String> = allow.split(',').map(|method| method.trim().to_owned()).collect();
            assert_eq!(taken, methods, "{address}");
            expect_type(&refused(response, StatusCode::METHOD_NOT_ALLOWED).await, "method_not_allowed");
        }
    }
}

#[tokio::test]
async fn the_document_is_openapi() {
    let document = Server::start(Access::default()).await.document().await;
    assert_eq!(document["openapi"], "3.1.0");
    // `utoipa` reads all but schemas, of which it knows only some keywords.
    let mut frame = document.clone();
    frame["components"].as_object_mut().unwrap().remove("schemas");
    serde_json::from_value::<utoipa::openapi::OpenApi>(frame).unwrap_or_else(|fault| panic!("{fault}"));
    let mut references = Vec::new();
    under("$ref", &document, &mut references);
    assert!(references.len() > 100);
    for reference in references {
        let place = reference.as_str().unwrap().strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{place} is nowhere");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let fault = jsonschema::draft202012::meta::validate(schema).err().map(|fault| fault.to_string());
        assert_eq!(fault, None, "{name}");
        // A number at the end is a second type of the same name.
        assert!(name.chars().all(|letter| letter.is_ascii_alphabetic()), "{name}");
    }
    let mut descriptions = Vec::new();
    under("description", &document, &mut descriptions);
    for text in descriptions.into_iter().filter_map(Value::as_str) {
        assert!(!text.contains("crate::") && !text.contains("[`"), "a link into the code: {text}");
    }
}

#[tokio::test]
async fn every_operation_says_what_it_takes_and_answers() {
    let document = Server::start(Access::default()).await.document().await;
    let tags: Vec<&Value> = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut ids = BTreeSet::new();
    for (path, method, says) in operations(&document) {
        let about = format!("{method} {path}");
        assert!(ids.insert(says["operationId"].as_str().unwrap()), "{about}");
        assert!(!says["summary"].as_str().unwrap().is_empty(), "{about}");
        assert!(tags.contains(&&says["tags"][0]), "{about}");
        let in_path = |parameter: &&Value| parameter["in"] == "path";
        let parameters = says["parameters"].as_array().unwrap().iter().filter(in_path);
        let named: Vec<&str> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        let wanted: Vec<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(named, wanted, "{about}");
        let statuses = says["responses"].as_object().unwrap();
        assert!(statuses.keys().any(|status| status.starts_with('2')), "{about}");
        let is_open = says.get("security").is_none();
        assert_eq!(is_open, !statuses.contains_key("401"), "{about}");
        assert_eq!(says.get("requestBody").is_some(), statuses.contains_key("415"), "{about}");
    }
}

#[tokio::test]
async fn what_the_document_says_of_keys_is_so() {
    let access = Access { api_key: Some("secret".into()), ..Access::default() };
    let server = Server::start(access).await;
    let document = server.document().await;
    for (path, method, says) in operations(&document) {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let response =
            server.ask(method, &path.replace("{file}", "any/main.js").replace(['{', '}'], "")).await;
        if says.get("security").is_some() {
            let challenge = &says["responses"]["401"]["headers"]["WWW-Authenticate"]["schema"]["pattern"];
            let sent = response.headers()[header::WWW_AUTHENTICATE].to_str().unwrap();
            assert_eq!(format!("^{sent}"), *challenge.as_str().unwrap(), "n10");
            expect_type(&refused(response, StatusCode::UNAUTHORIZED).await, "invalid_api_key");
        } else {
            assert!(response.status().is_success(), "{path}");
        }
    }
}

#[tokio::test]
async fn the_document_is_not_for_other_pages() {
    let server = Server::start(Access::default()).await;
    let with = |name, value| server.client.get(format!("{}/openapi.json", server.base)).header(name, value);
    let rebound = with(header::HOST, "evil.example").send().await.unwrap();
    assert_eq!(refused(rebound, StatusCode::MISDIRECTED_REQUEST).await, "host_not_allowed");
    let foreign = with(header::ORIGIN, "http://evil.example").send().await.unwrap();
    assert_eq!(refused(foreign, StatusCode::FORBIDDEN).await, "origin_not_allowed");
}

#[tokio::test]
async fn bad_requests_are_answered_in_one_form() {
    let server = Server::start(Access::default()).await;
    let document = server.document().await;
    for (path, method, says) in operations(&document).into_iter().filter(|(path, ..)| *path != "/mcp") {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        if path.contains('{') {
            let prefix = path.split('{').next().unwrap();
            let suffix = path.split('}').next_back().unwrap();
            let request =
                server.client.request(method.clone(), format!("{}{prefix}%FF{suffix}", server.base));
            let response = request.json(&json!({})).send().await.unwrap();
            expect_type(&refused(response, StatusCode::BAD_REQUEST).await, "invalid_request_error");
        }
        if says.get("requestBody").is_none() {
            continue;
        }
        let address = format!("{}{}", server.base, path.replace(['{', '}'], ""));
        let post = |body: &str, kind: &str| {
            // A page may send something else than JSON without being asked first.
            let request = server.client.post(&address).header(header::ORIGIN, &server.base);
            request.header(header::CONTENT_TYPE, kind).body(body.to_owned()).send()
        };
        let takes_json = says["requestBody"]["content"].get("application/json").is_some();
        // To serde an array can be a struct.
        let bodies =
            ["", "{", "null", "true", "[]", "[true]", "[true, \"no\"]", r#"["echo", {}]"#, "\"x\"", "7"];
        for body in bodies.into_iter().filter(|_| takes_json) {
            let response = post(body, "application/json").await.unwrap();
            expect_type(&refused(response, StatusCode::BAD_REQUEST).await, "invalid_request_error");
        }
        let response = post("{}", "text/plain").await.unwrap();
        expect_type(&refused(response, StatusCode::UNSUPPORTED_MEDIA_TYPE).await, "invalid_request_error");
    }
    for path in ["/nothing", "/api/tools/a/b", "/execute//", "//execute", "/%FF"] {
        assert_eq!(refused(server.ask(Method::GET, path).await, StatusCode::NOT_FOUND).await, "not_found");
    }
}
