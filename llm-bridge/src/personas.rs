//! Personas: under which a user may call, and how the command line and the server change them.

use std::collections::BTreeSet;

use derive_more::From;
use registry_core::{
    Caller,
    clock::{Clock, SystemClock},
    nearest,
    store::{Persona, Store, StoreError, User},
};

/// Why a request may not be made under the persona that it names.
#[derive(Debug, From)]
pub(crate) enum PersonaError {
    /// There is no such persona, or the user does not have it; a text for the user.
    NotAllowed(String),
    /// The store cannot say.
    #[from]
    Store(StoreError),
}

/// A user without personas may use all modules, and so any persona, which can only take some away.
pub(crate) fn may_use(personas: &[String], name: &str) -> bool {
    personas.is_empty() || personas.iter().any(|own| own == name)
}

/// The caller under one of its personas: the named one, else the first, else none.
pub(crate) async fn under_persona(
    store: &dyn Store,
    tenant: &str,
    caller: Caller,
    personas: &[String],
    named: Option<&str>,
) -> Result<Caller, PersonaError> {
    let Some(name) = named.or(personas.first().map(String::as_str)) else { return Ok(caller) };
    let known = if may_use(personas, name) { store.persona(tenant, name).await? } else { None };
    match known {
        Some(persona) => Ok(caller.only_modules(persona.allowed_modules)),
        // It was removed while the user has it. Without it there would be more to use than with it.
        None if named.is_none() => Ok(caller.only_modules(Vec::<String>::new())),
        None => {
            let mut usable: Vec<String> =
                store.personas(tenant).await?.into_iter().map(|persona| persona.name).collect();
            usable.retain(|name| may_use(personas, name));
            let hint = match usable.as_slice() {
                [] => "there is none that may be used; leave it out".to_owned(),
                usable => format!("use {}, or leave it out", any_of(usable)),
            };
            Err(PersonaError::NotAllowed(format!("{} may not use the persona `{name}`: {hint}", caller.user)))
        }
    }
}

/// The caller with all that its personas allow together.
pub(crate) async fn under_all_personas(
    store: &dyn Store,
    tenant: &str,
    caller: Caller,
    personas: &[String],
) -> Result<Caller, StoreError> {
    if personas.is_empty() {
        return Ok(caller);
    }
    let known = store.personas(tenant).await?.into_iter().filter(|persona| personas.contains(&persona.name));
    Ok(caller.only_modules(known.flat_map(|persona| persona.allowed_modules)))
}

/// So many names are listed in a message.
const LISTED: usize = 20;

fn any_of(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect();
    match names.len().checked_sub(LISTED).filter(|more| *more > 0) {
        Some(more) => format!("{} or one of {more} more", quoted.join(", ")),
        None => quoted.join(" or "),
    }
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PersonaChangeError {
    /// There is a persona of that name.
    #[error("there is a persona `{0}` already; change its modules instead")]
    Exists(String),
    /// There is no persona of that name.
    #[error("there is no persona `{name}`; {}", meant.as_ref().map_or("add it first".to_owned(), |meant| format!("did you mean `{meant}`?")))]
    Unknown { name: String, meant: Option<String> },
    /// There is no user of that id.
    #[error("there is no user `{0}`")]
    UnknownUser(String),
    /// Users have the persona.
    #[error("the persona `{name}` is that of {}; give them another one first", users.join(", "))]
    InUse { name: String, users: Vec<String> },
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

async fn known(store: &dyn Store, tenant: &str, name: &str) -> Result<Persona, PersonaChangeError> {
    if let Some(persona) = store.persona(tenant, name).await? {
        return Ok(persona);
    }
    let personas = store.personas(tenant).await?;
    let near = nearest(name, personas.iter().map(|persona| persona.name.as_str()));
    let meant = near.first().map(|name| (*name).to_owned());
    Err(PersonaChangeError::Unknown { name: name.to_owned(), meant })
}

/// The persona of that name and its users, the ids in their order.
pub(crate) async fn show(
    store: &dyn Store,
    tenant: &str,
    name: &str,
) -> Result<(Persona, Vec<String>), PersonaChangeError> {
    let persona = known(store, tenant, name).await?;
    let users = users_of(&store.users(tenant).await?, name);
    Ok((persona, users))
}

/// Those of the users who have a persona.
pub(crate) fn users_of(users: &[User], name: &str) -> Vec<String> {
    let have = users.iter().filter(|user| user.personas.iter().any(|own| own == name));
    have.map(|user| user.id.clone()).collect()
}

/// Adds a persona.
pub(crate) async fn add(
    store: &dyn Store,
    tenant: &str,
    name: &str,
    allowed_modules: BTreeSet<String>,
) -> Result<Persona, PersonaChangeError> {
    if store.persona(tenant, name).await?.is_some() {
        return Err(PersonaChangeError::Exists(name.to_owned()));
    }
    let persona = Persona { name: name.to_owned(), allowed_modules, created_at: SystemClock.now() };
    store.put_persona(tenant, persona.clone()).await?;
    Ok(persona)
}

/// Changes the modules of a persona. Gives it as it was and as it is.
pub(crate) async fn change_modules(
    store: &dyn Store,
    tenant: &str,
    name: &str,
    allowed_modules: BTreeSet<String>,
) -> Result<(Persona, Persona), PersonaChangeError> {
    let before = known(store, tenant, name).await?;
    let persona = Persona { allowed_modules, ..before.clone() };
    store.put_persona(tenant, persona.clone()).await?;
    Ok((before, persona))
}

/// Removes a persona; one that users have only with `force`. Gives those users, whom it allows nothing any more.
pub(crate) async fn remove(
    store: &dyn Store,
    tenant: &str,
    name: &str,
    force: bool,
) -> Result<Vec<String>, PersonaChangeError> {
    let (_, users) = show(store, tenant, name).await?;
    if !users.is_empty() && !force {
        return Err(PersonaChangeError::InUse { name: name.to_owned(), users });
    }
    store.remove_persona(tenant, name).await?;
    Ok(users)
}

/// Gives a user these personas in place of those the user has, the default one first. Gives the user as before.
pub(crate) async fn assign(
    store: &dyn Store,
    tenant: &str,
    id: &str,
    personas: &[String],
) -> Result<User, PersonaChangeError> {
    for name in personas {
        known(store, tenant, name).await?;
    }
    let before = change_user(store, tenant, id, |user| user.personas = personas.to_vec()).await?;
    before.ok_or_else(|| PersonaChangeError::UnknownUser(id.to_owned()))
}

/// How often a change is begun anew because something else was changed meanwhile.
const TRIES: u32 = 100;

/// Changes a user as the store has it now. Gives the user as before; `None` where there is none.
pub(crate) async fn change_user(
    store: &dyn Store,
    tenant: &str,
    id: &str,
    change: impl Fn(&mut User),
) -> Result<Option<User>, StoreError> {
    for _ in 0..TRIES {
        let revision = store.revision().await?;
        let Some(before) = store.user(tenant, id).await? else { return Ok(None) };
        let mut user = before.clone();
        change(&mut user);
        if store.change_user(tenant, user, revision).await? {
            return Ok(Some(before));
        }
    }
    Err(StoreError::conflict(format!("{id} was not changed: the store is changed all the time; try again")))
}
