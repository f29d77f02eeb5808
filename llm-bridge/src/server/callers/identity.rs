//! Identifies the caller of a request: the user of a key, the person of a token, or the configured user.

mod lookup;
mod people;

use std::sync::Arc;

use axum::http::StatusCode;
use derive_more::From;
use jiff::Timestamp;
use registry_core::{
    Caller, CallerAuthority, DEFAULT_TENANT, Permission, Registry, StoredRegistry, ToolContext,
    store::{StoreError, User},
};

pub(in crate::server) use lookup::Identities;
use lookup::{Credential, Opener, Used};

use toolrack_remote::mcp::oauth::Connections;

use crate::{
    personas::{PersonaError, under_persona},
    server::{
        requests::{api_error::ApiError, body::Sender},
        transport::handover::Requests,
    },
    sign_in::TokenError,
};

/// The header that names the persona of a request.
pub(in crate::server) const PERSONA_HEADER: &str = "x-toolrack-persona";

/// What is read for a request is counted if it is more, in bytes.
const SMALL: usize = 256 << 10;
/// The caller of a request.
#[derive(Clone)]
pub(in crate::server) struct Identity {
    /// The registry of the user's tenant.
    pub(in crate::server) registry: Registry,
    /// The same with its store, for persistent changes.
    pub(in crate::server) stored: StoredRegistry,
    pub(in crate::server) caller: Caller,
    /// Whether the caller may call for another user (`user_id`).
    pub(in crate::server) delegate: bool,
    /// Whether the server needs no keys, so that every caller is the configured user.
    pub(in crate::server) keyless: bool,
    identities: Arc<Identities>,
    /// The request's credential; `None` for the configured user.
    used: Option<Used>,
    /// The requests of the connection, which have the user's share.
    requests: Option<Arc<Requests>>,
}

impl Identity {
    /// On a connection with these requests.
    pub(in crate::server) fn on(self, requests: &Arc<Requests>) -> Self {
        Self { requests: Some(Arc::clone(requests)), ..self }
    }

    /// Whether a request to this host can only have been meant for this server.
    pub(in crate::server) fn is_own_host(&self, host: &str) -> bool {
        self.identities.access().is_own_host(host)
    }

    /// Whose request it is, for what is decoded of it.
    pub(in crate::server) fn sender(&self) -> Sender {
        let (tenant, user) = (self.registry.tenant().to_owned(), self.caller.user.to_string());
        Sender { tenant, user, _requests: self.requests.clone() }
    }

    /// Counts what is read from the store for a request like its body: it is in memory until the request is answered.
    ///
    /// # Errors
    /// 503 where the user, or all together, have as much under way as may be.
    pub(in crate::server) fn hold(&self, bytes: usize) -> Result<(), ApiError> {
        if bytes <= SMALL || self.requests.as_ref().is_none_or(|requests| requests.may_receive(bytes)) {
            return Ok(());
        }
        let message =
            "as much as may be of your requests and conversations is under way, or of everybody's; try again";
        let busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_busy", message);
        Err(busy.retry_after(1))
    }

    /// The context of the request's calls.
    pub(in crate::server) fn context(&self) -> ToolContext {
        let context = self.registry.context(self.caller.clone());
        match self.standing() {
            Some(standing) => context.with_authority(standing),
            None => context,
        }
    }

    /// Refuses users below a level; `what` is what needs it, such as "adding users".
    pub(in crate::server) fn require(&self, level: Permission, what: &str) -> Result<(), ApiError> {
        let Caller { user, level: own, .. } = &self.caller;
        if *own >= level {
            return Ok(());
        }
        let how = self.how_to_get(level);
        Err(ApiError::denied(format!("{what} needs the level {level}, {user} has {own}; {how}")))
    }

    /// Refuses users below a level and those of other tenants.
    pub(in crate::server) fn require_in_default_tenant(
        &self,
        level: Permission,
        what: &str,
    ) -> Result<(), ApiError> {
        let tenant = self.registry.tenant();
        if tenant == DEFAULT_TENANT {
            return self.require(level, what);
        }
        let Caller { user, level: own, .. } = &self.caller;
        Err(ApiError::denied(format!(
            "{what} needs the level {level} of the tenant {DEFAULT_TENANT}; {user} has {own} in {tenant}"
        )))
    }

    /// All tenants share modules, MCP servers, models and settings, so only admins of the default tenant manage them.
    pub(in crate::server) fn require_operator(&self) -> Result<(), ApiError> {
        self.require_in_default_tenant(Permission::Admin, "managing the server")
    }

    /// Whether the user may use a module at all.
    pub(in crate::server) fn may_use_module(&self, module: &str) -> bool {
        self.caller.allowed_modules.as_ref().is_none_or(|allowed| allowed.contains(module))
    }

    /// How the user gets a level.
    fn how_to_get(&self, level: Permission) -> String {
        let (user, tenant) = (&self.caller.user, self.registry.tenant());
        let tenant = if tenant == DEFAULT_TENANT { String::new() } else { format!(" --tenant {tenant}") };
        match self.is_configured() {
            true => format!(
                "set `level = \"{level}\"` under [user] in toolrack.toml and restart, or send the key of a user who has it"
            ),
            false => format!(
                "run `toolrack user promote {user} {level}{tenant}`, or send the key of a user who has it"
            ),
        }
    }

    /// The accounts of users on MCP servers, where there are any.
    pub(in crate::server) fn connections(&self) -> Option<&Connections> {
        self.identities.connections()
    }

    /// Whether the caller is the configured user.
    pub(in crate::server) fn is_configured(&self) -> bool {
        self.used.is_none()
    }

    /// The level of a user of the tenant who is the configured one.
    pub(in crate::server) async fn configured_level(
        &self,
        user: &str,
    ) -> Result<Option<Permission>, StoreError> {
        if self.registry.tenant() != DEFAULT_TENANT {
            return Ok(None);
        }
        let configured = self.identities.configured_caller().await?;
        Ok(Some(configured.level).filter(|_| configured.user == user))
    }

    /// The hash of the browser's session; `None` for requests with a key or a token.
    pub(in crate::server) fn session(&self) -> Option<&str> {
        match &self.used.as_ref()?.by {
            Credential::Session(sha256, _) => Some(sha256),
            Credential::Key(_) | Credential::Token(_) => None,
        }
    }

    /// Has the credential looked up again by the next request.
    pub(in crate::server) fn forget(&self) {
        if let Some(used) = &self.used {
            self.identities.known.invalidate(used);
        }
    }

    /// The same for all credentials of all users.
    pub(in crate::server) fn forget_all(&self) {
        self.identities.known.invalidate_all();
    }

    /// Revalidates the caller's permissions during a request.
    pub(in crate::server) fn standing(&self) -> Option<Arc<dyn CallerAuthority>> {
        let used = self.used.clone()?;
        Some(Arc::new(Opener { identities: Arc::clone(&self.identities), used }))
    }

    /// The same credential, for another user.
    pub(in crate::server) async fn on_behalf_of(self, user: &str) -> Result<Self, IdentityError> {
        let used = self.used.ok_or(IdentityError::NoKey)?;
        self.identities.opened_by(Used { on_behalf_of: Some(user.to_owned()), ..used }).await
    }

    /// The caller as somebody of a level would be, under a persona, to see what such a one sees.
    pub(in crate::server) async fn seen_as(
        &self,
        level: Option<Permission>,
        persona: Option<&str>,
    ) -> Result<Caller, IdentityError> {
        let user = User {
            id: self.caller.user.clone(),
            level: level.unwrap_or(self.caller.level),
            personas: persona.map(str::to_owned).into_iter().collect(),
            created_at: Timestamp::UNIX_EPOCH,
        };
        let (store, caller) = (self.stored.store(), self.identities.without_personas(&user));
        Ok(under_persona(store.as_ref(), self.registry.tenant(), caller, &[], persona).await?)
    }

    /// The same user under another persona.
    pub(in crate::server) async fn under_persona(self, persona: String) -> Result<Self, IdentityError> {
        match self.used {
            Some(used) => self.identities.opened_by(Used { persona: Some(persona), ..used }).await,
            None => self.identities.configured(Some(&persona)).await,
        }
    }
}

/// Why a caller cannot be identified.
#[derive(Debug, Clone, PartialEq, Eq, From)]
pub(in crate::server) enum IdentityError {
    /// The key is missing or not valid.
    NoKey,
    /// The token opens nothing.
    #[from]
    Token(TokenError),
    /// The request names a persona that its user may not use; the text is for the user.
    Persona(String),
    /// The store failed.
    #[from]
    Store(StoreError),
    /// A new user could not be audited.
    Audit(String),
}

impl From<PersonaError> for IdentityError {
    fn from(fault: PersonaError) -> Self {
        match fault {
            PersonaError::NotAllowed(message) => Self::Persona(message),
            PersonaError::Store(cause) => Self::Store(cause),
        }
    }
}
