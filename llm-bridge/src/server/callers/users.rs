//! `/api/users` and `/api/keys`: the users of a tenant and their keys, for its admins; `/api/account`: who asks.

use std::collections::BTreeMap;

use axum::{
    Extension, Json,
    extract::State,
    http::{Method, StatusCode},
};
use jiff::Timestamp;
use registry_core::{
    Permission,
    clock::{Clock, SystemClock},
    store::{ApiKey, StoreError, User},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    admin::{self, Admin, NOT_ADMIN},
    identity::Identity,
};
use crate::{
    identifier::{check_key_name, check_new_user},
    personas::change_user,
    removal::remove_user,
    server::{
        App,
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{Body, JsonBody},
            name::Name,
            pages::{Page, named},
        },
        routes::Routes,
    },
};

pub(in crate::server) const ABOVE: &str =
    "The user is not an admin, or has a lower level than the one that is meant (`permission_denied`).";

pub(in crate::server) fn routes() -> Routes {
    Routes::new()
        .add("/api/account", account, account_operation())
        .add("/api/users", list, list_operation())
        .add("/api/users", add, add_operation())
        .add("/api/users/{id}", promote, promote_operation())
        .add("/api/users/{id}", remove, remove_operation())
        .add("/api/keys", list_keys, list_keys_operation())
        .add("/api/keys", create_key, create_key_operation())
        .add("/api/keys/{id}", revoke_key, revoke_key_operation())
}

/// Who sends the request.
#[derive(Serialize, JsonSchema)]
struct Account {
    /// The user's id.
    user: String,
    /// The user's level.
    #[schemars(with = "String", extend("enum" = ["guest", "user", "admin", "owner"]))]
    level: Permission,
    /// The tenant.
    tenant: String,
    /// Whether it is the user of the configuration, as whom requests without a key come.
    configured: bool,
    /// Whether the user manages what all tenants share.
    operator: bool,
}

fn account_operation() -> Operation {
    Operation::new(Method::GET, "Users", "account", "Who sends the request")
        .answers::<Account>(200, "The user.")
}

async fn account(Extension(identity): Extension<Identity>) -> Json<Account> {
    Json(Account {
        user: identity.caller.user.clone(),
        level: identity.caller.level,
        tenant: identity.registry.tenant().to_owned(),
        configured: identity.is_configured(),
        operator: identity.require_operator().is_ok(),
    })
}

/// A user as it is listed.
#[derive(Serialize, JsonSchema)]
struct ListedUser {
    /// The id.
    id: String,
    /// The level.
    #[schemars(with = "String", extend("enum" = ["guest", "user", "admin", "owner"]))]
    level: Permission,
    /// The names of the user's personas, the default one first; without any the user may use all modules.
    personas: Vec<String>,
    /// When the user was added (UTC).
    created_at: Timestamp,
    /// How many valid keys the user has.
    keys: usize,
}

impl ListedUser {
    fn new(user: User, keys: usize) -> Self {
        let User { id, level, personas, created_at } = user;
        Self { id, level, personas, created_at, keys }
    }
}

/// The users of the tenant.
#[derive(Serialize, JsonSchema)]
struct UserList {
    users: Vec<ListedUser>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

fn list_operation() -> Operation {
    let operation = Operation::new(Method::GET, "Users", "list_users", "The users of the tenant")
        .answers::<UserList>(200, "The users, by id.")
        .refuses(403, NOT_ADMIN);
    Page::operation(operation)
}

async fn list(Admin(identity): Admin, page: Page) -> Result<Json<UserList>, ApiError> {
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let mut valid: BTreeMap<String, usize> = BTreeMap::new();
    let now = SystemClock.now();
    for key in store.keys(tenant).await?.into_iter().filter(|key| key.is_valid(now)) {
        *valid.entry(key.user).or_default() += 1;
    }
    let (users, next) = page.of(store.users(tenant).await?, |user| named(&user.id));
    let users = users.into_iter().map(|user| {
        let keys = valid.get(&user.id).copied().unwrap_or(0);
        ListedUser::new(user, keys)
    });
    Ok(Json(UserList { users: users.collect(), next }))
}

/// A new user.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewUser {
    /// The id.
    id: String,
    /// The level.
    #[schemars(with = "String", extend("enum" = ["guest", "user", "admin", "owner"]))]
    level: Permission,
}

impl Body for NewUser {
    const EXAMPLE: &str = r#"`{"id": "ada", "level": "user"}`"#;
}

fn add_operation() -> Operation {
    Operation::new(Method::POST, "Users", "add_user", "Add a user")
        .reads::<NewUser>()
        .answers::<ListedUser>(201, "The user.")
        .refuses(403, ABOVE)
        .refuses(409, "There is a user with that id (`user_exists`).")
}

async fn add(
    Admin(identity): Admin,
    JsonBody(NewUser { id, level }): JsonBody<NewUser>,
) -> Result<(StatusCode, Json<ListedUser>), ApiError> {
    check_new_user(&id).map_err(|rule| ApiError::invalid("id", format!("a user's id has to be {rule}")))?;
    may_give(&identity, level)?;
    // What is kept under the id of the configured user is that user's.
    may_change(&identity, &id, None).await?;
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    if store.user(tenant, &id).await?.is_some() {
        let message = format!("there is a user `{id}` already");
        return Err(ApiError::new(StatusCode::CONFLICT, "user_exists", message));
    }
    let user = User { id: id.clone(), level, personas: Vec::new(), created_at: SystemClock.now() };
    let put = store.put_user(tenant, user.clone());
    admin::change(&identity, "toolrack user add", json!({"user": id, "level": level}), put).await?;
    Ok((StatusCode::CREATED, Json(ListedUser::new(user, 0))))
}

/// The level of a user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserLevel {
    /// The level from now on.
    #[schemars(with = "String", extend("enum" = ["guest", "user", "admin", "owner"]))]
    level: Permission,
}

impl Body for UserLevel {
    const EXAMPLE: &str = r#"`{"level": "admin"}`"#;
}

fn promote_operation() -> Operation {
    Operation::new(Method::POST, "Users", "change_user", "Change the level of a user")
        .details("It holds within a second, for running turns too.")
        .path("id", "The user's id.")
        .reads::<UserLevel>()
        .answers::<UserLevel>(200, "The level as it is now.")
        .refuses(403, ABOVE)
        .refuses(404, "There is no such user (`user_not_found`).")
}

async fn promote(
    Admin(identity): Admin,
    Name(id): Name,
    JsonBody(UserLevel { level }): JsonBody<UserLevel>,
) -> Result<Json<UserLevel>, ApiError> {
    may_give(&identity, level)?;
    known(&identity, &id).await?;
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let promote = change_user(store.as_ref(), tenant, &id, |user| user.level = level);
    let arguments = json!({"user": id, "level": level});
    let before = admin::change(&identity, "toolrack user promote", arguments, promote).await?;
    before.map(|_| Json(UserLevel { level })).ok_or_else(|| unknown(&id))
}

fn remove_operation() -> Operation {
    Operation::new(Method::DELETE, "Users", "remove_user", "Remove a user")
        .details(
            "The user's keys are revoked, the user's chats, conversations and files deleted, accounts on MCP servers revoked there too; what \
             waits for the user's answer is withdrawn.",
        )
        .path("id", "The user's id.")
        .answers_nothing(204, "The user is gone.")
        .refuses(403, ABOVE)
        .refuses(404, "There is no such user (`user_not_found`).")
}

async fn remove(
    State(app): State<App>,
    Admin(identity): Admin,
    Name(id): Name,
) -> Result<StatusCode, ApiError> {
    known(&identity, &id).await?;
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    // The user is gone, whether or not they are.
    let documents = async {
        app.documents.forget_chats_of(&identity, &id).await;
        Ok::<_, StoreError>(())
    };
    let asked = identity.registry.forget_asked(&id);
    let remove = remove_user(store.as_ref(), identity.connections(), (tenant, &id), asked, documents);
    admin::change(&identity, "toolrack user remove", json!({"user": id}), remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A key as it is listed: never the key itself.
#[derive(Serialize, JsonSchema)]
struct ListedKey {
    /// Names the key; no secret.
    id: String,
    /// The user whose it is.
    user: String,
    /// What it is called, such as the device it is on; may be empty.
    name: String,
    /// Whether calls with it may name the user that they are for.
    delegate: bool,
    /// When it was made (UTC).
    created_at: Timestamp,
    /// Until when it opens anything (UTC); `null` is until it is revoked.
    expires_at: Option<Timestamp>,
    /// When it was last used (UTC), to a minute; `null` if it never was.
    last_used_at: Option<Timestamp>,
    /// When it was revoked (UTC).
    revoked_at: Option<Timestamp>,
}

impl From<ApiKey> for ListedKey {
    fn from(key: ApiKey) -> Self {
        let ApiKey {
            id,
            tenant: _,
            user,
            name,
            sha256: _,
            delegate,
            created_at,
            expires_at,
            last_used_at,
            revoked_at,
        } = key;
        Self { id, user, name, delegate, created_at, expires_at, last_used_at, revoked_at }
    }
}

/// The keys of the tenant.
#[derive(Serialize, JsonSchema)]
struct KeyList {
    keys: Vec<ListedKey>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

fn list_keys_operation() -> Operation {
    let operation = Operation::new(Method::GET, "Users", "list_keys", "The keys of the tenant's users")
        .answers::<KeyList>(200, "The keys, oldest first, also those that are revoked or have expired.")
        .refuses(403, NOT_ADMIN);
    Page::operation(operation)
}

async fn list_keys(Admin(identity): Admin, page: Page) -> Result<Json<KeyList>, ApiError> {
    let keys = identity.stored.store().keys(identity.registry.tenant()).await?;
    let (keys, next) = page.of(keys, |key| (key.created_at, key.id.clone()));
    Ok(Json(KeyList { keys: keys.into_iter().map(ListedKey::from).collect(), next }))
}

/// Whose key is made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewKey {
    /// The user's id.
    user: String,
    /// What it is called, such as the device it is on.
    #[serde(default)]
    name: String,
    /// Whether calls with it may name the user that they are for; meant for another server that calls this one.
    #[serde(default)]
    delegate: bool,
    /// Until when it opens anything (UTC); without it, until it is revoked.
    #[serde(default)]
    expires_at: Option<Timestamp>,
}

impl Body for NewKey {
    const EXAMPLE: &str = r#"`{"user": "ada"}`"#;
}

/// A key that was made.
#[derive(Serialize, JsonSchema)]
struct CreatedKey {
    #[serde(flatten)]
    listed: ListedKey,
    /// The key, which is shown this once.
    key: String,
}

fn create_key_operation() -> Operation {
    Operation::new(Method::POST, "Users", "create_key", "Make a key for a user")
        .details("The answer has the key, which is not kept and cannot be had again.")
        .reads::<NewKey>()
        .answers::<CreatedKey>(201, "The key.")
        .refuses(
            400,
            "`expires_at` is not in the future, or `name` is no name (`invalid_request_error`, with the field as `param`).",
        )
        .refuses(403, ABOVE)
        .refuses(404, "There is no such user (`user_not_found`).")
}

async fn create_key(
    Admin(identity): Admin,
    JsonBody(NewKey { user, name, delegate, expires_at }): JsonBody<NewKey>,
) -> Result<(StatusCode, Json<CreatedKey>), ApiError> {
    known(&identity, &user).await?;
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let now = SystemClock.now();
    if let Some(past) = expires_at.filter(|until| *until <= now) {
        return Err(ApiError::invalid(
            "expires_at",
            format!("`expires_at` is {past}, which is not in the future"),
        ));
    }
    check_key_name(&name)
        .map_err(|rule| ApiError::invalid("name", format!("the name of a key has to be {rule}")))?;
    let generated = ApiKey::generate(tenant, &user, delegate, now);
    let (key, secret) = generated.map_err(|fault| ApiError::internal(fault.to_string()))?;
    let arguments = json!({"user": user, "name": name, "delegate": delegate, "expires_at": expires_at});
    let key = ApiKey { name, expires_at, ..key };
    let put = store.put_key(key.clone());
    // The user may have gone meanwhile.
    if !admin::change(&identity, "toolrack key create", arguments, put).await? {
        return Err(unknown(&user));
    }
    Ok((StatusCode::CREATED, Json(CreatedKey { listed: key.into(), key: secret })))
}

fn revoke_key_operation() -> Operation {
    Operation::new(Method::DELETE, "Users", "revoke_key", "Revoke a key")
        .details("It opens nothing any more within a second. One that has expired can be revoked too.")
        .path("id", "The key's id.")
        .answers_nothing(204, "It is revoked.")
        .refuses(403, ABOVE)
        .refuses(404, "There is no such valid key (`key_not_found`).")
}

async fn revoke_key(Admin(identity): Admin, Name(id): Name) -> Result<StatusCode, ApiError> {
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let missing = || ApiError::not_found("key_not_found", format!("there is no valid key `{id}`"));
    let key = store.key_of_id(tenant, &id).await?.filter(|key| key.revoked_at.is_none());
    let key = key.ok_or_else(missing)?;
    if let Some(user) = store.user(tenant, &key.user).await? {
        may_change(&identity, &user.id, Some(user.level)).await?;
    }
    let revoke = store.revoke_key(tenant, &id, SystemClock.now());
    match admin::change(&identity, "toolrack key revoke", json!({"key": id}), revoke).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(missing()),
    }
}

pub(in crate::server) fn unknown(id: &str) -> ApiError {
    ApiError::not_found("user_not_found", format!("there is no user `{id}`"))
}

/// A user whom the caller may change.
async fn known(identity: &Identity, id: &str) -> Result<User, ApiError> {
    let user = identity.stored.store().user(identity.registry.tenant(), id).await?;
    let user = user.ok_or_else(|| unknown(id))?;
    may_change(identity, &user.id, Some(user.level)).await?;
    Ok(user)
}

/// Whether the level of a user is above the caller's. Of who is gone it is not.
pub(in crate::server) async fn is_above(identity: &Identity, user: &str) -> Result<bool, ApiError> {
    // Nobody is above an owner.
    if identity.caller.level == Permission::Owner {
        return Ok(false);
    }
    let stored = identity.stored.store().user(identity.registry.tenant(), user).await?;
    let level = stored.map(|user| user.level).max(identity.configured_level(user).await?);
    Ok(level.is_some_and(|level| level > identity.caller.level))
}

/// Refuses changes of a user whose level is above the caller's: the stored one, or that of the configuration, whose user needs no entry.
pub(in crate::server) async fn may_change(
    identity: &Identity,
    user: &str,
    stored: Option<Permission>,
) -> Result<(), ApiError> {
    match stored.max(identity.configured_level(user).await?) {
        Some(level) if level > identity.caller.level => {
            Err(ApiError::denied(format!("{user} has the level {level}, which is above yours")))
        }
        _ => Ok(()),
    }
}

fn may_give(identity: &Identity, level: Permission) -> Result<(), ApiError> {
    if level <= identity.caller.level {
        return Ok(());
    }
    Err(ApiError::denied(format!("the level {level} is above yours")))
}
