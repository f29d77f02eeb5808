//! The form of what a client sends: one message, or in the revision 2025-03-26 an array of them.

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse, Response},
};
use rmcp::model::RequestId;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::accepted;
use crate::server::requests::api_error::ApiError;

/// How many messages may come in one array.
const MAX_MESSAGES: usize = 100;
/// How much their answers may take, in bytes; the messages behind are not looked at any more.
const MAX_ANSWERS: usize = 16 << 20;
/// The revision that has arrays; clients of it name none in their headers.
const WITH_BATCHES: &str = "2025-03-26";

/// What a body is.
pub(super) enum Form {
    /// A message, or something that the library refuses.
    One,
    /// Several, one after the other.
    Batch(Vec<Box<RawValue>>),
    /// No message: the code of JSON-RPC, and what is wrong.
    Wrong(i32, String),
}

/// Reads so much of a body as says what it is.
pub(super) fn form(body: &[u8], revision: Option<&str>) -> Form {
    #[derive(Deserialize)]
    struct Message {
        jsonrpc: Option<Value>,
        id: Option<Value>,
        method: Option<Value>,
    }
    let wrong = |message: &str| Form::Wrong(-32600, message.to_owned());
    let is_array = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if is_array {
        return match serde_json::from_slice::<Vec<Box<RawValue>>>(body) {
            Err(fault) => Form::Wrong(-32700, format!("the body is no JSON: {fault}")),
            Ok(_) if revision.is_some_and(|revision| revision != WITH_BATCHES) => {
                wrong("this revision of the protocol has no batches; send each message alone")
            }
            Ok(messages) if messages.is_empty() || messages.len() > MAX_MESSAGES => {
                Form::Wrong(-32600, format!("a batch has between 1 and {MAX_MESSAGES} messages"))
            }
            Ok(messages) => Form::Batch(messages),
        };
    }
    match serde_json::from_slice::<Message>(body) {
        Err(fault) if fault.is_data() => wrong("the body is no JSON-RPC message, which is an object"),
        Err(fault) => Form::Wrong(-32700, format!("the body is no JSON: {fault}")),
        Ok(message) if message.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") => {
            wrong("`jsonrpc` has to be \"2.0\"")
        }
        Ok(Message { id: Some(id), .. })
            if !(id.is_string() || id.is_i64() || id.is_u64() || id.is_null()) =>
        {
            wrong("`id` has to be a text or a whole number")
        }
        Ok(Message { method: Some(method), .. }) if !method.is_string() => wrong("`method` has to be a text"),
        Ok(_) => Form::One,
    }
}

/// The refusal of a message, which may have no id that could be read.
pub(super) fn refusal(code: i32, id: Option<&RequestId>, message: &str) -> Response {
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    (StatusCode::BAD_REQUEST, axum::Json(error)).into_response()
}

/// The answers to all messages, in their order; notifications have none. `hold` counts what is in memory.
pub(super) async fn answers<H: Future<Output = Result<Response, ApiError>>>(
    parts: Parts,
    messages: Vec<Box<RawValue>>,
    hold: impl Fn(usize) -> Result<(), ApiError>,
    handle: impl Fn(Request, Bytes) -> H,
) -> Result<Response, ApiError> {
    let (mut answers, mut size): (Vec<Box<RawValue>>, usize) = (Vec::new(), 0);
    for message in messages {
        if size > MAX_ANSWERS {
            answers.extend(not_handled(&message));
            continue;
        }
        let body = Bytes::from(String::from(Box::<str>::from(message)));
        let request = Request::from_parts(parts.clone(), Body::from(body.clone()));
        let answer = accepted::as_json(handle(request, body).await?).await;
        if answer.status().is_server_error() || answer.status() == StatusCode::NOT_FOUND {
            return Ok(answer);
        }
        let text = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
        size += text.len();
        hold(text.len())?;
        // What the library refuses, it refuses in plain words.
        answers.extend(serde_json::from_slice::<Box<RawValue>>(&text).ok());
    }
    match serde_json::to_vec(&answers) {
        Ok(body) if !answers.is_empty() => Ok(([(CONTENT_TYPE, "application/json")], body).into_response()),
        _ => Ok(StatusCode::ACCEPTED.into_response()),
    }
}

/// What is answered to a message behind answers that take too much; a notification gets nothing.
fn not_handled(message: &RawValue) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Message {
        id: Option<RequestId>,
    }
    let id = serde_json::from_str::<Message>(message.get()).ok()?.id?;
    let message = format!(
        "the answers to this batch take more than {} MiB, so this message was not handled; send it alone",
        MAX_ANSWERS >> 20
    );
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message}});
    serde_json::value::to_raw_value(&answer).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b7_what_the_answers_of_a_batch_take_is_bounded_and_counted() {
        let message = |id: usize| {
            RawValue::from_string(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call"}}"#))
        };
        let messages: Vec<_> = (0..100).map(|id| message(id).unwrap()).collect();
        let (parts, ()) = Request::new(()).into_parts();
        let (handled, held) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let handle = |_, _| {
            handled.set(handled.get() + 1);
            let result = json!({"jsonrpc": "2.0", "id": 1, "result": "x".repeat(1 << 20)});
            std::future::ready(Ok(axum::Json(result).into_response()))
        };
        let hold = |bytes: usize| {
            held.set(held.get() + bytes);
            Ok(())
        };
        let answer = answers(parts, messages, hold, handle).await.unwrap();
        let text = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let answers: Vec<Value> = serde_json::from_slice(&text).unwrap();
        assert_eq!(handled.get(), 16);
        assert!(held.get() > MAX_ANSWERS && text.len() < 2 * MAX_ANSWERS, "{} {}", held.get(), text.len());
        assert_eq!(answers.len(), 100);
        assert_eq!((&answers[99]["id"], &answers[99]["error"]["code"]), (&json!(99), &json!(-32000)));
    }

    #[test]
    fn b7_what_is_no_message_is_refused_with_the_code_of_json_rpc() {
        let code = |body: &str, revision: Option<&str>| match form(body.as_bytes(), revision) {
            Form::One => 1,
            Form::Batch(messages) => i32::try_from(messages.len()).unwrap(),
            Form::Wrong(code, _) => code,
        };
        let ping = r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
        for (body, expected) in [
            (ping, 1),
            (r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#, 1),
            (r#"{"jsonrpc": "2.0", "id": "a", "result": {}}"#, 1),
            ("{", -32700),
            ("", -32700),
            ("3", -32600),
            (r#"{"id": 1, "method": "ping"}"#, -32600),
            (r#"{"jsonrpc": "2.0", "id": [1], "method": "ping"}"#, -32600),
            (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, -32600),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": 3}"#, -32600),
            ("[", -32700),
            ("[]", -32600),
        ] {
            assert_eq!(code(body, None), expected, "{body}");
        }
        let batch = |messages: usize| format!(" [{}]", vec![ping; messages].join(","));
        assert_eq!(code(&batch(2), None), 2);
        assert_eq!(code(&batch(MAX_MESSAGES), Some(WITH_BATCHES)), 100);
        assert_eq!(code(&batch(MAX_MESSAGES + 1), None), -32600);
        assert_eq!(code(&batch(2), Some("2025-06-18")), -32600);
    }
}
