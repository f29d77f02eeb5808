//! The tools that a registry can hold.

use std::{error::Error, sync::Arc, time::Duration};

use registry_core::{
    Content, Handler, Registry, ToolContext, ToolError, ToolPolicy, ToolResult, ToolSpec, handler_fn,
};
use serde_json::{Map, Value, json};

/// One red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
/// No sound at all: the header alone.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// Switched by `test_trigger_tool_change`.
const CHANGING: &str = "test_changing_tool";

pub(super) fn registry() -> Result<Registry, Box<dyn Error>> {
    let registry = Registry::builder().without_compiled().build()?;
    let words = |words: &'static str| said(move |_| ToolResult::new(words));
    let shown = |content: Vec<Content>| {
        said(move |_| content.iter().cloned().fold(ToolResult::new(Value::Null), ToolResult::with_content))
    };
    let image = || Content::Image { data: PNG.to_owned(), mime_type: "image/png".to_owned() };
    let audio = Content::Audio { data: WAV.to_owned(), mime_type: "audio/wav".to_owned() };
    let whole = |uri: &str, mime_type: &str, text: &str| {
        let resource = json!({"uri": uri, "mimeType": mime_type, "text": text});
        Content::Resource { resource: resource.as_object().cloned().unwrap_or_default() }
    };
    let mixed = vec![
        Content::text("Multiple content types test:"),
        image(),
        whole("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
    ];
    let embedded = whole("test://embedded-resource", "text/plain", "This is an embedded resource content.");

    let without = || json!({"type": "object", "properties": {}, "additionalProperties": false});
    let tools: Vec<(&str, Value, Arc<dyn Handler>)> = vec![
        ("test_simple_text", without(), words("This is a simple text response for testing.")),
        ("test_image_content", without(), shown(vec![image()])),
        ("test_audio_content", without(), shown(vec![audio])),
        ("test_embedded_resource", without(), shown(vec![embedded])),
        ("test_multiple_content_types", without(), shown(mixed)),
        ("test_error_handling", without(), handler_fn(|_, _| async { Err(intended()) })),
        ("test_tool_with_progress", without(), handler_fn(|context, _| with_progress(context))),
        ("json_schema_2020_12_tool", schema_2020_12(), words("taken")),
        ("test_custom_headers", with_headers(), said(|arguments| ToolResult::new(Value::Object(arguments)))),
        ("add", two_numbers(), said(|arguments| ToolResult::new(sum(&arguments)))),
        (CHANGING, without(), words("There for now.")),
        ("test_trigger_tool_change", without(), trigger(registry.clone())),
    ];
    for (name, schema, handler) in tools {
        let mut spec = ToolSpec::new(name, schema);
        spec.description = Some(format!("{} for the conformance suite.", name.replace('_', " ")));
        registry.register(spec, ToolPolicy::new(), Some(handler))?;
    }
    Ok(registry)
}

fn said(say: impl Fn(Map<String, Value>) -> ToolResult + Send + Sync + 'static) -> Arc<dyn Handler> {
    handler_fn(move |_, arguments| std::future::ready(Ok(say(arguments))))
}

fn intended() -> ToolError {
    ToolError::failed("This tool intentionally returns an error for testing")
}

async fn with_progress(context: ToolContext) -> Result<ToolResult, ToolError> {
    for (fraction, word) in [(0.0, "begun"), (0.5, "half of it"), (1.0, "done")] {
        context.progress(fraction, word);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(ToolResult::new("Progress was reported three times."))
}

/// Takes a tool away, or brings it back.
fn trigger(registry: Registry) -> Arc<dyn Handler> {
    handler_fn(move |_, _| {
        let is_there = registry.get(CHANGING).is_some_and(|tool| tool.is_enabled());
        let changed = registry.set_enabled(CHANGING, !is_there);
        std::future::ready(match changed {
            Ok(_) => Ok(ToolResult::new("The list has changed.")),
            Err(error) => Err(ToolError::failed(error.to_string())),
        })
    })
}

fn sum(arguments: &Map<String, Value>) -> Value {
    let number = |name| arguments.get(name).and_then(Value::as_i64).unwrap_or_default();
    number("a").saturating_add(number("b")).into()
}

fn two_numbers() -> Value {
    json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    })
}

/// Arguments that clients repeat in the headers `Mcp-Param-Region` and `Mcp-Param-Priority`.
fn with_headers() -> Value {
    json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
        },
        "required": ["region"],
    })
}

fn schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
