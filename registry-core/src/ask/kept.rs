//! Calls of `resumable` tools that wait for an answer, kept so that they outlive their process.
//!
//! While such a call waits, the [state store](crate::store::StateStore) has what it takes to make it anew, under what the
//! same call is found by. Whoever goes on with it, the process that waits, another one after the answer, or the same
//! call in a later request, first changes what is kept there in one step, so that one alone does.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
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
/// How much longer than its timeout a call may be under way before it counts as interrupted.
const MARGIN: SignedDuration = SignedDuration::from_secs(30);

/// A call that waits, as it is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(super) process: Arc<str>,
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
    pub(super) approved: bool,
    /// The answers so far, in their order.
    pub(super) answers: Vec<Answered>,
    /// From when on nobody goes on with it.
    pub(super) expires_at: Timestamp,
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
    pub(super) hash: String,
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
    pub(super) fn of(outcome: &ToolOutcome) -> Self {
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

    pub(super) fn failed(message: String) -> Self {
        Self { error: Some((message.clone(), message)), ..Self::default() }
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
    pub(super) async fn put_again(&self, kept: &Kept, expected: &str) -> Result<Option<String>, StateError> {
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
    pub(super) async fn clear(&self, now: Timestamp) -> Result<(), StateError> {
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
