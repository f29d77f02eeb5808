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

use crate::mcp::Visitor;

/// How long an idle session stays open. A chat may be idle for a while, and few clients open a new session.
const SESSION_KEPT: Duration = Duration::from_secs(3600);
/// Sessions that a user may have open.
pub(super) const MAX_SESSIONS: usize = 500;
/// Sessions that all users may have open together: each takes some 100 KiB.
const MAX_SESSIONS_OF_ALL: usize = 2048;
/// How long a session stays open whose client says nothing after `initialize`.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// From so many users on is looked who has none open any more.
const FEW: usize = 64;

/// The sessions of all users. They do not exist for others than their user.
#[derive(Default)]
pub(super) struct OpenSessions {
    users: Mutex<Users>,
    /// Those whose clients have said nothing after `initialize`.
    silent: Arc<Mutex<HashSet<SessionId>>>,
}

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
        let (silent, sessions) = (Arc::clone(&self.silent), Arc::downgrade(sessions));
        tokio::spawn(async move {
            tokio::time::sleep(READY_WITHIN).await;
            let is_silent = silent.lock().remove(&id);
            if is_silent && let Some(sessions) = sessions.upgrade() {
                end(&sessions, &id).await;
            }
        });
    }

    /// Notes that the client of a session has said something.
    pub(super) fn heard(&self, id: &str) {
        self.silent.lock().remove(id);
    }

    /// Makes room for one more: where there are as many as there may be, one of the user who has most is ended. Its client opens another when
    /// it is told that this one is gone.
    pub(super) async fn make_room(&self) {
        let (mut total, mut most) = (0, (0, None));
        for sessions in self.all() {
            let open = sessions.sessions.read().await.len();
            total += open;
            if open > most.0 {
                most = (open, Some(sessions));
            }
        }
        if total >= MAX_SESSIONS_OF_ALL
            && let (_, Some(sessions)) = most
        {
            let any = sessions.sessions.read().await.keys().next().cloned();
            if let Some(id) = any {
                end(&sessions, &id).await;
            }
        }
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
}
