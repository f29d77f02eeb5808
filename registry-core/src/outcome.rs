//! What became of a call, in the registry's form and as it goes over a wire.

use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::{
    content::{Content, list_schema},
    flow::Reads,
    model::ModelUsage,
    result::{ToolError, ToolResult},
};

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The call's id.
    pub call_id: String,
    /// The tool's name, as called.
    pub tool_name: String,
    /// What the tool gave, or why it did not.
    pub result: Result<ToolResult, ToolError>,
    /// How long the last attempt ran; zero for a call that was refused.
    pub duration: Duration,
    /// When it was done (UTC).
    pub ts: Timestamp,
    /// What the result may hold: by the tool's word, and by that of the calls within.
    pub reads: Reads,
    /// What all tries have used of the model.
    pub model_usage: ModelUsage,
    /// What it was made with, where a person has changed its arguments.
    pub changed_arguments: Option<Value>,
}

/// What became of a call, as it goes over a wire; the same shape at every entry point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct ToolReply {
    /// The call's id, as the audit has it.
    pub call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// What it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Its parts beside the value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "list_schema")]
    pub content: Vec<Content>,
    /// Whether it goes to the person as it is, without a word of the model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_turn: bool,
    /// Why it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A word to the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What was changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<String>,
    /// The tool's notes, with `tool`, `ts` and `duration_ms`.
    pub audit: Map<String, Value>,
    /// Whether the same call may succeed when it is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// What the call was made with, where a person has changed its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_arguments: Option<Value>,
    /// Names of tools that may have been meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// When the same call may be made again (UTC).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// What the tool has used of the model, where it has asked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_usage: Option<ModelUsage>,
    /// The approval that the call waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The question that the call waits for the answer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The page on which the user lets this server into the account that the call needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorize_at: Option<String>,
}

impl ToolOutcome {
    /// Whether the tool did what it was asked.
    pub fn is_success(&self) -> bool {
        self.result.as_ref().is_ok_and(|result| result.success)
    }

    /// The text for the model.
    pub fn for_model(&self) -> String {
        let text = match &self.result {
            Ok(result) => result.for_model().into_owned(),
            Err(error) => format!("Error: {}", error.feedback()),
        };
        match self.change_for_model() {
            Some(change) => format!("{change}\n{text}"),
            None => text,
        }
    }

    /// What stands before the text for the model where a person has changed the arguments.
    pub fn change_for_model(&self) -> Option<String> {
        let arguments = self.changed_arguments.as_ref()?;
        Some(format!(
            "[A person has changed the arguments of this call before allowing it. It was made with: {arguments}]"
        ))
    }

    /// The audit of the call: the tool's own notes, with `tool`, `ts` and `duration_ms` from the registry.
    pub fn audit(&self) -> Map<String, Value> {
        let mut audit = self.result.as_ref().map(|result| result.audit.clone()).unwrap_or_default();
        audit.insert("tool".into(), self.tool_name.as_str().into());
        audit.insert("ts".into(), self.ts.to_string().into());
        audit.insert("duration_ms".into(), json!(millis(self.duration)));
        audit
    }

    /// The outcome as it goes over a wire.
    pub fn to_reply(&self) -> ToolReply {
        let mut reply = ToolReply {
            call_id: self.call_id.clone(),
            tool_name: self.tool_name.clone(),
            success: self.is_success(),
            audit: self.audit(),
            model_usage: self.model_usage.used(),
            changed_arguments: self.changed_arguments.clone(),
            ..ToolReply::default()
        };
        match &self.result {
            Ok(result) => {
                reply.result = Some(result.value.clone());
                reply.content.clone_from(&result.content);
                reply.ends_turn = result.ends_turn;
                reply.message.clone_from(&result.message);
                reply.side_effects.clone_from(&result.side_effects);
            }
            Err(error) => {
                reply.error = Some(error.message().to_owned());
                reply.retryable = Some(error.is_retryable());
                reply.nearest = error.nearest().to_vec();
                reply.retry_at = error.retry_at();
                reply.approval = error.approval().map(str::to_owned);
                reply.authorize_at = error.authorize_at().map(str::to_owned);
                reply.question = error.question().map(str::to_owned);
            }
        }
        reply
    }
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
