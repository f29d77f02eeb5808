//! Tokens of an OpenID provider in place of keys: requirement B21, row N10.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Json, Router,
    routing::{get, post},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use llm_bridge::{
    server::Access,
    sign_in::{GroupSettings, SignIn, SignInSettings},
};
use registry_core::{
    Caller, Permission, Registry,
    store::{MemoryStore, Persona, Store, User},
};
use reqwest::{Response, StatusCode, header};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    support::{until, within},
    t_access::Rack,
};

pub(crate) const PUBLIC: &str = "https://tools.example";

fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key of the provider's, of one curve or the other.
pub(crate) enum Key {
    P256(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
}

impl Key {
    pub(crate) fn p256() -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
    }

    fn edwards() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Edwards(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::Edwards(_) => "EdDSA",
        }
    }

    pub(crate) fn public(&self, id: &str) -> Value {
        match self {
            Self::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": base64(x), "y": base64(y), "kid": id, "use": "sig"})
            }
            Self::Edwards(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64(pair.public_key()), "kid": id})
            }
        }
    }

    fn sign(&self, message: &str) -> Vec<u8> {
        match self {
            Self::P256(pair) => {
                pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec()
            }
            Self::Edwards(pair) => pair.sign(message.as_bytes()).as_ref().to_vec(),
        }
    }

    pub(crate) fn token(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        format!("{message}.{}", base64(self.sign(&message)))
    }
}

/// A provider that publishes keys.
pub(crate) struct Provider {
    pub(crate) issuer: String,
    pub(crate) keys: Arc<Mutex<Vec<Value>>>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Provider {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let (keys, asked) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let metadata = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")});
        let (published, counted) = (Arc::clone(&keys), Arc::clone(&asked));
        let app =
            Router::new().route("/.well-known/openid-configuration", get(|| async { Json(metadata) })).route(
                "/keys",
                get(|| async move {
                    counted.fetch_add(1, Ordering::SeqCst);
                    Json(json!({"keys": *published.lock().unwrap()}))
                }),
            );
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { issuer, keys, asked }
    }

    fn publish(&self, keys: impl IntoIterator<Item = Value>) {
        *self.keys.lock().unwrap() = keys.into_iter().collect();
    }

    /// The claims of a token for this server that holds for five minutes.
    pub(crate) fn claims(&self, user: &str, groups: &[&str]) -> Value {
        let now = Timestamp::now().as_second();
        json!({"iss": self.issuer, "aud": [format!("{PUBLIC}/mcp"), "others"], "sub": user, "groups": groups,
            "iat": now, "exp": now + 300, "scope": "tools"})
    }

    pub(crate) async fn rack(&self, change: impl FnOnce(&mut SignInSettings)) -> Rack {
        let mut settings = SignInSettings { issuer: self.issuer.clone(), ..SignInSettings::default() };
        change(&mut settings);
        Rack::start_set(Caller::new("local", Permission::Admin), |server| {
            server.access = Access { key_required: true, ..Access::default() };
            server.sign_in = Some(Arc::new(SignIn::new(settings, PUBLIC).unwrap()));
        })
        .await
    }
}

pub(crate) fn header_of(key: &Key, id: &str) -> Value {
    json!({"alg": key.algorithm(), "kid": id, "typ": "at+jwt"})
}

pub(crate) async fn echo(rack: &Rack, token: &str) -> Response {
    rack.post("/execute", token, &json!({"tool_name": "echo"})).send().await.unwrap()
}

/// The status, the kind of the error and the challenge.
async fn refusal(response: Response) -> (StatusCode, String, String) {
    let (status, headers) = (response.status(), response.headers().clone());
    let body: Value = response.json().await.unwrap();
    let challenge = headers.get(header::WWW_AUTHENTICATE).map_or("", |value| value.to_str().unwrap());
    (
        status,
        body["error"]["type"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned(),
        challenge.to_owned(),
    )
}

#[tokio::test]
async fn b21_a_token_of_the_provider_opens_what_its_user_may_use() {
    let provider = Provider::start().await;
    let (one, other) = (Key::p256(), Key::edwards());
    provider.publish([
        // Keys that are not for this are left out, and do no harm.
        json!({"kty": "oct", "k": base64("secret"), "kid": "s"}),
        json!({"kty": "unheard of", "kid": "u"}),
        json!(7),
        one.public("1"),
        other.public("2"),
    ]);
    let rack = provider.rack(|_| {}).await;
    for (key, id) in [(&one, "1"), (&other, "2")] {
        let token = key.token(&header_of(key, id), &provider.claims("ada", &[]));
        let reply: Value = echo(&rack, &token).await.json().await.unwrap();
        assert_eq!(reply["result"]["user"], "ada", "{reply}");
    }
    // She is a user like others now.
    let ada = rack.store.user("default", "ada").await.unwrap().unwrap();
    assert_eq!((ada.level, ada.personas.len()), (Permission::User, 0));
    let added: Vec<_> =
        rack.audit.records().into_iter().filter(|record| record.tool == "sign-in user add").collect();
    assert_eq!((added.len(), added[0].user.as_str()), (2, "ada"));
    // Without groups an operator says what she may do.
    let promoted = User { level: Permission::Admin, ..ada };
    rack.store.put_user("default", promoted).await.unwrap();
    let token = one.token(&header_of(&one, "1"), &provider.claims("ada", &[]));
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(rack.tools(&token).await, ["admins.only", "echo", "files.erase", "once"]);
    // Keys go on working beside it.
    let key = rack.user("default", "bob", Permission::User).await;
    assert_eq!(echo(&rack, &key).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn b21_no_other_token_opens_anything() {
    let provider = Provider::start().await;
    let (key, stolen) = (Key::p256(), Key::p256());
    provider.publish([key.public("1")]);
    let rack = provider.rack(|_| {}).await;
    let (header, good) = (header_of(&key, "1"), provider.claims("ada", &[]));
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        match value {
            Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
            value => claims[name] = value,
        }
        key.token(&header, &claims)
    };
    let headed = |change: Value| {
        let mut header = header.clone();
        header.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        key.token(&header, &good)
    };
    let now = Timestamp::now().as_second();
    let valid = key.token(&header, &good);
    let (signed, signature) = valid.rsplit_once('.').unwrap();
    let unsigned = format!("{}.{}.", base64(r#"{"alg":"none"}"#), base64(good.to_string()));
    // HMAC with what everybody knows, the public key.
    let hmac = {
        let message = format!("{}.{}", base64(r#"{"alg":"HS256","kid":"1"}"#), base64(good.to_string()));
        let secret =
            ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.public("1")["x"].as_str().unwrap().as_bytes());
        format!("{message}.{}", base64(ring::hmac::sign(&secret, message.as_bytes())))
    };
    let tampered = {
        let (head, _) = signed.split_once('.').unwrap();
        format!("{head}.{}.{signature}", base64(provider.claims("root", &["admins"]).to_string()))
    };
    for (what, token) in [
        ("issuer", with("iss", json!("https://evil.example"))),
        ("audience", with("aud", json!("https://tools.example/other"))),
        ("no audience", with("aud", Value::Null)),
        ("no issuer", with("iss", Value::Null)),
        ("expired", with("exp", json!(now - 60))),
        ("no expiry", with("exp", Value::Null)),
        ("expiry as text", with("exp", json!("tomorrow"))),
        ("not yet", with("nbf", json!(now + 600))),
        ("when, as text", with("nbf", json!("now"))),
        ("no time", with("iat", Value::Null)),
        ("time as text", with("iat", json!("now"))),
        ("issued in the future", with("iat", json!(now + 600))),
        ("unsigned", unsigned.clone()),
        ("unsigned, with a signature", format!("{unsigned}{signature}")),
        ("hmac", hmac),
        ("other claims", tampered),
        ("another's key", stolen.token(&header, &good)),
        ("no such key", headed(json!({"kid": "9"}))),
        ("another algorithm", headed(json!({"alg": "RS256"}))),
        ("another kind", headed(json!({"typ": "logout+jwt"}))),
        ("extensions", headed(json!({"crit": ["x"], "x": 1}))),
        ("long", with("pad", json!("x".repeat(20_000)))),
        ("not base64", "a.b.c".to_owned()),
    ] {
        let (status, kind, challenge) = refusal(echo(&rack, &token).await).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{what}");
        if what != "unsigned" {
            assert_eq!(kind, "invalid_token", "{what}");
            assert!(
                challenge.contains("error=\"invalid_token\", error_description=\""),
                "{what}: {challenge}"
            );
        }
    }
    assert!(rack.store.users("default").await.unwrap().is_empty());
    assert_eq!(echo(&rack, &valid).await.status(), StatusCode::OK);
    // Whatever keys tokens name, the provider is asked for its keys once in a while.
    assert!(provider.asked.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn b21_n10_a_client_is_told_where_to_get_a_token() {
    let provider = Provider::start().await;
    let key = Key::p256();
    provider.publish([key.public("1")]);
    let rack = provider.rack(|settings| settings.required_scopes = vec!["tools".into()]).await;
    let get = async |path: &str| rack.client.get(format!("{}{path}", rack.base)).send().await.unwrap();
    for (path, resource, place) in [
        ("/mcp", "https://tools.example/mcp", "/.well-known/oauth-protected-resource/mcp"),
        ("/v1/models", "https://tools.example", "/.well-known/oauth-protected-resource"),
    ] {
        let (status, kind, challenge) = refusal(get(path).await).await;
        assert_eq!((status, kind.as_str()), (StatusCode::UNAUTHORIZED, "invalid_api_key"));
        assert_eq!(
            challenge,
            format!("Bearer realm=\"toolrack\", scope=\"tools\", resource_metadata=\"{PUBLIC}{place}\"")
        );
        let metadata: Value = get(place).await.json().await.unwrap();
        assert_eq!(
            metadata,
            json!({"resource": resource, "authorization_servers": [provider.issuer], "scopes_supported": ["tools"],
                "bearer_methods_supported": ["header"], "resource_name": "Toolrack"})
        );
    }
    let narrow = {
        let mut claims = provider.claims("ada", &[]);
        claims["scope"] = json!("openid");
        key.token(&header_of(&key, "1"), &claims)
    };
    let (status, kind, challenge) = refusal(echo(&rack, &narrow).await).await;
    assert_eq!((status, kind.as_str()), (StatusCode::FORBIDDEN, "insufficient_scope"));
    assert!(
        challenge.contains("error=\"insufficient_scope\", scope=\"tools\", resource_metadata="),
        "{challenge}"
    );
    // A server without sign-in has no such metadata.
    let plain = Rack::start(Access::default()).await;
    let place = format!("{}/.well-known/oauth-protected-resource", plain.base);
    assert_eq!(plain.client.get(place).send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn b21_groups_give_level_and_personas_and_an_old_token_gives_nothing_back() {
    let provider = Provider::start().await;
    let key = Key::p256();
    provider.publish([key.public("1")]);
    let rack = provider
        .rack(|settings| {
            let group = |level, personas: &[&str]| GroupSettings {
                level,
                personas: personas.iter().map(|name| (*name).to_owned()).collect(),
            };
            settings.level = Permission::Guest;
            settings.groups = BTreeMap::from([
                ("admins".to_owned(), group(Permission::Admin, &[])),
                ("filers".to_owned(), group(Permission::User, &["filer"])),
            ]);
        })
        .await;
    let persona = Persona {
        name: "filer".into(),
        allowed_modules: ["files".into()].into(),
        created_at: Timestamp::now(),
    };
    rack.store.put_persona("default", persona).await.unwrap();
    let token = |user: &str, groups: &[&str], ago: i64| {
        let mut claims = provider.claims(user, groups);
        claims["iat"] = json!(Timestamp::now().as_second() - ago);
        key.token(&header_of(&key, "1"), &claims)
    };
    let chief = token("ada", &["admins"], 200);
    assert_eq!(rack.tools(&chief).await, ["admins.only", "echo", "files.erase", "once"]);
    assert_eq!(rack.tools(&token("bob", &["filers"], 0)).await, ["files.erase"]);
    // Her groups change: what the newest token says holds, also for the older one.
    assert_eq!(rack.tools(&token("ada", &["filers"], 100)).await, ["files.erase"]);
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert_eq!(rack.tools(&chief).await, ["files.erase"]);
    let ada = rack.store.user("default", "ada").await.unwrap().unwrap();
    assert_eq!((ada.level, ada.personas.as_slice()), (Permission::User, ["filer".to_owned()].as_slice()));
}

#[tokio::test]
async fn b21_nobody_becomes_a_user_who_should_not() {
    let provider = Provider::start().await;
    let key = Key::p256();
    provider.publish([key.public("1")]);
    let token = |user: &str| key.token(&header_of(&key, "1"), &provider.claims(user, &[]));
    let rack = provider.rack(|settings| settings.create_users = false).await;
    let (status, kind, _) = refusal(echo(&rack, &token("eve")).await).await;
    assert_eq!((status, kind.as_str()), (StatusCode::FORBIDDEN, "sign_in_not_allowed"));
    rack.user("default", "ada", Permission::User).await;
    assert_eq!(echo(&rack, &token("ada")).await.status(), StatusCode::OK);
    // Nor does anybody become the user of the configuration, whatever the name.
    let rack = provider.rack(|_| {}).await;
    let (status, kind, _) = refusal(echo(&rack, &token("local")).await).await;
    assert_eq!((status, kind.as_str()), (StatusCode::FORBIDDEN, "sign_in_not_allowed"));
    assert!(rack.store.users("default").await.unwrap().is_empty());
}

#[tokio::test]
async fn b21_keys_change_and_a_provider_that_is_gone_is_no_open_door() {
    let provider = Provider::start().await;
    let (old, new) = (Key::p256(), Key::edwards());
    provider.publish([old.public("1")]);
    let rack = provider.rack(|_| {}).await;
    let token = |key: &Key, id: &str| key.token(&header_of(key, id), &provider.claims("ada", &[]));
    assert_eq!(echo(&rack, &token(&old, "1")).await.status(), StatusCode::OK);
    let gone = Rack::start_set(Caller::new("local", Permission::Admin), |server| {
        let settings = SignInSettings { issuer: "http://127.0.0.1:9".into(), ..SignInSettings::default() };
        server.access = Access { key_required: true, ..Access::default() };
        server.sign_in = Some(Arc::new(SignIn::new(settings, PUBLIC).unwrap()));
    })
    .await;
    for _ in 0..2 {
        let (status, kind, _) = refusal(echo(&gone, &token(&old, "1")).await).await;
        assert_eq!(
            (status, kind.as_str()),
            (StatusCode::SERVICE_UNAVAILABLE, "identity_provider_unavailable")
        );
    }
    // The new key is known some seconds after the old one was asked for.
    provider.publish([old.public("1"), new.public("2")]);
    assert_eq!(echo(&rack, &token(&new, "2")).await.status(), StatusCode::UNAUTHORIZED);
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    assert_eq!(echo(&rack, &token(&new, "2")).await.status(), StatusCode::OK);
    assert_eq!(provider.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn b21_a_provider_may_say_so_much_and_no_more() {
    let provider = Provider::start().await;
    let key = Key::p256();
    let token = key.token(&header_of(&key, "1"), &provider.claims("ada", &[]));
    let other = |at: usize| json!({"kty": "oct", "kid": at.to_string()});
    // Of 64 keys the last is known, and of 65 it is not.
    for (others, status) in [(63, StatusCode::OK), (64, StatusCode::UNAUTHORIZED)] {
        provider.publish((0..others).map(other).chain([key.public("1")]));
        let rack = provider.rack(|_| {}).await;
        assert_eq!(echo(&rack, &token).await.status(), status, "{others}");
    }
    provider.publish([key.public("1"), json!({"kty": "oct", "k": "x".repeat(256 << 10)})]);
    let rack = provider.rack(|_| {}).await;
    assert_eq!(echo(&rack, &token).await.status(), StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn b21_a_tenant_gets_so_many_users_by_sign_in_and_no_more() {
    let provider = Provider::start().await;
    let key = Key::p256();
    provider.publish([key.public("1")]);
    let rack = provider.rack(|_| {}).await;
    let user = |id: &str| User {
        id: id.to_owned(),
        level: Permission::User,
        personas: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
    };
    for number in 0..100_000 {
        rack.store.put_user("default", user(&number.to_string())).await.unwrap();
    }
    let token = |id: &str| key.token(&header_of(&key, "1"), &provider.claims(id, &[]));
    let (status, kind, _) = refusal(echo(&rack, &token("ada")).await).await;
    assert_eq!((status, kind.as_str()), (StatusCode::FORBIDDEN, "sign_in_not_allowed"));
    assert_eq!(echo(&rack, &token("7")).await.status(), StatusCode::OK, "who is there already stays");
}

#[tokio::test]
async fn b21_an_older_token_gives_nothing_back_at_another_server_or_after_a_restart() {
    let provider = Provider::start().await;
    let key = Key::p256();
    provider.publish([key.public("1")]);
    let store = Arc::new(MemoryStore::default());
    // Each has a memory of its own, as a server that was started again.
    let rack = async || {
        let registry = Registry::builder().without_compiled().state(store.clone()).build().unwrap();
        let group = |level| GroupSettings { level, personas: Vec::new() };
        let groups = [("admins", Permission::Admin), ("staff", Permission::User)];
        let groups = groups.map(|(name, level)| (name.to_owned(), group(level)));
        let settings = SignInSettings {
            issuer: provider.issuer.clone(),
            groups: BTreeMap::from(groups),
            ..SignInSettings::default()
        };
        Rack::start_over(Caller::new("local", Permission::Admin), registry, |server| {
            server.access = Access { key_required: true, ..Access::default() };
            server.sign_in = Some(Arc::new(SignIn::new(settings, PUBLIC).unwrap()));
            server.store = store.clone();
        })
        .await
    };
    let token = |group: &str, ago: i64| {
        let mut claims = provider.claims("ada", &[group]);
        claims["iat"] = json!(Timestamp::now().as_second() - ago);
        key.token(&header_of(&key, "1"), &claims)
    };
    let (admin, staff) = (token("admins", 60), token("staff", 30));
    let level = async |rack: &Rack, token: &str| {
        rack.tools(token).await;
        // What a request has found is believed for half a second.
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        store.user("default", "ada").await.unwrap().unwrap().level
    };
    let (first, second) = (rack().await, rack().await);
    assert_eq!(level(&first, &admin).await, Permission::Admin);
    assert_eq!(level(&second, &admin).await, Permission::Admin);
    assert_eq!(level(&first, &staff).await, Permission::User);
    let third = rack().await;
    for other in [&first, &second, &third] {
        assert_eq!(level(other, &admin).await, Permission::User, "the older one changes nothing");
    }
    // A newer one does.
    assert_eq!(level(&third, &token("admins", 0)).await, Permission::Admin);
    assert_eq!(level(&second, &staff).await, Permission::Admin);
}

/// Where browsers sign in: a provider that answers for no code before it is let.
struct Slow {
    provider: Provider,
    under_way: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    answers: Arc<Semaphore>,
}

impl Slow {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/begin"), "token_endpoint": format!("{issuer}/token")});
        let (under_way, most, answers) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let (counted, highest, let_go) = (Arc::clone(&under_way), Arc::clone(&most), Arc::clone(&answers));
        let token = async move || {
            highest.fetch_max(counted.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let_go.acquire().await.unwrap().forget();
            counted.fetch_sub(1, Ordering::SeqCst);
            (StatusCode::BAD_REQUEST, Json(json!({"error": "invalid_grant"})))
        };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(|| async { Json(metadata) }))
            .route("/keys", get(|| async { Json(json!({"keys": []})) }))
            .route("/token", post(token));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let provider = Provider { issuer, keys: Arc::default(), asked: Arc::default() };
        Self { provider, under_way, most, answers }
    }
}

#[tokio::test]
async fn b21_so_many_sign_ins_end_at_once_and_each_in_its_time() {
    const AT_ONCE: usize = 16;
    let slow = Slow::start().await;
    let rack = slow.provider.rack(|settings| settings.client_id = Some("page".to_owned())).await;
    let browser = toolrack_http::build_client(|| {
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none())
    })
    .unwrap();
    let callback = |state: &str| format!("{}/sign-in/callback?code=c&state={state}", rack.base);
    let mut ending = Vec::new();
    for _ in 0..AT_ONCE + 8 {
        let begun = browser.get(format!("{}/sign-in", rack.base)).send().await.unwrap();
        let location = reqwest::Url::parse(begun.headers()["location"].to_str().unwrap()).unwrap();
        let state = location.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
        let cookie = begun.headers()["set-cookie"].to_str().unwrap().to_owned();
        // The browser keeps it for ten minutes; without it nothing is ended.
        assert!(cookie.contains("Max-Age=600;"), "{cookie}");
        let late = browser.get(callback(&state)).send().await.unwrap();
        assert_eq!(late.status(), StatusCode::BAD_REQUEST);
        assert!(late.text().await.unwrap().contains("waited too long"));
        let sent = cookie.split(';').next().unwrap().to_owned();
        ending.push(tokio::spawn(browser.get(callback(&state)).header(header::COOKIE, sent).send()));
    }
    until(|| slow.under_way.load(Ordering::SeqCst) == AT_ONCE).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(slow.under_way.load(Ordering::SeqCst), AT_ONCE, "the others wait");
    // Nobody else waits for them.
    let health = within(browser.get(format!("{}/healthz", rack.base)).send()).await.unwrap();
    assert_eq!(health.status(), StatusCode::OK);
    slow.answers.add_permits(1000);
    for ended in ending {
        assert_eq!(within(ended).await.unwrap().unwrap().status(), StatusCode::SERVICE_UNAVAILABLE);
    }
    assert_eq!(slow.most.load(Ordering::SeqCst), AT_ONCE);
}
