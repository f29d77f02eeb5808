//! What happens in a turn, as it is encoded for a client; and the pieces of a model server's answer, from which it is made.

use serde_json::{Value, json};

use crate::{Call, CallInput, Failure, Passing, Provider, RawJson, Seal};

/// A piece of a model server's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text of the answer, as the model wrote it; not empty.
    Text(String),
    /// Text that the server marks as reasoning, or the seal at its end.
    Reasoning {
        /// The next piece of the text.
        text: String,
        /// What the API that made it wants back with all of the text.
        seal: Option<Seal>,
    },
    /// A native tool call, or a piece of one.
    Call(CallPiece),
    /// Why the model stopped.
    Finish(FinishReason),
    /// The tokens used.
    Usage(Usage),
    /// Fields that only the API knows, by their path in its answer. They come before the piece that they stand beside.
    Passing(Passing),
}

/// A native tool call, or a piece of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPiece {
    /// The index of the call in the answer, if the server sends one.
    pub index: Option<u64>,
    /// The call's id; only in its first piece.
    pub id: Option<String>,
    /// The tool's name; only in its first piece.
    pub name: Option<String>,
    /// The arguments as text, or the next piece of it.
    pub arguments: String,
    /// What the arguments are.
    pub input: CallInput,
    /// What only the API knows of the call.
    pub passing: Passing,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// It had said all.
    Stop,
    /// It wrote this stop sequence.
    StopSequence(String),
    /// It reached the maximum of tokens.
    Length,
    /// It called tools.
    ToolCalls,
    /// It refused, or a filter stopped it.
    ContentFilter,
    /// Another reason, in the server's word.
    Other(String),
}

impl FinishReason {
    /// The reason as chat completions say it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop | Self::StopSequence(_) => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(word) => word,
        }
    }
}

/// The tokens used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request, with those that were cached.
    pub input: u64,
    /// Tokens of the answer, with its reasoning.
    pub output: u64,
    /// Tokens of the request that were read from a cache, if known.
    pub cached: Option<u64>,
    /// Tokens of the request that were written to a cache, if known.
    pub cache_written: Option<u64>,
    /// Tokens of reasoning, if known.
    pub reasoning: Option<u64>,
    /// What only the API counts, such as `cost`.
    pub passing: Passing,
}

impl Usage {
    /// Tokens of the request and the answer.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What was used, where anybody has counted. An answer without it is one that APIs allow, and nobody takes for free.
    pub(crate) fn counted(&self) -> Option<&Self> {
        (self.total() > 0).then_some(self)
    }

    /// Adds the usage of a later request of the same turn to an API. Passing fields are added number by number; others are those of
    /// the last.
    pub fn add(&mut self, later: Self, api: Provider) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        self.input = self.input.saturating_add(later.input);
        self.output = self.output.saturating_add(later.output);
        self.cached = sum(self.cached, later.cached);
        self.cache_written = sum(self.cache_written, later.cache_written);
        self.reasoning = sum(self.reasoning, later.reasoning);
        let mut total = Passing::of(api);
        for (name, before) in self.passing.to(api) {
            match later.passing.get(api, name) {
                Some(more) => total.push(name.clone(), add_json(before, more)),
                None => total.push(name.clone(), before.clone()),
            }
        }
        for (name, more) in later.passing.to(api) {
            if self.passing.get(api, name).is_none() {
                total.push(name.clone(), more.clone());
            }
        }
        self.passing = total;
    }
}

fn add_json(before: &RawJson, more: &RawJson) -> RawJson {
    let read = |json: &RawJson| serde_json::from_str(json.get()).unwrap_or(Value::Null);
    RawJson::of(&crate::openai::add_usage(Some(read(before)), read(more)))
}

/// What happens in a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEvent {
    /// The model that answers.
    Model(String),
    /// About how many tokens the model reads, with tools and prompts of the server. It comes before all that the model says.
    PromptTokens(u64),
    /// Text of the answer.
    Text(String),
    /// The model's reasoning, or the seal at its end.
    Reasoning {
        /// The next piece of the text.
        text: String,
        /// What the API that made it wants back with all of the text.
        seal: Option<Seal>,
    },
    /// What a tool of the server says or shows to the user: a paragraph of the answer that the model has not written, or a piece of one.
    Message {
        /// The call's id.
        id: String,
        /// The text, with the line ends that part it from what stands before.
        text: String,
        /// The part of the result that the text stands for, for programs that show it otherwise: its `type`, such as `image` or `table`, and
        /// what belongs to that.
        part: Option<Value>,
    },
    /// Something about a tool of the server.
    Tool(ToolStatus),
    /// Something that the user should know and that is not part of the answer.
    Notice(String),
    /// The model has begun to write a call of one of the client's tools. [`CallDelta`](Self::CallDelta)s follow, and then the call
    /// in [`Calls`](Self::Calls).
    CallBegun {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// What the arguments will be.
        input: CallInput,
        /// What only the API that it comes from knows of the call.
        passing: Passing,
    },
    /// The next piece of the arguments of a call that has begun.
    CallDelta {
        /// The call's id.
        id: String,
        /// A piece of the text of the arguments.
        arguments: String,
    },
    /// The model has called tools of the client; also those that came in deltas.
    Calls(Vec<ClientCall>),
    /// Fields that only the API of the model server knows, by their path in its answer.
    Passing(Passing),
    /// The turn is over.
    Finished {
        /// Why.
        reason: FinishReason,
        /// The tokens used, over all rounds.
        usage: Usage,
    },
    /// The turn broke off.
    Failed(Failure),
}

impl From<ToolStatus> for TurnEvent {
    fn from(status: ToolStatus) -> Self {
        Self::Tool(status)
    }
}

impl TurnEvent {
    /// What the field `x_toolrack` says of the event, for programs; only what happens to the server's tools is said.
    pub(crate) fn details(&self) -> Option<Value> {
        match self {
            Self::Tool(status) => Some(status.details()),
            Self::Notice(text) => Some(json!({"type": "notice", "message": text})),
            Self::Message { id, part, .. } => Some(message(id, part.as_ref(), None)),
            _ => None,
        }
    }

    /// [`details`](Self::details) in an answer that is one body: without what only a stream tells, and with the text of messages.
    pub(crate) fn details_of_whole(&self) -> Option<Value> {
        match self {
            Self::Tool(ToolStatus::Begun { .. } | ToolStatus::Delta { .. }) => None,
            Self::Message { id, text, part } => Some(message(id, part.as_ref(), Some(text))),
            _ => self.details(),
        }
    }
}

fn message(id: &str, part: Option<&Value>, text: Option<&str>) -> Value {
    let mut message = json!({"type": "message", "id": id});
    if let Some(fields) = message.as_object_mut() {
        fields.extend(text.map(|text| ("text".to_owned(), text.into())));
        fields.extend(part.map(|part| ("part".to_owned(), part.clone())));
    }
    message
}

/// A call of one of the client's tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientCall {
    /// The call.
    pub call: Call,
    /// What only the API that it comes from knows of it.
    pub passing: Passing,
}

/// Something about a tool of the server, for people and programs that watch.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolStatus {
    /// The model has begun to write a call. This and the deltas come only where
    /// [`Extension::deltas`](crate::Extension::deltas) asks for them.
    Begun {
        /// The call's id.
        id: String,
        /// The tool's name in the registry.
        name: String,
        /// `native`, or the dialect it is written in.
        dialect: String,
    },
    /// The next piece of the arguments of a call that has begun.
    Delta {
        /// The call's id.
        id: String,
        /// A piece of JSON text.
        arguments: String,
    },
    /// A call that had begun is none, or will not be made.
    Aborted {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// What had been read of its text. That text is also given as [`TurnEvent::Text`]; where it is not, this is empty.
        source: String,
        /// Why.
        reason: String,
    },
    /// The model has called the tool.
    Started {
        /// The call's id.
        id: String,
        /// The tool's name in the registry.
        name: String,
        /// The arguments as the model gave them.
        arguments: Value,
        /// `native`, or the dialect it was written in.
        dialect: String,
    },
    /// The running tool says something.
    Progress {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// What it is doing.
        message: String,
        /// How far it is, from 0 to 1, where it can tell.
        progress: Option<f64>,
        /// The id of the approval that the call waits for.
        approval: Option<String>,
        /// For how many seconds from now that can be answered.
        approval_seconds: Option<u64>,
        /// What the call would do with what its turn has read, where it waits because of that: a sentence.
        reason: Option<String>,
        /// The question that the call waits for the answer to: `id`, `message`, `schema`, `seconds`, `waits`.
        question: Option<Box<AskedQuestion>>,
    },
    /// The tool has finished.
    Finished(Box<FinishedTool>),
}

/// A question of a tool to the user.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct AskedQuestion {
    /// Names it.
    pub id: String,
    /// What is asked.
    pub message: String,
    /// The form of the answer, a JSON Schema.
    pub schema: Value,
    /// The question with its choices or fields, in words.
    #[serde(skip)]
    pub text: String,
    /// For how many seconds from now it can be answered.
    pub seconds: u64,
    /// Whether the call waits for the answer; otherwise it has to be made again.
    pub waits: bool,
}

/// The outcome of a call of a server tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FinishedTool {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Whether the tool did what it was asked.
    pub success: bool,
    /// What it found.
    pub result: Option<Value>,
    /// Why it did not.
    pub error: Option<String>,
    /// Whether it did not because it was stopped.
    pub cancelled: bool,
    /// What it says to the user.
    pub message: Option<String>,
    /// What was changed.
    pub side_effects: Vec<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The approval that the call waits for.
    pub approval: Option<String>,
    /// The question that the call waits for the answer to.
    pub question: Option<String>,
    /// When the same call may be made again (UTC, RFC 3339).
    pub retry_at: Option<String>,
    /// What it was made with, where a person has changed its arguments.
    pub changed_arguments: Option<Value>,
}

impl ToolStatus {
    /// The status as one line for people, and whether the call is over; `None` for what is nothing to them.
    pub fn line(&self) -> Option<(String, bool)> {
        Some(match self {
            Self::Begun { name, .. } => (format!("{name}: being called"), false),
            Self::Delta { .. } => return None,
            Self::Aborted { name, reason, .. } => (format!("{name}: not called: {reason}"), true),
            Self::Started { name, .. } => (format!("{name}: running"), false),
            Self::Progress { name, message, .. } => (format!("{name}: {message}"), false),
            Self::Finished(tool) => {
                let name = &tool.name;
                let text = match (&tool.error, &tool.message) {
                    (Some(error), _) => format!("{name}: {error}"),
                    (None, _) if tool.success => format!("{name}: done in {} ms", tool.duration_ms),
                    (None, Some(message)) => format!("{name}: not done: {message}"),
                    (None, None) => format!("{name}: not done"),
                };
                (text, true)
            }
        })
    }

    /// The status in the form of the field `x_toolrack`, for programs.
    pub fn details(&self) -> Value {
        match self {
            Self::Begun { id, name, dialect } => {
                json!({"type": "call_begun", "id": id, "name": name, "dialect": dialect})
            }
            Self::Delta { id, arguments } => {
                json!({"type": "call_delta", "id": id, "arguments": arguments})
            }
            Self::Aborted { id, name, source, reason } => {
                json!({"type": "call_aborted", "id": id, "name": name, "source": source, "reason": reason})
            }
            Self::Started { id, name, arguments, dialect } => json!({
                "type": "call_started", "id": id, "name": name, "arguments": arguments, "dialect": dialect,
            }),
            Self::Progress { id, name, message, progress, approval, approval_seconds, reason, question } => {
                let mut details = json!({
                    "type": "call_status", "id": id, "name": name, "message": message, "progress": progress,
                    "approval": approval, "approval_seconds": approval_seconds, "question": question,
                });
                if let (Some(reason), Some(details)) = (reason, details.as_object_mut()) {
                    details.insert("reason".to_owned(), reason.as_str().into());
                }
                details
            }
            Self::Finished(tool) if tool.cancelled => {
                let finished = FinishedTool { cancelled: false, ..(**tool).clone() };
                let mut details = Self::Finished(Box::new(finished)).details();
                if let Some(details) = details.as_object_mut() {
                    details.insert("cancelled".to_owned(), true.into());
                }
                details
            }
            Self::Finished(tool) if tool.changed_arguments.is_some() => {
                let FinishedTool { changed_arguments, .. } = &**tool;
                let finished = FinishedTool { changed_arguments: None, ..(**tool).clone() };
                let mut details = Self::Finished(Box::new(finished)).details();
                if let (Some(arguments), Some(details)) = (changed_arguments, details.as_object_mut()) {
                    details.insert("changed_arguments".to_owned(), arguments.clone());
                }
                details
            }
            Self::Finished(tool) => json!({
                "type": "call_finished", "id": tool.id, "name": tool.name, "success": tool.success,
                "result": tool.result, "error": tool.error, "message": tool.message,
                "side_effects": tool.side_effects, "duration_ms": tool.duration_ms, "approval": tool.approval,
                "question": tool.question, "retry_at": tool.retry_at,
            }),
        }
    }
}
