//! A call on its way, as its context knows it.

use std::{
    any::{Any, TypeId},
    sync::{Arc, atomic::AtomicBool},
};

use parking_lot::Mutex;

use super::{Host, Pauses, Questions};
use crate::{
    concurrency::{PermitSlot, Share},
    flow::HasRead,
    model::ModelUsage,
};

/// The call that a context belongs to.
#[derive(derive_more::Debug)]
#[debug("RunningCall({id}, {tool})")]
pub(crate) struct RunningCall {
    /// The registry that makes the call.
    pub(crate) registry: Host,
    pub(crate) id: String,
    pub(crate) tool: Arc<str>,
    /// How many calls of the tool run at once; 0 for any number.
    pub(crate) max_concurrent: u32,
    /// Whose call it is.
    pub(crate) share: Share,
    pub(crate) raw_argument: Option<String>,
    /// The call whose tool makes this one.
    pub(crate) parent: Option<Arc<Self>>,
    /// How many calls are around this one.
    pub(crate) nesting: usize,
    pub(crate) permit: PermitSlot,
    /// Whether the call can be made again from its beginning without harm.
    pub(crate) repeatable: bool,
    pub(crate) asking: Questions,
    pub(crate) pauses: Pauses,
    pub(crate) provided: Provided,
    /// What the calls within this one have read, and what the tool itself says that it has.
    pub(crate) read: Mutex<HasRead>,
    /// Whether a person has approved this call knowing what was read before it.
    pub(crate) is_flow_approved: AtomicBool,
    /// Whether a person has changed its arguments.
    pub(crate) is_changed: AtomicBool,
    pub(crate) model: ModelUses,
}

/// What the call has used of the model.
#[derive(Default)]
pub(crate) struct ModelUses(Mutex<[ModelUsage; 2]>);

/// What the host has provided to this call, which is made once in a call.
#[derive(Default)]
pub(crate) struct Provided(Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>);

impl RunningCall {
    /// The call that the host has made: this one, or the one around all others.
    pub(crate) fn outermost(&self) -> &Self {
        self.parent.as_ref().map_or(self, |parent| parent.outermost())
    }

    /// Counts what the model was asked, for the call and for those around it.
    pub(crate) fn count_model(&self, used: ModelUsage) {
        for call in std::iter::successors(Some(self), |call| call.parent.as_deref()) {
            call.model.0.lock().iter_mut().for_each(|count| count.add(used));
        }
    }

    /// What the whole call has used of the model.
    pub(crate) fn model_usage(&self) -> ModelUsage {
        let [all, _] = *self.model.0.lock();
        all
    }

    /// What was used since this was asked before, for the record of a try.
    pub(crate) fn take_model_usage(&self) -> ModelUsage {
        let [_, new] = &mut *self.model.0.lock();
        std::mem::take(new)
    }

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
