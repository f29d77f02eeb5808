//! How many calls run at once, of one tool and in all, and how many may wait.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::overview::{LaneDepth, Queues};

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
    all: Arc<Lane>,
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
        let running = Arc::new(Semaphore::new(permits(bound)));
        Arc::new(Self { bound, running, waiting: AtomicUsize::new(0) })
    }

    fn depth(&self) -> LaneDepth {
        LaneDepth {
            running: permits(self.bound).saturating_sub(self.running.available_permits()),
            waiting: self.waiting.load(Ordering::Acquire),
        }
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

/// As many as a semaphore can give; 0 is any number.
fn permits(bound: usize) -> usize {
    if bound == 0 { Semaphore::MAX_PERMITS } else { bound.min(Semaphore::MAX_PERMITS) }
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
        let all = Lane::new(concurrency.max_running);
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
        let of_all = self.all.enter(self.max_waiting).await?;
        Ok(Turn { _tool: of_tool, _all: Some(of_all) })
    }

    /// How many run and wait now.
    pub(crate) fn depths(&self) -> Queues {
        let lanes = self.of_tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tools: Vec<_> = lanes.iter().map(|(tool, lane)| (Arc::clone(tool), lane.depth())).collect();
        drop(lanes);
        let mut all = self.all.depth();
        all.waiting += tools.iter().map(|(_, depth)| depth.waiting).sum::<usize>();
        Queues { all, tools }
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

    #[tokio::test]
    async fn who_runs_and_waits_is_counted_for_the_tool_and_in_all() {
        let depth = |running, waiting| LaneDepth { running, waiting };
        for max_running in [0, 2] {
            let lanes = Lanes::new(Concurrency { max_running, max_waiting: 8 });
            let (slow, free): (Arc<str>, Arc<str>) = ("slow".into(), "free".into());
            assert_eq!(lanes.depths(), Queues { all: depth(0, 0), tools: Vec::new() });
            let slow_runs = lanes.enter(&slow, 1).await.unwrap();
            let mut slow_waits = Box::pin(lanes.enter(&slow, 1));
            assert!(futures_poll(&mut slow_waits).await.is_none());
            let free_runs = lanes.enter(&free, 0).await.unwrap();
            let mut free_next = Box::pin(lanes.enter(&free, 0));
            let free_next_runs = futures_poll(&mut free_next).await.is_some();
            assert_eq!(free_next_runs, max_running == 0);
            let waits = 1 + usize::from(max_running > 0);
            let seen = lanes.depths();
            // The one that ran at once has ended at once.
            assert_eq!(seen.all, depth(2, waits));
            assert_eq!(seen.tools, [(Arc::clone(&slow), depth(1, 1))]);
            drop((free_next, slow_waits, slow_runs, free_runs));
            assert_eq!(lanes.depths(), Queues { all: depth(0, 0), tools: vec![(slow, depth(0, 0))] });
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
