//! Answers as they go to clients: a line for each piece, or one reply.
//!
//! What happens to a tool of the server stands in the field `x_toolrack` beside an empty text, which every client takes. The API has
//! no calls in pieces: they come whole. Nor has it comments: an empty text keeps a silent stream alive.

use std::time::{Duration, Instant};

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, json};

use super::{API, DURATIONS, OF_MESSAGE, message_json::CallJson};
use crate::{
    ClientCall, Encode, FinishReason, Framing, Passing, RawJson, ToolStatus, TurnEvent, Usage,
    logprobs::as_ollama, passing::is_ours,
};

/// Where a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Chat,
    Generate,
}

/// What the lines of a stream and a whole reply have in common.
#[derive(Debug)]
struct Head {
    endpoint: Endpoint,
    model: String,
    created_at: String,
    began: Instant,
    /// When the model's first word came.
    first_word: Option<Instant>,
}

impl Head {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            model: String::new(),
            created_at: jiff::Timestamp::now().to_string(),
            began: Instant::now(),
            first_word: None,
        }
    }

    fn see(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::Model(name) => self.model.clone_from(name),
            TurnEvent::Text(_) | TurnEvent::Reasoning { .. } | TurnEvent::Calls(_) => {
                self.first_word.get_or_insert_with(Instant::now);
            }
            _ => {}
        }
    }

    /// A line that says this; it is not the last.
    fn line<'a>(&'a self, said: Said<'a>) -> Line<'a> {
        Line {
            model: &self.model,
            created_at: &self.created_at,
            said: SaidAt { said, endpoint: self.endpoint },
            done: false,
            end: None,
            x_toolrack: None,
            passing: LineFields(said.passing),
        }
    }

    fn end<'a>(&self, reason: &'a FinishReason, usage: &Usage) -> End<'a> {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let total = nanos(self.began.elapsed());
        let prompt = self.first_word.map_or(total, |first| nanos(first - self.began));
        // A client that divides by a duration never divides by 0.
        let own = [0, prompt.max(1), total.saturating_sub(prompt).max(1)];
        let [load_duration, prompt_eval_duration, eval_duration] = std::array::from_fn(|at| {
            let name = DURATIONS.get(at).copied().unwrap_or_default();
            let upstream = usage.passing.get(API, name).and_then(|json| json.get().parse().ok());
            upstream.or_else(|| own.get(at).copied()).unwrap_or_default()
        });
        End {
            done_reason: match reason {
                FinishReason::ToolCalls => "stop",
                reason => reason.as_str(),
            },
            total_duration: total.max(1),
            load_duration,
            prompt_eval_count: usage.counted().map(|usage| usage.input),
            prompt_eval_duration,
            eval_count: usage.counted().map(|usage| usage.output),
            eval_duration,
        }
    }
}

/// Encodes a turn as the lines of a stream.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    head: Head,
    /// Passing fields that wait for the next line.
    passing: Passing,
}

impl StreamEncoder {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self { head: Head::new(endpoint), passing: Passing::none() }
    }

    fn say(&mut self, said: Said<'_>, x_toolrack: Option<Value>, out: &mut Vec<u8>) {
        let passing = std::mem::take(&mut self.passing);
        let said = Said { passing: passing.to(API), ..said };
        Framing::Lines.append(out, None, &Line { x_toolrack, ..self.head.line(said) });
    }

    /// Keeps passing fields for the next line. Two values of one field are two lines.
    fn pass(&mut self, fields: &Passing, out: &mut Vec<u8>) {
        if fields.to(API).iter().any(|(name, _)| self.passing.get(API, name).is_some()) {
            self.say(Said::default(), None, out);
        }
        add_passing(&mut self.passing, fields);
    }
}

impl Encode for StreamEncoder {
    fn content_type(&self) -> &'static str {
        Framing::Lines.content_type()
    }

    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        self.head.see(&event);
        match &event {
            TurnEvent::Text(content) => self.say(Said { content, ..Said::default() }, None, out),
            // A seal has no place in this API.
            TurnEvent::Reasoning { text, .. } if text.is_empty() => {}
            TurnEvent::Reasoning { text: thinking, .. } => {
                self.say(Said { thinking, ..Said::default() }, None, out);
            }
            TurnEvent::Message { text: content, .. } => {
                self.say(Said { content, ..Said::default() }, event.details(), out);
            }
            TurnEvent::Tool(_) | TurnEvent::Notice(_) => self.say(Said::default(), event.details(), out),
            // In one line: some clients number calls by their places in it, and would take one for the continuation of another.
            TurnEvent::Calls(calls) => self.say(Said { calls, ..Said::default() }, None, out),
            TurnEvent::Passing(fields) => self.pass(as_ollama(fields).as_ref().unwrap_or(fields), out),
            // The calls come whole.
            TurnEvent::Model(_)
            | TurnEvent::PromptTokens(_)
            | TurnEvent::CallBegun { .. }
            | TurnEvent::CallDelta { .. } => {}
            TurnEvent::Finished { reason, usage } => {
                let passing = std::mem::take(&mut self.passing);
                let line = self.head.line(Said { passing: passing.to(API), ..Said::default() });
                let end = Some(self.head.end(reason, usage));
                Framing::Lines.append(out, None, &Line { done: true, end, ..line });
            }
            TurnEvent::Failed(failure) => {
                Framing::Lines.append(out, None, &json!({ "error": failure.message }));
            }
        }
    }

    fn finish(&mut self, _: &mut Vec<u8>) {}

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        Framing::Lines.append(out, None, &self.head.line(Said::default()));
    }
}

/// Encodes a turn as one reply.
#[derive(Debug)]
pub(super) struct WholeEncoder {
    head: Head,
    content: String,
    thinking: String,
    calls: Vec<ClientCall>,
    details: Vec<Value>,
    passing: Passing,
    end: Option<TurnEvent>,
}

impl WholeEncoder {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self {
            head: Head::new(endpoint),
            content: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            details: Vec::new(),
            passing: Passing::none(),
            end: None,
        }
    }
}

impl Encode for WholeEncoder {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn event(&mut self, event: TurnEvent, _: &mut Vec<u8>) {
        self.head.see(&event);
        match event {
            TurnEvent::Tool(ToolStatus::Begun { .. } | ToolStatus::Delta { .. }) => {}
            _ => self.details.extend(event.details()),
        }
        match event {
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => self.content.push_str(&text),
            TurnEvent::Reasoning { text, .. } => self.thinking.push_str(&text),
            TurnEvent::Calls(calls) => self.calls.extend(calls),
            TurnEvent::Passing(fields) => {
                add_passing(&mut self.passing, as_ollama(&fields).as_ref().unwrap_or(&fields));
            }
            end @ (TurnEvent::Finished { .. } | TurnEvent::Failed(_)) => self.end = Some(end),
            _ => {}
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let (reason, usage) = match self.end.take() {
            Some(TurnEvent::Failed(failure)) => {
                return Framing::append_json(out, &json!({ "error": failure.message }));
            }
            Some(TurnEvent::Finished { reason, usage }) => (reason, usage),
            _ => (FinishReason::Stop, Usage::default()),
        };
        let said = Said {
            content: &self.content,
            thinking: &self.thinking,
            calls: &self.calls,
            passing: self.passing.to(API),
        };
        let details = std::mem::take(&mut self.details);
        let x_toolrack = (!details.is_empty()).then_some(Value::Array(details));
        let end = Some(self.head.end(&reason, &usage));
        Framing::append_json(out, &Line { done: true, end, x_toolrack, ..self.head.line(said) });
    }

    fn keep_alive(&mut self, _: &mut Vec<u8>) {}
}

/// Adds later fields: lists are appended, other values are the last.
fn add_passing(passing: &mut Passing, later: &Passing) {
    if passing.is_empty() {
        *passing = Passing::of(API);
    }
    for (name, value) in later.to(API) {
        let list = |json: &RawJson| serde_json::from_str::<Vec<Value>>(json.get()).ok();
        match passing.get(API, name).and_then(list).zip(list(value)) {
            Some((mut items, more)) => {
                items.extend(more);
                passing.push(name.clone(), RawJson::of(&items));
            }
            None => passing.push(name.clone(), value.clone()),
        }
    }
}

/// What a line says.
#[derive(Clone, Copy, Default)]
struct Said<'a> {
    content: &'a str,
    thinking: &'a str,
    calls: &'a [ClientCall],
    passing: &'a [(Box<str>, RawJson)],
}

#[derive(Serialize)]
struct Line<'a> {
    model: &'a str,
    created_at: &'a str,
    #[serde(flatten)]
    said: SaidAt<'a>,
    done: bool,
    #[serde(flatten)]
    end: Option<End<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_toolrack: Option<Value>,
    #[serde(flatten)]
    passing: LineFields<'a>,
}

#[derive(Serialize)]
struct End<'a> {
    done_reason: &'a str,
    total_duration: u64,
    load_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_eval_count: Option<u64>,
    prompt_eval_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_count: Option<u64>,
    eval_duration: u64,
}

/// `/api/chat` has a message where `/api/generate` has fields of the line.
struct SaidAt<'a> {
    said: Said<'a>,
    endpoint: Endpoint,
}

impl Serialize for SaidAt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self.endpoint {
            Endpoint::Chat => map.serialize_entry("message", &MessageJson(self.said))?,
            Endpoint::Generate => write_said(&mut map, "response", self.said)?,
        }
        map.end()
    }
}

struct MessageJson<'a>(Said<'a>);

impl Serialize for MessageJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", "assistant")?;
        write_said(&mut map, "content", self.0)?;
        for (name, value) in self.0.passing {
            if let Some(name) = name.strip_prefix(OF_MESSAGE).filter(|name| !is_ours(name)) {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

fn write_said<M: SerializeMap>(map: &mut M, content: &'static str, said: Said<'_>) -> Result<(), M::Error> {
    map.serialize_entry(content, said.content)?;
    if !said.thinking.is_empty() {
        map.serialize_entry("thinking", said.thinking)?;
    }
    if !said.calls.is_empty() {
        let calls: Vec<CallJson<'_>> = said
            .calls
            .iter()
            .zip(0..)
            .map(|(one, index)| CallJson::at(index, &one.call, &one.passing))
            .collect();
        map.serialize_entry("tool_calls", &calls)?;
    }
    Ok(())
}

/// The passing fields of a line itself.
struct LineFields<'a>(&'a [(Box<str>, RawJson)]);

impl Serialize for LineFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let here = self.0.iter().filter(|(name, _)| !name.starts_with(OF_MESSAGE) && !is_ours(name));
        serializer.collect_map(here.map(|(name, value)| (name, value)))
    }
}
