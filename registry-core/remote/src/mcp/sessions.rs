//! Connections to a server on which users have accounts: one for each account, as a server ties a session to whose it is.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use registry_core::{ToolContext, ToolError};
use tokio::time::Instant;

use super::{
    bounded,
    call::Live,
    oauth::{Account, Bearer, Connections, Who},
    session::{Endpoint, Session},
};

/// How many accounts of a server are connected at once.
const MAX_SESSIONS: usize = 256;
/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(300);

/// A connection with an account.
pub(super) struct Opened {
    pub(super) live: Live,
    pub(super) bearer: Arc<Bearer>,
    /// Closed when this is dropped. Locked by nobody.
    _session: Mutex<Session>,
}

/// A place for the connection of one account.
#[derive(Default)]
struct Seat {
    /// Held while it is connected, so that it is once.
    opened: tokio::sync::Mutex<Option<Arc<Opened>>>,
    used: Mutex<Option<Instant>>,
}

/// The places of a server's accounts.
#[derive(Default)]
struct Seats(Mutex<HashMap<Who, Arc<Seat>>>);

impl Seats {
    fn of(&self, who: &Who) -> Arc<Seat> {
        let mut seats = self.0.lock();
        let now = Instant::now();
        let idle_since = |seat: &Arc<Seat>| match Arc::strong_count(seat) {
            1 => seat.used.lock().map(|used| now.duration_since(used)),
            _ => None,
        };
        seats.retain(|_, seat| idle_since(seat).is_none_or(|idle| idle < IDLE));
        if seats.len() >= MAX_SESSIONS && !seats.contains_key(who) {
            let longest = seats.iter().filter_map(|(who, seat)| Some((idle_since(seat)?, who.clone())));
            if let Some((_, longest)) = longest.max_by_key(|(idle, _)| *idle) {
                seats.remove(&longest);
            }
        }
        Arc::clone(seats.entry(who.clone()).or_default())
    }
}

/// The connections of a server's accounts.
pub(super) struct Sessions {
    name: Arc<str>,
    endpoint: Arc<Endpoint>,
    pub(super) connections: Connections,
    pub(super) account: Arc<Account>,
    limit: Duration,
    seats: Seats,
}

impl Sessions {
    pub(super) fn new(
        name: Arc<str>,
        endpoint: Arc<Endpoint>,
        connections: Connections,
        account: Arc<Account>,
        limit: Duration,
    ) -> Self {
        Self { name, endpoint, connections, account, limit, seats: Seats::default() }
    }

    /// What opens the account with which tools are listed; `None` where nobody has one.
    pub(super) async fn lister(&self) -> Option<Arc<Bearer>> {
        let who = self.connections.lister(&self.account).await?;
        Some(Arc::new(self.connections.bearer(&self.account, who)))
    }

    /// The connection for a call.
    ///
    /// # Errors
    /// Where the user has to let this server in first, or the server is not reached.
    pub(super) async fn of(&self, context: &ToolContext) -> Result<Arc<Opened>, ToolError> {
        let who = self.connections.who(&self.account, context);
        let seat = self.seats.of(&who);
        let mut opened = seat.opened.lock().await;
        *seat.used.lock() = Some(Instant::now());
        let stands =
            |opened: &&Arc<Opened>| !opened.live.peer.is_transport_closed() && !opened.bearer.is_refused();
        if let Some(stands) = opened.as_ref().filter(stands) {
            // Also where another server has ended it meanwhile.
            match stands.bearer.token(None).await {
                Ok(_) if !stands.bearer.is_other() => return Ok(Arc::clone(stands)),
                Ok(_) => {}
                Err(_) => return Err(self.refusal(&stands.bearer, None)),
            }
        }
        *opened = None;
        let bearer = Arc::new(self.connections.bearer(&self.account, who));
        if let Err(fault) = bearer.token(None).await {
            return Err(self.refusal(&bearer, Some(format!("{fault:?}"))));
        }
        let (endpoint, name, used, limit) =
            (Arc::clone(&self.endpoint), Arc::clone(&self.name), Arc::clone(&bearer), self.limit);
        // Whatever it sends is parsed there.
        let connecting = bounded::threads()
            .spawn(async move { tokio::time::timeout(limit, endpoint.connect(&name, Some(used))).await });
        let session = match connecting.await {
            Ok(Ok(Ok(session))) => session,
            Ok(Ok(Err(fault))) => return Err(self.refusal(&bearer, Some(fault))),
            Ok(Err(_)) => return Err(self.refusal(&bearer, Some("it did not answer in time".to_owned()))),
            Err(fault) => return Err(self.refusal(&bearer, Some(fault.to_string()))),
        };
        let new = Arc::new(Opened { live: session.live.clone(), bearer, _session: Mutex::new(session) });
        *opened = Some(Arc::clone(&new));
        Ok(new)
    }

    /// Why a call was not made, or not taken.
    pub(super) fn refusal(&self, bearer: &Bearer, cause: Option<String>) -> ToolError {
        if bearer.is_refused() {
            return self.connections.ask(&self.account);
        }
        let cause = bearer.without_tokens(cause.unwrap_or_default());
        ToolError::unavailable(format!(
            "the MCP server {} was not reached with the user's account",
            self.name
        ))
        .with_detail(format!("the MCP server {} was not reached with the user's account: {cause}", self.name))
        .with_feedback("The service behind the tool is down. Try again later, or do without it.")
    }

    /// Leaves all.
    pub(super) fn leave(&self) {
        self.seats.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn b21_so_many_accounts_are_connected_at_once_and_the_one_idle_for_longest_gives_way() {
        let (seats, who) = (Seats::default(), |number: usize| Who::of("default", &number.to_string()));
        let come = |number: usize| {
            let seat = seats.of(&who(number));
            *seat.used.lock() = Some(Instant::now());
            seat
        };
        let busy = come(0);
        for number in 1..MAX_SESSIONS {
            drop(come(number));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let has = |number: usize| seats.0.lock().contains_key(&who(number));
        assert_eq!(seats.0.lock().len(), MAX_SESSIONS);
        drop(come(1));
        drop(come(MAX_SESSIONS));
        assert_eq!(seats.0.lock().len(), MAX_SESSIONS);
        assert!(has(0), "one that is used stays");
        assert!(has(1) && !has(2) && has(3), "the one idle for longest gives way");
        // Later all are closed that nobody uses.
        tokio::time::advance(IDLE).await;
        drop(come(7));
        assert!(seats.0.lock().len() == 2 && has(0) && has(7));
        drop(busy);
    }
}
