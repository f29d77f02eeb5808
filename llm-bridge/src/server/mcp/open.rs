//! The sessions that are open, by user. A user without any takes no room.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

use crate::mcp::Visitor;

/// How long an idle session stays open. A chat may be idle for a while, and few clients open a new session.
const SESSION_KEPT: Duration = Duration::from_secs(3600);
/// Sessions that a user may have open.
pub(super) const MAX_SESSIONS: usize = 500;
/// From so many users on is looked who has none open any more.
const FEW: usize = 64;

/// The sessions of all users. They do not exist for others than their user.
#[derive(Default)]
pub(super) struct OpenSessions(Mutex<Users>);

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
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if users.all.len() >= users.crowded.max(FEW) {
            users.all.retain(|_, user| user.open.strong_count() > 0);
            users.crowded = 2 * users.all.len();
        }
        let user = users.all.entry(owner).or_default();
        let open = user.open.upgrade().unwrap_or_else(|| {
            let mut sessions = LocalSessionManager::default();
            sessions.session_config.keep_alive = Some(SESSION_KEPT);
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

    /// Those of every user who has any.
    pub(super) fn all(&self) -> Vec<Arc<LocalSessionManager>> {
        let users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        users.all.values().filter_map(|user| user.open.upgrade()).collect()
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
        assert!(open.0.lock().unwrap().all.len() <= 2 * FEW);
        for (user, sessions) in held.iter().enumerate() {
            assert!(Arc::ptr_eq(sessions, &of(user)), "{user}");
        }
        assert_eq!(open.all().len(), held.len());
    }
}
