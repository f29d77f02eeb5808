//! What of a request a model's server accepts, as far as its refusals tell.

use serde_json::json;
use toolrack_apis::{Effort, Message, Passing, Provider, Request, Role, SystemPlace, Thinking};

use super::{constrain::set, files, run::Run};

/// What chat templates say that take a system message at the beginning alone: those of Qwen, and those of Mistral and Gemma, which want user and
/// assistant to take turns. Servers pass it on.
const SYSTEM_FIRST: &[&str] =
    &["unexpected message role", "system message must be at the beginning", "roles must alternate"];
/// What those of Gemma say.
const NO_SYSTEM: &str = "system role not supported";
/// What Ollama says of a model that does not think, and of one that knows no efforts.
const NO_THINKING: &str = "does not support thinking";
const NO_WORDS: &str = "think value";
/// What servers with OpenAI's API say of an effort that they or their models do not know.
const EFFORT: &[&str] = &["reasoning_effort", "reasoning effort"];
/// What servers say, among other things, that know no documents: `unknown variant `file``, `unsupported content[].type`, `Input should be 'text'`.
const FILES: &[&str] = &["file", "content", "input should be"];
/// What vLLM says of models with a tokenizer of Mistral.
const TEMPLATE: &str = "chat_template";

/// What a server accepts of how much the model thinks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ThinkingWords {
    #[default]
    All,
    /// Low, medium and high.
    Common,
    /// Whether it thinks.
    Switch,
    None,
}

impl ThinkingWords {
    fn of(self, asked: Thinking) -> Option<Thinking> {
        match (self, asked) {
            (Self::None, _) => None,
            (Self::Common, Thinking::Off) => Some(Thinking::Effort(Effort::Low)),
            (Self::Common, Thinking::Effort(effort)) => Some(Thinking::Effort(effort.nearest_common())),
            (Self::Switch, Thinking::Effort(_) | Thinking::Budget(_)) => Some(Thinking::On),
            _ => Some(asked),
        }
    }
}

/// What a model's server accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    system: SystemPlace,
    thinking: ThinkingWords,
    /// Whether arguments for the chat template are refused.
    no_template_arguments: bool,
    /// Whether documents are.
    no_files: bool,
}

impl Accepted {
    /// What to ask with after a refusal, if it is about something of the request that can be said otherwise.
    fn after(self, message: &str, request: &Request) -> Option<Self> {
        let message = message.to_ascii_lowercase();
        let system = match () {
            () if message.contains(NO_SYSTEM) => SystemPlace::Nowhere,
            () if SYSTEM_FIRST.iter().any(|words| message.contains(words)) => SystemPlace::First,
            () => SystemPlace::Anywhere,
        };
        if system > self.system {
            let next = Self { system, ..self };
            let mut messages = request.messages.clone();
            next.place_system(&mut messages);
            return (messages != request.messages).then_some(next);
        }
        if !self.no_files
            && files::count(&request.messages) > 0
            && FILES.iter().any(|words| message.contains(words))
        {
            return Some(Self { no_files: true, ..self });
        }
        let asked = request.thinking?;
        if message.contains(TEMPLATE) && !self.no_template_arguments {
            return Some(Self { no_template_arguments: true, ..self });
        }
        let says_the_same = ThinkingWords::Common.of(asked) == Some(asked);
        let thinking = match () {
            () if message.contains(NO_THINKING) => ThinkingWords::None,
            () if message.contains(NO_WORDS) => ThinkingWords::Switch,
            () if !EFFORT.iter().any(|words| message.contains(words)) => return None,
            () if self.thinking == ThinkingWords::All && !says_the_same => ThinkingWords::Common,
            () => ThinkingWords::None,
        };
        (thinking > self.thinking).then_some(Self { thinking, ..self })
    }

    /// Whether documents are accepted.
    pub(super) fn takes_files(self) -> bool {
        !self.no_files
    }

    /// Makes messages of the user of system messages where they are not accepted.
    pub(super) fn place_system(self, messages: &mut Vec<Message>) {
        self.system.hold(messages);
    }

    /// The messages as they are accepted, if that is otherwise than they are.
    pub(super) fn messages(self, messages: &[Message]) -> Option<Vec<Message>> {
        let mut placed = (self.system > SystemPlace::Anywhere).then(|| messages.to_vec())?;
        self.place_system(&mut placed);
        Some(placed)
    }
}

/// What the client has asked, where the model is asked otherwise.
pub(super) struct AsAsked {
    messages: Option<Vec<Message>>,
    thinking: Option<Thinking>,
    passing: Passing,
}

impl Run {
    /// Makes the request one that the server accepts; gives what it was.
    pub(super) async fn adapt(&mut self) -> AsAsked {
        self.api = self.route.api().await;
        Box::pin(self.read_files()).await;
        let passing = self.request.passing.clone();
        let mut messages = self.set_pictures_aside();
        if let Some(unread) = &self.unread {
            messages.get_or_insert_with(|| self.request.messages.clone());
            unread.remind(&mut self.request.messages);
        }
        if let Some(placed) = self.accepted.messages(&self.request.messages) {
            let before = std::mem::replace(&mut self.request.messages, placed);
            messages.get_or_insert(before);
        }
        let thinking = self.request.thinking;
        if let Some(asked) = thinking {
            self.tell_template(asked != Thinking::Off);
        }
        self.request.thinking = thinking.and_then(|asked| self.accepted.thinking.of(asked));
        AsAsked { messages, thinking, passing }
    }

    /// Makes the request again what it was.
    pub(super) fn put_back(&mut self, asked: AsAsked) {
        let AsAsked { messages, thinking, passing } = asked;
        if let Some(messages) = messages {
            self.request.messages = messages;
        }
        (self.request.thinking, self.request.passing) = (thinking, passing);
    }

    /// Says to a chat template whether the model thinks, in the names that templates know, unless the client has done so. `reasoning_effort` does not
    /// reach those that are off by default.
    fn tell_template(&mut self, thinks: bool) {
        const FIELD: &str = "chat_template_kwargs";
        let takes = self.route.kind().is_some_and(|kind| kind.template_arguments);
        let is_said = self.request.passing.get(Provider::OpenAi, FIELD).is_some();
        if takes && !is_said && !self.accepted.no_template_arguments {
            set(&mut self.request, FIELD, &json!({"enable_thinking": thinks, "thinking": thinks}));
        }
    }

    /// Lets the server go on with an answer that the client has begun, where it would begin another.
    pub(super) fn continue_answer(&mut self) {
        let is_begun =
            |message: &Message| message.role == Role::Assistant && message.calls().next().is_none();
        let fields = self.route.kind().map_or(&[][..], |kind| kind.continues);
        if self.request.messages.last().is_some_and(is_begun) {
            for (name, value) in fields {
                if self.request.passing.get(Provider::OpenAi, name).is_none() {
                    set(&mut self.request, name, &json!(value));
                }
            }
        }
    }

    /// What to ask with again after a refusal.
    pub(super) fn otherwise(&self, message: &str) -> Option<Accepted> {
        self.accepted.after(message, &self.request)
    }

    /// Remembers what the server accepts, as that has just worked.
    pub(super) fn learn_accepted(&mut self) {
        let (model, learned) = (self.route.learner(), &self.backend.shared.learned);
        if learned.accepted(&model) != self.accepted {
            learned.accepts(model, self.accepted);
        }
    }
}
