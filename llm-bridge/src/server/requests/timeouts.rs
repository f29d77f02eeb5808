//! How long a request may take to come, and how much of it: whoever sends the head or the body of one and never its end holds no
//! connection.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::api_error::ApiError;
use crate::server::transport::handover::Requests;

/// The slowest client that is waited for sends so many bytes in a second.
const SLOWEST: u64 = 16 * 1024;
/// A body is handed on in parts of this many bytes at least, but for the last one: a client may send chunks of a byte, each of which would
/// take fifty bytes in memory, and keep what else was read with it.
const PART: usize = 16 * 1024;

/// Answers with a 408 where the body of a request does not come in time, and with a 503 where there is too much of all, whatever reads it.
pub(in crate::server) async fn limit_body(
    State(timeout): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let given_up = Arc::new(AtomicU8::new(NOT));
    let why = Arc::clone(&given_up);
    let requests = request.extensions().get::<Arc<Requests>>().map(Arc::clone);
    let limited = request.map(|body| {
        Body::new(Limited {
            body,
            deadline: Box::pin(tokio::time::sleep(timeout)),
            latest: Instant::now() + timeout,
            received: 0,
            small: Vec::new(),
            next: None,
            requests,
            given_up: why,
        })
    });
    let response = next.run(limited).await;
    let refusal = match given_up.load(Ordering::Relaxed) {
        LATE => {
            let message = "the body of the request did not come in time; send it again";
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
        }
        TOO_MUCH => {
            let message = "as much as may be of requests is under way; wait for some to end";
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "server_busy", message).retry_after(1)
        }
        _ => return response,
    };
    let mut refused = refusal.into_response();
    refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    refused
}

/// Why a body was given up.
const NOT: u8 = 0;
const LATE: u8 = 1;
const TOO_MUCH: u8 = 2;

/// A body that has to come within a time, and a second more for each [`SLOWEST`] bytes.
struct Limited {
    body: Body,
    deadline: Pin<Box<Sleep>>,
    /// The deadline of a body without a byte.
    latest: Instant,
    received: u64,
    /// Chunks that are less than a part together.
    small: Vec<u8>,
    /// What came after them: trailers, or a fault.
    next: Option<Received>,
    requests: Option<Arc<Requests>>,
    given_up: Arc<AtomicU8>,
}

type Received = Result<Frame<Bytes>, axum::BoxError>;

impl Limited {
    /// The small chunks as one part, if there are any, and then this.
    fn after_small(&mut self, next: Option<Received>) -> Option<Received> {
        if self.small.is_empty() {
            return next;
        }
        self.next = next;
        Some(Ok(Frame::data(std::mem::take(&mut self.small).into())))
    }
}

impl HttpBody for Limited {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(next) = self.next.take() {
            return Poll::Ready(Some(next));
        }
        while let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let received = frame.map(|frame| frame.map_err(Into::into));
            let Some(Ok(Some(bytes))) = received.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref))
            else {
                return Poll::Ready(self.after_small(received));
            };
            if self.requests.as_ref().is_some_and(|requests| !requests.may_receive(bytes.len())) {
                self.given_up.store(TOO_MUCH, Ordering::Relaxed);
                return Poll::Ready(Some(Err("too much of requests is under way".into())));
            }
            self.received = self.received.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            if self.small.is_empty() && bytes.len() >= PART {
                return Poll::Ready(received);
            }
            self.small.extend_from_slice(bytes);
            if self.small.len() >= PART {
                return Poll::Ready(self.after_small(None));
            }
        }
        let deadline = self.latest + Duration::from_secs(self.received / SLOWEST);
        if self.deadline.deadline() != deadline {
            self.deadline.as_mut().reset(deadline);
        }
        std::task::ready!(self.deadline.as_mut().poll(context));
        self.given_up.store(LATE, Ordering::Relaxed);
        Poll::Ready(Some(Err("the body did not come in time".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.small.is_empty() && self.next.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, small) = (self.body.size_hint(), self.small.len() as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(small));
        }
        hint.set_lower(rest.lower().saturating_add(small));
        hint
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};

    use super::*;

    fn limited(chunks: impl Iterator<Item = Result<Bytes, std::io::Error>> + Send + 'static) -> Limited {
        let minute = Duration::from_secs(60);
        Limited {
            body: Body::from_stream(stream::iter(chunks)),
            deadline: Box::pin(tokio::time::sleep(minute)),
            latest: Instant::now() + minute,
            received: 0,
            small: Vec::new(),
            next: None,
            requests: None,
            given_up: Arc::default(),
        }
    }

    #[tokio::test]
    async fn a54_a_body_of_single_bytes_is_handed_on_in_large_parts() {
        let sent: Vec<u8> = (0..PART * 2 + 100).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let bytes = sent.clone().into_iter().map(|byte| Ok(Bytes::from(vec![byte])));
        // A large chunk among them comes as it is, after what came before.
        let large = std::iter::once(Ok(Bytes::from(vec![7; PART * 3])));
        let parts: Vec<_> =
            Body::new(limited(large.chain(bytes))).into_data_stream().map(Result::unwrap).collect().await;
        let sizes: Vec<_> = parts.iter().map(Bytes::len).collect();
        assert_eq!(sizes, [PART * 3, PART, PART, 100]);
        assert_eq!(parts.concat(), [vec![7; PART * 3], sent].concat());
    }

    #[tokio::test]
    async fn a54_a_fault_comes_after_the_bytes_before_it() {
        let fault = std::iter::once(Err(std::io::Error::other("gone")));
        let chunks = [Ok(Bytes::from("a")), Ok(Bytes::from("b"))].into_iter().chain(fault);
        let mut parts = Body::new(limited(chunks)).into_data_stream();
        assert_eq!(parts.next().await.unwrap().unwrap(), "ab");
        assert!(parts.next().await.unwrap().is_err());
    }
}
