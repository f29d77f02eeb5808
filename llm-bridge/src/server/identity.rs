//! Identifies the caller of a request: the user of a key, the person of a token, or the configured user.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use derive_more::From;
use jiff::Timestamp;
use moka::sync::Cache;
use registry_core::{
    Caller, CallerAuthority, DEFAULT_TENANT, Origin, Permission, Registry, StoredRegistry, ToolContext,
    clock::{Clock, SystemClock},
    store::{ApiKey, KEY_PREFIX, Store, StoreError, StoreFuture, User, hash_key},
};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::sync::OnceCell;

use super::{Access, ServerSettings, api_error::ApiError, handover::Requests, key::SentKey, seats::Shares};
use crate::{
    personas::{PersonaError, change_user, under_all_personas, under_persona},
    recorded::{Change, recorded},
    sign_in::{Person, SignIn, TokenError},
};

/// The header that names the persona of a request.
pub(super) const PERSONA_HEADER: &str = "x-toolrack-persona";

/// What is read for a request is counted if it is more, in bytes.
const SMALL: usize = 256 << 10;
/// How many users a tenant may have for another to be added by signing in: who they are the provider says, and there it may be easy.
const MAX_USERS: usize = 100_000;
/// How long keys are cached: a revoked key and a changed level take effect after it.
const BELIEVED: Duration = Duration::from_millis(500);
/// How many keys are cached.
const REMEMBERED: u64 = 10_000;

/// The caller of a request.
#[derive(Clone)]
pub(super) struct Identity {
    /// The registry of the user's tenant.
    pub(super) registry: Registry,
    /// The same with its store, for persistent changes.
    pub(super) stored: StoredRegistry,
    pub(super) caller: Caller,
    /// Whether the caller may call for another user (`user_id`).
    pub(super) delegate: bool,
    /// Whether the server needs no keys, so that every caller is the configured user.
    pub(super) keyless: bool,
    identities: Arc<Identities>,
    /// The request's credential; `None` for the configured user.
    used: Option<Used>,
    /// The requests of the connection, which have the user's share.
    requests: Option<Arc<Requests>>,
}

impl Identity {
    /// On a connection with these requests.
    pub(super) fn on(self, requests: &Arc<Requests>) -> Self {
        Self { requests: Some(Arc::clone(requests)), ..self }
    }

    /// Counts what is read from the store for a request like its body: it is in memory until the request is answered.
    ///
    /// # Errors
    /// 503 where the user, or all together, have as much under way as may be.
    pub(super) fn hold(&self, bytes: usize) -> Result<(), ApiError> {
        if bytes <= SMALL || self.requests.as_ref().is_none_or(|requests| requests.may_receive(bytes)) {
            return Ok(());
        }
        let message = "as much as may be is being read of your conversations, or of everybody's; try again";
        let busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_busy", message);
        Err(busy.retry_after(1))
    }

    /// The context of the request's calls.
    pub(super) fn context(&self) -> ToolContext {
        let context = self.registry.context(self.caller.clone());
        match self.standing() {
            Some(standing) => context.with_authority(standing),
            None => context,
        }
    }

    /// Refuses users below a level; `what` is what needs it, such as "adding users".
    pub(super) fn require(&self, level: Permission, what: &str) -> Result<(), ApiError> {
        let Caller { user, level: own, .. } = &self.caller;
        if *own >= level {
            return Ok(());
        }
        let how = self.how_to_get(level);
        Err(ApiError::denied(format!("{what} needs the level {level}, {user} has {own}; {how}")))
    }

    /// Refuses users below a level and those of other tenants.
    pub(super) fn require_in_default_tenant(&self, level: Permission, what: &str) -> Result<(), ApiError> {
        let tenant = self.registry.tenant();
        if tenant == DEFAULT_TENANT {
            return self.require(level, what);
        }
        let Caller { user, level: own, .. } = &self.caller;
        Err(ApiError::denied(format!(
            "{what} needs the level {level} of the tenant {DEFAULT_TENANT}; {user} has {own} in {tenant}"
        )))
    }

    /// All tenants share modules and MCP servers, so only admins of the default tenant manage them.
    pub(super) fn require_operator(&self) -> Result<(), ApiError> {
        self.require_in_default_tenant(Permission::Admin, "managing modules and MCP servers")
    }

    /// Whether the user may use a module at all.
    pub(super) fn may_use_module(&self, module: &str) -> bool {
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

    /// Whether the caller is the configured user.
    pub(super) fn is_configured(&self) -> bool {
        self.used.is_none()
    }

    /// The hash of the browser's session; `None` for requests with a key or a token.
    pub(super) fn session(&self) -> Option<&str> {
        match &self.used.as_ref()?.by {
            Credential::Session(sha256) => Some(sha256),
            Credential::Key(_) | Credential::Token(_) => None,
        }
    }

    /// Has the credential looked up again by the next request.
    pub(super) fn forget(&self) {
        if let Some(used) = &self.used {
            self.identities.known.invalidate(used);
        }
    }

    /// Revalidates the caller's permissions during a request.
    pub(super) fn standing(&self) -> Option<Arc<dyn CallerAuthority>> {
        let used = self.used.clone()?;
        Some(Arc::new(Opener { identities: Arc::clone(&self.identities), used }))
    }

    /// The same credential, for another user.
    pub(super) async fn on_behalf_of(self, user: &str) -> Result<Self, IdentityError> {
        let used = self.used.ok_or(IdentityError::NoKey)?;
        self.identities.opened_by(Used { on_behalf_of: Some(user.to_owned()), ..used }).await
    }

    /// The same user under another persona.
    pub(super) async fn under_persona(self, persona: String) -> Result<Self, IdentityError> {
        match self.used {
            Some(used) => self.identities.opened_by(Used { persona: Some(persona), ..used }).await,
            None => self.identities.configured(Some(&persona)).await,
        }
    }
}

/// Why a caller cannot be identified.
#[derive(Debug, Clone, PartialEq, Eq, From)]
pub(super) enum IdentityError {
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

/// What a request shows to say whose it is.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Credential {
    /// A key, by its hash.
    Key(String),
    /// A token of the provider's, which was valid when the request came. What runs does not end with it.
    Token(Arc<Person>),
    /// The session of a browser, by its hash.
    Session(String),
}

/// A credential with the user that it is used for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Used {
    by: Credential,
    /// The user that it is used for, if not its own.
    on_behalf_of: Option<String>,
    /// The persona that the request names.
    persona: Option<String>,
}

impl From<Credential> for Used {
    fn from(by: Credential) -> Self {
        Self { by, on_behalf_of: None, persona: None }
    }
}

/// The registry and caller of a credential.
#[derive(Clone)]
struct Opened {
    stored: StoredRegistry,
    caller: Caller,
    delegate: bool,
}

/// A credential that can be looked up again.
struct Opener {
    identities: Arc<Identities>,
    used: Used,
}

impl CallerAuthority for Opener {
    fn caller(&self) -> StoreFuture<'_, Option<Caller>> {
        Box::pin(async move {
            match self.identities.opened(&self.used).await {
                Ok(opened) => Ok(Some(opened.caller)),
                Err(IdentityError::Store(cause)) => Err(cause),
                Err(_) => Ok(None),
            }
        })
    }
}

/// Looks up users by their credentials.
pub(super) struct Identities {
    settings: Arc<ServerSettings>,
    registry: Registry,
    /// The tenants' registries, attached to the store on first use without blocking each other.
    tenants: Mutex<HashMap<String, Arc<OnceCell<StoredRegistry>>>>,
    /// The requests that each user has under way.
    pub(super) shares: Arc<Shares>,
    /// Cached credentials.
    known: Cache<Used, Opened>,
    /// When the provider issued the newest token of a user, by tenant and user.
    newest: Cache<(String, String), i64>,
    /// Whether anybody has a key.
    has_keys: moka::future::Cache<(), bool>,
}

impl Identities {
    pub(super) fn new(settings: Arc<ServerSettings>, registry: Registry) -> Self {
        let known = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build();
        let has_keys = moka::future::Cache::builder().time_to_live(BELIEVED).build();
        let shares = Shares::new(settings.max_connections);
        let newest = Cache::new(REMEMBERED);
        Self { settings, registry, tenants: Mutex::default(), shares, known, newest, has_keys }
    }

    pub(super) fn access(&self) -> &Access {
        &self.settings.access
    }

    /// The people of a provider, where one is configured.
    pub(super) fn sign_in(&self) -> Option<&SignIn> {
        self.settings.sign_in.as_deref()
    }

    /// The user of the request's credential, or the configured user if none is required.
    pub(super) async fn of(
        self: &Arc<Self>,
        key: &SentKey,
        headers: &HeaderMap,
    ) -> Result<Identity, IdentityError> {
        let persona = headers.get(PERSONA_HEADER).map(persona_of).transpose()?;
        if self.is_configured_key(key) {
            return self.configured(persona.as_deref()).await;
        }
        match self.credential(key).await? {
            Some(by) => {
                let is_token = matches!(by, Credential::Token(_));
                let identity = self.opened_by(Used { persona, ..by.into() }).await?;
                if let (true, Some(token), Some(connections)) =
                    (is_token, key.as_str(), &self.settings.connections)
                {
                    connections.came_with(identity.registry.tenant(), &identity.caller.user, token);
                }
                Ok(identity)
            }
            // Many clients always send some key, such as `none`.
            None if !self.access().requires_key() => self.configured(persona.as_deref()).await,
            None => Err(IdentityError::NoKey),
        }
    }

    /// What was sent; `None` for what no user can have.
    async fn credential(&self, key: &SentKey) -> Result<Option<Credential>, TokenError> {
        Ok(match (key.as_str(), self.sign_in()) {
            (Some(secret), _) if secret.starts_with(KEY_PREFIX) => Some(Credential::Key(hash_key(secret))),
            (Some(token), Some(sign_in)) if SignIn::is_token(token) => {
                Some(Credential::Token(Arc::new(sign_in.person(token).await?)))
            }
            _ => key
                .session()
                .filter(|_| self.sign_in().is_some())
                .map(|secret| Credential::Session(hash_key(secret))),
        })
    }

    /// The store of users, keys and sessions.
    pub(super) fn store(&self) -> &dyn Store {
        self.settings.store.as_ref()
    }

    /// Whether a credential is somebody's.
    pub(super) async fn accepts(&self, key: &SentKey) -> Result<bool, StoreError> {
        if self.is_configured_key(key) {
            return Ok(true);
        }
        let Ok(Some(by)) = self.credential(key).await else { return Ok(false) };
        match self.opened(&by.into()).await {
            Ok(_) | Err(IdentityError::Persona(_)) => Ok(true),
            Err(IdentityError::Store(cause)) => Err(cause),
            Err(_) => Ok(false),
        }
    }

    fn is_configured_key(&self, key: &SentKey) -> bool {
        let (Some(wanted), Some(given)) = (&self.access().api_key, key.as_str()) else { return false };
        // Constant time for keys of equal length.
        given.as_bytes().ct_eq(wanted.as_bytes()).into()
    }

    async fn configured(self: &Arc<Self>, persona: Option<&str>) -> Result<Identity, IdentityError> {
        let stored = self.tenant(DEFAULT_TENANT).await?;
        let caller = self.configured_caller().await?;
        let store = self.settings.store.as_ref();
        let caller = under_persona(store, DEFAULT_TENANT, caller, &[], persona).await?;
        Ok(Identity {
            registry: stored.registry().clone(),
            stored,
            caller,
            delegate: false,
            keyless: !self.settings.access.requires_key(),
            identities: Arc::clone(self),
            used: None,
            requests: None,
        })
    }

    /// The configured user with its current level.
    async fn configured_caller(&self) -> Result<Caller, StoreError> {
        let mut caller = self.settings.caller.clone();
        if let Some(most) = self.settings.level_with_keys.filter(|most| *most < caller.level) {
            let find = self.has_keys.try_get_with((), self.settings.store.has_keys());
            if find.await.map_err(|error: Arc<StoreError>| StoreError::clone(&error))? {
                caller.level = most;
            }
        }
        Ok(self.for_guest(caller))
    }

    async fn opened_by(self: &Arc<Self>, used: Used) -> Result<Identity, IdentityError> {
        let Opened { stored, caller, delegate } = self.opened(&used).await?;
        let (registry, identities) = (stored.registry().clone(), Arc::clone(self));
        Ok(Identity {
            registry,
            stored,
            caller,
            delegate,
            keyless: false,
            identities,
            used: Some(used),
            requests: None,
        })
    }

    async fn opened(&self, used: &Used) -> Result<Opened, IdentityError> {
        if let Some(opened) = self.known.get(used) {
            return Ok(opened);
        }
        let store = &self.settings.store;
        let (tenant, user, delegate) = match &used.by {
            Credential::Key(sha256) => {
                let key = store.key(sha256).await?.ok_or(IdentityError::NoKey)?;
                let user = store.user(&key.tenant, &key.user).await?.ok_or(IdentityError::NoKey)?;
                (key.tenant, user, key.delegate)
            }
            Credential::Token(person) => (person.tenant.clone(), self.user_of(person).await?, false),
            Credential::Session(sha256) => {
                let session = store.session(sha256, SystemClock.now()).await?.ok_or(IdentityError::NoKey)?;
                let user = store.user(&session.tenant, &session.user).await?.ok_or(IdentityError::NoKey)?;
                (session.tenant, user, false)
            }
        };
        let under = async |user: User| {
            let caller = self.without_personas(&user);
            let persona = used.persona.as_deref();
            under_persona(store.as_ref(), &tenant, caller, &user.personas, persona).await
        };
        let mut caller = under(user).await?;
        match &used.on_behalf_of {
            None => {}
            Some(user) if delegate => {
                let known = store.user(&tenant, user).await?;
                caller = caller.on_behalf_of(under(known.unwrap_or_else(|| unknown_user(user))).await?);
            }
            Some(_) => return Err(IdentityError::NoKey),
        }
        let opened = Opened { stored: self.tenant(&tenant).await?, caller, delegate };
        self.known.insert(used.clone(), opened.clone());
        Ok(opened)
    }

    /// The user whom the provider names, as known here: added if new, and changed where groups decide and have changed.
    pub(super) async fn user_of(&self, person: &Person) -> Result<User, IdentityError> {
        let (store, tenant, id) = (self.settings.store.as_ref(), &person.tenant, &person.user);
        let at = (tenant.clone(), id.clone());
        let is_newest = self.newest.get(&at).is_none_or(|newest| newest <= person.issued_at);
        let known = store.user(tenant, id).await?;
        let mut user = match known {
            None => {
                self.may_be_added(person)?;
                if store.users(tenant).await?.len() >= MAX_USERS {
                    let why = format!("there are {MAX_USERS} users already; an operator has to remove some");
                    return Err(TokenError::NotAllowed(why).into());
                }
                let (level, personas) = (person.level, person.personas.clone());
                let user = User { id: id.clone(), level, personas, created_at: SystemClock.now() };
                self.recorded(person, "sign-in user add", store.put_user(tenant, user.clone())).await?;
                user
            }
            // An older token may be of a time when groups were others.
            Some(user) if person.by_groups && is_newest => {
                let changed = User { level: person.level, personas: person.personas.clone(), ..user.clone() };
                if changed != user {
                    let change = change_user(store, tenant, id, |user| {
                        user.level = person.level;
                        user.personas.clone_from(&person.personas);
                    });
                    self.recorded(person, "sign-in user change", change).await?;
                }
                changed
            }
            Some(user) => user,
        };
        if is_newest {
            self.newest.insert(at, person.issued_at);
        }
        if person.by_groups {
            user.level = user.level.min(person.level);
        }
        Ok(user)
    }

    fn may_be_added(&self, person: &Person) -> Result<(), TokenError> {
        let Person { tenant, user, .. } = person;
        let is_configured = *tenant == DEFAULT_TENANT && *user == self.settings.caller.user;
        if is_configured || !self.sign_in().is_some_and(SignIn::creates_users) {
            let of_tenant =
                if tenant == DEFAULT_TENANT { String::new() } else { format!(" --tenant {tenant}") };
            return Err(TokenError::NotAllowed(format!(
                "{user} is not a user of this server; an operator adds users with `toolrack user add {user}{of_tenant}`"
            )));
        }
        Ok(())
    }

    /// Makes a change of users that a sign-in brings about, between its records in the audit.
    async fn recorded<T>(
        &self,
        person: &Person,
        command: &'static str,
        make: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, IdentityError> {
        let by = Caller::new(&person.user, person.level);
        let arguments = json!({"user": person.user, "level": person.level, "personas": person.personas});
        let change = Change { command, tenant: person.tenant.clone(), arguments };
        let made = recorded(self.registry.audit().as_ref(), &by, Origin::Http, change, make).await;
        Ok(made.map_err(IdentityError::Audit)??)
    }

    /// The current user with that id and with all of its personas; `None` if it was created after `at`, because it may be another user with
    /// the same id, or if it has lost its [keys](Self::is_shut_out).
    pub(super) async fn user(
        &self,
        tenant: &str,
        id: &str,
        at: Timestamp,
        delegate: bool,
    ) -> Result<Option<Caller>, StoreError> {
        match self.settings.store.user(tenant, id).await? {
            Some(user) if user.created_at > at => Ok(None),
            Some(user) if self.is_shut_out(tenant, &user, delegate).await? => Ok(None),
            Some(user) => {
                let (store, caller) = (self.settings.store.as_ref(), self.without_personas(&user));
                under_all_personas(store, tenant, caller, &user.personas).await.map(Some)
            }
            None if tenant == DEFAULT_TENANT && id == self.settings.caller.user => {
                self.configured_caller().await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Whether all keys of a user were revoked. A user who never had one uses none, such as the one of `[user]`. With `delegate` only keys that
    /// delegate count, and who has none of these may not act for others.
    async fn is_shut_out(&self, tenant: &str, user: &User, delegate: bool) -> Result<bool, StoreError> {
        let mut keys = self.settings.store.keys(tenant).await?;
        // Earlier ones are those of a removed user of the same name.
        keys.retain(|key| key.user == user.id && key.created_at >= user.created_at);
        let is_valid = |key: &ApiKey| key.revoked_at.is_none() && (key.delegate || !delegate);
        Ok((delegate || !keys.is_empty()) && !keys.iter().any(is_valid))
    }

    /// The tenant's registry.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn registry_of(&self, tenant: &str) -> Result<Registry, StoreError> {
        Ok(self.tenant(tenant).await?.registry().clone())
    }

    /// The user, before personas are applied. Guests without any get the default list of modules.
    fn without_personas(&self, user: &User) -> Caller {
        let caller = Caller::new(&user.id, user.level);
        if user.personas.is_empty() { self.for_guest(caller) } else { caller }
    }

    /// Guests without a list of modules get the default one.
    fn for_guest(&self, caller: Caller) -> Caller {
        match &self.settings.modules {
            Some(modules) => modules.settings().for_guest(caller),
            None => caller,
        }
    }

    /// The tenant's registry, attached to the store.
    async fn tenant(&self, tenant: &str) -> Result<StoredRegistry, StoreError> {
        let cell = {
            let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(tenants.entry(tenant.to_owned()).or_default())
        };
        let attach = || async {
            let registry = match tenant {
                DEFAULT_TENANT => self.registry.clone(),
                other => self.registry.for_tenant(other),
            };
            registry.attach(Arc::clone(&self.settings.store)).await
        };
        cell.get_or_try_init(attach).await.cloned()
    }
}

/// A user whom a server with the right to delegate names, and who is not in the store.
fn unknown_user(id: &str) -> User {
    User {
        id: id.to_owned(),
        level: Permission::Guest,
        personas: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
    }
}

fn persona_of(value: &HeaderValue) -> Result<String, IdentityError> {
    let name = std::str::from_utf8(value.as_bytes());
    name.map(str::to_owned).map_err(|_| IdentityError::Persona(format!("`{PERSONA_HEADER}` has to be UTF-8")))
}
