//! An answer as a model server gives it, in a stream or whole.

use serde_json::Value;

use super::{Object, error_message, text_of};

/// A part of an answer as a model server gives it: in a stream one after the other, otherwise all at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text of the answer, as the model wrote it.
    Text(String),
    /// Text that the server itself says is reasoning.
    Reasoning(String),
    /// A call that the server itself says is one, or a piece of it.
    Call(CallPiece),
    /// Why the model stopped: `stop`, `length`, `tool_calls` and so on.
    Finish(String),
    /// The tokens used.
    Usage(Value),
    /// Fields that are not known here.
    Extra(Object),
}

/// A call, or a piece of one, as a model server gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPiece {
    /// Which call of the answer it belongs to, where the server says.
    pub index: Option<u64>,
    /// The call's id; only in its first piece.
    pub id: Option<String>,
    /// The tool's name; only in its first piece.
    pub name: Option<String>,
    /// The arguments as JSON text, or the next piece of it.
    pub arguments: String,
}

/// Reads a chunk of a stream or a whole reply into its pieces.
///
/// # Errors
/// The message of an error object, which is how a server fails after it has begun to answer.
pub fn read_answer(answer: Value) -> Result<Vec<Piece>, String> {
    let Value::Object(mut answer) = answer else { return Ok(Vec::new()) };
    if let Some(message) = answer.get("error").and_then(error_message) {
        return Err(message);
    }
    let mut pieces = Vec::new();
    let choices = answer.shift_remove("choices");
    let usage = answer.shift_remove("usage").filter(|usage| !usage.is_null());
    for field in ["id", "object", "created", "model", "service_tier"] {
        answer.shift_remove(field);
    }
    if let Some(Value::Array(choices)) = choices
        && let Some(Value::Object(choice)) = choices.into_iter().next()
    {
        read_choice(choice, &mut answer, &mut pieces);
    }
    if !answer.is_empty() {
        pieces.insert(0, Piece::Extra(answer));
    }
    pieces.extend(usage.map(Piece::Usage));
    Ok(pieces)
}

/// Reads JSON in which an escape may be half a character, as servers write it that cut a text anywhere.
///
/// # Errors
/// When it is not JSON for another reason.
pub fn read_json(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match replace_halves(text) {
        mended if mended == text => Err(error),
        mended => serde_json::from_str(&mended),
    })
}

/// The text with U+FFFD for every escaped surrogate that is not one of a pair.
fn replace_halves(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, _)) = rest.split_once('\\') {
        mended.push_str(before);
        let escape = rest.get(before.len()..).unwrap_or_default();
        let (taken, kept) = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (12, escape.get(..12)),
            (Some(_), _) => (6, Some("\\ufffd")),
            // A backslash and what it escapes.
            (None, _) => (2, escape.get(..2)),
        };
        let Some(kept) = kept else { return text.to_owned() };
        mended.push_str(kept);
        rest = escape.get(taken..).unwrap_or_default();
    }
    mended + rest
}

/// The surrogate that an escape at the beginning of a text is.
fn surrogate(text: &str) -> Option<u16> {
    let unit = u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

fn read_choice(mut choice: Object, extra: &mut Object, pieces: &mut Vec<Piece>) {
    let message = choice.shift_remove("delta").or_else(|| choice.shift_remove("message"));
    if let Some(Value::Object(mut message)) = message {
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
    }
    if let Some(logprobs) = choice.shift_remove("logprobs").filter(|logprobs| !logprobs.is_null()) {
        extra.insert("logprobs".into(), logprobs);
    }
    if let Some(Value::String(reason)) = choice.shift_remove("finish_reason") {
        pieces.push(Piece::Finish(reason));
    }
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
        let pieces = read_answer(json!({
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
                Piece::Extra(json!({"timings": {"ms": 1}}).as_object().unwrap().clone()),
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
        assert_eq!(read_answer(json!({"error": {"message": "no", "code": 500}})), Err("no".into()));
        assert_eq!(read_answer(json!({"error": "no"})), Err("no".into()));
        assert_eq!(read_answer(json!({"choices": []})), Ok(vec![]));
    }
}
