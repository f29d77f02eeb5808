//! Hands open connections to the program that takes over, between two requests: closed instead, a connection could be closed just when its
//! client sends the next request, which would get no answer; kept, the next request would still be answered by the program before.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{HeaderMap, Request, Response, Version, header},
};
use futures_util::future::BoxFuture;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::Service};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use parking_lot::Mutex;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{
    connections::{Connection, SEND_BUFFER},
    seats::UserShare,
};
use crate::takeover::Takeover;

/// An answer of at most so many bytes is the system's as soon as it is there.
const SMALL: usize = SEND_BUFFER;

/// A connection under HTTP/1.
pub(in crate::server) type Serving = http1::Connection<TokioIo<Connection>, Watching>;

/// How long a new connection has for its first request before it may give way as one that waits.
const NEW_FOR: Duration = Duration::from_secs(1);

/// When a connection came.
#[derive(Debug)]
pub(in crate::server) struct Came(pub(in crate::server) Instant);

impl Default for Came {
    fn default() -> Self {
        Self(Instant::now())
    }
}

/// What is known of the requests of a connection.
#[derive(Debug, Default)]
pub(in crate::server) struct Requests {
    pub(in crate::server) came: Came,
    /// How many there were.
    begun: AtomicUsize,
    /// How many of them have a body of which there is more to come.
    unread: AtomicUsize,
    /// How many are answered.
    answered: AtomicUsize,
    /// How many answers are in the hands of the connection, but may not be written yet.
    unwritten: AtomicUsize,
    /// Whether the connection cannot have another request.
    last: AtomicBool,
    /// Whether a part of an answer waits to be written.
    unsent: AtomicBool,
    /// Whether the next request is another program's.
    next_is_elsewhere: AtomicBool,
    /// Whether somebody who may use the server has sent one.
    known: AtomicBool,
    /// Whether it is such a one that is under way.
    is_known: AtomicBool,
    /// Whether the connection is one of those that are kept for admins.
    reserved: AtomicBool,
    /// When the connection last came to wait for a request, in the order of all.
    since: AtomicUsize,
    /// The share of the user whose request is under way.
    share: Mutex<Option<UserShare>>,
    /// The shares of those whose answers may not be written yet.
    leaving: Mutex<Vec<UserShare>>,
}

impl Requests {
    /// Notes whether a part of an answer waits to be written.
    pub(in crate::server) fn note_unsent(&self, is_unsent: bool) {
        self.unsent.store(is_unsent, Relaxed);
    }

    /// Whether what comes next belongs to a request that another program is to answer.
    pub(in crate::server) fn next_is_elsewhere(&self) -> bool {
        self.next_is_elsewhere.load(Relaxed) && self.unread.load(Relaxed) == 0
    }

    /// Notes that a request has come.
    pub(in crate::server) fn begin(&self) {
        self.is_known.store(false, Relaxed);
        self.begun.fetch_add(1, Relaxed);
    }

    /// Notes that an answer is in the hands of the connection, which keeps all that the client has not read. Until it is written, the request
    /// counts as under way and has its user's share. Without a key it gives way instead: nobody's share would bound how many there are.
    fn leave(&self, bytes: usize) {
        let share = self.share.lock().take();
        match bytes > SMALL && self.is_known.load(Relaxed) {
            true => {
                self.leaving.lock().extend(share);
                self.unwritten.fetch_add(1, Relaxed);
            }
            false => {
                drop(share);
                self.end(1);
            }
        }
    }

    /// Notes that the connection has written what it could: of answers that it had, nothing is left unless it waits for the client.
    pub(in crate::server) fn settle(&self) {
        if self.unwritten.load(Relaxed) > 0 && !self.unsent.load(Relaxed) {
            self.leaving.lock().clear();
            self.end(self.unwritten.swap(0, Relaxed));
        }
    }

    fn end(&self, answers: usize) {
        self.note_idle();
        self.answered.fetch_add(answers, Relaxed);
    }

    /// Whether no request is under way.
    pub(in crate::server) fn are_idle(&self) -> bool {
        self.begun.load(Relaxed) == self.answered.load(Relaxed)
    }

    /// Notes that the connection waits for a request from now on.
    pub(in crate::server) fn note_idle(&self) {
        static ORDER: AtomicUsize = AtomicUsize::new(0);
        self.since.store(ORDER.fetch_add(1, Relaxed), Relaxed);
    }

    /// The less, the sooner the connection gives way: who waits for a request, then who has sent one without a key, then who has just come
    /// and could not send one yet; `None` if it does not.
    pub(in crate::server) fn priority(&self) -> Option<(bool, bool, bool, usize)> {
        let is_idle = self.are_idle();
        let is_new = self.begun.load(Relaxed) == 0 && self.came.0.elapsed() < NEW_FOR;
        let gives_way = is_idle || !self.is_known.load(Relaxed);
        gives_way.then(|| (is_new, !is_idle, self.known.load(Relaxed), self.since.load(Relaxed)))
    }

    /// Notes that the connection came when all others had requests under way.
    pub(in crate::server) fn reserve(&self) {
        self.reserved.store(true, Relaxed);
    }

    /// Whether only admins may use the connection.
    pub(in crate::server) fn are_reserved(&self) -> bool {
        self.reserved.load(Relaxed)
    }

    /// Notes that who sends the request may, and holds the user's share until its answer is written.
    pub(in crate::server) fn hold(&self, share: Option<UserShare>) {
        self.known.store(true, Relaxed);
        self.is_known.store(true, Relaxed);
        *self.share.lock() = share;
    }

    /// Whether so many more bytes of a request's body may come.
    pub(in crate::server) fn may_receive(&self, bytes: usize) -> bool {
        self.share.lock().as_mut().is_none_or(|share| share.receive(bytes))
    }

    /// Whether the connection can be handed on: no request is under way, and there may be another.
    fn are_between(&self) -> bool {
        self.are_idle() && !self.last.load(Relaxed) && !self.unsent.load(Relaxed)
    }
}

/// Answers the requests of a connection, and counts them.
pub(in crate::server) struct Watching {
    pub(in crate::server) router: TowerToHyperService<Router>,
    pub(in crate::server) requests: Arc<Requests>,
}

impl Service<Request<Incoming>> for Watching {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let requests = Arc::clone(&self.requests);
        requests.begin();
        // HTTP/1.0 keeps no connection, unless both sides say so.
        if request.version() != Version::HTTP_11 || says_close(request.headers()) {
            requests.last.store(true, Relaxed);
        }
        let mut request = request;
        request.extensions_mut().insert(Arc::clone(&self.requests));
        let request = request.map(|body| {
            let unread = UnreadBody::new(body.is_end_stream(), &requests);
            Body::new(WatchedBody { body: Body::new(body), watch: unread })
        });
        let router = self.router.clone();
        Box::pin(async move {
            let response = router.call(request).await?;
            if says_close(response.headers()) {
                requests.last.store(true, Relaxed);
            }
            Ok(response.map(|body| Body::new(WatchedBody { body, watch: Answer { requests, bytes: 0 } })))
        })
    }
}

fn says_close(headers: &HeaderMap) -> bool {
    let says = |value: &str| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"));
    headers.get_all(header::CONNECTION).iter().any(|value| value.to_str().is_ok_and(says))
}

/// A body whose end is noted.
struct WatchedBody<W> {
    body: Body,
    watch: W,
}

/// Notes something about a body and its end, also by being dropped.
trait Watch: Unpin {
    fn passed(&mut self, _bytes: usize) {}
    fn ended(&mut self) {}
}

/// Notes an answer when its body is dropped, which is when all of it is in the hands of the connection.
struct Answer {
    requests: Arc<Requests>,
    bytes: usize,
}

impl Watch for Answer {
    fn passed(&mut self, bytes: usize) {
        self.bytes += bytes;
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.requests.leave(self.bytes);
    }
}

/// Notes that a request was not read to its end: the rest of it may still come.
struct UnreadBody {
    is_read: bool,
    requests: Arc<Requests>,
}

impl UnreadBody {
    fn new(is_read: bool, requests: &Arc<Requests>) -> Self {
        requests.unread.fetch_add(usize::from(!is_read), Relaxed);
        Self { is_read, requests: Arc::clone(requests) }
    }
}

impl Watch for UnreadBody {
    fn ended(&mut self) {
        if !std::mem::replace(&mut self.is_read, true) {
            self.requests.unread.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        if !self.is_read {
            self.requests.last.store(true, Relaxed);
        }
    }
}

impl<W: Watch> HttpBody for WatchedBody<W> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            self.watch.passed(frame.data_ref().map_or(0, Bytes::len));
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.watch.ended();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Answers the requests of a connection until it ends.
pub(in crate::server) async fn answer(connection: &mut Serving, requests: &Requests) -> hyper::Result<()> {
    poll_fn(|context| {
        let ended = Pin::new(&mut *connection).poll(context);
        requests.settle();
        ended
    })
    .await
}

/// Answers the requests that are under way, and hands the connection on, if another program has taken over and there may be more requests.
/// Drops `takes` where later requests on it are answered by that program.
pub(in crate::server) async fn hand_on(
    mut connection: Serving,
    requests: &Requests,
    takeover: Option<&Takeover>,
    takes: TaskTrackerToken,
) -> hyper::Result<()> {
    let Some(takeover) = takeover.filter(|takeover| takeover.is_succeeded()) else {
        Pin::new(&mut connection).graceful_shutdown();
        return connection.await;
    };
    requests.next_is_elsewhere.store(true, Relaxed);
    drop(takes);
    let between = poll_fn(|context| {
        let ended = Pin::new(&mut connection).poll(context).map(Some);
        requests.settle();
        if ended.is_pending() && requests.are_between() { Poll::Ready(None) } else { ended }
    });
    if let Some(ended) = between.await {
        return ended;
    }
    let before = requests.begun.load(Relaxed);
    Pin::new(&mut connection).graceful_shutdown();
    poll_fn(|context| connection.poll_without_shutdown(context)).await?;
    // A request that came meanwhile is answered here, with `connection: close`.
    if requests.begun.load(Relaxed) != before {
        return connection.await;
    }
    let parts = connection.into_parts();
    let connection = parts.io.into_inner();
    if let Err(cause) = takeover.handed().put(connection.stream(), &parts.read_buf).await {
        tracing::debug!(%cause, "connection_not_handed_on");
    }
    Ok(())
}
