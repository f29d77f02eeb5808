//! Sign-in on the page where the provider, or what it has given before, says too much: requirement B21.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    routing::{get, post},
};
use jiff::{SignedDuration, Timestamp};
use llm_bridge::sign_in::{GroupSettings, SignInSettings};
use registry_core::{
    Permission,
    store::{Session, Store},
};
use reqwest::{Client, StatusCode, Url, header, redirect::Policy};
use serde_json::{Value, json};

use crate::{
    b21_sign_in::{Key, Provider, echo, header_of},
    t_access::Rack,
};

/// How long a request is believed to be whose it was, and a little more.
const BELIEVED: Duration = Duration::from_millis(700);

/// A server on whose page people sign in, and their provider.
struct Page {
    provider: Provider,
    key: Key,
    rack: Rack,
    browser: Client,
    id_token: Arc<Mutex<String>>,
    userinfo: Arc<Mutex<Value>>,
}

impl Page {
    async fn start(change: impl FnOnce(&mut SignInSettings)) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys"),
            "authorization_endpoint": format!("{issuer}/begin"), "token_endpoint": format!("{issuer}/token"),
            "userinfo_endpoint": format!("{issuer}/userinfo")});
        let key = Key::p256();
        let keys = json!({"keys": [key.public("1")]});
        let (id_token, userinfo) = (Arc::<Mutex<String>>::default(), Arc::<Mutex<Value>>::default());
        let (given, told) = (Arc::clone(&id_token), Arc::clone(&userinfo));
        let tokens = move || async move {
            Json(
                json!({"id_token": *given.lock().unwrap(), "access_token": "opaque", "token_type": "Bearer"}),
            )
        };
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(|| async { Json(metadata) }))
            .route("/keys", get(|| async { Json(keys) }))
            .route("/token", post(tokens))
            .route("/userinfo", get(move || async move { Json(told.lock().unwrap().clone()) }));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let provider = Provider { issuer, keys: Arc::default(), asked: Arc::default() };
        let rack = provider
            .rack(|settings| {
                settings.client_id = Some("page".to_owned());
                change(settings);
            })
            .await;
        let browser =
            toolrack_http::build_client(|| Client::builder().no_proxy().redirect(Policy::none())).unwrap();
        Self { provider, key, rack, browser, id_token, userinfo }
    }

    /// Where admins and staff are groups.
    async fn with_groups() -> Self {
        Self::start(|settings| {
            let group = |(name, level): (&str, Permission)| {
                (name.to_owned(), GroupSettings { level, personas: Vec::new() })
            };
            let groups = [("admins", Permission::Admin), ("staff", Permission::User)];
            settings.groups = BTreeMap::from(groups.map(group));
        })
        .await
    }

    /// Signs in with an ID token of the type `typ` whose claims are these, besides the usual ones: the cookie of the session, or why there is none.
    async fn sign_in(&self, typ: Option<&str>, claims: Value) -> Result<String, StatusCode> {
        let begun = self.browser.get(format!("{}/sign-in", self.rack.base)).send().await.unwrap();
        let location = Url::parse(begun.headers()["location"].to_str().unwrap()).unwrap();
        let query: HashMap<String, String> = location.query_pairs().into_owned().collect();
        let mut all = self.provider.claims("ada", &["staff"]);
        all["aud"] = json!("page");
        all["nonce"] = json!(query["nonce"]);
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let mut head = header_of(&self.key, "1");
        head["typ"] = json!(typ);
        head.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        *self.id_token.lock().unwrap() = self.key.token(&head, &all);
        let cookie = begun.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
        let back = format!("{}/sign-in/callback?code=c&state={}", self.rack.base, query["state"]);
        let ended = self.browser.get(back).header(header::COOKIE, cookie).send().await.unwrap();
        if ended.status() != StatusCode::SEE_OTHER {
            return Err(ended.status());
        }
        let cookies = ended.headers().get_all(header::SET_COOKIE).into_iter();
        let mut cookies = cookies.map(|cookie| cookie.to_str().unwrap().split(';').next().unwrap());
        Ok(cookies.find(|cookie| cookie.starts_with("__Host-toolrack-session=trs_")).unwrap().to_owned())
    }

    /// Whose a session is, and with which level.
    async fn session(&self, cookie: &str) -> Result<(String, String), StatusCode> {
        let asked = self.browser.get(format!("{}/api/session", self.rack.base));
        let answer = asked.header(header::COOKIE, cookie).send().await.unwrap();
        if answer.status() != StatusCode::OK {
            return Err(answer.status());
        }
        let shown: Value = answer.json().await.unwrap();
        let text = |name: &str| shown[name].as_str().unwrap().to_owned();
        Ok((text("user"), text("level")))
    }

    /// An access token that was issued so many seconds ago.
    fn access_token(&self, group: &str, ago: f64) -> String {
        let mut claims = self.provider.claims("ada", &[group]);
        claims["iat"] = json!(Timestamp::now().as_second() as f64 - ago);
        self.key.token(&header_of(&self.key, "1"), &claims)
    }
}

#[tokio::test]
async fn b21_an_id_token_is_for_this_client_and_says_when_it_was_issued() {
    let page = Page::start(|_| {}).await;
    let now = Timestamp::now().as_second();
    for (typ, claims) in [
        (Some("JWT"), json!({})),
        (None, json!({"azp": "page"})),
        (Some("jwt"), json!({"aud": ["page"], "azp": null})),
        (Some("JWT"), json!({"aud": ["page", "other"], "azp": "page"})),
        (Some("JWT"), json!({"iat": now as f64 - 0.5})),
    ] {
        let signed_in = page.sign_in(typ, claims.clone()).await;
        let cookie = signed_in.unwrap_or_else(|status| panic!("{claims}: {status}"));
        assert_eq!(page.session(&cookie).await, Ok(("ada".to_owned(), "user".to_owned())), "{claims}");
    }
    for (typ, claims) in [
        (Some("at+jwt"), json!({})),
        (Some("application/at+jwt"), json!({})),
        (Some("JWT"), json!({"azp": "other"})),
        (Some("JWT"), json!({"azp": ["other"]})),
        (Some("JWT"), json!({"azp": ["page"]})),
        (Some("JWT"), json!({"azp": 7})),
        (Some("JWT"), json!({"aud": ["page", "other"]})),
        (Some("JWT"), json!({"aud": ["page", "other"], "azp": "other"})),
        (Some("JWT"), json!({"iat": null})),
        (Some("JWT"), json!({"iat": "now"})),
        (Some("JWT"), json!({"iat": now + 600})),
    ] {
        let signed_in = page.sign_in(typ, claims.clone()).await;
        assert_eq!(signed_in, Err(StatusCode::SERVICE_UNAVAILABLE), "{typ:?} {claims}");
    }
}

#[tokio::test]
async fn b21_a_session_gives_no_more_than_its_own_sign_in_did() {
    let page = Page::with_groups().await;
    let now = Timestamp::now().as_second();
    let sign_in = async |group: &str, ago: i64| {
        page.sign_in(Some("JWT"), json!({"groups": [group], "iat": now - ago})).await.unwrap()
    };
    let level = async |cookie: &str| page.session(cookie).await.map(|(_, level)| level);
    let (user, admin) = (Ok("user".to_owned()), Ok("admin".to_owned()));
    let staff = sign_in("staff", 40).await;
    assert_eq!(level(&staff).await, user);
    // A newer token raises the user, and not who has signed in before.
    assert!(page.rack.tools(&page.access_token("admins", 30.0)).await.contains(&"admins.only".to_owned()));
    assert_eq!(page.rack.store.user("default", "ada").await.unwrap().unwrap().level, Permission::Admin);
    tokio::time::sleep(BELIEVED).await;
    assert_eq!(level(&staff).await, user);
    assert_eq!(level(&staff.replace("-user", "-admin")).await, Err(StatusCode::UNAUTHORIZED));
    let chief = sign_in("admins", 20).await;
    assert_eq!(level(&chief).await, admin);
    // Nor does one whose sign-in is older than what is known.
    assert_eq!(level(&sign_in("staff", 25).await).await, user);
    assert_eq!(level(&chief).await, admin);
    // What a newer token takes it takes from all.
    assert!(!page.rack.tools(&page.access_token("staff", 10.0)).await.contains(&"admins.only".to_owned()));
    tokio::time::sleep(BELIEVED).await;
    assert_eq!(level(&chief).await, user);
    // Without a level in it, it was begun before there were groups.
    let (session, secret) =
        Session::start("default", "ada", Timestamp::now(), SignedDuration::from_hours(1)).unwrap();
    assert!(page.rack.store.put_session(session, 20).await.unwrap());
    let before = level(&format!("__Host-toolrack-session={secret}")).await;
    assert_eq!(before, Err(StatusCode::UNAUTHORIZED));
}

#[tokio::test]
async fn b21_of_two_tokens_with_fractions_in_their_times_the_newer_one_counts() {
    let page = Page::with_groups().await;
    let (admin, staff) = (page.access_token("admins", 100.5), page.access_token("staff", 50.5));
    let may = async |token: &str| page.rack.tools(token).await.contains(&"admins.only".to_owned());
    assert!(may(&admin).await && !may(&staff).await);
    tokio::time::sleep(BELIEVED).await;
    assert!(!may(&admin).await);
    assert_eq!(page.rack.store.user("default", "ada").await.unwrap().unwrap().level, Permission::User);
}

#[tokio::test]
async fn b21_an_address_is_verified_by_who_says_it() {
    for claim in ["email", "/email"] {
        let page = Page::start(|settings| settings.user_claim = claim.to_owned()).await;
        let (chief, own) = ("chief@tools.example", "me@elsewhere.example");
        let refused = Err(StatusCode::FORBIDDEN);
        for (claims, told, user) in [
            (json!({"email": chief}), json!({}), refused),
            (json!({"email": chief, "email_verified": false}), json!({}), refused),
            (json!({"email": chief, "email_verified": true}), json!({}), Ok(chief)),
            (json!({"email": chief}), json!({"email_verified": true}), refused),
            (json!({"email": chief}), json!({"email": own, "email_verified": true}), Ok(own)),
            (json!({}), json!({"email": own, "email_verified": true}), Ok(own)),
            (json!({"email_verified": true}), json!({"email": own}), refused),
        ] {
            let mut userinfo = json!({"sub": "ada"});
            userinfo.as_object_mut().unwrap().extend(told.as_object().unwrap().clone());
            *page.userinfo.lock().unwrap() = userinfo;
            let signed_in = page.sign_in(Some("JWT"), claims.clone()).await;
            let found = match &signed_in {
                Ok(cookie) => page.session(cookie).await.map(|(user, _)| user),
                Err(status) => Err(*status),
            };
            assert_eq!(found, user.map(str::to_owned), "{claim} {claims} {told}");
        }
    }
}

#[tokio::test]
async fn b21_while_the_provider_takes_its_time_requests_do_not_wait_for_each_other() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&asked);
    let silent = move || async move {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<()>().await;
    };
    let app = Router::new().route("/.well-known/openid-configuration", get(silent));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let provider = Provider { issuer, keys: Arc::default(), asked };
    let (rack, key) = (Arc::new(provider.rack(|_| {}).await), Key::p256());
    let began = Instant::now();
    let all: Vec<_> = (0..4)
        .map(|number| {
            let token = key.token(&header_of(&key, "1"), &provider.claims(&format!("u{number}"), &[]));
            let rack = Arc::clone(&rack);
            tokio::spawn(async move { echo(&rack, &token).await.status() })
        })
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
    }
    // It has 10 seconds to answer, once.
    assert_eq!(provider.asked.load(Ordering::SeqCst), 1);
    assert!(began.elapsed() < Duration::from_secs(19), "{:?}", began.elapsed());
}
