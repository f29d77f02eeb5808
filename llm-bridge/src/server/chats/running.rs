//! Turns of chats that run on this server: each in a task of its own, which keeps the answer as it grows, and whose events anybody of its
//! user may read from any place.

use std::{
    collections::{HashMap, VecDeque},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::body::Bytes;
use parking_lot::{Mutex, MutexGuard};
use registry_core::{UserPlaces, store::ChatKey};
use serde::Serialize;
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolrack_apis::{Encode, Failure, FailureKind, Message, ToolStatus, TurnEvent};

use super::{
    keeper::{Keeper, Unkept},
    kept_message::{Kept, as_seen},
    message::{CallPart, Shown, Status},
    readers::{Readers, Shared},
    record::Record,
};
use crate::turn::Turn;

/// How much of its events is kept for those who come late, in bytes.
const MAX_LOG: usize = 1 << 20;
/// How long the events of a turn that has ended can be read.
const READABLE: Duration = Duration::from_secs(30);
/// How long the tools of a turn that was stopped may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// A chat with its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::server) struct ChatId {
    pub(super) tenant: String,
    pub(super) user: String,
    pub(super) id: String,
}

impl ChatId {
    pub(super) fn key(&self) -> ChatKey<'_> {
        ChatKey { tenant: &self.tenant, user: &self.user, id: &self.id }
    }
}

/// The answer that a turn writes, by the name under which the turn has claimed its chat.
pub(super) fn answer_of(claim: &str) -> &str {
    claim.split_once(':').map_or(claim, |(answer, _)| answer)
}

/// The turns that run on this server or have ended a moment ago.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct Turns {
    running: Arc<Mutex<HashMap<ChatId, Arc<Live>>>>,
    pub(super) searching: UserPlaces,
    pub(super) readers: Readers,
    unkept: Unkept,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashMap<ChatId, Arc<Live>>> {
        self.running.lock()
    }

    /// The turn of a chat, also one that has ended a moment ago.
    pub(super) fn of(&self, chat: &ChatId) -> Option<Arc<Live>> {
        self.lock().get(chat).map(Arc::clone)
    }

    pub(super) fn add(&self, chat: ChatId, live: Arc<Live>) {
        self.lock().insert(chat, live);
    }

    fn remove(&self, chat: &ChatId, live: &Arc<Live>) {
        let mut all = self.lock();
        if all.get(chat).is_some_and(|known| Arc::ptr_eq(known, live)) {
            all.remove(chat);
        }
    }
}

/// A turn on this server.
pub(in crate::server) struct Live {
    state: Mutex<State>,
    /// The number of its events so far.
    position: watch::Sender<u64>,
    /// What those get who come late, and what all get at the end.
    snapshot: Shared,
    done: Shared,
    /// Cancelled by the user.
    stop: CancellationToken,
    /// Cancelled once it has ended and is kept.
    ended: CancellationToken,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

struct State {
    record: Record,
    /// The last events, each a frame of the stream without its position.
    log: VecDeque<Bytes>,
    logged: usize,
    /// The position of the last of them.
    position: u64,
    is_over: bool,
}

impl State {
    /// The events behind a position; where some of them are not there any more, the position before the first that is.
    fn behind(&self, after: u64) -> Result<Bytes, u64> {
        let first = self.position.saturating_sub(u64::try_from(self.log.len()).unwrap_or(u64::MAX));
        let seen = after.checked_sub(first).ok_or(first)?;
        let seen = usize::try_from(seen).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        for (number, logged) in (after.saturating_add(1)..).zip(self.log.iter().skip(seen)) {
            bytes.extend_from_slice(format!("id: {number}\n").as_bytes());
            bytes.extend_from_slice(logged);
        }
        Ok(bytes.into())
    }
}

/// Something of a stream to be sent.
pub(super) struct Piece {
    pub(super) frames: Vec<Bytes>,
    pub(super) position: u64,
    pub(super) is_last: bool,
}

/// A frame of a stream: its position, if it has one, its name and its data.
pub(super) fn frame(position: Option<u64>, event: &str, data: &impl Serialize) -> Vec<u8> {
    let position = position.map(|position| format!("id: {position}\n")).unwrap_or_default();
    let mut bytes = format!("{position}event: {event}\ndata: ").into_bytes();
    if let Ok(json) = serde_json::to_vec(data) {
        bytes.extend(json);
    }
    bytes.extend_from_slice(b"\n\n");
    bytes
}

impl Live {
    /// A turn that begins, or goes on with an answer.
    pub(super) fn new(shown: Shown) -> Arc<Self> {
        let state = State {
            record: Record::new(shown),
            log: VecDeque::new(),
            logged: 0,
            position: 0,
            is_over: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            position: watch::Sender::new(0),
            snapshot: Shared::new("snapshot"),
            done: Shared::new("done"),
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The answer so far, and the position up to which it goes.
    pub(super) fn so_far(&self) -> (Shown, u64) {
        let state = self.state();
        (state.record.shown.clone(), state.position)
    }

    /// The number of its events so far.
    pub(super) fn position(&self) -> u64 {
        self.state().position
    }

    /// Whether it has ended and is kept.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Stops it, and waits until it is kept.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.ended.cancelled().await;
    }

    /// A receiver that is notified of each event.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.position.subscribe()
    }

    /// What comes behind a position; `None` where nothing has yet. What holds the whole message is the same for all who read it.
    pub(super) async fn behind(&self, after: u64) -> Option<Piece> {
        let (logged, newest, is_over) = {
            let state = self.state();
            (state.behind(after), state.position, state.is_over)
        };
        let (position, bytes) = match logged {
            Ok(logged) => (newest, logged),
            Err(first) => self.snapshot.at_least(first, || self.so_far()).await?,
        };
        let mut frames = vec![bytes];
        // A snapshot that others have had before is followed by what came behind it.
        let is_last = is_over && position == newest;
        if is_last {
            let end = || (self.state().record.shown.clone(), position.saturating_add(1));
            frames.push(self.done.at_least(0, end).await?.1);
        }
        frames.retain(|frame| !frame.is_empty());
        (!frames.is_empty()).then_some(Piece { frames, position, is_last })
    }

    /// Takes an event into the answer and the log.
    fn take(&self, event: TurnEvent, encoder: &mut dyn Encode, now: jiff::Timestamp) {
        let mut out = Vec::new();
        let mut state = self.state();
        state.record.take(&event, now);
        encoder.event(event, &mut out);
        let text = String::from_utf8_lossy(&out);
        for part in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
            let bytes = Bytes::from(format!("{part}\n\n").into_bytes());
            state.logged += bytes.len();
            state.log.push_back(bytes);
            state.position += 1;
        }
        while state.logged > MAX_LOG {
            let Some(dropped) = state.log.pop_front() else { break };
            state.logged = state.logged.saturating_sub(dropped.len());
        }
        let position = state.position;
        drop(state);
        self.position.send_replace(position);
    }

    fn end(&self, status: Status, asking: Vec<CallPart>) -> Shown {
        let mut state = self.state();
        state.record.end(status, asking);
        state.record.shown.clone()
    }

    /// It is kept, or could not be.
    fn over(&self) {
        self.state().is_over = true;
        self.ended.cancel();
        self.position.send_modify(|_| {});
    }
}

/// Why a turn has ended.
enum End {
    Itself,
    Stopped,
    Closed,
    /// The answer is longer than what is kept.
    Full,
}

/// A turn that begins.
pub(super) struct Running {
    pub(super) keeper: Keeper,
    pub(super) turns: Turns,
    pub(super) live: Arc<Live>,
    pub(super) turn: Turn,
    pub(super) encoder: Box<dyn Encode>,
    /// What the model had said in this answer before.
    pub(super) said_before: Vec<Message>,
    pub(super) found_before: Vec<String>,
    /// Whether the model gets pictures of the user.
    pub(super) has_pictures: bool,
    pub(super) closing: CancellationToken,
}

impl Running {
    /// Runs the turn to its end and keeps its answer, whether or not anybody reads it.
    pub(super) async fn run(mut self) -> Shown {
        let end = self.follow().await;
        // What tools have asked may be answered at another server.
        let asking = match end {
            End::Closed => self.live.state().record.asking(),
            _ => Vec::new(),
        };
        if !matches!(end, End::Itself) {
            self.turn.cancellation().cancel();
            let _ = timeout(LAST_WORDS, self.last_words()).await;
        }
        if self.has_pictures {
            self.live.state().record.name_refusal_of_pictures();
        }
        let failed = self.live.state().record.shown.error.is_some();
        let status = match end {
            End::Stopped => Status::Stopped,
            End::Closed => Status::CutOff,
            End::Full => {
                self.fail("the answer is longer than what is kept of one, and was stopped");
                Status::Failed
            }
            End::Itself if failed => Status::Failed,
            End::Itself => Status::Done,
        };
        let shown = self.live.end(status, asking);
        let answer = self.turn.take_answer();
        let mut said = std::mem::take(&mut self.said_before);
        match matches!(status, Status::Done) && !answer.messages.is_empty() {
            true => said.extend(answer.messages),
            // What it had said before is among the parts.
            false => said.clear(),
        }
        let found =
            if answer.found.is_empty() { std::mem::take(&mut self.found_before) } else { answer.found };
        let kept = Kept { shown: shown.clone(), said, found };
        self.keeper.keep_end(kept, &self.turns.unkept).await;
        self.live.over();
        let (turns, chat, live) = (self.turns.clone(), self.keeper.chat.clone(), Arc::clone(&self.live));
        tokio::spawn(async move {
            tokio::time::sleep(READABLE).await;
            turns.remove(&chat, &live);
        });
        shown
    }

    fn fail(&mut self, message: &str) {
        let failure = Failure::new(FailureKind::TooLarge, message);
        self.live.take(TurnEvent::Failed(failure), &mut *self.encoder, self.keeper.clock.now());
    }

    /// Takes the events until the turn ends. The store is asked beside it, however long it takes to answer.
    async fn follow(&mut self) -> End {
        let Self { keeper, live, turn, encoder, closing, .. } = self;
        let to_be_kept = Notify::new();
        let mut told_to_stop = pin!(keeper.hold_until_told_to_stop());
        let mut keeping = pin!(keeper.keep_as_it_grows(live, &to_be_kept));
        loop {
            tokio::select! {
                biased;
                () = closing.cancelled() => return End::Closed,
                () = live.stop.cancelled() => return End::Stopped,
                () = &mut told_to_stop => return End::Stopped,
                never = &mut keeping => match never {},
                event = turn.next() => match event {
                    None => return End::Itself,
                    Some(event) => {
                        let is_last = matches!(event, TurnEvent::Finished { .. } | TurnEvent::Failed(_));
                        if matches!(event, TurnEvent::Tool(ToolStatus::Progress { question: Some(_), .. })) {
                            // Its question may outlive this server.
                            to_be_kept.notify_one();
                        }
                        live.take(event, &mut **encoder, keeper.clock.now());
                        if is_last {
                            return End::Itself;
                        }
                        if live.state().record.is_full() {
                            return End::Full;
                        }
                    }
                },
            }
        }
    }

    /// What tools say at the end of a turn that was stopped.
    async fn last_words(&mut self) {
        while let Some(event) = self.turn.next().await {
            if matches!(event, TurnEvent::Tool(_)) {
                self.live.take(event, &mut *self.encoder, self.keeper.clock.now());
            }
        }
    }
}

/// What the model had said in an answer that goes on.
pub(super) fn said_before(kept: &Kept) -> Vec<Message> {
    if kept.said.is_empty() { as_seen(&kept.shown.parts) } else { kept.said.clone() }
}
