//! `/api/connections` and `/connect`: the accounts that users have on MCP servers, and how they let this server in.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use registry_core::{
    clock::{Clock, SystemClock},
    store::hash_key,
};
use schemars::JsonSchema;
use serde::Serialize;
use toolrack_remote::mcp::oauth::{
    AUTHORIZATION_SECONDS, AuthorizationCallback, Beginning, CALLBACK, ConnectError, Connection, Connections,
};

use super::{
    access::host_of,
    identity::{Identities, Identity},
    message::Message,
    session::Cookie,
};
use crate::server::{
    App,
    openapi::Operation,
    page,
    requests::{api_error::ApiError, name::Name, public_url::PublicUrl, query::QueryParameters},
    routes::Routes,
};

const NO_SERVER: &str = "No server of that name wants authorization (`connection_not_found`).";

/// A user's accounts.
#[derive(Serialize, JsonSchema)]
struct ConnectionList {
    connections: Vec<Connection>,
}

/// Where the browser goes next.
#[derive(Serialize, JsonSchema)]
struct Authorizing {
    /// The page of the authorization server, for the browser that has asked.
    location: String,
}

/// For anybody: the page on which a user begins, and where the authorization server sends back to.
pub(in crate::server) fn routes(connections: Option<&Connections>, identities: &Arc<Identities>) -> Routes {
    let Some(connections) = connections.cloned() else { return Routes::new() };
    let ends = Arc::clone(identities);
    let end = move |State(app): State<App>,
                    uri: Uri,
                    headers: HeaderMap,
                    QueryParameters(callback): QueryParameters<AuthorizationCallback>| async move {
        end(&app, &connections, &ends, (uri.path(), &headers), callback).await
    };
    let html = "text/html; charset=utf-8";
    let end_operation = Operation::new(
        Method::GET,
        "MCP",
        "connection_callback",
        "Where an authorization server sends a browser back to",
    )
    .query("code", "What the authorization server gives tokens for.")
    .query("state", "What was sent to it.")
    .query("iss", "The authorization server.")
    .query("error", "Why it has refused.")
    .answers_with(200, html, "The account is connected.")
    .answers_with(403, html, "It belongs to no authorization of this browser, or was refused.")
    .answers_with(503, html, "The authorization server does not answer as it should.");
    let begin = Operation::new(
        Method::GET,
        "MCP",
        "connect_page",
        "The page on which a user lets this server into an account",
    )
    .path("server", "The MCP server's name.")
    .answers_with(200, html, "The page.")
    .answers_nothing(307, "The page has no slash at its end.");
    Routes::new().add("/connect/{server}", page::serve_connect, begin).add(CALLBACK, end, end_operation)
}

/// For the user of a request.
pub(in crate::server) fn own_routes(connections: Option<&Connections>) -> Routes {
    let Some(all) = connections.cloned() else { return Routes::new() };
    let (lists, begins, removes) = (all.clone(), all.clone(), all);
    let list = move |Extension(identity): Extension<Identity>| async move { list(&lists, &identity).await };
    let begin =
        move |State(app): State<App>,
              Extension(identity): Extension<Identity>,
              headers: HeaderMap,
              Name(server): Name| async move { begin(&app, &begins, &identity, &headers, &server).await };
    let remove = move |Extension(identity): Extension<Identity>, Name(server): Name| async move {
        remove(&removes, &identity, &server).await
    };
    Routes::new()
        .add(
            "/api/connections",
            list,
            Operation::new(Method::GET, "MCP", "list_connections", "The user's accounts on MCP servers")
                .answers::<ConnectionList>(200, "Every server on which the user can have one."),
        )
        .add(
            "/api/connections/{server}",
            begin,
            Operation::new(
                Method::POST,
                "MCP",
                "connect",
                "Begins to let this server into the user's account",
            )
            .path("server", "The MCP server's name.")
            .answers::<Authorizing>(200, "Where the browser that has asked goes; it also gets a cookie.")
            .refuses(403, "All users share the account, and the user is no operator (`permission_denied`).")
            .refuses(404, NO_SERVER)
            .refuses(421, "The server does not know that it is reached by this name (`host_not_allowed`).")
            .refuses(502, "The authorization server cannot be used (`authorization_failed`)."),
        )
        .add(
            "/api/connections/{server}",
            remove,
            Operation::new(
                Method::DELETE,
                "MCP",
                "disconnect",
                "Ends it, here and at the authorization server",
            )
            .path("server", "The MCP server's name.")
            .answers_nothing(204, "It is ended.")
            .refuses(403, "All users share the account, and the user is no operator (`permission_denied`).")
            .refuses(404, "The user has no such connection (`connection_not_found`)."),
        )
}

async fn list(connections: &Connections, identity: &Identity) -> Result<Json<ConnectionList>, ApiError> {
    let mut list = connections.list(identity.registry.tenant(), &identity.caller.user).await?;
    list.retain(|connection| identity.may_use_module(&connection.server));
    Ok(Json(ConnectionList { connections: list }))
}

fn not_found(server: &str) -> ApiError {
    ApiError::not_found(
        "connection_not_found",
        format!("there is no account to connect on a server `{server}`"),
    )
}

/// Refuses who may not use the server, and who is no operator where all share the account.
fn check(connections: &Connections, identity: &Identity, server: &str) -> Result<(), ApiError> {
    if !identity.may_use_module(server) {
        return Err(not_found(server));
    }
    if connections.is_shared(server) { identity.require_operator() } else { Ok(()) }
}

async fn begin(
    app: &App,
    connections: &Connections,
    identity: &Identity,
    headers: &HeaderMap,
    server: &str,
) -> Result<Response, ApiError> {
    check(connections, identity, server)?;
    // The authorization server sends the browser there, with what opens the account.
    if app.settings.public_url.is_none() && !host_of(headers).is_some_and(|host| identity.is_own_host(host)) {
        let message = "this server does not know that it is reached by this name; its operator sets `public_url`, or adds the name to `allowed_hosts`";
        return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", message));
    }
    let url = PublicUrl::of(app.settings.public_url.as_ref(), headers);
    let url =
        url.ok_or_else(|| ApiError::invalid("host", "the request does not name this server"))?.to_string();
    let (tenant, user) = (identity.registry.tenant(), &identity.caller.user);
    let begun = connections.begin(server, tenant, user, &format!("{url}{CALLBACK}")).await;
    let Beginning { cookie, location } = begun.map_err(|error| match error {
        ConnectError::Failed(cause) if identity.require_operator().is_ok() => {
            ApiError::new(StatusCode::BAD_GATEWAY, "authorization_failed", cause)
        }
        ConnectError::Failed(_) => {
            let message = "the authorization server cannot be used; the server's log says why";
            ApiError::new(StatusCode::BAD_GATEWAY, "authorization_failed", message)
        }
        _ => not_found(server),
    })?;
    let cookie = Cookie::Connecting.set(&cookie, AUTHORIZATION_SECONDS, url.starts_with("https:"));
    let mut response = Json(Authorizing { location }).into_response();
    response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn remove(
    connections: &Connections,
    identity: &Identity,
    server: &str,
) -> Result<StatusCode, ApiError> {
    check(connections, identity, server)?;
    let (tenant, user) = match connections.is_shared(server) {
        true => ("", ""),
        false => (identity.registry.tenant(), identity.caller.user.as_str()),
    };
    match connections.disconnect(tenant, user, server).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_found(server)),
    }
}

async fn end(
    app: &App,
    connections: &Connections,
    identities: &Identities,
    (path, headers): (&str, &HeaderMap),
    callback: AuthorizationCallback,
) -> Response {
    let url = PublicUrl::of(app.settings.public_url.as_ref(), headers);
    let is_https = url.is_some_and(|url| url.to_string().starts_with("https:"));
    let finished = match Cookie::Connecting.read(headers, is_https) {
        None => Err(ConnectError::Foreign),
        Some(cookie) => finish(connections, identities, headers, &cookie, callback, is_https).await,
    };
    let (status, code, text, about) = match finished {
        Ok(server) => {
            let text = format!("{server} can be used now. Go back to where you came from.");
            (StatusCode::OK, "connected", text, server)
        }
        Err(ConnectError::Foreign) => {
            let text = "This authorization was not begun in this browser by you, or it has been used or waited too long.";
            (StatusCode::FORBIDDEN, "connect_foreign", text.to_owned(), String::new())
        }
        Err(ConnectError::Unknown) => {
            let text = "The server is not configured any more.";
            (StatusCode::FORBIDDEN, "connect_unknown", text.to_owned(), String::new())
        }
        Err(ConnectError::Refused(error)) => {
            let text = format!("The authorization server has refused: {error}.");
            (StatusCode::FORBIDDEN, "connect_refused", text, error)
        }
        Err(ConnectError::Failed(cause)) => {
            tracing::error!(cause, "mcp_authorization_failed");
            let text = "The authorization server does not answer as it should; the server's log says why.";
            (StatusCode::SERVICE_UNAVAILABLE, "connect_failed", text.to_owned(), String::new())
        }
    };
    let title = if status == StatusCode::OK { "Connected" } else { "Not connected" };
    let mut response = Message { status, code, title, text, about, again: None }.at(path);
    let over = Cookie::Connecting.set("", 0, is_https);
    response.headers_mut().extend(over.map(|cookie| (header::SET_COOKIE, cookie)));
    response
}

async fn finish(
    connections: &Connections,
    identities: &Identities,
    headers: &HeaderMap,
    cookie: &str,
    callback: AuthorizationCallback,
    is_https: bool,
) -> Result<String, ConnectError> {
    let failed = |cause: registry_core::store::StoreError| ConnectError::Failed(cause.to_string());
    let session = match Cookie::Session.read(headers, is_https) {
        Some(secret) => {
            identities.store().session(&hash_key(&secret), SystemClock.now()).await.map_err(failed)?
        }
        None => None,
    };
    let signed_in = session.as_ref().map(|session| (session.tenant.as_str(), session.user.as_str()));
    connections.finish(cookie, callback, signed_in).await
}
