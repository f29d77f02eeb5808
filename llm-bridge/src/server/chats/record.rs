//! What happens in a turn, as the answer's message.

use std::{collections::HashSet, time::Instant};

use jiff::{SignedDuration, Timestamp};
use registry_core::text::cut;
use serde_json::Value;
use toolrack_apis::{
    Failure, FinishReason, FinishedTool, Front, ToolStatus, TurnEvent, Usage, openai::OpenAiFront,
};

use super::message::{CallPart, CallState, Fault, PICTURES_REFUSED, Part, Shown, Status, Tokens};
use crate::turn::most_pictures;

/// The longest text and reasoning of an answer that is kept, in bytes.
const MAX_TEXT: usize = 4 << 20;
/// How much of a call's result or arguments is kept for the page, in bytes; the model gets all.
const MAX_VALUE: usize = 256 << 10;
/// How much of its error, of its message and of each of its side effects, in bytes, and of how many of these.
const MAX_SAID: usize = 16 << 10;
const MAX_EFFECTS: usize = 100;
/// How many parts an answer has.
const MAX_PARTS: usize = 4000;

/// The message of an answer that grows.
pub(super) struct Record {
    pub(super) shown: Shown,
    /// When the reasoning began that is the last part.
    thinking: Option<Instant>,
    began: Instant,
    /// How long the turns before took that have begun the same message, in milliseconds.
    before_ms: u64,
    room: usize,
}

impl Record {
    /// An answer, which may have parts already.
    pub(super) fn new(mut shown: Shown) -> Self {
        let before_ms = shown.duration_ms.unwrap_or(0);
        (shown.status, shown.finish_reason, shown.error) = (Status::Running, None, None);
        Self { shown, thinking: None, began: Instant::now(), before_ms, room: MAX_TEXT }
    }

    /// Whether more has come than is kept.
    pub(super) fn is_full(&self) -> bool {
        self.room == 0 || self.shown.parts.len() >= MAX_PARTS
    }

    /// Takes an event.
    pub(super) fn take(&mut self, event: &TurnEvent, now: Timestamp) {
        if !matches!(event, TurnEvent::Reasoning { .. } | TurnEvent::Passing(_) | TurnEvent::PromptTokens(_))
        {
            self.end_thinking();
        }
        match event {
            TurnEvent::Model(name) => self.shown.model = Some(name.clone()),
            TurnEvent::Text(text) => self.say(text),
            TurnEvent::Reasoning { text, .. } => self.think(text),
            TurnEvent::Message { id, text, part } => self.add_to_call(id, text, part.as_ref()),
            TurnEvent::Tool(status) => self.tool(status, now),
            TurnEvent::Notice(text) => self.shown.parts.push(Part::Notice { text: text.clone() }),
            TurnEvent::Finished { reason, usage } => self.finish(reason, usage),
            TurnEvent::Failed(failure) => {
                let error = Fault { message: failure.message.clone(), r#type: kind(failure) };
                self.shown.error = Some(error);
            }
            TurnEvent::PromptTokens(_)
            | TurnEvent::CallBegun { .. }
            | TurnEvent::CallDelta { .. }
            | TurnEvent::Calls(_)
            | TurnEvent::Passing(_) => {}
        }
    }

    /// Names the failure of a turn with pictures of the user, if it is about these.
    pub(super) fn name_refusal_of_pictures(&mut self) {
        if let Some(error) = &mut self.shown.error
            && most_pictures(&error.message).is_some()
        {
            error.r#type = PICTURES_REFUSED.to_owned();
        }
    }

    /// The calls that wait for the answer to a question.
    pub(super) fn asking(&self) -> Vec<CallPart> {
        let asks = |part: &Part| match part {
            Part::Call(call) if call.state == CallState::Running && call.question.is_some() => {
                Some((**call).clone())
            }
            _ => None,
        };
        self.shown.parts.iter().filter_map(asks).collect()
    }

    /// Ends the message. Of these calls it keeps that they wait.
    pub(super) fn end(&mut self, status: Status, asking: Vec<CallPart>) {
        self.end_thinking();
        self.shown.end(status, &HashSet::new());
        for asking in asking {
            if let Some(call) = self.call(&asking.id) {
                *call = asking;
            }
        }
        let took = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.shown.duration_ms = Some(self.before_ms.saturating_add(took));
    }

    /// As much of a text as there is room for.
    fn fitting<'t>(&mut self, text: &'t str) -> &'t str {
        let end = text.floor_char_boundary(self.room);
        self.room -= end;
        if end < text.len() {
            self.room = 0;
        }
        text.get(..end).unwrap_or_default()
    }

    fn say(&mut self, text: &str) {
        let text = self.fitting(text);
        match self.shown.parts.last_mut() {
            Some(Part::Text { text: said }) => said.push_str(text),
            // Models put blank lines between their parts.
            _ if text.trim().is_empty() => {}
            _ => self.shown.parts.push(Part::Text { text: text.trim_start().to_owned() }),
        }
    }

    fn think(&mut self, text: &str) {
        let text = self.fitting(text);
        match self.shown.parts.last_mut() {
            Some(Part::Reasoning { text: thought, .. }) if self.thinking.is_some() => thought.push_str(text),
            _ if text.trim().is_empty() => {}
            _ => {
                self.thinking = Some(Instant::now());
                self.shown.parts.push(Part::Reasoning { text: text.trim_start().to_owned(), ms: None });
            }
        }
    }

    fn end_thinking(&mut self) {
        let Some(began) = self.thinking.take() else { return };
        if let Some(Part::Reasoning { ms, .. }) = self.shown.parts.last_mut() {
            *ms = u64::try_from(began.elapsed().as_millis()).ok();
        }
    }

    /// The last call of an id: one that is tried again has the same.
    fn call(&mut self, id: &str) -> Option<&mut CallPart> {
        self.shown.parts.iter_mut().rev().find_map(|part| match part {
            Part::Call(call) if call.id == id => Some(&mut **call),
            _ => None,
        })
    }

    /// Changes the running call of an id, which may begin with it.
    fn change_call(&mut self, id: &str, name: &str, change: impl FnOnce(&mut CallPart)) {
        if self.call(id).is_none_or(|call| call.state != CallState::Running) {
            let call = CallPart { id: id.to_owned(), name: name.to_owned(), ..CallPart::default() };
            self.shown.parts.push(Part::Call(Box::new(call)));
        }
        if let Some(call) = self.call(id) {
            change(call);
        }
    }

    fn add_to_call(&mut self, id: &str, text: &str, part: Option<&Value>) {
        let is_text = part.is_none_or(|part| part["type"] == "text");
        let size = part.map_or(text.len(), |part| part.to_string().len());
        if size > self.room {
            self.room = 0;
            return;
        }
        self.room -= size;
        let Some(call) = self.call(id) else { return };
        let own = part.and_then(|part| part["text"].as_str()).unwrap_or(text);
        let last = call.parts.last_mut().filter(|last| is_text && last["type"] == "text");
        match last.and_then(|last| last.get_mut("text")) {
            Some(Value::String(before)) => before.push_str(own),
            _ if is_text => call.parts.push(serde_json::json!({"type": "text", "text": own})),
            _ => call.parts.extend(part.cloned()),
        }
    }

    fn tool(&mut self, status: &ToolStatus, now: Timestamp) {
        match status {
            ToolStatus::Begun { id, name, dialect } => {
                self.change_call(id, name, |call| call.dialect.clone_from(dialect));
            }
            ToolStatus::Delta { .. } => {}
            ToolStatus::Aborted { id, .. } => {
                self.shown.parts.retain(|part| !matches!(part, Part::Call(call) if call.id == *id && call.state == CallState::Running));
            }
            ToolStatus::Started { id, name, arguments, dialect } => {
                self.change_call(id, name, |call| {
                    call.name.clone_from(name);
                    call.dialect.clone_from(dialect);
                    call.arguments = bounded(arguments);
                    call.began_at = Some(now);
                });
            }
            ToolStatus::Progress {
                id,
                name,
                message,
                progress,
                approval,
                approval_seconds,
                reason,
                question,
            } => {
                let question = question.as_ref().filter(|question| question.waits);
                let seconds = approval_seconds.or_else(|| question.map(|question| question.seconds));
                let seconds = seconds.filter(|_| approval.is_some() || question.is_some());
                let until = |seconds: u64| {
                    now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok()
                };
                self.change_call(id, name, |call| {
                    call.message = Some(message.clone());
                    call.progress = *progress;
                    call.approval.clone_from(approval);
                    call.reason.clone_from(reason);
                    call.question = question.and_then(|question| serde_json::to_value(question).ok());
                    call.answer_by = seconds.and_then(until);
                });
            }
            ToolStatus::Finished(tool) => self.finish_call(tool),
        }
    }

    fn finish_call(&mut self, tool: &FinishedTool) {
        let FinishedTool {
            id,
            name,
            success,
            result,
            error,
            cancelled,
            message,
            side_effects,
            duration_ms,
            retry_at,
            changed_arguments,
            ..
        } = tool;
        self.change_call(id, name, |call| {
            call.settle();
            call.state = match (success, cancelled) {
                (true, _) => CallState::Ok,
                (false, true) => CallState::Cancelled,
                (false, false) => CallState::Failed,
            };
            call.result = result.as_ref().map(bounded);
            let said = |text: &String| cut(text.clone(), MAX_SAID);
            call.error = error.as_ref().map(said);
            call.said = message.as_ref().map(said);
            call.side_effects = side_effects.iter().take(MAX_EFFECTS).map(said).collect();
            call.duration_ms = Some(*duration_ms);
            call.retry_at.clone_from(retry_at);
            if let Some(changed) = changed_arguments {
                call.asked_for = Some(std::mem::replace(&mut call.arguments, bounded(changed)));
            }
        });
    }

    fn finish(&mut self, reason: &FinishReason, usage: &Usage) {
        self.shown.finish_reason = Some(reason.as_str().to_owned());
        let before = self.shown.usage.unwrap_or_default();
        let prompt_tokens = before.prompt_tokens.saturating_add(usage.input);
        let completion_tokens = before.completion_tokens.saturating_add(usage.output);
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        self.shown.usage = Some(Tokens { prompt_tokens, completion_tokens, total_tokens });
    }
}

/// The type of a failure, as in an error of chat completions.
fn kind(failure: &Failure) -> String {
    let body: Value = serde_json::from_slice(OpenAiFront.failure(failure).body()).unwrap_or_default();
    body.pointer("/error/type").and_then(Value::as_str).unwrap_or("upstream_error").to_owned()
}

/// A value, or the beginning of its text where it is too large.
fn bounded(value: &Value) -> Value {
    let text = match value {
        Value::String(text) if text.len() <= MAX_VALUE => return value.clone(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    if text.len() <= MAX_VALUE {
        return value.clone();
    }
    let beginning = text.get(..text.floor_char_boundary(MAX_VALUE)).unwrap_or_default();
    let left_out = text.len() - beginning.len();
    format!("{beginning}\n… {left_out} more bytes are not kept").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::chats::message::By;

    #[test]
    fn b17_what_the_page_gets_of_a_call_is_bounded() {
        let (fits, long) = ("x".repeat(256 << 10), "ü".repeat(200 << 10));
        assert_eq!(bounded(&json!(fits)), json!(fits));
        let cut = bounded(&json!({"a": [long]}));
        let cut = cut.as_str().unwrap();
        assert!(cut.len() < (256 << 10) + 64 && cut.ends_with(" more bytes are not kept"), "{}", cut.len());
    }

    #[test]
    fn b17_what_a_tool_says_of_a_call_is_bounded() {
        let long = "ü".repeat(1 << 20);
        let mut record =
            Record::new(Shown::begun("m".to_owned(), None, By::Assistant, Timestamp::UNIX_EPOCH));
        record.finish_call(&FinishedTool {
            id: "c".to_owned(),
            error: Some(long.clone()),
            message: Some(long.clone()),
            side_effects: vec![long; 1000],
            ..FinishedTool::default()
        });
        let call = record.call("c").unwrap();
        let said = call.side_effects.iter().chain(&call.error).chain(&call.said).map(String::len);
        assert_eq!(said.collect::<Vec<_>>(), [MAX_SAID + 3; MAX_EFFECTS + 2]);
    }

    #[test]
    fn b17_an_answer_has_so_many_parts_and_no_more() {
        let begun = Shown::begun("m".to_owned(), None, By::Assistant, Timestamp::UNIX_EPOCH);
        let mut record = Record::new(begun);
        for at in 0..4000 {
            assert!(!record.is_full(), "{at}");
            record.take(&TurnEvent::Notice("n".to_owned()), Timestamp::UNIX_EPOCH);
        }
        assert!(record.is_full());
    }
}
