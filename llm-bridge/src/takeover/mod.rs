//! What the programs that `toolrack dev` starts one after another have in common: the listening socket, open connections, MCP sessions, and
//! the state of the build.
//!
//! A program gets them from its supervisor over a socket that is its standard input. First come the sockets themselves, then lines of JSON,
//! in both directions. The supervisor's end of it closed means that the program stops.
//!
//! Without the command line, or where no socket goes from one process to another, there is no supervisor, and so no [`Takeover`].

#[cfg_attr(not(all(unix, feature = "cli")), path = "none.rs")]
mod handed;
#[cfg(all(unix, feature = "cli"))]
mod join;
#[cfg(all(unix, feature = "cli"))]
mod sockets;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use registry_core::flow::{HasRead, Reads};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use handed::Handed;
#[cfg(all(unix, feature = "cli"))]
pub(crate) use join::{SUPERVISED, hand_out};

use crate::build::Build;

/// The most MCP sessions that are known; the oldest are forgotten first.
const MAX_SESSIONS: usize = 4096;

/// What the supervisor says to a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToProgram {
    /// The first line.
    Begin(Begin),
    /// The build has another state.
    Build(Build),
    /// Another program accepts the connections now: finish what runs.
    Finish,
    /// A message that may be for a call that runs here has come to another program.
    Message(Message),
}

/// What a program says to the supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToSupervisor {
    /// Of its tools these are off, with the reason, and files of tools have these faults. Comes before `Ready`.
    Tools { off: BTreeMap<String, String>, faults: Vec<String> },
    /// It accepts connections, and has these tools.
    Ready { tools: Vec<String> },
    /// It cannot start.
    Failed(String),
    /// Another program answers every request that comes from now on.
    GivenWay,
    /// A client has opened an MCP session, or a call of it has read something.
    Session(Session),
    /// A client has ended it.
    SessionEnded(String),
    /// A message that may be for a call that runs in a program before has come here.
    Message(Message),
}

/// A message of an MCP client that is no request: an answer to one of the server's, or a notification.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) session: String,
    /// The message as it came, which is JSON.
    pub(crate) text: String,
}

/// What a program knows from its predecessors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// Whether another program still serves.
    pub(crate) succeeds: bool,
    /// The faults in files of tools that the other program has.
    pub(crate) faults: Vec<String>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) build: Build,
}

/// An MCP session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) user: String,
    /// How it was opened.
    pub(crate) state: serde_json::Value,
    /// What its calls have read.
    #[serde(default)]
    pub(crate) read: HasRead,
}

/// A server's place among those that `toolrack dev` starts one after another.
#[derive(Clone, derive_more::Debug)]
#[debug("Takeover")]
pub struct Takeover(Arc<Shared>);

struct Shared {
    succeeds: bool,
    /// The faults in files of tools that the program before has.
    faults: Vec<String>,
    handed: Handed,
    build: watch::Receiver<Build>,
    sessions: Mutex<Sessions>,
    said: mpsc::Sender<ToSupervisor>,
    messages: Mutex<Option<mpsc::Receiver<Message>>>,
    /// Another program accepts the connections.
    finish: CancellationToken,
    /// The supervisor has ended.
    stop: CancellationToken,
}

/// The MCP sessions by their ids.
#[derive(Default)]
struct Sessions {
    by_id: HashMap<String, Known>,
}

struct Known {
    session: Session,
    /// Whether it was opened in a program before.
    is_older: bool,
    /// What of it still lies with the program before.
    elsewhere: Elsewhere,
}

/// What of a session still lies with the program before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    /// All.
    All,
    /// The stream that the client listens on.
    Stream,
    /// Nothing.
    Nothing,
}

impl Takeover {
    pub(crate) fn succeeds(&self) -> bool {
        self.0.succeeds
    }

    pub(crate) fn handed(&self) -> &Handed {
        &self.0.handed
    }

    pub(crate) fn build(&self) -> watch::Receiver<Build> {
        self.0.build.clone()
    }

    /// Waits until another program accepts the connections.
    pub(crate) async fn succeeded(&self) {
        self.0.finish.cancelled().await;
    }

    /// Whether another program accepts the connections.
    pub(crate) fn is_succeeded(&self) -> bool {
        self.0.finish.is_cancelled()
    }

    /// Cancelled when the supervisor has ended.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.0.stop.clone()
    }

    /// Fails with the faults in files of tools that the program before does not have: it goes on with its tools.
    ///
    /// # Errors
    /// The faults, a line each.
    pub(crate) fn check_faults(&self, faults: impl Iterator<Item = String>) -> Result<(), String> {
        let new: Vec<String> =
            faults.filter(|fault| self.0.succeeds && !self.0.faults.contains(fault)).collect();
        if new.is_empty() { Ok(()) } else { Err(new.join("\n")) }
    }

    /// Says that this server accepts connections.
    pub(crate) async fn ready(&self, tools: Vec<String>) {
        self.say(ToSupervisor::Ready { tools }).await;
    }

    /// Says that another program answers every request that comes from now on.
    pub(crate) async fn given_way(&self) {
        self.say(ToSupervisor::GivenWay).await;
    }

    /// Without a supervisor there is nobody to tell, and the program stops.
    pub(crate) async fn say(&self, line: ToSupervisor) {
        let _ = self.0.said.send(line).await;
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.sessions.lock()
    }

    /// The MCP session of that id, where it is that user's.
    pub(crate) fn session(&self, id: &str, tenant: &str, user: &str) -> Option<serde_json::Value> {
        let sessions = self.sessions();
        let session = &sessions.by_id.get(id)?.session;
        (session.tenant == tenant && session.user == user).then(|| session.state.clone())
    }

    /// What the calls of a session have read, those in programs before included.
    pub(crate) fn read_in(&self, id: &str) -> HasRead {
        self.sessions().by_id.get(id).map(|known| known.session.read.clone()).unwrap_or_default()
    }

    /// Keeps what a call of a session has read, for the next program.
    pub(crate) async fn has_read(&self, id: &str, reads: Reads, tool: &str) {
        let changed = {
            let mut sessions = self.sessions();
            let Some(Known { session, .. }) = sessions.by_id.get_mut(id) else { return };
            let before = session.read.clone();
            session.read.note(reads, tool);
            (session.read != before).then(|| session.clone())
        };
        if let Some(session) = changed {
            self.say(ToSupervisor::Session(session)).await;
        }
    }

    /// What of a session still lies with the program before.
    pub(crate) fn elsewhere(&self, id: &str) -> Elsewhere {
        self.sessions().by_id.get(id).map_or(Elsewhere::Nothing, |known| known.elsewhere)
    }

    /// Whether a session was opened in a program before, in which calls of it may still run.
    pub(crate) fn is_older(&self, id: &str) -> bool {
        self.sessions().by_id.get(id).is_some_and(|known| known.is_older)
    }

    /// Gives a message to the programs before.
    pub(crate) async fn pass_back(&self, session: &str, text: &str) {
        let message = Message { session: session.to_owned(), text: text.to_owned() };
        self.say(ToSupervisor::Message(message)).await;
    }

    /// The messages that have come to programs after this one. To be taken once.
    pub(crate) fn messages(&self) -> Option<mpsc::Receiver<Message>> {
        self.0.messages.lock().take()
    }

    /// Notes that less of a session lies with the program before.
    pub(crate) fn came_over(&self, id: &str, elsewhere: Elsewhere) {
        if let Some(known) = self.sessions().by_id.get_mut(id) {
            known.elsewhere = elsewhere;
        }
    }

    /// Keeps a session that a client has opened here, for the next program.
    pub(crate) async fn opened(&self, session: Session) {
        let known = Known { session: session.clone(), is_older: false, elsewhere: Elsewhere::Nothing };
        {
            let mut sessions = self.sessions();
            // The supervisor knows which are the oldest; here it only must not grow without end.
            if sessions.by_id.len() < MAX_SESSIONS {
                sessions.by_id.insert(session.id.clone(), known);
            }
        }
        self.say(ToSupervisor::Session(session)).await;
    }

    pub(crate) async fn ended(&self, id: &str) {
        self.sessions().by_id.remove(id);
        self.say(ToSupervisor::SessionEnded(id.to_owned())).await;
    }
}
