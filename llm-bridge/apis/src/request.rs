//! The request of a client, whatever its API.

use std::{borrow::Cow, ops::Range, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Extension, Message, Passing, RawJson};

/// A request for an answer of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// The model; `None` for the server's default.
    pub model: Option<String>,
    /// The conversation; see [`Message`] for its form.
    pub messages: Vec<Message>,
    /// What the messages continue, where the server keeps conversations.
    pub conversation: Conversation,
    /// The client's own tools. Their names differ.
    pub tools: Vec<ClientTool>,
    /// Which tools the model may or has to call.
    pub choice: ToolChoice,
    /// Whether one answer may have several calls; `None` for the model server's default.
    pub parallel: Option<bool>,
    /// Whether the client reads a stream. A wire asks the model server for a stream in any case.
    pub stream: bool,
    /// How the model chooses its words.
    pub sampling: Sampling,
    /// Of how many tokens at each place of the answer the client wants to know how likely they were, beside the one that the model chose; `None`
    /// for nothing of that.
    pub logprobs: Option<u64>,
    /// Whether and how much the model thinks; `None` for its default.
    pub thinking: Option<Thinking>,
    /// The form of the answer; `None` for free text.
    pub format: Option<ResponseFormat>,
    /// Whether a grammar in [`passing`](Self::passing) constrains the answer, which leaves no room for calls.
    pub has_grammar: bool,
    /// The field `toolrack`.
    pub extension: Extension,
    /// What only the client's API knows of the request.
    pub passing: Passing,
}

/// How a request takes part in a conversation that the server keeps, as in OpenAI's Responses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The id of the answer that the messages continue. Whoever keeps conversations takes this out and puts in what was before.
    pub previous_response_id: Option<String>,
    /// The messages before those of the request, which stand behind its instructions.
    pub earlier: Vec<Message>,
    /// Which of them are answers that are whole, in their order: the others are as a client has sent them.
    pub answers: Vec<EarlierAnswer>,
    /// The deferred tools that the conversation has found before, by their names.
    pub found: Vec<String>,
    /// The input of a request that is to be kept with its answer.
    pub input: Option<RawJson>,
    /// The ids of kept items that the input refers to, and that have to be known before it is whole.
    pub missing_items: Vec<String>,
    /// What those answers had read of which the input refers to items is kept under these, as [`SeenAnswer::read`].
    pub read: Vec<String>,
    /// Whether the first message has instructions for this request only, which are not kept.
    pub has_instructions: bool,
    /// Whether a turn begins anew where an earlier one at its place broke off: whoever keeps the conversation has what that one did, and goes
    /// on with it when the user says so.
    pub begins_anew: bool,
    /// Whether the last answer is the beginning of this turn's, which goes on with calls that were interrupted.
    pub goes_on: bool,
}

/// An answer of a conversation that the server keeps, with all that the turn has added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EarlierAnswer {
    /// Which of the messages.
    pub messages: Range<usize>,
    /// What its client has seen of it, if that is known.
    pub seen: Option<SeenAnswer>,
}

/// What a client has seen of a conversation up to an answer, as hashes: what such a conversation is found by when a client sends all of it
/// itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenAnswer {
    /// Of the conversation up to the answer.
    pub conversation: String,
    /// What the conversation had read is kept under these.
    pub read: Vec<String>,
}

/// A tool that the client defines and runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: Option<String>,
    /// What it is called with.
    pub input: ToolInput,
    /// What only the client's API knows of it.
    pub passing: Passing,
}

/// What a client's tool is called with.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolInput {
    /// A JSON object.
    Json {
        /// JSON Schema of the object, if the tool has one; shared, because it may be large.
        schema: Option<Arc<Value>>,
        /// Whether the model server has to keep to the schema; `None` for its default.
        strict: Option<bool>,
    },
    /// Free text, as in OpenAI's custom tools.
    Text {
        /// The grammar of the text in OpenAI's form, if the tool has one.
        format: Option<Arc<Value>>,
    },
}

impl ToolInput {
    /// JSON Schema of what the tool takes as a function, if it has one. Model servers have only functions: a free text is the argument `input`, and
    /// its grammar is there for the model to read.
    pub fn schema(&self) -> Option<Cow<'_, Value>> {
        let format = match self {
            Self::Json { schema, .. } => return schema.as_deref().map(Cow::Borrowed),
            Self::Text { format } => format.as_deref(),
        };
        // Chat completions have one object more around it than Responses.
        let grammar = format.map(|format| format.get("grammar").unwrap_or(format));
        let input = match grammar.and_then(|grammar| grammar.get("definition")?.as_str()) {
            Some(text) => {
                json!({"type": "string", "description": format!("A text that keeps to this grammar:\n{text}")})
            }
            None => json!({"type": "string"}),
        };
        Some(Cow::Owned(json!({"type": "object", "properties": {"input": input}, "required": ["input"]})))
    }
}

/// Which tools the model may or has to call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Named(String),
    /// Only these tools.
    Allowed {
        /// Their names.
        names: Vec<String>,
        /// Whether one has to be called.
        required: bool,
    },
}

/// How the model chooses its words. `None` is the model server's default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// The maximum number of tokens in the answer.
    pub max_tokens: Option<u64>,
    /// From 0 (always the likeliest token) on.
    pub temperature: Option<f64>,
    /// Chooses among the likeliest tokens that together have this probability, from 0 to 1.
    pub top_p: Option<f64>,
    /// Chooses among this many of the likeliest tokens; model servers give 0 and -1 a meaning.
    pub top_k: Option<i64>,
    /// Chooses among tokens of at least this share of the likeliest one's probability, from 0 to 1.
    pub min_p: Option<f64>,
    /// Makes tokens that occur already less likely.
    pub presence_penalty: Option<f64>,
    /// Makes tokens less likely each time they occur.
    pub frequency_penalty: Option<f64>,
    /// Divides the likelihood of tokens that occur already; 1 for none.
    pub repeat_penalty: Option<f64>,
    /// Makes the answer repeatable.
    pub seed: Option<i64>,
    /// The answer ends before any of these texts.
    pub stop: Vec<String>,
}

/// Whether and how much the model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It does not.
    Off,
    /// It does, as much as it likes.
    On,
    /// This much.
    Effort(Effort),
    /// Up to this many tokens.
    Budget(u64),
}

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// `minimal`
    Minimal,
    /// `low`
    Low,
    /// `medium`
    Medium,
    /// `high`
    High,
    /// `xhigh`
    ExtraHigh,
    /// `max`
    Max,
}

impl Effort {
    /// All of them, from the least.
    pub const ALL: [Self; 6] =
        [Self::Minimal, Self::Low, Self::Medium, Self::High, Self::ExtraHigh, Self::Max];

    /// The word that the APIs share.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The effort of that word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == word)
    }

    /// The nearest of low, medium and high, which all models with efforts know.
    pub const fn nearest_common(self) -> Self {
        match self {
            Self::Minimal | Self::Low => Self::Low,
            Self::Medium => Self::Medium,
            Self::High | Self::ExtraHigh | Self::Max => Self::High,
        }
    }

    /// The effort that comes nearest to a budget of tokens.
    pub const fn from_budget(tokens: u64) -> Self {
        match tokens {
            0..=1024 => Self::Low,
            1025..=8192 => Self::Medium,
            _ => Self::High,
        }
    }
}

/// The form of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema {
        /// A name for the schema, where the API has one.
        name: Option<String>,
        /// What the answer is, for the model.
        description: Option<String>,
        /// The schema.
        schema: Value,
        /// Whether the model server has to keep to the schema; `None` for its default.
        strict: Option<bool>,
    },
}
