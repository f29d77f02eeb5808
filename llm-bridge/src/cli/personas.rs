//! `toolrack persona …`.

use std::{collections::BTreeSet, process::ExitCode};

use clap::Subcommand;
use registry_core::store::Store;
use serde_json::json;

use super::{
    names::{Known, warn_of_tenant},
    out::{count, print_line, second, table, tell},
    terminal::one_line,
    users::hint,
};
use crate::{
    identifier::{check_identifier, check_new_persona},
    personas::{self, PersonaChangeError, users_of},
    recorded::Change,
};

#[derive(Debug, Subcommand)]
pub(super) enum PersonaCommand {
    /// Add a persona
    Add {
        /// The persona's name
        #[arg(value_parser = name)]
        name: String,
        /// The modules that may be used, separated by commas; tools without one are in `local`
        #[arg(long, required = true, value_delimiter = ',', value_name = "MODULES", value_parser = module)]
        modules: Vec<String>,
    },
    /// Change the modules of a persona
    Modules {
        /// The persona's name
        name: String,
        /// The modules, separated by commas; tools without one are in `local`
        #[arg(required = true, value_delimiter = ',', value_name = "MODULES", value_parser = module)]
        modules: Vec<String>,
    },
    /// List the personas
    List,
    /// Show the modules and the users of a persona
    Show {
        /// The persona's name
        name: String,
    },
    /// Remove a persona
    Remove {
        /// The persona's name
        name: String,
        /// Also where users have it, who may use none of its modules any more
        #[arg(long)]
        force: bool,
    },
}

impl PersonaCommand {
    /// For the audit; `None` where nothing is changed.
    pub(super) fn change(&self, tenant: &str) -> Option<Change> {
        let (command, arguments) = match self {
            Self::Add { name, modules } => {
                ("toolrack persona add", json!({"name": name, "allowed_modules": modules}))
            }
            Self::Modules { name, modules } => {
                ("toolrack persona modules", json!({"name": name, "allowed_modules": modules}))
            }
            Self::Remove { name, force } => {
                ("toolrack persona remove", json!({"name": name, "force": force}))
            }
            Self::List | Self::Show { .. } => return None,
        };
        Some(Change { command, tenant: tenant.to_owned(), arguments })
    }
}

/// The name of a new persona.
fn name(text: &str) -> Result<String, String> {
    let fault = |rule| format!("a persona's name has to be {rule}");
    check_new_persona(text).map(|()| text.to_owned()).map_err(fault)
}

fn module(text: &str) -> Result<String, String> {
    let name = text.trim();
    let fault = |rule| format!("the name of a module has to be {rule}; write them as in `local,research`");
    check_identifier(name).map(|()| name.to_owned()).map_err(fault)
}

/// What is wrong, with the command that helps.
pub(super) fn told(fault: &PersonaChangeError, tenant: &str) -> String {
    match fault {
        PersonaChangeError::Exists(name) => {
            format!("there is a persona `{name}` already; see `{}`", hint("persona modules", name, tenant))
        }
        PersonaChangeError::Unknown { name, meant: None } => {
            let add = hint("persona add", name, tenant);
            format!("there is no persona `{name}`; add one with `{add} --modules MODULES`")
        }
        PersonaChangeError::InUse { .. } => format!("{fault}, or remove it with --force"),
        fault => fault.to_string(),
    }
}

/// Says which of a persona's modules nothing has.
async fn warn_of_modules(known: Option<Known>, store: &dyn Store, tenant: &str, modules: &BTreeSet<String>) {
    let Some(known) = known else { return };
    let known = known.with_stored(store, tenant).await;
    known.unknown_modules(modules).for_each(|told| tell(format_args!("warning: {told}")));
}

fn listed(modules: &BTreeSet<String>) -> String {
    modules.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

pub(super) async fn run(
    command: PersonaCommand,
    tenant: &str,
    store: &dyn Store,
    names: Option<Known>,
    place: &str,
) -> Result<ExitCode, String> {
    match command {
        PersonaCommand::Add { name, modules } => {
            let modules: BTreeSet<String> = modules.into_iter().collect();
            warn_of_modules(names, store, tenant, &modules).await;
            let added = personas::add(store, tenant, &name, modules).await;
            let modules = listed(&added.map_err(|fault| told(&fault, tenant))?.allowed_modules);
            let give = hint("user persona", "USER", tenant);
            tell(format_args!(
                "added the persona {name} with {modules} in {place}; give it to a user with `{give} {name}`"
            ));
        }
        PersonaCommand::Modules { name, modules } => {
            let modules: BTreeSet<String> = modules.into_iter().collect();
            warn_of_modules(names, store, tenant, &modules).await;
            let changed = personas::change_modules(store, tenant, &name, modules).await;
            let (before, now) = changed.map_err(|fault| told(&fault, tenant))?;
            let (before, now) = (listed(&before.allowed_modules), listed(&now.allowed_modules));
            tell(format_args!("the modules of {name} were {before} and are {now}"));
        }
        PersonaCommand::List => {
            warn_of_tenant(store, tenant).await;
            let mut table = table(["persona", "modules", "users", "since"]);
            let (personas, users) = (store.personas(tenant).await?, store.users(tenant).await?);
            let total = count(personas.len(), "persona");
            for persona in personas {
                let (modules, users) =
                    (listed(&persona.allowed_modules), users_of(&users, &persona.name).join(", "));
                let row = [persona.name, modules, users, second(persona.created_at)];
                table.add_row(row.map(|cell| one_line(&cell)));
            }
            print_line(table)?;
            tell(format_args!("{total} in {place}"));
        }
        PersonaCommand::Show { name } => {
            let shown = personas::show(store, tenant, &name).await;
            let (persona, users) = shown.map_err(|fault| told(&fault, tenant))?;
            let users = if users.is_empty() { "none".to_owned() } else { users.join(", ") };
            for (label, value) in [
                ("persona", persona.name),
                ("modules", listed(&persona.allowed_modules)),
                ("users", users),
                ("since", second(persona.created_at)),
            ] {
                print_line(format_args!("{label:8} {}", one_line(&value)))?;
            }
            tell(format_args!("Its tools: `{} --level user`", hint("tools list --persona", &name, tenant)));
        }
        PersonaCommand::Remove { name, force } => {
            let removed = personas::remove(store, tenant, &name, force).await;
            let users = removed.map_err(|fault| told(&fault, tenant))?;
            tell(format_args!("removed the persona {name}"));
            if !users.is_empty() {
                let give = hint("user persona", "USER", tenant);
                tell(format_args!(
                    "{} still have it and may use none of its modules any more: give them another one with `{give} NAME`, or `--none`",
                    users.join(", ")
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
