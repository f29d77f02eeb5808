//! How many calls run at once on the other side, and how many wait.

use tokio::sync::{Semaphore, SemaphorePermit};

/// As many calls run as wait at most; more are turned away.
#[derive(Debug)]
pub(crate) struct Slots {
    running: Semaphore,
    /// Places for those that run and those that wait.
    admitted: Semaphore,
}

/// The right to run. Given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    _running: SemaphorePermit<'a>,
    _admitted: SemaphorePermit<'a>,
}

impl Slots {
    pub(crate) fn new(concurrency: usize) -> Self {
        let running = concurrency.clamp(1, Semaphore::MAX_PERMITS / 2);
        Self { running: Semaphore::new(running), admitted: Semaphore::new(running * 2) }
    }

    /// Waits for a slot. `None` where as many calls run and wait as may.
    pub(crate) async fn acquire(&self) -> Option<Slot<'_>> {
        let admitted = self.admitted.try_acquire().ok()?;
        // The semaphore is never closed.
        let running = self.running.acquire().await.ok()?;
        Some(Slot { _running: running, _admitted: admitted })
    }
}
