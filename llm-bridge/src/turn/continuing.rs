//! A text that the model goes on with: nothing is looked for in it, and no tools have a part in it.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolrack_apis::{FinishReason, Piece, TurnEvent, Usage};

use super::handle::{Events, Turn};
use crate::upstream::Answer;

/// How many events wait for a client that is slower than the model.
const WAITING: usize = 16;

impl Turn {
    /// A turn that hands on an answer as the model writes it.
    pub(crate) fn continuing(model: String, answer: Answer) -> Self {
        let (events, receiver) = mpsc::channel(WAITING);
        let cancellation = CancellationToken::new();
        let cancelled = cancellation.clone();
        let running = async move {
            cancelled.run_until_cancelled(hand_on(model, answer, events)).await;
        };
        Self::new(running, receiver, Arc::default(), cancellation)
    }
}

async fn hand_on(model: String, mut answer: Answer, events: Events) {
    // Whether the client still reads is noticed by whoever holds the turn.
    let send = async |event: TurnEvent| drop(events.send(event.into()).await);
    send(TurnEvent::Model(model)).await;
    let (mut reason, mut usage, mut pieces) = (FinishReason::Stop, Usage::default(), Vec::new());
    let last = loop {
        let more = answer.next(&mut pieces).await;
        for piece in pieces.drain(..) {
            match piece {
                Piece::Text(text) => send(TurnEvent::Text(text)).await,
                Piece::Finish(finish) => reason = finish,
                Piece::Usage(counted) => usage = counted,
                Piece::Reasoning { .. } | Piece::Call(_) | Piece::Passing(_) => {}
            }
        }
        match more {
            Ok(true) => {}
            Ok(false) => break TurnEvent::Finished { reason, usage },
            Err(error) => break TurnEvent::Failed(error.into()),
        }
    };
    send(last).await;
}
