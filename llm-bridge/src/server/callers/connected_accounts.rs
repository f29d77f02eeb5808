//! `/api/connected-accounts`: the accounts on MCP servers that users of a tenant have let this server into, for its admins.

use axum::{
    Json,
    http::{Method, StatusCode},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolrack_remote::mcp::oauth::StoredAccount;

use super::{
    admin::{self, Admin, NOT_ADMIN},
    users::may_change,
};
use crate::server::{
    openapi::Operation,
    requests::{
        api_error::ApiError,
        name::Name,
        pages::{Page, named},
        query::QueryParameters,
    },
    routes::Routes,
};

pub(in crate::server) fn routes() -> Routes {
    Routes::new().add("/api/connected-accounts", list, list_operation()).add(
        "/api/connected-accounts/{server}",
        revoke,
        revoke_operation(),
    )
}

/// An account that somebody has let this server into.
#[derive(Serialize, JsonSchema)]
struct ConnectedAccount {
    /// The MCP server's name.
    server: String,
    /// Whose it is; null where all users share it.
    user: Option<String>,
    /// Since when (UTC).
    since: Timestamp,
    /// The authorization server; null where the account was sealed with another key.
    issuer: Option<String>,
}

/// The accounts of a tenant's users.
#[derive(Serialize, JsonSchema)]
struct ConnectedAccounts {
    accounts: Vec<ConnectedAccount>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

fn list_operation() -> Operation {
    let operation = Operation::new(
        Method::GET,
        "MCP",
        "list_connected_accounts",
        "The accounts on MCP servers of the tenant's users",
    )
    .details("With those that all users share.")
    .answers::<ConnectedAccounts>(200, "The accounts, by server and user.")
    .refuses(403, NOT_ADMIN);
    Page::operation(operation)
}

async fn list(Admin(identity): Admin, page: Page) -> Result<Json<ConnectedAccounts>, ApiError> {
    let Some(connections) = identity.connections() else {
        return Ok(Json(ConnectedAccounts { accounts: Vec::new(), next: None }));
    };
    let tenant = identity.registry.tenant();
    let mut all = connections.all().await?;
    all.retain(|account| account.tenant == tenant || account.tenant.is_empty());
    let (all, next) = page.of(all, |account| named(&format!("{}/{}", account.server, account.user)));
    let accounts = all.into_iter().map(|account| {
        let StoredAccount { tenant: _, user, server, since, issuer } = account;
        ConnectedAccount { server, user: Some(user).filter(|user| !user.is_empty()), since, issuer }
    });
    Ok(Json(ConnectedAccounts { accounts: accounts.collect(), next }))
}

/// Whose account.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whose {
    user: Option<String>,
}

fn revoke_operation() -> Operation {
    Operation::new(Method::DELETE, "MCP", "revoke_connected_account", "End a user's connection to an MCP server")
        .details("Here and at the authorization server. Without `user` the account that all users share, which is for the operator.")
        .path("server", "The MCP server's name.")
        .query("user", "The user's id.")
        .answers_nothing(204, "It is ended.")
        .refuses(400, "A query parameter is unknown (`invalid_request_error`).")
        .refuses(403, "The user is not an admin, has a lower level than the one whose it is, or is no operator where all share it (`permission_denied`).")
        .refuses(404, "There is no such account (`connection_not_found`).")
}

async fn revoke(
    Admin(identity): Admin,
    Name(server): Name,
    QueryParameters(Whose { user }): QueryParameters<Whose>,
) -> Result<StatusCode, ApiError> {
    let user = user.filter(|user| !user.is_empty());
    match &user {
        Some(id) => {
            let stored = identity.stored.store().user(identity.registry.tenant(), id).await?;
            may_change(&identity, id, stored.map(|user| user.level)).await?;
        }
        None => identity.require_operator()?,
    }
    let missing = || {
        let whose =
            user.as_ref().map_or("no shared account".to_owned(), |user| format!("no account of `{user}`"));
        ApiError::not_found("connection_not_found", format!("there is {whose} on `{server}`"))
    };
    let connections = identity.connections().ok_or_else(missing)?;
    let (tenant, of) = match &user {
        Some(user) => (identity.registry.tenant(), user.as_str()),
        None => ("", ""),
    };
    let arguments = json!({"server": server, "user": user});
    let revoke = connections.disconnect(tenant, of, &server);
    match admin::change(&identity, "toolrack connections revoke", arguments, revoke).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}
