//! Prompts and resources, which Toolrack does not offer.

use rmcp::ErrorData;
use serde_json::{Map, Value, json};

use super::tools::PNG;

pub(super) fn prompts() -> Value {
    let argument = |name: &str| json!({"name": name, "description": "A test argument", "required": true});
    json!({"prompts": [
        {"name": "test_simple_prompt", "description": "A prompt without arguments"},
        {
            "name": "test_prompt_with_arguments",
            "description": "A prompt with two arguments",
            "arguments": [argument("arg1"), argument("arg2")],
        },
        {
            "name": "test_prompt_with_embedded_resource",
            "description": "A prompt with a document in it",
            "arguments": [argument("resourceUri")],
        },
        {"name": "test_prompt_with_image", "description": "A prompt with a picture in it"},
        {"name": "test_input_required_result_prompt", "description": "A prompt that asks the user first"},
    ]})
}

/// The messages of a prompt that asks for nothing first; none where there is no such prompt.
pub(super) fn prompt(name: &str, arguments: &Map<String, Value>) -> Option<Value> {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let content = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            vec![text(&format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2")))]
        }
        "test_prompt_with_embedded_resource" => vec![
            json!({"type": "resource", "resource": {
                "uri": given("resourceUri"),
                "mimeType": "text/plain",
                "text": "Embedded resource content for testing.",
            }}),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
            text("Please analyze the image above."),
        ],
        _ => return None,
    };
    Some(messages(content))
}

pub(super) fn messages(content: Vec<Value>) -> Value {
    let messages: Vec<Value> =
        content.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    json!({"messages": messages})
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn resources() -> Value {
    let resource = |uri: &str, name: &str, mime_type: &str| json!({"uri": uri, "name": name, "description": "For the conformance suite", "mimeType": mime_type});
    json!({"resources": [
        resource("test://static-text", "Static text", "text/plain"),
        resource("test://static-binary", "Static binary", "image/png"),
        resource("test://watched-resource", "Watched", "text/plain"),
    ]})
}

pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data",
        "name": "Template",
        "description": "For the conformance suite",
        "mimeType": "application/json",
    }]})
}

pub(super) fn read(uri: &str) -> Result<Value, ErrorData> {
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        (_, Some(id)) => {
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
        ("test://static-text", _) => json!({
            "uri": uri,
            "mimeType": "text/plain",
            "text": "This is the content of the static text resource.",
        }),
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        ("test://watched-resource", _) => json!({"uri": uri, "mimeType": "text/plain", "text": "watched"}),
        _ => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))),
    };
    Ok(json!({"contents": [content]}))
}
