//! Calls of `resumable` tools that wait for an answer, kept so that they outlive their process.
//!
//! While such a call waits, the [state store](crate::store::StateStore) has what it takes to make it anew, under what the
//! same call is found by. Whoever goes on with it, the process that waits, another one after the answer, or the same
//! call in a later request, first changes what is kept there in one step, so that one alone does.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    background::Background,
    clock::Clock,
    content::Content,
    context::Caller,
    flow::{HasRead, Reads},
    guard::{
        approval::{Approval, ApprovalState},
        audit::hash_arguments,
    },
    outcome::ToolOutcome,
    policy::Effect,
    result::{ErrorKind, ToolError, ToolResult},
    store::{Expected, StateError, StateLimits, StateSpace, StateStore, StoreError},
    tool::Tool,
};

/// What the calls are kept under. No tool's values have such a name.
const SPACE: &str = "questions";
/// The most calls of a user that are kept.
pub(crate) const MAX_KEPT: usize = 64;
/// The longest of them as JSON, in bytes.
const MAX_BYTES: usize = 512 << 10;
const LIMITS: StateLimits = StateLimits {
    max_value_bytes: MAX_BYTES,
    max_keys: MAX_KEPT,
    max_space_bytes: 8 << 20,
    max_user_bytes: u64::MAX,
    ..StateLimits::DEFAULT
};
/// How long the result of a call that was made anew can be fetched, in seconds.
const REMEMBERED: i64 = 3600;
/// How much longer than its timeout a call may be under way before it counts as interrupted.
const MARGIN: SignedDuration = SignedDuration::from_secs(30);

/// A call that waits, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    process: Arc<str>,
    pub(crate) tool: String,
    pub(crate) version: Option<String>,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) caller: Caller,
    pub(crate) scope: String,
    pub(crate) chat_id: Option<String>,
    /// What its turn had read before it. An earlier version did not write that, so it may have been all.
    #[serde(default = "anything")]
    pub(crate) flow: HasRead,
    /// Whether a person has approved it.
    #[serde(default)]
    approved: bool,
    /// The answers so far, in their order.
    answers: Vec<Answered>,
    /// From when on nobody goes on with it.
    expires_at: Timestamp,
    pub(crate) state: KeptState,
}

fn anything() -> HasRead {
    let mut read = HasRead::default();
    read.note(Reads::BOTH, "an earlier version");
    read
}

/// A question that has its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Answered {
    pub(crate) id: String,
    /// Of the question, with its number and the call's arguments.
    hash: String,
    pub(crate) state: ApprovalState,
}

impl Answered {
    pub(crate) fn of(question: &Approval) -> Self {
        let Approval { id, arguments_sha256, state, .. } = question;
        Self { id: id.clone(), hash: arguments_sha256.clone(), state: state.clone() }
    }
}

/// How far it has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeptState {
    /// The question of this id is open, or was answered a moment ago.
    Waiting(String),
    /// It goes on, until it expires.
    Running,
    /// It was made anew.
    Done(Box<Done>),
}

/// What a call came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    success: bool,
    value: Value,
    content: Vec<Content>,
    ends_turn: bool,
    message: Option<String>,
    side_effects: Vec<String>,
    /// For whoever called, and for the model.
    error: Option<(String, String)>,
    pub(crate) reads: Reads,
}

impl Done {
    fn of(outcome: &ToolOutcome) -> Self {
        let reads = outcome.reads;
        match outcome.result.clone() {
            Ok(ToolResult { success, value, content, ends_turn, message, side_effects, audit: _ }) => {
                Self { success, value, content, ends_turn, message, side_effects, error: None, reads }
            }
            Err(error) => {
                let texts = (error.message().to_owned(), error.feedback().to_owned());
                Self { error: Some(texts), reads, ..Self::default() }
            }
        }
    }

    pub(crate) fn into_result(self) -> Result<ToolResult, ToolError> {
        let Self { success, value, content, ends_turn, message, side_effects, error, reads: _ } = self;
        match error {
            Some((message, feedback)) => Err(ToolError::failed(message).with_feedback(feedback)),
            None => {
                let audit = Map::new();
                Ok(ToolResult { success, value, content, ends_turn, message, side_effects, audit })
            }
        }
    }
}

/// Where one call is kept.
#[derive(Clone)]
pub(crate) struct Spot {
    store: Arc<dyn StateStore>,
    space: StateSpace,
    pub(crate) key: String,
}

impl Spot {
    /// The place of every call of a user that is like this one and comes from the same place.
    pub(crate) fn of(
        store: Arc<dyn StateStore>,
        (tenant, user): (&str, &str),
        call: (&str, &Map<String, Value>, &str),
    ) -> Self {
        Self::at(store, (tenant, user), hash_arguments(&json!(call)))
    }

    pub(crate) fn at(store: Arc<dyn StateStore>, (tenant, user): (&str, &str), key: String) -> Self {
        let space =
            StateSpace { tenant: tenant.to_owned(), user: Some(user.to_owned()), name: SPACE.to_owned() };
        Self { store, space, key }
    }

    /// What is kept, with its text.
    pub(crate) async fn look(&self) -> Result<Option<(Kept, String)>, StoreError> {
        let Some(text) = self.store.state(&self.space, &self.key).await? else { return Ok(None) };
        // What another version has written is nobody's.
        Ok(serde_json::from_str(&text).ok().map(|kept| (kept, text)))
    }

    /// Puts something in the place of what is there; `None` where something else is.
    pub(crate) async fn put(
        &self,
        kept: Option<&Kept>,
        expected: Option<&str>,
    ) -> Result<Option<String>, StateError> {
        let text = match kept {
            Some(kept) => Some(serde_json::to_string(kept).map_err(StoreError::invalid)?),
            None => None,
        };
        let bytes = text.as_ref().map_or(0, String::len);
        if bytes > MAX_BYTES {
            return Err(StateError::TooLarge { key: self.key.clone(), bytes, max: MAX_BYTES });
        }
        let expected = Expected::Exactly(expected);
        let put = self.store.put_state(&self.space, &self.key, text.as_deref(), expected, &LIMITS).await?;
        Ok(put.then(|| text.unwrap_or_default()))
    }

    /// The same where the store may fail and have written all the same: it is tried once more, and known again.
    async fn put_again(&self, kept: &Kept, expected: &str) -> Result<Option<String>, StateError> {
        match self.put(Some(kept), Some(expected)).await {
            Err(StateError::Store(_)) => {}
            put => return put,
        }
        if let Some(text) = self.put(Some(kept), Some(expected)).await? {
            return Ok(Some(text));
        }
        let text = serde_json::to_string(kept).map_err(StoreError::invalid)?;
        let now = self.store.state(&self.space, &self.key).await?;
        Ok(now.filter(|now| *now == text))
    }

    /// Deletes what has expired of the user's.
    async fn clear(&self, now: Timestamp) -> Result<(), StateError> {
        for key in self.store.state_keys(&self.space).await? {
            let spot = Self { key, ..self.clone() };
            if let Some((kept, text)) = spot.look().await?
                && kept.is_over(now)
            {
                spot.put(None, Some(&text)).await?;
            }
        }
        Ok(())
    }
}

impl Kept {
    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Whether this process has written it, of all with the store.
    pub(crate) fn is_of(&self, process: &str) -> bool {
        *self.process == *process
    }

    /// Adds the answer to the question that it waits for.
    pub(crate) fn answer(&mut self, question: &Approval) {
        self.answers.push(Answered::of(question));
    }

    /// The same, going on in this process for so long at most.
    pub(crate) fn taken(self, process: &Arc<str>, now: Timestamp, timeout: Duration) -> Self {
        let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
        let longest = timeout.checked_add(MARGIN).unwrap_or(SignedDuration::MAX);
        let expires_at = now.checked_add(longest).unwrap_or(Timestamp::MAX);
        Self { process: Arc::clone(process), expires_at, state: KeptState::Running, ..self }
    }
}

/// A running call that can be kept.
pub(crate) struct Keeping {
    spot: Spot,
    clock: Arc<dyn Clock>,
    background: Background,
    /// Set when the host ends: what waits then stays for another process.
    leaving: Arc<AtomicBool>,
    timeout: Duration,
    /// Whether its result is kept too, because nobody waits for it.
    pub(crate) is_unattended: bool,
    /// How the call was admitted that was kept, where this goes on with one.
    pub(crate) admitted: Option<AdmittedBefore>,
    now: Mutex<Now>,
}

/// What a call that goes on was admitted with, before its process ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmittedBefore {
    /// What its turn had read.
    pub(crate) reads: Reads,
    /// Whether a person has approved it.
    pub(crate) approved: bool,
}

struct Now {
    kept: Kept,
    /// As the store has it, where it has it.
    text: Option<String>,
    /// Answers from before, which the tool gets again.
    replay: Vec<Answered>,
}

/// What a call is, for keeping it.
pub(crate) struct CallOf<'a> {
    pub(crate) tool: &'a str,
    pub(crate) version: Option<&'a str>,
    pub(crate) arguments: &'a Map<String, Value>,
    pub(crate) caller: &'a Caller,
    pub(crate) scope: String,
    pub(crate) chat_id: Option<&'a str>,
    pub(crate) flow: HasRead,
}

impl Kept {
    pub(crate) fn new(process: &Arc<str>, call: CallOf<'_>) -> Self {
        Self {
            process: Arc::clone(process),
            tool: call.tool.to_owned(),
            version: call.version.map(str::to_owned),
            arguments: call.arguments.clone(),
            caller: call.caller.clone(),
            scope: call.scope,
            chat_id: call.chat_id.map(str::to_owned),
            flow: call.flow,
            approved: false,
            answers: Vec::new(),
            expires_at: Timestamp::UNIX_EPOCH,
            state: KeptState::Running,
        }
    }
}

/// What the host gives to a call that can be kept.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) background: Background,
    pub(crate) leaving: Arc<AtomicBool>,
    pub(crate) timeout: Duration,
}

impl Keeping {
    /// A call that begins, or one that goes on with what was kept under `text`.
    pub(crate) fn new(spot: Spot, means: Means, kept: Kept, text: Option<String>, unattended: bool) -> Self {
        let Means { clock, background, leaving, timeout } = means;
        let admitted = AdmittedBefore { reads: kept.flow.reads(), approved: kept.approved };
        let (admitted, replay) = (text.is_some().then_some(admitted), kept.answers.clone());
        let kept = Kept { answers: Vec::new(), ..kept };
        let now = Mutex::new(Now { kept, text, replay });
        Self { spot, clock, background, leaving, timeout, is_unattended: unattended, admitted, now }
    }

    /// Adds to what the turn of the call had read what this one has, and gives all of it.
    pub(crate) fn add_read(&self, read: Option<&HasRead>) -> HasRead {
        let mut now = self.now.lock();
        if let Some(read) = read {
            now.kept.flow.add(read);
        }
        now.kept.flow.clone()
    }

    /// A person has approved the call.
    pub(crate) fn approve(&self) {
        self.now.lock().kept.approved = true;
    }

    pub(crate) fn key(&self) -> &str {
        &self.spot.key
    }

    pub(crate) fn version(&self) -> Option<String> {
        self.now.lock().kept.version.clone()
    }

    /// What is made anew, once a person has changed the arguments.
    pub(crate) fn change(&self, arguments: &Map<String, Value>) {
        self.now.lock().kept.arguments.clone_from(arguments);
    }

    pub(crate) fn leaving(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.leaving)
    }

    /// The answer to a question that had one before the process ended.
    pub(crate) fn replayed(&self, hash: &str) -> Option<Answered> {
        let mut now = self.now.lock();
        let at = now.replay.iter().position(|known| known.hash == hash)?;
        let answer = now.replay.remove(at);
        now.kept.answers.push(answer.clone());
        Some(answer)
    }

    /// Keeps that the call waits for the answer to this question. Where that fails it waits all the same.
    pub(crate) async fn waits(&self, question: &str, until: Timestamp) {
        let (kept, text) = {
            let now = self.now.lock();
            let state = KeptState::Waiting(question.to_owned());
            let kept = Kept { state, expires_at: until, ..now.kept.clone() };
            (kept, now.text.clone())
        };
        let mut put = self.spot.put(Some(&kept), text.as_deref()).await;
        if matches!(put, Err(StateError::Full { .. })) && self.spot.clear(self.clock.now()).await.is_ok() {
            put = self.spot.put(Some(&kept), text.as_deref()).await;
        }
        match put {
            Ok(Some(text)) => *self.now.lock() = Now { kept, text: Some(text), replay: Vec::new() },
            // The same call waits already, or has expired.
            Ok(None) => {}
            Err(cause) => tracing::warn!(tool = kept.tool, %cause, "waiting_call_not_kept"),
        }
    }

    /// Goes on with an answer; false where another process has gone on with it.
    ///
    /// # Errors
    /// Where that cannot be told.
    pub(crate) async fn answered(&self, question: &Approval) -> Result<bool, StoreError> {
        let (kept, text) = {
            let mut now = self.now.lock();
            now.kept.answers.push(Answered::of(question));
            let Some(text) = now.text.clone() else { return Ok(true) };
            let process = Arc::clone(&now.kept.process);
            (now.kept.clone().taken(&process, self.clock.now(), self.timeout), text)
        };
        match self.spot.put_again(&kept, &text).await {
            Ok(Some(text)) => {
                *self.now.lock() = Now { kept, text: Some(text), replay: Vec::new() };
                Ok(true)
            }
            Ok(None) => {
                self.now.lock().text = None;
                Ok(false)
            }
            Err(StateError::Store(cause)) => Err(cause),
            Err(cause) => Err(StoreError::invalid(cause)),
        }
    }

    /// Forgets the call, unless it waits and the host ends.
    pub(crate) async fn forget(&self) {
        if let Some(text) = self.to_forget()
            && let Err(cause) = self.spot.put(None, Some(&text)).await
        {
            tracing::warn!(%cause, "waiting_call_not_forgotten");
        }
    }

    fn to_forget(&self) -> Option<String> {
        let mut now = self.now.lock();
        let is_waiting = matches!(now.kept.state, KeptState::Waiting(_));
        let stays = self.leaving.load(Ordering::Relaxed) && (is_waiting || self.is_unattended);
        now.text.take().filter(|_| !stays)
    }

    /// Keeps what a call came to that nobody waits for.
    pub(crate) async fn done(&self, outcome: &ToolOutcome) {
        let (kept, text) = {
            let mut now = self.now.lock();
            let Some(text) = now.text.take() else { return };
            (now.kept.clone(), text)
        };
        let expires_at =
            self.clock.now().checked_add(SignedDuration::from_secs(REMEMBERED)).unwrap_or(Timestamp::MAX);
        let done =
            |done| Kept { state: KeptState::Done(done), expires_at, answers: Vec::new(), ..kept.clone() };
        let put = self.spot.put(Some(&done(Box::new(Done::of(outcome)))), Some(&text)).await;
        let Err(StateError::TooLarge { bytes, .. }) = put else { return noted(put) };
        let message =
            format!("{} was done, and its result has {bytes} bytes, which is more than is kept", kept.tool);
        let error = Some((message.clone(), message));
        let put = self.spot.put(Some(&done(Box::new(Done { error, ..Done::default() }))), Some(&text)).await;
        noted(put);
    }
}

fn noted(put: Result<Option<String>, StateError>) {
    if let Err(cause) = put {
        tracing::warn!(%cause, "result_of_waiting_call_not_kept");
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if let Some(text) = self.to_forget() {
            let spot = self.spot.clone();
            self.background
                .run("forget_waiting_call", async move { noted(spot.put(None, Some(&text)).await) });
        }
    }
}

/// The result of a call that was interrupted, and does not go on.
pub(crate) fn interrupted(tool: &Tool) -> ToolError {
    if tool.policy().effect == Effect::Read {
        let message = format!("{} was interrupted", tool.name());
        let feedback = format!("{message}. Make the call again if you need its result.");
        return ToolError::failed(message).with_feedback(feedback);
    }
    let message = format!("{} was interrupted, so whether it took effect is not known", tool.name());
    let feedback = format!("{message}. Find that out before you make the call again.");
    ToolError::failed(message).with_feedback(feedback)
}

/// The tool is another one than the one that has asked.
pub(crate) fn changed(tool: &str) -> ToolError {
    let message = format!("{tool} has changed since it asked, and its call is not made again");
    ToolError::new(ErrorKind::Refused, message.clone()).with_feedback(format!("{message}. Make a new call."))
}
