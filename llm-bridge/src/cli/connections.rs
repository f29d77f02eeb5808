//! `toolrack connections`: the accounts that users have let this server into, and the key that they are sealed with.

use std::{fs, io, path::Path, process::ExitCode, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Subcommand;
use registry_core::store::{ConnectionStore, MemoryStore};
use serde_json::json;
use toolrack_remote::mcp::oauth::{Connections, SealingKey};

use super::{
    Settings,
    out::{count, print_line, second, table, tell},
    secret_file,
    store::Stores,
    terminal::one_line,
};
use crate::recorded::Change;

#[derive(Debug, Subcommand)]
pub(super) enum ConnectionsCommand {
    /// List the accounts on MCP servers that users have let this server into
    List,
    /// Forget an account, and have its authorization server forget it too
    Revoke {
        /// The MCP server's name
        server: String,
        /// The user's id
        #[arg(required_unless_present = "shared")]
        user: Option<String>,
        /// The account that all users share
        #[arg(long, conflicts_with = "user")]
        shared: bool,
    },
}

impl ConnectionsCommand {
    /// For the audit; `None` for commands that only read.
    pub(super) fn change(&self, tenant: &str) -> Option<Change> {
        match self {
            Self::List => None,
            Self::Revoke { server, user, shared: _ } => Some(Change {
                command: "toolrack connections revoke",
                tenant: tenant.to_owned(),
                arguments: json!({"server": server, "user": user}),
            }),
        }
    }
}

pub(super) async fn run(
    command: ConnectionsCommand,
    tenant: &str,
    settings: &Settings,
    stores: &Stores,
    place: &str,
) -> Result<ExitCode, String> {
    let connections = of(settings, stores)?;
    match command {
        ConnectionsCommand::List => {
            let mut table = table(["server", "user", "authorization server", "since"]);
            let all = connections.all().await?;
            let own = all.into_iter().filter(|account| account.tenant == tenant || account.tenant.is_empty());
            let mut number = 0;
            for account in own {
                number += 1;
                let user = if account.user.is_empty() { "(shared)".to_owned() } else { account.user };
                let issuer = account.issuer.unwrap_or_else(|| "sealed with another key".to_owned());
                table.add_row(
                    [account.server, user, issuer, second(account.since)].map(|cell| one_line(&cell)),
                );
            }
            print_line(table)?;
            tell(format_args!("{} in {place}", count(number, "connection")));
        }
        ConnectionsCommand::Revoke { server, user, shared: _ } => {
            let (tenant, user) = match &user {
                Some(user) => (tenant, user.as_str()),
                None => ("", ""),
            };
            if !connections.disconnect(tenant, user, &server).await? {
                let whose = if user.is_empty() {
                    "no shared account".to_owned()
                } else {
                    format!("no account of `{user}`")
                };
                return Err(format!("there is {whose} on `{server}`; see `toolrack connections list`"));
            }
            tell(format_args!("revoked the account on {server}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The accounts in the stores.
pub(super) fn of(settings: &Settings, stores: &Stores) -> Result<Connections, String> {
    let file = settings.connections.key_file(&settings.data_dir);
    // Who has no such server needs no key.
    let key = match settings.mcp_servers.values().any(|server| server.auth.is_some()) || file.exists() {
        true => key(&file).map_err(|fault| format!("connections.key_file: {}: {fault}", file.display()))?,
        false => random()?,
    };
    new(settings, stores.sql.clone(), key)
}

/// Those of a command that has no stores.
pub(super) fn without_stores(settings: &Settings) -> Result<Connections, String> {
    new(settings, Arc::new(MemoryStore::default()), random()?)
}

/// A key that opens nothing of before.
fn random() -> Result<SealingKey, String> {
    SealingKey::new(&secret_file::random().map_err(|fault| fault.to_string())?)
}

fn new(settings: &Settings, store: Arc<dyn ConnectionStore>, key: SealingKey) -> Result<Connections, String> {
    let url = settings.public_url.as_ref().map(ToString::to_string);
    let url = url.unwrap_or_else(|| format!("http://{}", settings.listen));
    Connections::new(&settings.mcp_servers, store, key, Some(url))
}

/// The key in a file, which is made where there is none.
fn key(file: &Path) -> Result<SealingKey, String> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let made = secret_file::random();
            let made = made.and_then(|bytes| secret_file::create(file, &STANDARD.encode(bytes)));
            made.map_err(|error| error.to_string())?;
            fs::read_to_string(file)
        }
        read => read,
    };
    let text = text.map_err(|error| error.to_string())?;
    let bytes = STANDARD.decode(text.trim()).ok();
    let key = bytes.and_then(|bytes| SealingKey::new(&bytes).ok());
    key.ok_or_else(|| {
        "this is no key of 32 bytes as Base64; make one with `openssl rand -base64 32`, or remove the file"
            .to_owned()
    })
}
