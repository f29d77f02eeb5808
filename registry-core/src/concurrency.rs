//! How many calls run at once, of one tool, of one user and in all, and how many may wait.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{context::Caller, policy::Permission};

/// How many calls run at once, and how many wait for a permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Calls that run at once, of all tools; 0 for any number. Admins have a sixteenth more, which nobody else can take.
    pub max_running: usize,
    /// Calls that wait, for one tool and in all; more are refused at once.
    pub max_waiting: usize,
    /// Calls of one user that run, or that wait for their tool; 0 for any number.
    pub max_running_per_user: usize,
    /// Calls of one user that wait besides; more are refused at once.
    pub max_waiting_per_user: usize,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self { max_running: 1024, max_waiting: 4096, max_running_per_user: 128, max_waiting_per_user: 512 }
    }
}

/// How many calls a queue has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// What admins have for themselves.
    of_admins: Arc<Queue>,
    bounds: Concurrency,
    /// Made when a tool that has a bound is first called.
    of_tools: Mutex<HashMap<Arc<str>, Arc<Queue>>>,
    /// By a hash of tenant and user, so that finding a queue allocates nothing.
    of_users: Mutex<HashMap<u64, Arc<Queue>>>,
    hash: RandomState,
}

/// For how many users queues are kept that nobody is in.
const USERS_KEPT: usize = 1024;
/// Which part of what may run admins have besides.
const SHARE_OF_ADMINS: usize = 16;

/// Whose call it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    user: u64,
    is_admin: bool,
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
    _user: Option<OwnedSemaphorePermit>,
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
        self.acquire().await
    }

    /// The same, or of another queue where that has a permit first.
    async fn enter_or(&self, other: &Self, max_waiting: usize) -> Result<OwnedSemaphorePermit, QueueFull> {
        if let Ok(permit) = Arc::clone(&other.running).try_acquire_owned() {
            return Ok(permit);
        }
        tokio::select! {
            biased;
            permit = self.enter(max_waiting) => permit,
            permit = other.acquire() => permit,
        }
    }

    async fn acquire(&self) -> Result<OwnedSemaphorePermit, QueueFull> {
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
    pub(crate) fn new(bounds: Concurrency) -> Self {
        let of_admins = bounds.max_running.div_ceil(SHARE_OF_ADMINS);
        Self {
            all: Queue::new(bounds.max_running),
            of_admins: Queue::new(of_admins),
            bounds,
            of_tools: Mutex::default(),
            of_users: Mutex::default(),
            hash: RandomState::new(),
        }
    }

    pub(crate) fn share(&self, tenant: &str, caller: &Caller) -> Share {
        let user = self.hash.hash_one((tenant, &*caller.user));
        Share { user, is_admin: caller.level >= Permission::Admin }
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

    fn of_user(&self, user: u64) -> Arc<Queue> {
        let mut queues = self.of_users.lock();
        if queues.len() >= USERS_KEPT && !queues.contains_key(&user) {
            // Whoever is about to enter one holds it.
            queues.retain(|_, queue| Arc::strong_count(queue) > 1 || queue.depth() != QueueDepth::default());
        }
        let queue = queues.entry(user).or_insert_with(|| Queue::new(self.bounds.max_running_per_user));
        Arc::clone(queue)
    }

    /// Waits for a permit. `bound` is the tool's own; 0 for none.
    pub(crate) async fn enter(&self, tool: &Arc<str>, bound: u32, share: Share) -> Result<Permit, QueueFull> {
        self.enter_among(tool, bound, share, self.bounds).await
    }

    /// The same for a call that runs already and has lent its permit: it is not turned away.
    async fn enter_again(&self, tool: &Arc<str>, bound: u32, share: Share) -> Permit {
        let bounds = Concurrency { max_waiting: usize::MAX, max_waiting_per_user: usize::MAX, ..self.bounds };
        self.enter_among(tool, bound, share, bounds).await.unwrap_or_default()
    }

    async fn enter_among(
        &self,
        tool: &Arc<str>,
        bound: u32,
        share: Share,
        Concurrency { max_waiting, max_waiting_per_user, .. }: Concurrency,
    ) -> Result<Permit, QueueFull> {
        let bound = usize::try_from(bound).unwrap_or(usize::MAX);
        // The narrower first: a call that waits for its user's others, or for its tool, holds up nobody else.
        let of_user = match self.bounds.max_running_per_user {
            0 => None,
            _ => Some(self.of_user(share.user).enter(max_waiting_per_user).await?),
        };
        let of_tool = match bound {
            0 => None,
            bound => Some(self.of_tool(tool, bound).enter(max_waiting).await?),
        };
        let of_all = match share.is_admin {
            false => self.all.enter(max_waiting).await?,
            true => self.of_admins.enter_or(&self.all, max_waiting).await?,
        };
        Ok(Permit { _user: of_user, _tool: of_tool, _all: Some(of_all) })
    }

    /// How many run and wait now.
    pub(crate) fn depths(&self) -> Queues {
        let queues = self.of_tools.lock();
        let tools: Vec<_> = queues.iter().map(|(tool, queue)| (Arc::clone(tool), queue.depth())).collect();
        drop(queues);
        let (mut all, admins) = (self.all.depth(), self.of_admins.depth());
        all.running += admins.running;
        let of_users: usize = self.of_users.lock().values().map(|queue| queue.depth().waiting).sum();
        let of_tools: usize = tools.iter().map(|(_, depth)| depth.waiting).sum();
        all.waiting += admins.waiting + of_users + of_tools;
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
    pub(crate) async fn refill(
        &self,
        limiter: &ConcurrencyLimiter,
        tool: &Arc<str>,
        bound: u32,
        share: Share,
    ) {
        let permit = limiter.enter_again(tool, bound, share).await;
        let mut slot = self.0.lock();
        if slot.running && slot.nested == 0 && slot.permit.is_none() {
            slot.permit = Some(permit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(max_running: usize, max_waiting: usize) -> ConcurrencyLimiter {
        ConcurrencyLimiter::new(Concurrency { max_running, max_waiting, ..Concurrency::default() })
    }

    #[tokio::test]
    async fn a11_a_user_takes_a_share_and_admins_keep_theirs() {
        let limiter = ConcurrencyLimiter::new(Concurrency {
            max_running: 4,
            max_waiting: 8,
            max_running_per_user: 2,
            max_waiting_per_user: 1,
        });
        let tool: Arc<str> = "fetch".into();
        let share = |tenant, user, level| limiter.share(tenant, &Caller::new(user, level));
        let guest = share("default", "guest", Permission::Guest);
        let mut running =
            [limiter.enter(&tool, 0, guest).await.unwrap(), limiter.enter(&tool, 0, guest).await.unwrap()];
        let mut waits = Box::pin(limiter.enter(&tool, 0, guest));
        assert!(futures_poll(&mut waits).await.is_none());
        assert!(matches!(limiter.enter(&tool, 0, guest).await, Err(QueueFull)));
        // Another user, and one of that name in another tenant, are not held up.
        let ada = share("default", "ada", Permission::User);
        let others = [ada, share("acme", "guest", Permission::Guest)];
        let mut held = Vec::new();
        for other in others {
            held.push(futures_poll(&mut Box::pin(limiter.enter(&tool, 0, other))).await.unwrap().unwrap());
        }
        // All are taken now; what is the admins' is not.
        assert!(futures_poll(&mut Box::pin(limiter.enter(&tool, 0, ada))).await.is_none());
        let admin = share("default", "root", Permission::Admin);
        let admins = futures_poll(&mut Box::pin(limiter.enter(&tool, 0, admin))).await.unwrap().unwrap();
        assert_eq!(limiter.depths().all, QueueDepth { running: 5, waiting: 1 });
        assert!(futures_poll(&mut Box::pin(limiter.enter(&tool, 0, admin))).await.is_none());
        running[0] = Permit::default();
        assert!(waits.await.is_ok());
        drop((admins, held, running));
        assert_eq!(limiter.depths().all, QueueDepth::default());
    }

    #[tokio::test]
    async fn a11_an_admin_takes_what_is_free_first() {
        let limiter = limiter(1, 1);
        let tool: Arc<str> = "fetch".into();
        let share = |level| limiter.share("default", &Caller::new("ada", level));
        let (user, admin) = (share(Permission::User), share(Permission::Admin));
        for is_shared in [true, false] {
            let shared = limiter.enter(&tool, 0, user).await.unwrap();
            let own = limiter.enter(&tool, 0, admin).await.unwrap();
            let mut waits = Box::pin(limiter.enter(&tool, 0, admin));
            assert!(futures_poll(&mut waits).await.is_none());
            assert_eq!(limiter.depths().all, QueueDepth { running: 2, waiting: 1 });
            assert!(matches!(limiter.enter(&tool, 0, admin).await, Err(QueueFull)));
            drop(if is_shared { shared } else { own });
            let taken = futures_poll(&mut waits).await;
            assert!(matches!(taken, Some(Ok(_))), "{is_shared}");
        }
        assert_eq!(limiter.depths().all, QueueDepth::default());
    }

    #[tokio::test]
    async fn a11_no_queues_are_kept_for_users_who_have_left() {
        let limiter = limiter(4, 8);
        for user in 0..3 * USERS_KEPT {
            let share = limiter.share("default", &Caller::new(user.to_string(), Permission::User));
            assert!(limiter.enter(&"fetch".into(), 0, share).await.is_ok());
        }
        assert!(limiter.of_users.lock().len() <= USERS_KEPT);
    }

    #[tokio::test]
    async fn no_more_wait_than_may_and_who_leaves_frees_the_place() {
        let limiter = limiter(0, 1);
        let ada = limiter.share("default", &Caller::new("ada", Permission::User));
        let tool: Arc<str> = "slow".into();
        let running = limiter.enter(&tool, 1, ada).await.unwrap();
        let mut waiting = Box::pin(limiter.enter(&tool, 1, ada));
        assert!(futures_poll(&mut waiting).await.is_none());
        assert!(matches!(limiter.enter(&tool, 1, ada).await, Err(QueueFull)));
        drop(waiting);
        let mut waiting = Box::pin(limiter.enter(&tool, 1, ada));
        assert!(futures_poll(&mut waiting).await.is_none());
        drop(running);
        assert!(waiting.await.is_ok());
    }

    #[tokio::test]
    async fn who_runs_and_waits_is_counted_for_the_tool_and_in_all() {
        let depth = |running, waiting| QueueDepth { running, waiting };
        for max_running in [0, 2] {
            let limiter = limiter(max_running, 8);
            let ada = limiter.share("default", &Caller::new("ada", Permission::User));
            let (slow, free): (Arc<str>, Arc<str>) = ("slow".into(), "free".into());
            assert_eq!(limiter.depths(), Queues { all: depth(0, 0), tools: Vec::new() });
            let slow_runs = limiter.enter(&slow, 1, ada).await.unwrap();
            let mut slow_waits = Box::pin(limiter.enter(&slow, 1, ada));
            assert!(futures_poll(&mut slow_waits).await.is_none());
            let free_runs = limiter.enter(&free, 0, ada).await.unwrap();
            let mut free_next = Box::pin(limiter.enter(&free, 0, ada));
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
