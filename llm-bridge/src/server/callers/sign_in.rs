//! `/sign-in`, `/sign-out` and `/api/session`: people sign in on the page, and have a session.

use std::sync::Arc;

use axum::{
    Extension, Json,
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use registry_core::{
    clock::{Clock, SystemClock},
    store::{Session, hash_key},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    identity::{Identities, Identity, IdentityError},
    message::Message,
    session::{self, Cookie},
};
use crate::{
    server::{
        openapi::Operation,
        requests::{api_error::ApiError, name::Name, query::QueryParameters},
        routes::Routes,
    },
    sign_in::{Begun, Callback, MAX_SESSIONS, SignIn, SignInError, TokenError},
};

/// How long a person may take at the provider, in seconds.
const WAIT_SECONDS: i64 = 600;

/// Where people come back to.
#[derive(Deserialize)]
struct Start {
    to: Option<String>,
}

/// Who is signed in.
#[derive(Serialize, JsonSchema)]
struct SignedIn {
    user: String,
    level: String,
    /// The session of this browser; `None` for requests with a key or a token.
    session: Option<String>,
    /// All sessions of the user.
    sessions: Vec<ShownSession>,
}

/// A browser in which the user is signed in.
#[derive(Serialize, JsonSchema)]
struct ShownSession {
    id: String,
    created_at: Timestamp,
    expires_at: Timestamp,
}

/// Where the browser goes next.
#[derive(Serialize, JsonSchema)]
struct SignedOut {
    /// Where the provider ends its own session too; `None` if it cannot.
    location: Option<String>,
}

/// The routes for people who are not signed in. None without sign-in on the page.
pub(in crate::server) fn routes(identities: &Arc<Identities>) -> Routes {
    if !identities.sign_in().is_some_and(SignIn::has_page) {
        return Routes::new();
    }
    let begins = Arc::clone(identities);
    let begin = move |uri: Uri, QueryParameters(start): QueryParameters<Start>| async move {
        begin(&begins, start.to.as_deref().unwrap_or("/"), uri.path()).await
    };
    let ends = Arc::clone(identities);
    let end = move |uri: Uri, headers: HeaderMap, QueryParameters(callback): QueryParameters<Callback>| async move {
        end(&ends, &headers, callback, uri.path()).await
    };
    let page = "text/html; charset=utf-8";
    let operation = |id: &str, summary: &str| {
        Operation::new(Method::GET, "Sign-in", id, summary)
            .answers_nothing(303, "The browser goes on.")
            .refuses(400, "The query cannot be read (`invalid_request_error`).")
            .answers_with(503, page, "The provider does not answer, or too many people are signing in.")
    };
    let begin_operation = operation("sign_in", "Sends a browser to the provider")
        .query("to", "The path of this server to come back to; `/` by default.");
    let end_operation = operation("sign_in_callback", "Where the provider sends the browser back to")
        .query("code", "What the provider gives tokens for.")
        .query("state", "What was sent to the provider.")
        .query("iss", "The provider.")
        .query("error", "Why it has refused.")
        .answers_with(
            400,
            page,
            "It belongs to no sign-in that this browser has begun, or the provider has refused.",
        )
        .answers_with(403, page, "The person may not come in.");
    Routes::new().add("/sign-in", begin, begin_operation).add("/sign-in/callback", end, end_operation)
}

/// The routes for people who are. None without sign-in on the page.
pub(in crate::server) fn session_routes(identities: &Arc<Identities>) -> Routes {
    if !identities.sign_in().is_some_and(SignIn::has_page) {
        return Routes::new();
    }
    let (shows, outs, ends) = (Arc::clone(identities), Arc::clone(identities), Arc::clone(identities));
    let show = move |Extension(identity): Extension<Identity>| async move { show(&shows, identity).await };
    let sign_out =
        move |Extension(identity): Extension<Identity>| async move { sign_out(&outs, identity).await };
    let end_one = move |Extension(identity): Extension<Identity>, Name(id): Name| async move {
        let (tenant, user) = (identity.registry.tenant(), &identity.caller.user);
        match ends.store().end_session(tenant, user, &id).await? {
            true => {
                forget_tokens(&ends, tenant, user, &id).await;
                Ok(StatusCode::NO_CONTENT)
            }
            false => Err(ApiError::not_found("session_not_found", format!("you have no session `{id}`"))),
        }
    };
    Routes::new()
        .add(
            "/api/session",
            show,
            Operation::new(Method::GET, "Sign-in", "session", "Who is signed in, and where")
                .answers::<SignedIn>(200, "The user and the user's sessions."),
        )
        .add(
            "/sign-out",
            sign_out,
            Operation::new(Method::POST, "Sign-in", "sign_out", "Ends the session of this browser")
                .answers::<SignedOut>(200, "It is ended; the browser goes on at the provider."),
        )
        .add(
            "/api/session/{id}",
            end_one,
            Operation::new(Method::DELETE, "Sign-in", "end_session", "Ends one of the user's sessions")
                .path("id", "The session's id.")
                .answers_nothing(204, "It is ended.")
                .refuses(404, "The user has no such session (`session_not_found`)."),
        )
}

async fn begin(identities: &Identities, to: &str, path: &str) -> Response {
    let Some(sign_in) = identities.sign_in() else { return StatusCode::NOT_FOUND.into_response() };
    match sign_in.begin(to).await {
        Ok((begun, url)) => {
            let cookie = Cookie::Begun.set(&begun.encoded(), WAIT_SECONDS, sign_in.is_https());
            goes_to(&url, [cookie])
        }
        Err(error) => refused(sign_in, &error, path),
    }
}

async fn end(identities: &Identities, headers: &HeaderMap, callback: Callback, at: &str) -> Response {
    let Some(sign_in) = identities.sign_in() else { return StatusCode::NOT_FOUND.into_response() };
    let begun = Cookie::Begun.read(headers, sign_in.is_https()).as_deref().and_then(Begun::decode);
    let signed_in = match begun {
        None => Err(SignInError::Foreign),
        Some(begun) => signed_in(identities, sign_in, headers, &begun, callback).await,
    };
    match signed_in {
        Ok((path, cookie)) => goes_to(&format!("{}{path}", sign_in.public_url()), [cookie, over(sign_in)]),
        Err(error) => {
            let mut response = refused(sign_in, &error, at);
            response.headers_mut().extend(over(sign_in).map(|cookie| (header::SET_COOKIE, cookie)));
            response
        }
    }
}

/// What has begun is used once.
fn over(sign_in: &SignIn) -> Option<HeaderValue> {
    Cookie::Begun.set("", 0, sign_in.is_https())
}

/// Starts the session: the path to go to, and its cookie.
async fn signed_in(
    identities: &Identities,
    sign_in: &SignIn,
    headers: &HeaderMap,
    begun: &Begun,
    callback: Callback,
) -> Result<(String, Option<HeaderValue>), SignInError> {
    let (person, given) = sign_in.finish(begun, callback).await?;
    let user = identities.user_of(&person).await.map_err(|error| match error {
        IdentityError::Token(TokenError::NotAllowed(message)) => SignInError::NotAllowed(message),
        error => SignInError::Provider(format!("the user is not known: {error:?}")),
    })?;
    let (store, now, lasts) = (identities.store(), SystemClock.now(), sign_in.session_lasts());
    let started = Session::start(&person.tenant, &user.id, now, lasts);
    let (session, secret) = started.map_err(|fault| SignInError::Random(fault.to_string()))?;
    let (session, secret) = match person.by_groups {
        true => session::at_most(person.level, session, &secret),
        false => (session, secret),
    };
    let failed = |cause: registry_core::store::StoreError| SignInError::Provider(cause.to_string());
    // The browser has one session, not the one before too.
    if let Some(before) = Cookie::Session.read(headers, sign_in.is_https())
        && let Some(before) = store.session(&hash_key(&before), now).await.map_err(failed)?
    {
        store.end_session(&before.tenant, &before.user, &before.id).await.map_err(failed)?;
        forget_tokens(identities, &before.tenant, &before.user, &before.id).await;
    }
    tracing::info!(user = user.id, session = session.id, "signed_in");
    let (id, until) = (session.id.clone(), session.expires_at);
    if !store.put_session(session, MAX_SESSIONS).await.map_err(failed)? {
        return Err(SignInError::NotAllowed(format!("{} was removed just now", user.id)));
    }
    if let Some(connections) = identities.connections().filter(|connections| connections.exchanges()) {
        if let Some(given) = given {
            connections.signed_in(&person.tenant, &user.id, &id, until, given).await;
        }
        // The oldest have given way.
        let open = store.sessions(&person.tenant, &user.id, now).await.map_err(failed)?;
        let open: Vec<String> = open.into_iter().map(|session| session.id).collect();
        connections.signed_in_only(&person.tenant, &user.id, &open).await.map_err(failed)?;
    }
    Ok((begun.path().to_owned(), Cookie::Session.set(&secret, lasts.as_secs(), sign_in.is_https())))
}

/// Forgets what the provider gave for a session that has ended.
async fn forget_tokens(identities: &Identities, tenant: &str, user: &str, session: &str) {
    if let Some(connections) = identities.connections()
        && let Err(cause) = connections.signed_out(tenant, user, session).await
    {
        // It serves nothing any more: its session is not there.
        tracing::error!(%cause, user, session, "sign_in_tokens_not_forgotten");
    }
}

async fn show(identities: &Identities, identity: Identity) -> Result<Json<SignedIn>, ApiError> {
    let (tenant, user, now) = (identity.registry.tenant(), &identity.caller.user, SystemClock.now());
    let sessions = identities.store().sessions(tenant, user, now).await?;
    let own = sessions.iter().find(|session| Some(session.sha256.as_str()) == identity.session());
    let session = own.map(|session| session.id.clone());
    let shown = |Session { id, created_at, expires_at, .. }| ShownSession { id, created_at, expires_at };
    let sessions = sessions.into_iter().map(shown).collect();
    Ok(Json(SignedIn { user: user.clone(), level: identity.caller.level.to_string(), session, sessions }))
}

async fn sign_out(identities: &Identities, identity: Identity) -> Result<Response, ApiError> {
    let Some(sign_in) = identities.sign_in() else { return Ok(StatusCode::NOT_FOUND.into_response()) };
    let (store, now) = (identities.store(), SystemClock.now());
    if let Some(sha256) = identity.session()
        && let Some(session) = store.session(sha256, now).await?
    {
        store.end_session(&session.tenant, &session.user, &session.id).await?;
        identity.forget();
        forget_tokens(identities, &session.tenant, &session.user, &session.id).await;
        tracing::info!(user = session.user, session = session.id, "signed_out");
    }
    let mut response = Json(SignedOut { location: sign_in.end_url().await }).into_response();
    let gone = Cookie::Session.set("", 0, sign_in.is_https());
    response.headers_mut().extend(gone.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}

fn goes_to(url: &str, cookies: impl IntoIterator<Item = Option<HeaderValue>>) -> Response {
    let headers = [
        (header::LOCATION, url),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    let mut response = (StatusCode::SEE_OTHER, headers).into_response();
    for cookie in cookies.into_iter().flatten() {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// A page that says why nobody was signed in.
fn refused(sign_in: &SignIn, error: &SignInError, path: &str) -> Response {
    let (status, code, text, about) = match error {
        SignInError::Foreign => (
            StatusCode::BAD_REQUEST,
            "sign_in_foreign",
            "This sign-in was not begun in this browser, or it has been used or waited too long.".to_owned(),
            "",
        ),
        SignInError::Refused(error) => (
            StatusCode::BAD_REQUEST,
            "sign_in_refused",
            format!("The identity provider did not sign you in: {error}."),
            error.as_str(),
        ),
        SignInError::NotAllowed(message) => (
            StatusCode::FORBIDDEN,
            "sign_in_not_allowed",
            format!("You may not come in: {message}."),
            message.as_str(),
        ),
        SignInError::Busy => (
            StatusCode::SERVICE_UNAVAILABLE,
            "sign_in_busy",
            "Too many people are signing in just now; try again in a moment.".to_owned(),
            "",
        ),
        SignInError::Provider(cause) | SignInError::Random(cause) => {
            tracing::error!(issuer = sign_in.issuer(), cause, "sign_in_failed");
            let text = "The identity provider does not answer as it should; the server's log says why.";
            (StatusCode::SERVICE_UNAVAILABLE, "sign_in_failed", text.to_owned(), "")
        }
    };
    let again = Some(format!("{}/", sign_in.public_url()));
    Message { status, code, title: "Not signed in", text, about: about.to_owned(), again }.at(path)
}
