//! A call on its way, as its context knows it.

use std::{
    any::{Any, TypeId},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::concurrency::PermitSlot;

/// The call that a context belongs to.
#[derive(derive_more::Debug)]
#[debug("RunningCall({id}, {tool})")]
pub(crate) struct RunningCall {
    /// The registry that makes the call. Of no type here: a registry knows contexts, and not the other way round.
    pub(crate) registry: Arc<dyn Any + Send + Sync>,
    pub(crate) id: String,
    pub(crate) tool: Arc<str>,
    /// How many calls of the tool run at once; 0 for any number.
    pub(crate) max_concurrent: u32,
    pub(crate) raw_argument: Option<String>,
    /// The call whose tool makes this one.
    pub(crate) parent: Option<Arc<Self>>,
    /// How many calls are around this one.
    pub(crate) nesting: usize,
    pub(crate) permit: PermitSlot,
    pub(crate) provided: Provided,
}

/// What the host has provided to this call, which is made once in a call.
#[derive(Default)]
pub(crate) struct Provided(Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>);

impl RunningCall {
    /// What was provided before, or is now.
    pub(crate) fn provided<T: Send + Sync + 'static>(
        &self,
        make: impl FnOnce() -> Result<Arc<T>, String>,
    ) -> Result<Arc<T>, String> {
        let known = self.provided.0.lock();
        let value = known.iter().find(|(id, _)| *id == TypeId::of::<T>()).map(|(_, value)| Arc::clone(value));
        // Not held while the host's code runs.
        drop(known);
        if let Some(value) = value.and_then(|value| value.downcast().ok()) {
            return Ok(value);
        }
        let value = make()?;
        let mut known = self.provided.0.lock();
        known.push((TypeId::of::<T>(), Arc::clone(&value) as _));
        Ok(value)
    }
}
