//! A turn as whoever started it holds it.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures_util::{FutureExt, future::BoxFuture};
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::mpsc};
use tokio_util::sync::CancellationToken;
use toolrack_apis::{Failure, Message, SeenAnswer, TurnEvent};

use crate::{
    upstream::via::carried,
    woken::{WhenWoken, when_woken},
};

/// Where the events of a turn go.
pub(super) type Events = mpsc::Sender<Queued>;

/// An event that waits to be read. Most are text; the others are in boxes, as a channel keeps room for dozens, however few wait.
#[derive(Debug)]
pub(super) enum Queued {
    Text(String),
    Other(Box<TurnEvent>),
}

impl From<TurnEvent> for Queued {
    fn from(event: TurnEvent) -> Self {
        match event {
            TurnEvent::Text(text) => Self::Text(text),
            event => Self::Other(Box::new(event)),
        }
    }
}

impl From<Queued> for TurnEvent {
    fn from(queued: Queued) -> Self {
        match queued {
            Queued::Text(text) => Self::Text(text),
            Queued::Other(event) => *event,
        }
    }
}

/// What a turn has added to its conversation, for whoever keeps conversations.
#[derive(Debug, Default)]
pub struct TurnAnswer {
    /// The messages, with the calls of the server's tools and their results.
    pub messages: Vec<Message>,
    /// The deferred tools that the conversation has found so far: [`found`](toolrack_apis::Conversation::found) of a request that continues it.
    pub found: Vec<String>,
    /// What the client has seen of the conversation by now: [`answers`](toolrack_apis::Conversation::answers) of such a request.
    pub seen: Option<SeenAnswer>,
}

pub(super) type Answer = Arc<Mutex<TurnAnswer>>;

/// A turn. It runs in the task that waits for its events, so that a token wakes one task only, and stands while nobody waits; tools
/// run in tasks of their own. Dropping it cancels the model's answer and the tools.
#[must_use = "a turn runs while its events are waited for"]
#[derive(derive_more::Debug)]
pub struct Turn {
    /// `None` once it has ended.
    #[debug(skip)]
    running: Option<WhenWoken<BoxFuture<'static, ()>>>,
    events: mpsc::Receiver<Queued>,
    over: bool,
    answer: Answer,
    cancellation: CancellationToken,
}

impl Turn {
    pub(super) fn new(
        running: impl Future<Output = ()> + Send + 'static,
        events: mpsc::Receiver<Queued>,
        answer: Answer,
        cancellation: CancellationToken,
    ) -> Self {
        // A panic, which the log tells of, ends the turn and not the client's connection.
        let running = carried(AssertUnwindSafe(running).catch_unwind().map(drop));
        Self { running: Some(when_woken(running.boxed())), events, over: false, answer, cancellation }
    }

    /// The next event; `None` after the last, which is [`TurnEvent::Finished`] or [`TurnEvent::Failed`]. Nothing is lost when this is
    /// dropped while it waits.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Goes on with the turn until there is an event.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        // What a tool has left running may hold the channel open for as long as it likes.
        if self.over {
            return Poll::Ready(None);
        }
        let event = std::task::ready!(self.poll_event(context)).map_or_else(
            || {
                let message = "the turn ended without an answer; the server's log says why";
                TurnEvent::Failed(Failure::of_upstream(message))
            },
            TurnEvent::from,
        );
        self.over = matches!(event, TurnEvent::Finished { .. } | TurnEvent::Failed(_));
        Poll::Ready(Some(event))
    }

    /// Whether there are events that need not be waited for.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Queued>> {
        if let Some(running) = &mut self.running {
            // What the turn has sent already goes first, so that it runs no further ahead than it is read. What it sends while it
            // runs here has nobody to wake.
            if running.is_woken()
                && let Poll::Ready(event) = self.events.poll_recv(&mut Context::from_waker(Waker::noop()))
            {
                return Poll::Ready(event);
            }
            if Pin::new(running).poll(context).is_pending() {
                return self.events.poll_recv(context);
            }
            self.running = None;
        }
        Poll::Ready(self.events.try_recv().ok())
    }

    /// What the turn has added to the conversation. It is there once the turn has [finished](TurnEvent::Finished), and is given once.
    pub fn take_answer(&mut self) -> TurnAnswer {
        std::mem::take(&mut self.answer.lock())
    }

    /// Ends the tools of the turn from outside, and the turn when its next event is waited for.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.cancellation.cancel();
        // Its tools are given the time to leave their records.
        if let (Some(running), Ok(runtime)) = (self.running.take(), Handle::try_current()) {
            runtime.spawn(running);
        }
    }
}
