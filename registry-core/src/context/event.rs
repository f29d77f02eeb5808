//! What a running tool says before its result.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::ToolContext;
use crate::{
    content::Content,
    guard::approval::{Approval, Question},
};

/// A word from a running tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolEvent {
    /// The call's id; for a call that a tool makes, that of the call around it which the host has made.
    pub call_id: String,
    /// The tool's name; for a call that a tool makes, that of the called tool.
    pub tool_name: String,
    /// What it is doing, for people.
    pub message: String,
    /// How far it is, from 0 to 1, where it can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    /// The id of the approval that the call waits for, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// For how many seconds from now that can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_seconds: Option<u64>,
    /// What the call would do with what its turn has read, where it waits for a person because of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_reason: Option<String>,
    /// The next part of a result that comes as a stream; a text is the next piece of one. The result has it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Content>,
    /// The question that the call waits for the answer to, where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Box<PendingQuestion>>,
}

/// A question that can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingQuestion {
    /// Names it; a random text.
    pub id: String,
    /// What is asked.
    #[serde(flatten)]
    pub question: Question,
    /// For how many seconds from now it can be answered.
    pub seconds: u64,
    /// Whether the call waits for the answer; otherwise it has to be made again.
    pub waits: bool,
}

/// Where the events of running tools go.
pub type EventSink = Arc<dyn Fn(ToolEvent) + Send + Sync>;

impl ToolContext {
    /// Says what the tool is doing.
    pub fn status(&self, message: impl Into<String>) {
        self.report(message.into(), None);
    }

    /// Says what the tool is doing and how far it is, from 0 to 1.
    pub fn progress(&self, fraction: f64, message: impl Into<String>) {
        self.report(message.into(), Some(fraction.clamp(0.0, 1.0)));
    }

    /// Says that the call waits for a person.
    pub(crate) fn ask_approval(&self, asked: &Approval, now: Timestamp) {
        let message = format!("Waiting for a person to approve {} ({})", asked.tool, asked.id);
        let (approval, left) = (Some(asked.id.clone()), Some(asked.time_left(now).as_secs()));
        let approval_reason = asked.reason.clone();
        self.send(ToolEvent {
            message,
            approval,
            approval_seconds: left,
            approval_reason,
            ..ToolEvent::default()
        });
    }

    /// Shows a part of the result that is being made. Listeners that know messages alone get its text.
    pub(crate) fn show(&self, part: Content) {
        if self.events.is_some() {
            self.send(ToolEvent { message: part.for_model(), part: Some(part), ..ToolEvent::default() });
        }
    }

    /// Puts a question to the person.
    pub(crate) fn announce_question(&self, approval: &Approval, now: Timestamp, waits: bool) {
        let Some(question) = approval.question.clone() else { return };
        let (id, seconds) = (approval.id.clone(), approval.time_left(now).as_secs());
        let asked = PendingQuestion { id, question, seconds, waits };
        let message = format!("Waiting for an answer: {}", asked.question.message);
        self.send(ToolEvent { message, question: Some(Box::new(asked)), ..ToolEvent::default() });
    }

    fn report(&self, message: String, progress: Option<f64>) {
        self.send(ToolEvent { message, progress, ..ToolEvent::default() });
    }

    fn send(&self, event: ToolEvent) {
        let (Some(events), Some(call)) = (&self.events, &self.call) else { return };
        // A client knows the outermost call only.
        let call_id = call.outermost().id.clone();
        events(ToolEvent { call_id, tool_name: call.tool.to_string(), ..event });
    }
}
