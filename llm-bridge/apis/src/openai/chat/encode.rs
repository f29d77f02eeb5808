//! Answers as they go to clients: chunks of a stream, or one reply.
//!
//! What happens to a tool of the server rides on ordinary chunks with an empty text and extra fields, which is the one form that
//! every SDK takes: `event` is what Open WebUI shows as a status, `x_toolrack` has the details.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{API, OF_CHOICE, OF_MESSAGE, front::error_body};
use crate::{
    CallInput, ClientCall, Encode, FinishReason, Framing, Passing, RawJson, TurnEvent, Usage, json::Leftover,
    openai::Extra, passing::Fields,
};

/// Fields that Toolrack writes itself; those of a model server are left out.
const OWN: &[&str] = &["x_toolrack", "event"];

/// What the chunks of a stream and a whole reply have in common.
#[derive(Debug)]
struct Head {
    id: String,
    created: u64,
    model: String,
    /// Whether the client speaks of functions, as was usual before there were tools.
    is_legacy: bool,
}

impl Head {
    fn new(is_legacy: bool) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let id = format!("chatcmpl-{:016x}", fastrand::u64(..));
        Self { id, created, model: String::new(), is_legacy }
    }

    fn reason<'r>(&self, reason: &'r FinishReason) -> &'r str {
        match reason {
            FinishReason::Stop | FinishReason::StopSequence(_) => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls if self.is_legacy => "function_call",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::ContentFilter => "content_filter",
            FinishReason::Other(word) => word,
        }
    }
}

/// Encodes a turn as the chunks of a stream.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    head: Head,
    include_usage: bool,
    begun: bool,
    failed: bool,
    /// The ids of the calls that have been sent, whole or in part; each is at its index.
    calls: Vec<String>,
    /// Passing fields that wait for the next chunk.
    passing: Passing,
}

impl StreamEncoder {
    /// A stream, with the usage at its end where the client asked for it.
    pub(super) fn new(include_usage: bool, is_legacy: bool) -> Self {
        Self {
            head: Head::new(is_legacy),
            include_usage,
            begun: false,
            failed: false,
            calls: Vec::new(),
            passing: Passing::none(),
        }
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<u8>) {
        self.chunk(delta, None, None, out);
    }

    fn chunk(
        &mut self,
        delta: Delta<'_>,
        finish: Option<&FinishReason>,
        tool: Option<ToolFields>,
        out: &mut Vec<u8>,
    ) {
        let role = (!self.begun).then_some("assistant");
        self.begun = true;
        let passing = std::mem::take(&mut self.passing);
        let fields = passing.to(API);
        let delta = Delta { role, passing: Placed { fields, place: OF_MESSAGE }, ..delta };
        let choice = ChunkChoice {
            index: 0,
            delta,
            logprobs: Logprobs(fields),
            finish_reason: finish.map(|reason| self.head.reason(reason)),
            passing: Placed { fields, place: OF_CHOICE },
        };
        let chunk = Chunk {
            id: &self.head.id,
            object: "chat.completion.chunk",
            created: self.head.created,
            model: &self.head.model,
            choices: &[choice],
            usage: None,
            tool,
            passing: Placed { fields, place: "" },
        };
        Framing::Sse.append(out, None, &chunk);
    }

    /// Keeps passing fields for the next chunk. Two values of one field are two chunks.
    fn pass(&mut self, fields: Passing, out: &mut Vec<u8>) {
        if fields.to(API).iter().any(|(name, _)| self.passing.get(API, name).is_some()) {
            self.delta(Delta::default(), out);
        }
        if self.passing.is_empty() {
            self.passing = fields;
            return;
        }
        for (name, value) in fields.to(API) {
            self.passing.push(name.clone(), value.clone());
        }
    }

    /// Begins a call at the next index.
    fn begin_call(
        &mut self,
        (id, name, arguments): (&str, &str, &str),
        input: CallInput,
        passing: &Passing,
        out: &mut Vec<u8>,
    ) {
        let index = self.calls.len();
        self.calls.push(id.to_owned());
        let call = CallJson::new(id, name, arguments, input, passing);
        self.call_chunk(CallJson { index: Some(index), ..call }, out);
    }

    fn call_chunk(&mut self, call: CallJson<'_>, out: &mut Vec<u8>) {
        if self.head.is_legacy {
            let function_call = call.function;
            self.delta(Delta { function_call, ..Delta::default() }, out);
        } else {
            self.delta(Delta { tool_calls: Some(&[call]), ..Delta::default() }, out);
        }
    }
}

impl Encode for StreamEncoder {
    fn content_type(&self) -> &'static str {
        Framing::Sse.content_type()
    }

    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        if let TurnEvent::Passing(fields) = event {
            return self.pass(fields, out);
        }
        let text = |text| Delta { content: Some(text), ..Delta::default() };
        match &event {
            TurnEvent::Model(name) => self.head.model.clone_from(name),
            TurnEvent::Text(words) => self.delta(text(words), out),
            // A seal has no place in this API.
            TurnEvent::Reasoning { text, .. } if text.is_empty() => {}
            TurnEvent::Reasoning { text, .. } => {
                self.delta(Delta { reasoning_content: Some(text), ..Delta::default() }, out);
            }
            TurnEvent::Message { id, text: words } => {
                // Whoever shows the message of `call_finished` passes this text over.
                let x_toolrack = json!({"type": "message", "id": id});
                self.chunk(text(words), None, Some(ToolFields { event: None, x_toolrack }), out);
            }
            TurnEvent::Tool(_) | TurnEvent::Notice(_) => {
                if let Some(tool) = ToolFields::of(&event) {
                    self.chunk(text(""), None, Some(tool), out);
                }
            }
            TurnEvent::CallBegun { id, name, input, passing } => {
                self.begin_call((id, name, ""), *input, passing, out);
            }
            TurnEvent::CallDelta { id, arguments } => {
                if let Some(index) = self.calls.iter().position(|call| call == id) {
                    self.call_chunk(CallJson::delta(index, arguments), out);
                }
            }
            TurnEvent::Calls(calls) => {
                // One call a chunk: some clients read no more. One that came in deltas has been sent.
                for ClientCall { call, passing } in calls {
                    if !self.calls.contains(&call.id) {
                        self.begin_call((&call.id, &call.name, &call.arguments), call.input, passing, out);
                    }
                }
            }
            TurnEvent::Passing(_) => {}
            TurnEvent::Finished { reason, usage } => {
                self.chunk(Delta::default(), Some(reason), None, out);
                if self.include_usage {
                    let chunk = Chunk {
                        id: &self.head.id,
                        object: "chat.completion.chunk",
                        created: self.head.created,
                        model: &self.head.model,
                        choices: &[],
                        usage: Some(UsageJson::of(usage)),
                        tool: None,
                        passing: Placed::default(),
                    };
                    Framing::Sse.append(out, None, &chunk);
                }
            }
            TurnEvent::Failed(failure) => {
                self.failed = true;
                Framing::Sse.append(out, None, &error_body(failure));
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.failed {
            out.extend_from_slice(b"data: [DONE]\n\n");
        }
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b":\n\n");
    }
}

/// Encodes a turn as one reply.
#[derive(Debug)]
pub(super) struct WholeEncoder {
    head: Head,
    content: String,
    reasoning: String,
    calls: Vec<ClientCall>,
    details: Vec<Value>,
    end: Option<TurnEvent>,
    extra: Extra,
}

impl WholeEncoder {
    pub(super) fn new(is_legacy: bool) -> Self {
        Self {
            head: Head::new(is_legacy),
            content: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            details: Vec::new(),
            end: None,
            extra: Extra::default(),
        }
    }
}

impl Encode for WholeEncoder {
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    fn event(&mut self, event: TurnEvent, _: &mut Vec<u8>) {
        match event {
            TurnEvent::Model(name) => self.head.model = name,
            TurnEvent::Text(text) => self.content.push_str(&text),
            TurnEvent::Reasoning { text, .. } => self.reasoning.push_str(&text),
            TurnEvent::Message { id, text } => {
                self.content.push_str(&text);
                self.details.push(json!({"type": "message", "id": id, "text": text}));
            }
            TurnEvent::Tool(crate::ToolStatus::Begun { .. } | crate::ToolStatus::Delta { .. }) => {}
            TurnEvent::Tool(_) | TurnEvent::Notice(_) => {
                self.details.extend(ToolFields::of(&event).map(|fields| fields.x_toolrack));
            }
            // The calls come whole.
            TurnEvent::CallBegun { .. } | TurnEvent::CallDelta { .. } => {}
            TurnEvent::Calls(calls) => self.calls.extend(calls),
            TurnEvent::Passing(fields) => self.extra.add(extra_of(&fields)),
            end @ (TurnEvent::Finished { .. } | TurnEvent::Failed(_)) => self.end = Some(end),
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let (reason, usage) = match self.end.take() {
            Some(TurnEvent::Failed(failure)) => {
                return Framing::append_json(out, &error_body(&failure));
            }
            Some(TurnEvent::Finished { reason, usage }) => (reason, usage),
            _ => (FinishReason::Stop, Usage::default()),
        };
        let calls: Vec<CallJson<'_>> = self
            .calls
            .iter()
            .map(|ClientCall { call, passing }| {
                CallJson::new(&call.id, &call.name, &call.arguments, call.input, passing)
            })
            .collect();
        let is_legacy = self.head.is_legacy;
        let message = Message {
            role: "assistant",
            content: (!self.content.is_empty() || calls.is_empty()).then_some(self.content.as_str()),
            reasoning_content: Some(self.reasoning.as_str()).filter(|text| !text.is_empty()),
            function_call: calls.first().filter(|_| is_legacy).and_then(|call| call.function),
            tool_calls: Some(calls.as_slice()).filter(|calls| !calls.is_empty() && !is_legacy),
            passing: &self.extra.message,
        };
        let choice = WholeChoice {
            index: 0,
            message,
            logprobs: self.extra.choice.shift_remove("logprobs"),
            finish_reason: self.head.reason(&reason),
            passing: &self.extra.choice,
        };
        OWN.iter().for_each(|name| drop(self.extra.reply.shift_remove(*name)));
        let reply = Reply {
            id: &self.head.id,
            object: "chat.completion",
            created: self.head.created,
            model: &self.head.model,
            choices: [choice],
            usage: UsageJson::of(&usage),
            x_toolrack: Some(self.details.as_slice()).filter(|details| !details.is_empty()),
            passing: &self.extra.reply,
        };
        Framing::append_json(out, &reply);
    }

    fn keep_alive(&self, _: &mut Vec<u8>) {}
}

/// Passing fields by their place, to be put together with others.
fn extra_of(passing: &Passing) -> Extra {
    let mut extra = Extra::default();
    for (name, value) in passing.to(API) {
        let (fields, name) = match (name.strip_prefix(OF_CHOICE), name.strip_prefix(OF_MESSAGE)) {
            (Some(name), _) => (&mut extra.choice, name),
            (_, Some(name)) => (&mut extra.message, name),
            _ => (&mut extra.reply, &**name),
        };
        fields.insert(name.to_owned(), serde_json::from_str(value.get()).unwrap_or(Value::Null));
    }
    extra
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson<'a>>,
    #[serde(flatten)]
    tool: Option<ToolFields>,
    #[serde(flatten)]
    passing: Placed<'a>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Delta<'a>,
    logprobs: Logprobs<'a>,
    finish_reason: Option<&'a str>,
    #[serde(flatten)]
    passing: Placed<'a>,
}

#[derive(Default, Serialize)]
struct Delta<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [CallJson<'a>]>,
    #[serde(flatten)]
    passing: Placed<'a>,
}

#[derive(Serialize)]
struct Reply<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    choices: [WholeChoice<'a>; 1],
    usage: UsageJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_toolrack: Option<&'a [Value]>,
    #[serde(flatten)]
    passing: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct WholeChoice<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<Value>,
    finish_reason: &'a str,
    #[serde(flatten)]
    passing: &'a Map<String, Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a [CallJson<'a>]>,
    #[serde(flatten)]
    passing: &'a Map<String, Value>,
}

/// A call, or the next piece of its arguments.
#[derive(Clone, Copy, Serialize)]
pub(super) struct CallJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<FunctionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    custom: Option<CustomJson<'a>>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Clone, Copy, Serialize)]
struct FunctionJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

#[derive(Clone, Copy, Serialize)]
struct CustomJson<'a> {
    name: &'a str,
    input: &'a str,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

impl<'a> CallJson<'a> {
    pub(super) fn new(
        id: &'a str,
        name: &'a str,
        arguments: &'a str,
        input: CallInput,
        passing: &'a Passing,
    ) -> Self {
        let leftover = |name| Leftover(passing.get(API, name));
        let function = FunctionJson { name: Some(name), arguments, passing: leftover("function") };
        let custom = CustomJson { name, input: arguments, passing: leftover("custom") };
        let is_json = input == CallInput::Json;
        Self {
            index: None,
            id: Some(id),
            kind: Some(if is_json { "function" } else { "custom" }),
            function: is_json.then_some(function),
            custom: (!is_json).then_some(custom),
            passing: Fields { fields: passing.to(API), but: &["function", "custom", "index"] },
        }
    }

    fn delta(index: usize, arguments: &'a str) -> Self {
        let function = FunctionJson { name: None, arguments, passing: Leftover(None) };
        Self {
            index: Some(index),
            id: None,
            kind: None,
            function: Some(function),
            custom: None,
            passing: Fields { fields: &[], but: &[] },
        }
    }
}

/// What happens to a tool: for people (in Open WebUI's form), and for programs.
#[derive(Serialize)]
struct ToolFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Value>,
    x_toolrack: Value,
}

impl ToolFields {
    fn of(event: &TurnEvent) -> Option<Self> {
        let (line, x_toolrack) = match event {
            TurnEvent::Tool(status) => (status.line(), status.details()),
            TurnEvent::Notice(text) => {
                (Some((text.clone(), true)), json!({"type": "notice", "message": text}))
            }
            _ => return None,
        };
        let status = |(text, done)| json!({"type": "status", "data": {"description": text, "done": done}});
        Some(Self { event: line.map(status), x_toolrack })
    }
}

/// The passing fields of a place. `logprobs` has a field of its own, as SDKs expect it in each choice.
#[derive(Clone, Copy, Default)]
struct Placed<'a> {
    fields: &'a [(Box<str>, RawJson)],
    place: &'static str,
}

impl Serialize for Placed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let here = self.fields.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(self.place)?;
            let is_here = match self.place {
                "" => !name.starts_with(OF_CHOICE) && !name.starts_with(OF_MESSAGE) && !OWN.contains(&name),
                OF_CHOICE => name != LOGPROBS,
                _ => true,
            };
            is_here.then_some((name, value))
        });
        serializer.collect_map(here)
    }
}

const LOGPROBS: &str = "logprobs";

/// The field `logprobs` of a choice; null without any.
struct Logprobs<'a>(&'a [(Box<str>, RawJson)]);

impl Serialize for Logprobs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = self.0.iter().find(|(name, _)| name.strip_prefix(OF_CHOICE) == Some(LOGPROBS));
        found.map(|(_, value)| value).serialize(serializer)
    }
}

#[derive(Serialize)]
struct UsageJson<'a> {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<PromptDetails<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_tokens_details: Option<CompletionDetails<'a>>,
    #[serde(flatten)]
    passing: Fields<'a>,
}

#[derive(Serialize)]
struct PromptDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

#[derive(Serialize)]
struct CompletionDetails<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_tokens: Option<u64>,
    #[serde(flatten)]
    passing: Leftover<'a>,
}

impl<'a> UsageJson<'a> {
    fn of(usage: &'a Usage) -> Self {
        let (prompt, completion) = ("prompt_tokens_details", "completion_tokens_details");
        let (of_prompt, of_completion) = (usage.passing.get(API, prompt), usage.passing.get(API, completion));
        let has_prompt = usage.cached.or(usage.cache_written).is_some() || of_prompt.is_some();
        let has_completion = usage.reasoning.is_some() || of_completion.is_some();
        Self {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.total(),
            prompt_tokens_details: has_prompt.then_some(PromptDetails {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.cache_written,
                passing: Leftover(of_prompt),
            }),
            completion_tokens_details: has_completion.then_some(CompletionDetails {
                reasoning_tokens: usage.reasoning,
                passing: Leftover(of_completion),
            }),
            passing: Fields {
                fields: usage.passing.to(API),
                but: &["prompt_tokens_details", "completion_tokens_details"],
            },
        }
    }
}
