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
