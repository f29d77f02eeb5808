//! The schemas of what goes over the wire as JSON that passes fields on which this server does not know, and so is of no type here.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use toolrack_apis::Extension;

macro_rules! shapes {
    ($($(#[doc = $about:literal])* $(#[cfg($gate:meta)])? $name:ident($schemas:ident): $schema:tt)*) => {$(
        $(#[doc = $about])*
        $(#[cfg($gate)])?
        pub(in crate::server) struct $name;

        $(#[cfg($gate)])?
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema($schemas: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!($schema);
                schema.insert("description".into(), concat!($($about, "\n"),*).trim().into());
                schema
            }
        }
    )*};
}

/// Something with a member that has a name.
fn with_named(member: &str) -> Value {
    let named = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"type": "object", "properties": {member: named}, "required": [member]})
}

/// Some of the tools, of which one may have to be called.
fn some_tools() -> Value {
    json!({
        "type": "object",
        "properties": {
            "mode": {"description": "`required` where one has to be called."},
            "tools": {"type": "array", "description": "Entries without a name are passed over."},
        },
        "required": ["tools"],
    })
}

shapes! {
    /// An error: <https://platform.openai.com/docs/guides/error-codes>. At the addresses of other APIs it has their shape.
    Error(_schemas): {
        "type": "object",
        "properties": {"error": {"anyOf": [
            {
                "type": "object",
                "properties": {
                    "message": {"type": "string", "description": "What is wrong and what to do."},
                    "type": {"type": "string", "description": "The kind of error, such as `invalid_request_error`."},
                    "param": {"type": ["string", "null"], "description": "The field at fault."},
                    "code": {"description": "The model server's own; Gemini's is the status."},
                },
                "required": ["message"],
            },
            {"type": "string", "description": "Ollama's: what is wrong and what to do."},
        ]}},
        "required": ["error"],
    }

    /// A request: <https://platform.openai.com/docs/api-reference/chat/create>. What is not named here goes to the model server
    /// untouched.
    ChatCompletionRequest(schemas): {
        "type": "object",
        "properties": {
            "messages": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"role": {"type": "string", "minLength": 1}},
                    "required": ["role"],
                },
            },
            "model": {"type": ["string", "null"], "description": "Where it is left out, the server's own."},
            "n": {"description": "Only one answer is given.", "enum": [1, null]},
            "stream": {"type": ["boolean", "null"]},
            "tools": {
                "type": ["array", "null"],
                "description": "The client's own tools, no two of one name. Calls of them come back as `tool_calls`.",
                "items": {"anyOf": [with_named("function"), with_named("custom")]},
            },
            "tool_choice": {
                "description": "One word, one tool, or some; a tool also without the object around its name, as the Responses API has it.",
                "anyOf": [
                    {"enum": ["auto", "none", "required", "any", null]},
                    {
                        "properties": {"type": {"not": {"const": "allowed_tools"}}},
                        "anyOf": [
                            with_named("function"),
                            with_named("custom"),
                            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                        ],
                    },
                    {
                        "properties": {"type": {"const": "allowed_tools"}},
                        "required": ["type"],
                        "anyOf": [
                            {"type": "object", "properties": {"allowed_tools": some_tools()}, "required": ["allowed_tools"]},
                            some_tools(),
                        ],
                    },
                ],
            },
            "toolrack": {"anyOf": [schemas.subschema_for::<Extension>(), {"type": "null"}]},
        },
        "required": ["messages"],
    }

    /// A whole answer: <https://platform.openai.com/docs/api-reference/chat/object>. What the model server has put beside comes along.
    ChatCompletion(_schemas): {
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "chat.completion"},
            "created": {"type": "integer", "description": "Seconds since 1970."},
            "model": {"type": "string"},
            "choices": {
                "type": "array",
                "minItems": 1,
                "maxItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "index": {"const": 0},
                        "message": {
                            "type": "object",
                            "properties": {
                                "role": {"const": "assistant"},
                                "content": {"type": ["string", "null"]},
                                "tool_calls": {"type": "array", "items": {"type": "object"}},
                            },
                            "required": ["role", "content"],
                        },
                        "finish_reason": {"type": "string"},
                    },
                    "required": ["index", "message", "finish_reason"],
                },
            },
            "usage": {"type": "object", "description": "The sum over all rounds of the turn."},
            "x_toolrack": {
                "type": "array",
                "description": "What was called on the way.",
                "items": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
            },
        },
        "required": ["id", "object", "created", "model", "choices", "usage"],
    }

    /// A request or answer as the reference of its API has it; see the operation's summary.
    JsonObject(_schemas): {
        "type": "object",
    }

    /// The models: <https://platform.openai.com/docs/api-reference/models/list>. For the SDKs of Anthropic and Gemini in their form.
    ModelList(_schemas): {
        "type": "object",
        "properties": {
            "object": {"const": "list"},
            "data": {"type": "array", "items": {"type": "object"}},
        },
    }

    /// A message of JSON-RPC 2.0: <https://www.jsonrpc.org/specification>.
    JsonRpc(_schemas): {
        "type": "object",
        "properties": {"jsonrpc": {"const": "2.0"}},
        "required": ["jsonrpc"],
    }
}
