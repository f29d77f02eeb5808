//! Who a request is: a user with a key, or the configured user where no key is asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, header};
use jiff::Timestamp;
use moka::sync::Cache;
use registry_core::{
    Caller, CallerAuthority, DEFAULT_TENANT, Permission, Registry, StoredRegistry, ToolContext,
    store::{KEY_PREFIX, StoreError, StoreFuture, hash_key},
};
use subtle::ConstantTimeEq;
use tokio::sync::OnceCell;

use super::{ServerSettings, api_error::ApiError};

/// How long what a key opens is believed: a key that was revoked, or a user whose level was changed, is seen after it.
const BELIEVED: Duration = Duration::from_millis(500);
/// So many keys are remembered.
const REMEMBERED: u64 = 10_000;

/// Who a request is.
#[derive(Clone)]
pub(super) struct Identity {
    /// The registry of the user's tenant.
    pub(super) registry: Registry,
    /// The same with the store behind it, for changes that last.
    pub(super) stored: StoredRegistry,
    pub(super) caller: Caller,
    /// Whether the `user_id` that a call names is believed.
    pub(super) delegate: bool,
    /// Whether nobody needs a key here, so that all who ask are the configured user.
    pub(super) keyless: bool,
    /// The key that it was brought with; `None` for the configured user, who stays the same until the server ends.
    key: Option<Arc<Key>>,
}

impl Identity {
    /// What the request's calls are made in.
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

    /// Whether it is the user of the configuration, who needs no key of its own.
    pub(super) fn is_configured(&self) -> bool {
        self.key.is_none()
    }

    /// Who knows what the caller may do later on.
    pub(super) fn standing(&self) -> Option<Arc<dyn CallerAuthority>> {
        self.key.clone().map(|key| key as Arc<dyn CallerAuthority>)
    }

    /// The same key used for another user; nobody where it may not be.
    pub(super) async fn on_behalf_of(self, user: &str) -> Result<Self, IdentityError> {
        let Some(key) = self.key else { return Err(IdentityError::NoKey) };
        let used = UsedKey { on_behalf_of: Some(user.to_owned()), ..key.used.clone() };
        Identities::of_key(&key.identities, used).await
    }
}

/// Why a request is nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IdentityError {
    /// It brings no key, or one that opens nothing.
    NoKey,
    /// The store cannot say.
    Store(StoreError),
}

impl From<StoreError> for IdentityError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A key as a request uses it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct UsedKey {
    sha256: String,
    /// The user that it stands for, where that is another than its own.
    on_behalf_of: Option<String>,
}

/// What a key opens.
#[derive(Clone)]
struct Opened {
    stored: StoredRegistry,
    caller: Caller,
    delegate: bool,
}

/// A key that can be asked anew what it opens.
struct Key {
    identities: Arc<Identities>,
    used: UsedKey,
}

impl CallerAuthority for Key {
    fn caller(&self) -> StoreFuture<'_, Option<Caller>> {
        Box::pin(async move {
            match self.identities.opened(&self.used).await {
                Ok(opened) => Ok(Some(opened.caller)),
                Err(IdentityError::NoKey) => Ok(None),
                Err(IdentityError::Store(cause)) => Err(cause),
            }
        })
    }
}

/// Knows users by their keys.
pub(super) struct Identities {
    settings: Arc<ServerSettings>,
    registry: Registry,
    /// The registries of all tenants, each taken up from the store when first asked for. One that takes long holds up no other.
    tenants: Mutex<HashMap<String, Arc<OnceCell<StoredRegistry>>>>,
    /// What keys open.
    known: Cache<UsedKey, Opened>,
    /// Whether anybody has a key.
    has_keys: moka::future::Cache<(), bool>,
}

impl Identities {
    pub(super) fn new(settings: Arc<ServerSettings>, registry: Registry) -> Self {
        let known = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build();
        let has_keys = moka::future::Cache::builder().time_to_live(BELIEVED).build();
        Self { settings, registry, tenants: Mutex::default(), known, has_keys }
    }

    /// The user that the request's key stands for; the configured user where none is asked for.
    pub(super) async fn of(self: &Arc<Self>, headers: &HeaderMap) -> Result<Identity, IdentityError> {
        let given = bearer(headers);
        let access = &self.settings.access;
        if let (Some(key), Some(given)) = (&access.api_key, given) {
            // Equal lengths are compared in a time that says nothing about where they differ.
            if given.as_bytes().ct_eq(key.as_bytes()).into() {
                return self.configured().await;
            }
        }
        match given.filter(|given| given.starts_with(KEY_PREFIX)) {
            Some(secret) => self.of_key(UsedKey { sha256: hash_key(secret), on_behalf_of: None }).await,
            // Many clients cannot but send a key, such as `none`.
            None if !access.requires_key() => self.configured().await,
            None => Err(IdentityError::NoKey),
        }
    }

    async fn configured(&self) -> Result<Identity, IdentityError> {
        let stored = self.tenant(DEFAULT_TENANT).await?;
        let caller = self.configured_caller().await?;
        Ok(Identity {
            registry: stored.registry().clone(),
            stored,
            caller,
            delegate: false,
            keyless: !self.settings.access.requires_key(),
            key: None,
        })
    }

    /// The configured user, with what it may do now.
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

    async fn of_key(self: &Arc<Self>, used: UsedKey) -> Result<Identity, IdentityError> {
        let Opened { stored, caller, delegate } = self.opened(&used).await?;
        let key = Some(Arc::new(Key { identities: Arc::clone(self), used }));
        Ok(Identity { registry: stored.registry().clone(), stored, caller, delegate, keyless: false, key })
    }

    async fn opened(&self, used: &UsedKey) -> Result<Opened, IdentityError> {
        if let Some(opened) = self.known.get(used) {
            return Ok(opened);
        }
        let store = &self.settings.store;
        let key = store.key(&used.sha256).await?.ok_or(IdentityError::NoKey)?;
        let mut caller =
            self.for_guest(store.user(&key.tenant, &key.user).await?.ok_or(IdentityError::NoKey)?.caller());
        match &used.on_behalf_of {
            None => {}
            Some(user) if key.delegate => {
                let unknown = || Caller::new(user, Permission::Guest);
                let user = store.user(&key.tenant, user).await?.map_or_else(unknown, |known| known.caller());
                caller = caller.on_behalf_of(self.for_guest(user));
            }
            Some(_) => return Err(IdentityError::NoKey),
        }
        let opened = Opened { stored: self.tenant(&key.tenant).await?, caller, delegate: key.delegate };
        self.known.insert(used.clone(), opened.clone());
        Ok(opened)
    }

    /// The user of that id, as of now; `None` where there is none who was there at that time already: another one may have got the
    /// name since.
    pub(super) async fn user(
        &self,
        tenant: &str,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Caller>, StoreError> {
        match self.settings.store.user(tenant, id).await? {
            Some(user) => Ok((user.created_at <= at).then(|| self.for_guest(user.caller()))),
            None if tenant == DEFAULT_TENANT && id == self.settings.caller.user => {
                self.configured_caller().await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// The tenant's registry.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn registry_of(&self, tenant: &str) -> Result<Registry, StoreError> {
        Ok(self.tenant(tenant).await?.registry().clone())
    }

    /// A guest without a list of modules has that of all guests.
    fn for_guest(&self, caller: Caller) -> Caller {
        match &self.settings.modules {
            Some(modules) => modules.settings().for_guest(caller),
            None => caller,
        }
    }

    /// The tenant's registry, as the store has it.
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

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(key.trim()).filter(|key| !key.is_empty())
}
