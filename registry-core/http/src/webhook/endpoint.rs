//! Where webhooks go.

use registry_core::RegistryEvent;
use sha2::{Digest, Sha256};
use url::Url;

use crate::{EndpointError, Secret, error::parse_url};

/// Where events are sent, whose, and the secret by which the receiver knows them.
#[derive(Clone, derive_more::Debug)]
#[debug("WebhookEndpoint({})", self.shown())]
#[must_use]
pub struct WebhookEndpoint {
    pub(super) url: Url,
    pub(super) secret: Secret,
    tenants: Tenants,
}

/// Whose events an endpoint is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Tenants {
    /// Those of the registry that the webhooks are started for.
    Own,
    Only(String),
    All,
}

impl WebhookEndpoint {
    /// An endpoint for the events of the registry that it is started for, and of no other tenant. The URL is the operator's,
    /// so it may be in a private network.
    ///
    /// # Errors
    /// When the URL is not one of `http` or `https`.
    pub fn new(url: &str, secret: Secret) -> Result<Self, EndpointError> {
        Ok(Self { url: parse_url("webhook", url)?, secret, tenants: Tenants::Own })
    }

    /// For the events of this tenant, and of no other.
    pub fn of_tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenants: Tenants::Only(tenant.into()), ..self }
    }

    /// For the events of every tenant: each says whose it is.
    pub fn of_all_tenants(self) -> Self {
        Self { tenants: Tenants::All, ..self }
    }

    /// Whether an event is for this endpoint, where `own` is the tenant that the webhooks are started for.
    pub(super) fn concerns(&self, event: &RegistryEvent, own: &str) -> bool {
        self.is_for(&event.tenant, own)
    }

    /// Whether it is for the events of a tenant.
    pub(super) fn is_for(&self, tenant: &str, own: &str) -> bool {
        match &self.tenants {
            Tenants::Own => tenant == own,
            Tenants::Only(only) => tenant == only,
            Tenants::All => true,
        }
    }

    pub(super) fn is_for_all(&self) -> bool {
        self.tenants == Tenants::All
    }

    /// The URL without what may be secret in it.
    pub(super) fn shown(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }

    /// By which a dead letter finds its endpoint, in another process too.
    pub(super) fn fingerprint(&self) -> String {
        format!("{:x}", Sha256::digest(self.url.as_str()))
    }
}
