//! An answer on its way to the client: the events of a turn in the client's API, as a stream or as one body.

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use tokio::{
    task::JoinHandle,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use toolrack_apis::{Encode, Failure, FailureKind, ToolStatus, TurnEvent};

use super::{
    conversations::Keeping,
    fronts::{StaticFront, reply},
};
use crate::{
    server::requests::public_url::PublicUrl,
    turn::{Turn, approval_notice, question_notice},
    woken::{WhenWoken, when_woken},
};

/// How long the status of a streamed answer waits for the model server's first word.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// How often a silent stream says that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The maximum size of a part of a stream that is sent at once, where the model is faster than the client, in bytes. Up to 16 of them
/// wait for a client that does not read.
const PART: usize = 4 * 1024;
const CLOSED: &str = "the server was stopped before the answer was finished";

/// An answer on its way to the client.
pub(in crate::server) struct Answering {
    turn: Turn,
    encoder: Box<dyn Encode>,
    /// What is encoded and not sent yet.
    out: Vec<u8>,
    /// The address of this server, as the client reaches it.
    base: Option<PublicUrl>,
    over: bool,
    /// Whether the client has been sent text.
    has_text: bool,
    /// Where the answer is kept, if it is.
    keeping: Option<Keeping>,
    /// The end of the answer, while the answer is being kept: the client may go on from it at once.
    end: Option<(JoinHandle<()>, Vec<u8>)>,
}

impl Answering {
    pub(in crate::server) fn new(
        turn: Turn,
        encoder: Box<dyn Encode>,
        base: Option<PublicUrl>,
        keeping: Option<Keeping>,
    ) -> Self {
        Self { turn, encoder, out: Vec::new(), base, over: false, has_text: false, keeping, end: None }
    }

    /// Waits for the next event and encodes it. Nothing is lost when this is dropped while it waits.
    async fn next(&mut self) -> Result<(), Failure> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        if let Some((kept, end)) = &mut self.end {
            // A failure of it is logged.
            let _ = ready!(pin!(kept).poll(context));
            self.out.append(end);
            (self.end, self.over) = (None, true);
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(match ready!(self.turn.poll_next(context)) {
            Some(event @ TurnEvent::Finished { .. }) => {
                self.finish(event);
                Ok(())
            }
            Some(event) => self.encode(event),
            None => {
                self.over = true;
                Ok(())
            }
        })
    }

    /// Whether the next event belongs to the part that is being encoded: what has come meanwhile goes along.
    fn goes_on(&self) -> bool {
        !self.over && (self.out.is_empty() || self.out.len() < PART && self.turn.has_events())
    }

    /// Encodes the last event, and begins to keep the answer.
    fn finish(&mut self, event: TurnEvent) {
        let begin = self.out.len();
        self.encoder.event(event, &mut self.out);
        self.encoder.finish(&mut self.out);
        match self.keeping.take().zip(self.encoder.take_response()) {
            Some((keeping, response)) => {
                let end = self.out.split_off(begin);
                let kept = keeping.keep(response, self.turn.take_answer(), end.len());
                self.end = Some((tokio::spawn(kept), end));
            }
            None => self.over = true,
        }
    }

    /// Encodes an event; a failure is handed back.
    fn encode(&mut self, event: TurnEvent) -> Result<(), Failure> {
        self.has_text |= matches!(event, TurnEvent::Text(_) | TurnEvent::Message { .. });
        let waits = self.waits(&event);
        match event {
            TurnEvent::Failed(failure) => {
                self.over = true;
                return Err(failure);
            }
            event => self.encoder.event(event, &mut self.out),
        }
        if let Some(message) = waits {
            self.encoder.event(message, &mut self.out);
            self.has_text = true;
        }
        Ok(())
    }

    /// A client that knows nothing of approvals shows this text while the call waits.
    fn waits(&self, event: &TurnEvent) -> Option<TurnEvent> {
        let TurnEvent::Tool(ToolStatus::Progress { id, name, approval, reason, question, .. }) = event else {
            return None;
        };
        let base = || self.base.as_ref().map(PublicUrl::to_string).unwrap_or_default();
        let notice = match (approval, question) {
            (Some(approval), _) => approval_notice(name, reason.as_deref(), &base(), approval),
            (None, Some(question)) => question_notice(name, &base(), question),
            (None, None) => return None,
        };
        let before = if self.has_text { "\n\n" } else { "" };
        let text = format!("{before}{notice}");
        Some(TurnEvent::Message { id: id.clone(), text, part: None })
    }

    /// Ends a stream that cannot go on.
    fn fail(&mut self, failure: Failure) {
        self.over = true;
        self.encoder.event(TurnEvent::Failed(failure), &mut self.out);
        self.encoder.finish(&mut self.out);
    }

    fn content_type(&self) -> HeaderValue {
        HeaderValue::from_static(self.encoder.content_type())
    }
}

/// The answer as one body.
pub(in crate::server) async fn whole(
    front: StaticFront,
    mut answering: Answering,
    closing: CancellationToken,
) -> Response {
    while !answering.over {
        let next = tokio::select! {
            next = answering.next() => next,
            () = closing.cancelled() => Err(closed()),
        };
        if let Err(failure) = next {
            return reply(front.failure(&failure));
        }
    }
    let kind = answering.content_type();
    ([(header::CONTENT_TYPE, kind)], answering.out).into_response()
}

/// The answer as a stream.
pub(in crate::server) async fn streamed(
    front: StaticFront,
    mut answering: Answering,
    closing: CancellationToken,
) -> Response {
    // A model server that refuses does so at once; its refusal is the status of the reply.
    let first = tokio::time::timeout(FIRST_WORD, async {
        while answering.out.is_empty() && !answering.over {
            answering.next().await?;
        }
        Ok::<_, Failure>(())
    });
    if let Ok(Err(failure)) = first.await {
        return reply(front.failure(&failure));
    }
    let kind = answering.content_type();
    let mut parts = Parts {
        answering,
        closing: when_woken(Box::pin(closing.cancelled_owned())),
        heartbeat: Box::pin(sleep(HEARTBEAT)),
    };
    let stream =
        stream::poll_fn(move |context| parts.poll_next(context).map(|part| part.map(Ok::<_, Infallible>)));
    let mut response = Body::from_stream(stream).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies would hold the stream back until it is whole.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The parts of a stream.
struct Parts {
    answering: Answering,
    closing: WhenWoken<Pin<Box<WaitForCancellationFutureOwned>>>,
    heartbeat: Pin<Box<Sleep>>,
}

impl Parts {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Self { answering, closing, heartbeat } = self;
        // Before all else: a client that is slower than the model always finds something to be sent.
        if !answering.over && Pin::new(closing).poll(context).is_ready() {
            answering.fail(closed());
        }
        loop {
            while answering.goes_on()
                && let Poll::Ready(next) = answering.poll_next(context)
            {
                if let Err(failure) = next {
                    answering.fail(failure);
                }
            }
            if answering.over || !answering.out.is_empty() {
                break;
            }
            ready!(heartbeat.as_mut().poll(context));
            answering.encoder.keep_alive(&mut answering.out);
            heartbeat.as_mut().reset(Instant::now() + HEARTBEAT);
        }
        heartbeat.as_mut().reset(Instant::now() + HEARTBEAT);
        // Copied, so that the buffer stays as large as parts are.
        let part = (!answering.out.is_empty()).then(|| Bytes::copy_from_slice(&answering.out));
        answering.out.clear();
        Poll::Ready(part)
    }
}

fn closed() -> Failure {
    Failure::new(FailureKind::Stopping, CLOSED)
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use registry_core::{Caller, Permission, Registry};
    use toolrack_apis::{Front, Message, Request, Role, openai::OpenAiFront};

    use super::*;
    use crate::{
        turn::{Backend, ChatSettings},
        upstream::Upstream,
    };

    /// A turn that ends before its first word.
    async fn dead() -> Answering {
        let registry = Registry::builder().without_compiled().build().unwrap();
        let upstream = Upstream::http("http://127.0.0.1:9/v1", None, FIRST_WORD).unwrap();
        let backend = Backend::new(registry, upstream, ChatSettings::default());
        backend.stop().await;
        let request = Request { messages: vec![Message::text(Role::User, "Go.")], ..Request::default() };
        let turn = backend.start(request, Caller::new("ada", Permission::User)).unwrap();
        let (parts, ()) = axum::http::Request::new(()).into_parts();
        let body = br#"{"messages": [{"role": "user", "content": "Go."}]}"#;
        let encoder = OpenAiFront.decode(&parts, body).unwrap().encoder;
        Answering::new(turn, encoder, None, None)
    }

    #[tokio::test]
    async fn a_turn_that_dies_is_no_answer() {
        let closing = CancellationToken::new();
        assert_eq!(
            whole(&OpenAiFront, dead().await, closing.clone()).await.status(),
            StatusCode::BAD_GATEWAY
        );
        assert_eq!(streamed(&OpenAiFront, dead().await, closing).await.status(), StatusCode::BAD_GATEWAY);
    }
}
