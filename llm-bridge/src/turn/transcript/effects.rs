//! Which server makes the calls with effects of a turn, where several share a store. A note says so, and changes while the turn runs: another
//! server to which the same conversation comes neither makes these calls again nor tells the model that they were interrupted.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use registry_core::{
    random_id,
    store::{Expected, StateError, StateLimits, StateSpace, StateStore},
};
use serde::{Deserialize, Serialize};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Place, in_time};

/// How often the note of a turn that runs changes.
const BEAT: Duration = Duration::from_secs(2);
/// The server of a note that does not change for so long was killed.
const SILENCE: Duration = Duration::from_secs(10);
/// How often another server's note is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long it is known that a turn has made calls, for those that began before its end.
const REMEMBERED: Duration = Duration::from_secs(600);
/// A note that is older was left by a server that was killed, in milliseconds.
const OLD: i64 = 3_600_000;
/// The most notes of a user.
const MAX_NOTES: usize = 10_000;
/// How much room the notes of a user have.
const LIMITS: StateLimits = StateLimits {
    max_keys: MAX_NOTES,
    max_space_bytes: 4 << 20,
    max_user_bytes: u64::MAX,
    ..StateLimits::DEFAULT
};
/// What the notes are kept under. No tool's values have such a name.
const SPACE: &str = "turns";

/// This process. In it turns know of each other.
static SERVER: LazyLock<Arc<str>> = LazyLock::new(|| random_id().unwrap_or_default().into());

/// The turns of this process that have made such calls.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// That calls with effects are made at a place in a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    server: Arc<str>,
    /// The number of the turn among those of its server.
    #[serde(default)]
    turn: u64,
    /// When it was written, in milliseconds since 1970.
    at: i64,
    /// How often it was written.
    beat: u64,
    /// Whether the turn is over.
    is_over: bool,
}

impl Note {
    fn new(server: &Arc<str>, turn: u64, beat: u64, is_over: bool) -> Self {
        Self { server: Arc::clone(server), turn, at: Timestamp::now().as_millisecond(), beat, is_over }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn read(text: Option<&String>) -> Option<Self> {
        serde_json::from_str(text?).ok()
    }

    fn is_old(&self) -> bool {
        Timestamp::now().as_millisecond().saturating_sub(self.at) > OLD
    }
}

/// Where the note of one place is.
#[derive(Clone, derive_more::Debug)]
struct Spot {
    #[debug(skip)]
    state: Arc<dyn StateStore>,
    space: StateSpace,
    key: String,
    server: Arc<str>,
}

impl Spot {
    async fn look(&self) -> Result<Option<String>, String> {
        in_time(self.state.state(&self.space, &self.key)).await
    }

    /// Puts a text in the place of another one; false where it is not there.
    async fn put(&self, text: Option<&str>, expected: Option<&str>) -> Result<bool, String> {
        let expected = Expected::Exactly(expected);
        let putting = self.state.put_state(&self.space, &self.key, text, expected, &LIMITS);
        match timeout(super::PATIENCE, putting).await {
            Ok(Ok(is_put)) => Ok(is_put),
            Ok(Err(error)) => {
                if matches!(error, StateError::Full { .. }) {
                    tokio::spawn(self.clone().clear());
                }
                Err(error.to_string())
            }
            Err(_) => Err("the store did not answer in time".to_owned()),
        }
    }

    /// Deletes old notes of the user.
    async fn clear(self) {
        let Ok(keys) = self.state.state_keys(&self.space).await else { return };
        for key in keys {
            let text = self.state.state(&self.space, &key).await.unwrap_or_default();
            if Note::read(text.as_ref()).is_some_and(|note| note.is_old()) {
                let expected = Expected::Exactly(text.as_deref());
                let _ = self.state.put_state(&self.space, &key, None, expected, &LIMITS).await;
            }
        }
    }

    /// The note of a turn that another server runs.
    fn of_other(&self, text: Option<&String>) -> Option<Note> {
        Note::read(text).filter(|note| note.server != self.server && !note.is_over)
    }

    /// Puts something in the place of a turn's last note; false where another turn's is there.
    async fn replace(&self, last: &mut String, turn: u64, next: Option<&str>) -> Result<bool, String> {
        while !self.put(next, Some(last)).await? {
            // A note for which nobody waited any longer has been written all the same.
            let now = self.look().await?.filter(|now| now != last);
            let is_own = |note: Note| note.server == self.server && note.turn == turn;
            match now.filter(|now| Note::read(Some(now)).is_some_and(is_own)) {
                Some(now) => *last = now,
                None => return Ok(false),
            }
        }
        next.unwrap_or_default().clone_into(last);
        Ok(true)
    }

    /// Changes the note until the turn is over, and forgets it some time later. Ends at once where somebody else has changed it.
    async fn beat(self, mut last: String, turn: u64, over: CancellationToken) {
        for beat in 1.. {
            let is_over = timeout(BEAT, over.cancelled()).await.is_ok();
            let next = Note::new(&self.server, turn, beat, is_over).text();
            match self.replace(&mut last, turn, Some(&next)).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(cause) => tracing::warn!(cause, "note_of_turn_not_kept"),
            }
            if is_over {
                break;
            }
        }
        sleep(REMEMBERED).await;
        let _ = self.replace(&mut last, turn, None).await;
    }
}

/// The calls with effects at a place in a conversation.
#[derive(Debug)]
pub(super) struct Effects {
    spot: Spot,
    /// The note that was there when the turn began, or when the one before it had ended with which it goes on.
    before: Option<String>,
    /// The note as it was seen last.
    seen: Option<String>,
    /// Whether another server runs a turn at this place.
    is_elsewhere: bool,
    holding: Option<Holding>,
}

/// That the note is this turn's; until this is dropped.
#[derive(Debug)]
struct Holding {
    _over: DropGuard,
    beating: JoinHandle<()>,
}

impl Effects {
    /// Looks whether another server makes such calls, and waits where that is not clear: until it has ended its turn, or has shown that it is
    /// alive, or has been silent for long. `None` where the store does not say.
    pub(super) async fn at(
        state: Arc<dyn StateStore>,
        (tenant, user): (&str, &str),
        key: &str,
    ) -> Option<Self> {
        let space =
            StateSpace { tenant: tenant.to_owned(), user: Some(user.to_owned()), name: SPACE.to_owned() };
        Self::of(Spot { state, space, key: key.to_owned(), server: Arc::clone(&SERVER) }).await
    }

    async fn of(spot: Spot) -> Option<Self> {
        let before = spot.look().await.inspect_err(|cause| tracing::warn!(cause, "note_of_turn_not_read"));
        let before = before.ok()?;
        let mut effects = Self { spot, seen: before.clone(), before, is_elsewhere: false, holding: None };
        effects.watch().await;
        Some(effects)
    }

    async fn watch(&mut self) {
        if self.spot.of_other(self.seen.as_ref()).is_none_or(|note| note.is_old()) {
            return;
        }
        let deadline = Instant::now() + SILENCE;
        while Instant::now() < deadline {
            sleep(LOOK).await;
            let Ok(now) = self.spot.look().await else { return };
            if now != self.seen {
                self.is_elsewhere = self.spot.of_other(now.as_ref()).is_some();
                self.seen = now;
                return;
            }
        }
    }

    /// The turn goes on with the one before it, which has ended.
    pub(super) fn go_on(&mut self) {
        self.before.clone_from(&self.seen);
    }

    /// Whether the turn may make calls with effects; no other server does from then on. A turn that `holds` nothing only looks. Where the
    /// store fails, it may.
    async fn make(&mut self, holds: bool) -> bool {
        if let Some(holding) = &self.holding {
            return !holding.beating.is_finished();
        }
        let made = if holds {
            self.hold().await
        } else {
            self.spot.look().await.map(|now| self.may_follow(now.as_ref()))
        };
        made.unwrap_or_else(|cause| {
            tracing::warn!(cause, "note_of_turn_not_kept");
            true
        })
    }

    async fn hold(&mut self) -> Result<bool, String> {
        let turn = TURNS.fetch_add(1, Ordering::Relaxed);
        let text = Note::new(&self.spot.server, turn, 0, false).text();
        while !self.spot.put(Some(&text), self.before.as_deref()).await? {
            let now = self.spot.look().await?;
            if now == self.before || !self.may_follow(now.as_ref()) {
                return Ok(false);
            }
            self.before = now;
        }
        let over = CancellationToken::new();
        let beating = tokio::spawn(self.spot.clone().beat(text, turn, over.clone()));
        self.holding = Some(Holding { _over: over.drop_guard(), beating });
        Ok(true)
    }

    /// Whether this note is no other server's: turns of this one leave their notes one after the other.
    fn may_follow(&self, now: Option<&String>) -> bool {
        now == self.before.as_ref() && self.spot.of_other(now).is_none()
            || Note::read(now).is_none_or(|note| note.server == self.spot.server)
    }
}

impl Place {
    /// Whether another server runs a turn at this place that makes calls with effects.
    pub(in super::super) fn is_elsewhere(&self) -> bool {
        self.effects.as_ref().is_some_and(|effects| effects.is_elsewhere)
    }

    /// Whether the turn may make calls with effects: another server does not, and did not while this turn ran.
    pub(in super::super) async fn may_make_effects(&mut self) -> bool {
        let holds = self.claim.is_some();
        match &mut self.effects {
            Some(effects) => effects.make(holds).await,
            None => true,
        }
    }

    /// Leaves the place to another server: nothing of this turn is kept.
    pub(in super::super) fn give_up(&mut self) {
        (self.before, self.claim) = (None, None);
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use registry_core::store::{MemoryStore, StoreResult};

    use super::*;

    /// A store that writes at once, and may say so late.
    #[derive(Default)]
    struct Late {
        kept: MemoryStore,
        /// In milliseconds.
        by: AtomicU64,
    }

    #[async_trait]
    impl StateStore for Late {
        async fn state(&self, space: &StateSpace, key: &str) -> StoreResult<Option<String>> {
            self.kept.state(space, key).await
        }

        async fn put_state(
            &self,
            space: &StateSpace,
            key: &str,
            value: Option<&str>,
            expected: Expected<'_>,
            limits: &StateLimits,
        ) -> Result<bool, StateError> {
            let put = self.kept.put_state(space, key, value, expected, limits).await;
            sleep(Duration::from_millis(self.by.load(Ordering::Relaxed))).await;
            put
        }

        async fn state_keys(&self, space: &StateSpace) -> StoreResult<Vec<String>> {
            self.kept.state_keys(space).await
        }

        async fn states_of_users(
            &self,
            tenant: &str,
            name: &str,
            key: &str,
            after: &str,
            most: usize,
        ) -> StoreResult<Vec<(String, String)>> {
            self.kept.states_of_users(tenant, name, key, after, most).await
        }
    }

    struct Servers(Arc<Late>);

    impl Servers {
        fn spot(&self, server: &str) -> Spot {
            let space = StateSpace { tenant: "default".into(), user: Some("ada".into()), name: SPACE.into() };
            Spot { state: self.0.clone(), space, key: "k".into(), server: server.into() }
        }

        async fn turn(&self, server: &str) -> Effects {
            Effects::of(self.spot(server)).await.unwrap()
        }

        async fn until_over(&self) {
            while !Note::read(self.spot("").look().await.unwrap().as_ref()).unwrap().is_over {
                sleep(LOOK).await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn b15_of_turns_that_begin_together_on_two_servers_one_makes_calls_with_effects() {
        let servers = Servers(Arc::default());
        let (mut one, mut two, mut late) =
            (servers.turn("one").await, servers.turn("two").await, servers.turn("two").await);
        assert!(one.make(true).await && one.make(true).await);
        assert!(!two.make(true).await && !two.make(false).await, "the first makes them");
        drop(one);
        servers.until_over().await;
        assert!(!late.make(true).await, "the first has made them meanwhile");
        let mut next = servers.turn("two").await;
        assert!(!next.is_elsewhere && next.make(true).await, "asked after its end it is another turn");
    }

    #[tokio::test(start_paused = true)]
    async fn b15_a_turn_that_another_server_runs_is_seen_and_one_that_ends_is_gone_on_with() {
        let servers = Servers(Arc::default());
        let mut one = servers.turn("one").await;
        assert!(one.make(true).await);
        assert!(servers.turn("two").await.is_elsewhere);
        assert!(!servers.turn("one").await.is_elsewhere, "in one process they know of each other");
        let (mut two, ()) = tokio::join!(servers.turn("two"), async {
            sleep(LOOK).await;
            drop(one);
        });
        assert!(!two.is_elsewhere);
        two.go_on();
        assert!(two.make(true).await);
        // Nobody remembers it for ever.
        drop(two);
        servers.until_over().await;
        sleep(2 * REMEMBERED).await;
        assert_eq!(servers.spot("").look().await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn b15_a_turn_whose_server_was_killed_is_gone_on_with_after_its_silence() {
        let servers = Servers(Arc::default());
        let left = Note::new(&"one".into(), 0, 3, false).text();
        assert_eq!(servers.spot("one").put(Some(&left), None).await, Ok(true));
        let began = Instant::now();
        let mut two = servers.turn("two").await;
        assert!(!two.is_elsewhere && began.elapsed() >= SILENCE);
        assert!(two.make(true).await);
        // Turns of one server that come one after the other do not wait, however their notes overlap.
        drop(two);
        let mut next = servers.turn("two").await;
        servers.until_over().await;
        assert!(next.make(true).await);
    }

    #[tokio::test(start_paused = true)]
    async fn b15_a_turn_goes_on_where_the_store_says_too_late_that_it_has_written_its_note() {
        let servers = Servers(Arc::default());
        let mut one = servers.turn("one").await;
        assert!(one.make(true).await);
        servers.0.by.store(5000, Ordering::Relaxed);
        sleep(3 * SILENCE).await;
        servers.0.by.store(0, Ordering::Relaxed);
        sleep(SILENCE).await;
        assert!(one.make(true).await, "nobody else makes calls there");
        // Another turn's note is not taken for its own, also not one of the same server.
        let mut next = servers.turn("one").await;
        assert!(next.make(true).await);
        sleep(SILENCE).await;
        assert!(!one.make(true).await && next.make(true).await);
        drop(one);
        sleep(SILENCE).await;
        assert!(servers.turn("two").await.is_elsewhere, "the later one still runs");
        servers.0.by.store(5000, Ordering::Relaxed);
        drop(next);
        servers.until_over().await;
        servers.0.by.store(0, Ordering::Relaxed);
        sleep(2 * REMEMBERED).await;
        assert_eq!(servers.spot("").look().await, Ok(None));
    }
}
