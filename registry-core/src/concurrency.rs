//! How many calls run at once, of one tool and in all, and how many may wait.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls run at once, and how many wait for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls that run at once, of all tools; 0 for any number.
    pub max_running: usize,
    /// Calls that wait, for one tool and in all; more are refused at once.
    pub max_waiting: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { max_running: 1024, max_waiting: 4096 }
    }
}

/// How many calls a queue has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// Calls that run.
    pub running: usize,
    /// Calls that wait for their turn, and not for a person.
    pub waiting: usize,
}

/// How many calls run and wait, of all tenants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queues {
    /// Of all tools; those that wait for a turn of their tool's own are among them.
    pub all: QueueDepth,
    /// Of each tool with a bound of its own ([`ToolPolicy::max_concurrent`](crate::ToolPolicy::max_concurrent)) that was called.
    pub tools: Vec<(Arc<str>, QueueDepth)>,
}

/// Gives calls their permits.
#[derive(Debug)]
pub(crate) struct ConcurrencyLimiter {
    all: Arc<Queue>,
    max_waiting: usize,
    /// Made when a tool that has a bound is first called.
    of_tools: Mutex<HashMap<Arc<str>, Arc<Queue>>>,
}

#[derive(Debug)]
struct Queue {
    bound: usize,
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The right to run. Given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Permit {
    _tool: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

/// As many calls wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFull;

impl Queue {
    fn new(bound: usize) -> Arc<Self> {
        let running = Arc::new(Semaphore::new(permits(bound)));
        Arc::new(Self { bound, running, waiting: AtomicUsize::new(0) })
    }

    fn depth(&self) -> QueueDepth {
        QueueDepth {
            running: permits(self.bound).saturating_sub(self.running.available_permits()),
            waiting: self.waiting.load(Ordering::Acquire),
        }
    }

    async fn enter(&self, max_waiting: usize) -> Result<OwnedSemaphorePermit, QueueFull> {
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = Place::take(&self.waiting, max_waiting)?;
        // The semaphore is never closed.
        Arc::clone(&self.running).acquire_owned().await.map_err(|_| QueueFull)
    }
}

/// As many as a semaphore can give; 0 is any number.
fn permits(bound: usize) -> usize {
    if bound == 0 { Semaphore::MAX_PERMITS } else { bound.min(Semaphore::MAX_PERMITS) }
}

/// A place among those that wait; given up also by a call that is cancelled while it waits.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, max: usize) -> Result<Self, QueueFull> {
        let one_more = |waiting| (waiting < max).then_some(waiting + 1);
        waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).map_err(|_| QueueFull)?;
        Ok(Self(waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl ConcurrencyLimiter {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        let all = Queue::new(concurrency.max_running);
        Self { all, max_waiting: concurrency.max_waiting, of_tools: Mutex::default() }
    }

    fn of_tool(&self, tool: &Arc<str>, bound: usize) -> Arc<Queue> {
        let mut queues = self.of_tools.lock();
        match queues.get(tool).filter(|queue| queue.bound == bound) {
            Some(queue) => Arc::clone(queue),
            None => {
                let queue = Queue::new(bound);
                queues.insert(Arc::clone(tool), Arc::clone(&queue));
                queue
            }
        }
    }

    /// Waits for a permit. `bound` is the tool's own; 0 for none.
    pub(crate) async fn enter(&self, tool: &Arc<str>, bound: u32) -> Result<Permit, QueueFull> {
        self.enter_among(tool, bound, self.max_waiting).await
    }

    /// The same for a call that runs already and has lent its permit: it is not turned away.
    async fn enter_again(&self, tool: &Arc<str>, bound: u32) -> Permit {
        self.enter_among(tool, bound, usize::MAX).await.unwrap_or_default()
    }

    async fn enter_among(
        &self,
        tool: &Arc<str>,
        bound: u32,
        max_waiting: usize,
    ) -> Result<Permit, QueueFull> {
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        // The tool's own first: a call that waits for its tool holds up no other.
        let of_tool = match bound {
            0 => None,
            bound => Some(self.of_tool(tool, bound).enter(max_waiting).await?),
        };
        let of_all = self.all.enter(max_waiting).await?;
        Ok(Permit { _tool: of_tool, _all: Some(of_all) })
    }

    /// How many run and wait now.
    pub(crate) fn depths(&self) -> Queues {
        let queues = self.of_tools.lock();
        let tools: Vec<_> = queues.iter().map(|(tool, queue)| (Arc::clone(tool), queue.depth())).collect();
        drop(queues);
        let mut all = self.all.depth();
        all.waiting += tools.iter().map(|(_, depth)| depth.waiting).sum::<usize>();
        Queues { all, tools }
    }
}

/// The permit of a running call. While the tool calls other tools it is lent to them, or a tool that calls itself would wait for
/// itself.
#[derive(Debug, Default)]
pub(crate) struct PermitSlot(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    running: bool,
    permit: Option<Permit>,
    /// Nested calls under way.
    nested: usize,
}

impl PermitSlot {
    /// The call begins to run.
    pub(crate) fn fill(&self, permit: Permit) {
        let mut slot = self.0.lock();
        slot.running = true;
        slot.permit = Some(permit);
    }

    /// The call is over.
    pub(crate) fn close(&self) {
        let mut slot = self.0.lock();
        slot.running = false;
        slot.permit = None;
    }

    /// Gives the permit up for a nested call; false where the call around it is over.
    pub(crate) fn lend(&self) -> bool {
        let mut slot = self.0.lock();
        if slot.running {
            slot.permit = None;
            slot.nested += 1;
        }
        slot.running
    }

    /// A nested call is over. Whether the call around it needs a permit again.
    pub(crate) fn give_back(&self) -> bool {
        let mut slot = self.0.lock();
        slot.nested = slot.nested.saturating_sub(1);
        slot.running && slot.nested == 0 && slot.permit.is_none()
    }

    /// Waits until the call may go on.
    pub(crate) async fn refill(&self, limiter: &ConcurrencyLimiter, tool: &Arc<str>, bound: u32) {
        let permit = limiter.enter_again(tool, bound).await;
        let mut slot = self.0.lock();
        if slot.running && slot.nested == 0 && slot.permit.is_none() {
            slot.permit = Some(permit);
        }
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_wait_than_may_and_who_leaves_frees_the_place() {
        let limiter = ConcurrencyLimiter::new(Concurrency { max_running: 0, max_waiting: 1 });
        let tool: Arc<str> = "slow".into();
        let running = limiter.enter(&tool, 1).await.unwrap();
        let mut waiting = Box::pin(limiter.enter(&tool, 1));
        assert!(futures_poll(&mut waiting).await.is_none());
        assert!(matches!(limiter.enter(&tool, 1).await, Err(QueueFull)));
        drop(waiting);
        let mut waiting = Box::pin(limiter.enter(&tool, 1));
        assert!(futures_poll(&mut waiting).await.is_none());
        drop(running);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn who_runs_and_waits_is_counted_for_the_tool_and_in_all() {
        let depth = |running, waiting| QueueDepth { running, waiting };
        for max_running in [0, 2] {
            let limiter = ConcurrencyLimiter::new(Concurrency { max_running, max_waiting: 8 });
            let (slow, free): (Arc<str>, Arc<str>) = ("slow".into(), "free".into());
            assert_eq!(limiter.depths(), Queues { all: depth(0, 0), tools: Vec::new() });
            let slow_runs = limiter.enter(&slow, 1).await.unwrap();
            let mut slow_waits = Box::pin(limiter.enter(&slow, 1));
            assert!(futures_poll(&mut slow_waits).await.is_none());
            let free_runs = limiter.enter(&free, 0).await.unwrap();
            let mut free_next = Box::pin(limiter.enter(&free, 0));
            let free_next_runs = futures_poll(&mut free_next).await.is_some();
            assert_eq!(free_next_runs, max_running == 0);
            let waits = 1 + usize::from(max_running > 0);
            let seen = limiter.depths();
            // The one that ran at once has ended at once.
            assert_eq!(seen.all, depth(2, waits));
            assert_eq!(seen.tools, [(Arc::clone(&slow), depth(1, 1))]);
            drop((free_next, slow_waits, slow_runs, free_runs));
            assert_eq!(limiter.depths(), Queues { all: depth(0, 0), tools: vec![(slow, depth(0, 0))] });
        }
    }

    /// What the future comes to at once.
    async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = std::future::ready(()) => None,
        }
    }
}
