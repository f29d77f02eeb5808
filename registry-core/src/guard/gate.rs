//! Asks somebody else before a call: a policy of the host, or a person.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use strum::{EnumString, VariantNames};

use crate::{
    context::ToolContext, future::BoxFuture, policy::ToolPolicy, schema::without_secrets, spec::ToolSpec,
};

/// How long a gate may think. A person's answer takes longer and is [`GateAnswer::Pending`] until it comes.
pub const GATE_TIMEOUT: Duration = Duration::from_secs(2);

/// The call a gate is asked about.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct GateRequest<'a> {
    /// Whose registry it is.
    pub tenant: &'a str,
    /// The whole tool.
    pub spec: &'a ToolSpec,
    /// Its rules, with its cost and its effect.
    pub policy: &'a ToolPolicy,
    /// The arguments as the tool would get them.
    pub arguments: &'a Map<String, Value>,
    /// The request around it, with the caller and the conversation.
    pub context: &'a ToolContext,
}

impl GateRequest<'_> {
    /// The arguments with `(secret)` in place of those that are secret: for a gate that sends them elsewhere.
    pub fn public_arguments(&self) -> Value {
        without_secrets(&self.spec.input_schema, self.arguments)
    }
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateAnswer {
    /// The call may be made.
    Approved,
    /// The call is not made; the reason is for the model and the user.
    Blocked(String),
    /// A person has to say: the call is kept until then.
    Pending,
}

/// Why a gate gave no answer. The text is for the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// It could not be asked, or broke off.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It took longer than [`GATE_TIMEOUT`].
    #[error("no answer within {} s", GATE_TIMEOUT.as_secs())]
    TimedOut,
    /// It turned the question down, as where it wants a key.
    #[error("it answered {0}")]
    Refused(String),
    /// It answered something that is no answer.
    #[error("its answer is not understood: {0}")]
    InvalidAnswer(String),
    /// Its code panicked.
    #[error("it panicked: {0}")]
    Panicked(String),
}

/// Weighs calls. It is asked for tools that have `gate = true`. `HttpGate` in `toolrack-http` asks one over HTTP.
pub trait Gate: Send + Sync {
    /// Its name, for the audit. `person`, `timeout` and what begins with `user:` or `rule:` are what that says of persons, and `flow` is of rules.
    fn name(&self) -> &str;

    /// Whether a call is refused when the gate fails or takes longer than [`GATE_TIMEOUT`]. Where not, the call is
    /// made and a warning logged.
    fn fails_closed(&self) -> bool {
        false
    }

    /// Weighs a call.
    ///
    /// # Errors
    /// When it gives no answer; see [`fails_closed`](Self::fails_closed).
    fn check<'a>(&'a self, request: GateRequest<'a>) -> BoxFuture<'a, Result<GateAnswer, GateError>>;
}

/// What was decided about a call that was made or not, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Decision {
    /// What was decided.
    pub verdict: Verdict,
    /// The gate's name, `user:ID` for a person, `rule:ID` for what a person has allowed beforehand, or `flow` for a rule about what was read.
    pub by: String,
    /// What the gate had said, where a person was asked after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Box<Decision>>,
    /// What the call would do with what its turn has read, where it was about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Decision {
    /// What somebody decided without another before.
    pub fn new(verdict: Verdict, by: impl Into<String>) -> Self {
        Self { verdict, by: by.into(), gate: None, reason: None }
    }

    /// The same with what it was about.
    pub(crate) fn because(self, reason: &str) -> Self {
        Self { reason: Some(reason.to_owned()), ..self }
    }
}

/// What was decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, EnumString, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// It may be made.
    Approved,
    /// It may not.
    Blocked,
    /// A person has not answered yet.
    Pending,
    /// The gate gave no answer, and calls are made then.
    Unanswered,
}
