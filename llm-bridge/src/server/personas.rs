//! `/api/personas` and `/api/users/{id}/personas`: the personas of a tenant and who has which, for its admins. Others see those that they
//! may use.

use std::collections::BTreeSet;

use axum::{
    Extension, Json,
    extract::Query,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use registry_core::{Permission, store::Persona};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    admin::{self, ADMINS_ONLY},
    body::{JsonBody, misread},
    error,
    identity::Identity,
    name::Name,
    openapi::Operation,
    store_failed,
};
use crate::{
    identifier::check_identifier,
    personas::{self, PersonaChangeError, users_of},
};

/// So many modules a persona may have.
const MAX_MODULES: usize = 1000;
/// So many personas a user may have.
const MAX_PERSONAS: usize = 100;

/// A persona as it is listed.
#[derive(Serialize, JsonSchema)]
struct ListedPersona {
    #[serde(flatten)]
    persona: Persona,
    /// The users who have it; for admins only.
    #[serde(skip_serializing_if = "Option::is_none")]
    users: Option<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
struct PersonaList {
    personas: Vec<ListedPersona>,
}

pub(super) fn list_operation() -> Operation {
    Operation::new("Personas", "list_personas", "The personas that the user may call under")
        .details("An admin sees all, with their users.")
        .answers::<PersonaList>(200, "The personas, by name.")
}

pub(super) async fn list(Extension(identity): Extension<Identity>) -> Response {
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let is_admin = identity.caller.level >= Permission::Admin;
    let found = async {
        let users = store.users(tenant).await?;
        let own =
            users.iter().find(|user| user.id == identity.caller.user).filter(|_| !identity.is_configured());
        let own = own.map_or(&[][..], |user| &user.personas);
        let mut personas = store.personas(tenant).await?;
        personas.retain(|persona| is_admin || personas::may_use(own, &persona.name));
        Ok(personas
            .into_iter()
            .map(|persona| {
                let users = is_admin.then(|| users_of(&users, &persona.name));
                ListedPersona { persona, users }
            })
            .collect())
    };
    match found.await {
        Ok(personas) => Json(PersonaList { personas }).into_response(),
        Err(cause) => failed(PersonaChangeError::Store(cause)),
    }
}

/// A new persona.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPersona {
    /// The name.
    name: String,
    /// The modules that may be used. Tools without a module belong to `local`.
    allowed_modules: BTreeSet<String>,
}

pub(super) fn add_operation() -> Operation {
    Operation::new("Personas", "add_persona", "Adds a persona")
        .reads::<NewPersona>()
        .answers::<Persona>(201, "The persona.")
        .refuses(403, ADMINS_ONLY)
        .refuses(409, "There is a persona of that name (`persona_exists`).")
}

pub(super) async fn add(Extension(identity): Extension<Identity>, JsonBody(body): JsonBody) -> Response {
    let new: NewPersona = match read(body, r#"{"name": "reading", "allowed_modules": ["research"]}"#) {
        Ok(new) => new,
        Err(refused) => return refused,
    };
    if let Err(refused) = check([&new.name], "name").and_then(|()| check_modules(&new.allowed_modules)) {
        return refused;
    }
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let arguments = json!({"name": new.name, "allowed_modules": new.allowed_modules});
    let add = personas::add(store.as_ref(), tenant, &new.name, new.allowed_modules);
    match admin::change(&identity, "toolrack persona add", arguments, add).await {
        Ok(Ok(persona)) => (StatusCode::CREATED, Json(persona)).into_response(),
        Ok(Err(fault)) => failed(fault),
        Err(refused) => refused,
    }
}

/// The modules of a persona.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PersonaModules {
    /// The modules that may be used from now on.
    allowed_modules: BTreeSet<String>,
}

pub(super) fn change_operation() -> Operation {
    Operation::new("Personas", "change_persona", "Changes the modules of a persona")
        .details("It holds within a second, for running turns too.")
        .path("name", "The persona's name.")
        .reads::<PersonaModules>()
        .answers::<Persona>(200, "The persona as it is now.")
        .refuses(403, ADMINS_ONLY)
        .refuses(404, "There is no persona of that name (`persona_not_found`).")
}

pub(super) async fn change(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
    JsonBody(body): JsonBody,
) -> Response {
    let PersonaModules { allowed_modules } = match read(body, r#"{"allowed_modules": ["research"]}"#) {
        Ok(modules) => modules,
        Err(refused) => return refused,
    };
    if let Err(refused) = check_modules(&allowed_modules) {
        return refused;
    }
    let arguments = json!({"name": name, "allowed_modules": allowed_modules});
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let change = personas::change_modules(store.as_ref(), tenant, &name, allowed_modules);
    match admin::change(&identity, "toolrack persona modules", arguments, change).await {
        Ok(Ok((_, persona))) => Json(persona).into_response(),
        Ok(Err(fault)) => failed(fault),
        Err(refused) => refused,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Removal {
    #[serde(default)]
    force: bool,
}

pub(super) fn remove_operation() -> Operation {
    Operation::new("Personas", "remove_persona", "Removes a persona")
        .details("With `force=true` also one that users have, who may use none of its modules any more.")
        .path("name", "The persona's name.")
        .query("force", "`true` or `false`.")
        .answers_nothing(204, "It is gone.")
        .refuses(400, "`force` is neither `true` nor `false` (`invalid_request_error`).")
        .refuses(403, ADMINS_ONLY)
        .refuses(404, "There is no persona of that name (`persona_not_found`).")
        .refuses(409, "Users have it (`persona_in_use`).")
}

pub(super) async fn remove(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
    removal: Result<Query<Removal>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Ok(Query(Removal { force })) = removal else {
        let message = "only `force` can be said, as in `?force=true`";
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", message, Some("query"));
    };
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let remove = personas::remove(store.as_ref(), tenant, &name, force);
    let arguments = json!({"name": name, "force": force});
    match admin::change(&identity, "toolrack persona remove", arguments, remove).await {
        Ok(Ok(_)) => StatusCode::NO_CONTENT.into_response(),
        Ok(Err(fault)) => failed(fault),
        Err(refused) => refused,
    }
}

/// The personas of a user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UserPersonas {
    /// Their names, the default one first; without any the user may use all modules.
    personas: Vec<String>,
}

pub(super) fn assign_operation() -> Operation {
    Operation::new("Personas", "assign_personas", "Gives a user personas in place of those the user has")
        .path("id", "The user's id.")
        .reads::<UserPersonas>()
        .answers::<UserPersonas>(200, "The user's personas as they are now.")
        .refuses(403, "The user is not of the level admin, or of a lower one than the other user (`permission_denied`).")
        .refuses(404, "There is no such user (`user_not_found`) or persona (`persona_not_found`).")
}

pub(super) async fn assign(
    Extension(identity): Extension<Identity>,
    Name(id): Name,
    JsonBody(body): JsonBody,
) -> Response {
    let UserPersonas { personas } = match read(body, r#"{"personas": ["reading"]}"#) {
        Ok(personas) => personas,
        Err(refused) => return refused,
    };
    if personas.len() > MAX_PERSONAS {
        return bad("personas", &format!("{MAX_PERSONAS} personas are the most that a user may have"));
    }
    if let Err(refused) = admin::require_admin(&identity, "giving users personas") {
        return refused;
    }
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    match store.user(tenant, &id).await {
        Ok(Some(user)) if user.level > identity.caller.level => {
            let message = format!("{id} has the level {}, which is above yours", user.level);
            return error(StatusCode::FORBIDDEN, "permission_denied", &message, None);
        }
        Ok(_) => {}
        Err(cause) => return store_failed(&cause),
    }
    let assign = personas::assign(store.as_ref(), tenant, &id, &personas);
    let arguments = json!({"user": id, "personas": personas});
    match admin::change(&identity, "toolrack user persona", arguments, assign).await {
        Ok(Ok(_)) => Json(UserPersonas { personas }).into_response(),
        Ok(Err(fault)) => failed(fault),
        Err(refused) => refused,
    }
}

/// What a body says; `example` is what could be sent instead.
fn read<T: for<'de> Deserialize<'de>>(body: Value, example: &str) -> Result<T, Response> {
    serde_json::from_value(body)
        .map_err(|fault| bad("body", &format!("not understood: {}; send `{example}`", misread(&fault))))
}

fn check_modules(modules: &BTreeSet<String>) -> Result<(), Response> {
    if modules.len() > MAX_MODULES {
        let message = format!("{MAX_MODULES} modules are the most that a persona may have");
        return Err(bad("allowed_modules", &message));
    }
    check(modules, "allowed_modules")
}

fn check<'n>(names: impl IntoIterator<Item = &'n String>, param: &str) -> Result<(), Response> {
    names.into_iter().try_for_each(|name| {
        check_identifier(name).map_err(|rule| bad(param, &format!("a name in `{param}` has to be {rule}")))
    })
}

fn bad(param: &str, message: &str) -> Response {
    error(StatusCode::BAD_REQUEST, "invalid_request_error", message, Some(param))
}

fn failed(fault: PersonaChangeError) -> Response {
    let (status, kind) = match &fault {
        PersonaChangeError::Store(cause) => return store_failed(cause),
        PersonaChangeError::Exists(_) => (StatusCode::CONFLICT, "persona_exists"),
        PersonaChangeError::InUse { .. } => (StatusCode::CONFLICT, "persona_in_use"),
        PersonaChangeError::Unknown { .. } => (StatusCode::NOT_FOUND, "persona_not_found"),
        PersonaChangeError::UnknownUser(_) => (StatusCode::NOT_FOUND, "user_not_found"),
    };
    let how = if matches!(fault, PersonaChangeError::InUse { .. }) { ", or send `?force=true`" } else { "" };
    error(status, kind, &format!("{fault}{how}"), None)
}
