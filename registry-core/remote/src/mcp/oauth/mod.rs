//! The accounts that users have on MCP servers: let in by each user with OAuth 2.1, as the protocol has it, or by exchanging the token that
//! the user has signed in with (RFC 8693).
//!
//! The client library has an OAuth client too. It holds one account in one process, revokes and exchanges nothing, and brings a second set of
//! cryptography; so the parts that MCP asks for are here, on the HTTP client of this workspace.

mod bearer;
mod discovery;
mod exchange;
mod flow;
mod kept;
mod seal;
mod sending;
mod signed_in;
mod web;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use registry_core::{
    ErrorKind, ToolContext, ToolError,
    clock::{Clock, SystemClock},
    store::{ConnectionStore, StoreError, StoredConnection},
};
use reqwest::{Url, redirect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use toolrack_http::build_client;

pub(super) use self::{
    bearer::Bearer,
    kept::{NoToken, Who},
};
use self::{
    discovery::Issuer,
    exchange::Exchanged,
    kept::Kept,
    signed_in::{is_reserved, is_session},
    web::{Client, Web},
};
pub use self::{
    flow::{AUTHORIZATION_SECONDS, AuthorizationCallback, Beginning, CALLBACK, ConnectError},
    seal::SealingKey,
    signed_in::SignedIn,
};
use super::{McpServerSettings, settings::parse_url};
use crate::settings::find_key;

/// How a server knows whose calls these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpAuth {
    /// Each user lets this server in, in a browser.
    Oauth,
    /// The token that a user has signed in with is exchanged.
    Exchange,
}

/// The accounts of users on MCP servers. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Connections({} servers)", shared.accounts.len())]
pub struct Connections {
    shared: Arc<Shared>,
}

/// What all clones of [`Connections`] share.
struct Shared {
    store: Arc<dyn ConnectionStore>,
    key: SealingKey,
    /// The address of this server, for links.
    public_url: Option<String>,
    accounts: BTreeMap<String, Arc<Account>>,
    /// All servers that are configured, those without accounts too.
    configured: BTreeSet<String>,
    exchanged: Exchanged,
}

/// A server on which users have accounts.
pub(super) struct Account {
    name: Arc<str>,
    url: Url,
    settings: McpServerSettings,
    /// Reaches what the operator has named.
    http: reqwest::Client,
    web: Web,
    /// Notified when somebody has let this server in.
    pub(super) authorized: Notify,
}

impl Account {
    fn new(name: &str, settings: &McpServerSettings) -> Result<Self, String> {
        settings.check_auth()?;
        let url = parse_url(settings.url.as_deref().unwrap_or_default())?;
        let named = settings.authorization_server.as_deref().map(parse_url).transpose()?;
        let http = build_client(|| {
            reqwest::Client::builder().redirect(redirect::Policy::none()).timeout(web::TIMEOUT)
        });
        Ok(Self {
            name: name.into(),
            http: http.map_err(|error| format!("the system's TLS cannot be set up: {error}"))?,
            web: Web::new(&[&url].into_iter().chain(&named).collect::<Vec<_>>())?,
            url,
            settings: settings.clone(),
            authorized: Notify::new(),
        })
    }

    /// Whether users let this server in.
    fn is_asked(&self) -> bool {
        self.settings.auth == Some(McpAuth::Oauth)
    }

    /// Whose account serves a user's calls.
    fn who(&self, tenant: &str, user: &str) -> Who {
        if self.settings.shared { Who::everybody() } else { Who::of(tenant, user) }
    }

    /// This server as a client, where it is configured.
    fn client(&self, issuer: &Issuer) -> Result<Option<Client>, String> {
        let Some(id) = self.settings.client_id.clone() else { return Ok(None) };
        let secret = find_key(None, self.settings.client_secret_env.as_deref())?;
        let secret = secret.map(|secret| secret.as_str().to_owned());
        Ok(Some(Client { id, secret, secret_in_form: issuer.secret_in_form }))
    }
}

/// A user's account on a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Connection {
    /// The name of the server here.
    pub server: String,
    /// How the server knows whose calls these are.
    pub auth: McpAuth,
    /// Whether all users share one account.
    pub shared: bool,
    /// Whether this server is let in.
    pub connected: bool,
    /// Since when (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The authorization server that has let it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// What it may do there, in the server's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// An account of somebody, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAccount {
    /// The tenant; empty where all share the account.
    pub tenant: String,
    /// The user; empty where all share the account.
    pub user: String,
    /// The name of the server here.
    pub server: String,
    /// Since when (UTC).
    pub since: Timestamp,
    /// The authorization server; `None` where it cannot be read with this key.
    pub issuer: Option<String>,
}

impl Connections {
    /// For the servers of these settings whose users have accounts. `public_url` is the address at which people reach this server.
    ///
    /// # Errors
    /// Names the server and what is wrong with it.
    pub fn new(
        settings: &BTreeMap<String, McpServerSettings>,
        store: Arc<dyn ConnectionStore>,
        key: SealingKey,
        public_url: Option<String>,
    ) -> Result<Self, String> {
        let mut accounts = BTreeMap::new();
        for (name, server) in settings.iter().filter(|(_, server)| server.auth.is_some()) {
            let account =
                Account::new(name, server).map_err(|fault| format!("mcp_servers.{name}: {fault}"))?;
            accounts.insert(name.clone(), Arc::new(account));
        }
        let configured = settings.keys().cloned().collect();
        let exchanged = Exchanged::default();
        Ok(Self { shared: Arc::new(Shared { store, key, public_url, accounts, configured, exchanged }) })
    }

    pub(super) fn account(&self, server: &str) -> Option<Arc<Account>> {
        self.shared.accounts.get(server).cloned()
    }

    /// Whether an account is one that all users share, which an operator connects.
    pub fn is_shared(&self, server: &str) -> bool {
        self.shared.accounts.get(server).is_some_and(|account| account.settings.shared)
    }

    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// Notes the access token with which a user has come, for servers where it is exchanged. It is kept in memory only.
    pub fn came_with(&self, tenant: &str, user: &str, token: &str) {
        let mut exchanging = self.shared.accounts.values().filter(|account| !account.is_asked()).peekable();
        if exchanging.peek().is_none() {
            return;
        }
        if self.shared.exchanged.came_with(Who::of(tenant, user), token, self.now().as_second()) {
            exchanging.for_each(|account| account.authorized.notify_waiters());
        }
    }

    /// The user's accounts, on every server that has such.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(&self, tenant: &str, user: &str) -> Result<Vec<Connection>, StoreError> {
        let mut all = Vec::with_capacity(self.shared.accounts.len());
        let has_session = self.exchanges() && {
            let rows = self.shared.store.connections(tenant, user).await?;
            rows.iter().any(|row| self.is_open_session(row))
        };
        for account in self.shared.accounts.values() {
            let kept = match self.kept(&account.who(tenant, user), account.holder()).await {
                Ok(kept) => kept,
                Err(NoToken::Later(cause)) => return Err(StoreError::unavailable(cause)),
                Err(NoToken::Ask) => None,
            };
            let is_known = !account.is_asked()
                && (has_session
                    || self.shared.exchanged.knows(&Who::of(tenant, user), self.now().as_second()));
            let (since, kept) = kept.map_or((None, None), |(row, kept)| (Some(row.created_at), Some(kept)));
            all.push(Connection {
                server: account.name.to_string(),
                auth: account.settings.auth.unwrap_or(McpAuth::Oauth),
                shared: account.settings.shared,
                connected: kept.is_some() || is_known,
                since,
                issuer: kept.as_ref().map(|kept| kept.issuer.clone()),
                scope: kept.and_then(|kept| kept.scope),
            });
        }
        Ok(all)
    }

    /// Everybody's accounts.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn all(&self) -> Result<Vec<StoredAccount>, StoreError> {
        let rows = self.shared.store.all_connections().await?;
        let is_account = |row: &StoredConnection| !flow::is_registration(row) && !is_session(row);
        let accounts = rows.into_iter().filter(is_account).map(|row| StoredAccount {
            issuer: self.opened(&row).map(|kept| kept.issuer),
            tenant: row.tenant,
            user: row.user,
            server: row.server,
            since: row.created_at,
        });
        Ok(accounts.collect())
    }

    /// Forgets a user's account on a server, and has the authorization server forget it too. False if there is none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn disconnect(&self, tenant: &str, user: &str, server: &str) -> Result<bool, StoreError> {
        if is_reserved(server) {
            return Ok(false);
        }
        let Some(row) = self.shared.store.connection(tenant, user, server).await? else { return Ok(false) };
        self.end(&row).await
    }

    async fn end(&self, row: &StoredConnection) -> Result<bool, StoreError> {
        let StoredConnection { tenant, user, server, .. } = row;
        // First, so that nothing uses it meanwhile.
        let removed = self.shared.store.remove_connection(tenant, user, server).await?;
        if let Some(kept) = self.opened(row).filter(|_| removed) {
            self.revoke(server, &kept).await;
        }
        tracing::info!(server, tenant, user, "mcp_disconnected");
        Ok(removed)
    }

    /// The same with all accounts of a user. Gives how many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn disconnect_all(&self, tenant: &str, user: &str) -> Result<usize, StoreError> {
        let mut gone = 0;
        self.shared.exchanged.forget(&Who::of(tenant, user));
        for row in self.shared.store.connections(tenant, user).await? {
            gone += usize::from(self.end(&row).await? && !is_session(&row));
        }
        Ok(gone)
    }

    /// Forgets the accounts on servers that the configuration does not have any more, and sessions that are over. Gives how many there were.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget_removed(&self) -> Result<usize, StoreError> {
        let mut gone = 0;
        for row in self.shared.store.all_connections().await? {
            let is_needed = match is_session(&row) {
                true => self.exchanges() && self.is_open_session(&row),
                false => self.shared.configured.contains(&row.server),
            };
            if !is_needed {
                gone += usize::from(self.end(&row).await?);
            }
        }
        Ok(gone)
    }

    /// Where people let this server in.
    fn link(&self, server: &str) -> String {
        format!("{}/connect/{server}", self.shared.public_url.as_deref().unwrap_or_default())
    }

    /// Why a user's call cannot be made yet, and what to do.
    pub(super) fn ask(&self, account: &Account) -> ToolError {
        let name = &account.name;
        let ask = |message: String| ToolError::new(ErrorKind::AuthorizationRequired, message);
        if !account.is_asked() {
            let message = format!(
                "{name} takes calls of people who have signed in: sign in on the page, or call with the access token of your sign-in"
            );
            return ask(message).with_feedback(format!(
                "{name} takes calls of people who have signed in, and this user has not, or too long ago. Tell the user to sign in again, or do without it."
            ));
        }
        let link = self.link(name);
        let message = match account.settings.shared {
            true => format!("an operator has to let this server into {name}: {link}"),
            false => format!("let this server into your account on {name}: open {link} and call again"),
        };
        let feedback = match account.settings.shared {
            true => format!(
                "An operator has to authorize {name} first, at {link}. Tell the user so, or do without it."
            ),
            false => format!(
                "The user has to authorize {name} first. Give the user this link, and ask to be told when it is done: {link}"
            ),
        };
        ask(message).with_feedback(feedback).with_authorize_at(link)
    }

    /// What opens a user's account.
    pub(super) fn bearer(&self, account: &Arc<Account>, who: Who) -> Bearer {
        Bearer::new(self.clone(), Arc::clone(account), who)
    }

    /// Whose account serves a call.
    pub(super) fn who(&self, account: &Account, context: &ToolContext) -> Who {
        account.who(context.tenant(), &context.caller().user)
    }

    /// With whose account the server's tools are listed, where it lists nothing to strangers: the first that let this server in.
    pub(super) async fn lister(&self, account: &Arc<Account>) -> Option<Who> {
        if !account.is_asked() {
            if let Some(who) = self.shared.exchanged.somebody(self.now().as_second()) {
                return Some(who);
            }
            let rows = self.shared.store.all_connections().await.ok()?;
            let open = rows.iter().filter(|row| self.is_open_session(row));
            return open.max_by_key(|row| row.created_at).map(|row| Who::of(&row.tenant, &row.user));
        }
        let rows = self.shared.store.all_connections().await.ok()?;
        let mut rows =
            rows.into_iter().filter(|row| *row.server == *account.name && !flow::is_registration(row));
        let is_good = |kept: Kept| kept.resource == account.url.as_str();
        let row = rows.find(|row| self.opened(row).is_some_and(is_good))?;
        Some(Who::of(&row.tenant, &row.user))
    }

    /// The link for a server whose tools nobody can list yet.
    pub(super) fn nobody(&self, account: &Account) -> String {
        match account.is_asked() {
            true => format!(
                "nobody has let this server in yet, which it asks for before it lists its tools: open {}",
                self.link(&account.name)
            ),
            false => "it lists its tools to people who have signed in, and nobody has yet".to_owned(),
        }
    }
}
