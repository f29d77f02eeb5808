//! A call on its way, as its context knows it.

use std::{
    any::{Any, TypeId},
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    guard::{ConcurrencyLimiter, PermitSlot},
    registry::Registry,
    tool::Tool,
};

/// The call that a context belongs to.
pub(crate) struct RunningCall {
    pub(crate) registry: Registry,
    pub(crate) id: String,
    pub(crate) tool: Arc<Tool>,
    pub(crate) raw_argument: Option<String>,
    /// The call whose tool makes this one.
    pub(crate) parent: Option<Arc<Self>>,
    /// How many calls are around this one.
    pub(crate) nesting: usize,
    pub(crate) permit: PermitSlot,
    provided: Provided,
}

/// What the host has provided to this call, which is made once in a call.
#[derive(Default)]
struct Provided(Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>);

impl RunningCall {
    pub(crate) fn new(
        registry: &Registry,
        id: &str,
        tool: &Arc<Tool>,
        raw_argument: Option<String>,
        parent: Option<Arc<Self>>,
    ) -> Self {
        let nesting = parent.as_ref().map_or(0, |parent| parent.nesting + 1);
        Self {
            registry: registry.clone(),
            id: id.to_owned(),
            tool: Arc::clone(tool),
            raw_argument,
            parent,
            nesting,
            permit: PermitSlot::default(),
            provided: Provided::default(),
        }
    }

    /// What was provided before, or is now.
    pub(crate) fn provided<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<Arc<T>, String>,
    ) -> Result<Arc<T>, String> {
        let known = self.provided.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = known.iter().find(|(id, _)| *id == TypeId::of::<T>()).map(|(_, value)| Arc::clone(value));
        // Not held while the host's code runs.
        drop(known);
        if let Some(value) = value.and_then(|value| value.downcast().ok()) {
            return Ok(value);
        }
        let value = make()?;
        let mut known = self.provided.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((TypeId::of::<T>(), Arc::clone(&value) as _));
        Ok(value)
    }
}

impl fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningCall")
            .field("id", &self.id)
            .field("tool", &self.tool.name())
            .finish_non_exhaustive()
    }
}

/// The right of a running call, held while it runs.
pub(crate) struct Running(pub(crate) Arc<RunningCall>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.permit.close();
    }
}

/// A nested call's hold on the call around it, which has lent its permit.
pub(crate) struct Nested(Option<Arc<RunningCall>>);

impl Nested {
    pub(crate) fn within(call: Option<&Arc<RunningCall>>) -> Self {
        let parent = call.and_then(|call| call.parent.as_ref());
        Self(parent.filter(|parent| parent.permit.lend()).map(Arc::clone))
    }

    /// Waits until the call around may go on.
    pub(crate) async fn finish(mut self) {
        if let Some(parent) = self.0.take() {
            give_back(&parent).await;
        }
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        if let Some(parent) = self.0.take() {
            let background = parent.registry.shared.common.guards.background.clone();
            background.run("permit", async move { give_back(&parent).await });
        }
    }
}

async fn give_back(parent: &RunningCall) {
    if parent.permit.give_back() {
        let limiter: &ConcurrencyLimiter = &parent.registry.shared.common.guards.limiter;
        parent.permit.refill(limiter, &parent.tool.shared_name(), parent.tool.policy().max_concurrent).await;
    }
}
