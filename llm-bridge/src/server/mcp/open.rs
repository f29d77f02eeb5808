//! The sessions that are open, by user. A user without any takes no room.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::{
    SessionManager,
    session::{SessionId, local::LocalSessionManager},
};
use tokio::time::Instant;

use crate::mcp::Visitor;

/// How long an idle session stays open. A chat may be idle for a while, and few clients open a new session.
const SESSION_KEPT: Duration = Duration::from_secs(3600);
/// Sessions that a user may have open.
pub(super) const MAX_SESSIONS: usize = 500;
/// Sessions that all users may have open together: each takes some 100 KiB.
const MAX_SESSIONS_OF_ALL: usize = 2048;
/// How long a session stays open whose client says nothing after `initialize`.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a session is idle that gives way to another of its user. One that was just opened does not.
pub(super) const GIVES_WAY_AFTER: Duration = Duration::from_secs(60);
/// From so many users on is looked who has none open any more.
const FEW: usize = 64;

/// The sessions of all users. They do not exist for others than their user.
#[derive(Default)]
pub(super) struct OpenSessions {
    users: Mutex<Users>,
    /// Those whose clients have said nothing after `initialize`.
    silent: Arc<Mutex<HashSet<SessionId>>>,
    /// When the clients of sessions were heard last.
    heard: Arc<Mutex<HashMap<SessionId, Heard>>>,
}

struct Heard {
    at: Instant,
    /// Held by each request that is not answered yet, also where its client has gone away.
    under_way: UnderWay,
}

impl Heard {
    fn is_idle(&self, since: Duration) -> bool {
        Arc::strong_count(&self.under_way.0) == 1 && self.at.elapsed() >= since
    }
}

/// A request that runs, in the extensions of the HTTP request.
#[derive(Debug, Clone, Default)]
pub(super) struct UnderWay(Arc<()>);

#[derive(Default)]
struct Users {
    /// By tenant and user.
    all: HashMap<(String, String), OfUser>,
    /// With how many users those without sessions are forgotten.
    crowded: usize,
}

/// The sessions of one user. Each session holds them, and each request as long as it is served.
#[derive(Default)]
struct OfUser {
    open: Weak<LocalSessionManager>,
    opening: Arc<AtomicUsize>,
}

/// A session that is about to be opened.
pub(super) struct Opening {
    all: Arc<AtomicUsize>,
    /// How many others were, when it began.
    others: usize,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Opening {
    /// Whether there is room for it beside those that are open.
    pub(super) async fn is_allowed(&self, sessions: &LocalSessionManager) -> bool {
        sessions.sessions.read().await.len() + self.others < MAX_SESSIONS
    }
}

impl OpenSessions {
    /// The sessions of a user, and the one that is about to be opened where a request `opens` another.
    pub(super) fn of(&self, visitor: &Visitor, opens: bool) -> (Arc<LocalSessionManager>, Option<Opening>) {
        let owner = (visitor.registry.tenant().to_owned(), visitor.context.caller().user.clone());
        let mut users = self.users.lock();
        if users.all.len() >= users.crowded.max(FEW) {
            users.all.retain(|_, user| user.open.strong_count() > 0);
            users.crowded = 2 * users.all.len();
        }
        let user = users.all.entry(owner).or_default();
        let open = user.open.upgrade().unwrap_or_else(|| {
            let mut sessions = LocalSessionManager::default();
            sessions.session_config.keep_alive = Some(SESSION_KEPT);
            // Streams begin with their first message: many clients take an event without one for a broken message.
            sessions.session_config.sse_retry = None;
            let sessions = Arc::new(sessions);
            user.open = Arc::downgrade(&sessions);
            sessions
        });
        let opening = opens.then(|| {
            let others = user.opening.fetch_add(1, Ordering::SeqCst);
            Opening { all: Arc::clone(&user.opening), others }
        });
        (open, opening)
    }

    /// Notes a session that was just opened. It ends where its client says nothing more.
    pub(super) fn opened(&self, sessions: &Arc<LocalSessionManager>, id: SessionId) {
        self.silent.lock().insert(Arc::clone(&id));
        let mut heard = self.heard.lock();
        if heard.len() >= 2 * MAX_SESSIONS_OF_ALL {
            heard.retain(|_, heard| !heard.is_idle(SESSION_KEPT));
        }
        heard.insert(Arc::clone(&id), Heard { at: Instant::now(), under_way: UnderWay::default() });
        drop(heard);
        let (silent, known, sessions) =
            (Arc::clone(&self.silent), Arc::clone(&self.heard), Arc::downgrade(sessions));
        tokio::spawn(async move {
            tokio::time::sleep(READY_WITHIN).await;
            let is_silent = silent.lock().remove(&id);
            if is_silent && let Some(sessions) = sessions.upgrade() {
                known.lock().remove(&id);
                end(&sessions, &id).await;
            }
        });
    }

    /// Notes that the client of a session has said something. The request holds what is given until it is answered.
    pub(super) fn heard(&self, id: &str) -> UnderWay {
        self.silent.lock().remove(id);
        let mut heard = self.heard.lock();
        let Some(heard) = heard.get_mut(id) else { return UnderWay::default() };
        heard.at = Instant::now();
        heard.under_way.clone()
    }

    /// A client has ended its session.
    pub(super) fn closed(&self, id: &str) {
        self.heard.lock().remove(id);
    }

    /// Ends the one of a user's sessions that was idle for longest, and at least so long. Its client opens another when it is told that this
    /// one is gone. Whether there was one.
    pub(super) async fn give_way(&self, sessions: &LocalSessionManager, idle: Duration) -> bool {
        let open: Vec<SessionId> = sessions.sessions.read().await.keys().cloned().collect();
        let idle_longest = {
            let heard = self.heard.lock();
            let since = |id: SessionId| match heard.get(&id) {
                // It has come over from the program before.
                None => Some((None, id)),
                Some(heard) => heard.is_idle(idle).then_some((Some(heard.at), id)),
            };
            open.into_iter().filter_map(since).min_by_key(|(at, _)| *at)
        };
        let Some((_, id)) = idle_longest else { return false };
        self.closed(&id);
        end(sessions, &id).await;
        true
    }

    /// Makes room for one more: where there are as many as there may be, one of the user who has most is ended that is idle, or of the
    /// next. Whether there is room.
    pub(super) async fn make_room(&self) -> bool {
        let (mut total, mut users) = (0, Vec::new());
        for sessions in self.all() {
            let open = sessions.sessions.read().await.len();
            total += open;
            users.push((open, sessions));
        }
        if total < MAX_SESSIONS_OF_ALL {
            return true;
        }
        users.sort_by_key(|(open, _)| std::cmp::Reverse(*open));
        for (_, sessions) in users {
            if self.give_way(&sessions, Duration::ZERO).await {
                return true;
            }
        }
        false
    }

    /// Those of every user who has any.
    pub(super) fn all(&self) -> Vec<Arc<LocalSessionManager>> {
        let users = self.users.lock();
        users.all.values().filter_map(|user| user.open.upgrade()).collect()
    }
}

async fn end(sessions: &LocalSessionManager, id: &SessionId) {
    if let Err(cause) = sessions.close_session(id).await {
        tracing::debug!(%cause, "session_not_ended");
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{Caller, Permission, Registry};

    use super::*;

    #[test]
    fn n10_users_without_open_sessions_are_forgotten_and_the_others_kept() {
        let (registry, open) =
            (Registry::builder().without_compiled().build().unwrap(), OpenSessions::default());
        let of = |user: usize| {
            let context = registry.context(Caller::new(user.to_string(), Permission::User));
            open.of(&Visitor { registry: registry.clone(), context, session: None }, false).0
        };
        let held: Vec<_> = (0..10).map(&of).collect();
        for user in 10..10_000 {
            of(user);
        }
        assert!(open.users.lock().all.len() <= 2 * FEW);
        for (user, sessions) in held.iter().enumerate() {
            assert!(Arc::ptr_eq(sessions, &of(user)), "{user}");
        }
        assert_eq!(open.all().len(), held.len());
    }

    #[tokio::test(start_paused = true)]
    async fn n10_a_session_whose_client_says_nothing_after_initialize_ends() {
        let (open, sessions) = (OpenSessions::default(), Arc::new(LocalSessionManager::default()));
        let (silent, _one) = sessions.create_session().await.unwrap();
        let (used, _other) = sessions.create_session().await.unwrap();
        open.opened(&sessions, Arc::clone(&silent));
        open.opened(&sessions, Arc::clone(&used));
        open.heard(&used);
        tokio::time::sleep(READY_WITHIN / 2).await;
        assert_eq!(sessions.sessions.read().await.len(), 2);
        tokio::time::sleep(READY_WITHIN).await;
        let left: Vec<_> = sessions.sessions.read().await.keys().cloned().collect();
        assert_eq!(left, [used]);
        assert!(open.silent.lock().is_empty());
    }

    #[tokio::test]
    async fn n10_where_all_users_have_too_many_sessions_one_of_who_has_most_is_ended() {
        let (registry, open) =
            (Registry::builder().without_compiled().build().unwrap(), OpenSessions::default());
        let of = |user: &str| {
            let context = registry.context(Caller::new(user, Permission::User));
            open.of(&Visitor { registry: registry.clone(), context, session: None }, false).0
        };
        let (hoarder, other) = (of("hoarder"), of("other"));
        let mut held = Vec::new();
        for sessions in std::iter::once(&other).chain(std::iter::repeat_n(&hoarder, MAX_SESSIONS_OF_ALL - 2))
        {
            held.push(sessions.create_session().await.unwrap());
        }
        open.make_room().await;
        assert_eq!(
            hoarder.sessions.read().await.len(),
            MAX_SESSIONS_OF_ALL - 2,
            "there is room for one more"
        );
        held.push(hoarder.create_session().await.unwrap());
        open.make_room().await;
        assert_eq!(hoarder.sessions.read().await.len(), MAX_SESSIONS_OF_ALL - 2);
        assert_eq!(other.sessions.read().await.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn n10_the_session_that_was_idle_for_longest_gives_way_and_none_with_a_running_call() {
        let (open, sessions) = (OpenSessions::default(), Arc::new(LocalSessionManager::default()));
        let (mut held, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let (id, transport) = sessions.create_session().await.unwrap();
            open.opened(&sessions, Arc::clone(&id));
            open.heard(&id);
            held.push(transport);
            ids.push(id);
        }
        let running = open.heard(&ids[0]);
        tokio::time::advance(GIVES_WAY_AFTER / 2).await;
        drop(open.heard(&ids[1]));
        assert!(!open.give_way(&sessions, GIVES_WAY_AFTER).await, "none is idle for so long");
        tokio::time::advance(GIVES_WAY_AFTER / 2).await;
        drop(open.heard(&ids[3]));
        assert!(open.give_way(&sessions, GIVES_WAY_AFTER).await);
        let left = async || sessions.sessions.read().await.keys().cloned().collect::<HashSet<_>>();
        assert_eq!(left().await, HashSet::from([0, 1, 3].map(|number| Arc::clone(&ids[number]))));
        tokio::time::advance(GIVES_WAY_AFTER).await;
        assert!(
            open.give_way(&sessions, GIVES_WAY_AFTER).await
                && open.give_way(&sessions, GIVES_WAY_AFTER).await
        );
        assert!(!open.give_way(&sessions, GIVES_WAY_AFTER).await, "its call runs");
        assert_eq!(left().await, HashSet::from([Arc::clone(&ids[0])]));
        drop(running);
        assert!(open.give_way(&sessions, GIVES_WAY_AFTER).await);
        assert!(open.heard.lock().is_empty());
    }
}
