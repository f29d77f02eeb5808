//! `toolrack user …` and `toolrack key …`.

use std::{collections::BTreeSet, process::ExitCode};

use clap::Subcommand;
use jiff::Timestamp;
use registry_core::{
    DEFAULT_TENANT, Permission, nearest,
    store::{ApiKey, Store, User},
};
use serde_json::json;

use super::{
    names::{Known, warn_of_tenant},
    out::{count, print_line, second, table, tell},
    recorded::Change,
    tenant::Tenant,
    terminal::one_line,
};
use crate::server::check_user_id;

#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Add a user
    Add {
        /// The user's id
        #[arg(value_parser = user_id)]
        id: String,
        /// guest, user, admin or owner
        #[arg(long, default_value = "user", value_name = "LEVEL")]
        level: Permission,
        /// The modules that may be used, separated by commas; tools without one are in `local` [default: all]
        #[arg(long, value_delimiter = ',', value_name = "MODULES", value_parser = module)]
        modules: Option<Vec<String>>,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// Change a user's level
    Promote {
        /// The user's id
        id: String,
        /// guest, user, admin or owner
        level: Permission,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// Change the modules that a user may use
    Modules {
        /// The user's id
        id: String,
        /// The modules, separated by commas; tools without one are in `local`
        #[arg(value_delimiter = ',', value_name = "MODULES", value_parser = module, conflicts_with = "all")]
        modules: Option<Vec<String>>,
        /// All modules, also those to come
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// Remove a user and revoke the user's keys
    Remove {
        /// The user's id
        id: String,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// List the users
    List {
        #[command(flatten)]
        tenant: Tenant,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create an API key for a user and print it once
    Create {
        /// The user's id
        user: String,
        /// Let calls with this key name the user they are for; meant for another server that calls this one
        #[arg(long)]
        delegate: bool,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// Revoke a key
    Revoke {
        /// The key's id, from `toolrack key list`
        id: String,
        #[command(flatten)]
        tenant: Tenant,
    },
    /// List the keys
    List {
        #[command(flatten)]
        tenant: Tenant,
    },
}

impl UserCommand {
    /// For the audit; `None` for commands that only read.
    pub(super) fn change(&self) -> Option<Change> {
        let (command, tenant, arguments) = match self {
            Self::Add { id, level, modules, tenant } => {
                ("toolrack user add", tenant, json!({"user": id, "level": level, "modules": modules}))
            }
            Self::Promote { id, level, tenant } => {
                ("toolrack user promote", tenant, json!({"user": id, "level": level}))
            }
            Self::Modules { id, modules, all, tenant } => {
                ("toolrack user modules", tenant, json!({"user": id, "modules": modules, "all": all}))
            }
            Self::Remove { id, tenant } => ("toolrack user remove", tenant, json!({"user": id})),
            Self::List { .. } => return None,
        };
        Some(Change { command, tenant: tenant.tenant.clone(), arguments })
    }
}

impl KeyCommand {
    /// For the audit; `None` for commands that only read.
    pub(super) fn change(&self) -> Option<Change> {
        let (command, tenant, arguments) = match self {
            Self::Create { user, delegate, tenant } => {
                ("toolrack key create", tenant, json!({"user": user, "delegate": delegate}))
            }
            Self::Revoke { id, tenant } => ("toolrack key revoke", tenant, json!({"key": id})),
            Self::List { .. } => return None,
        };
        Some(Change { command, tenant: tenant.tenant.clone(), arguments })
    }
}

fn user_id(text: &str) -> Result<String, String> {
    check_user_id(text).map_err(|rule| format!("a user's id has to be {rule}"))?;
    Ok(text.to_owned())
}

fn module(text: &str) -> Result<String, String> {
    let name = text.trim();
    let fault = || "the name of a module is empty; write them as in `local,research`".to_owned();
    (!name.is_empty()).then(|| name.to_owned()).ok_or_else(fault)
}

async fn known(store: &dyn Store, tenant: &str, id: &str) -> Result<User, String> {
    match store.user(tenant, id).await? {
        Some(user) => Ok(user),
        None => Err(unknown(store, tenant, id).await),
    }
}

async fn unknown(store: &dyn Store, tenant: &str, id: &str) -> String {
    let users = store.users(tenant).await.unwrap_or_default();
    let command = |command: &str, id| hint(command, id, tenant);
    match nearest(id, users.iter().map(|user| user.id.as_str())).first() {
        Some(other) => {
            format!("there is no user `{id}`; did you mean `{other}`? See `{}`", command("user list", ""))
        }
        None => format!("there is no user `{id}`; add one with `{}`", command("user add", id)),
    }
}

/// The next command, quoted for a shell.
fn hint(command: &str, id: &str, tenant: &str) -> String {
    let mut words = format!("toolrack {command}");
    let tenant = if tenant == DEFAULT_TENANT { ["", ""] } else { ["--tenant", tenant] };
    for word in [id].into_iter().chain(tenant).filter(|word| !word.is_empty()) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@:/".contains(&byte);
        words.push(' ');
        match word.bytes().all(is_plain) {
            true => words.push_str(word),
            false => words.push_str(&format!("'{}'", word.replace('\'', "'\\''"))),
        }
    }
    words
}

/// How often a change is tried again after a concurrent change.
const TRIES: u32 = 100;

/// Changes a stored user. Returns the user before the change.
async fn change(
    store: &dyn Store,
    tenant: &str,
    id: &str,
    change: impl Fn(&mut User),
) -> Result<User, String> {
    for _ in 0..TRIES {
        let revision = store.revision().await?;
        let before = known(store, tenant, id).await?;
        let mut user = before.clone();
        change(&mut user);
        if store.change_user(tenant, user, revision).await? {
            return Ok(before);
        }
    }
    Err(format!("{id} was not changed: the store is changed all the time; try again"))
}

/// The modules as text.
fn shown(modules: Option<&BTreeSet<String>>) -> String {
    match modules {
        Some(modules) => modules.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        None => "all".to_owned(),
    }
}

/// Warns about unknown modules of a user.
async fn warn_of_modules(
    known: Option<Known>,
    store: &dyn Store,
    tenant: &str,
    modules: Option<&BTreeSet<String>>,
) {
    let (Some(known), Some(modules)) = (known, modules) else { return };
    let known = known.with_stored(store, tenant).await;
    known.unknown_modules(modules).for_each(|reported| tell(format_args!("warning: {reported}")));
}

/// The configured user, who needs no key, and the place of the store.
pub(super) struct Owner<'s> {
    pub(super) id: &'s str,
    pub(super) level: Permission,
    pub(super) place: &'s str,
}

impl Owner<'_> {
    fn is(&self, tenant: &str, id: &str) -> bool {
        tenant == DEFAULT_TENANT && id == self.id
    }

    /// Explains which of two users with the same name applies.
    fn note(&self) -> String {
        format!(
            "Requests without a key come from the user `{}` of `[user]` in the configuration, who is {}; the stored user `{}` counts \
             only for requests with a key of that user.",
            self.id, self.level, self.id
        )
    }
}

pub(super) async fn users(
    command: UserCommand,
    store: &dyn Store,
    names: Option<Known>,
    owner: &Owner<'_>,
) -> Result<ExitCode, String> {
    match command {
        UserCommand::Add { id, level, modules, tenant: Tenant { tenant } } => {
            if store.user(&tenant, &id).await?.is_some() {
                let promote = hint("user promote", &id, &tenant);
                return Err(format!("there is a user `{id}` already; see `{promote}`"));
            }
            let allowed_modules: Option<BTreeSet<String>> =
                modules.map(|modules| modules.into_iter().collect());
            warn_of_modules(names, store, &tenant, allowed_modules.as_ref()).await;
            let user = User { id: id.clone(), level, allowed_modules, created_at: Timestamp::now() };
            store.put_user(&tenant, user).await?;
            let (create, place) = (hint("key create", &id, &tenant), owner.place);
            tell(format_args!("added {id} as {level} in {place}; make a key with `{create}`"));
            if owner.is(&tenant, &id) {
                tell(owner.note());
            }
        }
        UserCommand::Promote { id, level, tenant: Tenant { tenant } } => {
            let is_owner = owner.is(&tenant, &id);
            if is_owner && store.user(&tenant, &id).await?.is_none() {
                return Err(format!(
                    "{} To change that, set `level = \"{level}\"` under `[user]`",
                    owner.note()
                ));
            }
            let before = change(store, &tenant, &id, |user| user.level = level).await?.level;
            tell(format_args!("{id} was {before} and is {level}"));
            if is_owner {
                tell(owner.note());
            }
        }
        UserCommand::Modules { id, modules, all, tenant: Tenant { tenant } } => {
            if modules.is_none() && !all {
                return Err("name the modules, separated by commas, or say --all".to_owned());
            }
            let allowed_modules: Option<BTreeSet<String>> =
                modules.map(|modules| modules.into_iter().collect());
            let before =
                change(store, &tenant, &id, |user| user.allowed_modules.clone_from(&allowed_modules)).await?;
            let (before, now) = (shown(before.allowed_modules.as_ref()), shown(allowed_modules.as_ref()));
            tell(format_args!("the modules of {id} were {before} and are {now}"));
            warn_of_modules(names, store, &tenant, allowed_modules.as_ref()).await;
        }
        UserCommand::Remove { id, tenant: Tenant { tenant } } => {
            if !store.remove_user(&tenant, &id, Timestamp::now()).await? {
                return Err(unknown(store, &tenant, &id).await);
            }
            tell(format_args!("removed {id} and revoked the user's keys"));
            let delegates = |key: &ApiKey| key.delegate && key.revoked_at.is_none();
            if store.keys(&tenant).await?.iter().any(delegates) {
                tell(format_args!("a server with a key that delegates can call for {id} as for any guest"));
            }
        }
        UserCommand::List { tenant: Tenant { tenant } } => {
            warn_of_tenant(store, &tenant).await;
            let mut table = table(["user", "level", "modules", "since"]);
            let users = store.users(&tenant).await?;
            let total = count(users.len(), "user");
            for user in users {
                let modules = shown(user.allowed_modules.as_ref());
                let row = [user.id, user.level.to_string(), modules, second(user.created_at)];
                table.add_row(row.map(|cell| one_line(&cell)));
            }
            print_line(table)?;
            tell(format_args!("{total} in {}", owner.place));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn keys(command: KeyCommand, store: &dyn Store) -> Result<ExitCode, String> {
    match command {
        KeyCommand::Create { user, delegate, tenant: Tenant { tenant } } => {
            known(store, &tenant, &user).await?;
            let generated = ApiKey::generate(&tenant, &user, delegate, Timestamp::now());
            let (key, secret) = generated.map_err(|fault| fault.to_string())?;
            let id = key.id.clone();
            if !store.put_key(key).await? {
                return Err(unknown(store, &tenant, &user).await);
            }
            print_line(secret)?;
            tell(format_args!(
                "This is the key {id} of {user}. It is shown this once; send it as `Authorization: Bearer KEY`."
            ));
        }
        KeyCommand::Revoke { id, tenant: Tenant { tenant } } => {
            if !store.revoke_key(&tenant, &id, Timestamp::now()).await? {
                return Err(format!("there is no valid key `{id}`; see `{}`", hint("key list", "", &tenant)));
            }
            tell(format_args!("revoked {id}"));
        }
        KeyCommand::List { tenant: Tenant { tenant } } => {
            warn_of_tenant(store, &tenant).await;
            let mut table = table(["key", "user", "delegate", "since", "revoked"]);
            for key in store.keys(&tenant).await? {
                let revoked = key.revoked_at.map_or("no".to_owned(), second);
                let delegate = if key.delegate { "yes" } else { "no" };
                table.add_row(
                    [key.id, key.user, delegate.to_owned(), second(key.created_at), revoked]
                        .map(|cell| one_line(&cell)),
                );
            }
            print_line(table)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
