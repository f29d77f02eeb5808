//! Who a request is: a user with a key, or the configured user where no key is asked for.

use std::{collections::HashMap, sync::Arc, time::Duration};

use axum::http::{HeaderMap, header};
use moka::sync::Cache;
use registry_core::{
    Caller, DEFAULT_TENANT, Registry, StoredRegistry,
    store::{KEY_PREFIX, hash_key},
};
use subtle::ConstantTimeEq;
use tokio::sync::Mutex;

use super::ServerSettings;

/// How long what a key opens is believed: a key that was revoked, or a user whose level was changed, is seen after it.
const BELIEVED: Duration = Duration::from_millis(500);
/// So many keys are remembered.
const REMEMBERED: u64 = 10_000;

/// Who a request is.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    /// The registry of the user's tenant.
    pub(super) registry: Registry,
    /// The same with the store behind it, for changes that last.
    pub(super) stored: StoredRegistry,
    pub(super) caller: Caller,
    /// Whether the `user_id` that a call names is believed.
    pub(super) delegate: bool,
}

/// Why a request is nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It brings no key, or one that opens nothing.
    NoKey,
    /// The store cannot say; a text for the operator.
    Store(String),
}

/// Knows users by their keys.
pub(super) struct Identities {
    settings: Arc<ServerSettings>,
    registry: Registry,
    /// The registries of all tenants, taken up from the store when first asked for.
    tenants: Mutex<HashMap<String, StoredRegistry>>,
    /// What keys open, by their hash.
    known: Cache<String, Identity>,
}

impl Identities {
    pub(super) fn new(settings: Arc<ServerSettings>, registry: Registry) -> Self {
        let known = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build();
        Self { settings, registry, tenants: Mutex::default(), known }
    }

    /// The user that the request's key stands for; the configured user where none is asked for.
    pub(super) async fn of(&self, headers: &HeaderMap) -> Result<Identity, Stranger> {
        let given = bearer(headers);
        let access = &self.settings.access;
        if let (Some(key), Some(given)) = (&access.api_key, given) {
            // Equal lengths are compared in a time that says nothing about where they differ.
            if given.as_bytes().ct_eq(key.as_bytes()).into() {
                return self.configured().await;
            }
        }
        match given.filter(|given| given.starts_with(KEY_PREFIX)) {
            Some(secret) => self.of_key(&hash_key(secret)).await,
            // Many clients cannot but send a key, such as `none`.
            None if !access.requires_key() => self.configured().await,
            None => Err(Stranger::NoKey),
        }
    }

    async fn configured(&self) -> Result<Identity, Stranger> {
        self.in_tenant(DEFAULT_TENANT, self.settings.caller.clone(), false).await
    }

    async fn of_key(&self, sha256: &str) -> Result<Identity, Stranger> {
        if let Some(identity) = self.known.get(sha256) {
            return Ok(identity);
        }
        let store = &self.settings.store;
        let key = store.key(sha256).await.map_err(Stranger::Store)?.ok_or(Stranger::NoKey)?;
        let user = store.user(&key.tenant, &key.user).await.map_err(Stranger::Store)?;
        let user = user.ok_or(Stranger::NoKey)?;
        let identity = self.in_tenant(&key.tenant, user.caller(), key.delegate).await?;
        self.known.insert(sha256.to_owned(), identity.clone());
        Ok(identity)
    }

    async fn in_tenant(&self, tenant: &str, caller: Caller, delegate: bool) -> Result<Identity, Stranger> {
        let stored = self.tenant(tenant).await.map_err(Stranger::Store)?;
        Ok(Identity { registry: stored.registry().clone(), stored, caller, delegate })
    }

    /// The tenant's registry, as the store has it.
    pub(super) async fn tenant(&self, tenant: &str) -> Result<StoredRegistry, String> {
        let mut tenants = self.tenants.lock().await;
        if let Some(known) = tenants.get(tenant) {
            return Ok(known.clone());
        }
        let registry = match tenant {
            DEFAULT_TENANT => self.registry.clone(),
            other => self.registry.for_tenant(other),
        };
        let stored = registry.attach(Arc::clone(&self.settings.store)).await?;
        tenants.insert(tenant.to_owned(), stored.clone());
        Ok(stored)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(key.trim()).filter(|key| !key.is_empty())
}
