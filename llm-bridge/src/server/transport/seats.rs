//! How many connections there are, and whose: who sends nothing, or never the end of a request, gives way to who does.
//!
//! A connection that waits for a request costs little, and everybody may have one, also without a key; where there are as many as may be,
//! the one gives way that has waited longest, those first on which no valid key has come; where none waits, the oldest whose request under
//! way has no key. Whose request has one stays. A user has a share of these, and some more connections are there for health and for
//! admins, which nobody else can take.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::http::StatusCode;
use parking_lot::Mutex;
use registry_core::Permission;
use tokio_util::sync::CancellationToken;

use super::handover::Requests;
use crate::server::{callers::identity::Identity, requests::api_error::ApiError};

/// The most connections where the system lets the program have many more files.
pub const MAX_CONNECTIONS: usize = 4096;
/// Which part of the connections one user may have requests on at once.
const SHARE_OF_USER: usize = 4;
/// Which part of the connections there are besides, for health and for admins.
const RESERVED: usize = 32;

/// The connections of a server.
#[derive(Debug)]
pub(in crate::server) struct Seats {
    most: usize,
    next: AtomicUsize,
    taken: Mutex<HashMap<usize, (Arc<Requests>, CancellationToken)>>,
}

/// A connection's place, as long as it is held.
pub(in crate::server) struct Seat {
    seats: Arc<Seats>,
    id: usize,
    given_up: CancellationToken,
}

impl Seats {
    pub(in crate::server) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), next: AtomicUsize::new(0), taken: Mutex::default() })
    }

    /// A place for a connection with these requests; `None` where all have requests with a key under way, those that are kept for admins too.
    pub(in crate::server) fn take(self: &Arc<Self>, requests: Arc<Requests>) -> Option<Seat> {
        let mut taken = self.taken.lock();
        if taken.len() >= self.most {
            let priorities = taken.iter().filter_map(|(id, (requests, _))| Some((requests.priority()?, *id)));
            match priorities.min() {
                Some((_, id)) => {
                    if let Some((_, given_up)) = taken.remove(&id) {
                        given_up.cancel();
                    }
                }
                None if taken.len() < self.most + self.most.div_ceil(RESERVED) => requests.reserve(),
                None => return None,
            }
        }
        requests.note_idle();
        let (id, given_up) = (self.next.fetch_add(1, Relaxed), CancellationToken::new());
        taken.insert(id, (requests, given_up.clone()));
        Some(Seat { seats: Arc::clone(self), id, given_up })
    }
}

impl Seat {
    /// Waits until the connection has to give way.
    pub(in crate::server) async fn given_up(&self) {
        self.given_up.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken.lock().remove(&self.id);
    }
}

/// How large the bodies of all requests under way may be together, in bytes: a request is in memory until it is answered.
const MAX_BODIES: usize = 1 << 30;
/// The same of one user.
const MAX_BODIES_OF_USER: usize = 256 << 20;

/// The requests that users have under way.
#[derive(Debug)]
pub(in crate::server) struct Shares {
    most: usize,
    under_way: Mutex<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    bytes: usize,
    /// By tenant and id.
    users: HashMap<(String, String), Taken>,
}

/// What one user has.
#[derive(Debug, Default)]
struct Taken {
    requests: usize,
    bytes: usize,
}

/// A request's share, as long as it is held.
#[derive(Debug)]
pub(in crate::server) struct UserShare {
    shares: Arc<Shares>,
    user: (String, String),
    /// An admin has any number of requests under way, and so many bytes beside those of all users.
    is_admin: bool,
    bytes: usize,
}

impl Shares {
    /// The shares of a server with so many connections.
    pub(in crate::server) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self { most: connections.div_ceil(SHARE_OF_USER), under_way: Mutex::default() })
    }

    /// Notes that a request has come from somebody who may send some, and refuses it where the user has too many under way.
    ///
    /// # Errors
    /// 429 and 503, which say so.
    pub(in crate::server) fn enter(
        self: &Arc<Self>,
        identity: &Identity,
        requests: &Requests,
    ) -> Result<(), ApiError> {
        let is_admin = identity.caller.level >= Permission::Admin;
        if !is_admin && requests.are_reserved() {
            let message = "the server has as many requests under way as it may; try again";
            let busy = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_busy", message);
            return Err(busy.retry_after(1));
        }
        let user = (identity.registry.tenant().to_owned(), identity.caller.user.to_string());
        let share = self.take(user, is_admin).ok_or_else(|| {
            let message = format!("{} requests of yours are under way; wait for some to end", self.most);
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", message).retry_after(1)
        })?;
        requests.hold(Some(share));
        Ok(())
    }

    fn take(self: &Arc<Self>, user: (String, String), is_admin: bool) -> Option<UserShare> {
        let mut under_way = self.under_way.lock();
        let taken = under_way.users.entry(user.clone()).or_default();
        if !is_admin && taken.requests >= self.most {
            return None;
        }
        taken.requests += 1;
        Some(UserShare { shares: Arc::clone(self), user, is_admin, bytes: 0 })
    }
}

impl UserShare {
    /// Whether so many more bytes of the request's body may come.
    pub(in crate::server) fn receive(&mut self, bytes: usize) -> bool {
        let mut under_way = self.shares.under_way.lock();
        let UnderWay { bytes: of_all, users } = &mut *under_way;
        let Some(taken) = users.get_mut(&self.user) else { return false };
        let of_users = if self.is_admin { 0 } else { bytes };
        let may_come =
            (self.is_admin || *of_all + bytes <= MAX_BODIES) && taken.bytes + bytes <= MAX_BODIES_OF_USER;
        if may_come {
            *of_all += of_users;
            taken.bytes += bytes;
            self.bytes += bytes;
        }
        may_come
    }
}

impl Drop for UserShare {
    fn drop(&mut self) {
        let mut under_way = self.shares.under_way.lock();
        let UnderWay { bytes, users } = &mut *under_way;
        *bytes -= if self.is_admin { 0 } else { self.bytes };
        if let Some(taken) = users.get_mut(&self.user) {
            taken.bytes -= self.bytes;
            taken.requests -= 1;
            if taken.requests == 0 {
                users.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::server::transport::handover::Came;

    /// Of a connection that came long ago.
    fn waiting() -> Arc<Requests> {
        let mut requests = Requests::default();
        requests.came = Came(Instant::now().checked_sub(Duration::from_secs(2)).unwrap());
        Arc::new(requests)
    }

    #[test]
    fn a33_a_connection_that_has_just_come_can_send_its_request() {
        let seats = Seats::new(2);
        let (busy, idle) = (waiting(), waiting());
        busy.begin();
        idle.hold(None);
        let [busy, idle] = [busy, idle].map(|requests| seats.take(requests).unwrap());
        let [first, second, third] = [(); 3].map(|()| seats.take(Arc::default()).unwrap());
        assert!(idle.given_up.is_cancelled() && busy.given_up.is_cancelled());
        // Where all have just come, the first of them.
        let given_up = [first, second, third].map(|seat| seat.given_up.is_cancelled());
        assert_eq!(given_up, [true, false, false]);
    }

    #[test]
    fn a6_who_has_waited_longest_without_a_key_gives_way() {
        let seats = Seats::new(3);
        let requests: Vec<Arc<Requests>> = (0..6).map(|_| waiting()).collect();
        let take = |at: usize| seats.take(Arc::clone(&requests[at]));
        let [first, second, third] = [0, 1, 2].map(|at| take(at).unwrap());
        requests[0].hold(None);
        let fourth = take(3).unwrap();
        assert_eq!([&first, &second, &third].map(|seat| seat.given_up.is_cancelled()), [false, true, false]);
        for busy in [0, 2, 3] {
            requests[busy].begin();
            requests[busy].hold(None);
        }
        let reserved = take(4).unwrap();
        assert!(requests[4].are_reserved() && !requests[3].are_reserved());
        // That one waits for a request, and so gives way.
        assert!(take(5).is_some() && reserved.given_up.is_cancelled());
        drop((first, second, third, fourth));
        assert!(seats.taken.lock().is_empty());
    }

    #[test]
    fn a33_a_request_without_a_key_gives_way_after_all_that_wait_for_one() {
        let seats = Seats::new(3);
        let requests: Vec<Arc<Requests>> = (0..6).map(|_| waiting()).collect();
        let take = |at: usize| seats.take(Arc::clone(&requests[at])).unwrap();
        let held = [take(0), take(1), take(2)];
        for busy in [0, 1] {
            requests[busy].begin();
        }
        requests[1].hold(None);
        let given_up = || held.each_ref().map(|seat| seat.given_up.is_cancelled());
        let fourth = take(3);
        assert_eq!(given_up(), [false, false, true], "that one had none under way");
        requests[3].begin();
        requests[3].hold(None);
        let fifth = take(4);
        assert_eq!(given_up(), [true, false, true]);
        requests[4].begin();
        requests[4].hold(None);
        let reserved = take(5);
        assert!(
            requests[5].are_reserved() && !fourth.given_up.is_cancelled() && !fifth.given_up.is_cancelled()
        );
        drop(reserved);
    }

    #[test]
    fn a11_a_user_has_a_share_of_what_is_under_way() {
        let shares = Shares::new(8);
        let user = |tenant: &str| (tenant.to_owned(), "ada".to_owned());
        let take = |tenant| shares.take(user(tenant), false);
        let mut held = vec![take("default").unwrap(), take("default").unwrap()];
        assert!(take("default").is_none() && take("acme").is_some());
        held.pop();
        assert!(take("default").is_some());
        drop(held);
        assert!(shares.under_way.lock().users.is_empty());
    }

    #[test]
    fn a7_the_bodies_under_way_are_bounded_for_a_user_and_in_all() {
        let shares = Shares::new(100);
        let take = |user: &str| shares.take(("default".to_owned(), user.to_owned()), user == "root").unwrap();
        let mut ada = [take("ada"), take("ada")];
        assert!(ada[0].receive(MAX_BODIES_OF_USER - 5) && ada[1].receive(5) && !ada[1].receive(1));
        let mut others: Vec<_> = (0..4).map(|user| take(&user.to_string())).collect();
        let came = others.iter_mut().map(|share| share.receive(MAX_BODIES_OF_USER));
        assert_eq!(came.collect::<Vec<_>>(), [true, true, true, false]);
        // An admin's are bounded as well, and neither have their room nor take any of it.
        let mut root = take("root");
        assert!(root.receive(MAX_BODIES_OF_USER) && !root.receive(1) && !take("root").receive(1));
        drop(ada);
        assert!(others[3].receive(MAX_BODIES_OF_USER));
        drop((others, root));
        assert_eq!(shares.under_way.lock().bytes, 0);
    }
}
