//! The permit of a running call, which is lent to the calls that its tool makes.

use std::sync::Arc;

use super::Guards;
use crate::{background::Background, concurrency::ConcurrencyLimiter, context::RunningCall};

/// The right of a running call, held while it runs.
pub(super) struct Running(pub(super) Arc<RunningCall>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.permit.close();
    }
}

/// A nested call's hold on the call around it, which has lent its permit.
pub(crate) struct Nested(Option<Lent>);

struct Lent {
    parent: Arc<RunningCall>,
    limiter: Arc<ConcurrencyLimiter>,
    background: Background,
}

impl Guards {
    /// A call around this one needs no permit while it waits for this one.
    pub(super) fn borrow_permit(&self, call: Option<&Arc<RunningCall>>) -> Nested {
        call.and_then(|call| call.parent.as_ref()).map_or(Nested(None), |parent| self.lend_permit(parent))
    }

    /// A call needs no permit while it waits for a nested one, or for a person.
    pub(crate) fn lend_permit(&self, call: &Arc<RunningCall>) -> Nested {
        Nested(call.permit.lend().then(|| Lent {
            parent: Arc::clone(call),
            limiter: Arc::clone(&self.limiter),
            background: self.background.clone(),
        }))
    }
}

impl Nested {
    /// Waits until the call around may go on.
    pub(crate) async fn finish(mut self) {
        if let Some(lent) = self.0.take() {
            Box::pin(give_back(&lent.parent, &lent.limiter)).await;
        }
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        if let Some(Lent { parent, limiter, background }) = self.0.take() {
            background.run("permit", async move { give_back(&parent, &limiter).await });
        }
    }
}

async fn give_back(parent: &RunningCall, limiter: &ConcurrencyLimiter) {
    if parent.permit.give_back() {
        parent.permit.refill(limiter, &parent.tool, parent.max_concurrent, parent.share).await;
    }
}
