//! The reply as it goes to a client: a stream of chunks, or one object.
//!
//! What happens to a tool rides on ordinary chunks with an empty text and extra fields, which is the one form that every SDK
//! takes: `event` is what Open WebUI shows as a status, `x_toolrack` has the details.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolrack_apis::openai::{Extra, Object};

use crate::chat::{ClientCall, TurnEvent};

/// What both forms of a reply have in common.
#[derive(Debug)]
struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    fn new() -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { id: format!("chatcmpl-{:016x}", fastrand::u64(..)), created, model: String::new() }
    }

    fn object(&self, kind: &str, choices: Value) -> Object {
        let mut object = Object::new();
        object.insert("id".into(), self.id.as_str().into());
        object.insert("object".into(), kind.into());
        object.insert("created".into(), self.created.into());
        object.insert("model".into(), self.model.as_str().into());
        object.insert("choices".into(), choices);
        object
    }
}

/// Writes a turn as the chunks of a stream.
#[derive(Debug)]
pub(super) struct StreamReply {
    head: Head,
    include_usage: bool,
    begun: bool,
    /// The ids of the client's calls that have been sent, whole or in part; each is at its index.
    calls: Vec<String>,
    /// Passing fields that wait for the next chunk.
    extra: Extra,
}

impl StreamReply {
    /// A stream, with the usage at its end where the client asked for it.
    pub(super) fn new(include_usage: bool) -> Self {
        Self { head: Head::new(), include_usage, begun: false, calls: Vec::new(), extra: Extra::default() }
    }

    /// The chunks that an event is. [`TurnEvent::Failed`] has none: it is [`error_body`].
    pub(super) fn chunks(&mut self, event: TurnEvent) -> Vec<Value> {
        match event {
            TurnEvent::Model(name) => {
                self.head.model = name;
                Vec::new()
            }
            TurnEvent::Text(text) => vec![self.delta(json!({"content": text}), None)],
            TurnEvent::Message { id, text } => {
                let mut chunk = self.delta(json!({"content": text}), None);
                if let Value::Object(fields) = &mut chunk {
                    // Whoever shows the message of `call_finished` passes this text over.
                    fields.insert("x_toolrack".into(), json!({"type": "message", "id": id}));
                }
                vec![chunk]
            }
            TurnEvent::Reasoning(text) => vec![self.delta(json!({"reasoning_content": text}), None)],
            TurnEvent::Extra(fields) => {
                self.extra.add(*fields);
                Vec::new()
            }
            TurnEvent::ClientCalls(calls) => {
                // One that came in deltas has been sent.
                let calls: Vec<ClientCall> =
                    calls.into_iter().filter(|call| !self.calls.contains(&call.id)).collect();
                let calls: Vec<Value> = calls.into_iter().map(|call| self.begin_call(call)).collect();
                if calls.is_empty() {
                    Vec::new()
                } else {
                    vec![self.delta(json!({"tool_calls": calls}), None)]
                }
            }
            TurnEvent::CallBegun { id, name, is_client: true, .. } => {
                let call = self.begin_call(ClientCall { id, name, arguments: String::new() });
                vec![self.delta(json!({"tool_calls": [call]}), None)]
            }
            TurnEvent::CallDelta { id, arguments } if self.calls.contains(&id) => {
                let index = self.calls.iter().position(|call| *call == id);
                let call = json!({"index": index, "function": {"arguments": arguments}});
                vec![self.delta(json!({"tool_calls": [call]}), None)]
            }
            TurnEvent::Finished { reason, usage } => {
                let mut chunks = vec![self.delta(json!({}), Some(&reason))];
                if self.include_usage {
                    let mut chunk = self.head.object("chat.completion.chunk", json!([]));
                    chunk.insert("usage".into(), usage.unwrap_or_else(no_usage));
                    chunks.push(chunk.into());
                }
                chunks
            }
            TurnEvent::Failed(_) => Vec::new(),
            other => {
                let Some((status, details)) = describe(&other) else { return Vec::new() };
                let mut chunk = self.delta(json!({"content": ""}), None);
                if let Value::Object(fields) = &mut chunk {
                    if !status.is_null() {
                        fields.insert("event".into(), status);
                    }
                    fields.insert("x_toolrack".into(), details);
                }
                vec![chunk]
            }
        }
    }

    /// A call of the client's at the next index.
    fn begin_call(&mut self, call: ClientCall) -> Value {
        let mut json = client_call(&call);
        json.insert("index".into(), self.calls.len().into());
        self.calls.push(call.id);
        json.into()
    }

    fn delta(&mut self, mut delta: Value, finish: Option<&str>) -> Value {
        if !self.begun
            && let Value::Object(fields) = &mut delta
        {
            self.begun = true;
            fields.shift_insert(0, "role".into(), "assistant".into());
        }
        let mut extra = std::mem::take(&mut self.extra);
        if let Value::Object(fields) = &mut delta {
            fields.append(&mut extra.message);
        }
        let choice = with_fields(
            json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}),
            extra.choice,
        );
        let mut chunk = self.head.object("chat.completion.chunk", json!([choice]));
        chunk.append(&mut extra.reply);
        chunk.into()
    }
}

/// Gathers a turn into one reply.
#[derive(Debug)]
pub(super) struct WholeReply {
    head: Head,
    content: String,
    reasoning: String,
    calls: Vec<Value>,
    details: Vec<Value>,
    finish: String,
    usage: Option<Value>,
    extra: Extra,
}

impl Default for WholeReply {
    fn default() -> Self {
        Self {
            head: Head::new(),
            content: String::new(),
            reasoning: String::new(),
            calls: Vec::new(),
            details: Vec::new(),
            finish: "stop".into(),
            usage: None,
            extra: Extra::default(),
        }
    }
}

impl WholeReply {
    /// Takes an event.
    pub(super) fn take(&mut self, event: TurnEvent) {
        match event {
            TurnEvent::Model(name) => self.head.model = name,
            TurnEvent::Text(text) => self.content.push_str(&text),
            TurnEvent::Message { id, text } => {
                self.content.push_str(&text);
                self.details.push(json!({"type": "message", "id": id, "text": text}));
            }
            TurnEvent::Reasoning(text) => self.reasoning.push_str(&text),
            TurnEvent::Extra(fields) => self.extra.add(*fields),
            TurnEvent::ClientCalls(calls) => {
                self.calls.extend(calls.iter().map(|call| Value::from(client_call(call))));
            }
            TurnEvent::Finished { reason, usage } => {
                self.finish = reason;
                self.usage = usage;
            }
            // What the call is comes whole.
            TurnEvent::CallBegun { .. } | TurnEvent::CallDelta { .. } | TurnEvent::Failed(_) => {}
            other => self.details.extend(describe(&other).map(|(_, details)| details)),
        }
    }

    /// The reply.
    pub(super) fn into_json(mut self) -> Value {
        let mut message = Object::new();
        message.insert("role".into(), "assistant".into());
        let silent = self.content.is_empty() && !self.calls.is_empty();
        message.insert("content".into(), if silent { Value::Null } else { self.content.into() });
        if !self.reasoning.is_empty() {
            message.insert("reasoning_content".into(), self.reasoning.into());
        }
        if !self.calls.is_empty() {
            message.insert("tool_calls".into(), self.calls.into());
        }
        message.append(&mut self.extra.message);
        let choice = with_fields(
            json!({"index": 0, "message": message, "logprobs": null, "finish_reason": self.finish}),
            self.extra.choice,
        );
        let mut reply = self.head.object("chat.completion", json!([choice]));
        reply.insert("usage".into(), self.usage.unwrap_or_else(no_usage));
        reply.append(&mut self.extra.reply);
        if !self.details.is_empty() {
            reply.insert("x_toolrack".into(), self.details.into());
        }
        reply.into()
    }
}

fn with_fields(mut object: Value, mut fields: Object) -> Value {
    if let Value::Object(known) = &mut object {
        known.append(&mut fields);
    }
    object
}

fn client_call(call: &ClientCall) -> Object {
    let mut object = Object::new();
    object.insert("id".into(), call.id.as_str().into());
    object.insert("type".into(), "function".into());
    object.insert("function".into(), json!({"name": call.name, "arguments": call.arguments}));
    object
}

fn no_usage() -> Value {
    json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
}

/// What happens to a tool, for people (in Open WebUI's form; null where it is nothing to them) and for programs.
fn describe(event: &TurnEvent) -> Option<(Value, Value)> {
    let (text, done, details) = match event {
        TurnEvent::CallBegun { id, name, dialect, .. } => (
            format!("{name}: being called"),
            false,
            json!({"type": "call_begun", "id": id, "name": name, "dialect": dialect}),
        ),
        TurnEvent::CallDelta { id, arguments } => {
            return Some((Value::Null, json!({"type": "call_delta", "id": id, "arguments": arguments})));
        }
        TurnEvent::CallAborted { id, name, source, reason } => (
            format!("{name}: not called: {reason}"),
            true,
            json!({"type": "call_aborted", "id": id, "name": name, "source": source, "reason": reason}),
        ),
        TurnEvent::CallStarted { id, name, arguments, dialect } => (
            format!("{name}: running"),
            false,
            json!({"type": "call_started", "id": id, "name": name, "arguments": arguments, "dialect": dialect}),
        ),
        TurnEvent::CallStatus(status) => (
            format!("{}: {}", status.tool_name, status.message),
            false,
            json!({
                "type": "call_status", "id": status.call_id, "name": status.tool_name,
                "message": status.message, "progress": status.progress, "approval": status.approval,
                "approval_seconds": status.approval_seconds,
            }),
        ),
        TurnEvent::CallFinished(outcome) => {
            let reply = outcome.to_reply();
            let took = u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX);
            let name = &reply.tool_name;
            let text = match (&reply.error, &reply.message) {
                (Some(error), _) => format!("{name}: {error}"),
                (None, _) if reply.success => format!("{name}: done in {took} ms"),
                (None, Some(message)) => format!("{name}: not done: {message}"),
                (None, None) => format!("{name}: not done"),
            };
            let details = json!({
                "type": "call_finished", "id": outcome.call_id, "name": reply.tool_name, "success": reply.success,
                "result": reply.result, "error": reply.error, "message": reply.message,
                "side_effects": reply.side_effects, "duration_ms": took, "approval": reply.approval,
                "retry_at": reply.retry_at,
            });
            (text, true, details)
        }
        TurnEvent::Notice(text) => (text.clone(), true, json!({"type": "notice", "message": text})),
        _ => return None,
    };
    Some((json!({"type": "status", "data": {"description": text, "done": done}}), details))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_begins_with_the_role_and_ends_with_the_usage() {
        let mut reply = StreamReply::new(true);
        assert!(reply.chunks(TurnEvent::Model("m".into())).is_empty());
        let first = reply.chunks(TurnEvent::Text("a".into())).remove(0);
        assert_eq!(first["choices"][0]["delta"], json!({"role": "assistant", "content": "a"}));
        assert_eq!(first["model"], "m");
        let notice = reply.chunks(TurnEvent::Notice("n".into())).remove(0);
        assert_eq!(notice["choices"][0]["delta"], json!({"content": ""}));
        assert_eq!(notice["event"]["data"]["description"], "n");
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        let last = reply.chunks(TurnEvent::Finished { reason: "stop".into(), usage: Some(usage.clone()) });
        assert_eq!(last[0]["choices"][0]["finish_reason"], "stop");
        assert_eq!(last[1]["choices"], json!([]));
        assert_eq!(last[1]["usage"], usage);
    }

    #[test]
    fn passing_fields_go_with_the_next_chunk() {
        let mut reply = StreamReply::new(false);
        let object = |value: Value| value.as_object().unwrap().clone();
        let extra = Extra {
            reply: object(json!({"timings": {"ms": 1}})),
            choice: object(json!({"logprobs": {"content": []}})),
            message: object(json!({"refusal": "no"})),
        };
        assert!(reply.chunks(TurnEvent::Extra(Box::new(extra))).is_empty());
        let chunk = reply.chunks(TurnEvent::Text("a".into())).remove(0);
        assert_eq!(chunk["timings"]["ms"], 1);
        assert_eq!(chunk["choices"][0]["logprobs"], json!({"content": []}));
        assert_eq!(chunk["choices"][0]["delta"]["refusal"], "no");
        assert!(reply.chunks(TurnEvent::Text("b".into())).remove(0).get("timings").is_none());
    }

    #[tokio::test]
    async fn p7_what_was_not_done_is_not_told_as_done() {
        use registry_core::{Registry, ToolCall, ToolContext, ToolPolicy, ToolResult, ToolSpec, handler_fn};
        let registry = Registry::builder().without_compiled().build().unwrap();
        let handler = handler_fn(|_, arguments| async move {
            Ok(match arguments.get("why").and_then(Value::as_str) {
                Some("") => ToolResult { success: false, ..ToolResult::new("") },
                Some(why) => ToolResult { success: false, message: Some(why.into()), ..ToolResult::new("") },
                None => ToolResult::new("yes"),
            })
        });
        registry
            .register(ToolSpec::new("f", json!({"type": "object"})), ToolPolicy::new(), Some(handler))
            .unwrap();
        let mut reported = Vec::new();
        for arguments in [json!({"why": ""}), json!({"why": "Nothing found."}), json!({})] {
            let outcome = registry.execute(&ToolContext::default(), ToolCall::new("f", arguments)).await;
            let (status, details) = describe(&TurnEvent::CallFinished(Box::new(outcome))).unwrap();
            reported.push((
                status["data"]["description"].as_str().unwrap().to_owned(),
                details["success"].clone(),
            ));
        }
        assert_eq!(reported[0], ("f: not done".to_owned(), json!(false)));
        assert_eq!(reported[1], ("f: not done: Nothing found.".to_owned(), json!(false)));
        assert!(reported[2].0.starts_with("f: done in") && reported[2].1 == true, "{reported:?}");
    }

    #[test]
    fn a_whole_reply_with_calls_has_no_content() {
        let mut reply = WholeReply::default();
        let call = ClientCall { id: "c".into(), name: "f".into(), arguments: "{}".into() };
        reply.take(TurnEvent::ClientCalls(vec![call]));
        reply.take(TurnEvent::Finished { reason: "tool_calls".into(), usage: None });
        let json = reply.into_json();
        assert_eq!(json["choices"][0]["message"]["content"], Value::Null);
        assert_eq!(json["choices"][0]["message"]["tool_calls"][0]["function"]["name"], "f");
        assert_eq!(json["choices"][0]["finish_reason"], "tool_calls");
    }
}
