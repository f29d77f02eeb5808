//! The events of a registry's changes.

use tokio::sync::broadcast;

use super::Registry;
use crate::events::RegistryEvent;

impl Registry {
    /// The changes from now on, in their order: one event for each, none where nothing changed.
    ///
    /// Whoever is more than 1024 events behind gets [`broadcast::error::RecvError::Lagged`] with the number of those that
    /// were missed, and goes on from there.
    pub fn subscribe(&self) -> broadcast::Receiver<RegistryEvent> {
        self.shared.events.subscribe()
    }

    /// The changes of all tenants' registries that were made from this one, from now on. The rest is as with
    /// [`subscribe`](Self::subscribe).
    pub fn subscribe_all(&self) -> broadcast::Receiver<RegistryEvent> {
        self.shared.common.events.subscribe()
    }
}
