//! What the calls of MCP clients have read. A session is one turn; without one, a call stands for itself, but for what its client says.

use std::{collections::HashMap, sync::Arc, time::Duration};

use moka::sync::Cache;
use parking_lot::Mutex;
use registry_core::flow::{HasRead, Reads, TurnFlow};
use rmcp::model::MetaObject;
use serde_json::{Map, Value};
use toolrack_remote::mcp::READS;

use super::Visitor;

/// How long a user is remembered who makes no calls.
const TIME_TO_IDLE: Duration = Duration::from_secs(3600);
/// How many users are remembered.
const MAX_USERS: u64 = 10_000;
/// How many sessions of a user are remembered that have read something. What others have read is not known from then on, and counts as all.
const MAX_SESSIONS: usize = 256;
/// What a client says it has read comes from here.
const CLIENT: &str = "the client";
/// What a session has read that is not remembered.
const FORGOTTEN: &str = "an earlier call";

/// What sessions have read, by tenant and user: nobody's push out another's. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SessionsRead(Cache<(String, String), Arc<Mutex<OfUser>>>);

/// What the sessions of a user have read.
#[derive(Debug, Default)]
struct OfUser {
    sessions: HashMap<Arc<str>, HasRead>,
    /// Whether there were more than are remembered.
    has_forgotten: bool,
}

impl OfUser {
    fn before(&self, session: &str) -> HasRead {
        match self.sessions.get(session) {
            Some(read) => read.clone(),
            None => {
                let mut read = HasRead::default();
                if self.has_forgotten {
                    read.note(Reads::BOTH, FORGOTTEN);
                }
                read
            }
        }
    }

    fn note(&mut self, session: &Arc<str>, reads: Reads, tool: &str) {
        if self.sessions.len() < MAX_SESSIONS || self.sessions.contains_key(session) {
            self.sessions.entry(Arc::clone(session)).or_default().note(reads, tool);
        } else {
            self.has_forgotten = true;
        }
    }
}

impl Default for SessionsRead {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(MAX_USERS).time_to_idle(TIME_TO_IDLE).build())
    }
}

impl SessionsRead {
    /// What was read before a call of this visitor, whose request has such `_meta`.
    pub(super) fn before(&self, visitor: &Visitor, meta: &Map<String, Value>) -> TurnFlow {
        let known = visitor.session.as_ref().and_then(|session| {
            let user = self.0.get(&user_of(visitor))?;
            let user = user.lock();
            Some(user.before(session))
        });
        let mut read = known.unwrap_or_default();
        if let Some(said) = meta.get(READS) {
            // What is not understood says that something was read.
            let said = said.as_str().and_then(|said| said.parse().ok());
            read.note(said.unwrap_or(Reads::BOTH), CLIENT);
        }
        TurnFlow::after(read)
    }

    /// Takes note of what a call has read.
    pub(super) fn note(&self, visitor: &Visitor, reads: Reads, tool: &str) {
        let Some(session) = visitor.session.as_ref().filter(|_| !reads.is_nothing()) else { return };
        let user = self.0.get_with(user_of(visitor), Arc::default);
        user.lock().note(session, reads, tool);
    }
}

fn user_of(visitor: &Visitor) -> (String, String) {
    (visitor.registry.tenant().to_owned(), visitor.context.caller().user.clone())
}

/// Says in the `_meta` of a result what it holds.
pub(super) fn tell(reads: Reads, meta: &mut Option<MetaObject>) {
    if !reads.is_nothing() {
        let meta = meta.get_or_insert_with(|| MetaObject(Map::new()));
        meta.0.insert(READS.to_owned(), reads.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b20_what_a_session_has_read_is_never_forgotten_for_nothing() {
        let mut user = OfUser::default();
        let session = |number: usize| Arc::<str>::from(number.to_string());
        for number in 0..MAX_SESSIONS {
            user.note(&session(number), Reads::PRIVATE, "inbox");
        }
        assert!(user.before("new").is_empty());
        user.note(&session(MAX_SESSIONS), Reads::PRIVATE, "inbox");
        user.note(&session(0), Reads::UNTRUSTED, "fetch");
        assert_eq!(user.sessions.len(), MAX_SESSIONS);
        assert!(!user.before("0").is_empty() && !user.before("1").is_empty());
        for forgotten in [session(MAX_SESSIONS), session(MAX_SESSIONS + 1)] {
            assert!(!user.before(&forgotten).is_empty());
        }
    }
}
