//! The turns that run here, for admins to see and to stop.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use registry_core::trace::TraceParent;
use tokio_util::sync::CancellationToken;

/// A turn that runs.
#[derive(Debug, Clone)]
pub(crate) struct LiveTurn {
    /// Names it on this server.
    pub(crate) id: u64,
    pub(crate) tenant: String,
    pub(crate) user: String,
    /// The chat of the page, where it is in one.
    pub(crate) chat: Option<String>,
    pub(crate) since: Timestamp,
    /// The full name of the model, once it is chosen.
    pub(crate) model: Option<String>,
    /// How often the model was asked.
    pub(crate) rounds: u32,
    /// The server's tools that run, in the order of their calls.
    pub(crate) tools: Vec<String>,
    /// Where it is in a trace that is kept.
    pub(crate) trace: Option<TraceParent>,
    stop: CancellationToken,
}

/// The turns that run.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveTurns {
    turns: Arc<Mutex<HashMap<u64, LiveTurn>>>,
    last: Arc<AtomicU64>,
}

impl LiveTurns {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, LiveTurn>> {
        self.turns.lock()
    }

    /// Notes a turn that begins.
    pub(super) fn begin(
        &self,
        (tenant, user): (&str, &str),
        chat: Option<String>,
        since: Timestamp,
        trace: Option<TraceParent>,
    ) -> Listed {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let stop = CancellationToken::new();
        let turn = LiveTurn {
            id,
            tenant: tenant.to_owned(),
            user: user.to_owned(),
            chat,
            since,
            model: None,
            rounds: 0,
            tools: Vec::new(),
            trace: trace.filter(|place| place.is_sampled),
            stop: stop.clone(),
        };
        self.lock().insert(id, turn);
        Listed { id, turns: self.clone(), stop }
    }

    /// The tenants of all that run.
    pub(crate) fn tenants(&self) -> BTreeSet<String> {
        self.lock().values().map(|turn| turn.tenant.clone()).collect()
    }

    /// Those of a tenant, the oldest first.
    pub(crate) fn of_tenant(&self, tenant: &str) -> Vec<LiveTurn> {
        let mut turns: Vec<_> = self.lock().values().filter(|turn| turn.tenant == tenant).cloned().collect();
        turns.sort_by_key(|turn| turn.id);
        turns
    }

    /// Stops one of a tenant; false where there is none.
    pub(crate) fn stop(&self, tenant: &str, id: u64) -> bool {
        let turns = self.lock();
        let turn = turns.get(&id).filter(|turn| turn.tenant == tenant);
        turn.inspect(|turn| turn.stop.cancel()).is_some()
    }

    /// Stops all of a user.
    pub(crate) fn stop_of(&self, tenant: &str, user: &str) {
        let turns = self.lock();
        let of_user = turns.values().filter(|turn| turn.tenant == tenant && turn.user == user);
        of_user.for_each(|turn| turn.stop.cancel());
    }
}

/// A turn's place among those that run; it is given up with this.
#[derive(Debug)]
pub(super) struct Listed {
    id: u64,
    turns: LiveTurns,
    stop: CancellationToken,
}

impl Listed {
    /// Cancelled when an admin stops the turn.
    pub(super) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Notes what it does now.
    pub(super) fn note(&self, change: impl FnOnce(&mut LiveTurn)) {
        if let Some(turn) = self.turns.lock().get_mut(&self.id) {
            change(turn);
        }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u29_a_turn_is_listed_until_it_ends_and_stopped_in_its_tenant_only() {
        let turns = LiveTurns::default();
        let listed = turns.begin(("default", "ada"), None, Timestamp::UNIX_EPOCH, None);
        listed.note(|turn| turn.tools.push("calculate".into()));
        let [turn] = turns.of_tenant("default").try_into().unwrap();
        assert_eq!((turn.user.as_str(), turn.tools.as_slice()), ("ada", &["calculate".to_owned()][..]));
        assert!(turns.of_tenant("other").is_empty() && !turns.stop("other", turn.id));
        assert!(!listed.stop().is_cancelled() && turns.stop("default", turn.id));
        assert!(listed.stop().is_cancelled());
        drop(listed);
        assert!(turns.of_tenant("default").is_empty() && !turns.stop("default", turn.id));
    }
}
