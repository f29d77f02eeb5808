//! Authorization servers that are not as the protocol has them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use axum::{
    Json, Router,
    extract::Request,
    http::{Method, StatusCode},
    response::{Html, IntoResponse, Response},
    routing::post,
};
use registry_core::store::MemoryStore;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolrack_remote::mcp::{
    McpServerSettings,
    oauth::{AuthorizationCallback, ConnectError, Connections, McpAuth, SealingKey},
};

use super::http::serve;

const BACK: &str = "http://127.0.0.1:1/connections/callback";

/// A server with an authorization server at its own address.
struct Site {
    base: String,
    /// What was posted: to register, and for tokens.
    posted: Arc<Mutex<Vec<Value>>>,
    serving: Option<Runtime>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.take().unwrap().shutdown_background();
    }
}

/// `other` answers what is asked for with GET, given the address and the path, before the metadata.
fn site(metadata: Value, other: fn(&str, &str) -> Option<Response>) -> Site {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let posted = Arc::new(Mutex::new(Vec::new()));
    let mut all = json!({"issuer": base, "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
        "code_challenge_methods_supported": ["S256"]});
    all.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    let at = base.clone();
    let page = move |request: Request| {
        let path = request.uri().path().to_owned();
        let answer = match request.method() {
            &Method::GET => other(&at, &path).unwrap_or_else(|| match path.as_str() {
                "/.well-known/oauth-authorization-server" => Json(all.clone()).into_response(),
                _ => StatusCode::NOT_FOUND.into_response(),
            }),
            // As a server of streamable HTTP that asks for a token.
            _ => {
                let challenge = format!("Bearer resource_metadata=\"{at}/metadata\", scope=\"read\"");
                (StatusCode::UNAUTHORIZED, [("www-authenticate", challenge)]).into_response()
            }
        };
        std::future::ready(answer)
    };
    let registers = {
        let posted = Arc::clone(&posted);
        move |Json(asked): Json<Value>| {
            let mut posted = posted.lock().unwrap();
            posted.push(asked);
            let given = json!({"client_id": format!("c{}", posted.len())});
            std::future::ready((StatusCode::CREATED, Json(given)))
        }
    };
    let forgets = {
        let posted = Arc::clone(&posted);
        move |form: String| {
            posted.lock().unwrap().push(form.into());
            std::future::ready((StatusCode::UNAUTHORIZED, Json(json!({"error": "invalid_client"}))))
        }
    };
    let routes =
        Router::new().route("/register", post(registers)).route("/token", post(forgets)).fallback(page);
    Site { base, posted, serving: Some(serve(listener, routes)) }
}

impl Site {
    fn connections(&self, settings: McpServerSettings) -> Connections {
        let settings = McpServerSettings {
            auth: Some(McpAuth::Oauth),
            url: Some(format!("{}/mcp", self.base)),
            ..settings
        };
        settings.check("s").unwrap();
        let key = SealingKey::new(&[7; 32]).unwrap();
        Connections::new(
            &BTreeMap::from([("s".to_owned(), settings)]),
            Arc::new(MemoryStore::default()),
            key,
            None,
        )
        .unwrap()
    }

    async fn location(&self, settings: McpServerSettings) -> Result<String, ConnectError> {
        let begun = self.connections(settings).begin("s", "default", "ada", BACK).await;
        begun.map(|begun| begun.location)
    }
}

fn none(_: &str, _: &str) -> Option<Response> {
    None
}

fn fault(begun: Result<String, ConnectError>) -> String {
    match begun {
        Err(ConnectError::Failed(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn b21_a_page_at_the_address_of_metadata_is_none() {
    let pages = |_: &str, path: &str| {
        path.contains("oauth-protected-resource").then(|| Html("<html>everything</html>").into_response())
    };
    let site = site(json!({}), pages);
    let location = site.location(McpServerSettings::default()).await.unwrap();
    assert!(location.starts_with(&format!("{}/authorize?", site.base)), "{location}");
}

#[tokio::test]
async fn b21_a_server_that_answers_posts_alone_is_asked_with_one_for_what_it_wants() {
    let own = |at: &str, path: &str| {
        let found = json!({"resource": format!("{at}/mcp"), "authorization_servers": [at]});
        match path {
            "/metadata" => Some(Json(found).into_response()),
            "/mcp" => Some(StatusCode::METHOD_NOT_ALLOWED.into_response()),
            _ => None,
        }
    };
    let location = site(json!({}), own).location(McpServerSettings::default()).await.unwrap();
    assert!(location.contains("scope=read"), "{location}");
}

#[tokio::test]
async fn b21_the_operator_says_what_an_authorization_server_does_not() {
    let odd = site(json!({"issuer": "https://itself.example"}), none);
    let named = || McpServerSettings {
        issuer: Some("https://itself.example".into()),
        ..McpServerSettings::default()
    };
    let refused = fault(odd.location(McpServerSettings::default()).await);
    assert!(refused.contains("issuer = \"https://itself.example\""), "{refused}");
    assert!(odd.location(named()).await.unwrap().contains("resource="));
    let other =
        McpServerSettings { issuer: Some("https://other.example".into()), ..McpServerSettings::default() };
    fault(odd.location(other).await);
    let silent = McpServerSettings { send_resource: false, ..named() };
    assert!(!odd.location(silent).await.unwrap().contains("resource="));

    let entra = site(json!({"code_challenge_methods_supported": []}), none);
    assert!(fault(entra.location(McpServerSettings::default()).await).contains("assume_pkce"));
    let assumed = McpServerSettings { assume_pkce: true, ..McpServerSettings::default() };
    assert!(
        entra.location(assumed).await.unwrap().contains("code_challenge_method=S256"),
        "it is sent all the same"
    );
}

/// An MCP server may call itself its authorization server, and would be sent them.
#[test]
fn b21_neither_a_secret_nor_what_users_sign_in_with_goes_where_an_mcp_server_says() {
    let with = |settings: McpServerSettings| {
        let settings = McpServerSettings {
            url: Some("https://ledger.example/mcp".into()),
            client_id: Some("rack".into()),
            ..settings
        };
        let key = SealingKey::new(&[7; 32]).unwrap();
        let all = BTreeMap::from([("ledger".to_owned(), settings)]);
        Connections::new(&all, Arc::new(MemoryStore::default()), key, None)
    };
    let named = Some("https://id.example".to_owned());
    let exchange = McpServerSettings { auth: Some(McpAuth::Exchange), ..McpServerSettings::default() };
    let secret = McpServerSettings {
        auth: Some(McpAuth::Oauth),
        client_secret_env: Some("LEDGER_SECRET".into()),
        ..McpServerSettings::default()
    };
    // What it may call itself says nothing of where it is.
    let issuer = McpServerSettings { issuer: named.clone(), ..exchange.clone() };
    for settings in [exchange, secret, issuer] {
        let refused = with(settings.clone()).unwrap_err();
        assert!(
            refused.starts_with("mcp_servers.ledger: ") && refused.contains("`authorization_server`"),
            "{refused}"
        );
        with(McpServerSettings { authorization_server: named.clone(), ..settings }).unwrap();
    }
}

#[tokio::test]
async fn b21_a_registration_that_the_other_side_has_forgotten_is_made_anew() {
    let site = site(json!({}), none);
    let connections = site.connections(McpServerSettings::default());
    let begin = async || connections.begin("s", "default", "ada", BACK).await.unwrap();
    let (first, again) = (begin().await, begin().await);
    assert!(first.location.contains("client_id=c1&") && again.location.contains("client_id=c1&"));
    let state = first.location.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let callback: AuthorizationCallback =
        serde_json::from_value(json!({"code": "a", "state": state})).unwrap();
    let refused = connections.finish(&first.cookie, callback, None).await;
    assert_eq!(refused, Err(ConnectError::Refused("invalid_client".to_owned())));
    assert_eq!(site.posted.lock().unwrap().len(), 2);
    let anew = begin().await;
    assert!(anew.location.contains("client_id=c3&"), "{}", anew.location);
}
