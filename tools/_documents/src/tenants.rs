//! The documents of each tenant, opened once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::DocumentIndex;

/// Opens the documents of a tenant.
type Open = dyn Fn(&str) -> Arc<dyn DocumentIndex> + Send + Sync;

/// The documents of all tenants. What is opened is kept, with its connections.
pub(super) struct Tenants {
    open: Box<Open>,
    opened: Mutex<HashMap<String, Arc<dyn DocumentIndex>>>,
}

impl Tenants {
    pub(super) fn new(open: Box<Open>) -> Self {
        Self { open, opened: Mutex::default() }
    }

    pub(super) fn opened(&self) -> Vec<Arc<dyn DocumentIndex>> {
        self.known().values().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn DocumentIndex>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn index(&self, tenant: &str) -> Arc<dyn DocumentIndex> {
        let mut opened = self.known();
        if let Some(index) = opened.get(tenant) {
            return Arc::clone(index);
        }
        let index = (self.open)(tenant);
        opened.insert(tenant.to_owned(), Arc::clone(&index));
        index
    }
}
