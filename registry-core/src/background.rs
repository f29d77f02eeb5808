//! What a dropped future has left to do.

use std::{future::poll_fn, task::Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use crate::store::{StoreError, StoreResult};

/// Runs to the end what the one who wanted it no longer waits for, such as the record of a call whose future was dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Background(TaskTracker);

impl Background {
    /// Runs it as a task. `what` is for the log, where the runtime has gone away already.
    pub(crate) fn run(&self, what: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        match Handle::try_current() {
            Ok(runtime) => drop(self.0.spawn_on(task, &runtime)),
            Err(_) => tracing::error!(what, "runtime_gone"),
        }
    }

    /// Waits for it. Once begun it runs to its end, also where the one who waits is dropped.
    pub(crate) async fn finish<T: Send + 'static>(
        &self,
        work: impl Future<Output = StoreResult<T>> + Send + 'static,
    ) -> StoreResult<T> {
        let mut work = Box::pin(work);
        // Most is done at once, and needs no task.
        if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
            return done;
        }
        match Handle::try_current() {
            Ok(runtime) => self
                .0
                .spawn_on(work, &runtime)
                .await
                .unwrap_or_else(|fault| Err(StoreError::unavailable(fault))),
            Err(_) => work.await,
        }
    }

    /// Waits until all of it is done.
    pub(crate) async fn finished(&self) {
        self.0.close();
        self.0.wait().await;
        self.0.reopen();
    }
}
