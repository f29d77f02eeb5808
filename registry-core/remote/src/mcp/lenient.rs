//! What servers write otherwise than the protocol has it, read as it is meant. The client library reads a result whole or not at all.

use std::io;

use rmcp::model::{
    CallToolResult, ContentBlock, CustomResult, ErrorData, InitializeResult, JsonRpcMessage,
    ServerJsonRpcMessage, ServerResult,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::text::shown;

/// A message; the answer to `initialize` also where parts of it are not of the protocol's types.
pub(super) fn message(text: &[u8]) -> io::Result<ServerJsonRpcMessage> {
    let mut message: ServerJsonRpcMessage = serde_json::from_slice(text).map_err(io::Error::other)?;
    introduce(&mut message);
    Ok(message)
}

/// The answer to `initialize` as the library reads it, where that is not what the server wrote.
pub(super) fn introduced(text: &str) -> Option<String> {
    let mut message = text.contains("\"protocolVersion\"").then(|| serde_json::from_str(text).ok())??;
    introduce(&mut message).then(|| serde_json::to_string(&message).ok())?
}

fn introduce(message: &mut ServerJsonRpcMessage) -> bool {
    if let JsonRpcMessage::Response(answer) = message
        && let ServerResult::CustomResult(CustomResult(value)) = &answer.result
        && value.get("protocolVersion").is_some()
    {
        match introduction(value.clone()) {
            Ok(read) => answer.result = read.into(),
            Err(fault) => {
                let fault = format!("its answer to `initialize` cannot be read: {fault}");
                let error = ErrorData::internal_error(fault, None);
                *message = ServerJsonRpcMessage::error(error, Some(answer.id.clone()));
            }
        }
        return true;
    }
    false
}

/// The answer to `initialize`. Languages whose empty list and empty object are one write `[]` for an empty object.
fn introduction(mut value: Value) -> serde_json::Result<InitializeResult> {
    if let Some(capabilities) = value.get_mut("capabilities") {
        let is_empty_list = |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value.is_null();
        if is_empty_list(capabilities) {
            *capabilities = json!({});
        }
        for capability in capabilities.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if is_empty_list(capability) {
                *capability = json!({});
            }
        }
    }
    if let Some(Value::Object(server)) = value.get_mut("serverInfo") {
        for name in ["name", "version"] {
            if !server.get(name).is_some_and(Value::is_string) {
                server.insert(name.to_owned(), "".into());
            }
        }
    }
    serde_json::from_value(value)
}

/// The answer to a call, also where one of its parts is not of the protocol's types.
pub(super) fn answer(answer: ServerResult) -> ServerResult {
    let ServerResult::CustomResult(CustomResult(value)) = answer else { return answer };
    match result(&value) {
        Some(result) => ServerResult::CallToolResult(result),
        None => ServerResult::CustomResult(CustomResult(value)),
    }
}

fn result(value: &Value) -> Option<CallToolResult> {
    let content = match value.get("content") {
        Some(Value::Array(parts)) => parts.iter().map(block).collect(),
        Some(Value::String(text)) => vec![ContentBlock::text(text.clone())],
        _ => Vec::new(),
    };
    // The first revision had a value alone.
    let structured = value.get("structuredContent").or_else(|| value.get("toolResult"));
    if content.is_empty() && structured.is_none() && value.get("isError").is_none() {
        return None;
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = structured.cloned();
    result.is_error = value.get("isError").and_then(Value::as_bool);
    result.meta = value.get("_meta").and_then(|meta| Deserialize::deserialize(meta).ok());
    Some(result)
}

/// A part of a result, with what it lacks; of a part of an unknown kind its kind.
fn block(part: &Value) -> ContentBlock {
    if let Ok(block) = ContentBlock::deserialize(part) {
        return block;
    }
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut members = part.as_object().cloned().unwrap_or_default();
    members.retain(|name, _| !matches!(name.as_str(), "annotations" | "_meta"));
    let default = match kind {
        "image" | "audio" => Some(("mimeType", media_type(kind, part).into())),
        "resource_link" => Some(("name", part.get("uri").cloned().unwrap_or_default())),
        "text" => Some(("text", "".into())),
        _ => None,
    };
    if let Some((name, value)) = default
        && !members.get(name).is_some_and(Value::is_string)
    {
        members.insert(name.to_owned(), value);
    }
    let read = serde_json::from_value(Value::Object(members));
    read.unwrap_or_else(|_| {
        let kind = shown(kind);
        ContentBlock::text(format!("[a part of the kind `{kind}`, which cannot be read here]"))
    })
}

/// The beginning of what is written in Base64, and the media type.
const BEGINNINGS: [(&str, &str, &str); 8] = [
    ("image", "iVBORw0KGgo", "image/png"),
    ("image", "/9j/", "image/jpeg"),
    ("image", "R0lGOD", "image/gif"),
    ("image", "UklGR", "image/webp"),
    ("audio", "UklGR", "audio/wav"),
    ("audio", "SUQz", "audio/mpeg"),
    ("audio", "T2dnUw", "audio/ogg"),
    ("audio", "ZkxhQw", "audio/flac"),
];

fn media_type(kind: &str, part: &Value) -> &'static str {
    let data = part.get("data").and_then(Value::as_str).unwrap_or_default();
    let known = BEGINNINGS.iter().find(|(of, begins, _)| *of == kind && data.starts_with(begins));
    known.map_or("application/octet-stream", |(.., media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b3_a_part_that_is_not_as_the_protocol_has_it_costs_that_part_alone() {
        let words = json!({"type": "text", "text": "words"});
        let read = |part: Value| {
            let value = json!({"content": [words, part], "isError": false, "_meta": {"a": 1}});
            let ServerResult::CallToolResult(result) =
                answer(ServerResult::CustomResult(CustomResult(value)))
            else {
                panic!("no result")
            };
            assert_eq!(result.content[0].as_text().unwrap().text, "words");
            assert_eq!((result.is_error, result.meta.unwrap().0["a"].clone()), (Some(false), json!(1)));
            serde_json::to_value(&result.content[1]).unwrap()
        };
        let blob = read(json!({"type": "blob", "data": "AAAA", "mimeType": "application/pdf"}));
        assert!(blob["text"].as_str().unwrap().contains("`blob`"), "{blob}");
        for (kind, data, media_type) in [
            ("image", "iVBORw0KGgoAAAA", "image/png"),
            ("image", "AAAA", "application/octet-stream"),
            ("audio", "UklGRAAA", "audio/wav"),
        ] {
            assert_eq!(read(json!({"type": kind, "data": data}))["mimeType"], media_type);
        }
        assert_eq!(read(json!({"type": "resource_link", "uri": "file:///a"}))["name"], "file:///a");
        assert_eq!(read(json!({"type": "text", "text": null}))["text"], "");
        let told = json!({"type": "text", "text": "a", "annotations": {"audience": ["robot"]}});
        assert_eq!(read(told), json!({"type": "text", "text": "a"}));
    }

    #[test]
    fn b3_what_is_no_result_stays_none() {
        for value in [json!({}), json!({"tools": 3}), json!(3)] {
            assert!(result(&value).is_none(), "{value}");
        }
        let old = result(&json!({"toolResult": {"a": 1}})).unwrap();
        assert_eq!(old.structured_content, Some(json!({"a": 1})));
        assert_eq!(result(&json!({"content": "words"})).unwrap().content.len(), 1);
    }

    #[test]
    fn b3_a_server_that_introduces_itself_in_its_own_way_is_known() {
        let read = |result: Value| {
            message(json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string().as_bytes())
        };
        let odd = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": [], "logging": null},
            "serverInfo": {"name": "odd"}});
        let JsonRpcMessage::Response(answer) = read(odd).unwrap() else { panic!("no answer") };
        let ServerResult::InitializeResult(known) = answer.result else { panic!("{answer:?}") };
        assert!(known.capabilities.tools.is_some() && known.server_info.name == "odd", "{known:?}");
        let JsonRpcMessage::Error(wrong) = read(json!({"protocolVersion": 3})).unwrap() else { panic!() };
        assert!(wrong.id.is_some() && wrong.error.message.contains("`initialize`"), "{wrong:?}");
    }
}
