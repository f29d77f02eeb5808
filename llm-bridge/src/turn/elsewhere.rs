//! Turns that run on other servers with the same store: each server tells there what runs on it, and looks there for what it has to stop.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use registry_core::{
    clock::{Clock, SystemClock},
    store::{Expected, StateError, StateLimits, StateSpace, StateStore, StoreError},
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{LiveTurn, LiveTurns};

/// How often a server tells what runs on it, while something does.
const EVERY: Duration = Duration::from_secs(2);
/// What a server has told is believed for this time: one that was killed tells nothing any more. The clocks of servers may differ.
const BELIEVED: SignedDuration = SignedDuration::from_secs(30);
/// So many turns of a tenant are told; the others are seen on their own server.
const MOST: usize = 100;
/// So many others may ask for the same at once.
const ATTEMPTS: usize = 5;
/// Not one of a tool's: theirs begin with `tool:` and `name:`.
const SPACE: &str = "server:turns";
/// No tenant has so many servers that this room is short.
const ROOM: StateLimits = StateLimits {
    max_keys: 2000,
    max_space_bytes: 256 << 20,
    max_user_bytes: u64::MAX >> 1,
    ..StateLimits::DEFAULT
};

/// A turn of another server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToldTurn {
    pub(crate) id: u64,
    pub(crate) user: String,
    pub(crate) chat: Option<String>,
    pub(crate) since: Timestamp,
    pub(crate) model: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) tools: Vec<String>,
}

impl From<LiveTurn> for ToldTurn {
    fn from(turn: LiveTurn) -> Self {
        let LiveTurn { id, user, chat, since, model, rounds, tools, .. } = turn;
        Self { id, user, chat, since, model, rounds, tools }
    }
}

/// What a server tells of a tenant.
#[derive(Debug, Serialize, Deserialize)]
struct Told {
    at: Timestamp,
    turns: Vec<ToldTurn>,
}

/// A turn that is to be stopped. A server that has begun anew counts from one again, so the number is not enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ToStop {
    id: u64,
    since: Timestamp,
}

/// The turns of the servers that share a store. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
pub struct TurnsElsewhere {
    #[debug(skip)]
    store: Arc<dyn StateStore>,
    /// The name of this server, unique among them.
    server: Arc<str>,
}

fn told_by(server: &str) -> String {
    format!("told/{server}")
}

fn stopped_at(server: &str) -> String {
    format!("stop/{server}")
}

fn space(tenant: &str) -> StateSpace {
    StateSpace { tenant: tenant.to_owned(), user: None, name: SPACE.to_owned() }
}

impl TurnsElsewhere {
    /// For a server of this name, unique among those that share the store.
    pub fn new(store: Arc<dyn StateStore>, server: &str) -> Self {
        Self { store, server: server.into() }
    }

    /// Tells what runs here and stops what others ask for, until `closing` is cancelled.
    pub(crate) async fn follow(self, live: LiveTurns, closing: CancellationToken) {
        let mut told = BTreeSet::new();
        while closing.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
            let tenants = live.tenants();
            for tenant in tenants.union(&told) {
                if let Err(cause) = self.tell(tenant, &live).await {
                    tracing::warn!(%cause, "turns_not_told");
                }
            }
            told = tenants;
        }
        for tenant in told {
            // Otherwise they are believed for a while.
            let _ = self.put(&tenant, &told_by(&self.server), None, Expected::Anything).await;
        }
    }

    /// Tells what runs of a tenant, and stops what is asked for.
    async fn tell(&self, tenant: &str, live: &LiveTurns) -> Result<(), StateError> {
        let mut turns: Vec<ToldTurn> = live.of_tenant(tenant).into_iter().map(ToldTurn::from).collect();
        let stops = stopped_at(&self.server);
        if let Some(asked) = self.store.state(&space(tenant), &stops).await? {
            let is_asked = |turn: &ToldTurn| {
                parsed::<Vec<ToStop>>(&asked)
                    .iter()
                    .flatten()
                    .any(|stop| stop.id == turn.id && stop.since == turn.since)
            };
            turns.iter().filter(|turn| is_asked(turn)).for_each(|turn| {
                live.stop(tenant, turn.id);
            });
            // What was asked for meanwhile comes next.
            self.put(tenant, &stops, None, Expected::Exactly(Some(&asked))).await?;
        }
        turns.truncate(MOST);
        let at = SystemClock.now();
        let told = (!turns.is_empty()).then(|| serde_json::to_string(&Told { at, turns })).transpose();
        let told = told.map_err(StoreError::corrupt)?;
        self.put(tenant, &told_by(&self.server), told.as_deref(), Expected::Anything).await.map(drop)
    }

    async fn put(
        &self,
        tenant: &str,
        key: &str,
        value: Option<&str>,
        expected: Expected<'_>,
    ) -> Result<bool, StateError> {
        self.store.put_state(&space(tenant), key, value, expected, &ROOM).await
    }

    /// What runs of a tenant on the other servers, by their names.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn of_tenant(&self, tenant: &str) -> Result<Vec<(String, ToldTurn)>, StoreError> {
        let mut all = Vec::new();
        for key in self.store.state_keys(&space(tenant)).await? {
            if let Some(server) = key.strip_prefix("told/").filter(|server| **server != *self.server) {
                let turns = self.told(tenant, server).await?;
                all.extend(turns.into_iter().map(|turn| (server.to_owned(), turn)));
            }
        }
        Ok(all)
    }

    async fn told(&self, tenant: &str, server: &str) -> Result<Vec<ToldTurn>, StoreError> {
        let key = told_by(server);
        let Some(text) = self.store.state(&space(tenant), &key).await? else { return Ok(Vec::new()) };
        let is_believed = |told: &Told| SystemClock.now().duration_since(told.at) < BELIEVED;
        match parsed::<Told>(&text).filter(is_believed) {
            Some(told) => Ok(told.turns),
            None => {
                // Whose turns they were is kept no longer than need be.
                let _ = self.put(tenant, &key, None, Expected::Exactly(Some(&text))).await;
                Ok(Vec::new())
            }
        }
    }

    /// A turn of a tenant on another server; `None` where no such turn runs.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn find(
        &self,
        tenant: &str,
        server: &str,
        id: u64,
    ) -> Result<Option<ToldTurn>, StoreError> {
        Ok(self.told(tenant, server).await?.into_iter().find(|turn| turn.id == id))
    }

    /// Asks another server to stop a turn of a tenant, which it does in a moment.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn ask_to_stop(
        &self,
        tenant: &str,
        server: &str,
        turn: &ToldTurn,
    ) -> Result<(), StoreError> {
        let (key, stop) = (stopped_at(server), ToStop { id: turn.id, since: turn.since });
        for _ in 0..ATTEMPTS {
            let before = self.store.state(&space(tenant), &key).await?;
            let mut stops: Vec<ToStop> = before.as_deref().and_then(parsed).unwrap_or_default();
            // A server that is gone takes none of them.
            let from = stops.len().saturating_sub(MOST);
            stops.drain(..from);
            stops.push(stop.clone());
            let after = serde_json::to_string(&stops).map_err(StoreError::corrupt)?;
            match self.put(tenant, &key, Some(&after), Expected::Exactly(before.as_deref())).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(StateError::Store(cause)) => return Err(cause),
                Err(fault) => return Err(StoreError::unavailable(fault)),
            }
        }
        Err(StoreError::unavailable("others ask for the same at once"))
    }
}

/// What another version writes may be of another shape, and is passed over.
fn parsed<T: for<'de> Deserialize<'de>>(text: &str) -> Option<T> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use registry_core::store::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn u29_servers_tell_what_runs_and_stop_what_others_ask_for() {
        let store = Arc::new(MemoryStore::default());
        let [one, two] = ["one", "two"].map(|server| TurnsElsewhere::new(store.clone(), server));
        let live = LiveTurns::default();
        let listed: Vec<_> = (0..MOST + 5)
            .map(|_| live.begin(("default", "ada"), None, Timestamp::UNIX_EPOCH, None))
            .collect();
        listed[0].note(|turn| turn.tools.push("calculate".into()));
        one.tell("default", &live).await.unwrap();
        let seen = two.of_tenant("default").await.unwrap();
        assert_eq!(seen.len(), MOST, "no more than others are told");
        assert_eq!((seen[0].0.as_str(), seen[0].1.tools.as_slice()), ("one", &["calculate".to_owned()][..]));
        assert!(one.of_tenant("default").await.unwrap().is_empty(), "those that run here are not elsewhere");
        assert!(two.of_tenant("acme").await.unwrap().is_empty());

        let found = two.find("default", "one", seen[0].1.id).await.unwrap().unwrap();
        two.ask_to_stop("default", "one", &found).await.unwrap();
        // Of a server that had the name before.
        let other =
            ToldTurn { since: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1), ..seen[1].1.clone() };
        two.ask_to_stop("default", "one", &other).await.unwrap();
        assert!(!listed[0].stop().is_cancelled());
        one.tell("default", &live).await.unwrap();
        let stopped: Vec<_> = listed.iter().map(|listed| listed.stop().is_cancelled()).collect();
        assert_eq!(stopped.iter().filter(|stopped| **stopped).count(), 1);
        assert!(stopped[0]);
        assert_eq!(store.state(&space("default"), &stopped_at("one")).await.unwrap(), None);

        drop(listed);
        one.tell("default", &live).await.unwrap();
        assert!(two.of_tenant("default").await.unwrap().is_empty());
        assert!(store.state_keys(&space("default")).await.unwrap().is_empty(), "nothing is left");
    }

    #[tokio::test]
    async fn u29_a_server_that_was_killed_runs_nothing_after_a_while() {
        let store = Arc::new(MemoryStore::default());
        let two = TurnsElsewhere::new(store.clone(), "two");
        let live = LiveTurns::default();
        let _listed = live.begin(("default", "ada"), None, Timestamp::UNIX_EPOCH, None);
        let turns = live.of_tenant("default").into_iter().map(ToldTurn::from).collect();
        let at = SystemClock.now() - BELIEVED - SignedDuration::from_secs(1);
        let text = serde_json::to_string(&Told { at, turns }).unwrap();
        let space = space("default");
        let put = store.put_state(&space, "told/one", Some(&text), Expected::Anything, &ROOM);
        assert!(put.await.unwrap());
        assert!(two.of_tenant("default").await.unwrap().is_empty());
        assert!(store.state_keys(&space).await.unwrap().is_empty(), "nor is it kept");
    }
}
