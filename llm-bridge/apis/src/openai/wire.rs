//! Answers of model servers, streamed or complete.

use serde_json::Value;

use super::{Extra, Object, error_message, error_text, text_of};
use crate::json::replace_halves;

/// A part of a model server's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text of the answer, as the model wrote it.
    Text(String),
    /// Text that the server marks as reasoning.
    Reasoning(String),
    /// A native tool call, or a piece of one.
    Call(CallPiece),
    /// Why the model stopped: `stop`, `length`, `tool_calls` and so on.
    Finish(String),
    /// The tokens used.
    Usage(Value),
    /// Unknown fields.
    Extra(Box<Extra>),
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
    /// The arguments as JSON text, or the next piece of it.
    pub arguments: String,
}

/// How much of a reply without an answer is quoted, in characters.
const MAX_QUOTED: usize = 300;

/// Parses a complete reply.
///
/// # Errors
/// The message of an error object, or the reply that is not an answer.
pub fn read_reply(reply: Value) -> Result<Vec<Piece>, String> {
    let choices = reply.get("choices").and_then(Value::as_array);
    if is_failure(&reply) || choices.is_some_and(|choices| choices.iter().any(is_first)) {
        return read_chunk(reply);
    }
    let quoted: String = error_text(reply.to_string()).chars().take(MAX_QUOTED).collect();
    Err(format!("its reply has no answer in it: {quoted}"))
}

/// Parses a chunk of a stream.
///
/// # Errors
/// The message of an error object, which is how a server fails after it has begun to answer.
pub fn read_chunk(chunk: Value) -> Result<Vec<Piece>, String> {
    if is_failure(&chunk) {
        return Err(error_text(chunk.to_string()));
    }
    let Value::Object(mut chunk) = chunk else { return Ok(Vec::new()) };
    let mut pieces = Vec::new();
    let choices = chunk.shift_remove("choices");
    let usage = chunk.shift_remove("usage").filter(|usage| !usage.is_null());
    for field in ["id", "object", "created", "model"] {
        chunk.shift_remove(field);
    }
    let mut extra = Extra { reply: chunk, ..Extra::default() };
    if let Some(Value::Array(choices)) = choices
        && let Some(Value::Object(choice)) = choices.into_iter().find(is_first)
    {
        read_choice(choice, &mut extra, &mut pieces);
    }
    if extra != Extra::default() {
        pieces.insert(0, Piece::Extra(Box::new(extra)));
    }
    pieces.extend(usage.map(Piece::Usage));
    Ok(pieces)
}

fn is_failure(answer: &Value) -> bool {
    answer.get("error").and_then(error_message).is_some()
        || answer.get("object").is_some_and(|object| object == "error")
}

/// Whether a choice is the first; a server may send more than one.
fn is_first(choice: &Value) -> bool {
    choice.is_object() && matches!(choice.get("index").map(Value::as_u64), None | Some(None | Some(0)))
}

/// Parses JSON that may contain escaped lone surrogates, as sent by servers that cut a text anywhere.
///
/// # Errors
/// If it is invalid JSON for another reason.
pub fn read_json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match replace_halves(text) {
        mended if mended == text => Err(error),
        mended => serde_json::from_str(&mended),
    })
}

fn read_choice(mut choice: Object, extra: &mut Extra, pieces: &mut Vec<Piece>) {
    choice.shift_remove("index");
    let (delta, message) = (choice.shift_remove("delta"), choice.shift_remove("message"));
    if let Some(Value::Object(mut message)) = delta.or(message) {
        message.shift_remove("role");
        for field in ["reasoning_content", "reasoning"] {
            // A server that sends both sends the same text twice.
            if let Some(Value::String(text)) = message.shift_remove(field)
                && !text.is_empty()
                && !pieces.iter().any(|piece| matches!(piece, Piece::Reasoning(_)))
            {
                pieces.push(Piece::Reasoning(text));
            }
        }
        match message.shift_remove("content") {
            Some(Value::String(text)) if !text.is_empty() => pieces.push(Piece::Text(text)),
            Some(parts @ Value::Array(_)) => pieces.push(Piece::Text(text_of(&parts))),
            _ => {}
        }
        if let Some(Value::Array(calls)) = message.shift_remove("tool_calls") {
            pieces.extend(calls.iter().map(|call| Piece::Call(read_call(call))));
        }
        extra.message = message;
    }
    if let Some(Value::String(reason)) = choice.shift_remove("finish_reason") {
        pieces.push(Piece::Finish(reason));
    }
    extra.choice = choice;
}

fn read_call(call: &Value) -> CallPiece {
    let function = call.get("function").unwrap_or(call);
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    CallPiece {
        index: call.get("index").and_then(Value::as_u64),
        id: text(call.get("id")),
        name: text(function.get("name")),
        arguments: match function.get("arguments") {
            Some(Value::String(json)) => json.clone(),
            None | Some(Value::Null) => String::new(),
            Some(object) => object.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_character_is_no_reason_to_lose_the_rest() {
        for (text, read) in [
            (r#""a\ud83d""#, Some("a\u{fffd}")),
            (r#""\ude00\ud83d\ude00\n\\ud83d""#, Some("\u{fffd}😀\n\\ud83d")),
            (r#""\ud83d\ud83d\ude00""#, Some("\u{fffd}😀")),
            (r#""\ud83"#, None),
            ("\"\\ü", None),
        ] {
            assert_eq!(read_json(text).ok(), read.map(Value::from), "{text}");
        }
    }

    #[test]
    fn servers_may_deviate() {
        let pieces = read_chunk(json!({
            "id": "x", "timings": {"ms": 1},
            "choices": [{"index": 0, "delta": {"reasoning": "hm", "reasoning_content": "hm", "content": "a", "tool_calls": [
                {"function": {"name": "f", "arguments": {"a": 1}}},
                {"index": 3, "id": "", "function": {"arguments": "{\"b\""}},
            ]}, "finish_reason": "stop"}],
            "usage": null,
        }))
        .unwrap();
        assert_eq!(
            pieces,
            [
                Piece::Extra(Box::new(Extra {
                    reply: json!({"timings": {"ms": 1}}).as_object().unwrap().clone(),
                    ..Extra::default()
                })),
                Piece::Reasoning("hm".into()),
                Piece::Text("a".into()),
                Piece::Call(CallPiece {
                    name: Some("f".into()),
                    arguments: "{\"a\":1}".into(),
                    ..CallPiece::default()
                }),
                Piece::Call(CallPiece { index: Some(3), arguments: "{\"b\"".into(), ..CallPiece::default() }),
                Piece::Finish("stop".into()),
            ]
        );
        assert_eq!(read_chunk(json!({"error": {"message": "no", "code": 500}})), Err("no".into()));
        assert_eq!(read_chunk(json!({"error": "no"})), Err("no".into()));
        assert_eq!(read_chunk(json!({"object": "error", "message": "no"})), Err("no".into()));
        assert_eq!(read_chunk(json!({"choices": []})), Ok(vec![]));
    }

    #[test]
    fn a_reply_without_an_answer_is_a_failure() {
        for (reply, expected) in [
            (json!({"detail": "no such model"}), "no such model"),
            (json!({"object": "error", "message": "too long"}), "too long"),
            (json!({}), "{}"),
            (json!([]), "[]"),
            (json!({"choices": []}), "{\"choices\":[]}"),
            (json!({"choices": [{"index": 1, "message": {"content": "b"}}]}), "no answer"),
        ] {
            let failure = read_reply(reply.clone()).unwrap_err();
            assert!(failure.contains(expected), "{reply}: {failure}");
        }
        let long = read_reply(json!({"x": "y".repeat(5000)})).unwrap_err();
        assert!(long.len() < 400, "{long}");
    }
}
