//! `/api/personas` and `/api/users/{id}/personas`: the personas of a tenant and who has which, for its admins. Others see those that they
//! may use.

use std::collections::BTreeSet;

use axum::{
    Extension, Json,
    http::{Method, StatusCode},
};
use registry_core::{Permission, store::Persona};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    admin::{self, Admin, NOT_ADMIN},
    identity::Identity,
};
use crate::{
    identifier::{check_identifier, check_new_persona},
    personas::{self, PersonaChangeError, users_of},
    server::{
        openapi::Operation,
        requests::{
            api_error::ApiError,
            body::{Body, JsonBody},
            name::Name,
            pages::{Page, named},
            query::QueryParameters,
        },
    },
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
pub(in crate::server) struct PersonaList {
    personas: Vec<ListedPersona>,
    /// `after` of the next request; null where there are no more.
    next: Option<String>,
}

pub(in crate::server) fn list_operation() -> Operation {
    let operation =
        Operation::new(Method::GET, "Personas", "list_personas", "The personas that the user may call under")
            .details("An admin sees all, with their users.")
            .answers::<PersonaList>(200, "The personas, by name.");
    Page::operation(operation)
}

pub(in crate::server) async fn list(
    Extension(identity): Extension<Identity>,
    page: Page,
) -> Result<Json<PersonaList>, ApiError> {
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let is_admin = identity.caller.level >= Permission::Admin;
    let users = match is_admin {
        true => store.users(tenant).await?,
        false => store.user(tenant, &identity.caller.user).await?.into_iter().collect(),
    };
    let own = users.iter().find(|user| user.id == identity.caller.user).filter(|_| !identity.is_configured());
    let own = own.map_or(&[][..], |user| &user.personas);
    let personas = match is_admin || own.is_empty() {
        true => store.personas_after(tenant, page.after_name(), page.to_read()).await?,
        false => {
            let mut personas = Vec::new();
            for name in own {
                personas.extend(store.persona(tenant, name).await?);
            }
            personas
        }
    };
    let (personas, next) = page.of(personas, |persona| named(&persona.name));
    let listed = |persona: Persona| {
        let users = is_admin.then(|| users_of(&users, &persona.name));
        ListedPersona { persona, users }
    };
    Ok(Json(PersonaList { personas: personas.into_iter().map(listed).collect(), next }))
}

/// A new persona.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct NewPersona {
    /// The name.
    name: String,
    /// The modules that may be used. Tools without a module belong to `local`.
    allowed_modules: BTreeSet<String>,
}

impl Body for NewPersona {
    const EXAMPLE: &str = r#"`{"name": "reading", "allowed_modules": ["research"]}`"#;
}

pub(in crate::server) fn add_operation() -> Operation {
    Operation::new(Method::POST, "Personas", "add_persona", "Add a persona")
        .reads::<NewPersona>()
        .answers::<Persona>(201, "The persona.")
        .refuses(403, NOT_ADMIN)
        .refuses(409, "There is a persona of that name (`persona_exists`).")
}

pub(in crate::server) async fn add(
    Admin(identity): Admin,
    JsonBody(new): JsonBody<NewPersona>,
) -> Result<(StatusCode, Json<Persona>), ApiError> {
    check_new_persona(&new.name)
        .map_err(|rule| ApiError::invalid("name", format!("a name in `name` has to be {rule}")))?;
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
pub(in crate::server) struct PersonaModules {
    /// The modules that may be used from now on.
    allowed_modules: BTreeSet<String>,
}

impl Body for PersonaModules {
    const EXAMPLE: &str = r#"`{"allowed_modules": ["research"]}`"#;
}

pub(in crate::server) fn change_operation() -> Operation {
    Operation::new(Method::POST, "Personas", "change_persona", "Change the modules of a persona")
        .details("It holds within a second, for running turns too.")
        .path("name", "The persona's name.")
        .reads::<PersonaModules>()
        .answers::<Persona>(200, "The persona as it is now.")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no persona of that name (`persona_not_found`).")
}

pub(in crate::server) async fn change(
    Admin(identity): Admin,
    Name(name): Name,
    JsonBody(PersonaModules { allowed_modules }): JsonBody<PersonaModules>,
) -> Result<Json<Persona>, ApiError> {
    check_modules(&allowed_modules)?;
    let arguments = json!({"name": name, "allowed_modules": allowed_modules});
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let change = personas::change_modules(store.as_ref(), tenant, &name, allowed_modules);
    let (_, persona) = admin::change(&identity, "toolrack persona modules", arguments, change).await?;
    Ok(Json(persona))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct Removal {
    #[serde(default)]
    force: bool,
}

pub(in crate::server) fn remove_operation() -> Operation {
    Operation::new(Method::DELETE, "Personas", "remove_persona", "Remove a persona")
        .details("With `force=true` also one that users have, who may use none of its modules any more.")
        .path("name", "The persona's name.")
        .query_flag("force", "Whether to remove a persona that users have.")
        .answers_nothing(204, "It is gone.")
        .refuses(400, "`force` is neither `true` nor `false` (`invalid_request_error`).")
        .refuses(403, NOT_ADMIN)
        .refuses(404, "There is no persona of that name (`persona_not_found`).")
        .refuses(409, "Users have it (`persona_in_use`).")
}

pub(in crate::server) async fn remove(
    Extension(identity): Extension<Identity>,
    Name(name): Name,
    QueryParameters(Removal { force }): QueryParameters<Removal>,
) -> Result<StatusCode, ApiError> {
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let remove = personas::remove(store.as_ref(), tenant, &name, force);
    let arguments = json!({"name": name, "force": force});
    admin::change(&identity, "toolrack persona remove", arguments, remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The personas of a user.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::server) struct UserPersonas {
    /// Their names, the default one first; without any the user may use all modules.
    personas: Vec<String>,
}

impl Body for UserPersonas {
    const EXAMPLE: &str = r#"`{"personas": ["reading"]}`"#;
}

pub(in crate::server) fn assign_operation() -> Operation {
    Operation::new(Method::POST, "Personas", "assign_personas", "Set the personas of a user")
        .path("id", "The user's id.")
        .reads::<UserPersonas>()
        .answers::<UserPersonas>(200, "The user's personas as they are now.")
        .refuses(403, "The user is not of the level admin, or of a lower one than the other user (`permission_denied`).")
        .refuses(404, "There is no such user (`user_not_found`) or persona (`persona_not_found`).")
}

pub(in crate::server) async fn assign(
    Admin(identity): Admin,
    Name(id): Name,
    JsonBody(UserPersonas { personas }): JsonBody<UserPersonas>,
) -> Result<Json<UserPersonas>, ApiError> {
    if personas.len() > MAX_PERSONAS {
        let message = format!("{MAX_PERSONAS} personas are the most that a user may have");
        return Err(ApiError::invalid("personas", message));
    }
    let (store, tenant) = (identity.stored.store(), identity.registry.tenant());
    let user = store.user(tenant, &id).await?;
    if let Some(user) = user.filter(|user| user.level > identity.caller.level) {
        return Err(ApiError::denied(format!("{id} has the level {}, which is above yours", user.level)));
    }
    let assign = personas::assign(store.as_ref(), tenant, &id, &personas);
    let arguments = json!({"user": id, "personas": personas});
    admin::change(&identity, "toolrack user persona", arguments, assign).await?;
    Ok(Json(UserPersonas { personas }))
}

fn check_modules(modules: &BTreeSet<String>) -> Result<(), ApiError> {
    if modules.len() > MAX_MODULES {
        let message = format!("{MAX_MODULES} modules are the most that a persona may have");
        return Err(ApiError::invalid("allowed_modules", message));
    }
    check(modules, "allowed_modules")
}

fn check<'n>(names: impl IntoIterator<Item = &'n String>, param: &'static str) -> Result<(), ApiError> {
    names.into_iter().try_for_each(|name| {
        check_identifier(name)
            .map_err(|rule| ApiError::invalid(param, format!("a name in `{param}` has to be {rule}")))
    })
}

impl From<PersonaChangeError> for ApiError {
    fn from(fault: PersonaChangeError) -> Self {
        let (status, kind) = match &fault {
            PersonaChangeError::Store(cause) => return cause.clone().into(),
            PersonaChangeError::Exists(_) => (StatusCode::CONFLICT, "persona_exists"),
            PersonaChangeError::InUse { .. } => (StatusCode::CONFLICT, "persona_in_use"),
            PersonaChangeError::Unknown { .. } => (StatusCode::NOT_FOUND, "persona_not_found"),
            PersonaChangeError::UnknownUser(_) => (StatusCode::NOT_FOUND, "user_not_found"),
        };
        let in_use = matches!(fault, PersonaChangeError::InUse { .. });
        let how = if in_use { ", or send `?force=true`" } else { "" };
        Self::new(status, kind, format!("{fault}{how}"))
    }
}
