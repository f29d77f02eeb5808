//! A message of a chat, as it is given to the page.

use std::collections::HashSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who a message is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChatRole")]
pub(super) enum By {
    User,
    Assistant,
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChatMessageStatus")]
pub(super) enum Status {
    /// Its turn runs.
    Running,
    /// It is whole.
    Done,
    /// The user has stopped it.
    Stopped,
    /// The server has ended in the middle.
    CutOff,
    /// The turn has failed.
    Failed,
}

/// A message as the page draws it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatMessage")]
pub(super) struct Shown {
    pub(super) id: String,
    /// The message that it follows.
    pub(super) parent: Option<String>,
    pub(super) role: By,
    /// When it was made (UTC).
    pub(super) created_at: Timestamp,
    pub(super) status: Status,
    /// The model that has answered.
    pub(super) model: Option<String>,
    /// In the order in which they came.
    pub(super) parts: Vec<Part>,
    /// Why the model stopped.
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<Tokens>,
    /// How long the turn took, in milliseconds.
    pub(super) duration_ms: Option<u64>,
    pub(super) error: Option<Fault>,
}

/// The tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatUsage")]
pub(super) struct Tokens {
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) total_tokens: u64,
}

/// The `type` of a failure at pictures of the user.
pub(super) const PICTURES_REFUSED: &str = "pictures_refused";

/// Why a turn has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatFault")]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) r#type: String,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(rename = "ChatPart")]
pub(super) enum Part {
    Text {
        text: String,
    },
    /// What the model thought.
    Reasoning {
        text: String,
        /// For how many milliseconds.
        ms: Option<u64>,
    },
    /// A call of a tool of the server.
    Call(Box<CallPart>),
    /// Something that the user should know.
    Notice {
        text: String,
    },
    Image(FilePart),
    Audio(FilePart),
    Video(FilePart),
    File(FilePart),
}

/// A picture or file of a user's message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ChatFilePart")]
pub(super) struct FilePart {
    pub(super) name: Option<String>,
    pub(super) media_type: Option<String>,
    /// In bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<usize>,
    /// Where it is on this server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    /// Where it is elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ChatCallState")]
pub(super) enum CallState {
    #[default]
    Running,
    Ok,
    Failed,
    Cancelled,
}

/// A call of a tool of the server, with the fields of its events in the stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ChatCallPart")]
pub(super) struct CallPart {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) dialect: String,
    pub(super) state: CallState,
    pub(super) arguments: Value,
    /// What the model had asked for, where a person has changed the arguments.
    pub(super) asked_for: Option<Value>,
    pub(super) message: Option<String>,
    pub(super) progress: Option<f64>,
    pub(super) approval: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) question: Option<Value>,
    /// When it began (UTC).
    pub(super) began_at: Option<Timestamp>,
    /// Until when the approval or the question can be answered (UTC).
    pub(super) answer_by: Option<Timestamp>,
    pub(super) result: Option<Value>,
    pub(super) error: Option<String>,
    /// What the tool said to the user when it was done.
    pub(super) said: Option<String>,
    pub(super) side_effects: Vec<String>,
    pub(super) duration_ms: Option<u64>,
    pub(super) retry_at: Option<String>,
    /// The parts of its result for the user.
    pub(super) parts: Vec<Value>,
}

impl CallPart {
    /// The id of the question that it asks.
    fn question(&self) -> Option<&str> {
        self.question.as_ref()?.get("id")?.as_str()
    }

    /// Whether there is something to say of how it went. One that was stopped may have begun.
    pub(super) fn has_outcome(&self) -> bool {
        match self.state {
            CallState::Ok | CallState::Failed => true,
            CallState::Cancelled => self.error.is_some(),
            CallState::Running => false,
        }
    }

    /// It waits for nobody any more.
    pub(super) fn settle(&mut self) {
        (self.progress, self.approval, self.question, self.answer_by) = (None, None, None, None);
    }
}

impl Shown {
    /// A message that begins.
    pub(super) fn begun(id: String, parent: Option<String>, role: By, created_at: Timestamp) -> Self {
        Self {
            id,
            parent,
            role,
            created_at,
            status: Status::Running,
            model: None,
            parts: Vec::new(),
            finish_reason: None,
            usage: None,
            duration_ms: None,
            error: None,
        }
    }

    /// Its texts, without reasoning and calls.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.trim()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Ends a message whose turn does not run any more. Calls that ask one of these questions go on when it is answered.
    pub(super) fn end(&mut self, status: Status, open: &HashSet<String>) {
        self.status = status;
        for part in &mut self.parts {
            if let Part::Call(call) = part
                && call.state == CallState::Running
                && !call.question().is_some_and(|question| open.contains(question))
            {
                call.settle();
                call.state = CallState::Cancelled;
            }
        }
    }

    /// Whether the turn has ended in the middle of calls.
    pub(super) fn is_amid_calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call(call) if call.state == CallState::Running))
    }

    /// The questions that its calls ask.
    pub(super) fn questions(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => call.question(),
            _ => None,
        })
    }
}
