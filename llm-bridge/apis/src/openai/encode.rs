//! Answers as they go to clients: chunks of a stream, or one reply.
//!
//! What happens to a tool of the server rides on ordinary chunks with an empty text and extra fields, which is the one form that
//! every SDK takes: `event` is what Open WebUI shows as a status, `x_toolrack` has the details.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{
    API, OF_CHOICE, OF_MESSAGE,
    call::CallJson,
    chunk::{
        Chunk, ChunkChoice, Delta, Logprobs, Message, Opening, Placed, Reply, ToolFields, UsageJson,
        WholeChoice,
    },
    extra::Extra,
    front::error_body,
};
use crate::{
    CallInput, ClientCall, Encode, FinishReason, Framing, Passing, TurnEvent, Usage, logprobs::as_openai,
    passing::is_ours,
};

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

    /// What the chunks of a stream begin with.
    fn opening(&self) -> Vec<u8> {
        let Self { id, created, model, .. } = self;
        let opening = Opening { id, object: "chat.completion.chunk", created: *created, model };
        let mut json = Vec::new();
        Framing::append_json(&mut json, &opening);
        json.pop();
        json
    }

    /// Whether the answer has room for a call at that index. Of functions it has only one.
    fn has_room(&self, index: usize) -> bool {
        !self.is_legacy || index == 0
    }

    fn reason<'r>(&self, reason: &'r FinishReason) -> &'r str {
        match reason {
            FinishReason::ToolCalls if self.is_legacy => "function_call",
            reason => reason.as_str(),
        }
    }
}

/// What a client of functions is told of a call that its answer has no room for.
fn no_room(name: &str) -> TurnEvent {
    TurnEvent::Notice(format!(
        "the model also called `{name}`, which is left out: an answer to `functions` has room for one call. Send `tools` instead"
    ))
}

/// Encodes a turn as the chunks of a stream.
#[derive(Debug)]
pub(super) struct StreamEncoder {
    head: Head,
    /// What all chunks begin with: an object whose end is left out.
    opening: Vec<u8>,
    include_usage: bool,
    begun: bool,
    failed: bool,
    /// The ids of the calls that have been sent, whole or in part, and what their arguments are; each is at its index.
    calls: Vec<(String, CallInput)>,
    /// Passing fields that wait for the next chunk.
    passing: Passing,
}

impl StreamEncoder {
    /// A stream, with the usage at its end where the client asked for it.
    pub(super) fn new(include_usage: bool, is_legacy: bool) -> Self {
        let head = Head::new(is_legacy);
        Self {
            opening: head.opening(),
            head,
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
        let passing = Placed { fields, place: "" };
        let chunk = Chunk { choices: &[choice], usage: None, tool, passing };
        Framing::append_rest(out, &self.opening, &chunk);
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
        self.calls.push((id.to_owned(), input));
        if self.head.has_room(index) {
            let call = CallJson::new(id, name, arguments, input, passing);
            self.call_chunk(call.at(index), out);
        } else {
            self.chunk(text(""), None, ToolFields::of(&no_room(name)), out);
        }
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

fn text(text: &str) -> Delta<'_> {
    Delta { content: Some(text), ..Delta::default() }
}

impl Encode for StreamEncoder {
    fn content_type(&self) -> &'static str {
        Framing::Sse.content_type()
    }

    fn event(&mut self, event: TurnEvent, out: &mut Vec<u8>) {
        if let TurnEvent::Passing(fields) = event {
            return self.pass(as_openai(&fields).unwrap_or(fields), out);
        }
        match &event {
            TurnEvent::Model(name) => {
                self.head.model.clone_from(name);
                self.opening = self.head.opening();
            }
            TurnEvent::PromptTokens(_) => {}
            TurnEvent::Text(words) => self.delta(text(words), out),
            // A seal has no place in this API.
            TurnEvent::Reasoning { text, .. } if text.is_empty() => {}
            TurnEvent::Reasoning { text, .. } => {
                self.delta(Delta { reasoning_content: Some(text), ..Delta::default() }, out);
            }
            // Whoever shows the message of `call_finished` passes this text over.
            TurnEvent::Message { text: words, .. } => {
                self.chunk(text(words), None, ToolFields::of(&event), out);
            }
            TurnEvent::Tool(_) | TurnEvent::Notice(_) => {
                self.chunk(text(""), None, ToolFields::of(&event), out);
            }
            TurnEvent::CallBegun { id, name, input, passing } => {
                self.begin_call((id, name, ""), *input, passing, out);
            }
            TurnEvent::CallDelta { id, arguments } => {
                let at =
                    self.calls.iter().position(|(call, _)| call == id).filter(|at| self.head.has_room(*at));
                if let Some((index, (_, input))) = at.and_then(|at| Some((at, self.calls.get(at)?))) {
                    self.call_chunk(CallJson::delta(index, arguments, *input), out);
                }
            }
            TurnEvent::Calls(calls) => {
                // One call a chunk: some clients read no more. One that came in deltas has been sent.
                for ClientCall { call, passing } in calls {
                    if !self.calls.iter().any(|(id, _)| *id == call.id) {
                        self.begin_call((&call.id, &call.name, &call.arguments), call.input, passing, out);
                    }
                }
            }
            TurnEvent::Passing(_) => {}
            TurnEvent::Finished { reason, usage } => {
                self.chunk(Delta::default(), Some(reason), None, out);
                if self.include_usage
                    && let Some(usage) = usage.counted()
                {
                    let usage = Some(UsageJson::of(usage));
                    let chunk = Chunk { choices: &[], usage, tool: None, passing: Placed::default() };
                    Framing::append_rest(out, &self.opening, &chunk);
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

    /// An empty text: readers in use fail at a comment, or take it for the end.
    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        self.delta(text(""), out);
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
        self.details.extend(event.details_of_whole());
        match event {
            TurnEvent::Model(name) => self.head.model = name,
            TurnEvent::Text(text) | TurnEvent::Message { text, .. } => self.content.push_str(&text),
            TurnEvent::Reasoning { text, .. } => self.reasoning.push_str(&text),
            TurnEvent::PromptTokens(_) | TurnEvent::Tool(_) | TurnEvent::Notice(_) => {}
            // The calls come whole.
            TurnEvent::CallBegun { .. } | TurnEvent::CallDelta { .. } => {}
            TurnEvent::Calls(calls) => {
                for call in calls {
                    if self.head.has_room(self.calls.len()) {
                        self.calls.push(call);
                    } else {
                        self.details.extend(no_room(&call.call.name).details());
                    }
                }
            }
            TurnEvent::Passing(fields) => {
                self.extra.add(extra_of(as_openai(&fields).as_ref().unwrap_or(&fields)));
            }
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
        let reply = Reply {
            id: &self.head.id,
            object: "chat.completion",
            created: self.head.created,
            model: &self.head.model,
            choices: [choice],
            usage: usage.counted().map(UsageJson::of),
            x_toolrack: Some(self.details.as_slice()).filter(|details| !details.is_empty()),
            passing: &self.extra.reply,
        };
        Framing::append_json(out, &reply);
    }

    fn keep_alive(&mut self, _: &mut Vec<u8>) {}
}

/// Passing fields by their place, to be put together with others.
fn extra_of(passing: &Passing) -> Extra {
    let mut extra = Extra::default();
    for (name, value) in passing.to(API).iter().filter(|(name, _)| !is_ours(name)) {
        let (fields, name) = match (name.strip_prefix(OF_CHOICE), name.strip_prefix(OF_MESSAGE)) {
            (Some(name), _) => (&mut extra.choice, name),
            (_, Some(name)) => (&mut extra.message, name),
            _ => (&mut extra.reply, &**name),
        };
        fields.insert(name.to_owned(), serde_json::from_str(value.get()).unwrap_or(Value::Null));
    }
    extra
}
