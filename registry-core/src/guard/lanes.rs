//! How many calls run at once, of one tool and in all, and how many may wait.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls run at once, and how many wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls that run at once, of all tools; 0 for any number.
    pub max_running: usize,
    /// Calls that wait, for one tool and in all; more are turned away at once.
    pub max_waiting: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { max_running: 1024, max_waiting: 4096 }
    }
}

/// Where calls wait for their turn.
#[derive(Debug)]
pub(crate) struct Lanes {
    all: Option<Arc<Lane>>,
    max_waiting: usize,
    /// Made when a tool that has a bound is first called.
    of_tools: Mutex<HashMap<Arc<str>, Arc<Lane>>>,
}

#[derive(Debug)]
struct Lane {
    bound: usize,
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The right to run. Given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    _tool: Option<OwnedSemaphorePermit>,
    _all: Option<OwnedSemaphorePermit>,
}

/// As many calls wait as may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Lane {
    fn new(bound: usize) -> Arc<Self> {
        let running = Arc::new(Semaphore::new(bound.min(Semaphore::MAX_PERMITS)));
        Arc::new(Self { bound, running, waiting: AtomicUsize::new(0) })
    }

    async fn enter(&self, max_waiting: usize) -> Result<OwnedSemaphorePermit, Full> {
        if let Ok(turn) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(turn);
        }
        let _place = Place::take(&self.waiting, max_waiting)?;
        // The semaphore is never closed.
        Arc::clone(&self.running).acquire_owned().await.map_err(|_| Full)
    }
}

/// A place among those that wait; given up also by a call that is cancelled while it waits.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, max: usize) -> Result<Self, Full> {
        let one_more = |waiting| (waiting < max).then_some(waiting + 1);
        waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).map_err(|_| Full)?;
        Ok(Self(waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Lanes {
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        let all = (concurrency.max_running > 0).then(|| Lane::new(concurrency.max_running));
        Self { all, max_waiting: concurrency.max_waiting, of_tools: Mutex::default() }
    }

    fn of_tool(&self, tool: &Arc<str>, bound: usize) -> Arc<Lane> {
        let mut lanes = self.of_tools.lock().unwrap_or_else(PoisonError::into_inner);
        match lanes.get(tool).filter(|lane| lane.bound == bound) {
            Some(lane) => Arc::clone(lane),
            None => {
                let lane = Lane::new(bound);
                lanes.insert(Arc::clone(tool), Arc::clone(&lane));
                lane
            }
        }
    }

    /// Waits for the call's turn. `bound` is the tool's own; 0 for none.
    pub(crate) async fn enter(&self, tool: &Arc<str>, bound: u32) -> Result<Turn, Full> {
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        // The tool's own first: a call that waits for its tool holds up no other.
        let of_tool = match bound {
            0 => None,
            bound => Some(self.of_tool(tool, bound).enter(self.max_waiting).await?),
        };
        let of_all = match &self.all {
            None => None,
            Some(lane) => Some(lane.enter(self.max_waiting).await?),
        };
        Ok(Turn { _tool: of_tool, _all: of_all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_more_wait_than_may_and_who_leaves_frees_the_place() {
        let lanes = Lanes::new(Concurrency { max_running: 0, max_waiting: 1 });
        let tool: Arc<str> = "slow".into();
        let running = lanes.enter(&tool, 1).await.unwrap();
        let mut waiting = Box::pin(lanes.enter(&tool, 1));
        assert!(futures_poll(&mut waiting).await.is_none());
        assert!(matches!(lanes.enter(&tool, 1).await, Err(Full)));
        drop(waiting);
        let mut waiting = Box::pin(lanes.enter(&tool, 1));
        assert!(futures_poll(&mut waiting).await.is_none());
        drop(running);
        assert!(waiting.await.is_ok());
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
