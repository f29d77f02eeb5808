//! OpenAI's chat completions API: <https://platform.openai.com/docs/api-reference/chat>.
//!
//! Canonical fields of a request are in [`Request`](crate::Request); all others pass. Passing fields of an answer have their place in
//! front of their name: `timings` is one of the chunk or reply, `choice.logprobs` of its choice, `message.refusal` of the message or
//! delta. Local servers deviate (ids missing, arguments as objects, `reasoning` or `reasoning_content`), and decoding tolerates that.

mod answer;
mod call;
mod chunk;
pub(crate) mod client_tools;
mod decode;
mod encode;
mod extra;
mod front;
mod message_json;
mod messages;
mod models;
pub(crate) mod tools;
mod wire;

use serde_json::{Map, Value};

pub use front::OpenAiFront;
pub use wire::OpenAiWire;

pub(crate) use decode::failure_of;
pub(crate) use front::{error_body, read_repeat_penalty};
pub(crate) use messages::read_audio;

use crate::Provider;

const API: Provider = Provider::OpenAi;
/// What stands in front of a passing field of a choice, and of a message or delta.
const OF_CHOICE: &str = "choice.";
const OF_MESSAGE: &str = "message.";
/// What passes of a request's `response_format` whose type is canonical, and of the `json_schema` in it.
const FORMAT_REST: &str = "response_format.rest";
const SCHEMA_REST: &str = "response_format.json_schema";

/// A JSON object.
type Object = Map<String, Value>;

/// The message of an error in any form that servers use.
fn error_message(error: &Value) -> Option<String> {
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(message) => Some(message.clone()),
        Value::Object(fields) => {
            let message =
                ["message", "error", "detail"].iter().find_map(|field| fields.get(*field)?.as_str());
            Some(message.map_or_else(|| error.to_string(), str::to_owned))
        }
        other => Some(other.to_string()),
    }
}

/// How much of an error is read, in bytes.
const MAX_ERROR: usize = 64 * 1024;

/// As much of an error as is read. What is cut off is no JSON, and is quoted as it stands.
fn beginning(body: &str) -> &str {
    body.get(..body.floor_char_boundary(MAX_ERROR)).unwrap_or(body)
}

/// The message in the body of an error response.
pub(crate) fn error_text(body: &str) -> String {
    let body = beginning(body);
    if let Ok(json) = serde_json::from_str::<Value>(body) {
        let error = json.get("error").filter(|error| !error.is_null());
        return error.or(Some(&json)).and_then(error_message).unwrap_or_else(|| body.to_owned());
    }
    // The title of a proxy's error page has the message.
    if body.trim_start().starts_with('<') {
        let title = body.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        return title
            .map_or_else(|| "a web page".to_owned(), |(title, _)| format!("a web page, {}", title.trim()));
    }
    body.to_owned()
}

/// The sum of the usage of several requests, number by number; other values are those of the last.
pub(crate) fn add_usage(total: Option<Value>, more: Value) -> Value {
    match (total, more) {
        (Some(total), Value::Null) => total,
        (Some(Value::Number(one)), Value::Number(other)) => match (one.as_u64(), other.as_u64()) {
            (Some(one), Some(other)) => one.saturating_add(other).into(),
            _ => (one.as_f64().unwrap_or_default() + other.as_f64().unwrap_or_default()).into(),
        },
        (Some(Value::Object(mut sum)), Value::Object(more)) => {
            for (field, value) in more {
                let before = sum.get_mut(&field).map(Value::take);
                sum.insert(field, add_usage(before, value));
            }
            sum.into()
        }
        (_, more) => more,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_response_keeps_its_own_message() {
        for (body, text) in [
            ("{\"error\": {\"message\": \"no\"}}", "no"),
            ("{\"error\": \"no\"}", "no"),
            ("{\"detail\": \"no\"}", "no"),
            ("{\"detail\": [1]}", "{\"detail\":[1]}"),
            ("no", "no"),
            ("<html><head><title> No </title>", "a web page, No"),
            ("<html>", "a web page"),
        ] {
            assert_eq!(error_text(body), text);
        }
    }

    #[test]
    fn a32_of_an_error_so_much_is_read_and_no_more() {
        let error = |bytes: usize| {
            let around = "{\"error\": {\"message\": \"no\", \"seen\": \"\"}}".len();
            format!("{{\"error\": {{\"message\": \"no\", \"seen\": \"{}\"}}}}", "x".repeat(bytes - around))
        };
        let (read, cut) = (failure_of(&error(MAX_ERROR), None), failure_of(&error(MAX_ERROR + 1), None));
        assert_eq!((read.message.as_str(), read.upstream.unwrap().others.len()), ("no", 1));
        assert_eq!((cut.message.len(), cut.upstream.unwrap().others.len()), (MAX_ERROR, 0));
        assert_eq!(error_text(&error(MAX_ERROR)), "no");
        assert_eq!(error_text(&"\u{e9}".repeat(MAX_ERROR)).len(), MAX_ERROR);
    }

    #[test]
    fn usage_adds_up() {
        let one = json!({
            "prompt_tokens": 1, "total_tokens": 3, "cost": 0.5, "y": 1,
            "prompt_tokens_details": {"cached_tokens": 1, "audio_tokens": null},
        });
        let two = json!({
            "prompt_tokens": 10, "total_tokens": 30, "cost": 0.25, "x": 1,
            "prompt_tokens_details": {"cached_tokens": 2, "audio_tokens": 4},
        });
        assert_eq!(
            add_usage(Some(one), two),
            json!({
                "prompt_tokens": 11, "total_tokens": 33, "cost": 0.75, "y": 1, "x": 1,
                "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 4},
            })
        );
    }
}
