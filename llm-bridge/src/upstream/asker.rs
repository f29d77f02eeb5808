//! Who a model is asked for: what comes of the requests of one user counts for that user alone.

use std::sync::Arc;

/// Who a model is asked for. By default it is this server itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    pub(crate) tenant: Arc<str>,
    pub(crate) user: Arc<str>,
    /// Whether they may say how a model is loaded, for all who ask it.
    pub(crate) loads: bool,
}

impl Asker {
    pub(crate) fn new(tenant: &str, user: &str) -> Self {
        Self { tenant: tenant.into(), user: user.into(), loads: false }
    }

    /// With the right to say how a model is loaded, or without.
    pub(crate) fn loading(self, loads: bool) -> Self {
        Self { loads, ..self }
    }
}
