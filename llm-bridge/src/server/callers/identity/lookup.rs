//! Who is behind a credential: looked up in the store, and believed for a moment.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use moka::sync::Cache;
use parking_lot::Mutex;
use registry_core::{
    Caller, CallerAuthority, DEFAULT_TENANT, Permission, Registry, StoredRegistry,
    clock::{Clock, SystemClock},
    store::{ApiKey, KEY_PREFIX, KEY_USE_NOTED, Store, StoreError, StoreResult, User, hash_key},
};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;
use toolrack_remote::mcp::oauth::Connections;

use super::{Identity, IdentityError, PERSONA_HEADER};
use crate::{
    personas::{under_all_personas, under_persona},
    server::{
        Access, ServerSettings,
        callers::{refused_keys::RefusedKeys, session},
        requests::{key::SentKey, store_log},
        transport::seats::Shares,
    },
    sign_in::{Person, SignIn, TokenError},
};

/// How long keys are cached: a revoked key and a changed level take effect after it.
const BELIEVED: Duration = Duration::from_millis(500);
/// How many keys are cached.
const REMEMBERED: u64 = 10_000;

/// What a request shows to say whose it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Credential {
    /// A key, by its hash.
    Key(String),
    /// A token of the provider's, which was valid when the request came. What runs does not end with it.
    Token(Arc<Person>),
    /// The session of a browser, by its hash, and where groups decide, the level that its sign-in gave.
    Session(String, Option<Permission>),
}

/// A credential with the user that it is used for.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Used {
    pub(super) by: Credential,
    /// The user that it is used for, if not its own.
    pub(super) on_behalf_of: Option<String>,
    /// The persona that the request names.
    pub(super) persona: Option<String>,
}

impl From<Credential> for Used {
    fn from(by: Credential) -> Self {
        Self { by, on_behalf_of: None, persona: None }
    }
}

/// The registry and caller of a credential.
#[derive(Clone)]
pub(super) struct Opened {
    stored: StoredRegistry,
    caller: Caller,
    delegate: bool,
}

/// A credential that can be looked up again.
pub(super) struct Opener {
    pub(super) identities: Arc<Identities>,
    pub(super) used: Used,
}

#[async_trait]
impl CallerAuthority for Opener {
    async fn caller(&self) -> StoreResult<Option<Caller>> {
        match self.identities.opened(&self.used).await {
            Ok(opened) => Ok(Some(opened.caller)),
            Err(IdentityError::Store(cause)) => Err(cause),
            Err(_) => Ok(None),
        }
    }
}

/// Looks up users by their credentials.
pub(in crate::server) struct Identities {
    pub(super) settings: Arc<ServerSettings>,
    pub(super) registry: Registry,
    /// The tenants' registries, attached to the store on first use without blocking each other.
    tenants: Mutex<HashMap<String, Arc<OnceCell<StoredRegistry>>>>,
    /// The requests that each user has under way.
    pub(in crate::server) shares: Arc<Shares>,
    /// Cached credentials.
    pub(super) known: Cache<Used, Opened>,
    /// The ids of keys whose use was noted a moment ago, by tenant.
    noted: Cache<(String, String), ()>,
    refused: RefusedKeys,
    /// When the provider issued the newest token of a user, by tenant and user.
    pub(super) newest: Cache<(String, String), i64>,
    /// Whether anybody has a key.
    has_keys: moka::future::Cache<(), bool>,
    /// What the server waits for before it ends.
    pub(super) tasks: TaskTracker,
}

impl Identities {
    pub(in crate::server) fn new(
        settings: Arc<ServerSettings>,
        registry: Registry,
        tasks: TaskTracker,
    ) -> Self {
        let known = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build();
        let has_keys = moka::future::Cache::builder().time_to_live(BELIEVED).build();
        let shares = Shares::new(settings.max_connections);
        let newest = Cache::new(REMEMBERED);
        let noted =
            Cache::builder().max_capacity(REMEMBERED).time_to_live(KEY_USE_NOTED.unsigned_abs()).build();
        let (tenants, refused) = Default::default();
        Self { settings, registry, tenants, shares, known, noted, refused, newest, has_keys, tasks }
    }

    pub(in crate::server) fn access(&self) -> &Access {
        &self.settings.access
    }

    /// The people of a provider, where one is configured.
    pub(in crate::server) fn sign_in(&self) -> Option<&SignIn> {
        self.settings.sign_in.as_deref()
    }

    /// The user of the request's credential, or the configured user if none is required.
    pub(in crate::server) async fn of(
        self: &Arc<Self>,
        key: &SentKey,
        headers: &HeaderMap,
    ) -> Result<Identity, IdentityError> {
        let found = self.find(key, headers).await;
        if let (Err(IdentityError::NoKey), Some(key)) = (&found, key.as_str()) {
            self.refused.log(key);
        }
        found
    }

    async fn find(self: &Arc<Self>, key: &SentKey, headers: &HeaderMap) -> Result<Identity, IdentityError> {
        let persona = headers.get(PERSONA_HEADER).map(persona_of).transpose()?;
        if self.is_configured_key(key) {
            return self.configured(persona.as_deref()).await;
        }
        // Where no key is required, one that opens something else is not the same as none.
        if self.is_metrics_key(key) {
            return Err(IdentityError::NoKey);
        }
        match self.credential(key).await? {
            Some(by) => {
                let is_token = matches!(by, Credential::Token(_));
                let identity = self.opened_by(Used { persona, ..by.into() }).await?;
                if let (true, Some(token), Some(connections)) = (is_token, key.as_str(), self.connections()) {
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
            (_, Some(sign_in)) => key.session().and_then(|secret| {
                let level = match sign_in.has_groups() {
                    // Without one it was begun before groups were configured.
                    true => Some(session::level_of(secret)?),
                    false => None,
                };
                Some(Credential::Session(hash_key(secret), level))
            }),
            _ => None,
        })
    }

    /// The accounts of users on MCP servers, where there are any.
    pub(in crate::server) fn connections(&self) -> Option<&Connections> {
        self.settings.connections.as_ref()
    }

    /// The store of users, keys and sessions.
    pub(in crate::server) fn store(&self) -> &dyn Store {
        self.settings.store.as_ref()
    }

    /// Whether a credential is somebody's.
    pub(in crate::server) async fn accepts(&self, key: &SentKey) -> StoreResult<bool> {
        if self.is_configured_key(key) || self.is_metrics_key(key) {
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
        key.is(self.access().api_key.as_deref())
    }

    /// Whether it is the key that opens `/metrics` alone.
    pub(in crate::server) fn is_metrics_key(&self, key: &SentKey) -> bool {
        key.is(self.access().metrics_key.as_deref())
    }

    pub(super) async fn configured(
        self: &Arc<Self>,
        persona: Option<&str>,
    ) -> Result<Identity, IdentityError> {
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
    pub(super) async fn configured_caller(&self) -> StoreResult<Caller> {
        let mut caller = self.settings.caller.clone();
        if let Some(most) = self.settings.level_with_keys.filter(|most| *most < caller.level) {
            let find = self.has_keys.try_get_with((), self.settings.store.has_keys());
            if find.await.map_err(|error: Arc<StoreError>| StoreError::clone(&error))? {
                caller.level = most;
            }
        }
        Ok(self.for_guest(caller))
    }

    pub(super) async fn opened_by(self: &Arc<Self>, used: Used) -> Result<Identity, IdentityError> {
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

    /// Notes in the background that a key was used. Where that fails, nothing but the time is lost.
    fn note_use(&self, key: &ApiKey) {
        let of = (key.tenant.clone(), key.id.clone());
        if !self.noted.entry(of.clone()).or_insert(()).is_fresh() {
            return;
        }
        let (store, (tenant, id)) = (Arc::clone(&self.settings.store), of);
        self.tasks.spawn(async move {
            if let Err(cause) = store.note_key_use(&tenant, &id, SystemClock.now()).await {
                tracing::debug!(key = id, %cause, "key_use_not_noted");
            }
        });
    }

    async fn opened(&self, used: &Used) -> Result<Opened, IdentityError> {
        if let Some(opened) = self.known.get(used) {
            return Ok(opened);
        }
        let store = &self.settings.store;
        let (tenant, user, delegate, credential) = match &used.by {
            Credential::Key(sha256) => {
                let key = store.key(sha256, SystemClock.now()).await?.ok_or(IdentityError::NoKey)?;
                let user = store.user(&key.tenant, &key.user).await?.ok_or(IdentityError::NoKey)?;
                self.note_use(&key);
                (key.tenant, user, key.delegate, format!("key {}", key.id))
            }
            Credential::Token(person) => {
                (person.tenant.clone(), self.user_of(person).await?, false, "token".to_owned())
            }
            Credential::Session(sha256, level) => {
                let session = store.session(sha256, SystemClock.now()).await?.ok_or(IdentityError::NoKey)?;
                let mut user =
                    store.user(&session.tenant, &session.user).await?.ok_or(IdentityError::NoKey)?;
                user.level = level.map_or(user.level, |most| most.min(user.level));
                (session.tenant, user, false, "session".to_owned())
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
        caller.credential = Some(credential);
        let opened = Opened { stored: self.tenant(&tenant).await?, caller, delegate };
        store_log::answered();
        self.known.insert(used.clone(), opened.clone());
        Ok(opened)
    }

    /// The current user with that id and with all of its personas; `None` if it was created after `at`, because it may be another user with
    /// the same id, or if it has lost its [keys](Self::is_shut_out).
    pub(in crate::server) async fn user(
        &self,
        tenant: &str,
        id: &str,
        at: Timestamp,
        delegate: bool,
    ) -> StoreResult<Option<Caller>> {
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

    /// Whether all keys of a user were revoked or have expired. A user who never had one uses none, such as the one of `[user]`. With `delegate` only keys that
    /// delegate count, and who has none of these may not act for others.
    async fn is_shut_out(&self, tenant: &str, user: &User, delegate: bool) -> StoreResult<bool> {
        let mut keys = self.settings.store.keys_of(tenant, &user.id).await?;
        // Earlier ones are those of a removed user of the same name.
        keys.retain(|key| key.created_at >= user.created_at);
        let now = SystemClock.now();
        let is_valid = |key: &ApiKey| key.is_valid(now) && (key.delegate || !delegate);
        Ok((delegate || !keys.is_empty()) && !keys.iter().any(is_valid))
    }

    /// The tenant's registry.
    ///
    /// # Errors
    /// When the store fails.
    pub(in crate::server) async fn registry_of(&self, tenant: &str) -> StoreResult<Registry> {
        Ok(self.tenant(tenant).await?.registry().clone())
    }

    /// The user, before personas are applied. Guests without any get the default list of modules.
    pub(super) fn without_personas(&self, user: &User) -> Caller {
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
    async fn tenant(&self, tenant: &str) -> StoreResult<StoredRegistry> {
        let cell = {
            let mut tenants = self.tenants.lock();
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
