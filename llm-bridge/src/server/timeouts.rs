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

use super::{api_error::ApiError, handover::Requests};

/// The slowest client that is waited for sends so many bytes in a second.
const SLOWEST: u64 = 16 * 1024;

/// Answers with a 408 where the body of a request does not come in time, and with a 503 where there is too much of all, whatever reads it.
pub(super) async fn limit_body(State(timeout): State<Duration>, request: Request, next: Next) -> Response {
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
    requests: Option<Arc<Requests>>,
    given_up: Arc<AtomicU8>,
}

impl HttpBody for Limited {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(frame)) = &frame {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                if self.requests.as_ref().is_some_and(|requests| !requests.may_receive(bytes)) {
                    self.given_up.store(TOO_MUCH, Ordering::Relaxed);
                    return Poll::Ready(Some(Err("too much of requests is under way".into())));
                }
                self.received = self.received.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
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
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
