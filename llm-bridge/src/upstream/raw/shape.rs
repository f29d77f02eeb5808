//! How a template wants messages, which it shows by what it writes of some.

use std::mem;

use serde_json::{Map, Value, json};
use toolrack_apis::SystemPlace;

/// The name and the argument of the call by which a template shows its dialect.
pub(super) const PROBE: (&str, &str, &str) = ("probe_tool", "value", "probe text");
/// The argument of a second one, and other words that have to be in a prompt.
const SECOND: &str = "second text";
const WORDS: &str = "probe words";

/// How a template wants messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Calls with ids of 9 digits.
    short_ids: bool,
    /// Arguments as JSON text, which is put together with other text.
    text_arguments: bool,
    /// `null` as the content beside calls that is empty.
    null_content: bool,
    /// One call in a message, and its result behind it.
    one_call: bool,
    /// No content beside calls that were thought about.
    thought_or_content: bool,
    /// Where system messages stand.
    pub(super) system: SystemPlace,
}

/// What a template makes of messages; `None` where it refuses them.
type Render<'r> = &'r dyn Fn(&[Value]) -> Option<String>;

impl Shape {
    /// The shape in which a template shows what it is given, and its prompt of a call in that shape. `is_known` says whether a call is written in a
    /// known dialect.
    pub(super) fn shown_by(render: Render<'_>, is_known: &dyn Fn(&str) -> bool) -> (Self, Option<String>) {
        let with = |text_arguments, null_content| Self { text_arguments, null_content, ..Self::default() };
        let shapes = [with(false, false), with(false, true), with(true, false), with(true, true)];
        let rendered: Vec<(Self, String)> = shapes
            .into_iter()
            .filter_map(|shape| {
                let called = shape.shaped(vec![user(), called(&[PROBE.2], ""), result(0)]);
                // A template may want a result behind each call.
                let after = called.get(..2).and_then(render).or_else(|| render(&called))?;
                after.contains(PROBE.2).then_some((shape, after))
            })
            .collect();
        let known = rendered.iter().position(|(_, after)| is_known(after)).unwrap_or(0);
        let (mut shape, after) = match rendered.into_iter().nth(known) {
            Some((shape, after)) => (shape, Some(after)),
            None => (Self::default(), None),
        };
        if after.is_some() {
            shape.learn_of_calls(render);
        }
        let systems = |place: SystemPlace| {
            let first = message(if place == SystemPlace::Nowhere { "user" } else { "system" }, WORDS);
            let later = message(if place == SystemPlace::Anywhere { "system" } else { "user" }, SECOND);
            let prompt = render(&match place {
                SystemPlace::Nowhere => vec![first],
                SystemPlace::First => vec![first, user()],
                SystemPlace::Anywhere => vec![first, user(), message("assistant", "z"), later, user()],
            });
            prompt.is_some_and(|prompt| {
                prompt.contains(WORDS) && (place != SystemPlace::Anywhere || prompt.contains(SECOND))
            })
        };
        let places = [SystemPlace::Anywhere, SystemPlace::First, SystemPlace::Nowhere];
        shape.system = places.into_iter().find(|place| systems(*place)).unwrap_or_default();
        (shape, after)
    }

    /// Finds out whether calls are lost or refused where there are several, or a text beside one that was thought about.
    fn learn_of_calls(&mut self, render: Render<'_>) {
        let shows = |shape: Self, messages: Vec<Value>, words: &[&str]| {
            let prompt = render(&shape.shaped(messages));
            prompt.is_some_and(|prompt| words.iter().all(|word| prompt.contains(word)))
        };
        let two = || vec![user(), called(&[PROBE.2, SECOND], ""), result(0), result(1), user()];
        let apart = Self { one_call: true, ..*self };
        if !shows(*self, two(), &[PROBE.2, SECOND]) && shows(apart, two(), &[PROBE.2, SECOND]) {
            *self = apart;
        }
        let thought = || {
            let mut called = called(&[PROBE.2], WORDS);
            set(&mut called, "thinking", SECOND);
            set(&mut called, "reasoning_content", SECOND);
            vec![user(), called, result(0), user()]
        };
        let without = Self { thought_or_content: true, ..*self };
        if !shows(*self, thought(), &[PROBE.2]) && shows(without, thought(), &[PROBE.2]) {
            *self = without;
        }
    }

    /// The same with short ids.
    pub(super) fn with_short_ids(self) -> Self {
        Self { short_ids: true, ..self }
    }

    pub(super) fn has_short_ids(self) -> bool {
        self.short_ids
    }

    pub(super) fn has_text_arguments(self) -> bool {
        self.text_arguments
    }

    /// Messages in this shape.
    pub(super) fn shaped(self, messages: Vec<Value>) -> Vec<Value> {
        let mut shaped: Vec<Value> = Vec::with_capacity(messages.len());
        let mut messages = messages.into_iter().peekable();
        while let Some(mut message) = messages.next() {
            let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut).map(mem::take);
            let Some(mut calls) = calls else {
                shaped.push(message);
                continue;
            };
            if self.text_arguments {
                calls.iter_mut().for_each(write_arguments);
            }
            let is_thought = message.get("thinking").is_some();
            if let Some(content) = message.get_mut("content") {
                if self.thought_or_content && is_thought {
                    *content = "".into();
                }
                if self.null_content && *content == "" {
                    *content = Value::Null;
                }
            }
            if !self.one_call || calls.len() < 2 {
                set(&mut message, "tool_calls", calls);
                shaped.push(message);
                continue;
            }
            let mut results = Vec::new();
            while let Some(result) =
                messages.next_if(|message| message.get("role").is_some_and(|role| role == "tool"))
            {
                results.push(result);
            }
            for call in calls {
                let empty = if self.null_content { Value::Null } else { "".into() };
                let next = json!({"role": "assistant", "content": empty});
                let mut one = mem::replace(&mut message, next);
                let id = call.get("id").cloned();
                set(&mut one, "tool_calls", vec![call]);
                shaped.push(one);
                shaped.extend(results.extract_if(.., |result| result.get("tool_call_id") == id.as_ref()));
            }
            shaped.extend(results);
        }
        shaped
    }
}

/// Puts the arguments of a call into text, as models write them.
fn write_arguments(call: &mut Value) {
    if let Some(arguments) = call.pointer_mut("/function/arguments")
        && arguments.is_object()
    {
        *arguments = arguments.to_string().into();
    }
}

fn set(message: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = message {
        fields.insert(name.to_owned(), value.into());
    }
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

pub(super) fn user() -> Value {
    message("user", "x")
}

fn id(at: usize) -> String {
    format!("00000000{}", at + 1)
}

/// A message with a call for each of these texts.
fn called(texts: &[&str], content: &str) -> Value {
    let call = |(at, text): (usize, &&str)| {
        let arguments: Map<String, Value> = [(PROBE.1.to_owned(), json!(text))].into_iter().collect();
        json!({"id": id(at), "type": "function", "function": {"name": PROBE.0, "arguments": arguments}})
    };
    let mut message = message("assistant", content);
    set(&mut message, "tool_calls", texts.iter().enumerate().map(call).collect::<Value>());
    message
}

fn result(at: usize) -> Value {
    json!({"role": "tool", "tool_call_id": id(at), "name": PROBE.0, "content": "y"})
}
