//! `/api/personas` and `/api/users/{id}/personas`: the personas of a tenant and who has which, for its admins. Others see those that they
//! may use.

use std::collections::BTreeSet;

use axum::{
    Extension, Json,
    extract::{Query, rejection::QueryRejection},
    http::StatusCode,
};
use registry_core::{Permission, store::Persona};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    admin::{self, ADMINS_ONLY, require_admin},
    body::{JsonBody, misread},
    identity::Identity,
    name::Name,
    openapi::Operation,
    refusal::Refusal,
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

/// The personas that somebody may know of.
#[derive(Serialize, JsonSchema)]
pub(super) struct PersonaList {
    personas: Vec<ListedPersona>,
}

pub(super) fn list_operation() -> Operation {
    Operation::new("Personas", "list_personas", "The personas that the user may call under")
        .details("An admin sees all, with their users.")
        .answers::<PersonaList>(200, "The personas, by name.")
}

pub(super) async fn list(Extension(identity): Extension<Identity>) -> Result<Json<PersonaList>, Refusal> {
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let is_admin = identity.caller.level >= Permission::Admin;
    let users = store.users(tenant).await?;
    let own = users.iter().find(|user| user.id == identity.caller.user).filter(|_| !identity.is_configured());
    let own = own.map_or(&[][..], |user| &user.personas);
    let mut personas = store.personas(tenant).await?;
    personas.retain(|persona| is_admin || personas::may_use(own, &persona.name));
    let listed = |persona: Persona| {
        let users = is_admin.then(|| users_of(&users, &persona.name));
        ListedPersona { persona, users }
    };
    Ok(Json(PersonaList { personas: personas.into_iter().map(listed).collect() }))
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

pub(super) async fn add(
    Extension(identity): Extension<Identity>,
    JsonBody(body): JsonBody,
) -> Result<(StatusCode, Json<Persona>), Refusal> {
    let new: NewPersona = read(body, r#"{"name": "reading", "allowed_modules": ["research"]}"#)?;
    check([&new.name], "name")?;
    check_modules(&new.allowed_modules)?;
    let arguments = json!({"name": new.name, "allowed_modules": new.allowed_modules});
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let add = personas::add(store.as_ref(), tenant, &new.name, new.allowed_modules);
    let persona = admin::change(&identity, "toolrack persona add", arguments, add).await?;
    Ok((StatusCode::CREATED, Json(persona)))
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
) -> Result<Json<Persona>, Refusal> {
    let PersonaModules { allowed_modules } = read(body, r#"{"allowed_modules": ["research"]}"#)?;
    check_modules(&allowed_modules)?;
    let arguments = json!({"name": name, "allowed_modules": allowed_modules});
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let change = personas::change_modules(store.as_ref(), tenant, &name, allowed_modules);
    let (_, persona) = admin::change(&identity, "toolrack persona modules", arguments, change).await?;
    Ok(Json(persona))
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
    removal: Result<Query<Removal>, QueryRejection>,
) -> Result<StatusCode, Refusal> {
    let Query(Removal { force }) = removal
        .map_err(|_| Refusal::invalid("query", "only `force` can be said here, as in `?force=true`"))?;
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let remove = personas::remove(store.as_ref(), tenant, &name, force);
    let arguments = json!({"name": name, "force": force});
    admin::change(&identity, "toolrack persona remove", arguments, remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The personas of a user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UserPersonas {
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
) -> Result<Json<UserPersonas>, Refusal> {
    require_admin(&identity, "giving users personas")?;
    let UserPersonas { personas } = read(body, r#"{"personas": ["reading"]}"#)?;
    if personas.len() > MAX_PERSONAS {
        let message = format!("{MAX_PERSONAS} personas are the most that a user may have");
        return Err(Refusal::invalid("personas", message));
    }
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let user = store.user(tenant, &id).await?;
    if let Some(user) = user.filter(|user| user.level > identity.caller.level) {
        return Err(Refusal::denied(format!("{id} has the level {}, which is above yours", user.level)));
    }
    let assign = personas::assign(store.as_ref(), tenant, &id, &personas);
    let arguments = json!({"user": id, "personas": personas});
    admin::change(&identity, "toolrack user persona", arguments, assign).await?;
    Ok(Json(UserPersonas { personas }))
}

/// What a body says; `example` is what could be sent instead.
fn read<T: for<'de> Deserialize<'de>>(body: Value, example: &str) -> Result<T, Refusal> {
    serde_json::from_value(body).map_err(|fault| {
        Refusal::invalid("body", format!("not understood: {}; send `{example}`", misread(&fault)))
    })
}

fn check_modules(modules: &BTreeSet<String>) -> Result<(), Refusal> {
    if modules.len() > MAX_MODULES {
        let message = format!("{MAX_MODULES} modules are the most that a persona may have");
        return Err(Refusal::invalid("allowed_modules", message));
    }
    check(modules, "allowed_modules")
}

fn check<'n>(names: impl IntoIterator<Item = &'n String>, param: &'static str) -> Result<(), Refusal> {
    names.into_iter().try_for_each(|name| {
        check_identifier(name)
            .map_err(|rule| Refusal::invalid(param, format!("a name in `{param}` has to be {rule}")))
    })
}

impl From<PersonaChangeError> for Refusal {
    fn from(fault: PersonaChangeError) -> Self {
        let (status, kind) = match &fault {
            PersonaChangeError::Store(cause) => return Self::Store(cause.to_string()),
            PersonaChangeError::Exists(_) => (StatusCode::CONFLICT, "persona_exists"),
            PersonaChangeError::InUse { .. } => (StatusCode::CONFLICT, "persona_in_use"),
            PersonaChangeError::Unknown { .. } => (StatusCode::NOT_FOUND, "persona_not_found"),
            PersonaChangeError::UnknownUser(_) => (StatusCode::NOT_FOUND, "user_not_found"),
        };
        let in_use = matches!(fault, PersonaChangeError::InUse { .. });
        let how = if in_use { ", or send `?force=true`" } else { "" };
        Self::new(status, kind, format!("{fault}{how}"), None)
    }
}
