//! A person's word on a call: asked for, kept, answered, and good for that one call.
//!
//! An approval is bound to tenant, user, tool, version and arguments, and to whoever asked for it: its [scope](Approval::scope).
//! It lives no longer than its question: a call that stops waiting withdraws it.

use std::{collections::HashMap, time::Duration};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rule::RuleScope;
use crate::store::{StoreError, StoreResult};

/// How long a person has to answer where nothing else is said; after that the answer is no.
pub const APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    /// Names it; a random text.
    pub id: String,
    /// Whose it is.
    pub tenant: String,
    /// Who wants to call.
    pub user: String,
    /// The tool's name.
    pub tool: String,
    /// The tool's version, where it has one.
    pub version: Option<String>,
    /// SHA-256 of the arguments in hex.
    pub arguments_sha256: String,
    /// The arguments, for the person to look at; what is secret is left out.
    pub arguments: Value,
    /// What is asked, where a tool asks in the middle of its call; its answer is more than a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// What the call is kept under that has asked, where it outlives its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What the call would do with what its turn has read, where it is asked about for that: a sentence for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the person may have remembered with a yes; none where the call is asked about for more than that it cannot be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remember: Vec<RuleScope>,
    /// What the tool was when it was asked about; empty where nothing may be remembered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_sha256: String,
    /// Who makes the call for the user, where that is somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Who may use the answer: one call that waits for it, or whoever comes back for it, as
    /// `ToolContext::with_approval_scope` says.
    #[serde(default)]
    pub scope: String,
    /// When it was asked for (UTC).
    pub requested_at: Timestamp,
    /// From when on the answer is no (UTC).
    pub expires_at: Timestamp,
    /// What has become of it.
    #[serde(flatten)]
    pub state: ApprovalState,
}

/// What a tool asks a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question.
    pub message: String,
    /// The form of the answer: a JSON Schema of an object whose fields are texts, numbers and booleans.
    pub schema: Value,
}

/// What has become of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has answered.
    Pending,
    /// The call may be made, once.
    Approved {
        /// Who said so.
        by: String,
        /// What it is made with, where that person has changed its arguments.
        #[serde(default, rename = "changed_arguments", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// A question of the call has its answer.
    Answered {
        /// Who gave it.
        by: String,
        /// What was asked for: an object that fits the question's schema.
        content: Value,
    },
    /// A question of the call was declined, which is an answer like another.
    Declined {
        /// Who said so.
        by: String,
        /// Why, where it was said.
        reason: Option<String>,
    },
    /// The call may not be made.
    Denied {
        /// Who said so.
        by: String,
        /// Why, where it was said.
        reason: Option<String>,
    },
    /// The call has been made.
    Used {
        /// Who had allowed it.
        by: String,
        /// What it was made with, where that person has changed its arguments.
        #[serde(default, rename = "changed_arguments", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
    },
    /// The call was stopped before it was made.
    Withdrawn,
}

impl Approval {
    /// Whether it asks about the same call.
    fn is_about_what(&self, other: &Self) -> bool {
        fn call(of: &Approval) -> [&str; 6] {
            let Approval { tenant, user, tool, version, arguments_sha256, scope, .. } = of;
            [tenant, user, tool, version.as_deref().unwrap_or_default(), arguments_sha256, scope]
        }
        call(self) == call(other) && self.version == other.version
    }

    /// Whether it can still be answered, or used, at this time.
    pub fn is_open(&self, now: Timestamp) -> bool {
        use ApprovalState::{Answered, Approved, Declined, Pending};
        matches!(self.state, Pending | Approved { .. } | Answered { .. } | Declined { .. })
            && now < self.expires_at
    }

    /// How long it can still be answered, at this time.
    pub fn time_left(&self, now: Timestamp) -> Duration {
        self.expires_at.duration_since(now).try_into().unwrap_or_default()
    }

    /// Whether it waits for an answer at this time.
    fn is_waiting(&self, now: Timestamp) -> bool {
        self.state == ApprovalState::Pending && self.is_open(now)
    }
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAnswer {
    /// Whether the call may be made.
    pub approve: bool,
    /// Who says so: a user's id.
    pub by: String,
    /// Why not, where it is said.
    pub reason: Option<String>,
    /// The answer to a question, where it is answered; null where it is declined.
    pub content: Option<Value>,
    /// What an approved call is made with instead of its arguments: an object that fits the tool's schema.
    pub arguments: Option<Value>,
}

/// Why an approval could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is none of that id.
    #[error("there is no such approval")]
    Unknown,
    /// It has been answered, used or withdrawn, or has expired.
    #[error("the approval was answered already, or has expired")]
    Closed,
    /// The call cannot be made with these arguments; the approval stays open.
    #[error("{0}")]
    Invalid(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Keeps the approvals. Every method fails when the store does; then the call is not made.
#[async_trait]
pub trait Approvals: Send + Sync {
    /// Keeps a new approval, or gives back the one about the same call that is open at the time the new one was asked for. `None`,
    /// and nothing is kept, where `most` of the user's wait for an answer already; however many ask at once, in one step.
    async fn request(&self, wanted: Approval, most: usize) -> StoreResult<Option<Approval>>;

    /// The approval of that id.
    async fn get(&self, tenant: &str, id: &str) -> StoreResult<Option<Approval>>;

    /// Those that wait for an answer, oldest first: of one user, or of all.
    async fn pending(&self, tenant: &str, user: Option<&str>, now: Timestamp) -> StoreResult<Vec<Approval>>;

    /// Answers one that is pending, in one step.
    ///
    /// # Errors
    /// When there is none, or it is no longer open.
    async fn answer(
        &self,
        tenant: &str,
        id: &str,
        answer: ApprovalAnswer,
        now: Timestamp,
    ) -> Result<Approval, AnswerError>;

    /// Withdraws one that is pending, approved and not used, answered, or declined: its call is not made or over. The answer is forgotten.
    async fn withdraw(&self, tenant: &str, id: &str) -> StoreResult<()>;

    /// Uses one that is approved and open, in one step: true for exactly one caller.
    async fn take(&self, tenant: &str, id: &str, now: Timestamp) -> StoreResult<bool>;

    /// Makes one that was used approved again: its call has done nothing, and is made again.
    async fn give_back(&self, tenant: &str, id: &str) -> StoreResult<()>;

    /// Forgets all of a user who is removed, so that nobody of the same name comes to it, and gives how many there were. Calls that wait find
    /// theirs withdrawn.
    async fn forget_user(&self, tenant: &str, user: &str) -> StoreResult<usize>;
}

/// Keeps approvals in memory, until the process ends.
#[derive(Debug, Default)]
pub struct MemoryApprovals {
    by_id: Mutex<HashMap<(String, String), Approval>>,
}

/// How many of a user's are known that wait for nobody any more, for the call or for somebody who asks what became of them: the oldest give way.
pub const MAX_CLOSED: usize = 64;
/// How long they are.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

impl MemoryApprovals {
    fn with<T>(&self, run: impl FnOnce(&mut HashMap<(String, String), Approval>) -> T) -> T {
        run(&mut self.by_id.lock())
    }
}

fn key(tenant: &str, id: &str) -> (String, String) {
    (tenant.to_owned(), id.to_owned())
}

#[async_trait]
impl Approvals for MemoryApprovals {
    async fn request(&self, wanted: Approval, most: usize) -> StoreResult<Option<Approval>> {
        let now = wanted.requested_at;
        self.with(|all| {
            all.retain(|_, known| known.is_open(now) || now.duration_since(known.expires_at) < REMEMBERED);
            let open = all.values().find(|known| known.is_about_what(&wanted) && known.is_open(now));
            if let Some(known) = open {
                return Ok(Some(known.clone()));
            }
            let waits = |known: &&Approval| {
                (&known.tenant, &known.user) == (&wanted.tenant, &wanted.user) && known.is_waiting(now)
            };
            if all.values().filter(waits).count() >= most {
                return Ok(None);
            }
            let is_closed = |known: &&Approval| {
                (&known.tenant, &known.user) == (&wanted.tenant, &wanted.user) && !known.is_waiting(now)
            };
            let mut closed: Vec<_> =
                all.values().filter(is_closed).map(|known| (known.requested_at, known.id.clone())).collect();
            closed.sort_unstable();
            closed.truncate(closed.len().saturating_sub(MAX_CLOSED));
            closed.iter().for_each(|(_, id)| drop(all.remove(&key(&wanted.tenant, id))));
            all.insert(key(&wanted.tenant, &wanted.id), wanted.clone());
            Ok(Some(wanted))
        })
    }

    async fn get(&self, tenant: &str, id: &str) -> StoreResult<Option<Approval>> {
        self.with(|all| Ok(all.get(&key(tenant, id)).cloned()))
    }

    async fn pending(&self, tenant: &str, user: Option<&str>, now: Timestamp) -> StoreResult<Vec<Approval>> {
        self.with(|all| {
            let is_of =
                |known: &Approval| known.tenant == tenant && user.is_none_or(|user| known.user == user);
            let waits = |known: &&Approval| is_of(known) && known.is_waiting(now);
            let mut waiting: Vec<_> = all.values().filter(waits).cloned().collect();
            waiting.sort_by(|a, b| (a.requested_at, &a.id).cmp(&(b.requested_at, &b.id)));
            Ok(waiting)
        })
    }

    async fn answer(
        &self,
        tenant: &str,
        id: &str,
        answer: ApprovalAnswer,
        now: Timestamp,
    ) -> Result<Approval, AnswerError> {
        self.with(|all| {
            let known = all.get_mut(&key(tenant, id)).ok_or(AnswerError::Unknown)?;
            if known.state != ApprovalState::Pending || !known.is_open(now) {
                return Err(AnswerError::Closed);
            }
            known.state = answer.into_state();
            Ok(known.clone())
        })
    }

    async fn withdraw(&self, tenant: &str, id: &str) -> StoreResult<()> {
        self.with(|all| {
            if let Some(Approval {
                state:
                    state @ (ApprovalState::Pending
                    | ApprovalState::Approved { .. }
                    | ApprovalState::Answered { .. }
                    | ApprovalState::Declined { .. }),
                ..
            }) = all.get_mut(&key(tenant, id))
            {
                *state = ApprovalState::Withdrawn;
            }
            Ok(())
        })
    }

    async fn take(&self, tenant: &str, id: &str, now: Timestamp) -> StoreResult<bool> {
        self.with(|all| {
            let known = all.get_mut(&key(tenant, id)).filter(|known| known.is_open(now));
            let Some(Approval { state: state @ ApprovalState::Approved { .. }, .. }) = known else {
                return Ok(false);
            };
            if let ApprovalState::Approved { by, arguments } = state.clone() {
                *state = ApprovalState::Used { by, arguments };
            }
            Ok(true)
        })
    }

    async fn forget_user(&self, tenant: &str, user: &str) -> StoreResult<usize> {
        self.with(|all| {
            let before = all.len();
            all.retain(|_, known| known.tenant != tenant || known.user != user);
            Ok(before - all.len())
        })
    }

    async fn give_back(&self, tenant: &str, id: &str) -> StoreResult<()> {
        self.with(|all| {
            if let Some(known) = all.get_mut(&key(tenant, id))
                && let ApprovalState::Used { by, arguments } = known.state.clone()
            {
                known.state = ApprovalState::Approved { by, arguments };
            }
            Ok(())
        })
    }
}

impl ApprovalAnswer {
    /// What the approval is then.
    pub fn into_state(self) -> ApprovalState {
        match (self.approve, self.content) {
            (true, Some(content)) => ApprovalState::Answered { by: self.by, content },
            (true, None) => ApprovalState::Approved { by: self.by, arguments: self.arguments },
            (false, Some(_)) => ApprovalState::Declined { by: self.by, reason: self.reason },
            (false, None) => ApprovalState::Denied { by: self.by, reason: self.reason },
        }
    }
}
