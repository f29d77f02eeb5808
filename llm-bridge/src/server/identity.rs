//! Who a request is: a user with a key, or the configured user where no key is asked for.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::http::{HeaderMap, header};
use moka::sync::Cache;
use registry_core::{
    Caller, DEFAULT_TENANT, Registry,
    store::{KEY_PREFIX, Store, hash_key},
};
use subtle::ConstantTimeEq;

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
    store: Arc<dyn Store>,
    registry: Registry,
    /// The registries of the other tenants, made when first asked for.
    tenants: Mutex<HashMap<String, Registry>>,
    /// What keys open, by their hash.
    known: Cache<String, Identity>,
}

impl Identities {
    pub(super) fn new(settings: Arc<ServerSettings>, registry: Registry) -> Self {
        let known = Cache::builder().max_capacity(REMEMBERED).time_to_live(BELIEVED).build();
        let store = Arc::clone(&settings.store);
        Self { settings, store, registry, tenants: Mutex::default(), known }
    }

    /// The user that the request's key stands for; the configured user where none is asked for.
    pub(super) async fn of(&self, headers: &HeaderMap) -> Result<Identity, Stranger> {
        let given = bearer(headers);
        let access = &self.settings.access;
        if let (Some(key), Some(given)) = (&access.api_key, given) {
            // Equal lengths are compared in a time that says nothing about where they differ.
            if given.as_bytes().ct_eq(key.as_bytes()).into() {
                return Ok(self.configured());
            }
        }
        match given.filter(|given| given.starts_with(KEY_PREFIX)) {
            Some(secret) => self.of_key(&hash_key(secret)).await,
            // Many clients cannot but send a key, such as `none`.
            None if !access.requires_key() => Ok(self.configured()),
            None => Err(Stranger::NoKey),
        }
    }

    fn configured(&self) -> Identity {
        let (registry, caller) = (self.registry.clone(), self.settings.caller.clone());
        Identity { registry, caller, delegate: false }
    }

    async fn of_key(&self, sha256: &str) -> Result<Identity, Stranger> {
        if let Some(identity) = self.known.get(sha256) {
            return Ok(identity);
        }
        let key = self.store.key(sha256).await.map_err(Stranger::Store)?.ok_or(Stranger::NoKey)?;
        let user = self.store.user(&key.tenant, &key.user).await.map_err(Stranger::Store)?;
        let identity = Identity {
            registry: self.registry_of(&key.tenant),
            caller: user.ok_or(Stranger::NoKey)?.caller(),
            delegate: key.delegate,
        };
        self.known.insert(sha256.to_owned(), identity.clone());
        Ok(identity)
    }

    fn registry_of(&self, tenant: &str) -> Registry {
        if tenant == DEFAULT_TENANT {
            return self.registry.clone();
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.entry(tenant.to_owned()).or_insert_with(|| self.registry.for_tenant(tenant)).clone()
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then_some(key.trim()).filter(|key| !key.is_empty())
}
