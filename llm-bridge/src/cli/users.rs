//! `toolrack user …` and `toolrack key …`.

use std::process::ExitCode;

use clap::Subcommand;
use jiff::SignedDuration;
use registry_core::{
    DEFAULT_TENANT, Permission,
    clock::{Clock, SystemClock},
    nearest,
    store::{ApiKey, RemovedUser, Store, User},
};
use serde_json::json;

use super::{
    names::warn_of_tenant,
    out::{count, print_line, second, table, tell},
    personas,
    terminal::one_line,
};
use crate::{
    identifier::{check_key_name, check_new_user},
    personas::{PersonaChangeError, assign, change_user},
    recorded::Change,
};

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
        /// The user's persona, whose modules may be used [default: none, and all modules may be used]
        #[arg(long, value_name = "NAME")]
        persona: Option<String>,
    },
    /// Change a user's level
    Promote {
        /// The user's id
        id: String,
        /// guest, user, admin or owner
        level: Permission,
    },
    /// Give a user a persona, whose modules may be used
    Persona {
        /// The user's id
        id: String,
        /// The persona of requests that name none
        #[arg(value_name = "NAME", required_unless_present = "none")]
        persona: Option<String>,
        /// More personas that requests may name, separated by commas
        #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "persona")]
        also: Vec<String>,
        /// No persona: all modules may be used, also those to come
        #[arg(long, conflicts_with = "persona")]
        none: bool,
    },
    /// Remove a user, revoke the user's keys and delete the user's conversations
    Remove {
        /// The user's id
        id: String,
    },
    /// Erase all that is kept of a person: user, keys, conversations, uploaded documents, scheduled calls, what tools kept, and what is
    /// personal in the audit. It cannot be undone
    Erase {
        /// The user's id
        id: String,
    },
    /// List the users
    List,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create an API key for a user and print it once
    Create {
        /// The user's id
        user: String,
        /// What it is called, such as the device it is on
        #[arg(long, default_value = "", hide_default_value = true, value_parser = key_name)]
        name: String,
        /// Let calls with this key name the user they are for; meant for another server that calls this one
        #[arg(long)]
        delegate: bool,
        /// How many days the key is valid; without it, until it is revoked
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
        days: Option<u16>,
    },
    /// Revoke a key
    Revoke {
        /// The key's id, from `toolrack key list`
        id: String,
    },
    /// List the keys
    List,
}

impl UserCommand {
    /// For the audit; `None` for commands that only read.
    pub(super) fn change(&self, tenant: &str) -> Option<Change> {
        let (command, arguments) = match self {
            Self::Add { id, level, persona } => {
                ("toolrack user add", json!({"user": id, "level": level, "persona": persona}))
            }
            Self::Promote { id, level } => ("toolrack user promote", json!({"user": id, "level": level})),
            Self::Persona { id, persona, also, none: _ } => {
                let personas: Vec<&String> = persona.iter().chain(also).collect();
                ("toolrack user persona", json!({"user": id, "personas": personas}))
            }
            Self::Remove { id } => ("toolrack user remove", json!({"user": id})),
            Self::Erase { id } => ("toolrack user erase", json!({"user": id})),
            Self::List => return None,
        };
        Some(Change { command, tenant: tenant.to_owned(), arguments })
    }
}

impl KeyCommand {
    /// For the audit; `None` for commands that only read.
    pub(super) fn change(&self, tenant: &str) -> Option<Change> {
        let (command, arguments) = match self {
            Self::Create { user, name, delegate, days } => (
                "toolrack key create",
                json!({"user": user, "name": name, "delegate": delegate, "days": days}),
            ),
            Self::Revoke { id } => ("toolrack key revoke", json!({"key": id})),
            Self::List => return None,
        };
        Some(Change { command, tenant: tenant.to_owned(), arguments })
    }
}

fn user_id(text: &str) -> Result<String, String> {
    check_new_user(text).map_err(|rule| format!("a user's id has to be {rule}"))?;
    Ok(text.to_owned())
}

fn key_name(text: &str) -> Result<String, String> {
    check_key_name(text).map_err(|rule| format!("the name of a key has to be {rule}"))?;
    Ok(text.to_owned())
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
pub(super) fn hint(command: &str, id: &str, tenant: &str) -> String {
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

/// A user's personas, for people.
fn shown(personas: &[String]) -> String {
    match personas {
        [] => "none".to_owned(),
        [default] => default.clone(),
        [default, also @ ..] => format!("{default}, also {}", also.join(", ")),
    }
}

/// Gives a user personas. Gives the user as before.
async fn give(store: &dyn Store, tenant: &str, id: &str, given: &[String]) -> Result<User, String> {
    match assign(store, tenant, id, given).await {
        Ok(before) => Ok(before),
        Err(PersonaChangeError::UnknownUser(id)) => Err(unknown(store, tenant, &id).await),
        Err(fault) => Err(personas::told(&fault, tenant)),
    }
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
    tenant: &str,
    store: &dyn Store,
    owner: &Owner<'_>,
    remove: impl AsyncFnOnce(&str) -> Result<RemovedUser, String>,
    erase: impl AsyncFnOnce(&str) -> Result<bool, String>,
) -> Result<ExitCode, String> {
    match command {
        UserCommand::Add { id, level, persona } => {
            if store.user(tenant, &id).await?.is_some() {
                let promote = hint("user promote", &id, tenant);
                return Err(format!("there is a user `{id}` already; see `{promote}`"));
            }
            if let Some(persona) = &persona {
                let shown = crate::personas::show(store, tenant, persona).await;
                shown.map_err(|fault| personas::told(&fault, tenant))?;
            }
            let personas = persona.into_iter().collect();
            let user = User { id: id.clone(), level, personas, created_at: SystemClock.now() };
            store.put_user(tenant, user).await?;
            let (create, place) = (hint("key create", &id, tenant), owner.place);
            tell(format_args!("added {id} as {level} in {place}; make a key with `{create}`"));
            if owner.is(tenant, &id) {
                tell(owner.note());
            }
        }
        UserCommand::Promote { id, level } => {
            let is_owner = owner.is(tenant, &id);
            if is_owner && store.user(tenant, &id).await?.is_none() {
                return Err(format!(
                    "{} To change that, set `level = \"{level}\"` under `[user]`",
                    owner.note()
                ));
            }
            let changed = change_user(store, tenant, &id, |user| user.level = level).await?;
            let Some(User { level: before, .. }) = changed else {
                return Err(unknown(store, tenant, &id).await);
            };
            tell(format_args!("{id} was {before} and is {level}"));
            if is_owner {
                tell(owner.note());
            }
        }
        UserCommand::Persona { id, persona, also, none: _ } => {
            let mut given: Vec<String> = persona.into_iter().collect();
            also.into_iter().for_each(|name| {
                if !given.contains(&name) {
                    given.push(name)
                }
            });
            let before = give(store, tenant, &id, &given).await?;
            tell(format_args!(
                "the persona of {id} was {} and is {}",
                shown(&before.personas),
                shown(&given)
            ));
        }
        UserCommand::Remove { id } => {
            let RemovedUser { was_known, responses, transcripts, files, values, chats } = remove(&id).await?;
            let deleted = format!(
                "deleted the user's {} and the conversations, which had {}, {} and {}, and {} that tools kept",
                count(chats, "chat"),
                count(responses, "response"),
                count(transcripts, "transcript"),
                count(files, "file"),
                count(values, "value")
            );
            match (was_known, responses + transcripts + files + values + chats) {
                (true, 0) => tell(format_args!("removed {id} and revoked the user's keys")),
                (true, _) => tell(format_args!("removed {id}, revoked the user's keys, and {deleted}")),
                // Such as the user of requests without a key, or one whom a key that delegates names.
                (false, 1..) => tell(format_args!("{id} is no stored user; {deleted}")),
                (false, 0) => return Err(unknown(store, tenant, &id).await),
            }
            let now = SystemClock.now();
            let delegates = |key: &ApiKey| key.delegate && key.is_valid(now);
            if store.keys(tenant).await?.iter().any(delegates) {
                tell(format_args!("a server with a key that delegates can call for {id} as for any guest"));
            }
        }
        UserCommand::Erase { id } => {
            if !erase(&id).await? {
                return Err(unknown(store, tenant, &id).await);
            }
        }
        UserCommand::List => {
            warn_of_tenant(store, tenant).await;
            let mut table = table(["user", "level", "persona", "since"]);
            let users = store.users(tenant).await?;
            let total = count(users.len(), "user");
            for user in users {
                let personas = shown(&user.personas);
                let row = [user.id, user.level.to_string(), personas, second(user.created_at)];
                table.add_row(row.map(|cell| one_line(&cell)));
            }
            print_line(table)?;
            tell(format_args!("{total} in {}", owner.place));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn keys(
    command: KeyCommand,
    tenant: &str,
    store: &dyn Store,
    place: &str,
) -> Result<ExitCode, String> {
    match command {
        KeyCommand::Create { user, name, delegate, days } => {
            known(store, tenant, &user).await?;
            let now = SystemClock.now();
            let generated = ApiKey::generate(tenant, &user, delegate, now);
            let (key, secret) = generated.map_err(|fault| fault.to_string())?;
            let expires_at = days.map(|days| now + SignedDuration::from_hours(24 * i64::from(days)));
            let key = ApiKey { name, expires_at, ..key };
            let id = key.id.clone();
            let until =
                expires_at.map(|at| format!(" It is valid until {}.", second(at))).unwrap_or_default();
            if !store.put_key(key).await? {
                return Err(unknown(store, tenant, &user).await);
            }
            print_line(secret)?;
            tell(format_args!(
                "This is the key {id} of {user}. It is shown this once; send it as `Authorization: Bearer KEY`.{until}"
            ));
        }
        KeyCommand::Revoke { id } => {
            if !store.revoke_key(tenant, &id, SystemClock.now()).await? {
                return Err(format!("there is no valid key `{id}`; see `{}`", hint("key list", "", tenant)));
            }
            tell(format_args!("revoked {id}"));
        }
        KeyCommand::List => {
            warn_of_tenant(store, tenant).await;
            let mut table =
                table(["key", "user", "name", "delegate", "since", "expires", "last used", "revoked"]);
            let keys = store.keys(tenant).await?;
            let total = count(keys.len(), "key");
            for key in keys {
                let [expires, revoked] =
                    [key.expires_at, key.revoked_at].map(|at| at.map_or("no".to_owned(), second));
                let (delegate, since) = (if key.delegate { "yes" } else { "no" }, second(key.created_at));
                let used = key.last_used_at.map_or("never".to_owned(), second);
                let row = [key.id, key.user, key.name, delegate.to_owned(), since, expires, used, revoked];
                table.add_row(row.map(|cell| one_line(&cell)));
            }
            print_line(table)?;
            tell(format_args!("{total} in {place}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
