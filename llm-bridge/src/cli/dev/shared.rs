//! What one program leaves to the next.

use std::{collections::VecDeque, io, os::unix::net::UnixDatagram};

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};

use super::program::Tools;
use crate::{
    build::Build,
    takeover::{Begin, Handed, Message, Session},
};

/// The most MCP sessions that are kept; the oldest are forgotten first.
const MAX_SESSIONS: usize = 4096;

/// Messages that wait to be passed on.
const MAX_MESSAGES: usize = 64;

/// What one program leaves to the next.
pub(super) struct Shared {
    /// The two ends of the queue of connections.
    pub(super) taking: UnixDatagram,
    pub(super) putting: UnixDatagram,
    /// The state of the build, for every program.
    pub(super) build: watch::Sender<Build>,
    /// Messages for programs that finish what runs.
    pub(super) messages: broadcast::Sender<Message>,
    sessions: Mutex<VecDeque<Session>>,
}

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        let (taking, putting) = Handed::new_ends()?;
        Ok(Self {
            messages: broadcast::Sender::new(MAX_MESSAGES),
            taking,
            putting,
            build: watch::Sender::new(Build::Current),
            sessions: Mutex::default(),
        })
    }

    fn sessions<T>(&self, run: impl FnOnce(&mut VecDeque<Session>) -> T) -> T {
        run(&mut self.sessions.lock())
    }

    /// What a program is told first; `before` is the one that still serves.
    pub(super) fn begin(&self, before: Option<&Tools>) -> Begin {
        let sessions = self.sessions(|sessions| sessions.iter().cloned().collect());
        let faults = before.map(|tools| tools.faults.clone()).unwrap_or_default();
        Begin { succeeds: before.is_some(), faults, sessions, build: self.build.borrow().clone() }
    }

    pub(super) fn opened(&self, session: Session) {
        self.sessions(|sessions| {
            if let Some(known) = sessions.iter_mut().find(|known| known.id == session.id) {
                *known = session;
                return;
            }
            if sessions.len() >= MAX_SESSIONS {
                sessions.pop_front();
            }
            sessions.push_back(session);
        });
    }

    pub(super) fn ended(&self, id: &str) {
        self.sessions(|sessions| sessions.retain(|session| session.id != id));
    }
}

#[cfg(test)]
mod tests {
    use registry_core::flow::{HasRead, Reads};

    use super::*;

    #[test]
    fn b20_the_next_program_knows_what_a_session_has_read() {
        let shared = Shared::new().unwrap();
        let session = |id: &str, read: &HasRead| Session {
            id: id.to_owned(),
            tenant: "default".to_owned(),
            user: "ada".to_owned(),
            state: serde_json::Value::Null,
            read: read.clone(),
        };
        let (nothing, mut read) = (HasRead::default(), HasRead::default());
        read.note(Reads::PRIVATE, "inbox");
        for (id, read) in [("a", &nothing), ("b", &nothing), ("a", &read)] {
            shared.opened(session(id, read));
        }
        let begin = serde_json::to_string(&shared.begin(None)).unwrap();
        let Begin { sessions, .. } = serde_json::from_str(&begin).unwrap();
        let read_by: Vec<(&str, &HasRead)> =
            sessions.iter().map(|session| (session.id.as_str(), &session.read)).collect();
        assert_eq!(read_by, [("a", &read), ("b", &nothing)]);
    }
}
