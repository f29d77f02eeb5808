//! What a turn of a chat is about: the messages that the model gets, and where its answer goes.

use registry_core::{Caller, store::ChatMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolrack_apis::{Message, Role};

use super::{
    kept_message::{Kept, as_interrupted},
    message::{By, PICTURES_REFUSED, Shown, Status},
    messages::unknown,
    settings::Settings,
    tree::Tree,
};
use crate::{
    server::requests::{api_error::ApiError, body::Body},
    turn::{Backend, without_pictures},
};

/// How long a question of a tool waits, in seconds: until it expires.
const QUESTION_WAIT: u64 = 86_400;
/// What the model is asked where its answer was cut off.
pub(super) const GO_ON: &str = "Your last answer was cut off. Go on exactly where it ends, without repeating any of it and without a remark.";

/// What a turn begins with: one of `content`, `regenerate`, `continue` and `answer`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewChatTurn")]
pub(super) struct NewTurn {
    /// The message that a new one follows: by default the one that is shown last; `null` to begin anew.
    #[serde(default, deserialize_with = "given")]
    #[schemars(with = "Option<String>")]
    parent: Option<Option<String>>,
    /// A new message of the user: a text, or parts as in chat completions.
    #[serde(default)]
    pub(super) content: Option<Value>,
    /// An answer beside which there is to be another one.
    #[serde(default)]
    regenerate: Option<String>,
    /// An answer that was cut off, and goes on.
    #[serde(default)]
    r#continue: Option<String>,
    /// A message of the user that is to be answered.
    #[serde(default)]
    answer: Option<String>,
    /// The model, for this answer.
    #[serde(default)]
    model: Option<String>,
    /// Whether the model gets a description in place of the pictures of the message that it answers.
    #[serde(default)]
    without_pictures: bool,
    /// How long calls wait for an approval, in seconds.
    #[serde(default)]
    approval_wait_seconds: Option<u64>,
}

/// A field that was sent, also as `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Body for NewTurn {
    const EXAMPLE: &str = "`{\"content\": \"…\"}`, or `{\"regenerate\": \"msg_…\"}`";
}

/// Which model a turn asks.
pub(super) struct Asked {
    name: Option<String>,
    sees: Option<bool>,
}

impl Asked {
    pub(super) fn of(new: &NewTurn, settings: &Settings, backend: &Backend, caller: &Caller) -> Self {
        let usual = || backend.settings().model.clone();
        let name = new.model.clone().or_else(|| settings.model.clone()).or_else(usual);
        let sees = name.as_deref().and_then(|name| backend.sees(name, caller));
        Self { name, sees }
    }

    /// Whether it takes no pictures: as is set or known, or as it has refused some in this chat.
    fn is_blind(&self, all: &[ChatMessage]) -> bool {
        let refused = |message: &ChatMessage| {
            let shown =
                message.document.contains(PICTURES_REFUSED).then(|| Shown::of(message).ok()).flatten();
            shown.is_some_and(|shown| {
                shown.error.is_some_and(|error| error.r#type == PICTURES_REFUSED)
                    && (self.name.is_none() || self.name == shown.model)
            })
        };
        self.sees == Some(false) || all.iter().any(refused)
    }
}

/// What a turn is about, before it is begun.
#[derive(Default)]
pub(super) struct Plan {
    /// The user's message, if there is a new one, and the one that it follows.
    pub(super) new: Option<(Option<String>, Message)>,
    /// The messages that the model gets before the last one.
    pub(super) earlier: Vec<Message>,
    /// The message before a new one, where it was never answered.
    unanswered: Option<Message>,
    pub(super) found: Vec<String>,
    /// The last message that the model gets, where it is not new.
    pub(super) last: Option<Message>,
    /// The answer that goes on.
    pub(super) goes_on: Option<Kept>,
    /// Whether that was in the middle of calls, which are the last of the messages.
    pub(super) is_amid_calls: bool,
    /// The message that the answer follows, where it is not new.
    pub(super) parent: Option<String>,
}

/// The messages of a path for the model, in alternating roles: many templates refuse two messages of the user in a row.
fn for_model(path: &[&ChatMessage]) -> Result<(Vec<Message>, Vec<String>), ApiError> {
    let (mut messages, mut found): (Vec<Message>, Vec<String>) = (Vec::new(), Vec::new());
    for message in path {
        let kept = Kept::of(message)?;
        if !kept.found.is_empty() {
            found.clone_from(&kept.found);
        }
        for message in kept.for_model() {
            match messages.last_mut() {
                Some(last) if last.role == Role::User && message.role == Role::User => {
                    last.parts.extend(message.parts)
                }
                _ => messages.push(message),
            }
        }
    }
    Ok((messages, found))
}

impl NewTurn {
    /// Finds out what the turn is about.
    pub(super) fn plan(
        &self,
        all: &[ChatMessage],
        leaf: &str,
        new: Option<Message>,
        asked: &Asked,
    ) -> Result<Plan, ApiError> {
        let mut plan = self.planned(all, leaf, new)?;
        // The pictures of the messages before would have each turn refused.
        if asked.is_blind(all) {
            plan.earlier.iter_mut().chain(&mut plan.unanswered).for_each(without_pictures);
        }
        if self.without_pictures {
            plan.last.iter_mut().for_each(without_pictures);
        }
        // A message that was never answered is asked together with this one.
        if let (Some(last), Some(unanswered)) = (&mut plan.last, plan.unanswered.take()) {
            last.parts.splice(0..0, unanswered.parts);
        }
        Ok(plan)
    }

    fn planned(&self, all: &[ChatMessage], leaf: &str, new: Option<Message>) -> Result<Plan, ApiError> {
        let tree = Tree::of(all);
        let find = |id: &str, by: By, param: &'static str| {
            let message = tree.get(id).ok_or_else(|| unknown().param(param))?;
            let kept = Kept::of(message)?;
            match kept.shown.role == by {
                true => Ok(kept),
                false => {
                    let what = if by == By::User { "a message of the user" } else { "an answer" };
                    Err(ApiError::invalid(param, format!("`{param}` has to be the id of {what}")))
                }
            }
        };
        let behind = |id: Option<&str>| for_model(&id.map(|id| tree.path(id)).unwrap_or_default());
        let answered = |id: String| {
            let (mut earlier, found) = behind(Some(&id))?;
            let last = earlier.pop();
            Ok(Plan { earlier, found, last, parent: Some(id), ..Plan::default() })
        };
        if let Some(new) = new {
            let shown = Some(leaf).filter(|leaf| !leaf.is_empty()).map(str::to_owned);
            let parent = self.parent.clone().unwrap_or(shown);
            if let Some(parent) = &parent {
                tree.get(parent).ok_or_else(|| unknown().param("parent"))?;
            }
            let (mut earlier, found) = behind(parent.as_deref())?;
            let unanswered = earlier.pop_if(|last| last.role == Role::User);
            let last = Some(new.clone());
            return Ok(Plan {
                new: Some((parent, new)),
                earlier,
                unanswered,
                found,
                last,
                ..Plan::default()
            });
        }
        if let Some(id) = &self.regenerate {
            let before = find(id, By::Assistant, "regenerate")?;
            return answered(before.shown.parent.ok_or_else(|| unknown().param("regenerate"))?);
        }
        if let Some(id) = &self.answer {
            find(id, By::User, "answer")?;
            return answered(id.clone());
        }
        let id = self.r#continue.as_deref().unwrap_or_default();
        let kept = find(id, By::Assistant, "continue")?;
        let is_cut =
            kept.shown.finish_reason.as_deref() == Some("length") || kept.shown.status != Status::Done;
        if !is_cut || kept.shown.parts.is_empty() {
            let message = "this answer was not cut off; send a new message to go on";
            return Err(ApiError::invalid("continue", message));
        }
        let (mut earlier, found) = behind(Some(id))?;
        let (is_amid_calls, parent) = (kept.shown.is_amid_calls(), kept.shown.parent.clone());
        let last = (!is_amid_calls).then(|| Message::text(Role::User, GO_ON));
        if is_amid_calls {
            (earlier, _) = behind(parent.as_deref())?;
            earlier.extend(as_interrupted(&kept.shown.parts));
        }
        Ok(Plan { earlier, found, last, goes_on: Some(kept), is_amid_calls, parent, ..Plan::default() })
    }

    /// Checks that it asks for one thing.
    pub(super) fn check(&self) -> Result<(), ApiError> {
        let given = [
            self.content.is_some(),
            self.regenerate.is_some(),
            self.r#continue.is_some(),
            self.answer.is_some(),
        ];
        if given.iter().filter(|is_given| **is_given).count() != 1 {
            let message = "send one of `content`, `regenerate`, `continue` and `answer`";
            return Err(ApiError::invalid("body", message));
        }
        match self.parent.is_some() && self.content.is_none() {
            true => Err(ApiError::invalid("parent", "`parent` goes with `content` only")),
            false => Ok(()),
        }
    }

    /// The turn as a request of chat completions, which is read as any.
    pub(super) fn request(&mut self, settings: &Settings, chat: &str) -> Value {
        let model = self.model.take().or_else(|| settings.model.clone());
        let content = self.content.take().unwrap_or_else(|| "…".into());
        let mut body = json!({
            "messages": [{"role": "user", "content": content}],
            "stream": true,
            "stream_options": {"include_usage": true},
            "toolrack": {"chat_id": chat, "question_wait_seconds": QUESTION_WAIT, "deltas": true},
        });
        let fields = [
            ("model", model.map(Value::from)),
            ("temperature", settings.temperature.map(Value::from)),
            ("top_p", settings.top_p.map(Value::from)),
            ("max_tokens", settings.max_tokens.map(Value::from)),
        ];
        if let Some(body) = body.as_object_mut() {
            body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        let extension = [
            ("allowed_tools", settings.tools.clone().map(Value::from)),
            ("approval_wait_seconds", self.approval_wait_seconds.map(Value::from)),
        ];
        if let Some(toolrack) = body.get_mut("toolrack").and_then(Value::as_object_mut) {
            toolrack
                .extend(extension.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        body
    }
}
